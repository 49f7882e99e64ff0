"""What behind a query is refused for its types is refused whether a row is left or none.

Else the end of a job would tell of a single person: of the one whose row passes WHERE.
"""

import datetime
import json
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest

import beam_dp as dp

WHEN = datetime.datetime(2026, 11, 26, 9)
OTHERS = [{"who": who, "d": "flu", "x": 1.0, "t": WHEN} for who in range(20)]
ONE = {"who": 99, "d": "rare", "x": 1.0, "t": WHEN}
BUDGET = dp.Budget(epsilon=1.0, delta=1e-6)
GROUPED = "WITH t AS (SELECT who, max(t) AS x FROM rows WHERE d = 'rare' GROUP BY who)"


def summed(column: str = "x") -> dp.PrivateAggregate:
    """Return a release of a sum."""
    return dp.PrivateAggregate("who", [dp.Sum(column)], BUDGET)


def of_query(query: str) -> Any:
    """Return a release of what a query makes, of rows whose columns are known."""
    columns = ["who", "d", "x", "t"]
    return lambda rows: rows | dp.Rows(f"{query} WHERE d = 'rare'", columns) | summed()


def selected(statement: str) -> Any:
    """Return a release of a SELECT."""
    return lambda rows: rows | dp.Select(statement, person="who", budget=BUDGET)


RELEASES = {
    "text is summed": (of_query("SELECT who, d AS x FROM rows"), "'x' must hold numbers"),
    "a name stands twice": (of_query("SELECT *, 1 AS x FROM rows"), "'x' stands twice"),
    "a SELECT sums text": (
        selected("SELECT sum(d) AS s FROM rows WHERE d = 'rare'"),
        "'d' must hold numbers",
    ),
    "times are keys": (
        selected("SELECT t, count(*) AS n FROM rows WHERE d = 'rare' GROUP BY t"),
        "'t' must hold",
    ),
    "times of a person are summed": (
        lambda rows: rows | dp.Rows(f"{GROUPED} SELECT who, x FROM t") | summed(),
        "'x' must hold numbers",
    ),
    "a column is missing": (
        lambda rows: rows | dp.BoundContributions("who", [], dp.ContributionBounds(1), ["v"]),
        "'v' must occur once",
    ),
}


@pytest.mark.parametrize("more", [[], [ONE]], ids=["no row is left", "a row is left"])
@pytest.mark.parametrize("name", RELEASES)
def test_batches_are_refused(name: str, more: list[Any]) -> None:
    release, says = RELEASES[name]
    batch = pa.RecordBatch.from_pylist([*OTHERS, *more])
    with pytest.raises(Exception, match=says), beam.Pipeline("FnApiRunner") as pipeline:
        given = beam.Create([batch[:0] if name == "a column is missing" and not more else batch])
        _ = release(pipeline | given.with_output_types(pa.RecordBatch))


@pytest.mark.parametrize("more", [[], [ONE]], ids=["no row is left", "a row is left"])
def test_star_needs_columns_that_are_known(more: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"place of \*"), beam.Pipeline("FnApiRunner") as pipeline:
        _ = pipeline | beam.Create([*OTHERS, *more]) | dp.Rows("SELECT * FROM rows") | summed()


@pytest.mark.parametrize("more", [[], [ONE]], ids=["no row is left", "a row is left"])
@pytest.mark.parametrize("source", ["file", "dicts", "another step"])
def test_fields_of_dicts_are_data(source: str, more: list[Any], tmp_path: Path) -> None:
    query, rows = "SELECT * FROM rows WHERE d = 'rare'", [*OTHERS, *more]
    if source == "file":
        lines = (json.dumps({**row, "t": ""}) + "\n" for row in rows)
        (tmp_path / "in.jsonl").write_text("".join(lines))
        path = str(tmp_path / "in.jsonl")
        assert dp.release(path, person="who", metrics=[dp.Sum("x")], budget=BUDGET, query=query)
        return
    with beam.Pipeline("FnApiRunner") as pipeline:
        made = pipeline | beam.Create(rows) | dp.Rows(query, ["who", "d"])
        if source != "dicts":
            made = made | beam.Map(lambda batch: batch[:0])  # what is known of them ends here
        _ = made | summed("d" if source == "dicts" else "missing")


class Kind(pa.ExtensionType):
    """A type that is written in Python."""

    def __init__(self) -> None:
        super().__init__(pa.int64(), "kind")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, *_: Any) -> "Kind":
        return cls()


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("query", ["SELECT * FROM rows", "SELECT who, k AS x FROM rows", ""])
def test_types_that_are_written_in_python_are_refused(query: str, table: bool, rows: int) -> None:
    cells = [pa.array(["p"] * rows, pa.string()), pa.array([1.0] * rows, pa.float64())]
    cells.append(pa.ExtensionArray.from_storage(Kind(), pa.array([1] * rows, pa.int64())))
    batch: Any = pa.RecordBatch.from_arrays(cells, ["who", "x", "k"])
    batch = pa.Table.from_batches([batch]) if table else batch
    says = "column 'k' must (have|hold values of) one of Arrow's own types"
    with pytest.raises(Exception, match=says), beam.Pipeline("FnApiRunner") as pipeline:
        given = beam.Create([batch]).with_output_types(type(batch))
        made = pipeline | given | dp.Rows(query) if query else pipeline | given
        _ = made | summed("x" if query else "k")


def test_columns_that_differ_in_case_alone_are_refused_for_a_star() -> None:
    with pytest.raises(ValueError, match="'d' and 'D'"), beam.Pipeline("FnApiRunner") as pipeline:
        made = (
            pipeline | beam.Create(OTHERS) | dp.Rows("SELECT * FROM rows", ["who", "x", "d", "D"])
        )
        _ = made | summed()


@pytest.mark.parametrize(
    "query",
    [
        "WITH t AS (SELECT who, count(*) AS x FROM rows GROUP BY who) SELECT who, x FROM t",
        "SELECT who, x FROM rows",
    ],
)
def test_a_table_without_columns_is_no_row_of_a_person(query: str) -> None:
    batch = pa.RecordBatch.from_pylist(OTHERS)
    with dp.testing.without_noise(), beam.Pipeline("FnApiRunner") as pipeline:
        given = beam.Create([pa.table({}), pa.Table.from_batches([batch])])
        made = pipeline | given.with_output_types(pa.Table) | dp.Rows(query) | summed()
        _ = made | beam.Map(lambda row: checked(row.sum_x))


def checked(number: float) -> None:
    """Refuse another number than that of all people."""
    assert number == len(OTHERS), number


@pytest.mark.parametrize("rows", [0, 1])
def test_a_wanted_column_of_a_type_in_python_is_refused(rows: int) -> None:
    cells = [pa.array(["p"] * rows, pa.string())]
    cells.append(pa.ExtensionArray.from_storage(Kind(), pa.array([1] * rows, pa.int64())))
    batch = pa.RecordBatch.from_arrays(cells, ["who", "x"])
    says = "'x' must hold values of one of Arrow's own types"
    with pytest.raises(Exception, match=says), beam.Pipeline("FnApiRunner") as pipeline:
        _ = pipeline | beam.Create([batch]).with_output_types(pa.RecordBatch) | summed()
