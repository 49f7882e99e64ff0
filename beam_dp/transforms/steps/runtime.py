"""Memory and threads of a worker: return freed memory, and share threads between bundles.

The allocators of C and Arrow keep freed memory, in pieces, for each thread that allocated it. A
stage that read and sorted columns leaves some hundred MiB of it. The next stage, with other threads
and other sizes, would not use that memory but add to it. A worker's machine must have as much
memory as the peak, so returning it is worth some milliseconds.
"""

import contextlib
import ctypes
import functools
import math
import os
import threading
import weakref
from collections.abc import Callable
from concurrent import futures
from pathlib import Path

import pyarrow as pa

THREADS = "BEAM_DP_THREADS"
"""The environment variable that says how many threads a process uses for its columns."""
MOST_THREADS, MOST_CORES = 1024, 8


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


class _Shared:
    """The pool of this process; nothing of it is left when no bundle holds it any more."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, as after a fork: a forked process has the lock, but none of the threads."""
        self._lock = threading.Lock()
        self._pool: weakref.ref[futures.ThreadPoolExecutor] | None = None

    def get(self, count: int) -> futures.ThreadPoolExecutor:
        """Return the pool that others hold, or a new one of so many threads."""
        with self._lock:
            pool = self._pool() if self._pool is not None else None
            if pool is None:
                pool = futures.ThreadPoolExecutor(count, "beam_dp")
                self._pool = weakref.ref(pool)
            return pool


_shared = _Shared()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared.forget)


def threads() -> int:
    """Return how many threads a process uses for its columns: `THREADS`, or its cores, up to 8.

    A container whose share of the processor is limited has no more cores than its share.
    """
    given = os.environ.get(THREADS, "")
    if given.isascii() and given.isdigit() and 0 < int(given) <= MOST_THREADS:
        return int(given)
    return min(cores(), MOST_CORES)


def cores(limit: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Return how many cores this process may use, by its affinity and the limit of its container.

    Args:
        limit: the file in which a container on Linux sees its share of the processor's time.
    """
    here = getattr(os, "process_cpu_count", None)  # from Python 3.13 on, with its own option
    affinity = getattr(os, "sched_getaffinity", None)
    if here is not None:
        seen = here() or 1
    else:
        seen = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):  # no such file, or "max"
        quota, period = map(int, limit.read_text(encoding="ascii").split())
        seen = min(seen, math.ceil(quota / period))
    return max(1, int(seen))


def pool() -> futures.ThreadPoolExecutor | None:
    """Return the one pool of this process, for all its bundles; None for one thread.

    It ends, with its threads, when no bundle holds it any more, also where bundles failed.
    """
    count = threads()
    return _shared.get(count) if count > 1 else None
