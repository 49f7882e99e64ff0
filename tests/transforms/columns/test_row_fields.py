"""The fields of rows come out as a dict's `get` gives them, however rows are mixed."""

import enum
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from beam_dp.transforms.columns.row_fields import FieldLists

NAMES = ("person", "day", "value")


class Name(enum.StrEnum):
    """Names as members of an enumeration."""

    PERSON = "person"


def read(rows: list[Any]) -> list[list[object]]:
    """Return the lists of some rows."""
    lists = FieldLists(NAMES)
    for row in rows:
        lists.add(row)
    assert len(lists) == len(rows)
    found = lists.drain()
    assert len(lists) == 0
    return found


@st.composite
def drawn_rows(draw: st.DrawFn) -> list[dict[Any, int]]:
    """Draw runs of rows of the same keys, some of them no text, in groups of any length."""
    rows: list[dict[Any, int]] = []
    keys = st.lists(st.sampled_from([*NAMES, "more", "", 7, None, b"day"]), unique=True)
    for place, names in enumerate(draw(st.lists(keys, max_size=6))):
        run = range(draw(st.integers(1, 3)))
        fresh = draw(st.booleans())  # the same names in other objects
        rows += ({_again(n) if fresh else n: 1000 * place + i for n in names} for i in run)
    return rows


def _again(name: Any) -> Any:
    return str(name.encode(), "ascii") if isinstance(name, str) else name


@given(rows=drawn_rows())
def test_every_field_is_what_get_gives(rows: list[dict[Any, int]]) -> None:
    assert read(rows) == [[row.get(name) for row in rows] for name in NAMES]


def test_names_of_numpy_and_members_of_enumerations_are_text() -> None:
    listed = dict(zip(np.array(NAMES), (1, 2, 3), strict=True))
    assert {type(key) for key in listed} == {np.str_}
    assert read([listed, {Name.PERSON: 1, "day": 2}]) == [[1, 1], [2, 2], [3, None]]


def test_what_becomes_of_a_row_later_changes_nothing() -> None:
    """One dict that is filled again and again is as many rows."""
    lists, row = FieldLists(NAMES), {}
    for place in range(10):
        row.update(person=place, day=-place)
        lists.add(row)
    row.clear()
    count = range(10)
    assert lists.drain() == [list(count), [-place for place in count], [None for _ in count]]
