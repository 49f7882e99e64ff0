"""The file of a ledger: locked while it is changed, never half written, damage is noticed.

*The lines.* One of the limit, then one per run. A line is a JSON object. Its `check` is a hash of
the check of the line before and of everything else in the line, so that a line that was changed,
put elsewhere, or lost is noticed, but for the last lines of a file that was cut between two lines.
It protects against accidents: whoever may write the file can write another one with checks that
fit.

*The file.* A change is written into a second file, which takes the place of the first one when all
of it is on the disk. So a job that is killed, or a disk that is full, leaves the file as it was.

All jobs must mean the same file. Symbolic links are followed whenever it is used, before it is
locked. Of hard links only one name would get the new content, so they are refused.
"""

import contextlib
import dataclasses
import datetime
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.plan import cost

FORMAT = 1
PATIENCE = 60.0
"""How many seconds a job waits for another one that changes the same ledger."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_RATIONAL = re.compile(r"[0-9]{1,2000}(/[0-9]{1,2000})?")
_MEND = (
    "Nothing is charged. Put back a copy of the file. If there is none, start another ledger, and "
    "charge to it first what this one says was spent"
)


def checked(path: object) -> Path:
    """Return the path of a ledger, with symbolic links followed: jobs lock and replace the file.

    Raises:
        TypeError, ValueError: for what is no path, and for one of another file system or of a
            folder that does not exist.
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
    real = Path(os.path.realpath(text))
    checks.require(
        real.parent.is_dir(),
        "Ledger",
        "path",
        f"be in a folder that exists, not {text!r}",
        "Make the folder, or correct the name.",
    )
    return real


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
    if os.name == "posix":  # the name of a new file is on the disk, too
        opened = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


@dataclasses.dataclass(frozen=True)
class Charge:
    """The line of a run.

    Attributes:
        label: what it is for.
        who: the user who ran it.
        date: when it was charged.
        budget: what it costs.
        person: the columns that identify a person; none where they are unknown.
    """

    label: str
    who: str
    date: str
    budget: Budget
    person: tuple[str, ...] = ()


def today() -> str:
    """Return the time as it stands in a line."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def started(limit: Budget) -> str:
    """Return the text of a new file."""
    return _line("", {"ledger": FORMAT, "limit": cost(limit), "date": today()})


def with_charge(text: str, charge: Charge) -> str:
    """Return the text of a file, as it was read, with one more line."""
    before = json.loads(text.splitlines()[-1])["check"]
    content = {**dataclasses.asdict(charge), "budget": cost(charge.budget)}
    return text + _line(before, content)


def _line(before: str, content: dict[str, Any]) -> str:
    return f"{json.dumps({**content, 'check': _check(before, content)})}\n"


def read(path: str, text: str) -> tuple[Budget, tuple[Charge, ...]]:
    """Return what a file says: the limit, and the runs.

    Args:
        path: its name, for errors.
        text: its content.

    Raises:
        ValueError: for a line that is not as it was written.
    """
    check, contents = "", []
    for number, line in enumerate(text.split("\n")[:-1] or [""], 1):
        try:
            content = json.loads(line)
            said, check = content.pop("check"), _check(check, content)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            raise _damaged(path, number) from None
        if said != check:
            raise _damaged(path, number)
        contents.append(content)
    if not text.endswith("\n"):
        raise _damaged(path, text.count("\n") + 1)
    try:
        if contents[0]["ledger"] != FORMAT:
            raise ValueError
        return _budget(contents[0]["limit"]), tuple(map(_charge, contents[1:]))
    except (KeyError, TypeError, ValueError):  # of another version, with checks that fit
        raise _damaged(path, 1) from None


def _damaged(path: str, number: int) -> checks.ParameterError:
    name = f"line {number} of {path}"
    return checks.ParameterError("Ledger", name, "be as it was written, and is damaged", _MEND)


def _check(before: str, content: dict[str, Any]) -> str:
    whole = f"{before}\n{json.dumps(content, sort_keys=True)}"
    return hashlib.blake2b(whole.encode(), digest_size=16).hexdigest()


def _charge(content: dict[str, Any]) -> Charge:
    label, who, date = (str(content[name]) for name in ("label", "who", "date"))
    person = tuple(map(str, content.get("person", ())))
    return Charge(label, who, date, _budget(content["budget"]), person)


def _budget(content: dict[str, Any]) -> Budget:
    delta = _rational(content["delta"])
    if "rho" in content:
        return Budget.zcdp(_rational(content["rho"]), delta)
    return Budget(_rational(content["epsilon"]), delta)


def _rational(text: str) -> Fraction:
    if not _RATIONAL.fullmatch(text):
        raise ValueError
    return Fraction(text)
