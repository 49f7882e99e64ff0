"""Release per partition which share of the rows, or people, has a given value in a column.

For example, which share of a country's impressions was clicked:

    python -m pipelines.ratio --input impressions.parquet --output rates.csv \\
        --person user_id --partition country --column clicked \\
        --bounds partitions=2 --epsilon 1 --delta 1e-6

Or which share of the people has clicked at all: --per person. The value counted is 1 (true, True
and 1.0 are the same value), unless --equals yes says another. A misspelt value gives a share of
about 0: an error would reveal data. The output has three columns beside the partition: the share,
and <name>_low and <name>_high. In 95 of 100 releases the share of the rows that --bounds leaves is
between these two.
"""

import functools
import sys
from collections.abc import Sequence

from beam_dp.mechanisms import ratio
from beam_dp.mechanisms.metrics.ratio import CLIP
from pipelines import command_line, releasing

_OPTIONS = {
    "equals": ("VALUE", "what counts (default 1)"),
    "per": ("row|person", "what is counted (default row)"),
    "method": ("NAME", f"{', '.join((CLIP, *ratio.METHODS))}: all but the first bound people"),
}


def parser() -> command_line.Parser:
    """Return the command line."""
    made = command_line.parser("ratio", __doc__, lambda kind: False, _OPTIONS)
    column = functools.partial(command_line.metric, "ratio")
    made.add_argument(
        "--column", dest="metrics", action="append", type=column, help="what is compared"
    )
    return made


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    return releasing.run(parser(), given)


if __name__ == "__main__":
    sys.exit(main())
