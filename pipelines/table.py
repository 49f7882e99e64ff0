"""Print a released file again as a table, and write its page of charts. It costs nothing.

python -m pipelines.table released.csv --report released.html
"""

import sys
from collections.abc import Sequence

from beam_dp.results import report
from pipelines import command_line, releasing


def main(given: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit code."""
    line = command_line.alone("table", __doc__, "[-h] path [--report PAGE]")
    line.add_argument("path", help="the released file; its record is beside it")
    line.add_argument("--report", metavar="PAGE", help="a page of charts too (extra: report)")
    options = line.parse_args(given)
    with line.refusing():
        if options.report is not None:
            report.check(options.report)
        releasing.show([options.path], [options.report] if options.report else [])
    return 0


if __name__ == "__main__":
    sys.exit(main())
