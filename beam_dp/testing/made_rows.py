"""Made-up rows of a release's columns, and neighbours of them: one person more, or one fewer.

Nobody's rows are read. A sample says which columns there are, of which types, and which values they
may have. Rows are mixed of its cells, and of odd ones: no number, infinite, huge, empty, long.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

_ODD_TEXT = ("", " ", "0", "-1", "1e400", "-1e308", "NaN", "n/a", "ä", "two\nlines", '"', "x" * 99)
_ODD_FLOATS = (float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 5e-324, -0.0, 10.0**15)
_RARELY, _OFTEN = 0.05, 0.3
"""How often a cell is odd, of usual people and of others."""
_PEOPLE = 12, 40, 12, 300
"""Below how many people a database has, by turns: searches tell few people and many apart."""
_MANY = 100_000
"""How many rows somebody has once."""

Row = tuple[Any, ...]


class Neighbours(NamedTuple):
    """Two databases that differ by one person.

    Attributes:
        what: the person.
        base: the rows of the first run.
        other: those of the second one.
    """

    what: str
    base: pa.Table
    other: pa.Table


class RowMaker:
    """Makes databases of a sample.

    Args:
        sample: made-up rows.
        person: the columns of ids: of a person, or of the owners of a row.
        period: the columns of the period, where people are protected in one.
    """

    def __init__(self, sample: pa.Table, person: Sequence[str], period: Sequence[str] = ()) -> None:
        self._schema, names = sample.schema, sample.column_names
        self._listed: list[Row] = list(zip(*map(pa.ChunkedArray.to_pylist, sample), strict=True))
        self._usual = [list(dict.fromkeys(column)) for column in zip(*self._listed, strict=True)]
        self._odd = [odd_cells(field.type) for field in sample.schema]
        self._person = [names.index(name) for name in person]
        self._period = [names.index(name) for name in period]

    def pairs(self, case: int, removes: bool = False) -> Iterator[Neighbours]:
        """Yield neighbours of one base: two of nobody for the first case, then of some people.

        Args:
            case: the number of the case, which says all that is drawn.
            removes: whether a person is removed, instead of added.
        """
        chance = np.random.default_rng((case, removes))
        people = int(chance.integers(3, _PEOPLE[case % len(_PEOPLE)])) if case else 0
        given = (self._mixed(chance, int(chance.integers(1, 4)), _RARELY) for _ in range(people))
        owned = [self._owned(rows, n, people, chance) for n, rows in enumerate(given)]
        others = [row for rows in owned for row in rows]
        base, everywhere = self._table(others), self._listed * int(chance.integers(1, 8))
        if removes:
            left = [row for row in others if not self._is_of(row, owned[0][0])]
            yield Neighbours("a person who is removed", base, self._table(left))
            return
        kinds = {
            "a person with one row": self._mixed(chance, 1, 0.0),
            "a person with rows everywhere": everywhere,
            "a person with odd cells": self._mixed(chance, 8, 1.0),
            "a person with rows everywhere and odd cells": self._spoiled(chance, everywhere),
            "a person like another one": owned[0] if owned else [],
            "a person with 100,000 rows": (self._mixed(chance, 97, 0.0) * _MANY)[
                : _MANY * (case == 1)
            ],
        }
        for what, rows in itertools.islice(kinds.items(), None if case else 2):
            more = self._owned(self._of_one_period(rows), people, people, chance)
            if more:
                yield Neighbours(what, base, self._table([*others, *more]))

    def _mixed(self, chance: np.random.Generator, size: int, odd: float) -> list[Row]:
        """Return rows of usual cells, and a part of odd ones."""
        cells = [
            [usual[at] for at in chance.integers(len(usual), size=size)] for usual in self._usual
        ]
        return self._spoiled(chance, list(zip(*cells, strict=True)), odd)

    def _spoiled(
        self, chance: np.random.Generator, rows: list[Row], odd: float = _OFTEN
    ) -> list[Row]:
        """Return rows of which a part of the cells is odd."""
        spoiled = chance.random((len(rows), len(self._odd))) < odd
        chosen = chance.integers(1 << 30, size=spoiled.shape)
        return [
            tuple(
                odds[at % len(odds)] if is_odd else cell
                for cell, odds, is_odd, at in zip(row, self._odd, *of_row, strict=True)
            )
            for row, *of_row in zip(rows, spoiled.tolist(), chosen.tolist(), strict=True)
        ]

    def _owned(
        self, rows: list[Row], person: int, people: int, chance: np.random.Generator
    ) -> list[Row]:
        """Return rows of a person, who may own each together with others of so many."""
        made = []
        places = chance.integers(len(self._person), size=len(rows)).tolist()
        for row, place in zip(rows, places, strict=True):
            cells = list(row)
            for at in self._person:
                other = int(chance.integers(people)) if people and len(self._person) > 1 else None
                cells[at] = self._id(at, other)
            cells[self._person[place]] = self._id(self._person[place], person)
            made.append(tuple(cells))
        return made

    def _id(self, at: int, person: int | None) -> Any:
        """Return the id of a person in one column; None: of nobody."""
        kind = self._schema.types[at]
        return person if person is None else pa.scalar(1000 + person).cast(kind).as_py()

    def _is_of(self, row: Row, first: Row) -> bool:
        """Tell whether a row is of the first person, and the period of a row."""
        owners = (row[at] == self._id(at, 0) for at in self._person)
        return any(owners) and all(row[at] == first[at] for at in self._period)

    def _of_one_period(self, rows: list[Row]) -> list[Row]:
        """Return rows with the period of one that is listed."""
        at = {place: self._listed[0][place] for place in self._period}
        return [tuple(at.get(place, cell) for place, cell in enumerate(row)) for row in rows]

    def _table(self, rows: list[Row]) -> pa.Table:
        columns = zip(*rows, strict=True) if rows else [()] * len(self._schema)
        pairs = zip(columns, self._schema.types, strict=True)
        arrays = [pa.array(cells, kind, from_pandas=False) for cells, kind in pairs]
        return pa.Table.from_arrays(arrays, schema=self._schema)


def odd_cells(kind: pa.DataType) -> Sequence[Any]:
    """Return cells of a type that are unlike most, an empty one among them."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return *_ODD_TEXT, None
    if pa.types.is_floating(kind):
        return *_ODD_FLOATS, None
    if pa.types.is_integer(kind):
        bits = kind.bit_width - pa.types.is_signed_integer(kind)
        return 0, 2**bits - 1, -(2**bits) * pa.types.is_signed_integer(kind), None
    return (None,)
