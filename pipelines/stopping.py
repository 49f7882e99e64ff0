"""Ctrl-C and SIGTERM: a stopped job ends at once, says nothing, and leaves no file and no process.

Its exit code is 128 plus the number of the signal: 130 after Ctrl-C, 143 after SIGTERM, 129 where
the terminal is closed. It is 141, by SIGPIPE, if nobody reads the printed table (`| head`); the
files are whole by then. No exception is raised for a signal: a user's function could catch it, and
Beam would print the element that it was working on.
"""

import atexit
import contextlib
import functools
import os
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Any, NoReturn

NO_READER = 141
_PATIENCE, _DELAY = 5.0, 1.0
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # the last is not known to Windows
_SIGNALS = [signal.Signals[name] for name in _NAMES if name in signal.Signals.__members__]
_BEAMS = " -m apache_beam.runners.worker.sdk_worker_main"
_job = os.getpid()
_ending = threading.Lock()
_workers: list["Worker"] = []
cleanings: list[Callable[[], object]] = []
"""What deletes the files that are half written when the job is stopped."""


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
    """Return whether this process is a job: a program that imports jobs keeps its own signals."""
    return is_command() or "-m pipelines." in " ".join(sys.orig_argv)


def is_command() -> bool:
    """Return whether this process is `beam-dp`, which says so where its path would stand."""
    return sys.argv[:1] != [] and sys.argv[0].startswith("beam-dp ")


def watch() -> None:
    """From now on end quietly; a signal that was to be ignored (nohup, `&`) is still ignored."""
    atexit.register(_flush)
    sys.excepthook = _excepted
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    if sys.platform != "win32":  # it has no forks, nor such pipes before Python 3.12
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing)
        os.register_at_fork(after_in_child=functools.partial(signal.set_wakeup_fd, -1))
        threading.Thread(target=_end_late, args=(reading,), daemon=True).start()
    vars(subprocess)["Popen"] = Worker


def _end_late(reading: int) -> None:
    """End the process where the main thread did not hear of a signal: it had just begun to wait."""
    while (number := os.read(reading, 1)[0]) not in _SIGNALS:
        pass
    time.sleep(_DELAY)
    end(128 + number)


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(NO_READER)


def _stop(number: int, frame: types.FrameType | None) -> NoReturn:
    """End the process where the signal found its main thread, so that the work rests meanwhile."""
    for other in _SIGNALS:
        signal.signal(other, signal.SIG_IGN)  # a second Ctrl-C does not break off the cleaning
    if os.getpid() != _job:  # a fork of the job: nothing is its to delete
        os._exit(128 + number)
    end(128 + number)


def end(code: int) -> NoReturn:
    """End the workers and the process, from any of its threads; nothing more is printed."""
    _ending.acquire()  # where another thread ends the process already, this one waits
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)  # other threads may fail now
    for worker in _workers:
        worker.kill()
    for worker in _workers:
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(_PATIENCE)
    for clean in cleanings:
        with contextlib.suppress(OSError):
            clean()
    os._exit(code)


def is_ending() -> bool:
    """Return whether a thread of this process ends it."""
    return _ending.locked()


def _excepted(
    kind: type[BaseException], error: BaseException, trace: types.TracebackType | None
) -> None:
    """Say what was not caught in one line, or whole to who asks: its text may quote data."""
    if issubclass(kind, BrokenPipeError):
        os._exit(NO_READER)
    if "--show_errors" in sys.argv:
        sys.__excepthook__(kind, error, trace)
    else:
        sys.stderr.write(f"error: {kind.__name__}; run again with --show_errors to see it\n")
