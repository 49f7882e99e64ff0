"""What a worker does beside the work: free memory goes back, and a second thread works ahead.

The allocators of C and Arrow keep what was freed, in pieces, for each thread that asked for it. A
stage that read and sorted columns leaves some hundred MiB of that, which the next stage, in
other threads and of other sizes, would not use but add to. A worker's peak is what its machine must
have, so it is worth some milliseconds.
"""

import ctypes
import functools
import os
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Generic, TypeVar

import pyarrow as pa


def give_back() -> None:
    """Return freed memory to the system, where its allocator can; values never change."""
    pa.default_memory_pool().release_unused()
    _trim()(0)


@functools.cache
def _trim() -> Callable[[int], object]:
    """Return `malloc_trim` of glibc; elsewhere something that does nothing."""
    if os.name != "posix":
        return lambda keep: None
    return getattr(ctypes.CDLL(None), "malloc_trim", lambda keep: None)


Taken = TypeVar("Taken")
Made = TypeVar("Made")


class Ahead(Generic[Taken, Made]):
    """Apply a function to a stream of elements, in order, one element ahead of who uses them.

    numpy and Arrow let other threads run while they work on a column, so that this work costs no
    time of its own where a second core is idle. What comes out, and in which order,
    is the same; an exception of the function is raised where its result would have come out.

    Args:
        function: what is applied, in one thread, one element after the other.
    """

    def __init__(self, function: Callable[[Taken], Made]) -> None:
        self._function = function
        self._thread = futures.ThreadPoolExecutor(1)
        self._waiting: list[futures.Future[Made]] = []

    def put(self, element: Taken) -> Iterator[Made]:
        """Take an element; yield the result of the one before it."""
        finished, self._waiting = (
            self._waiting,
            [self._thread.submit(self._function, element)],
        )
        for future in finished:
            yield future.result()

    def drain(self) -> Iterator[Made]:
        """Yield the last result, and end the thread."""
        finished, self._waiting = self._waiting, []
        for future in finished:
            yield future.result()
        self._thread.shutdown()
