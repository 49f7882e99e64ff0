"""Stop a job at Ctrl-C and SIGTERM: it ends at once, prints nothing, and leaves nothing behind.

The exit code is 128 plus the number of the signal: 130 after Ctrl-C, 143 after SIGTERM, 129 where
the terminal is closed. A signal raises no exception: users' functions may catch it, Beam would
blame the element at hand, and both would print a traceback.
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
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows does not know the last one
SIGNALS = [signal.Signals[name] for name in _NAMES if name in signal.Signals.__members__]
_PROGRAM = "beam-dp-aggregate"
_cleanings: list[Callable[[Collection[int]], None]] = []


def watch() -> None:
    """From now on end quietly at signals; ignored signals (nohup, `&`) are still ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    sys.excepthook = _excepted
    _keep_together(os.path.join(tempfile.gettempdir(), f"beam-dp-{uuid.uuid4().hex}"))


def _keep_together(path: str) -> None:
    """Make one directory for all temporary files of this process, its workers and libraries."""

    def delete(processes: Collection[int] = ()) -> None:
        shutil.rmtree(path, ignore_errors=True)

    _cleanings.append(delete)
    atexit.register(delete)
    os.mkdir(path, 0o700)
    tempfile.tempdir = os.environ["TMPDIR"] = path


def is_program() -> bool:
    """Return whether this process is a job; other programs that import jobs handle signals."""
    started = Path(sys.argv[0] if sys.argv else "")
    # For `python -m pipelines.name` argv[0] is "-m" while this package is imported.
    here = Path(__file__).resolve().parent
    return str(started) == "-m" or started.stem == _PROGRAM or started.resolve().parent == here


@contextlib.contextmanager
def cleaning(clean: Callable[[Collection[int]], None]) -> Iterator[None]:
    """Call a cleaning function if the job is stopped meanwhile.

    Args:
        clean: deletes something; its argument is the numbers of the processes that worked for the
            job, which have ended except this one.
    """
    _cleanings.append(clean)
    try:
        yield
    finally:
        _cleanings.remove(clean)


def _stop(number: int, frame: types.FrameType | None) -> NoReturn:
    """End the process: nothing is printed, and only the cleaning is waited for.

    It interrupts the main thread, so that the work rests meanwhile. The cleaning runs in another
    thread, because the main thread may hold a lock that the cleaning needs.
    """
    for ignored in SIGNALS:
        signal.signal(ignored, signal.SIG_IGN)  # a second Ctrl-C does not break off the cleaning
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
    """Print an uncaught error; stop at a KeyboardInterrupt, which handlers of runners may raise."""
    if issubclass(kind, KeyboardInterrupt):
        _stop(signal.SIGINT, None)
    sys.__excepthook__(kind, error, trace)


def _clean() -> None:
    """End the workers, then call the cleaning functions, the last one first."""
    processes = {os.getpid(), *_ended()}
    with contextlib.ExitStack() as stack:  # if one fails, the others are still called
        for clean in _cleanings:
            stack.callback(clean, processes)


def _ended() -> set[int]:
    """Kill the processes that work for this one, and return their numbers."""
    killed: set[int] = set()
    until, quiet = time.monotonic() + PATIENCE / 2, 0
    while (
        quiet < 2 and time.monotonic() < until
    ):  # twice: a process may have begun during the search
        alive = set(_working())
        for process in alive:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        killed |= alive
        quiet = 0 if alive else quiet + 1
        time.sleep(0.01)
    return killed


def _working() -> Iterator[int]:
    """Yield the processes whose environment names this process's temporary directory: its workers.

    Their parent is no sign, for that process may have ended. This works on Linux only: elsewhere
    workers end by themselves when the process that sends work is gone.
    """
    variable = os.fsencode(f"TMPDIR={tempfile.tempdir}\0")
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if variable in path.read_bytes():
                yield int(path.parent.name)


def _refuse_processes(event: str, given: tuple[object, ...]) -> None:
    """Refuse to start workers: other threads go on while this process ends."""
    if event == "subprocess.Popen":
        raise RuntimeError("the job is stopped")
