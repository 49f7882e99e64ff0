"""A format of files is one class and one line of a table: it is read, released from and written."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pytest
from pyarrow import feather

import beam_dp as dp
from beam_dp.transforms.io import formats
from beam_dp.transforms.io.file_format import Format, Wanted
from pipelines import aggregate


class Feather(Format):
    """Arrow's own files."""

    def look(self, paths: Sequence[str], wanted: Wanted) -> dict[str, pa.DataType]:
        return {}

    def rows(self, part: str, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        yield from feather.read_table(part, list(wanted.columns)).to_batches()

    def write(self, file: BinaryIO, table: pa.Table) -> None:
        feather.write_feather(table, file)


def test_a_job_reads_and_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for table in (formats.FORMATS, formats.READ):
        monkeypatch.setitem(table, ".feather", Feather())
    visits, keys = tmp_path / "in.feather", tmp_path / "keys.feather"
    feather.write_feather(pa.table({"who": range(3000), "day": [1, 2, 3] * 1000}), str(visits))
    feather.write_feather(pa.table({"day": [1, 2]}), str(keys))
    assert dp.PublicPartitions.from_files(str(keys), ["day"]).keys == ((1,), (2,))
    out = str(tmp_path / "out.feather")
    words = ["--input", str(visits), "--output", out, "--person", "who", "--partition", "day"]
    asked = ["--count", "--epsilon", "1", "--public_partitions", "1,2", "--runner", "FnApiRunner"]
    assert aggregate.main([*words, *asked]) == 0
    table = dp.Released.read(out).table
    assert table["day"].to_pylist() == [1, 2]
    assert all(900 < count < 1100 for count in table["count"].to_pylist())
