"""A column in its role: what Arrow columns and Python values of it become in a table."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from beam_dp.mechanisms.bounding.table import Column, Role
from beam_dp.transforms.columns import layout

KEY = bytes(range(32))
COLUMNS = {
    "value": Column("x", Role.VALUE, Fraction(1, 4)),
    "owner": Column("x", Role.OWNER),
    "item": Column("x", Role.ITEM),
    "flag": Column("x", Role.FLAG, 2),
    "function": Column("x", Role.FLAG, lambda value: value > 1),
    "epsilon": Column("x", Role.EPSILON, (Fraction(1), Fraction(2))),
}
VALUES = [1, 2, None, 2, 7]


@pytest.mark.parametrize("name", COLUMNS)
def test_arrow_and_python_become_the_same(name: str) -> None:
    column = COLUMNS[name]
    arrow = layout.read(column, pa.array(VALUES, pa.int64()), KEY)
    python = layout.read(column, list(VALUES), KEY)
    assert arrow.tolist() == python.tolist() and len(arrow) == len(VALUES)


def read(name: str, values: Any) -> np.ndarray:
    return layout.read(COLUMNS[name], values, KEY)


def test_floats_are_items_and_whole_ones_are_owners() -> None:
    values = [1.5, 2.0, 2.0**53, float("nan")]
    [absent], [two] = read("owner", [None]).tolist(), read("owner", [2]).tolist()
    assert two != absent
    column = pa.array(values)
    for cells in (values, [*values, "a"], column, column.dictionary_encode()):
        assert read("owner", cells)[:4].tolist() == [absent, two, absent, absent]
    assert absent not in read("item", values[:3]).tolist()


@pytest.mark.parametrize(
    ("name", "kind", "words", "instead"),
    [
        ("item", pa.list_(pa.int64()), "to be compared, not list", "Make a column of the part"),
        ("flag", pa.struct({"a": pa.int64()}), "to be compared, not struct", "Make a column"),
        ("epsilon", pa.string(), "numbers, not string", "df.astype"),
        ("value", pa.large_string(), "numbers, not", 'CAST."x" AS DOUBLE. AS x_number'),
        ("value", pa.timestamp("ns"), "numbers, not timestamp", "Cast it before"),
        ("value", pa.bool_(), "numbers, not bool", r"A share of rows is a Ratio\('x'\)"),
        ("item", pa.timestamp("us"), "compared, not timestamp", "Cast it before"),
        ("owner", pa.timestamp("us"), "not timestamp", 'CAST."x" AS DATE.*Hours are strftime'),
    ],
)
def test_arrow_types_that_cannot_hold_it_are_refused(
    name: str, kind: pa.DataType, words: str, instead: str
) -> None:
    asked = layout.Layout("who", (), (COLUMNS[name],), None, bytes(32))
    with pytest.raises(TypeError, match=rf"^column 'x' must hold .*{words}.*{instead}"):
        layout.check_types(asked, {"x": kind})
    layout.check_types(asked, {"x": pa.int64()})
