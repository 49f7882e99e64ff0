"""The messages of a running job: its stages, and nothing that a runner prints of elements.

A long run in this process shows one line on a terminal, never in a file: the stage, the share of
the input that was read, the time (`transforms.io.open_files` says what that share reveals).
"""

import contextlib
import importlib
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence

import apache_beam as beam

import beam_dp as dp
from beam_dp.results import release
from beam_dp.transforms.io import open_files
from beam_dp.transforms.stages import guards
from pipelines import messages

_FORM = "{desc} {percentage:3.0f}% |{bar}| {elapsed}"
_STANDARD_ERROR = 2
_terminal = [_STANDARD_ERROR]  # the last one is the operator's


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
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        say(f"Warning: {messages.translated(text)}")


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Hold back what Beam logs and prints, for that quotes elements; allow both again at the end.

    The descriptor itself is redirected: worker processes inherit it, and print tracebacks.
    """
    _terminal.append(os.dup(_STANDARD_ERROR))
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), _STANDARD_ERROR)
    try:
        with release.hushed():
            yield
    finally:
        kept = _terminal.pop()
        os.dup2(kept, _STANDARD_ERROR)
        os.close(kept)


def stage(words: str) -> None:
    """Name the stage that a job has reached: in the line of its progress, or in one of its own."""
    for bar in open_files.bars:
        bar.set_description_str(words)
    if not open_files.bars:
        say(words)


@contextlib.contextmanager
def shown(first: str, reads: str, runner: str) -> Iterator[None]:
    """Show the stages of a run, with the share of the input that is read where that is known.

    Args:
        first: the name of the first stage.
        reads: the files that are read; "" for none.
        runner: the name of the runner's class.
    """
    if not reads or runner not in guards.LOCAL or not os.isatty(_terminal[-1]):
        say(first)
        yield
        return
    tqdm = importlib.import_module("tqdm").tqdm
    tqdm.monitor_interval = 0  # no thread and no process of its own
    tqdm.set_lock(threading.RLock())
    size = open_files.size_of(reads)
    with (
        os.fdopen(os.dup(_terminal[-1]), "w") as output,  # standard error itself is held back
        tqdm(desc=first, total=size, file=output, leave=False, bar_format=_FORM) as bar,
    ):
        open_files.bars.append(bar)
        yield  # no run raises here
        open_files.bars.clear()


def _announce(words: str, *done: object) -> str:
    stage(words)
    return words


def when_ready(next_stage: str, released: Sequence[beam.PCollection[object]]) -> None:
    """Name the next stage as soon as all are computed; it is public, counts would not be."""
    words = released[0].pipeline | "Stage" >> beam.Create([next_stage])
    _ = words | "Announce" >> beam.Map(_announce, *map(beam.pvalue.AsIter, released))
