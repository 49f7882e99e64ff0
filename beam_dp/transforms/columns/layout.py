"""Turn rows of any kind into columns of contributions: every transform reads its rows here.

Rows come as dicts, as `beam.Row`, NamedTuple or dataclass (`row_fields`), or as Arrow record
batches and tables. A row counts if its person is an id and every part of its partition is a key
(`ids`); otherwise it is dropped, by itself and without a trace. A value that is no number
(`fixed_point`) is absent: the row counts as a row and adds nothing to what is computed from that
column. Where rows have several owners, a row counts if any of them is an id (`owner_lines`). Where a
period is named, the rows of one person and one period have an id of their own, as if they were a
person: whatever holds for one person holds for one person's rows of one period. A row without a
usable period is dropped. Fields that no column of the layout names are never looked at. No content
of a row reaches an exception, a log or a counter; the errors raised here name columns and Arrow
types, which are not data.

*Schemas are public.* A batch without a wanted column, or with one of a wrong type, fails the job,
and the error names the columns of the batch. That tells nothing of a person where the program
or the file fixes the schema: then all batches have the same one, even a batch of nobody. Who makes
batches of rows must give them a schema that is written down (`pa.RecordBatch.from_pylist(rows,
schema=schema)`): one that is inferred would be an answer about the rows.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beam_dp.mechanisms.bounding.table import Column, Role, Table, concatenate
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.summaries import owner_lines
from beam_dp.transforms.columns import (
    compared_values,
    fixed_point,
    ids,
    partition_keys,
    plain_values,
    public_keys,
    row_fields,
    written_forms,
)

BATCH_ROWS = 1 << 18
_EPSILON = Fraction(1, 1_000_000)  # people's epsilons are compared to a millionth
_NUMBERS = (fixed_point.supported, "numbers")
_COMPARED = (ids.supported, "numbers, text, dates or booleans to be compared")
_NAMES = (ids.supported, "integers, text, dates or booleans to identify people or partitions")
_RULES = {
    Role.VALUE: _NUMBERS,
    Role.OWNER: _NAMES,
    Role.ITEM: _COMPARED,
    Role.FLAG: _COMPARED,
    Role.EPSILON: _NUMBERS,
}
"""For each role, which Arrow types a column may have, and this rule in words."""


Listed = tuple[tuple[str, ...], public_keys.PublicKeys]
"""Columns, and a list of their values."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """Which columns hold what.

    Attributes:
        person: the column that identifies the person.
        partition: the columns whose values name the partition; empty: one partition.
        columns: the other columns that are read, in the order of a table. Rows whose epsilon is
            none of the public epsilons are dropped.
        public: the public keys; None: partitions are private.
        key: the run's key.
        period: the column that says to which period a row belongs; None: a person is protected with
            rows of all periods.
        only: the periods whose rows count; others are dropped. None: all count.
        also_listed: lists of other tables of the run: rows that are not in them are dropped.
    """

    person: str
    partition: tuple[str, ...]
    columns: tuple[Column, ...]
    public: public_keys.PublicKeys | None
    key: bytes
    period: str | None = None
    only: public_keys.PublicKeys | None = None
    also_listed: tuple[Listed, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that are read, in the order of `from_lists`."""
        period = () if self.period is None else (self.period,)
        values = (column.name for column in self.columns)
        also = (name for names, _ in self.also_listed for name in names)
        return (self.person, *self.partition, *values, *also, *period)

    def from_batch(self, batch: pa.RecordBatch) -> Table:
        """Return the contributions in a record batch.

        Raises:
            ValueError: for a column that is missing.
            TypeError: for a column of a type that does not fit its role.
        """
        arrays = {name: column_of(batch, name) for name in self.names}
        if batch.schema.metadata == row_fields.OF_DICTS:  # a wrong type is of its row alone
            lists = [plain_values.to_list(arrays[name]) for name in self.names]
            return concatenate(self.from_lists(lists) or self.from_lists([[] for _ in lists]))
        check_types(self, {name: array.type for name, array in arrays.items()})
        parts = self._same_keys([arrays[name] for name in self.names])
        return concatenate(list(map(self._from_columns, parts)))

    def _same_keys(self, columns: list[pa.Array]) -> Iterator[list[pa.Array]]:
        """Yield the columns, of rows apart whose private keys are integers beyond 64 bits: text."""
        end = 1 + len(self.partition) if self.public is None else 1
        for place in range(1, end):
            if pa.types.is_dictionary(columns[place].type):
                columns[place] = partition_keys.without_wide_categories(columns[place])
            wide = partition_keys.is_wide(columns[place])
            if wide is not None:
                for rows, kind in ((wide, pa.string()), (pc.invert(wide), pa.int64())):
                    part = [*columns]  # rows without a key are dropped
                    part[place] = pc.if_else(rows, columns[place], None).cast(kind)
                    yield from self._same_keys(part)
                return
        yield columns

    def from_lists(self, lists: list[list[object]]) -> list[Table]:
        """Return the contributions in lists of Python values, one per name."""
        first, end = 1 + len(self.partition), 1 + len(self.partition) + len(self.columns)
        keys = [*range(1, first), *range(end, len(lists))]  # of the lists of other tables, too
        found = {place: ids.to_array(lists[place]) for place in keys}
        if any(part is None for part in found.values()):
            return [table for group in _by_type(lists, keys) for table in self.from_lists(group)]
        return [self._from_columns([found.get(place, part) for place, part in enumerate(lists)])]

    def _from_columns(self, columns: list[ids.Cells]) -> Table:
        """Return the contributions in columns; those of keys are Arrow's."""
        person, valid = ids.identify(columns[0], self.key)
        end = 1 + len(self.partition)
        if self.period is not None:
            person, valid = self._of_periods(person, valid, columns.pop())
        for by, listed in reversed(self.also_listed):
            parts = [columns.pop() for _ in by][::-1]
            valid = valid & (listed.indexes(parts, self.key) >= 0)
        partition, kept, names = self._partitions(columns[1:end], len(valid))
        values = [
            read(column, cells, self.key)
            for column, cells in zip(self.columns, columns[end:], strict=True)
        ]
        person, valid, values = self._owners(person, valid, values)
        valid = valid & kept
        for column, numbers in zip(self.columns, values, strict=True):
            if column.role is Role.EPSILON:  # it must be a public one
                valid = valid & (numbers >= 0)
        table = Table(person, partition, np.ones(len(valid), np.int64), values, names)
        return table if valid.all() else table.take(valid)

    def _of_periods(
        self, person: np.ndarray, known: np.ndarray, cells: pa.Array
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the identities of pairs of a person and a period, and which rows count."""
        column = public_keys.encoded(cells)
        period, dated = ids.identify(column, self.key)
        if self.only is not None:
            dated = dated & (self.only.indexes([column], self.key) >= 0)
        return ids.paired(person, period, self.key), known & dated

    def _owners(
        self, person: np.ndarray, known: np.ndarray, values: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """Return the first owner of each row, whether there is one, and the values with the others.

        Args:
            person: the identity in the first role.
            known: whether there is one.
            values: the values of all columns, among which are the codes in the other roles.
        """
        others = [i for i, column in enumerate(self.columns) if column.role is Role.OWNER]
        if not others:
            return person, known, values
        first = np.where(known, owner_lines.code(person, self.key), integers.LOWEST)
        codes = owner_lines.in_order(np.stack([first, *(values[i] for i in others)]))
        ordered = dict(zip(others, codes[1:], strict=True))
        values = [ordered.get(i, column) for i, column in enumerate(values)]
        return codes[:1].view(np.uint64), codes[0] != integers.LOWEST, values

    def _partitions(
        self, columns: list[pa.Array], size: int
    ) -> tuple[np.ndarray, np.ndarray, dict[tuple[int, int], bytes]]:
        if not self.partition:
            return np.zeros((1, size), np.uint64), np.ones(size, bool), {}
        if self.public is None:
            return partition_keys.name_keys(columns, self.key)
        indexes = self.public.indexes(columns, self.key)
        return np.maximum(indexes, 0).view(np.uint64)[None], indexes >= 0, {}


def fresh_key() -> bytes:
    """Return the key of a new run. It decides which rows stay; the noise does not depend on it."""
    return Noise().words(4).tobytes()


def _by_type(lists: list[list[object]], keys: list[int]) -> Iterator[list[list[object]]]:
    """Return the rows that have a key, in groups whose key parts have the same types.

    Args:
        lists: the columns.
        keys: which of them are parts of keys.
    """
    parts = {place: list(map(partition_keys.clean, lists[place])) for place in keys}
    columns = [parts.get(place, values) for place, values in enumerate(lists)]
    groups: dict[tuple[type, ...], list[int]] = {}
    for index, row in enumerate(zip(*parts.values(), strict=True)):
        if None not in row:
            groups.setdefault(tuple(map(type, row)), []).append(index)
    for indexes in groups.values():
        yield [[values[index] for index in indexes] for values in columns]


def read(column: Column, cells: ids.Cells, key: bytes) -> np.ndarray:
    """Return a column as exact numbers, codes, or flags, by its role.

    Args:
        column: its role.
        cells: an Arrow column of a type that `check_types` allows, or Python values.
        key: the run's key.
    """
    match column.role:
        case Role.VALUE:
            return fixed_point.to_units(cells, column.detail)
        case Role.EPSILON:
            return _tiers(fixed_point.to_units(cells, _EPSILON), column.detail)
        case Role.OWNER:
            return compared_values.coded(*ids.identify(cells, key), key)
        case Role.ITEM:
            return compared_values.codes(cells, key)
        case Role.FLAG:
            if callable(column.detail):
                return compared_values.judged(cells, column.detail)
            return compared_values.equal(compared_values.codes(cells, key), column.detail, key)


def _tiers(units: np.ndarray, epsilons: Sequence[Fraction]) -> np.ndarray:
    """Return the index of each epsilon among the public ones, in rising order; -1 for others."""
    known = np.array([int(epsilon / _EPSILON) for epsilon in epsilons], object)
    nearest = np.minimum(np.searchsorted(known, units), len(known) - 1)
    return np.where(np.asarray(known[nearest] == units, bool), nearest, -1)


def check_types(layout: Layout, types: Mapping[str, pa.DataType]) -> None:
    """Refuse columns of Arrow types that do not fit their role, or equal one of the named keys.

    Args:
        layout: the role of each column.
        types: the types that are known, by column.

    Raises:
        TypeError: names the column, its type, and a key: these are not data.
    """
    named = [(name, Role.OWNER) for name in (layout.person, *layout.partition, layout.period)]
    named += [(column.name, column.role) for column in layout.columns]
    named += [(name, Role.OWNER) for names, _ in layout.also_listed for name in names]
    for name, role in named:
        if name is None or name not in types:
            continue
        kind, (fits, rule) = ids.stored(types[name]), _RULES[role]
        if not fits(kind):
            raise TypeError(
                f"column {name!r} must hold {rule}, not {types[name]}. {_instead(name, kind, role)}"
            )
    for name, what, keys, part in _named_keys(layout):
        kind = ids.stored(types.get(name, pa.null()))
        key = public_keys.unlike(keys, part, kind)
        if key is not None:
            raise TypeError(
                f"column {name!r} must be able to hold {what} {key!r}, and none of its values, of "
                f"type {kind}, is that. Name {written_forms.needed(kind)}."
            )


def _instead(name: str, kind: pa.DataType, role: Role) -> str:
    """Return what to do with a column of a type that does not fit its role."""
    if pa.types.is_nested(kind):
        return "Make a column of the part of it that is meant, and name that."
    cast = (
        "query='SELECT *, CAST(\"{0}\" AS {1}) AS {0}_{2} FROM rows', or dp.Rows of that, and name "
        "{0}_{2}."
    )
    if pa.types.is_timestamp(kind) and role is Role.OWNER:
        hours = f"Hours are strftime(\"{name}\", '%Y-%m-%d %H')"
        return f"Write {cast.format(name, 'DATE', 'day')} {hours}; in a SELECT, GROUP BY them."
    if pa.types.is_boolean(kind):
        return f"A share of rows is a Ratio({name!r})."
    if ids.is_text(kind):
        frame = f'Of a DataFrame, give df.astype({{"{name}": float}})'
        return f"{frame}; of files, write {cast.format(name, 'DOUBLE', 'number')}"
    return "Cast it before this transform."


def check_forms(layout: Layout, forms: Mapping[str, frozenset[str]]) -> None:
    """Refuse keys that are written otherwise than all cells that were looked at, or in two types.

    Args:
        layout: the role of each column.
        forms: the forms of the cells, by column, as far as known.

    Raises:
        ValueError: names the column and the forms.
    """
    for name, what, keys, part in _named_keys(layout):
        found = forms.get(name, frozenset()) - written_forms.JSON_TYPES
        if found and found.isdisjoint(named := keys.forms[part]):
            raise ValueError(
                f"column {name!r} must be written as {what} is, in {_joined(named)}, and its files "
                f"begin with {_joined(found)}. Write {what} as the cells are, or change the column "
                "by a query."
            )
    for name in layout.partition if layout.public is None else ():
        types = forms.get(name, frozenset()) & written_forms.JSON_TYPES
        if len(types) > 1:
            raise ValueError(
                f"column {name!r} must have one type, and its files begin with "
                f'{" and ".join(sorted(types))}: 1 and "1" are two partitions where partitions are '
                "selected privately. Write one type, or name the partitions."
            )


def _joined(forms: frozenset[str]) -> str:
    return " and ".join(sorted(forms)).removeprefix("other ")


def _named_keys(layout: Layout) -> Iterator[tuple[str, str, public_keys.PublicKeys, int]]:
    """Yield the columns of which keys are named, what these are called, and which part they are."""
    if layout.public is not None:
        for part, name in enumerate(layout.partition):
            yield name, "the public key", layout.public, part
    for names, listed in layout.also_listed:
        for part, name in enumerate(names):
            yield name, "the public key", listed, part
    if layout.only is not None and layout.period is not None:
        yield layout.period, "the ledger_period", layout.only, 0


def column_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return the column of that name; of dicts, where a field is data, nulls if there is none.

    Raises:
        ValueError: for no such column, or several.
        TypeError: for an extension type that is written in Python.
    """
    indexes = batch.schema.get_all_field_indices(name)
    if not indexes and batch.schema.metadata == row_fields.OF_DICTS:
        return pa.nulls(len(batch))
    if len(indexes) != 1:
        raise ValueError(
            f"column {name!r} must occur once in every batch, not {len(indexes)} times. One has: "
            f"{checks.listed(batch.schema.names)}."
        )
    # For a type that is written in Python, Arrow runs that type's code to make an array or a name.
    if issubclass(type(batch.schema.field(indexes[0]).type), pa.ExtensionType):
        raise TypeError(
            f"column {name!r} must hold values of one of Arrow's own types, not of an extension. "
            "Cast it before this transform, to the type that it is stored in."
        )
    return ids.without_uuids(batch.column(indexes[0]))


def batches(element: pa.Table | pa.RecordBatch) -> list[pa.RecordBatch]:
    """Return an Arrow element as record batches of bounded size, without copying.

    There is one at least, unless it has no columns: a schema is refused whether there are rows or
    not.
    """
    if element.num_columns and not len(element):
        is_batch = isinstance(element, pa.RecordBatch)
        return [element if is_batch else row_fields.none_of(element.schema)]
    table = pa.Table.from_batches([element]) if isinstance(element, pa.RecordBatch) else element
    return list(table.to_batches(max_chunksize=BATCH_ROWS))
