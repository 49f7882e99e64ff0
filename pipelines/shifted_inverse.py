"""Release statistics by the shifted inverse mechanism: a search over the removal loss.

B[k] is the statistic of a partition without the k people who add most, and the loss of a value y is
the least k with B[k] <= y. The search releases a candidate whose loss is small. For example:

    python -m pipelines.shifted_inverse --input docs/start/visits.csv --output released.csv \\
        --person visitor_id --partition day --public_partitions 1,2,3,4,5,6,7 \\
        --bounds partitions=3 --max minutes,candidates=0..1440..1 --epsilon 1

Another search than above_threshold is named beside: --max minutes,search=auto. All else is as in
`pipelines.aggregate`.
"""

import sys
from collections.abc import Sequence

from beam_dp.mechanisms.metrics.base import takes
from pipelines import command_line, releasing


def parser() -> command_line.Parser:
    """Return the command line."""
    suits = lambda kind: takes(kind, "search")
    return command_line.parser("shifted_inverse", __doc__, suits, search="above_threshold")


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    return releasing.run(parser(), given)


if __name__ == "__main__":
    sys.exit(main())
