"""Release per partition which share of the rows, or people, has a given value in a column.

For example, which share of a day's visits took one minute:

    python -m pipelines.ratio --input docs/start/visits.csv --output rates.csv \\
        --person visitor_id --partition day --ratio minutes \\
        --public_partitions 1,2,3,4,5,6,7 --epsilon 1

Or which share of the people made such a visit: --ratio minutes,per=person. The value counted is 1
(true, True and 1.0 are the same value), unless equals=yes says another. A misspelt value gives a
share of about 0: an error would reveal data. Other methods than the default need bounds on people:
--ratio minutes,method=kulesza_suresh_wang.
"""

import sys
from collections.abc import Sequence

import beam_dp as dp
from pipelines import command_line, releasing


def parser() -> command_line.Parser:
    """Return the command line."""
    return command_line.parser("ratio", __doc__, lambda kind: kind is dp.Ratio)


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    return releasing.run(parser(), given)


if __name__ == "__main__":
    sys.exit(main())
