"""Ctrl-C and SIGTERM: a stopped job ends at once, says nothing, and leaves nothing behind.

It exits with 128 and the number of the signal: 130 after Ctrl-C, 143 after SIGTERM, 129 where the
terminal is closed; and 141, that of SIGPIPE, when nobody reads its table any more (`| head`), which
is printed when the files are whole. No exception is raised for a signal: functions of users may
catch it, Beam would blame the element that it held, and both would print where they were.
"""

import atexit
import contextlib
import dataclasses
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
NO_READER = 141
_PROGRAM = "beam-dp-aggregate"
_ending = threading.Lock()
_cleanings: list[Callable[[Collection[int]], None]] = []


@dataclasses.dataclass
class _Watched:
    """This job: the process that began it, and the directory of what it holds for a while."""

    process: int = 0
    path: str = ""


_job = _Watched()


def watch() -> None:
    """From now on end quietly; a signal that was to be ignored (nohup, `&`) is still ignored."""
    # A short name: sockets below it have paths of about 100 characters at most.
    path = os.path.join(tempfile.gettempdir(), f"bdp-{uuid.uuid4().hex[:8]}")
    with _blocked():  # a signal finds nothing done, or all of it
        os.mkdir(path, 0o700)
        _job.process, _job.path = os.getpid(), path
        tempfile.tempdir = os.environ["TMPDIR"] = path
        _cleanings.append(_delete)
        atexit.register(_finish)
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _stop)
    sys.excepthook = _excepted
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_leave)


@contextlib.contextmanager
def _blocked() -> Iterator[None]:
    """Let signals wait, where the system can do that."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _delete(processes: Collection[int] = ()) -> None:
    """Delete the directory, unless this process is a fork of the job."""
    if os.getpid() == _job.process:
        shutil.rmtree(_job.path, ignore_errors=True)


def _finish() -> None:
    """Delete the directory at the end of a process that was not stopped."""
    _delete()
    if os.getpid() == _job.process:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            os._exit(NO_READER)


def _leave() -> None:
    """Take a forked process out: it ends by itself, and nothing of the job is its to delete."""
    _cleanings.clear()
    for number in SIGNALS:
        if signal.getsignal(number) is _stop:
            signal.signal(number, signal.SIG_DFL)


def is_program() -> bool:
    """Return whether this process is a job: to others that import jobs, their signals belong."""
    started = Path(sys.argv[0] if sys.argv else "")
    if str(started) == "-m":  # as long as the package of `python -m package.module` is imported
        words = [word.removeprefix("-m") for word in sys.orig_argv]
        return any(word.startswith("pipelines.") for word in words)
    return started.stem == _PROGRAM or started.resolve().parent == Path(__file__).resolve().parent


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
    end(128 + number)


def end(code: int) -> NoReturn:
    """Clean and end the process with a code, from any of its threads; nothing more is printed.

    Args:
        code: what the process ends with, unless another thread ends it already.
    """
    while not _ending.acquire(timeout=PATIENCE):
        pass
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)  # other threads may fail now
    sys.addaudithook(_refuse_processes)
    cleaner = threading.Thread(target=_clean, daemon=True)
    cleaner.start()
    cleaner.join(PATIENCE)
    os._exit(code)


def is_ending() -> bool:
    """Return whether a thread of this process ends it."""
    return _ending.locked()


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
    """Yield the processes that work for this one, but for itself.

    These were told of its temporary directory (who started them is no sign, for that process may
    have ended), or descend from such a one or from this process. Known on Linux only: elsewhere
    workers end by themselves when they miss the one who sends work.
    """
    told, parents = os.fsencode(f"TMPDIR={_job.path}\0"), dict[int, int]()
    family = {os.getpid()}
    for path in Path("/proc").glob("[0-9]*") if _job.path else ():
        with contextlib.suppress(OSError):
            state, parent = (path / "stat").read_bytes().rpartition(b")")[2].split()[:2]
            if state != b"Z":
                parents[int(path.name)] = int(parent)
                if told in (path / "environ").read_bytes():
                    family.add(int(path.name))
    size = 0
    while size < len(family):
        size = len(family)
        family |= {process for process, parent in parents.items() if parent in family}
    yield from family - {os.getpid()}


def _refuse_processes(event: str, given: tuple[object, ...]) -> None:
    """Start no worker any more: other threads go on while this process ends."""
    if event in ("subprocess.Popen", "os.fork"):
        raise RuntimeError("the job is stopped")
