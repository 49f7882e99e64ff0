"""Run a pipeline in the memory of this process, with no word of its data in any message.

What Beam raises, logs and prints of a run that fails quotes elements. So its log and its prints are
held back while it runs, and of its errors only those texts come out that this package wrote: they
name parameters, columns, types and paths.
"""

import contextlib
import io
import logging
import re
import threading
import time
from collections.abc import Iterator

import apache_beam as beam

RUNNER = "FnApiRunner"
"""Beam's runner in the memory of this process: it asks for no service and no other process."""
PATIENCE = 1.0
_RAISED = (Exception,)
_OWNERS = r"(?:ReadRows: |WriteRows: |PrivateAggregate: |column '|\[Errno \d+\] )"
_KIND = r"(?:\w+: (?:beam_dp\.[\w.]+: )?|beam_dp\.[\w.]+: )"
_OURS = re.compile(rf"^{_KIND}({_OWNERS}.*?)(?: \[while running .*)?$", re.MULTILINE)


class RunFailed(RuntimeError):
    """A run failed: the message is without data, or it says where data may be seen."""


def run(owner: str, made: beam.Pipeline, show_errors: bool = False) -> None:
    """Run a pipeline to its end.

    Args:
        owner: the name that errors begin with.
        made: the pipeline.
        show_errors: whether the error of a failed run is raised as it is, with data that it quotes.

    Raises:
        RunFailed: without the error that was its cause, for that quotes data.
    """
    error = _failure(made)
    if error is None:
        return
    if show_errors:
        raise error
    ours = _OURS.findall(f"{type(error).__name__}: {error}")
    if ours:
        raise RunFailed(ours[-1])
    raise RunFailed(
        f"{owner}: the run failed with {type(error).__name__}; its text may quote data and is not "
        "shown. Write show_errors=True to see it."
    )


def _failure(made: beam.Pipeline) -> Exception | None:
    with hushed():
        try:
            made.run().wait_until_finish()
        except _RAISED as error:
            return error
    return None


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Hold back what Beam logs and prints.

    A failed run can leave threads at work, with elements to log: the log stays silent for as long
    as they live, but for at most a second.
    """
    log, running = logging.getLogger("apache_beam"), set(threading.enumerate())
    nothing, before = logging.NullHandler(), log.propagate
    log.addHandler(nothing)
    log.propagate = False
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        _wait_for(set(threading.enumerate()) - running)
        log.propagate = before
        log.removeHandler(nothing)


def _wait_for(threads: set[threading.Thread]) -> None:
    until = time.monotonic() + PATIENCE
    while threads & set(threading.enumerate()) and time.monotonic() < until:
        time.sleep(0.01)  # threads of other libraries cannot be joined
