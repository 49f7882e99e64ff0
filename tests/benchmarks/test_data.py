"""The generator of the benchmark's rows: sizes, determinism, and the distributions it claims."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import data
from benchmarks.data import Shape

SMALL = Shape(rows=5000, people=50, partitions=20)


def rows(shape: Shape) -> pa.Table:
    return pa.concat_tables(data.chunks(shape))


@pytest.mark.parametrize("count", [1, 5000, data.CHUNK, data.CHUNK + 1])
def test_as_many_rows_as_asked(count: int) -> None:
    assert [len(table) for table in data.chunks(Shape(rows=count, people=9))] == [
        min(data.CHUNK, count - start) for start in range(0, count, data.CHUNK)
    ]


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


def test_even_partitions_are_of_one_size() -> None:
    counts = Counter(
        rows(Shape(rows=200_000, people=1, partitions=20, even=True))["partition"].to_pylist()
    )
    # As above, with m = 10,000.
    assert len(counts) == 20 and all(abs(count - 10_000) <= 1_213 for count in counts.values())


def test_values_are_lognormal() -> None:
    logarithms = np.log(rows(Shape(rows=200_000))["value"].to_numpy())
    # The mean deviates by 1 / sqrt(200,000) = 0.0022: 0.02 is 9 of these, e^-40.
    assert abs(logarithms.mean() - 3) < 0.02 and abs(logarithms.std() - 1) < 0.02


def test_ids_are_one_to_one() -> None:
    text = rows(Shape(rows=5000, people=50, partitions=20, uuid=True))["person"].to_pylist()
    pairs = set(zip(text, rows(SMALL)["person"].to_pylist(), strict=True))
    assert len(pairs) == len({uuid for uuid, _ in pairs}) == len({person for _, person in pairs})
    assert all(len(uuid) == 36 and uuid[8] == "-" for uuid in text)


def test_names_say_all_parameters() -> None:
    shapes = [
        Shape(), Shape(rows=1), Shape(people=1), Shape(partitions=1), Shape(uuid=True),
        Shape(even=True), Shape(seed=2),
    ]  # fmt: skip
    assert len({shape.name for shape in shapes}) == len(shapes)


def test_the_command_writes_once_and_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--rows", "5000", "--people", "50", "--partitions", "20"]
    data.main(words)
    path = Path(capsys.readouterr().out.strip())
    assert pq.read_table(path).equals(rows(SMALL))
    path.write_text("kept")
    data.main(words)
    assert path.read_text() == "kept"
    assert [file.name for file in data.FOLDER.iterdir()] == [SMALL.name]
