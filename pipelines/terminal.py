"""The messages of a running job: its stages, and nothing that a runner prints of elements.

A long run in this process shows one line on a terminal, never in a file: the stage, the share of
the input that was read, the time (`transforms.io.open_files` says what that share reveals).
"""

import contextlib
import importlib
import io
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator

import apache_beam as beam

import beam_dp as dp
from beam_dp.results.local_release import have_ended
from beam_dp.transforms.io import open_files
from beam_dp.transforms.steps import trial
from pipelines import messages

PATIENCE = 1.0
DELAY = 1.0
"""So many seconds a run takes before it has a line."""
_EVERY = 0.2
_READ = "All is read: bounding and drawing"
_FORM = "{desc} {percentage:3.0f}% |{bar}| {elapsed}"
_STANDARD_ERROR = 2
_terminal = [_STANDARD_ERROR]  # the last one is the operator's
_stages: list[str] = []  # of the line, while there is one


def say(words: str) -> None:
    """Print words for the operator on standard error, also while that is held back.

    The run goes on if nobody reads them any more.
    """
    with contextlib.suppress(BrokenPipeError):
        os.write(_terminal[-1], f"{words}\n".encode())


def width() -> int | None:
    """Return the columns of the terminal; None where the output is none."""
    if not sys.stdout.isatty():
        return None
    return os.get_terminal_size(sys.stdout.fileno()).columns


@contextlib.contextmanager
def warned() -> Iterator[None]:
    """Say what the library warns of while a pipeline is built, in one line and in flags."""
    with warnings.catch_warnings(record=True) as caught:
        for kind in (dp.UnknownColumns, dp.UnusualParameters):
            warnings.simplefilter("always", kind)
        yield
    for warning in caught:
        text = str(warning.message)
        if issubclass(warning.category, dp.UnusualParameters):
            say(f"Warning: {text.partition(': ')[2]}")
        elif issubclass(warning.category, dp.UnknownColumns):
            say(f"Warning: {messages.translated(text)}")
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
                done = done or have_ended(set(threading.enumerate()) - running, PATIENCE)
    finally:
        if done:
            logging.disable(before)


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
    if _stages:
        _stages[-1] = words
    else:
        say(words)


@contextlib.contextmanager
def shown(first: str, reads: str, runner: str) -> Iterator[None]:
    """Show the stages of a run, with the share of the input that is read where that is known.

    Args:
        first: the name of the first stage.
        reads: the files that are read; "" for none.
        runner: the name of the runner's class.
    """
    if not reads or runner not in trial.LOCAL or not os.isatty(_terminal[-1]):
        say(first)
        yield
        return
    ended = threading.Event()
    own = os.dup(_terminal[-1])  # standard error itself is held back meanwhile
    with open_files.watched(reads) as reading:
        painter = threading.Thread(target=_paint, args=(own, reading, ended), daemon=True)
        _stages.append(first)
        painter.start()
        try:
            yield
        finally:
            ended.set()
            painter.join()
            _stages.pop()
            os.close(own)


def _paint(terminal: int, reading: open_files.Reading, ended: threading.Event) -> None:
    """Write the line anew a few times a second, and clear it at the end."""
    if ended.wait(DELAY):
        return
    tqdm = importlib.import_module("tqdm").tqdm
    tqdm.monitor_interval = 0  # no thread and no process of its own
    tqdm.set_lock(threading.RLock())
    first = _stages[-1]
    form = {"bar_format": _FORM, "leave": False, "total": 100, "nrows": 2}
    encoding = getattr(sys.__stderr__, "encoding", None) or "utf-8"
    with (
        os.fdopen(terminal, "w", encoding=encoding, closefd=False) as output,
        tqdm(desc=first, file=output, **form) as bar,
    ):
        while not ended.wait(_EVERY):
            share = reading.share
            all_read = share >= 1 and _stages[-1] == first
            bar.set_description_str(_READ if all_read else _stages[-1], refresh=False)
            # Some terminals do not tell how wide they are.
            bar.n, bar.ncols = int(100 * share), (os.get_terminal_size(terminal).columns or 80) - 1
            bar.refresh()


def _announce(words: str, done: object) -> str:
    stage(words)
    return words


def when_ready(next_stage: str, released: beam.PCollection[object]) -> None:
    """Name the next stage as soon as `released` is computed; it is public, counts would not be."""
    words = released.pipeline | "Stage" >> beam.Create([next_stage])
    _ = words | "Announce" >> beam.Map(_announce, beam.pvalue.AsIter(released))
