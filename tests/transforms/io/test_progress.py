"""How far the input was read: a share of its bytes, while somebody watches, and nothing else."""

import gzip
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

import beam_dp as dp
from beam_dp.transforms.io import open_files

TABLE = pa.table({"who": [f"person {at}" for at in range(20_000)], "n": list(range(20_000))})


def written(path: Path) -> str:
    if path.suffix == ".parquet":
        pq.write_table(TABLE, path, row_group_size=5_000)
    elif path.suffix == ".gz":
        arrow_csv.write_csv(TABLE, path.with_suffix(""))
        path.write_bytes(gzip.compress(path.with_suffix("").read_bytes()))
    else:
        arrow_csv.write_csv(TABLE, path)
    return str(path)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_at_the_end_all_was_read(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name)
    with open_files.watched(path) as reading:
        assert reading.share == 0
        with beam.Pipeline("FnApiRunner") as p:
            _ = p | dp.ReadRows(path, ["who", "n"], ["n"] if "csv" in name else [])
        # A Parquet file has a footer beside its rows, and these are in proportion to its bytes.
        assert 0.99 <= reading.share <= 1
    assert open_files._watched == []


def test_an_open_file_counts_as_far_as_it_was_read(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv")
    size = Path(path).stat().st_size
    with open_files.watched(f"{path},{path}") as reading:
        with open_files.opened(path) as stream:
            stream.read(size // 2)
            assert reading.share == pytest.approx(1 / 4, abs=1e-4)
            stream.read()
            assert reading.share == pytest.approx(1 / 2)
        assert reading.share == pytest.approx(1 / 2)


def test_nothing_is_counted_where_nobody_watches(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv")
    with open_files.opened(path) as stream:
        stream.read()
    open_files.count(5)
    with open_files.watched(str(tmp_path / "none*.csv")) as reading:
        open_files.count(5)
        assert reading.share == 0
