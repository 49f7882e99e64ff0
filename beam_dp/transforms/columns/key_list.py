"""A list of partition keys in columns: a million of them are no million Python objects."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beam_dp.transforms.columns import ids
from beam_dp.transforms.columns.partition_keys import Key

Column = pa.Array | list[object]


class KeyList(Sequence[Key]):
    """Keys of equally many parts, as a sequence of tuples.

    Args:
        columns: each part of all keys; an Arrow array where all are of one plain type.
        once: whether it is known that each key is there once.
    """

    def __init__(self, columns: Iterable[Column], once: bool = False) -> None:
        self.columns = tuple(columns)
        self._once = once

    @staticmethod
    def of(keys: Iterable[Key]) -> "KeyList":
        """Return the list of some tuples."""
        parts = [list(part) for part in zip(*keys, strict=True)]
        return KeyList(_column(part) for part in parts)

    @staticmethod
    def of_plain(values: Sequence[object]) -> "KeyList | None":
        """Return the list of keys with one part, each once; None if they have several types."""
        column = ids.to_array(values)
        if column is None or column.null_count or not len(column):
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
            return pc.count_distinct(self.columns[0]).as_py()
        return len(set(self))

    def kinds(self, place: int) -> set[type]:
        """Return the types of one part."""
        column = self.columns[place]
        first = column[:1].to_pylist() if isinstance(column, pa.Array) else column
        return set(map(type, first))

    def take(self, places: np.ndarray) -> list[Key]:
        """Return the keys at some places."""
        listed = pa.array(places)
        parts = [
            column.take(listed).to_pylist()
            if isinstance(column, pa.Array)
            else [column[place] for place in places.tolist()]
            for column in self.columns
        ]
        return list(zip(*parts, strict=True))

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def __getitem__(self, place: Any) -> Any:
        return list(self)[place] if isinstance(place, slice) else self.take(np.array([place]))[0]

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
