"""How far this process has read its input: the share of the bytes, for who waits at a terminal.

*What it tells.* Which part of the bytes of a file was read by this process so far. The file lies
open to whoever started the process, with its size; a share of bytes counts no rows and no people,
and where it stands at a moment is a matter of time, which a runner shows as well. It is meant for
the terminal of that person, and goes nowhere else: into no log, no file, no result, no message.
Nothing is counted unless somebody watches.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator

from apache_beam.io.filesystems import FileSystems

_lock = threading.Lock()
_watched: list["Reading"] = []


class Reading:
    """The bytes that are to be read, and those that were.

    Args:
        total: how many there are.
    """

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0.0
        self._open: list[Callable[[], int]] = []

    @property
    def share(self) -> float:
        """The share that was read, from 0 to 1."""
        with _lock:
            now = self._done + sum(position() for position in self._open)
        return min(1.0, now / self._total) if self._total else 0.0

    def add(self, count: float) -> None:
        """Count bytes that were read."""
        with _lock:
            self._done += count

    def begin(self, position: Callable[[], int]) -> None:
        """Count the bytes of an open file, which knows how far it was read."""
        with _lock:
            self._open.append(position)

    def end(self, position: Callable[[], int]) -> None:
        """Keep the count of a file that is closed next."""
        with _lock:
            self._open.remove(position)
            self._done += position()


@contextlib.contextmanager
def watched(pattern: str) -> Iterator[Reading]:
    """Count what is read meanwhile of some files.

    Args:
        pattern: paths and globs with commas between.
    """
    matched = FileSystems.match(pattern.split(","))
    reading = Reading(sum(file.size_in_bytes for one in matched for file in one.metadata_list))
    _watched.append(reading)
    try:
        yield reading
    finally:
        _watched.remove(reading)


def add(count: float) -> None:
    """Count bytes that were read."""
    for reading in _watched:
        reading.add(count)


@contextlib.contextmanager
def following(position: Callable[[], int]) -> Iterator[None]:
    """Count the bytes of a file that is open meanwhile.

    Args:
        position: tells how many of its bytes were read.
    """
    readings = tuple(_watched)
    for reading in readings:
        reading.begin(position)
    try:
        yield
    finally:
        for reading in readings:
            reading.end(position)
