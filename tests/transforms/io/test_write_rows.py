"""WriteRows: one whole file of the very name, sorted, safe in a spreadsheet."""

import csv
import datetime
import hashlib
import io
import json
import math
import random
import resource
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.typehints.row_type import RowTypeConstraint

from beam_dp.transforms.io import table_files, whole_files
from beam_dp.transforms.io.csv_files import Csv
from beam_dp.transforms.io.formats import FORMATS
from beam_dp.transforms.io.write_rows import WriteRows

SCHEMA = RowTypeConstraint.from_fields([("day", str), ("count", int), ("sum", float)])


def row_of(cells: Sequence[Any]) -> beam.Row:
    return beam.Row(day=cells[0], count=cells[1], sum=cells[2])


def write(
    path: Path, rows: list[tuple[Any, ...]], record: dict[str, Any] | None = None, **options: Any
) -> Path:
    with beam.Pipeline(runner="FnApiRunner") as p:
        if record is not None:
            options["record"] = p | "Record" >> beam.Create([record])
        released = (
            p | beam.Create(rows, reshuffle=False) | beam.Map(row_of).with_output_types(SCHEMA)
        )
        assert_that(released | WriteRows(str(path), **options), equal_to([str(path)]))
    return path


def read(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


ROWS = [("b", 2, 0.1), ("a", 10, float("inf")), ("a", 9, -1e300)]


def test_files_are_sorted_by_typed_cells_and_have_a_schema_without_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "out.csv", ROWS)
    assert path.read_bytes() == (b"day,count,sum\r\na,9,-1e+300\r\na,10,inf\r\nb,2,0.1\r\n")
    table = pq.read_table(write(tmp_path / "out.parquet", ROWS))
    assert table.schema.types == [pa.string(), pa.int64(), pa.float64()]
    assert [tuple(row.values()) for row in table.to_pylist()] == sorted(ROWS)
    assert write(tmp_path / "none.csv", []).read_bytes() == b"day,count,sum\r\n"
    schema = pq.read_schema(write(tmp_path / "none.parquet", []))
    assert schema.types == [pa.string(), pa.int64(), pa.float64()]


def test_json_lines_have_no_infinity_and_no_header(tmp_path: Path) -> None:
    table = table_files.table_of(["a", "b"], [str, float], [("x", -1e300), ("y", math.inf)])
    file = io.BytesIO()
    FORMATS[".jsonl"].write(file, table)
    assert file.getvalue() == b'{"a": "x", "b": -1e+300}\n{"a": "y", "b": null}\n'
    FORMATS[".jsonl"].write(nothing := io.BytesIO(), table[:0])
    assert nothing.getvalue() == b""


def test_columns_are_chosen_and_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "out.csv", ROWS[:1], columns=["count", "day"])
    with pytest.raises(ValueError, match="WriteRows: path must name a new file"):
        WriteRows(str(path))
    with pytest.raises(Exception, match="no attribute 'missing'"):
        write(path, ROWS, columns=["missing"], overwrite=True)
    assert read(path) == [["count", "day"], ["2", "b"]]
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert len(read(write(path, ROWS, overwrite=True))) == 4


CELLS = {
    "=1+1": "'=1+1",
    "+1": "'+1",
    "-1": "'-1",
    "@cmd": "'@cmd",
    "\tx": "'\tx",
    "\rx": "'\rx",
    "\nx": "'\nx",
    " =1": "' =1",
    "\u3000 -1": "'\u3000 -1",
    "＝1": "'＝1",
    "＋1": "'＋1",
    "－1": "'－1",
    "＠x": "'＠x",
    "a=b": "a=b",
    " a": " a",
    "'a": "'a",
    "'=x": "''=x",
    "'' =x": "''' =x",
    "": "",
    "\ud800": "\\ud800",
    -1: "-1",
    2**70: str(2**63 - 1),
    -0.5: "-0.5",
    np.float64(0.1): "0.1",
    np.int64(-3): "-3",
    math.inf: "inf",
    -math.inf: "-inf",
    True: "true",
    None: "",
    b"\xff\x00": "ff00",
    datetime.date(2024, 2, 29): "2024-02-29",
    datetime.datetime(2024, 2, 29, 1, 2, 3): "2024-02-29T01:02:03",
    Decimal("1.50"): "1.50",
}


def test_csv_cells() -> None:
    for cell, text in CELLS.items():
        file = io.BytesIO()
        Csv().write(file, table_files.table_of(["x", "y"], [None, str], [(cell, "end")]))
        _, *rows = csv.reader(io.StringIO(file.getvalue().decode(), ""))
        assert rows == [[text, "end"]]


@pytest.mark.parametrize(
    ("cells", "kind", "written"),
    [
        ([2**70, None, -(2**70)], int, [2**63 - 1, None, -(2**63)]),
        ([1, 2.5], int, [1.0, 2.5]),
        ([1, 2**1100], float, [1.0, 2.0**63]),
        (["a", 1], None, ["a", "1"]),
        (["a"], int, ["a"]),
        ([np.int64(1)], None, [1]),
        ([datetime.date(2024, 1, 1)], None, [datetime.date(2024, 1, 1)]),
    ],
)
def test_a_column_has_one_type(cells: list[Any], kind: Any, written: list[Any]) -> None:
    table = table_files.table_of(["x"], [kind], [(cell,) for cell in cells])
    assert table["x"].to_pylist() == written


