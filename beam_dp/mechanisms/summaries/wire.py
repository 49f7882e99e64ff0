"""Pack tables, summaries and owner lines into bytes for the shuffle, as narrow as they fit.

Elements that cross a GroupByKey are bytes: a pickled Arrow slice drags its whole parent buffer
along, and coders per row cost more than the work on the rows. Engines hold and sort elements in
buffers of some MB (Flink's sorter fails at one of 5.5 MB), so each holds `MOST_BYTES` at most.
"""

import marshal
from collections.abc import Callable, Iterator
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from beam_dp.mechanisms.bounding.ordering import changes
from beam_dp.mechanisms.bounding.table import Table, names_of
from beam_dp.mechanisms.summaries.histograms import Summary
from beam_dp.mechanisms.summaries.owner_lines import Owned

_FORMAT = 2  # without references: equal columns become equal bytes
_KINDS = [(f"<{sign}{size}", np.iinfo(f"{sign}{size}")) for sign in "iu" for size in (1, 2, 4, 8)]
_CLASSES: dict[str, Any] = {kind.__name__: kind for kind in (Table, Summary, Owned)}
_LEFT_OUT = ("names", "hashes")
_WORDS, _RUNS = "words", "runs"
_RUN, _APART = 2, 16
"""A column is packed as runs of equal numbers if these have two on average; and in a type that is
too narrow for at most one number in 16, which stand apart."""

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
    """Return what is needed to make the column again; of Python integers these alone."""
    if not isinstance(column, np.ndarray):
        return type(column) is tuple, *map(_packed, column)
    if column.dtype == object:
        return list(map(int, column))
    if column.ndim > 1:
        return _WORDS, *map(_packed, column)
    starts = np.flatnonzero(changes(column[None]))
    if _RUN * len(starts) > len(column):
        return _narrow(column)
    return _RUNS, _narrow(np.diff(starts, append=len(column))), _narrow(column[starts])


def _unpacked(packed: Any) -> Any:
    if isinstance(packed, list):
        return np.array(packed, object)
    kind, *parts = packed
    if isinstance(kind, bool):
        columns = list(map(_unpacked, parts))
        return tuple(columns) if kind else columns
    if kind == _WORDS:
        return np.array(list(map(_unpacked, parts)))
    if kind == _RUNS:
        lengths, heads = map(_wide, parts)
        return np.repeat(heads, lengths)
    return _wide(packed)


def _narrow(column: np.ndarray) -> tuple[Any, ...]:
    """Return the type and the content, and the few numbers that this type does not hold."""
    kinds = _KINDS[4:] if column.dtype == np.uint64 else _KINDS[:4]
    low, high = (int(column.min()), int(column.max())) if column.size else (0, 0)
    size = next(i for i, (_, ends) in enumerate(kinds) if ends.min <= low and high <= ends.max)
    places = np.zeros(0, np.int64)
    while size:
        ends = kinds[size - 1][1]
        outside = (column < ends.min) | (column > ends.max)
        if _APART * np.count_nonzero(outside) > len(column):
            break
        places, size = np.flatnonzero(outside), size - 1
    kind = kinds[size][0]
    packed = kind, column.astype(kind).tobytes()
    return (*packed, _narrow(places), _narrow(column[places])) if len(places) else packed


def _wide(packed: tuple[Any, ...]) -> np.ndarray:
    kind, content, *outside = packed
    narrow = np.frombuffer(content, kind)
    column = narrow.astype(np.uint64 if narrow.dtype.kind == "u" else np.int64)
    if outside:
        places, numbers = map(_wide, outside)
        column[places] = numbers
    return column
