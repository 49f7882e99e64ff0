"""Insert rows into rows and columns in memory, and into Parquet files, thousands of times."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.hostile.inserted import columns_of_arrow, layouts, python_rows, tally
from tests.hostile.inserted.tally import Tally

Insert = Callable[[random.Random, Tally, Path], None]


def python_objects(name: str) -> Insert:
    """Return the insertion of Python objects of any kind among rows of all forms."""
    layout = layouts.layouts()[name]

    def insert(rng: random.Random, found: Tally, folder: Path) -> None:
        base = rng.sample(python_rows.BASE, 5)
        rows = [python_rows.hostile(rng) for _ in range(1 + found.checks % 2)]
        together = tally.placed(rng, base, rows)
        found.check_union(lambda given: layouts.of_rows(layout, given), base, rows, together)

    return insert


def record_batches(name: str) -> Insert:
    """Return the insertion of values of any supported type into columns, sliced or encoded."""
    layout = layouts.layouts()[name]

    def insert(rng: random.Random, found: Tally, folder: Path) -> None:
        types = columns_of_arrow.kinds(rng)
        _columns(
            rng,
            found,
            types,
            lambda rows: layouts.of_batches(layout, [columns_of_arrow.batch(rng, types, rows)]),
        )

    return insert


def _columns(
    rng: random.Random,
    found: Tally,
    types: columns_of_arrow.Types,
    lines: Callable[[Sequence[Any]], list[Any]],
) -> None:
    base = [columns_of_arrow.good(types, number) for number in rng.sample(range(16), 5)]
    rows = [columns_of_arrow.bad(rng, types) for _ in range(1 + found.checks % 2)]
    found.check_union(lines, base, rows, tally.placed(rng, base, rows), types)
