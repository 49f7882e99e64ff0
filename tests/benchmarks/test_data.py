"""The generator of the benchmark's rows: sizes, determinism, and the distributions it claims."""

from collections import Counter

import numpy as np
import pyarrow as pa

from benchmarks import data
from benchmarks.data import Shape

SMALL = Shape(rows=5000, people=50, partitions=20)


def rows(shape: Shape) -> pa.Table:
    return pa.concat_tables(data.chunks(shape))


def test_the_same_arguments_give_the_same_rows_and_others_give_others() -> None:
    assert rows(SMALL).equals(rows(SMALL))
    assert not rows(SMALL).equals(rows(Shape(rows=5000, people=50, partitions=20, seed=2)))


def test_a_short_file_is_the_beginning_of_a_long_one() -> None:
    longer = Shape(rows=data.CHUNK + 7, people=50, partitions=20)
    assert rows(longer).slice(0, 5000).equals(rows(SMALL))


def test_people_and_partitions_follow_zipf() -> None:
    table = rows(Shape(rows=200_000, people=50, partitions=20))
    for name, size, exponent in (("person", 50, 0.8), ("partition", 20, 1.0)):
        counts = sorted(Counter(table[name].to_pylist()).values(), reverse=True)
        weights = np.arange(1, size + 1) ** -exponent
        expected = 200_000 * weights / weights.sum()
        # Chernoff for a count of mean m >= 1200: off by more than 7 sqrt(3 m) with chance 2 e^-49;
        # sorting does not move order statistics further. The seed is fixed: no chance in it.
        assert len(counts) == size
        assert np.all(np.abs(np.array(counts) - expected) <= 7 * np.sqrt(3 * expected))


def test_ids_are_one_to_one() -> None:
    text = rows(Shape(rows=5000, people=50, partitions=20, uuid=True))["person"].to_pylist()
    pairs = set(zip(text, rows(SMALL)["person"].to_pylist(), strict=True))
    assert len(pairs) == len({uuid for uuid, _ in pairs}) == len({person for _, person in pairs})
    assert all(len(uuid) == 36 and uuid[8] == "-" for uuid in text)
