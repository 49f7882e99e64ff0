"""Release statistics by the shifted inverse mechanism: a search over the removal loss.

B[k] is the statistic of a partition without the k people who add most, and the loss of a value y is
the least k with B[k] <= y. The search releases a candidate whose loss is small. For example:

    python -m pipelines.shifted_inverse --input visits.csv --output released.csv \\
        --person visitor_id --partition day --public_partitions 1,2,3,4,5,6,7 \\
        --bounds partitions=3 --max minutes --candidates 0..1440..1 --epsilon 1

All else is as in `pipelines.aggregate`.
"""

import sys
from collections.abc import Sequence
from typing import Any

from beam_dp.mechanisms.metrics.base import takes
from beam_dp.mechanisms.search.choose import BY_WORD
from pipelines import command_line, releasing

_OPTIONS = {
    "candidates": ("LOW..HIGH..STEP", "the values that may be released, public"),
    "search": ("NAME", f"{', '.join(BY_WORD)} (the smallest proved shift T: auto)"),
}


def parser() -> command_line.Parser:
    """Return the command line."""
    suits = lambda kind: takes(kind, "search")
    return command_line.parser("shifted_inverse", __doc__, suits, _OPTIONS)


def _searched(asked: dict[str, Any]) -> dict[str, Any]:
    return {"search": "above_threshold", **asked}


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    return releasing.run(parser(), given, _searched)


if __name__ == "__main__":
    sys.exit(main())
