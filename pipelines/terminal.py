"""The messages of a running job: its stages, and nothing that a runner prints of elements."""

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator, Sequence

import apache_beam as beam

import beam_dp as dp
from beam_dp.results import release
from pipelines import messages

_STANDARD_ERROR = 2
_terminal = [_STANDARD_ERROR]  # the last one is the operator's


def say(words: str) -> None:
    """Print words for the operator on standard error, also while that is held back.

    The run goes on if nobody reads them any more.
    """
    with contextlib.suppress(BrokenPipeError):
        os.write(_terminal[-1], f"{words}\n".encode())


def width() -> int | None:
    """Return the columns of the terminal, or what COLUMNS says; None where there is neither."""
    if columns := os.environ.get("COLUMNS", ""):
        return int(columns) if columns.isdecimal() and int(columns) else None
    if not sys.stdout.isatty():
        return None
    return os.get_terminal_size(sys.stdout.fileno()).columns or None


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


def _announce(words: str, *done: object) -> str:
    say(words)
    return words


def when_ready(next_stage: str, released: Sequence[beam.PCollection[object]]) -> None:
    """Name the next stage as soon as all are computed; it is public, counts would not be."""
    words = released[0].pipeline | "Stage" >> beam.Create([next_stage])
    _ = words | "Announce" >> beam.Map(_announce, *map(beam.pvalue.AsIter, released))
