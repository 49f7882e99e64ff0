"""The list of public keys, in columns, and the index in it of the partition keys of rows."""

import dataclasses
import functools
import pickle
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beam_dp.mechanisms.numerics import checks, hashing
from beam_dp.transforms.columns import ids
from beam_dp.transforms.columns.partition_keys import Key

_SMALL_RANGE = 1 << 22
_LOOKUPS = 4  # runs with the same keys in one process


class KeyList(Sequence[Key]):
    """A sequence of keys in columns, since a Python object per key takes much memory.

    Args:
        columns: one column per part; an Arrow array where all keys have one plain type there.
    """

    def __init__(self, columns: Iterable[ids.Cells]) -> None:
        self.columns = tuple(columns)

    @staticmethod
    def of(keys: Iterable[Key]) -> "KeyList":
        """Return the list of these tuples."""
        parts = [list(part) for part in zip(*keys, strict=True)]
        columns = map(plain_column, parts)
        return KeyList(
            part if column is None else column for part, column in zip(parts, columns, strict=True)
        )

    @staticmethod
    def of_plain(values: Sequence[object]) -> "KeyList | None":
        """Return the list of keys of one part, each once; None if the values have several types."""
        column = plain_column(values)
        return None if column is None else KeyList([pc.unique(column)])

    @property
    def plain(self) -> bool:
        """Whether each part has one type in all keys."""
        return all(isinstance(column, pa.Array) for column in self.columns)

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


def plain_column(values: Sequence[object]) -> pa.Array | None:
    """Return key parts of one plain type as an Arrow column; None for others, and for none.

    Floats are keys in data, and none that anybody should write.
    """
    column = ids.to_array(values)
    if column is None or column.null_count or not len(column):
        return None
    return None if pa.types.is_floating(column.type) else column


@dataclasses.dataclass(frozen=True, eq=False)
class PublicKeys:
    """The public list of partition keys, and the index in it of each row's key.

    A key matches by its canonical form (`ids`), so that "1" in a CSV file is the public key 1. Rows
    whose key is not in the list are dropped before bounding, so they use up nothing of a person's
    bounds. Pickled copies become one object in each process, however many steps hold a copy.

    Args:
        keys: one tuple of key parts per partition, each once.
    """

    keys: KeyList

    def __post_init__(self) -> None:
        if not isinstance(self.keys, KeyList):
            object.__setattr__(self, "keys", KeyList.of(self.keys))
        object.__setattr__(self, "_lookups", {})
        checks.require(
            _different(self.keys) == len(self.keys),
            "PublicPartitions",
            "keys",
            "differ in more than their type: 1, '1' and True are one partition",
            "List each once.",
        )

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        _KNOWN[self._packed] = self
        return _unpickled, (self._packed,)

    @functools.cached_property
    def _packed(self) -> bytes:
        # Beam compresses every step that holds the keys, slowly: this leaves it little to compress.
        plain = pickle.dumps(self.keys)
        return pickle.dumps((pa.compress(plain, "zstd", asbytes=True), len(plain)))

    def __len__(self) -> int:
        return len(self.keys)

    def indexes(self, columns: list[pa.Array], key: bytes) -> np.ndarray:
        """Return the index of each row's key in the list; -1 where it is not listed."""
        identified = [ids.identify(_encoded(column), key) for column in columns]
        valid = np.logical_and.reduce([valid for _, valid in identified])
        indexes = self.lookup(key).indexes([identity for identity, _ in identified])
        return indexes if valid.all() else np.where(valid, indexes, -1)

    def lookup(self, key: bytes) -> "_Lookup":
        """Return the look-up of the list, which is made once per process and run."""
        lookups: dict[bytes, _Lookup] = vars(self)["_lookups"]
        lookup = lookups.get(key)
        if lookup is None:  # several threads may make it, with the same result
            columns = [ids.identify(part, key)[0] for part in self.keys.columns]
            lookup = _Lookup(ids.join(columns), hashing.salt(key, "public"))
            if len(lookups) >= _LOOKUPS:
                lookups.clear()
            lookups[key] = lookup
        return lookup


def _different(keys: KeyList) -> int:
    """Return how many different partitions a list names."""
    if keys.plain:  # of one type, different keys have different canonical forms
        single = len(keys.columns) == 1
        return int(pc.count_distinct(keys.columns[0]).as_py()) if single else len(set(keys))
    return len({tuple(ids.canonical(part) for part in key) for key in keys})


_KNOWN: weakref.WeakValueDictionary[bytes, PublicKeys] = weakref.WeakValueDictionary()


def _unpickled(packed: bytes) -> PublicKeys:
    """Return the keys; the object that this process has already, if any."""
    known = _KNOWN.get(packed)
    if known is None:
        content, size = pickle.loads(packed)
        plain = pa.decompress(content, size, "zstd", asbytes=True)
        known = _KNOWN[packed] = PublicKeys(pickle.loads(plain))
    return known


def _encoded(column: pa.Array) -> pa.Array:
    """Return text as a dictionary: few different keys are hashed once each."""
    return column.dictionary_encode() if ids.is_text(column.type) else column


class _Lookup:
    """Find identities (2 * columns words) in a fixed list of identities."""

    def __init__(self, words: np.ndarray, salt: np.uint64) -> None:
        self._salt = salt
        self._words = words
        self._table, self._low = _direct_table(words)

    @functools.cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The indexes of the keys in the order of their hashes, these hashes, and the words."""
        hashes = hashing.fold(self._words, self._salt)
        order = np.argsort(hashes)
        return order, hashes[order], self._words[:, order]

    def indexes(self, identities_: list[np.ndarray]) -> np.ndarray:
        """Return the index of each identity in the list; -1 where it is not listed."""
        if self._table is not None and len(identities_) == 1 and identities_[0].shape[0] == 1:
            # Differences wrap around: of numbers below the lowest key they are larger than any key.
            offsets = identities_[0][0] - np.uint64(self._low % (1 << 64))
            np.minimum(offsets, np.uint64(len(self._table) - 1), out=offsets)
            return np.asarray(self._table[offsets.view(np.int64)], np.int64)
        words = ids.join(identities_)
        order, hashes, listed = self._sorted
        at = np.searchsorted(hashes, hashing.fold(words, self._salt))
        at = np.minimum(at, len(hashes) - 1)
        same = (np.take(listed, at, axis=1) == words).all(axis=0)
        return np.where(same, order[at], -1)


def _direct_table(words: np.ndarray) -> tuple[np.ndarray | None, int]:
    """Return a table from integer key minus lowest key to index, where keys are dense enough.

    Its last entry is that of no key.
    """
    numbers = words[0].view(np.int64)
    if words.shape[0] > 2 or words[1].any():
        return None, 0
    low, high = int(numbers.min()), int(numbers.max())
    if high - low >= _SMALL_RANGE:
        return None, 0
    table = np.full(high - low + 2, -1, np.int32)
    table[numbers - low] = np.arange(len(numbers))
    return table, low
