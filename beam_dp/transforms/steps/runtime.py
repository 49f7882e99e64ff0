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
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path, PurePosixPath

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


def cores(root: Path = Path("/")) -> int:
    """Return how many cores this process may use, by its affinity and its control groups.

    Args:
        root: where `proc` and `sys` are.
    """
    here = getattr(os, "process_cpu_count", None)  # from Python 3.13 on, with its own option
    affinity = getattr(os, "sched_getaffinity", None)
    if here is not None:
        seen = here() or 1
    else:
        seen = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return max(1, min([seen, *(math.ceil(share) for share in _shares(root))]))


def _shares(root: Path) -> Iterator[float]:
    """Yield each limit of the processor's time that holds for this process, in cores; Linux only.

    A limit holds for all groups below. In a container the path of a group can be that of the host:
    then only the top of what is mounted is there, which is the container's own group.
    """
    try:
        groups = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return
    for line in groups:
        number, kind, path = (*line.split(":", 2), "", "")[:3]
        if number and (kind == "" or "cpu" in kind.split(",")):  # version 2, version 1
            top = root / "sys/fs/cgroup" / ("cpu" if kind else "")
            group = PurePosixPath(path.lstrip("/"))
            for folder in (group, *group.parents):
                yield from _share(top / folder)


def _share(folder: Path) -> Iterator[float]:
    """Yield the limit of one group, in either version of its files, if it has one."""
    for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
            words = " ".join((folder / name).read_text(encoding="ascii") for name in names)
            quota, period = map(int, words.split())
            if quota > 0 and period > 0:
                yield quota / period


def pool() -> futures.ThreadPoolExecutor | None:
    """Return the one pool of this process, for all its bundles; None for one thread.

    It ends, with its threads, when no bundle holds it any more, also where bundles failed.
    """
    count = threads()
    return _shared.get(count) if count > 1 else None
