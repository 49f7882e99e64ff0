"""A format of files is one class and one line of a table: it is read, released from and written."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar

import pyarrow as pa
import pytest
from pyarrow import feather

import beam_dp as dp
from beam_dp.transforms.io import formats, open_files, schemas
from beam_dp.transforms.io.file_format import Format, Sniffed, Wanted
from pipelines import aggregate
from tests.transforms.io import test_every_format

Item = TypeVar("Item")


class Feather(Format):
    """Arrow's own files."""

    def sniff(self, paths: Sequence[str], wanted: Wanted) -> Sniffed:
        found = [next(guarded(schema_of(path), path, wanted)) for path in paths]
        named = zip(paths, found, strict=True)
        checked = [schemas.check_names(*each, wanted) for each in named]
        return Sniffed(schemas.types_of(checked, wanted))

    def parts(self, paths: Sequence[str], wanted: Wanted) -> Sequence[str]:
        self.sniff(paths, wanted)  # of all files, also of those that no pipeline looks at
        return paths

    def rows(self, part: str, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        return guarded(batches_of(part, wanted.columns), part, wanted)

    def write(self, file: BinaryIO, table: pa.Table) -> None:
        feather.write_feather(table, file)


def guarded(items: Iterator[Item], path: str, wanted: Wanted) -> Iterator[Item]:
    return open_files.rows_of(items, path, wanted.pattern, "a Feather file")


def schema_of(path: str) -> Iterator[pa.Schema]:
    with open_files.seekable(path) as file:
        yield pa.ipc.open_file(file).schema


def batches_of(path: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    with open_files.seekable(path) as file:
        yield from feather.read_table(file, list(columns)).to_batches()


@pytest.fixture(autouse=True)
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the one line of the table, and what follows from it."""
    for table in (formats.FORMATS, formats.READ):
        monkeypatch.setitem(table, ".feather", Feather())


def test_a_job_reads_and_writes_it(tmp_path: Path) -> None:
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


def test_it_keeps_what_every_format_keeps(tmp_path: Path) -> None:
    test_every_format.test_every_released_table_is_written_and_read(".feather", tmp_path)
    test_every_format.test_no_error_quotes_a_file(".feather", tmp_path)
