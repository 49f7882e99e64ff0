"""A worker process that is killed fails its job: Beam's in-memory runner would wait for ever.

With `--direct_running_mode=multi_processing` a thread of that runner waits for each worker. It
raises an error when the worker ends otherwise than well, as where the system ran out of memory, and
the runner does not hear of it: the stage that the worker was to do never ends.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator

THREAD = "run_worker"
"""The name of Beam's threads that wait for a worker."""


@contextlib.contextmanager
def noticed(lost: Callable[[], object]) -> Iterator[None]:
    """Call a function once, in a thread of the runner, when workers are lost meanwhile.

    Args:
        lost: what is called; it should end the process.
    """
    before, first = threading.excepthook, threading.Lock()

    def failed(what: threading.ExceptHookArgs, /) -> None:
        before(what)
        is_lost = what.thread is not None and what.thread.name == THREAD
        if is_lost and first.acquire(blocking=False):
            lost()

    threading.excepthook = failed
    try:
        yield
    finally:
        threading.excepthook = before
