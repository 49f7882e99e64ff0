"""Memory and threads of a worker: return freed memory, and work on columns in several threads.

The allocators of C and Arrow keep freed memory, in pieces, for each thread that allocated it. A
stage that read and sorted columns leaves some hundred MiB of it. The next stage, with other threads
and other sizes, would not use that memory but add to it. A worker's machine must have as much
memory as the peak, so returning it is worth some milliseconds.
"""

import ctypes
import functools
import os
import threading
from collections.abc import Callable
from concurrent import futures
from typing import Any

import pyarrow as pa

_KEPT = ((-1, 1 << 30), (-2, 1 << 25), (-3, 1 << 25))
"""What glibc's `mallopt` is told, by the numbers of M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD.
Older versions take no more for the last, and would keep the least for having been told the others."""
THREADS = "BEAM_DP_THREADS"
"""The environment variable that says how many threads a process uses for its columns."""
MOST_CORES = 8
_RAISED = (BaseException,)


def keep_freed() -> None:
    """Let the process keep what it frees, until `give_back`, where its allocator can.

    Columns of some MiB are made and freed all the time. New pages for each of them take a tenth of
    the time of a job without bounds. This holds for the whole process, so it is for jobs alone.
    """
    for parameter, value in _KEPT:
        _of_libc("mallopt")(parameter, value)


def give_back() -> None:
    """Return freed memory to the system, where its allocator can; values never change."""
    pa.default_memory_pool().release_unused()
    _of_libc("malloc_trim")(0)


@functools.cache
def _of_libc(name: str) -> Callable[..., object]:
    """Return a function of glibc; elsewhere one that does nothing."""
    if os.name != "posix":
        return lambda *given: None
    return getattr(ctypes.CDLL(None), name, lambda *given: None)


def threads() -> int:
    """Return how many threads a process uses for its columns: `THREADS`, or its cores, up to 8."""
    given = os.environ.get(THREADS, "")
    if given.isascii() and given.isdigit() and int(given):
        return int(given)
    affinity = getattr(os, "sched_getaffinity", None)
    return min(len(affinity(0)) if affinity is not None else os.cpu_count() or 1, MOST_CORES)


def asked(function: Callable[..., Any], *given: Any) -> futures.Future[Any]:
    """Return what a thread of its own will return, which the end of the process does not wait for."""
    made: futures.Future[Any] = futures.Future()
    threading.Thread(target=_ask, args=(made, function, *given), daemon=True).start()
    return made


def _ask(made: futures.Future[Any], function: Callable[..., Any], *given: Any) -> None:
    try:
        made.set_result(function(*given))
    except _RAISED as error:
        made.set_exception(error)


def pool() -> futures.ThreadPoolExecutor | None:
    """Return threads for a bundle, which end when it holds them no more; None for one thread."""
    count = threads()
    return futures.ThreadPoolExecutor(count, "beam_dp") if count > 1 else None
