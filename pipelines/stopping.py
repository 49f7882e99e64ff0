"""Ctrl-C and SIGTERM: a stopped job ends at once, says nothing, and leaves nothing behind.

It exits with 128 and the number of the signal: 130 after Ctrl-C, 143 after SIGTERM, 129 where the
terminal is closed. No exception is raised for a signal: functions of users may catch it, Beam would
blame the element that it held, and both would print where they were.
"""

import atexit
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import types
import uuid
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NoReturn

PATIENCE = 10.0
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # the last is not known to Windows
SIGNALS = [signal.Signals[name] for name in _NAMES if name in signal.Signals.__members__]
_PROGRAM = "beam-dp-aggregate"
_cleanings: list[Callable[[Collection[int]], None]] = []


def watch() -> None:
    """From now on end quietly; a signal that was to be ignored (nohup, `&`) is still ignored."""
    # First of all: when it is asked for first, Python tries the directory with a file.
    path = os.path.join(tempfile.gettempdir(), f"beam-dp-{uuid.uuid4().hex}")
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    sys.excepthook = _excepted
    _keep_together(path)


def _keep_together(path: str) -> None:
    """Make a directory for what this process, its workers and their libraries hold for a while."""

    def delete(processes: Collection[int] = ()) -> None:
        shutil.rmtree(path, ignore_errors=True)

    _cleanings.append(delete)
    atexit.register(delete)
    os.mkdir(path, 0o700)
    tempfile.tempdir = os.environ["TMPDIR"] = path


def is_program() -> bool:
    """Return whether this process is a job: to others that import jobs, their signals belong."""
    started = Path(sys.argv[0] if sys.argv else "")
    # `python -m pipelines.name` is "-m" as long as this package is imported.
    here = Path(__file__).resolve().parent
    return str(started) == "-m" or started.stem == _PROGRAM or started.resolve().parent == here


@contextlib.contextmanager
def cleaning(clean: Callable[[Collection[int]], None]) -> Iterator[None]:
    """Have something deleted if the job is stopped meanwhile.

    Args:
        clean: what deletes it; it is given the numbers of the processes that worked for the job,
            which have ended but for this one.
    """
    _cleanings.append(clean)
    try:
        yield
    finally:
        _cleanings.remove(clean)


def _stop(number: int, frame: types.FrameType | None) -> NoReturn:
    """End the process: nothing is printed, nothing is waited for but the cleaning.

    It runs where the signal found the main thread, so that the work rests meanwhile. The cleaning
    has a thread of its own, because the main thread may hold a lock that it needs.
    """
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)  # a second Ctrl-C does not break off the cleaning
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)  # other threads may fail now
    sys.addaudithook(_refuse_processes)
    cleaner = threading.Thread(target=_clean, daemon=True)
    cleaner.start()
    cleaner.join(PATIENCE)
    os._exit(128 + number)


def _excepted(
    kind: type[BaseException], error: BaseException, trace: types.TracebackType | None
) -> None:
    """Show what was not caught, but for a KeyboardInterrupt: runners can have handlers too."""
    if issubclass(kind, KeyboardInterrupt):
        _stop(signal.SIGINT, None)
    sys.__excepthook__(kind, error, trace)


def _clean() -> None:
    """End the workers, then delete: the last that was asked for goes first."""
    processes = {os.getpid(), *_ended()}
    with contextlib.ExitStack() as stack:  # where one fails, the others are called
        for clean in _cleanings:
            stack.callback(clean, processes)


def _ended() -> set[int]:
    """Kill the processes that work for this one, and return their numbers."""
    killed: set[int] = set()
    until, quiet = time.monotonic() + PATIENCE / 2, 0
    while quiet < 2 and time.monotonic() < until:  # twice: one may have begun while it was looked
        alive = set(_working())
        for process in alive:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        killed |= alive
        quiet = 0 if alive else quiet + 1
        time.sleep(0.01)
    return killed


def _working() -> Iterator[int]:
    """Yield the processes that were told of this one's temporary directory: its workers.

    Who started them is no sign, for that process may have ended. Known on Linux only: elsewhere
    workers end by themselves when they miss the one who sends work.
    """
    told = os.fsencode(f"TMPDIR={tempfile.tempdir}\0")
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if told in path.read_bytes():
                yield int(path.parent.name)


def _refuse_processes(event: str, given: tuple[object, ...]) -> None:
    """Start no worker any more: other threads go on while this process ends."""
    if event == "subprocess.Popen":
        raise RuntimeError("the job is stopped")
