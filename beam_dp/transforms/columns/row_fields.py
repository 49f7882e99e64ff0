"""Read the fields of rows of any kind by name, without running any code of a row's own.

A dict finds a key by its hash and then by `==`, which a key's class can define: that code would run
for a key with the hash of "person". So names are looked up among plain text only: keys of a
subclass of `str` are the text that they hold, other keys are ignored.
"""

import abc
import functools
import itertools
import operator
import types
from collections.abc import Iterable, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa

FULL = 1 << 16
OF_DICTS = {b"beam_dp": b"dicts"}
"""The metadata of batches that a query makes of rows without types: their types are data."""
# Attributes of types, read without their metaclasses.
_BASES, _NAMESPACE = (vars(type)[name].__get__ for name in ("__mro__", "__dict__"))


class FieldLists:
    """Collect some fields of rows into a list for each; None where a row has no such field.

    A row is read when it is added: later changes of the row have no effect.

    Args:
        names: the names of the fields, plain text; at least one.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._cells: list[object] = []  # row by row

    def __len__(self) -> int:
        return len(self._cells) // len(self._names)

    def add(self, row: Any) -> bool:
        """Take one row; return whether there are so many that it is time to drain."""
        plain = type(row) is dict and _are_text(row)
        fields = row if plain else _fields(row)
        self._cells.extend(map(fields.get, self._names))
        return len(self._cells) >= FULL * len(self._names)

    def extend(self, columns: Iterable[list[object]]) -> None:
        """Take rows that are columns already, in the order of the names."""
        self._cells.extend(itertools.chain.from_iterable(zip(*columns, strict=True)))

    def drain(self) -> list[list[object]]:
        """Return a list per name, and begin new lists."""
        cells, self._cells = self._cells, []
        return [cells[place :: len(self._names)] for place in range(len(self._names))]


def _are_text(keys: Iterable[object]) -> bool:
    return all(map(operator.is_, map(type, keys), itertools.repeat(str)))


def _named(pairs: Iterable[tuple[object, object]]) -> dict[str, object]:
    """Return the pairs whose key is text as a dict, by the plain text that the key holds."""
    # For a subclass, str.__str__ copies the characters without running the subclass's code.
    return {str.__str__(key): value for key, value in pairs if issubclass(type(key), str)}


def _fields(row: Any) -> dict[str, object]:
    """Return the fields of a row of any kind."""
    # By type(row): isinstance would also ask row.__class__, which can be a property that raises.
    kind: Any = type(row)
    if issubclass(kind, dict):
        return _named(dict.items(row))
    # Looking at a class of another metaclass may run that metaclass's code.
    read = _reading(kind) if type(kind) is type or type(kind) is abc.ABCMeta else None
    if isinstance(read, tuple):
        return dict(zip(read, tuple.__iter__(row), strict=False))
    return _named(dict.items(read.__get__(row))) if read is not None else {}


@functools.lru_cache(maxsize=256)
def _reading(kind: type) -> tuple[str, ...] | types.GetSetDescriptorType | None:
    """Return how to read the fields of a class: by names, by its `__dict__`, or not at all."""
    names = _static(kind, "_fields")
    if issubclass(kind, tuple):
        named = type(names) is tuple and _are_text(names)
        return names if named else None
    is_row = issubclass(kind, beam.Row) or _static(kind, "__dataclass_fields__") is not None
    slot = _static(kind, "__dict__")
    return slot if is_row and type(slot) is types.GetSetDescriptorType else None


def _static(kind: type, name: str) -> Any:
    """Return an attribute of a class as it is stored, without calling descriptors."""
    attributes = (_named(_NAMESPACE(base).items()).get(name) for base in _BASES(kind))
    return next((attribute for attribute in attributes if attribute is not None), None)


def none_of(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in schema], schema=schema)


def is_columnar(element: object) -> bool:
    """Return whether an element is many rows as Arrow columns."""
    return type(element) is pa.RecordBatch or type(element) is pa.Table
