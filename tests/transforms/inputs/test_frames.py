"""Tables of this process: every library's cells count as they would in a file, one row at a time."""

from typing import Any

import apache_beam as beam
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from apache_beam.testing.util import assert_that, equal_to

from beam_dp.transforms.inputs import frames

CANARY = "canary-2b9d"
TABLE = pa.table({"who": ["a", "b", None], "day": [1, 2, 2], "kind": ["x", "y", "x"]})


class Stream:
    """A table of a library that nobody knows."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def typed() -> pd.DataFrame:
    """A DataFrame whose text has a type: pandas before 3 has objects by default."""
    return TABLE.to_pandas(types_mapper=pd.ArrowDtype)


def categories() -> pd.DataFrame:
    kinds = pa.table({"who": TABLE["who"], "kind": TABLE["kind"].dictionary_encode()})
    return kinds.to_pandas(
        types_mapper=lambda kind: pd.ArrowDtype(kind) if kind == "string" else None
    )


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches()),
        pa.table(
            {"who": TABLE["who"].cast(pa.string_view()), **{n: TABLE[n] for n in ("day", "kind")}}
        ),
        Stream(TABLE),
        typed(),
        typed().set_index("kind", drop=False),
        categories(),
        pl.from_arrow(TABLE),
        pl.from_arrow(TABLE).with_columns(pl.col("kind").cast(pl.Categorical)),
    ],
    ids=lambda data: type(data).__name__,
)
def test_every_table_has_the_same_rows(data: Any) -> None:
    frame = frames.frame_of("release", data, ["kind", "who", "kind"])
    assert frame.columns == ("kind", "who") and set(frame.types) == {"kind", "who"}
    rows = [row for batch in frame.rows() for row in batch.to_pylist()]
    assert rows == [{"kind": k, "who": w} for k, w in (("x", "a"), ("y", "b"), ("x", None))]
    for batch in frame.rows():
        assert frame.types == {field.name: field.type for field in batch.schema}
    assert "view" not in str(frame.types)


def test_a_column_of_objects_is_read_cell_by_cell() -> None:
    data = pd.DataFrame({"who": pd.Series(["a", 7, b"x"], dtype=object), "n": [1, 2, 3]})
    frame = frames.frame_of("release", data, ["who", "n"])
    rows = [{"who": "a", "n": 1}, {"who": 7, "n": 2}, {"who": b"x", "n": 3}]
    assert frame.types == {} and list(frame.rows()) == rows
    # A column that is not read may hold what it likes.
    assert frames.frame_of("release", data, ["n"]).types == {"n": pa.int64()}


def test_a_table_without_rows_has_its_columns() -> None:
    frame = frames.frame_of("release", TABLE.slice(0, 0), ["who"])
    assert frame.types == {"who": pa.string()}
    assert sum(len(batch) for batch in frame.rows()) == 0


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([{"who": CANARY}], "data must be a table, not an object of type list. Give a path, a py"),
        (pl.from_arrow(TABLE).lazy(), "data must be a table, not an object of type LazyFrame. Give"),
        (TABLE.drop_columns("who"), "column 'who' must be one of the columns of data, once: 'day', "),
        (TABLE.append_column("who", TABLE["day"]), "column 'who' must be one of the columns of data"),
        (pd.DataFrame({"x": [CANARY]}, dtype=object), "column 'who' must be one of the columns of da"),
        (pd.DataFrame({1: [CANARY], "who": [1], "day": [2j]}), "columns all have a type that Arrow"),
    ],
    ids=["dicts", "lazy", "missing", "twice", "objects", "no type"],
)  # fmt: skip
def test_what_is_no_table_is_refused_without_its_cells(data: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        frames.frame_of("release", data, ["who", "day"])
    assert str(refused.value).startswith("release: ") and said in str(refused.value)
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize("loose", [False, True])
def test_a_pipeline_of_this_process_reads_what_is_held_and_nothing_stays(loose: bool) -> None:
    data = TABLE.slice(0, 2)
    data = data.to_pandas().astype({"who": object}) if loose else data
    with frames.held(frames.frame_of("release", data, ["who", "day"])) as read:
        with beam.Pipeline("FnApiRunner") as p:
            rows = p | read
            if not loose:
                rows = rows | "Dicts" >> beam.FlatMap(lambda batch: batch.to_pylist())
            days = rows | "Days" >> beam.Map(lambda row: (row["who"], row["day"]))
            assert_that(days, equal_to([("a", 1), ("b", 2)]))
        assert len(frames._held) == 1
    assert frames._held == {}
