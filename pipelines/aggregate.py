"""Release private statistics per partition from files of rows, for example what visitors spent per day:

    beam-dp aggregate --input docs/start/visits.csv --output released.csv --person visitor_id \\
        --partition day --count --sum spent --epsilon 1 --public_partitions 1,2,3,4,5,6,7

In 95 of 100 releases the true number is between <metric>_low and <metric>_high. Every run spends budget.
"""

import sys
from collections.abc import Sequence

from pipelines import command_line, releasing


def parser() -> command_line.Parser:
    """Return the command line."""
    return command_line.parser("aggregate", __doc__)


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    return releasing.run(parser(), given)


if __name__ == "__main__":
    sys.exit(main())
