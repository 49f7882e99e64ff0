"""Release statistics of one number per person, by sensitivity preprocessing.

For example, the variance and the trimmed mean of what visitors spent per day:

    python -m pipelines.preprocess --input docs/start/visits.csv --output released.csv \\
        --person visitor_id --partition day --preprocessed spent,of=variance --trimmed_mean spent \\
        --epsilon 1 --bounds partitions=3 --public_partitions 1,2,3,4,5,6,7

Each person becomes one number per partition: the mean of their values, or what person_value=max
says. The statistic is replaced by the closest one that no person moves by more than Delta, and
noise of that size is added; Delta is found privately, or given by sensitivity=5 in the scale of the
statistic. How far the preprocessed statistic is from the true one is not known: <name>_low and
<name>_high are infinite. A median has <name>_rank_error instead, a number of people.
"""

import sys
from collections.abc import Sequence

from beam_dp.mechanisms.metrics.base import OfPersonValues
from pipelines import command_line, releasing


def parser() -> command_line.Parser:
    """Return the command line."""
    return command_line.parser("preprocess", __doc__, lambda kind: issubclass(kind, OfPersonValues))


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    return releasing.run(parser(), given)


if __name__ == "__main__":
    sys.exit(main())
