"""The lines of a ledger's file: one of its limit, then one per run, each with a check.

A line is a JSON object. Its `check` is a hash of the check of the line before and of everything
else in the line, so that a line that was changed, put elsewhere, or lost is noticed, but for the
last lines of a file that was cut between two lines. It protects against accidents: whoever may
write the file can write another one with checks that fit.
"""

import dataclasses
import datetime
import hashlib
import json
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.accounting.composition import Cost
from beam_dp.mechanisms.numerics import checks

FORMAT = 1
_RATIONAL = re.compile(r"[0-9]{1,2000}(/[0-9]{1,2000})?")
_MEND = (
    "Nothing is charged. Put back a copy of the file. If there is none, start another ledger, and "
    "charge to it first what this one says was spent"
)


@dataclasses.dataclass(frozen=True)
class Terms:
    """The first line: what all runs together may cost.

    Attributes:
        limit: the most that they may cost.
        planned: whether their costs are decided without looking at what earlier ones released.
        date: when the ledger was started.
    """

    limit: Budget
    planned: bool
    date: str


@dataclasses.dataclass(frozen=True)
class Charge:
    """The line of a run.

    Attributes:
        label: what it is for.
        who: the user who ran it.
        date: when it was charged.
        cost: what it costs.
        person: the columns that identify a person; none where they are unknown, as in lines that
            were written before there was this field.
    """

    label: str
    who: str
    date: str
    cost: Cost
    person: tuple[str, ...] = ()


def today() -> str:
    """Return the time as it stands in a line."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def written(terms: Terms, charges: Sequence[Charge]) -> str:
    """Return the text of the file."""
    first = {
        "ledger": FORMAT,
        "limit": _told(terms.limit),
        "planned": terms.planned,
        "date": terms.date,
    }
    check, lines = "", []
    for content in [first, *map(_of_charge, charges)]:
        check = _check(check, content)
        lines.append(json.dumps({**content, "check": check}))
    return "".join(f"{line}\n" for line in lines)


def read(path: str, text: str) -> tuple[Terms, tuple[Charge, ...]]:
    """Return what a file says.

    Args:
        path: its name, for errors.
        text: its content.

    Raises:
        ValueError: for a line that is not as it was written.
    """
    check, contents = "", []
    for number, line in enumerate(text.split("\n")[:-1] or [""], 1):
        content = _content(line)
        if content is None or content.pop("check", None) != (check := _check(check, content)):
            raise _damaged(path, number)
        contents.append(content)
    if not text.endswith("\n"):
        raise _damaged(path, text.count("\n") + 1)
    try:
        return _terms(contents[0]), tuple(map(_charge, contents[1:]))
    except (KeyError, TypeError, ValueError):  # of another version, with checks that fit
        raise _damaged(path, 1) from None


def _damaged(path: str, number: int) -> checks.ParameterError:
    name = f"line {number} of {path}"
    return checks.ParameterError("Ledger", name, "be as it was written, and is damaged", _MEND)


def _content(line: str) -> dict[str, Any] | None:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _check(before: str, content: dict[str, Any]) -> str:
    whole = f"{before}\n{json.dumps(content, sort_keys=True)}"
    return hashlib.blake2b(whole.encode(), digest_size=16).hexdigest()


def _of_charge(charge: Charge) -> dict[str, Any]:
    return {
        "label": charge.label,
        "who": charge.who,
        "date": charge.date,
        "person": list(charge.person),
        "budget": _told(charge.cost.budget),
        "pieces": [{"times": times, **_told(cost)} for cost, times in charge.cost.pieces],
    }


def _told(budget: Budget) -> dict[str, str]:
    name = "rho" if budget.is_zcdp else "epsilon"
    return {name: str(budget.amount), "delta": str(budget.delta)}


def _terms(content: dict[str, Any]) -> Terms:
    if content["ledger"] != FORMAT or type(content["planned"]) is not bool:
        raise ValueError
    return Terms(_budget(content["limit"]), content["planned"], str(content["date"]))


def _charge(content: dict[str, Any]) -> Charge:
    pieces = [(_budget(each), _times(each["times"])) for each in content["pieces"]]
    cost = Cost(_budget(content["budget"]), tuple(pieces))
    label, who, date = (str(content[name]) for name in ("label", "who", "date"))
    return Charge(label, who, date, cost, tuple(map(str, content.get("person", ()))))


def _times(value: object) -> int:
    return checks.positive_integer("Ledger", "times", value)


def _budget(content: dict[str, Any]) -> Budget:
    delta = _rational(content["delta"])
    if "rho" in content:
        return Budget.zcdp(_rational(content["rho"]), delta)
    return Budget(_rational(content["epsilon"]), delta)


def _rational(text: str) -> Fraction:
    if not _RATIONAL.fullmatch(text):
        raise ValueError
    return Fraction(text)
