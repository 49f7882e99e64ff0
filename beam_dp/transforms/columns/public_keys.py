"""Find the rows' partition keys in a public list of them."""

import dataclasses
import functools
import pickle
import weakref
from typing import Any

import numpy as np
import pyarrow as pa

from beam_dp.mechanisms.numerics import checks, hashing
from beam_dp.transforms.columns import ids
from beam_dp.transforms.columns.key_list import KeyList

_SMALL_RANGE = 1 << 22
_LOOKUPS = 4  # runs with the same keys in one process


@dataclasses.dataclass(frozen=True, eq=False)
class PublicKeys:
    """The public list of partition keys, and the way from a column to places in it.

    A key matches by its canonical form (`ids`), so that "1" in a CSV file is the public key
    1. What is not in the list is dropped before bounding, so it uses up no place of anybody's.
    Copies that were pickled are one object in each process, however many steps hold one.

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
            "PublicPartitions: keys must differ in more than their type: 1, '1' and True are one "
            "partition. List each once.",
        )

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        _KNOWN[self._packed] = self
        return _unpickled, (self._packed,)

    @functools.cached_property
    def _packed(self) -> bytes:
        # Every step that holds the keys is compressed by Beam, slowly: little is left to compress.
        plain = pickle.dumps(self.keys)
        return pickle.dumps((pa.compress(plain, "zstd", asbytes=True), len(plain)))

    def __len__(self) -> int:
        return len(self.keys)

    def places(self, columns: list[pa.Array], key: bytes) -> np.ndarray:
        """Return the place of each row's key in the list; -1 where it is not in it."""
        found = [ids.identify(_encoded(column), key) for column in columns]
        valid = np.logical_and.reduce([valid for _, valid in found])
        return np.where(valid, self.lookup(key).places([identity for identity, _ in found]), -1)

    def lookup(self, key: bytes) -> "_Lookup":
        """Return the table that finds places, made once per process and run."""
        lookups: dict[bytes, _Lookup] = vars(self)["_lookups"]
        found = lookups.get(key)
        if found is None:  # several threads may make it, all the same
            columns = [_identified(part, key) for part in self.keys.columns]
            found = _Lookup(ids.join(columns), hashing.salt(key, "public"))
            if len(lookups) >= _LOOKUPS:
                lookups.clear()
            lookups[key] = found
        return found


def _different(keys: KeyList) -> int:
    """Return how many different partitions a list names."""
    if keys.plain:  # of one type, different keys have different canonical forms
        return keys.different()
    return len({tuple(ids.canonical(part) for part in key) for key in keys})


def _identified(part: pa.Array | list[object], key: bytes) -> np.ndarray:
    if isinstance(part, pa.Array):
        return ids.identify(part, key)[0]
    return ids.identify_values(part, key)[0]


_KNOWN: weakref.WeakValueDictionary[bytes, PublicKeys] = weakref.WeakValueDictionary()


def _unpickled(packed: bytes) -> PublicKeys:
    """Return the keys: those that this process has already, if any."""
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
    """Find identities (2 * columns words) in a fixed list of them."""

    def __init__(self, words: np.ndarray, salt: np.uint64) -> None:
        self._salt = salt
        self._table, self._low = _direct_table(words)
        self._words = words if self._table is None else None

    @functools.cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The keys' places in the order of their hashes, these hashes, and the words."""
        words = _words_of(self._table, self._low) if self._words is None else self._words
        hashes = hashing.fold(words, self._salt)
        order = np.argsort(hashes)
        return order, hashes[order], words[:, order]

    def places(self, identities_: list[np.ndarray]) -> np.ndarray:
        """Return the place of each line in the list; -1 where it is not in it."""
        if self._table is not None and len(identities_) == 1 and identities_[0].shape[0] == 1:
            numbers = identities_[0][0].view(np.int64)
            # Compared before they are subtracted: a difference can wrap around.
            inside = (numbers >= self._low) & (numbers <= self._low + len(self._table) - 1)
            return np.where(inside, self._table[np.where(inside, numbers - self._low, 0)], -1)
        words = ids.join(identities_)
        order, hashes, listed = self._sorted
        at = np.searchsorted(hashes, hashing.fold(words, self._salt))
        at = np.minimum(at, len(hashes) - 1)
        same = (np.take(listed, at, axis=1) == words).all(axis=0)
        return np.where(same, order[at], -1)


def _direct_table(words: np.ndarray) -> tuple[np.ndarray | None, int]:
    """Return a table from integer key minus the lowest to place, where keys are that dense."""
    numbers = words[0].view(np.int64)
    if words.shape[0] > 2 or words[1].any():
        return None, 0
    low, high = int(numbers.min()), int(numbers.max())
    if high - low >= _SMALL_RANGE:
        return None, 0
    table = np.full(high - low + 1, -1, np.int32)
    table[numbers - low] = np.arange(len(numbers))
    return table, low


def _words_of(table: np.ndarray, low: int) -> np.ndarray:
    """Return the words that `_direct_table` made the table of."""
    found = np.flatnonzero(table >= 0)
    words = np.zeros((2, len(found)), np.uint64)
    words[0, table[found]] = (found + low).view(np.uint64)
    return words
