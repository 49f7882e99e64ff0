"""Tables of this process: every library's cells count as they would in a file, one row at a time."""

import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import apache_beam as beam
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from apache_beam.testing.util import assert_that, equal_to

import beam_dp as dp
from beam_dp.mechanisms.bounding.table import Column, Role
from beam_dp.mechanisms.numerics import integers
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.io import frames
from tests.hostile.inserted import layouts

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
        pl.from_arrow(TABLE),
        pl.from_arrow(TABLE).with_columns(pl.col("kind").cast(pl.Categorical)),
    ],
    ids=lambda data: type(data).__name__,
)
def test_every_table_has_the_same_rows(data: Any) -> None:
    frame = frames.frame_of("release", data, ["kind", "who", "kind"])
    assert list(frame.types) == ["kind", "who"]
    rows = [row for batch in frame.batches for row in batch.to_pylist()]
    assert rows == [{"kind": k, "who": w} for k, w in (("x", "a"), ("y", "b"), ("x", None))]
    for batch in frame.batches:
        assert frame.types == {field.name: field.type for field in batch.schema}
    assert "view" not in str(frame.types)


BAD = "Jos\udce9"
GOOD: list[Any] = ["a", "b", "17", "é", "b"]
MANY = 1 << 60
ARROW = pd.ArrowDtype
WHO: dict[str, tuple[pd.Series, list[Any]]] = {
    "object": (pd.Series([*GOOD, BAD], dtype=object), [*GOOD, None]),
    "string, missing": (pd.Series([*GOOD, BAD, None], dtype="string[python]"), [*GOOD, None, None]),
    "string of Arrow": (pd.Series([*GOOD, None], dtype="string[pyarrow]"), [*GOOD, None]),
    "categories, missing": (pd.Series([*GOOD, None], dtype="category"), [*GOOD, None]),
    "categories of strings": (
        pd.Series([*GOOD, BAD, None], dtype="string[python]").astype("category"),
        [*GOOD, None, None],
    ),
    "categories of any type": (
        pd.Series([*GOOD, 17, 2.5, 10**30, BAD, 3.0, None, b"x"], dtype=object).astype("category"),
        [*GOOD, "17", None, str(10**30), None, "3", None, None],
    ),
    "categories of integers": (
        pd.Series([MANY, MANY + 1, None, 3], dtype="Int64").astype("category"),
        [MANY, MANY + 1, None, 3],
    ),
    "categories that no row has": (
        pd.Series(pd.Categorical(["a", "b"], categories=["a", BAD, "b", 7, 10**30])), ["a", "b"]
    ),
    "categories of 10^30": (
        pd.Series(pd.Categorical([1, 2, 10**30], categories=[1, 2, 10**30])), ["1", "2", str(10**30)]
    ),
    "floats": (pd.Series([1, 2, None, 2.5, 2**53, 1]), [1, 2, None, None, None, 1]),
    "short floats": (
        pd.Series([1, 2, None, 2.5, 2**24, 1], dtype="float32"), [1, 2, None, None, None, 1]
    ),
    "floats with gaps": (pd.Series([1, None, 2.5], dtype="Float64"), [1, None, None]),
    "floats of Arrow": (pd.Series([1, None, 2.5], dtype=ARROW(pa.float64())), [1, None, None]),
    "categories of floats": (pd.Series([1.0, None, 2.5]).astype("category"), [1, None, None]),
    "integers with gaps": (pd.Series([MANY + 1, None, 3], dtype="Int64"), [MANY + 1, None, 3]),
    "unsigned": (pd.Series([(1 << 64) - 1, 3], dtype="uint64"), [(1 << 64) - 1, 3]),
    "decimals": (pd.Series([Decimal(7), Decimal("7.5"), None], dtype=object), ["7", None, None]),
    "decimals of Arrow": (
        pd.Series([Decimal(7), None], dtype=ARROW(pa.decimal128(9, 0))), [7, None]
    ),
    "days": (
        pd.Series([datetime.date(2020, 1, 2), None], dtype=ARROW(pa.date32())),
        [datetime.date(2020, 1, 2), None],
    ),
    "truths": (pd.Series([True, None, False], dtype="boolean"), [True, None, False]),
}  # fmt: skip


