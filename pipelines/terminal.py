"""The messages of a running job: its stages, and nothing that a runner prints of elements."""

import contextlib
import io
import logging
import os
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator

import apache_beam as beam

import beam_dp as dp
from pipelines import (
    failures,
    long_runs,
    lost_job_servers,
    lost_workers,
    progress_line,
    quick_runs,
    stopping,
)
from pipelines.arguments import language

PATIENCE = 1.0
_STANDARD_ERROR = 2
LOST = (
    "error: a worker process was killed, or ended by itself, so the run failed; the system kills "
    "those that take too much memory: give fewer --direct_num_workers"
)
NO_JOB_SERVER = (
    "error: nobody listens at --job_endpoint, so the run failed; start the job server again, or "
    "name another address"
)
_OURS = (dp.UnknownColumns, dp.UnusualParameters)
_terminal = [_STANDARD_ERROR]  # the last one is the operator's
_lines: list[progress_line.Line] = []


def say(words: str) -> None:
    """Print words for the operator on standard error, also while that is held back.

    The run goes on if nobody reads them any more.
    """
    with contextlib.suppress(BrokenPipeError):
        os.write(_terminal[-1], f"{words}\n".encode())


@contextlib.contextmanager
def warned() -> Iterator[None]:
    """Say what the library warns of while a pipeline is built, in one line and in flags."""
    with warnings.catch_warnings(record=True) as caught:
        for kind in _OURS:
            warnings.simplefilter("always", kind)
        yield
    for warning in caught:
        text = str(warning.message)
        if issubclass(warning.category, dp.UnusualParameters):
            say(f"Warning: {text.partition(': ')[2]}")
        elif issubclass(warning.category, dp.UnknownColumns):
            say(f"Warning: {language.translated(text)}")
        else:
            warnings.showwarning(
                warning.message, warning.category, warning.filename, warning.lineno
            )


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Hold back what Beam logs and prints, for that quotes elements; allow both again at the end.

    A failed run can leave threads at work, with elements to log. Logging is allowed again only if
    they end soon: otherwise it is silent until the process ends, which is next.
    """
    before, running, done = logging.root.manager.disable, set(threading.enumerate()), False
    logging.disable(max(before, logging.ERROR))
    try:
        with contextlib.redirect_stderr(io.StringIO()), _no_standard_error():
            try:
                yield
                done = True
            finally:
                done = done or _ended(set(threading.enumerate()) - running)
    finally:
        if done:
            logging.disable(before)


def _ended(threads: set[threading.Thread]) -> bool:
    """Give threads a second to end, all together, and return whether they have."""
    until = time.monotonic() + PATIENCE
    while threads & set(threading.enumerate()) and time.monotonic() < until:
        time.sleep(0.01)  # threads of other libraries cannot be joined
    return threads.isdisjoint(threading.enumerate())


@contextlib.contextmanager
def _no_standard_error() -> Iterator[None]:
    """Redirect the descriptor itself: worker processes inherit it, and print tracebacks."""
    _terminal.append(os.dup(_STANDARD_ERROR))
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), _STANDARD_ERROR)
    try:
        yield
    finally:
        kept = _terminal.pop()
        os.dup2(kept, _STANDARD_ERROR)
        os.close(kept)


def stage(words: str) -> None:
    """Name the stage that a job has reached, in the line of its progress or in one of its own."""
    if _lines:
        _lines[-1].stage(words)
    else:
        say(words)


@contextlib.contextmanager
def _shown(made: beam.Pipeline, first: str, reads: str) -> Iterator[None]:
    """Show the stages of a run, with the share of the input that is read where that is known."""
    runner = type(made.runner).__name__
    with progress_line.line(_terminal[-1], first, reads, runner) as line:
        if line is None:
            say(first)
            yield
            return
        _lines.append(line)
        try:
            yield
        finally:
            _lines.remove(line)


def run(
    made: beam.Pipeline,
    first: str,
    show_errors: bool = False,
    reads: str = "",
    quiet: bool = False,
) -> None:
    """Run a pipeline to its end and show its stages; exit with one line if it fails.

    Args:
        made: the pipeline.
        first: the name of the first stage.
        show_errors: whether the error of a failed run is shown as it is, with data that it quotes.
        reads: the files that it reads, whose share is shown on a terminal; "" for none.
        quiet: whether nothing is shown of a run that succeeds.
    """
    long_runs.allow(made)
    try:
        shown = contextlib.nullcontext() if quiet else _shown(made, first, reads)
        with shown, hushed(), quick_runs.short_waits(), lost_workers.noticed(_lost_worker):
            with lost_job_servers.noticed(made, _lost_job_server):
                running = made.run()
            running.wait_until_finish()
    except failures.RAISED as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        if show_errors:
            sys.stderr.write("".join(traceback.format_exception(error)))
        runner = type(made.runner).__name__
        sys.exit(f"error: {failures.explain(error, runner, show_errors)}")


def _lost_worker() -> None:
    """Say that a worker is lost, and end.

    A Ctrl-C at a terminal ends the workers too: then that signal, which may take a moment to come
    here, ends the job.
    """
    time.sleep(PATIENCE)
    _end(LOST)


def _lost_job_server() -> None:
    """Say that the job server is lost, and end, at once: it might come back, and run the job."""
    _end(NO_JOB_SERVER)


def _end(words: str) -> None:
    """Say what is lost, and end: its runner waits for it, in the main thread."""
    if not stopping.is_ending():
        say(words)
    stopping.end(1)


def announce(words: str, done: object) -> str:
    """Print that a stage has begun; Beam calls this once `done` is there, which is unused."""
    stage(words)
    return words


def when_ready(next_stage: str, released: beam.PCollection[object]) -> None:
    """Name the next stage as soon as `released` is computed; it is public, counts would not be."""
    words = released.pipeline | "Stage" >> beam.Create([next_stage])
    _ = words | "Announce" >> beam.Map(announce, beam.pvalue.AsIter(released))
