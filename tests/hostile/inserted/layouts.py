"""What rows become where they enter the transforms, as plain lines that can be compared."""

import functools
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa

from beam_dp.mechanisms.bounding import table as tables
from beam_dp.mechanisms.bounding.table import Column, Role, Table, table_order
from beam_dp.mechanisms.numerics import integers
from beam_dp.transforms.columns import layout as columns_layout
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.columns.public_keys import KeyList, PublicKeys
from beam_dp.transforms.columns.row_fields import FieldLists

NAMES = ("person", "other", "day", "place", "value", "item", "flag", "mark", "time", "epsilon")
KEY = bytes(range(32))
DAYS, PLACES, TIERS = (1, 2, 3), ("north", "south"), (Fraction(1, 2), Fraction(1))
_UNIT = Fraction(1, 10**6)
_PAIRS = tuple((day, place) for day in DAYS for place in PLACES)


def _judge(value: Any) -> bool:
    return bool(value > 3)


@functools.cache
def layouts() -> dict[str, Layout]:
    """Return what is asked of the rows: one statistic, and all options at once."""
    days = PublicKeys(KeyList.of((day,) for day in DAYS))
    pairs = PublicKeys(KeyList.of(_PAIRS))
    value, item = Column("value", Role.VALUE, _UNIT), Column("item", Role.ITEM)
    everything = (
        *(Column("flag", Role.FLAG, "yes"), Column("mark", Role.FLAG, _judge)),
        Column("epsilon", Role.EPSILON, TIERS),
    )

    def layout(partition: tuple[str, ...], public: PublicKeys | None, *others: Column) -> Layout:
        return Layout("person", partition, table_order([value, *others]), public, KEY)

    return {
        "private partitions": layout(("day",), None),
        "private pairs": layout(("day", "place"), None, item),
        "public partitions": layout(("day",), days, item, *everything),
        "one partition": layout((), None, *everything),
        "several owners": layout(
            *(("day", "place"), pairs, Column("other", Role.OWNER)),
            *(Column("day", Role.OWNER), item),
        ),
    }


def texts_of(number: int) -> list[str]:
    """Return a good row as the text of its cells."""
    return [
        *(f"base-{number}", f"other-{number}", str(DAYS[number % 3]), PLACES[number % 2]),
        *(f"{number}.5", str(number % 4), ("yes", "no")[number % 2], str(number % 6), str(number)),
        ("0.5", "1", "1.0")[number % 3],
    ]


def lines(tables: Iterable[Table]) -> list[Any]:
    """Return the lines of tables: who, where, how many rows, and every value as an integer."""
    return [line for table in tables for line in _lines(table)]


def _lines(table: Table) -> Iterable[Any]:
    person, partition = (
        list(map(tuple, tables.two_words(identity).T.tolist()))
        for identity in (table.person, table.partition)
    )
    named = [table.names.get(pair[:2]) for pair in partition]
    values = [integers.widen(column).tolist() for column in table.values]
    return zip(person, partition, named, table.rows.tolist(), *values, strict=True)


def of_rows(layout: Layout, rows: Sequence[object]) -> list[Any]:
    """Return the lines that rows become, handed over together."""
    lists = FieldLists(layout.names)
    for row in rows:
        lists.add(row)
    return lines(layout.from_lists(lists.drain()))


def of_batches(layout: Layout, batches: Iterable[pa.RecordBatch]) -> list[Any]:
    """Return the lines that record batches become."""
    parts = (part for batch in batches for part in columns_layout.batches(batch))
    return lines(map(layout.from_batch, parts))