def lines_of(data: Any, columns: tuple[Column, ...] = ()) -> list[Any]:
    """Return what the rows of a table become, where its people are also its partitions."""
    names = ["who", *(column.name for column in columns)]
    frame = frames.frame_of("release", data, names)
    layout = Layout("who", ("who",), columns, None, bytes(32))
    return layouts.of_batches(layout, frame.batches)


@pytest.mark.parametrize("name", WHO)
def test_a_cell_decides_about_its_own_row_only(name: str) -> None:
    """Each row is what it is as a row of its own, whatever the type of its column and of others."""
    column, expected = WHO[name]
    data = pd.DataFrame({"who": column})
    data["item"] = pd.Series(["x"] * len(data), dtype=object)
    asked = (Column("item", Role.ITEM),)
    alone = [{"who": who, "item": "x"} for who in expected if who is not None]
    layout = Layout("who", ("who",), asked, None, bytes(32))
    found = lines_of(data, asked)
    assert sorted(found) == sorted(layouts.of_rows(layout, alone))
    # No row changes another one.
    apart = [lines_of(data.iloc[[row]], asked) for row in range(len(data))]
    assert sorted(found) == sorted(line for lines in apart for line in lines)


def test_numbers_are_the_same_beside_objects() -> None:
    data = pd.DataFrame({"who": [1, 2, 3], "value": pd.Series([0.1, None, 3], dtype="float32")})
    data = data.astype({"who": object})
    asked = (Column("value", Role.VALUE, Fraction(1, 10**9)),)
    values = {int(line[0][0]): line[4:] for line in lines_of(data, asked)}
    assert values[1] == (round(float(np.float32(0.1)) * 10**9),)
    [missing] = integers.widen(np.array([integers.LOWEST])).tolist()
    assert values[2] == (missing,)


def test_text_that_is_no_number_is_refused_by_type_and_not_by_cells() -> None:
    for kind in ("string[python]", object):
        texts = pd.DataFrame({"text": pd.Series(["x", BAD, 7], dtype=object).astype(kind)})
        assert frames.frame_of("release", texts, ["text"]).types == {"text": pa.large_string()}
        with pytest.raises(TypeError, match="column 'text' must hold numbers, not large_string"):
            asked = {"metrics": [dp.Sum("text")], "budget": dp.Budget(1.0)}
            dp.release(texts.assign(who="a"), person="who", **asked)


def test_intervals_are_refused_by_their_type() -> None:
    """As `pandas.cut` makes them of ages, in categories."""
    data = pd.DataFrame({"who": [1, 2, 3], "age": pd.cut(pd.Series([4, 40, None]), [0, 18, 65])})
    asked = {"person": "who", "metrics": [dp.Count()], "budget": dp.Budget(1, 1e-6)}
    for ages in (data["age"], pd.arrays.IntervalArray(data["age"])):
        with pytest.raises(TypeError, match="'age' must hold integers, text, dates or booleans"):
            dp.release(data.assign(age=ages), partition=["age"], **asked)


def test_the_index_is_not_read_and_a_table_without_rows_has_its_columns() -> None:
    data = pd.DataFrame({"who": ["a", "b", "c"]}, index=["a", 7, BAD], dtype="string[python]")
    assert len(lines_of(data)) == 3
    assert list(data.index) == ["a", 7, BAD]
    frame = frames.frame_of("release", TABLE.slice(0, 0), ["who"])
    assert frame.types == {"who": pa.string()} and not any(map(len, frame.batches))


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


def test_a_pipeline_of_this_process_reads_what_is_held_and_nothing_stays() -> None:
    with frames.held(frames.frame_of("release", TABLE.slice(0, 2), ["who", "day"])) as read:
        with beam.Pipeline("FnApiRunner") as p:
            days = p | read | "Days" >> beam.FlatMap(lambda batch: batch.to_pylist())
            assert_that(days, equal_to([{"who": "a", "day": 1}, {"who": "b", "day": 2}]))
        assert len(frames._held) == 1
    assert frames._held == {}
