"""Release private statistics per partition from files of rows about people.

For example, what visitors spent per day, with no bound on what one of them spends:

    python -m pipelines.aggregate --input visits.parquet --output released.csv \\
        --person visitor_id --partition day --count --sum spent --max minutes \\
        --epsilon 1 --max_partitions 3 --public_partitions 1,2,3,4,5,6,7

Every metric becomes two columns: its value, and <metric>_error, a bound that holds for 95% of
releases (for all that is released from below, and for quantiles, a number of people; inf: too few
people for a bound, see "shift T" in the plan). --plan says what each metric would cost and how far
it would stray, and reads no row. A second run is a second release: it spends again.
"""

import argparse
import sys
from collections.abc import Sequence

import beam_dp as dp
from pipelines import releasing
from pipelines.arguments import chosen, command, metrics


def parser() -> command.Parser:
    """Return the command line."""
    made = command.parser("aggregate", __doc__, two_owners=True)
    metrics.add(made)
    releasing.add_spending(made)
    return made


def transform(options: argparse.Namespace) -> dp.PrivateAggregate:
    """Return the release that the options ask for."""
    chosen.check(options)
    return releasing.transform(options, chosen.asked(options))


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    return releasing.run(parser(), transform, given)


if __name__ == "__main__":
    sys.exit(main())
