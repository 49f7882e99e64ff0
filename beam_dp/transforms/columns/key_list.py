"""KeyList: partition keys held in columns, since a Python object per key takes much memory."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from beam_dp.transforms.columns import ids
from beam_dp.transforms.columns.partition_keys import Key
from beam_dp.transforms.inputs import kernels as pc

Column: TypeAlias = pa.Array | list[object]


class KeyList(Sequence[Key]):
    """A sequence of keys, which are tuples of equally many parts.

    Args:
        columns: one column per part; an Arrow array where all keys have one plain type there.
        once: whether each key is known to occur once.
    """

    def __init__(self, columns: Iterable[Column], once: bool = False) -> None:
        self.columns = tuple(columns)
        self._once = once

    @staticmethod
    def of(keys: Iterable[Key]) -> "KeyList":
        """Return the list of these tuples."""
        parts = [list(part) for part in zip(*keys, strict=True)]
        return KeyList(_column(part) for part in parts)

    @staticmethod
    def of_plain(values: Sequence[object]) -> "KeyList | None":
        """Return the list of keys of one part, each once; None if the values have several types.

        Floats are keys in data, and none that anybody should write.
        """
        column = ids.to_array(values)
        if column is None or column.null_count or not len(column) or ids.is_float(values[0]):
            return None
        return KeyList([pc.unique(column)], once=True)

    @property
    def plain(self) -> bool:
        """Whether each part has one type in all keys."""
        return all(isinstance(column, pa.Array) for column in self.columns)

    def different(self) -> int:
        """Return how many different keys there are."""
        if self._once:
            return len(self)
        if self.plain and len(self.columns) == 1:
            return int(pc.count_distinct(self.columns[0]).as_py())
        return len(set(self))

    def kinds(self, index: int) -> set[type]:
        """Return the types that one part of the keys has, by its index."""
        column = self.columns[index]
        first = column[:1].to_pylist() if isinstance(column, pa.Array) else column
        return set(map(type, first))

    def take(self, wanted: np.ndarray) -> list[Key]:
        """Return the keys at these indexes."""
        indexes = pa.array(wanted)
        parts = [
            column.take(indexes).to_pylist()
            if isinstance(column, pa.Array)
            else [column[index] for index in wanted.tolist()]
            for column in self.columns
        ]
        return list(zip(*parts, strict=True))

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def __getitem__(self, index: Any) -> Any:
        return list(self)[index] if isinstance(index, slice) else self.take(np.array([index]))[0]

    def __iter__(self) -> Iterator[Key]:
        lists = (
            column if isinstance(column, list) else column.to_pylist() for column in self.columns
        )
        return zip(*lists, strict=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (KeyList, tuple)) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"<{len(self)} keys>"


def _column(values: list[object]) -> Column:
    column = ids.to_array(values)
    return values if column is None or column.null_count else column
