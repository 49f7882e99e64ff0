"""Release per partition which share of the rows, or people, has a given value in a column.

For example, which share of a country's impressions was clicked, whoever has many of them:

    python -m pipelines.ratio --input impressions.parquet --output rates.csv \\
        --person user_id --partition country --column clicked \\
        --bounds partitions=2 --epsilon 1 --delta 1e-6

Or which share of the people has clicked at all: --per person. Values are compared as they are
written: true, True, 1 and 1.0 are one value, "yes" another: --equals yes. What never occurs has a
share of about 0: nothing else would say so without showing data. The output has three columns
beside the partition: the share, from 0 to 1, and <name>_low and <name>_high, which hold the true
share, of the rows that --bounds leaves, in 95 of 100 releases.
"""

import argparse
import sys
from collections.abc import Sequence

import beam_dp as dp
from beam_dp.mechanisms import ratio
from beam_dp.mechanisms.metrics.ratio import CLIP, as_written
from pipelines import releasing
from pipelines.arguments import command, forms, words

NEIGHBOURS = (ratio.ADD_REMOVE, ratio.SUBSTITUTION)


def parser() -> command.Parser:
    """Return the command line."""
    made = command.parser("ratio", __doc__)
    group = made.add_argument_group("share")
    group.add_argument("--column", required=True, type=words.column, help="what is compared")
    group.add_argument("--equals", default="1", metavar="VALUE", help="what counts (default 1)")
    group.add_argument("--per", choices=forms.PER, default="row", help="what is counted")
    how = "clip: no bound on rows is needed (default); others: people must be bounded by --bounds"
    group.add_argument("--method", choices=(CLIP, *ratio.METHODS), default=CLIP, help=how)
    who = "substitution: also hide which rows a person has, for more noise (default add-remove)"
    group.add_argument("--neighbours", choices=NEIGHBOURS, default=NEIGHBOURS[0], help=who)
    releasing.add_spending(made)
    return made


def transform(options: argparse.Namespace) -> dp.PrivateAggregate:
    """Return the release that the options ask for."""
    chosen = {"per": options.per, "method": options.method, "neighbours": options.neighbours}
    asked = dp.Ratio(options.column, equals=as_written(options.equals), **chosen)
    return releasing.transform(options, [asked])


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    return releasing.run(parser(), transform, given)


if __name__ == "__main__":
    sys.exit(main())
