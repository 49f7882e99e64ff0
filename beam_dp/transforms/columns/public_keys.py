"""The list of public keys, in columns, and the index in it of the partition keys of rows."""

import dataclasses
import datetime
import functools
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beam_dp.mechanisms.numerics import checks, hashing, value_types
from beam_dp.transforms.columns import ids, written_forms
from beam_dp.transforms.columns.partition_keys import Key, clean

_SMALL_RANGE = 1 << 22
_KEPT = 4  # lists, and runs with the same keys, of one process


class KeyList(Sequence[Key]):
    """A sequence of keys in columns, since a Python object per key takes much memory.

    Args:
        columns: one column per part, of one type each.
    """

    def __init__(self, columns: Iterable[pa.Array]) -> None:
        self.columns = tuple(columns)

    @staticmethod
    def of(keys: Iterable[Key]) -> "KeyList":
        """Return the list of these tuples."""
        return KeyList(map(plain_column, zip(*keys, strict=True)))

    def kind(self, index: int) -> type:
        """Return the type of one part of the keys, by its index."""
        return type(self.columns[index][0].as_py())

    def take(self, wanted: np.ndarray) -> list[Key]:
        """Return the keys at these indexes."""
        indexes = pa.array(wanted)
        return list(KeyList(column.take(indexes) for column in self.columns))

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def __getitem__(self, index: Any) -> Any:
        return list(self)[index] if isinstance(index, slice) else self.take(np.array([index]))[0]

    def __iter__(self) -> Iterator[Key]:
        return zip(*(column.to_pylist() for column in self.columns), strict=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (KeyList, tuple)) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


def plain_column(values: Sequence[object]) -> pa.Array:
    """Return one part of all keys as a column.

    Floats can be keys in data, but nobody should list them.

    Raises:
        TypeError: for values that are no keys, and for several types.
    """
    column = ids.to_array(values)
    if column is None:  # of numpy, of decimals, of several types
        times = value_types.of_all(values) == {datetime.datetime}  # at midnight a date, else text
        column = ids.to_array(list(map(ids.canonical if times else clean, values)))
    if column is None or column.null_count or pa.types.is_floating(column.type):
        kinds = sorted({type(value).__name__ for value in values})
        rule = "be an int of 64 bits, a string, a date or a boolean, all of a column of one type, "
        raise checks.ParameterTypeError(
            "PublicPartitions", "a key", f"{rule}not {' and '.join(kinds)}"
        )
    return column


@dataclasses.dataclass(frozen=True, eq=False)
class PublicKeys:
    """The public list of partition keys, and the index in it of each row's key.

    A key matches by its canonical form (`ids`), so that "1" in a CSV file is the public key 1. The
    texts "true" and "false" are keys of booleans, as a released CSV file has them. Rows
    whose key is not in the list are dropped before bounding, so they use up nothing of a person's
    bounds. Pickled copies become one object in each process, however many steps hold a copy.

    Args:
        keys: the key of each partition, once.
    """

    keys: KeyList

    def __reduce__(self) -> tuple[Any, tuple[bytes, int]]:
        return _unpickled, self._packed

    @functools.cached_property
    def _packed(self) -> tuple[bytes, int]:
        # Beam compresses every step that holds the keys, slowly: this leaves it little to compress,
        # as neighbouring keys are alike in most bytes of a word, which stand together here.
        plain = pickle.dumps(self.keys)
        words = np.frombuffer(plain + bytes(-len(plain) % 8), np.uint8).reshape(-1, 8)
        return pa.compress(words.T.tobytes(), "zstd", asbytes=True), words.size

    @functools.cached_property
    def _truths(self) -> list[bool]:
        """Of which parts "true" or "false" is a key."""
        return [
            ids.is_text(part.type)
            and pc.any(pc.is_in(part, pa.array(written_forms.TRUTHS, part.type))).as_py()
            for part in self.keys.columns
        ]

    @functools.cached_property
    def forms(self) -> list[frozenset[str]]:
        """How the keys are written, by part."""
        return list(map(written_forms.of_keys, self.keys.columns))

    def __len__(self) -> int:
        return len(self.keys)

    def indexes(self, columns: list[pa.Array], key: bytes) -> np.ndarray:
        """Return the index of each row's key in the list; -1 where it is not listed."""
        parts = zip(columns, self._truths, strict=True)
        columns = [
            c.cast(pa.string()) if t and pa.types.is_boolean(c.type) else c for c, t in parts
        ]
        identified = [ids.identify(encoded(column), key) for column in columns]
        valid = np.logical_and.reduce([valid for _, valid in identified])
        indexes = _lookup(self, key).indexes([identity for identity, _ in identified])
        return indexes if valid.all() else np.where(valid, indexes, -1)


@functools.lru_cache(_KEPT * 8)
def unlike(public: PublicKeys, part: int, kind: pa.DataType) -> object:
    """Return a part of a key that no value of a type equals; None where there is none.

    Each batch asks for it.
    """
    return written_forms.unlike(public.keys.columns[part], kind)


@functools.lru_cache(_KEPT)
def _unpickled(packed: bytes, size: int) -> PublicKeys:
    """Return the keys, as one object in a process however often they are unpickled."""
    plain = np.frombuffer(pa.decompress(packed, size, "zstd"), np.uint8).reshape(8, -1)
    return PublicKeys(pickle.loads(plain.T.tobytes()))


@functools.lru_cache(_KEPT)
def _lookup(public: PublicKeys, key: bytes) -> "_Lookup":
    """Return the look-up of a list, which is made once per process and run."""
    columns = [ids.identify(part, key)[0] for part in public.keys.columns]
    return _Lookup(ids.join(columns), hashing.salt(key, "public"))


def encoded(column: pa.Array) -> pa.Array:
    """Return text and dates as a dictionary: few different ones are hashed once each."""
    is_hashed = ids.is_text(column.type) or pa.types.is_date(column.type)
    return column.dictionary_encode() if is_hashed else column


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
            # Differences wrap around: below the lowest key they are larger than those of all keys.
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
