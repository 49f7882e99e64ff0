"""Measure how many partitions are selected without a bound, beside the best bound known afterwards.

    python -m benchmarks selection             the table (two minutes); `--runs 2` for a look

People have a lognormal number of keys, which are drawn like 1 / rank. Bounded selection is the
truncated geometric one, which is optimal for one partition. Means of all runs.
"""

import sys
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.noise.partition_selection import TruncatedGeometric
from beam_dp.mechanisms.noise.sampling import Noise
from benchmarks import draws, tables
from benchmarks.questions import APPROXIMATE, BOUNDS
from benchmarks.suites import Rows

SHAPES = (
    (30_000, 60_000, 5.0),
    (3_000, 5_000, 3.0),
    (100_000, 2_000, 1.5),
    (20_000, 20_000, 1.0),
    (10_000, 500, 20.0),
)
"""People, keys, and the median of the keys of a person."""


def rows(people: int, keys: int, median: float, seed: int) -> Rows:
    """Return the rows of a shape; nobody knows how many keys a person has."""
    random = np.random.default_rng(seed)
    each = np.clip(np.round(random.lognormal(np.log(median), 1.0, people)), 1, keys)
    person = np.repeat(np.arange(people), each.astype(np.int64))
    chances = np.cumsum(1.0 / np.arange(1, keys + 1))
    key = np.searchsorted(chances / chances[-1], random.random(len(person)))
    return Rows(person, np.minimum(key, keys - 1), {}, keys, None, selected=True)


def bounded(asked: Rows, most: int) -> int:
    """Return how many partitions the geometric selection names with a bound."""
    selection = TruncatedGeometric(Fraction(1, most), APPROXIMATE.delta / most)
    kept = asked.kept(most)
    pairs = np.unique(kept.person * kept.partitions + kept.partition)
    return int(selection.keep(np.bincount(pairs % kept.partitions), Noise()).sum())


def free(asked: Rows) -> int:
    """Return how many the release names that knows no bound."""
    made = draws.summarise(asked, (), APPROXIMATE).rehearsal
    return len(made.combined(made.draw()))


def main(words: Sequence[str] | None = None) -> int:
    """Print the table."""
    runs = tables.options(__doc__, words, runs=5).runs
    tables.say(tables.heads(["people, keys, median", "bound 1", "best bound", "no bound"]))
    for shape in SHAPES:
        drawn = [rows(*shape, seed) for seed in range(runs)]
        known = {most: np.mean([bounded(each, most) for each in drawn]) for most in BOUNDS}
        best = max(known, key=lambda most: known[most])
        cells = [f"{known[1]:.0f}", f"{known[best]:.0f} ({best})"]
        cells.append(f"{np.mean([free(each) for each in drawn]):.0f}")
        tables.say(tables.line([", ".join(f"{each:,g}" for each in shape), *cells]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
