"""Rows in columns: batches of a base, and hostile values that a column of some type can hold."""

import datetime
import decimal
import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tests.hostile.inserted import texts
from tests.hostile.inserted.layouts import DAYS, NAMES, PLACES

_TEXTS = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
_TEXTS[pa.string_view()] = pa.binary_view()
_INTEGERS = (pa.int64(), pa.int32(), pa.uint64(), pa.int8(), pa.uint16())
_FLOATS = (pa.float64(), pa.float32(), pa.float16())
_DECIMALS = (
    pa.decimal128(38, 0),
    pa.decimal128(20, 6),
    pa.decimal256(70, 10),
    pa.decimal128(5, -2),
)
_WHOLE = (pa.decimal128(38, 0), pa.decimal256(70, 0))
_DATES = (pa.date32(), pa.date64())
_TIMES = tuple(
    pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")
)
_IDS = (*_TEXTS, *_TEXTS, *_INTEGERS, *_WHOLE, *_DATES)
KINDS = {
    "person": _IDS,
    "other": _IDS,
    "day": (
        pa.int64(),
        pa.int8(),
        pa.uint64(),
        pa.string(),
        pa.large_string(),
        pa.decimal128(38, 0),
    ),
    "place": (pa.string(), pa.large_string()),
    "value": (*_INTEGERS, *_FLOATS, *_DECIMALS, pa.null()),
    "item": (*_IDS, *_FLOATS),
    "flag": (pa.string(), pa.large_string()),
    "mark": (*_INTEGERS, *_FLOATS, pa.date32(), pa.string()),
    "time": (*_INTEGERS, *_FLOATS, *_DATES, *_TIMES, pa.decimal128(20, 6)),
    "epsilon": (*_FLOATS, pa.decimal128(20, 6)),
}


Types = dict[str, tuple[pa.DataType, bool]]
"""The type of every column, and whether it is a dictionary of that type."""


def kinds(rng: random.Random) -> Types:
    """Return a type for every column, and whether it is a dictionary of that type."""
    found = {name: rng.choice(choice) for name, choice in KINDS.items()}
    return {
        name: (kind, rng.random() < 0.25 and _encodable(name, kind)) for name, kind in found.items()
    }


def _encodable(name: str, kind: pa.DataType) -> bool:
    if name == "time" and pa.types.is_temporal(kind):  # refused, by its type
        return False
    return kind not in (pa.string_view(), pa.float16(), pa.null()) and not pa.types.is_decimal(kind)


def _good(name: str, kind: pa.DataType, number: int) -> Any:
    if name == "day":
        return str(DAYS[number % 3]).encode() if kind in _TEXTS else DAYS[number % 3]
    if name in ("place", "flag"):
        return {"place": PLACES, "flag": ("yes", "no")}[name][number % 2].encode()
    if name == "epsilon":
        return (
            decimal.Decimal(1 + number % 2) / 2
            if pa.types.is_decimal(kind)
            else (0.5, 1.0)[number % 2]
        )
    return _plain(kind, number)


def _plain(kind: pa.DataType, number: int) -> Any:
    if kind in _TEXTS:
        return b"base-%d" % number
    if pa.types.is_date(kind):
        return datetime.date(2020, 1, 1 + number)
    if pa.types.is_timestamp(kind):
        return number
    if pa.types.is_decimal(kind):
        return decimal.Decimal(number).scaleb(max(0, -kind.scale))
    return None if pa.types.is_null(kind) else number


def _bad(rng: random.Random, kind: pa.DataType) -> Any:
    if rng.random() < 0.2 or pa.types.is_null(kind):
        return None
    if kind in _TEXTS:
        return texts.cell(rng, 300)
    if pa.types.is_integer(kind):
        top = 2 ** (kind.bit_width - pa.types.is_signed_integer(kind)) - 1
        return rng.choice((0, 1, top, top - 1, -top - 1 if pa.types.is_signed_integer(kind) else 2))
    if pa.types.is_floating(kind):
        return rng.choice(
            (0.0, -0.0, float("nan"), float("inf"), -float("inf"), 6e4, -6e4, 6e-8, 0.5, 2.0)
        )
    if pa.types.is_decimal(kind):
        return _decimal(rng, kind)
    edges = (0, 1, -1, *(sign * 2**power for power in (24, 31, 52, 62) for sign in (1, -1)))
    return rng.choice(edges) if kind != pa.date32() else rng.choice((0, 1, -1, 2**31 - 1, -(2**31)))


def _decimal(rng: random.Random, kind: pa.DataType) -> decimal.Decimal:
    top = decimal.Decimal((0, (9,) * kind.precision, -kind.scale))
    # Not `-top`: it rounds to the digits of the context.
    return rng.choice(
        (top, top.copy_negate(), decimal.Decimal(0), decimal.Decimal((0, (1,), -kind.scale)))
    )


def array(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    """Return values as an array; text as its bytes, dates and times also as their numbers."""
    if kind in _TEXTS:
        return pa.array(values, _TEXTS[kind]).view(kind)
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind == pa.date32() else pa.int64()
        return pa.array([_number(kind, value) for value in values], width).view(kind)
    return pa.array(values, kind)


def _number(kind: pa.DataType, value: Any) -> Any:
    if not isinstance(value, datetime.date):
        return value
    days = (value - datetime.date(1970, 1, 1)).days
    return days if kind == pa.date32() else days * 86_400_000


def good(types: Types, number: int) -> list[Any]:
    """Return the values of a row of a base."""
    return [_good(name, types[name][0], number) for name in NAMES]


def bad(rng: random.Random, types: Types) -> list[Any]:
    """Return the values of a row with one hostile value or several."""
    cells = good(types, rng.randrange(16))
    for place in rng.sample(range(len(NAMES)), rng.choice((1, 1, 1, 2, 3, 10))):
        cells[place] = _bad(rng, types[NAMES[place]][0])
    return cells


def batch(
    rng: random.Random,
    types: Types,
    rows: Sequence[Sequence[Any]],
    nulls: bool = True,
) -> pa.RecordBatch:
    """Return rows as a batch: columns encoded as their types say, and cut out of longer ones.

    Args:
        rng: the source of chance.
        types: of the columns.
        rows: their values.
        nulls: whether dictionaries may hold null, which Parquet files cannot.
    """
    before, after = rng.randint(0, 2), rng.randint(0, 2)
    around = [bad(rng, types) for _ in range(before + after)]
    everything = [*around[:before], *rows, *around[before:]]
    columns = [
        _column(rng, *types[name], [row[place] for row in everything], nulls)
        for place, name in enumerate(NAMES)
    ]
    made = pa.RecordBatch.from_arrays(columns, list(NAMES))
    return made.slice(before, len(rows))


def _column(
    rng: random.Random, kind: pa.DataType, encoded: bool, values: list[Any], nulls: bool
) -> pa.Array:
    if not encoded:
        return array(kind, values)
    # A dictionary may hold a value twice, and null, and values that no row has.
    entries = [entry for entry in [*values, _bad(rng, kind), None] if nulls or entry is not None]
    rng.shuffle(entries)
    missing = [None, entries.index(None)] if nulls else [None]
    places = [rng.choice(missing) if value is None else entries.index(value) for value in values]
    indices = pa.array(places, rng.choice((pa.int8(), pa.int32(), pa.uint16())))
    return pa.DictionaryArray.from_arrays(indices, array(kind, entries))
