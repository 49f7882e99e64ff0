"""The file of a ledger: locked while it is changed, never half written, damage is noticed.

*The lines.* One of the limit, then one per run. A line is a JSON object. Its `check` is a hash of
the check of the line before and of everything else in the line, so that a line that was changed,
put elsewhere, or lost is noticed, but for the last lines of a file that was cut between two lines.
It protects against accidents: whoever may write the file can write another one with checks that
fit.

*The file.* A change is written into a second file, which takes the place of the first one when all
of it is on the disk. So a job that is killed, or a disk that is full, leaves the file as it was.

All jobs must mean the same file. Symbolic links are followed whenever it is used, before it is
locked. Make no hard links: only one name would get the new content.
"""

import contextlib
import dataclasses
import datetime
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.numerics import checks
from beam_dp.text.plan import cost

Made = TypeVar("Made")
FORMAT = 1
PATIENCE = 60.0
"""How many seconds a job waits for another one that changes the same ledger."""
_HINT = (
    "Nothing is charged. If a newer version of beam_dp wrote it, install that. Else put back a copy "
    "of the file; if there is none, start another ledger, and charge to it first what this one says "
    "was spent"
)


def checked(path: object) -> Path:
    """Return the path of a ledger, with symbolic links followed: jobs lock and replace the file.

    Raises:
        TypeError, ValueError: for what is no path, and for one of another file system or of a
            folder that does not exist.
    """
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if type(text) is not str or not text:
        hint = 'Write dp.Ledger("visits.ledger.jsonl").'
        raise checks.ParameterTypeError(
            "Ledger", "path", f"be the name of a file, not {checks.shown(path)}", hint
        )
    real = Path(os.path.realpath(text))
    rule = f"be in a folder of this machine that exists, or s3:// or gs://, not {text!r}"
    checks.require(real.parent.is_dir(), "Ledger", "path", rule, "Correct the name.")
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


def changed(path: Path, change: Callable[[str | None], tuple[str, Made]]) -> Made:
    """Give the file the content that `change` returns for its own, and return what comes with it.

    Raises:
        ValueError: as `locked`.
        OSError: as `replace`.
    """
    with locked(path):
        text, made = change(text_of(path))
        replace(path, text)
    return made


def text_of(path: Path) -> str | None:
    """Return the content of the file; None if there is no file."""
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return None


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
        period: the column of the period, if one person's rows of one period are protected; or "".
        ledger_period: the periods whose rows the run reads; "" for all.
    """

    label: str
    who: str
    date: str
    budget: Budget
    person: tuple[str, ...] = ()
    period: str = ""
    ledger_period: str = ""


def today() -> str:
    """Return the time as it stands in a line."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def started(limit: Budget) -> str:
    """Return the text of a new file."""
    return _line("", {"ledger": FORMAT, "limit": cost(limit), "date": today()})


def with_charge(text: str, charge: Charge) -> str:
    """Return the text of a file, as it was read, with one more line, unlike any other: it has an id."""
    before = json.loads(text.splitlines()[-1])["check"]
    content = {**dataclasses.asdict(charge), "budget": cost(charge.budget), "id": uuid.uuid4().hex}
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
    check, number = "", 1
    charges: list[Charge] = []
    limit: Budget | None = None
    try:
        for number, line in enumerate(text.split("\n"), 1):
            if limit is not None and not line and number == text.count("\n") + 1:
                return limit, tuple(charges)
            content = json.loads(line)
            stored, check = content.pop("check"), _check(check, content)
            if stored != check or (number == 1 and content["ledger"] != FORMAT):
                raise ValueError
            if limit is None:
                limit = _budget(content["limit"])
            else:
                charges.append(_charge(content))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        pass  # told below, without the error, which may quote the line
    rule = "be as it was written, and is damaged"
    raise checks.ParameterError("Ledger", f"line {number} of {path}", rule, _HINT)


def _check(before: str, content: dict[str, Any]) -> str:
    whole = f"{before}\n{json.dumps(content, sort_keys=True)}"
    return hashlib.blake2b(whole.encode(), digest_size=16).hexdigest()


def _charge(content: dict[str, Any]) -> Charge:
    label, who, date = (str(content[name]) for name in ("label", "who", "date"))
    person = tuple(map(str, content.get("person", ())))
    period = [str(content.get(name, "")) for name in ("period", "ledger_period")]
    return Charge(label, who, date, _budget(content["budget"]), person, *period)


def _budget(content: dict[str, str]) -> Budget:
    amounts = {name: Fraction(amount) for name, amount in content.items()}
    return Budget.zcdp(**amounts) if "rho" in amounts else Budget(**amounts)
