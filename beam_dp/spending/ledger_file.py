"""The file of a ledger: locked while it is changed, and never half written.

A change is written into a second file, which takes the place of the first one when all of it is on
the disk. So a job that is killed, or a disk that is full, leaves the file as it was.

All jobs must mean the same file. Symbolic links are followed whenever it is used, before it is
locked. Of hard links only one name would get the new content, so they are refused.
"""

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from beam_dp.mechanisms.numerics import checks

PATIENCE = 60.0
"""How many seconds a job waits for another one that changes the same ledger."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def checked(path: object) -> Path:
    """Return the path of a ledger, with symbolic links followed: jobs lock and replace the file.

    Raises:
        TypeError, ValueError: for what is no path, and for one of another file system.
    """
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if type(text) is not str or not text:
        mend = 'Write dp.Ledger("visits.ledger.jsonl").'
        raise checks.ParameterTypeError(
            "Ledger", "path", f"be the name of a file, not {checks.shown(path)}", mend
        )
    checks.require(
        not _SCHEME.match(text),
        "Ledger",
        "path",
        f"be on a file system of this machine, which can lock it, not {text!r}",
        "Mount a shared directory, or keep it where the jobs are started.",
    )
    return Path(os.path.realpath(text))


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other jobs from the file meanwhile.

    Raises:
        ValueError: if another one has it for longer than `PATIENCE`.
    """
    import filelock  # here, for it takes as long to load as this module and most others

    lock = filelock.FileLock(f"{path}.lock", timeout=PATIENCE)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise checks.ParameterError(
            "Ledger",
            f"{path}.lock",
            f"be free, and another job has it for more than {PATIENCE:.0f} s",
            "Nothing is charged. Look which job charges the ledger, and run again",
        ) from None
    try:
        yield
    finally:
        lock.release()


def text_of(path: Path) -> str | None:
    """Return the content of the file; None if there is no file.

    Raises:
        ValueError: if the file has several names: after a charge each would have its own balance.
    """
    try:
        with open(path, "rb") as file:
            names = os.fstat(file.fileno()).st_nlink
            content = file.read()
    except FileNotFoundError:
        return None
    checks.require(
        names <= 1,
        "Ledger",
        "path",
        f"have one name, and {str(path)!r} has {names} (hard links): each would get a balance of "
        "its own",
        f"Find the others with find / -samefile {str(path)!r}, and delete all but one.",
    )
    return content.decode("utf-8", errors="replace")


def replace(path: Path, text: str) -> None:
    """Give the file another content, all of it or nothing.

    Raises:
        OSError: if the disk is full, or the file may not be written; it is as it was then.
    """
    new = Path(f"{path}.new")
    new.unlink(missing_ok=True)  # of a job that was killed
    try:
        with open(new, "x", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, new)
        os.replace(new, path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
    _store_name(path.parent)


def _store_name(directory: Path) -> None:
    """Wait until the name of a new file is on the disk, where the system can say so."""
    if os.name == "posix":
        opened = os.open(directory, os.O_RDONLY)
        try:
            if stat.S_ISDIR(os.fstat(opened).st_mode):
                os.fsync(opened)
        finally:
            os.close(opened)
