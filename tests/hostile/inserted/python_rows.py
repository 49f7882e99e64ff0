"""Rows as Python objects: a base that must come through, and objects of every hostile sort."""

import dataclasses
import datetime
import decimal
import random
import uuid
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa

from tests.hostile.inserted.layouts import DAYS, NAMES, PLACES


class Visit(NamedTuple):
    """A row as a NamedTuple."""

    person: Any
    other: Any
    day: Any
    place: Any
    value: Any
    item: Any
    flag: Any
    mark: Any
    time: Any
    epsilon: Any


Record = dataclasses.make_dataclass("Record", NAMES)


def _raise(*args: Any, **named: Any) -> Any:
    raise RuntimeError("a row's own code ran")


_HOOKS = "eq ne lt gt le ge bool repr str int float index iter len getitem contains add mul truediv"
_HOOKS += " round abs neg format getattr array arrow_array reduce_ex sizeof"


def _loud(base: type) -> type:
    """Return a class all of whose own methods raise, but for its hash."""
    body: dict[str, Any] = {f"__{name}__": _raise for name in _HOOKS.split()}
    body |= {"encode": _raise, "get": _raise, "__hash__": lambda self: 1}
    return type(f"Loud{base.__name__}", (base,), body)


LoudObject, LoudStr, LoudInt, LoudFloat, LoudDict, LoudTuple = map(
    _loud, (object, str, int, float, dict, tuple)
)


VALUES: list[Any] = [
    *(None, True, False, 0, -1, 7, 10**19, 10**40, -(10**40), 10**4000, 2**63, 2**63 - 1, -(2**63), 2**64),
    *(10**5000, -(10**5000), 0.0, -0.0, 0.5, 1e308, -1e308, 5e-324, float("nan"), float("inf"), -float("inf")),
    *("", "a", "7", "007", " 7", "1.0", "\x00", "\ud800", "\udc00a", "\ufeff", "\u2028", "١٢", "x" * 5000),
    *("9" * 19, "9" * 20, "9" * 5000, "nan", "true", "yes", "north", "1", "2020-01-01", "base-1", "é", "e\u0301"),
    *(b"", b"a", b"7", b"\xff", bytearray(b"a"), memoryview(b"a"), [], [1], (), (1,), {}, {"a": 1}, set(), {1}),
    *(decimal.Decimal(text) for text in ("1", "1.5", "NaN", "sNaN", "Infinity", "-Infinity", "-0", "1E+999999")),
    *(decimal.Decimal(text) for text in ("1E-999999", "9" * 60, "1E+400", "-1E+4000", "NaN123", "0E+999999")),
    *(Fraction(1, 3), Fraction(10**400), Fraction(1, 10**400), Fraction(-(10**60), 7), 1j, complex("nan")),
    *(datetime.date(2020, 1, 1), datetime.date.min, datetime.date.max, datetime.time(1), datetime.timedelta(1)),
    *(datetime.datetime(2020, 1, 1), datetime.datetime.min, datetime.datetime.max, datetime.datetime(1, 1, 1)),
    datetime.datetime.max.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=-23, minutes=-59))),
    datetime.datetime.min.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=23, minutes=59))),
    datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
    *(np.int8(-128), np.uint64(2**64 - 1), np.int64(-(2**63)), np.float16(1.5), np.float32("nan"), np.longdouble("1e4000")),
    *(np.float64("inf"), np.bool_(True), np.str_("a"), np.str_("\ud800"), np.bytes_(b"a"), np.complex64(1), np.void(b"a")),
    *(np.datetime64("NaT"), np.datetime64("2020-01-01"), np.timedelta64("NaT", "s"), np.timedelta64(1, "s")),
    *(np.array([1]), np.array(1), np.array(["a"]), np.ma.masked, np.array([[1, 2]]), np.array([None])),
    *(pa.scalar(1), pa.scalar("a"), pa.scalar(None), pa.array([1]), pa.nulls(1), uuid.UUID(int=1)),
    *(object(), type, print, len, lambda: 1, iter([1]), (n for n in [1]), range(3), Ellipsis, NotImplemented),
    *(LoudObject(), LoudStr("7"), LoudStr("a"), LoudInt(7), LoudFloat(0.5), LoudDict(a=1), LoudTuple((1,))),
    *(beam.Row(a=1), Exception("a"), KeyError("person"), StopIteration(), slice(1), frozenset([1]), super, property()),
]  # fmt: skip


def _cells(number: int) -> list[Any]:
    person = (number, f"base-{number}")[number % 2]
    values = (1.5, 7, decimal.Decimal("2.5"), None, float("inf"), 10**25)
    marks, times = (1, 5, None), (number, datetime.datetime(2020, 1, 1 + number), 0.5)
    return [
        *(person, 100 + number, DAYS[number % 3], PLACES[number % 2], values[number % len(values)]),
        *(number % 4, ("yes", "no")[number % 2], marks[number % 3], times[number % 3]),
        (0.5, 1, 1.0)[number % 3],
    ]


def as_dict(cells: Sequence[Any]) -> dict[Any, Any]:
    return dict(zip(NAMES, cells, strict=True))


FORMS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "dict": as_dict,
    "NamedTuple": lambda cells: Visit(*cells),
    "Row": lambda cells: beam.Row(**as_dict(cells)),
    "dataclass": lambda cells: Record(*cells),
    "dict of a class of its own": lambda cells: LoudDict(as_dict(cells)),
}
BASE = [form(_cells(number)) for number, form in enumerate([*FORMS.values()] * 4)]


def hostile(rng: random.Random) -> Any:
    """Return a row with some hostile fields, with too many or too few, or no row at all."""
    chance = rng.random()
    if chance < 0.05:
        return rng.choice(VALUES)
    cells = _cells(rng.randrange(16))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 10))):
        cells[rng.randrange(len(cells))] = rng.choice(VALUES)
    if chance < 0.15:
        return _of_another_shape(rng, cells)
    form = rng.choice(list(FORMS))
    return FORMS[form](cells)


def _of_another_shape(rng: random.Random, cells: list[Any]) -> Any:
    row = as_dict(cells)
    name = rng.choice(NAMES)
    more = rng.choice(("more", 7, None, LoudStr("a"), (1,)))
    return rng.choice((
        {key: value for key, value in row.items() if key != name},
        {**row, more: rng.choice(VALUES)},
        tuple.__new__(Visit, cells[: rng.randrange(len(cells))]),
        tuple.__new__(Visit, [*cells, *cells]),
        beam.Row(**{name: rng.choice(VALUES)}),
    ))  # fmt: skip
