"""Read the fields of rows of any kind by name, without running any code of a row's own.

A dict finds a key by its hash and then by `==`, which a key's class can define: that code would run
for a key with the hash of "person". So names are looked up among plain text only: keys of a
subclass of `str` are the text that they hold, other keys are ignored. Rows mostly have the same
names in the same order: that is checked for many rows at a time. Rows of many other fields, or with
names in changing order, cost more, for every name is looked at.
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

_TOGETHER = 256
# Attributes of types, read without their metaclasses.
_BASES, _NAMESPACE = (vars(type)[name].__get__ for name in ("__mro__", "__dict__"))


class FieldLists:
    """Collect some fields of rows into a list for each; None where a row has no such field.

    A row is read when it is added: later changes of the row have no effect.

    Args:
        names: the names of the fields, plain text.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._taken: list[list[object]] = [[] for _ in names]
        # All names and all values of the rows that are not yet in the lists, row after row.
        self._keys: list[object] = []
        self._values: list[object] = []
        self._sizes: list[int] = []
        # These three are cleared, never replaced: their methods are looked up once.
        self._add_keys, self._add_values = self._keys.extend, self._values.extend
        self._add_size = self._sizes.append

    def __len__(self) -> int:
        return len(self._taken[0]) + len(self._sizes)

    def add(self, row: object) -> bool:
        """Take one row; return whether it is time to look at the length."""
        fields = row if type(row) is dict else _unchecked(row)
        self._add_keys(fields)
        self._add_values(fields.values())
        self._add_size(len(fields))
        if len(self._sizes) < _TOGETHER:
            return False
        self._take()
        return True

    def extend(self, columns: Iterable[list[object]]) -> None:
        """Take rows that are columns already, in the order of the names."""
        self._take()
        for taken, column in zip(self._taken, columns, strict=True):
            taken.extend(column)

    def drain(self) -> list[list[object]]:
        """Return a list per name, and begin new lists."""
        self._take()
        taken, self._taken = self._taken, [[] for _ in self._names]
        return taken

    def _take(self) -> None:
        width = self._sizes[0] if self._sizes else 0
        keys = self._keys[:width]
        if width and _repeats(keys, self._keys, self._sizes):
            for name, taken in zip(self._names, self._taken, strict=True):
                nothing = [None] * len(self._sizes)
                taken += self._values[keys.index(name) :: width] if name in keys else nothing
        else:
            self._take_each()
        self._keys.clear()
        self._values.clear()
        self._sizes.clear()

    def _take_each(self) -> None:
        pairs = zip(self._keys, self._values, strict=True)
        named = dict if _are_text(self._keys) else _named
        for size in self._sizes:
            fields = named(itertools.islice(pairs, size))
            for name, taken in zip(self._names, self._taken, strict=True):
                taken.append(fields.get(name))


def _repeats(first: list[object], keys: list[object], sizes: list[int]) -> bool:
    """Return whether all rows have the keys of the first row, in its order, all plain text."""
    if sizes.count(len(first)) != len(sizes) or not _are_text(first):
        return False
    others = (
        [key for key in keys[index :: len(first)] if key is not name]
        for index, name in enumerate(first)
    )
    if not any(map(len, others)):  # the very same objects, mostly
        return True
    return _are_text(keys) and keys == first * len(sizes)


def _are_text(keys: list[object]) -> bool:
    return all(map(operator.is_, map(type, keys), itertools.repeat(str)))


def _named(pairs: Iterable[tuple[object, object]]) -> dict[str, object]:
    """Return the pairs whose key is text as a dict, by the plain text that the key holds."""
    # For a subclass, str.__str__ copies the characters without running the subclass's code.
    return {str.__str__(key): value for key, value in pairs if issubclass(type(key), str)}


def _unchecked(row: Any) -> dict[Any, object]:
    """Return the fields of a row that is no plain dict, by keys of any kind."""
    # By type(row): isinstance would also ask row.__class__, which can be a property that raises.
    kind: Any = type(row)
    if issubclass(kind, dict):
        return _named(dict.items(row))
    # Looking at a class of another metaclass may run that metaclass's code.
    read = _reading(kind) if type(kind) is type or type(kind) is abc.ABCMeta else None
    if isinstance(read, tuple):
        return dict(zip(read, tuple.__iter__(row), strict=False))
    fields = read.__get__(row) if read is not None else {}
    return fields if type(fields) is dict else _named(dict.items(fields))


@functools.lru_cache(maxsize=256)
def _reading(kind: type) -> tuple[str, ...] | types.GetSetDescriptorType | None:
    """Return how to read the fields of a class: by names, by its `__dict__`, or not at all."""
    names = _static(kind, "_fields")
    if issubclass(kind, tuple):
        named = type(names) is tuple and _are_text(list(names))
        return names if named else None
    is_row = issubclass(kind, beam.Row) or _static(kind, "__dataclass_fields__") is not None
    slot = _static(kind, "__dict__")
    return slot if is_row and type(slot) is types.GetSetDescriptorType else None


def _static(kind: type, name: str) -> Any:
    """Return an attribute of a class as it is stored, without calling descriptors."""
    attributes = (_named(_NAMESPACE(base).items()).get(name) for base in _BASES(kind))
    return next((attribute for attribute in attributes if attribute is not None), None)


def is_columnar(element: object) -> bool:
    """Return whether an element is many rows as Arrow columns."""
    return type(element) is pa.RecordBatch or type(element) is pa.Table
