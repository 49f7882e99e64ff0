"""Release per partition which share of the rows, or people, has a given value in a column.

For example, which share of a country's impressions was clicked:

    python -m pipelines.ratio --input impressions.parquet --output rates.csv \\
        --person user_id --partition country --ratio clicked \\
        --bounds partitions=2 --epsilon 1 --delta 1e-6

Or which share of the people has clicked at all: --ratio clicked,per=person. The value counted is 1
(true, True and 1.0 are the same value), unless equals=yes says another. A misspelt value gives a
share of about 0: an error would reveal data. Other methods than the default need bounds on people:
--ratio clicked,method=kulesza_suresh_wang.
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
