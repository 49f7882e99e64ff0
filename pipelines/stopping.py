"""Ctrl-C and SIGTERM: a stopped job ends at once, says nothing, and leaves no file and no process.

Its exit code is 128 plus the number of the signal: 130 after Ctrl-C, 143 after SIGTERM, 129 where
the terminal is closed. It is 141, by SIGPIPE, if nobody reads the printed table (`| head`); the
files are whole by then. No exception is raised for a signal: a user's function could catch it, and
Beam would print the element that it was working on.
"""

import _thread
import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, NoReturn

PATIENCE = 10.0
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # the last is not known to Windows
SIGNALS = [signal.Signals[name] for name in _NAMES if name in signal.Signals.__members__]
NO_READER = 141
_PROGRAM = "beam-dp-aggregate"
_BEAMS = " -m apache_beam.runners.worker.sdk_worker_main"
_job = os.getpid()
_ending = threading.Lock()
_cleanings: list[Callable[[Collection[int]], object]] = []
_workers: list["Worker"] = []


class Worker(subprocess.Popen[Any]):
    """A process that this one starts, and ends with it."""

    def __init__(self, words: Any, *further: Any, **options: Any) -> None:
        if isinstance(words, str) and words.endswith(_BEAMS):
            words = f"exec {words}"  # in place of the shell that Beam starts it by, which is ended
        super().__init__(words, *further, **options)
        _workers.append(self)
        if is_ending():  # other threads go on while this process ends
            self.kill()


def is_program() -> bool:
    """Return whether this process is a job: to others that import jobs, their signals belong."""
    started = Path(sys.argv[0] if sys.argv else "")
    if str(started) == "-m":  # as long as the package of `python -m package.module` is imported
        words = [word.removeprefix("-m") for word in sys.orig_argv]
        return any(word.startswith("pipelines.") for word in words)
    return started.stem == _PROGRAM or started.resolve().parent == Path(__file__).resolve().parent


def watch() -> None:
    """From now on end quietly; a signal that was to be ignored (nohup, `&`) is still ignored."""
    atexit.register(_flush)
    sys.excepthook = _excepted
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    vars(subprocess)["Popen"] = Worker


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        end(NO_READER)


@contextlib.contextmanager
def cleaning(clean: Callable[[Collection[int]], object]) -> Iterator[None]:
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
    """End the process where the signal found its main thread, so that the work rests meanwhile."""
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)  # a second Ctrl-C does not break off the cleaning
    if os.getpid() != _job:  # a fork of the job: nothing is its to delete
        os._exit(128 + number)
    end(128 + number)


def end(code: int) -> NoReturn:
    """Clean and end the process with a code, from any of its threads; nothing more is printed.

    Args:
        code: what the process ends with, unless another thread ends it already.
    """
    _ending.acquire()
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)  # other threads may fail now
    # The main thread may hold a lock that the cleaning needs: it has a thread of its own. It may
    # even hold the lock that `threading.Thread` needs to start one.
    cleaned = threading.Lock()
    cleaned.acquire()
    _thread.start_new_thread(_clean, (cleaned,))
    cleaned.acquire(timeout=PATIENCE)
    os._exit(code)


def is_ending() -> bool:
    """Return whether a thread of this process ends it."""
    return _ending.locked()


def _clean(running: _thread.LockType) -> None:
    """End the workers, then delete: the last that was asked for goes first; then free the lock."""
    processes = {_job, *(worker.pid for worker in _workers)}
    with contextlib.ExitStack() as stack:  # where one fails, the others are called
        stack.callback(running.release)
        for clean in _cleanings:
            stack.callback(clean, processes)
        for worker in _workers:
            worker.kill()
        for worker in _workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.wait(PATIENCE / 2)


def _excepted(
    kind: type[BaseException], error: BaseException, trace: types.TracebackType | None
) -> None:
    """Say what was not caught in one line, or whole to who asks: its text may quote data."""
    if issubclass(kind, KeyboardInterrupt):  # runners can have handlers too
        _stop(signal.SIGINT, None)
    if issubclass(kind, BrokenPipeError):
        end(NO_READER)
    if "--show_errors" in sys.argv:
        sys.__excepthook__(kind, error, trace)
    else:
        sys.stderr.write(f"error: {kind.__name__}; run again with --show_errors to see it\n")
