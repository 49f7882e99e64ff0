"""Give memory that is free back to the system, between the stages of a run.

The allocators of C and Arrow keep what was freed, in pieces, for each thread that asked for it. A
stage that read and sorted columns leaves some hundred MiB of that, which the next stage, in
other threads and of other sizes, would not use but add to. A worker's peak is what its machine must
have, so it is worth some milliseconds.
"""

import ctypes
import functools
import os
from collections.abc import Callable

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
