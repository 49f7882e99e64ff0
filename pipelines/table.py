"""Print a released file again as a table, and write its page of charts. It costs nothing.

beam-dp table released.csv --report released.html
"""

import sys
from collections.abc import Sequence

from beam_dp.results import report
from pipelines import command_line, releasing


def main(given: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit code."""
    line = command_line.alone("table", __doc__, "[-h] path [--report PAGE] [--title TEXT]")
    line.add_argument("path", help="the released file; its record is beside it")
    line.add_argument("--report", metavar="PAGE", help="a page of charts too (extra: report)")
    line.add_argument("--title", metavar="TEXT", help="the heading of the page", default="")
    text = "how the page writes numbers: 1.234,5, 1 234,5, ..."
    line.add_argument("--number_style", metavar="1,234.5", help=text, default=report.PLAIN)
    options = line.parse_args(given)
    style = {"title": options.title, "number_style": options.number_style}
    with line.refusing():
        if options.report is not None:
            report.check(options.report, options.number_style)
        releasing.show([options.path], [options.report] if options.report else [], style)
    return 0


if __name__ == "__main__":
    sys.exit(main())
