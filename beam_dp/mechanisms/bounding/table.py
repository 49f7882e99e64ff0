"""The columns that are read, and the table of contributions that they become.

A `Column` says how a column of the rows is read, from the metric to the table. A `Table` has one
line per person, partition and different row.
"""

import dataclasses
import enum
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Self, TypeVar

import numpy as np

from beam_dp.mechanisms.bounding.ordering import pick
from beam_dp.mechanisms.numerics import integers

Part = TypeVar("Part", bound="Columnar")


class Role(enum.Enum):
    """The use of the values of a column. A table holds its columns in this order of roles."""

    VALUE = "numbers, in multiples of a unit"
    OWNER = "ids of a further owner of a row"
    ITEM = "values that are only compared with each other"
    FLAG = "values that are compared with a given one, or judged by a function"
    EPSILON = "a person's own epsilon"


_ORDER = {role: index for index, role in enumerate(Role)}


@dataclasses.dataclass(frozen=True)
class Column:
    """One column of the rows, read in one role. A name may be read in several roles.

    Attributes:
        name: the column's name.
        role: what its values are for.
        detail: for a `VALUE` the unit, for a `FLAG` what it is compared with, for an `EPSILON` the
            public epsilons in rising order; None for the others.
        kind: the type of the detail, so that 1, 1.0 and True are three comparisons.
    """

    name: str
    role: Role
    detail: Any = None
    kind: type = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", type(self.detail))


def table_order(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return each column once, by role, and within a role in the order of the argument."""
    return tuple(sorted(dict.fromkeys(columns), key=lambda column: _ORDER[column.role]))


def with_role(columns: Iterable[Column], *roles: Role) -> tuple[Column, ...]:
    """Return the columns that are read in one of these roles."""
    return tuple(column for column in columns if column.role in roles)


OF_ROWS = ("distinct", "mode")
"""Operations that need all settled rows of a person at once."""


@dataclasses.dataclass(frozen=True)
class Field:
    """One number per (person, partition): an operation over the values of one column.

    Attributes:
        column: the index of the value column.
        operation: "sum", "max", "min", "count" (rows whose value is present), "peak" (the largest
            magnitude), "squares" (the sum of the squared values), "distinct" (how many different
            values), or "mode" (the most rows with one value).
        low: values below count as that, in units; None: none do.
        high: values above count as that; None: none do.
    """

    column: int
    operation: str
    low: int | None = None
    high: int | None = None


@dataclasses.dataclass
class Columnar:
    """Lines that are held in columns: the fields of a subclass, all of one length.

    A field is an array, of shape (n,) or (words, n), a list or tuple of such arrays, None, or a
    dict that holds for all lines.
    """

    def take(self, index: np.ndarray | slice) -> Self:
        """Return the lines at `index`; the names stay as they are."""
        if not isinstance(index, slice) and index.dtype == bool:
            index = np.flatnonzero(index)
        return type(self)(**{name: _taken(column, index) for name, column in vars(self).items()})


def _taken(column: Any, index: np.ndarray | slice) -> Any:
    if isinstance(column, (list, tuple)):
        return type(column)(_taken(each, index) for each in column)
    if column is None or isinstance(column, dict):
        return column
    return pick(column, index) if column.ndim == 2 else column[index]


@dataclasses.dataclass
class Table(Columnar):
    """Columns of contributions, one line per row, per distinct row, or per pair.

    Attributes:
        person: identity of the person, uint64 of shape (1 or 2, n).
        partition: identity of the partition, uint64 of shape (1 or 2, n).
        rows: how many input rows the line stands for, int64.
        values: one exact column per value column, or per field once they are aggregated.
        names: the encoded key of each partition that is identified by a hash.
        hashes: the hash of the person and the priority of the pair, uint64 of shape (2, n), once a
            `Bounder` has computed them.
    """

    person: np.ndarray
    partition: np.ndarray
    rows: np.ndarray
    values: list[np.ndarray]
    names: dict[tuple[int, int], bytes] = dataclasses.field(default_factory=dict)
    hashes: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.rows)


def named(tables: Sequence[Table], names: dict[tuple[int, int], bytes]) -> list[Table]:
    """Return the tables with one dict for all: of these names, those that they still have."""
    if len(names) > sum(map(len, tables)):
        names = all_names([names_of(each.partition, names) for each in tables])
    return [dataclasses.replace(each, names=names) for each in tables]


def names_of(
    identity: np.ndarray, names: dict[tuple[int, int], bytes]
) -> dict[tuple[int, int], bytes]:
    """Return the names of these identities."""
    if not names:
        return names
    words = np.ascontiguousarray(two_words(identity).T)
    different = np.unique(words.view("V16")).view(np.uint64).reshape(-1, 2)
    return {pair: names[pair] for pair in map(tuple, different.tolist()) if pair in names}


def concatenate(parts: Sequence[Part]) -> Part:
    """Return the lines of all parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    joined = {name: _joined([getattr(part, name) for part in parts]) for name in vars(first)}
    return type(first)(**joined)


def _joined(columns: Sequence[Any]) -> Any:
    if isinstance(columns[0], (list, tuple)):
        return type(columns[0])(map(_joined, zip(*columns, strict=True)))
    if isinstance(columns[0], dict):
        return all_names(columns)
    if any(column is None for column in columns):
        return None
    return (join_identities if columns[0].ndim == 2 else integers.concatenate)(columns)


def all_names(dicts: Sequence[dict[tuple[int, int], bytes]]) -> dict[tuple[int, int], bytes]:
    """Return the names of all tables; many tables may share one dict of them."""
    different = list({id(names): names for names in dicts if names}.values())
    if len(different) <= 1:
        return different[0] if different else {}
    return dict(itertools.chain.from_iterable(names.items() for names in different))


def join_identities(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return identity columns one after the other; a missing second word is 0."""
    width = max(column.shape[0] for column in columns)
    return np.concatenate([_padded(column, width) for column in columns], axis=1)


def _padded(column: np.ndarray, width: int) -> np.ndarray:
    missing = width - column.shape[0]
    if not missing:
        return column
    return np.concatenate([column, np.zeros((missing, column.shape[1]), np.uint64)])


def two_words(identity: np.ndarray) -> np.ndarray:
    """Return an identity column of both words, the second one 0 where it was missing."""
    return join_identities([identity, np.zeros((2, 0), np.uint64)])