@pytest.mark.parametrize("path", ["out.txt", "out", "", None, "out.csv.gz", b"out.csv"])
def test_unknown_extension_is_refused_at_construction(path: Any) -> None:
    with pytest.raises(
        ValueError, match=r"WriteRows: path must end in .parquet, .csv, .tsv, .jsonl"
    ):
        WriteRows(path)


def test_a_place_where_nothing_can_be_written_is_refused_at_construction(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder.csv").mkdir()
    for place in ("file/out.csv", "no/out.csv", "folder.csv"):
        with pytest.raises(ValueError, match="WriteRows: path must be one that can be written"):
            WriteRows(str(tmp_path / place), overwrite=True)
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder.csv"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["out.csv", f"{'a' * 246}.csv", "é" * 123 + ".csv"])
def test_names_of_up_to_250_bytes_can_be_written(tmp_path: Path, name: str) -> None:
    assert len(read(write(tmp_path / name, ROWS))) == 4
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_other_file_systems_are_not_tried_but_must_be_known() -> None:
    with pytest.raises(ValueError, match="zz://a.csv"):
        WriteRows("zz://a.csv", overwrite=True)


def test_who_reads_while_a_file_is_replaced_sees_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    path = write(tmp_path / "out.csv", ROWS)
    before = path.read_bytes()
    with path.open("rb") as old, whole_files.written(str(path)) as file:
        file.write(b"new")
        assert path.read_bytes() == old.read() == before
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_disk_that_is_full_leaves_what_was_there(tmp_path: Path, kind: str) -> None:
    """Files above 100,000 bytes fail in the middle of the writing, or when they are closed."""
    path = tmp_path / f"out.{kind}"
    path.write_bytes(b"mine")
    rows = [(random.randbytes(50).hex(), place) for place in range(10_000)]
    table = table_files.table_of(["a", "b"], [str, int], rows)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
        with pytest.raises(OSError, match="File too large"), whole_files.written(str(path)) as file:
            FORMATS[f".{kind}"].write(file, table)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {left.name: left.read_bytes() for left in tmp_path.iterdir()} == {path.name: b"mine"}


def test_only_the_unfinished_files_of_a_path_are_removed(tmp_path: Path) -> None:
    """With those of its record. Brackets and stars in a name are no patterns."""
    path = str(tmp_path / "out[1]*.csv")
    for name in (path, whole_files.beside(path)):
        with whole_files.written(name) as file:
            file.write(b"1")
        with pytest.raises(OSError), whole_files.written(name):
            whole_files.remove_unfinished(str(tmp_path / "out1x.csv"))
            whole_files.remove_unfinished(str(tmp_path / "out.csv"))
            assert len(list(tmp_path.glob("*.partial"))) == 1
            whole_files.remove_unfinished(path)
            assert list(tmp_path.glob("*.partial")) == []
        assert Path(name).read_bytes() == b"1"


def test_rows_without_a_schema_need_columns(tmp_path: Path) -> None:
    p = beam.Pipeline(runner="FnApiRunner")
    rows = p | beam.Create([1])
    with pytest.raises(ValueError, match="WriteRows: columns must be given"):
        _ = rows | WriteRows(str(tmp_path / "out.csv"))


def test_a_record_stands_beside_the_file_and_an_older_one_is_replaced_on_demand_only(
    tmp_path: Path,
) -> None:
    path, beside = tmp_path / "out.csv", tmp_path / "out.csv.json"
    beside.write_text("kept")
    with pytest.raises(ValueError, match=r"path must name a new file, not '.*out\.csv\.json'"):
        write(path, ROWS, {})
    assert beside.read_text() == "kept" and not path.exists()
    write(path, ROWS, {"spent": "1/3"}, overwrite=True)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert json.loads(beside.read_text()) == {"spent": "1/3", "sha256": digest}
    assert len(read(path)) == 4


def test_what_another_job_wrote_meanwhile_is_not_replaced_and_a_retry_replaces_its_own(
    tmp_path: Path,
) -> None:
    path = tmp_path / "out.csv"
    rows = beam.Pipeline("FnApiRunner") | beam.Create(ROWS, reshuffle=False)
    schema = rows | beam.Map(row_of).with_output_types(SCHEMA)
    _ = schema | WriteRows(str(path))
    write(path, ROWS[:2])
    with pytest.raises(Exception, match="has appeared since this job was built, and is kept"):
        schema.pipeline.run()
    assert len(read(path)) == 3
    write(path, ROWS, overwrite=True)
    schema.pipeline.run()  # as a retry does: the file is its own
    assert len(read(path)) == 4


def test_where_a_record_cannot_be_written_both_files_stay_as_they_were(tmp_path: Path) -> None:
    path, beside = tmp_path / "out.csv", tmp_path / "out.csv.json"
    path.write_text("old")
    beside.write_text("old record")
    with pytest.raises(ValueError, match="Out of range float values"):
        write(path, ROWS, {"spent": math.nan}, overwrite=True)
    assert (path.read_text(), beside.read_text()) == ("old", "old record")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.csv", "out.csv.json"]
