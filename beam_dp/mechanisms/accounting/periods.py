"""The protected unit where rows belong to periods, and the periods that a text names."""

import datetime
import re
from collections.abc import Sequence

from beam_dp.mechanisms.numerics import checks

PERSON = "one person"
MOST = 366
"""Dates of one range."""
_DATED = re.compile(r"(?<![a-z])(hour|day|date|week|month|year)(?![a-z])", re.IGNORECASE)
_HINT = 'Write ledger_period="2026-11-22", or "2026-11-01..2026-11-30".'


def in_unit(text: str, period: str | None) -> str:
    """Return a text about one person as it is true for the protected unit.

    Args:
        text: what is said of "one person".
        period: the column of the period; None: a person is protected with all rows.
    """
    if period is None:
        return text
    unit = f"{PERSON}'s rows of one {period}"
    return re.sub(f"{PERSON}( count)?s?", lambda found: unit + (found[1] or ""), text)


def meant(person: Sequence[str]) -> str:
    """Return what may have been meant where one of several owners looks like a period, or ""."""
    dated = next((name for name in person if _DATED.search(name)), None)
    return "" if dated is None else f"For {in_unit(PERSON, dated)}, write --period {dated}"


def first_to_last(given: str) -> str:
    """Return the first and the last hour of the dates that a text names, as computed; else ""."""
    first, *_, last = *named(given), named(given)[-1]
    is_dated = re.fullmatch(r"\d{4}-\d\d-\d\d", first) is not None
    return f": from {first} 00:00 to {last} 24:00, as that computes them" * is_dated


def named(given: object) -> tuple[str, ...]:
    """Return the periods that a text names: all dates of FROM..TO, or the text itself.

    Raises:
        TypeError, ValueError: for what is no text, and for a range that is not of dates.
    """
    subject, name = "PrivateAggregate", "ledger_period"
    if type(given) is not str or not given or not given.isprintable():
        rule = f"be text of one line that is not empty, not {checks.shown(given)}"
        raise checks.ParameterTypeError(subject, name, rule, _HINT)
    if ".." not in given:
        return (given,)
    try:
        first, last = (datetime.date.fromisoformat(end).toordinal() for end in given.split(".."))
    except ValueError:
        first, last = 0, -1
    rule = f"be a period, or FROM..TO of at most {MOST} dates, not {given!r}"
    checks.require(0 <= last - first < MOST, subject, name, rule, _HINT)
    return tuple(map(str, map(datetime.date.fromordinal, range(first, last + 1))))
