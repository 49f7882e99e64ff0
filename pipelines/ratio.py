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

from beam_dp.beam_yaml.mappings import SHARE, with_share
from beam_dp.mechanisms import ratio
from beam_dp.mechanisms.metrics.ratio import CLIP, as_written
from pipelines import command_line, releasing


def parser() -> command_line.Parser:
    """Return the command line."""
    made = command_line.parser("ratio", __doc__)
    group = made.add_argument_group("share")
    group.add_argument("--column", help="what is compared")
    group.add_argument("--equals", metavar="VALUE", help="what counts (default 1)")
    group.add_argument("--per", choices=("row", "person"), help="what is counted (default row)")
    how = "clip: no bound on rows is needed (default); others: people must be bounded by --bounds"
    group.add_argument("--method", choices=(CLIP, *ratio.METHODS), help=how)
    who = "substitution: also hide which rows a person has, for more noise (default add-remove)"
    neighbours = (ratio.ADD_REMOVE, ratio.SUBSTITUTION)
    group.add_argument("--neighbours", choices=neighbours, help=who)
    return made


def described(line: command_line.Parser, options: argparse.Namespace) -> dict[str, Any]:
    """Return the mapping that the options make: a share may stand in it as in Beam YAML."""
    flags = {name: vars(options)[name] for name in SHARE if vars(options)[name] is not None}
    if "equals" in flags:
        flags["equals"] = as_written(flags["equals"])
    given = command_line.described(line, options, **flags)
    if "column" in given and "metrics" in given:
        raise ValueError(
            "column and metrics are two ways to ask for a share: leave one of them out"
        )
    if "column" in given:
        return with_share(given)
    for name in SHARE:
        if name in given:
            by_flag = f"--{name} needs --column COLUMN"
            raise ValueError(by_flag if name in flags else f"{name} needs a column beside it")
    return given


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    return releasing.run(parser(), described, given)


if __name__ == "__main__":
    sys.exit(main())
