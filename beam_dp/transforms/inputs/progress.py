"""How far this process has read its input: the share of the bytes, for who waits at a terminal.

*What it tells.* Which part of the bytes of a file was read by this process so far. The file lies
open to whoever started the process, with its size; a share of bytes counts no rows and no people,
and where it stands at a moment is a matter of time, which a runner shows as well. It is meant for
the terminal of that person, and goes nowhere else: into no log, no file, no result, no message.
Nothing is counted unless somebody watches.
"""

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator

from apache_beam.io.filesystems import FileSystems

_lock = threading.RLock()  # a reader that is collected meanwhile closes its file
_watched: list["Reading"] = []


@dataclasses.dataclass(eq=False)
class Reading:
    """The bytes that are to be read, and those that were.

    Attributes:
        total: how many there are.
        done: how many were read of what is not open.
        open: for each open file, what tells how many of its bytes were read.
    """

    total: int
    done: float = 0.0
    open: list[Callable[[], int]] = dataclasses.field(default_factory=list)

    @property
    def share(self) -> float:
        """The share that was read, from 0 to 1."""
        with _lock:
            now = self.done + sum(position() for position in self.open)
        return min(1.0, now / self.total) if self.total else 0.0


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
    with _lock:
        for reading in _watched:
            reading.done += count


@contextlib.contextmanager
def following(position: Callable[[], int]) -> Iterator[None]:
    """Count the bytes of a file that is open meanwhile.

    Args:
        position: tells how many of its bytes were read.
    """
    with _lock:
        readings = tuple(_watched)
        for reading in readings:
            reading.open.append(position)
    try:
        yield
    finally:
        with _lock:
            for reading in readings:
                reading.open.remove(position)
                reading.done += position()
