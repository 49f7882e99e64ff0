"""The line of a long run on a terminal: the stage, the share of the input that was read, the time.

It is shown where the reading happens in this process, and where standard error is a terminal: a log
or a file never gets it (see `transforms.inputs.progress` for what a share tells).
"""

import contextlib
import importlib
import os
import sys
import threading
from collections.abc import Iterator

from beam_dp.transforms.inputs import progress

DELAY = 1.0
"""So many seconds a run takes before it has a line."""
_EVERY = 0.2
_READ = "All is read: bounding and drawing"
_FORM = "{desc} {percentage:3.0f}% |{bar}| {elapsed}"
_LOCAL = ("FnApiRunner", "DirectRunner", "SwitchingDirectRunner")


class Line:
    """A line that is written anew a few times a second.

    Args:
        terminal: a descriptor of the terminal, for this line alone.
        stage: the first stage.
        reading: what is read meanwhile.
    """

    def __init__(self, terminal: int, stage: str, reading: progress.Reading) -> None:
        self._terminal, self._reading = terminal, reading
        self._first = self._stage = stage
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._paint, daemon=True)

    def begin(self) -> None:
        """Show the line, after a while."""
        self._thread.start()

    def stage(self, words: str) -> None:
        """Name the next stage."""
        self._stage = words

    def end(self) -> None:
        """Clear the line."""
        self._ended.set()
        self._thread.join()

    def _paint(self) -> None:
        if self._ended.wait(DELAY):
            return
        tqdm = importlib.import_module("tqdm").tqdm
        tqdm.monitor_interval = 0  # no thread and no process of its own
        tqdm.set_lock(threading.RLock())
        form = {"bar_format": _FORM, "leave": False, "total": 100, "nrows": 2}
        with (
            os.fdopen(self._terminal, "w", encoding=_encoding(), closefd=False) as output,
            tqdm(desc=self._stage, file=output, **form) as bar,
        ):
            bar.start_t -= DELAY
            while not self._ended.wait(_EVERY):
                share = self._reading.share
                all_read = share >= 1 and self._stage == self._first
                bar.set_description_str(_READ if all_read else self._stage, refresh=False)
                bar.n, bar.ncols = int(100 * share), _columns(self._terminal)
                bar.refresh()


def _encoding() -> str:
    return getattr(sys.__stderr__, "encoding", None) or "utf-8"


def _columns(terminal: int) -> int:
    """Return how wide a line may be: some terminals do not tell."""
    return (os.get_terminal_size(terminal).columns or 80) - 1


@contextlib.contextmanager
def line(terminal: int, stage: str, pattern: str, runner: str) -> Iterator[Line | None]:
    """Yield the line of a run; None where there is none.

    Args:
        terminal: the descriptor of standard error.
        stage: the first stage.
        pattern: what is read; "" for nothing.
        runner: the name of the runner's class.
    """
    if not pattern or runner not in _LOCAL or not os.isatty(terminal):
        yield None
        return
    own = os.dup(terminal)  # standard error itself is held back meanwhile
    try:
        with progress.watched(pattern) as reading:
            shown = Line(own, stage, reading)
            shown.begin()
            try:
                yield shown
            finally:
                shown.end()
    finally:
        os.close(own)
