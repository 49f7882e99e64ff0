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
    parts: list[float] = []
    p = beam.Pipeline("FnApiRunner")
    _ = p | dp.ReadRows(path, ["who", "n"], ["n"] if "csv" in name else [])
    with open_files.watched(parts.append):
        p.run().wait_until_finish()
    # A Parquet file has a footer beside its rows, and these are in proportion to its bytes.
    assert sum(parts) / open_files.size_of(path) == pytest.approx(1, rel=0.01)
    assert open_files._watching == []
