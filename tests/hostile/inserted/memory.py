"""Insert rows into rows and columns in memory, and into Parquet files, thousands of times."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile.inserted import columns_of_arrow, layouts, python_rows, readers, tally
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


def parquet_files(name: str) -> Insert:
    """Return the insertion of such values into a Parquet file of one to six row groups."""
    layout = layouts.layouts()[name]

    def insert(rng: random.Random, found: Tally, folder: Path) -> None:
        types = columns_of_arrow.kinds(rng, stored=True)

        def lines(rows: Sequence[Any]) -> list[Any]:
            batch = columns_of_arrow.batch(rng, types, rows, nulls=False)
            path = _written(rng, batch, folder)
            return layouts.of_batches(layout, readers.parquet_batches(path, layout.names))

        _columns(rng, found, types, lines)

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


def _written(rng: random.Random, batch: pa.RecordBatch, folder: Path) -> str:
    path = str(folder / "r.parquet")
    pq.write_table(
        pa.Table.from_batches([batch]),
        path,
        row_group_size=rng.randint(1, 8),
        use_dictionary=rng.random() < 0.5,
        compression=rng.choice(("none", "snappy", "zstd")),
    )
    return path
