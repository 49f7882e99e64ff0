"""Release statistics by the shifted inverse mechanism: a search over the removal loss.

B[k] is the statistic of a partition without the k people who add most, and the loss of a value y is
the least k with B[k] <= y. The search releases a candidate whose loss is small. For example:

    python -m pipelines.shifted_inverse --input visits.csv --output released.csv \\
        --person visitor_id --partition day --public_partitions 1,2,3,4,5,6,7 \\
        --bounds partitions=3 --max minutes --candidates 0:1440:1 --epsilon 1

All else is as in `pipelines.aggregate`.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from beam_dp.mechanisms.metrics.base import takes
from beam_dp.mechanisms.search.choose import BY_WORD
from pipelines import command_line, releasing


def parser() -> command_line.Parser:
    """Return the command line."""
    made = command_line.parser("shifted_inverse", __doc__)
    command_line.add_metrics(made, lambda kind: takes(kind, "search"))
    outputs = "the values that may be released, public; or LOW:HIGH:xRATIO; =LOW:... below 0"
    made.add_argument("--candidates", metavar="LOW:HIGH:STEP", help=outputs)
    searches = f"one of {', '.join(BY_WORD)}; auto has the smallest proved shift T"
    made.add_argument("--search", choices=BY_WORD, metavar="NAME", help=searches)
    return made


def described(options: argparse.Namespace) -> dict[str, Any]:
    """Return the mapping that the options make."""
    beside: dict[str, Any] = {"search": options.search or "above_threshold"}
    if not options.metrics and (options.search or options.candidates):
        raise ValueError(
            "--search and --candidates need a statistic beside them, like --max COLUMN"
        )
    if options.candidates is not None:
        low, _, rest = options.candidates.partition(":")
        high, _, step = rest.partition(":")
        by = {"ratio": step[1:]} if step.startswith("x") else {"step": step}
        beside["candidates"] = {"low": low, "high": high, **by}
    for asked in options.metrics:
        asked |= beside
    return command_line.described(options)


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    return releasing.run(parser(), described, given)


if __name__ == "__main__":
    sys.exit(main())
