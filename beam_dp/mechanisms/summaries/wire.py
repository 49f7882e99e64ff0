"""Pack tables, summaries and owner lines into bytes for the shuffle, as narrow as they fit.

Elements that cross a GroupByKey are bytes: a pickled Arrow slice drags its whole parent buffer
along, and coders per row cost more than the work on the rows. Engines hold and sort elements in
buffers of some MB (Flink's sorter fails at one of 5.5 MB), so each holds `MOST_BYTES` at most.
"""

import marshal
from collections.abc import Callable, Iterator
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from beam_dp.mechanisms.bounding.table import Table, names_of
from beam_dp.mechanisms.summaries.histograms import Summary
from beam_dp.mechanisms.summaries.owner_lines import Owned

_FORMAT = 2  # without references: equal columns become equal bytes
_KINDS = [(f"<{sign}{size}", np.iinfo(f"{sign}{size}")) for sign in "iu" for size in (1, 2, 4, 8)]
_CLASSES: dict[str, Any] = {kind.__name__: kind for kind in (Table, Summary, Owned)}
_LEFT_OUT = ("names", "hashes")

MOST_BYTES = 2 << 20
"""The most bytes of an element that holds several lines."""


class Sliced(Protocol):
    """Lines that can be cut anywhere."""

    def __len__(self) -> int: ...

    def take(self, index: slice, /) -> Self:
        """Return some of the lines."""


Lines = TypeVar("Lines", bound=Sliced)


def blobs(lines: Table | Summary | Owned) -> Iterator[bytes]:
    """Yield what `pack` makes of lines, in parts of at most `MOST_BYTES`."""
    return (packed for _, packed in parts(lines, pack))


def parts(lines: Lines, packed: Callable[[Lines], bytes]) -> Iterator[tuple[Lines, bytes]]:
    """Yield parts of lines and their bytes, at most `MOST_BYTES` each: a single line is not cut.

    Args:
        lines: what is cut.
        packed: makes bytes of lines.
    """
    content, size = packed(lines), len(lines)
    if len(content) <= MOST_BYTES or size < 2:
        yield lines, content
        return
    step = max(1, min(size // 2, size * MOST_BYTES // (2 * len(content))))
    for start in range(0, size, step):
        yield from parts(lines.take(slice(start, start + step)), packed)


def pack(lines: Table | Summary | Owned) -> bytes:
    """Return lines as bytes, with the names of their own partitions only, and without hashes."""
    columns = {
        name: _packed(column) for name, column in vars(lines).items() if name not in _LEFT_OUT
    }
    names = names_of(lines.partition, lines.names)
    return marshal.dumps((type(lines).__name__, names, columns), _FORMAT)


def unpack(blob: bytes) -> Any:
    """Return the lines that `pack` packed."""
    kind, names, columns = marshal.loads(blob)
    unpacked = {name: _unpacked(column) for name, column in columns.items()}
    return _CLASSES[kind](**unpacked, names=names)


def _packed(column: Any) -> Any:
    """Return the type, the shape and the content; of a column of Python integers these alone."""
    if not isinstance(column, np.ndarray):
        return type(column) is tuple, *map(_packed, column)
    if column.dtype == object:
        return list(map(int, column))
    kind = narrowest(column)
    return kind, column.shape, column.astype(kind).tobytes()


def _unpacked(packed: Any) -> Any:
    if isinstance(packed, list):
        return np.array(packed, object)
    kind, *parts = packed
    if isinstance(kind, bool):
        columns = list(map(_unpacked, parts))
        return tuple(columns) if kind else columns
    shape, content = parts
    narrow = np.frombuffer(content, kind).reshape(shape)
    return narrow.astype(np.uint64 if narrow.dtype.kind == "u" else np.int64)


def narrowest(column: np.ndarray) -> str:
    """Return the narrowest type that holds all values: most identities and counts are small."""
    family = _KINDS[4:] if column.dtype == np.uint64 else _KINDS[:4]
    low, high = (int(column.min()), int(column.max())) if column.size else (0, 0)
    return next(kind for kind, ends in family if ends.min <= low and high <= ends.max)
