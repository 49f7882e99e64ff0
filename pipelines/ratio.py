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

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from beam_dp.mechanisms import ratio
from beam_dp.mechanisms.metrics.ratio import CLIP, as_written
from pipelines import command_line, releasing

SHARE = ("column", "equals", "per", "method")


def parser() -> command_line.Parser:
    """Return the command line."""
    made = command_line.parser("ratio", __doc__)
    group = made.add_argument_group("share")
    group.add_argument("--column", help="what is compared")
    group.add_argument("--equals", metavar="VALUE", help="what counts (default 1)")
    group.add_argument("--per", choices=("row", "person"), help="what is counted (default row)")
    how = "clip: no bound on rows is needed (default); others: people must be bounded by --bounds"
    group.add_argument("--method", choices=(CLIP, *ratio.METHODS), help=how)
    return made


def described(options: argparse.Namespace) -> dict[str, Any]:
    """Return the mapping that the options make."""
    asked = {name: vars(options)[name] for name in SHARE if vars(options)[name] is not None}
    if not asked and options.config:
        return command_line.described(options)
    if options.column is None:
        raise ValueError("--column must be given: whose values are compared")
    asked["equals"] = as_written(asked.get("equals", "1"))
    options.metrics = [{"ratio": asked.pop("column"), **asked}]
    return command_line.described(options)


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    return releasing.run(parser(), described, given)


if __name__ == "__main__":
    sys.exit(main())
