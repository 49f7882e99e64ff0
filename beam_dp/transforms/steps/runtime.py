"""Memory and threads of a worker: return freed memory, and let a second thread work ahead.

The allocators of C and Arrow keep freed memory, in pieces, for each thread that allocated it. A
stage that read and sorted columns leaves some hundred MiB of it. The next stage, with other threads
and other sizes, would not use that memory but add to it. A worker's machine must have as much
memory as the peak, so returning it is worth some milliseconds.
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
    """Return `malloc_trim` of glibc; elsewhere a function that does nothing."""
    if os.name != "posix":
        return lambda keep: None
    return getattr(ctypes.CDLL(None), "malloc_trim", lambda keep: None)


Taken = TypeVar("Taken")
Made = TypeVar("Made")


class Ahead(Generic[Taken, Made]):
    """Apply a function to a stream of elements, in order, one element ahead of the caller.

    numpy and Arrow let other threads run while they work on a column, so that this work costs no
    extra time where a second core is idle. The results and their order are the same; an exception
    of the function is raised where its result would have been yielded.

    Args:
        function: is applied in one thread, to one element after the other.
    """

    def __init__(self, function: Callable[[Taken], Made]) -> None:
        self._function = function
        self._thread = futures.ThreadPoolExecutor(1)
        self._waiting: list[futures.Future[Made]] = []

    def put(self, element: Taken) -> Iterator[Made]:
        """Take an element; yield the result of the element before it."""
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
