"""Hear everything that would reach an operator: standard error, warnings, logs, lost exceptions."""

import contextlib
import io
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

import beam_dp as dp


class Watch(logging.Handler):
    """What was said since it was last asked.

    Args:
        file: what file descriptor 2 and `sys.stderr` write to.
        caught: the list that Python adds warnings to.
    """

    def __init__(self, file: Any, caught: list[warnings.WarningMessage]) -> None:
        super().__init__(logging.WARNING)
        self._file, self._caught, self._said, self._read = file, caught, list[str](), 0

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a log line that Python would print if nobody had set up logging."""
        self._said.append(f"log: {record.getMessage()}")

    def lost(self, unraisable: Any) -> None:
        """Keep an exception that Python would print as "Exception ignored in"."""
        self._said.append(f"Exception ignored in: {unraisable.object!r}: {unraisable.exc_type}")

    def heard(self) -> str:
        """Return what was said since the last call; nothing at all if all were silent."""
        size = os.fstat(self._file.fileno()).st_size
        if size == self._read and not self._caught and not self._said:
            return ""
        written = os.pread(self._file.fileno(), size - self._read, self._read)
        said = [*self._said, *(f"warning: {found.message}" for found in self._caught)]
        self._read = size
        self._said.clear()
        self._caught.clear()
        return "\n".join([*said, written.decode(errors="replace")])


@contextlib.contextmanager
def watching() -> Iterator[Watch]:
    """Send all of it to one `Watch` while the context lasts."""
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(tempfile.TemporaryFile(buffering=0))
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        # Beam's own, about Python's: they come once, whatever the rows are.
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="apache_beam")
        # That nobody checks the names of columns in JSON Lines: said of the pattern alone.
        warnings.filterwarnings("ignore", category=dp.UnknownColumns)
        kept = os.dup(2)
        stack.callback(os.close, kept)
        os.dup2(file.fileno(), 2)
        stack.callback(os.dup2, kept, 2)
        raw = io.FileIO(os.dup(file.fileno()), "wb")
        text = stack.enter_context(io.TextIOWrapper(raw, write_through=True))
        stack.enter_context(contextlib.redirect_stderr(text))
        watch = Watch(file, caught)
        before, sys.unraisablehook = sys.unraisablehook, watch.lost
        stack.callback(setattr, sys, "unraisablehook", before)
        logging.getLogger().addHandler(watch)
        stack.callback(logging.getLogger().removeHandler, watch)
        yield watch
