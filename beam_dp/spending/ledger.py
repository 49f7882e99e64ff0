"""Ledger: what several runs over the same people cost together, and a limit that holds."""

import contextlib
import dataclasses
import getpass
import math
import os
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol, runtime_checkable

from beam_dp.mechanisms.accounting.budget import Budget, readable
from beam_dp.mechanisms.accounting.composition import Composition, Cost, composed
from beam_dp.mechanisms.numerics import checks
from beam_dp.spending import ledger_file
from beam_dp.spending.ledger_lines import Charge, Terms, read, today, written

_HEADINGS = ("date", "who", "what", "budget")
_START = 'Write dp.Ledger("visits.ledger.jsonl", limit=dp.Budget(3, 1e-6)).'


@runtime_checkable
class Costly(Protocol):
    """A transform that says what it costs: `PrivateAggregate` and what is built on it."""

    budget: Budget

    def pieces(self) -> Sequence[tuple[Budget, int]]:
        """Return what its releases cost, each with how often it is spent."""


@dataclasses.dataclass(frozen=True)
class Balance:
    """What runs cost together, and what their limit leaves.

    Attributes:
        path: the name of the ledger's file.
        terms: the limit.
        charges: the runs.
        spent: what they cost together.
    """

    path: str
    terms: Terms
    charges: tuple[Charge, ...]
    spent: Composition

    @property
    def is_within(self) -> bool:
        """Whether the limit holds."""
        limit = self.terms.limit
        return self.spent.amount <= limit.amount and self.spent.delta <= limit.delta

    @property
    def left(self) -> tuple[Fraction, Fraction]:
        """The epsilon or rho, and the delta, that the limit leaves: at least 0 each."""
        limit, spent = self.terms.limit, self.spent
        amount = Fraction(0) if spent.amount == math.inf else limit.amount - Fraction(spent.amount)
        return max(amount, Fraction(0)), max(limit.delta - spent.delta, Fraction(0))

    @property
    def refusal(self) -> str:
        """What to say of a run that would pass the limit: what is left without it, and its need."""
        terms, charges = self.terms, self.charges[:-1]
        before = _balance(self.path, terms, charges)
        needed = self.spent.amount - before.spent.amount, self.spent.delta - before.spent.delta
        word = "rho" if terms.limit.is_zcdp else "epsilon"
        this = f"this run would need {word} {_shown(needed[0])}, delta {_shown(needed[1])}"
        return f"{before.line}; {this}: THIS RUN WOULD BE REFUSED"

    @property
    def line(self) -> str:
        """The balance in one line."""
        limit, (amount, delta) = self.terms.limit, self.left
        word, ways = "rho" if limit.is_zcdp else "epsilon", self.spent.ways
        others = [f"{name} {_shown(ways[name])}" for name in ways if name != self.spent.way]
        by = f" (by {self.spent.way}; {', '.join(others)})" if others else ""
        runs = f"{len(self.charges)} run{'s' * (len(self.charges) != 1)}"
        return (
            f"{runs}: {word} {_shown(self.spent.amount)} of {_shown(limit.amount)}{by}, delta "
            f"{_shown(self.spent.delta)} of {_shown(limit.delta)}; left: {word} {_shown(amount)}, "
            f"delta {_shown(delta)}"
        )

    def __str__(self) -> str:
        cells = [
            (each.date, each.who, each.label, _told(each.cost.budget)) for each in self.charges
        ]
        table = [_HEADINGS, *cells]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in table
        ]
        return "\n".join([*lines, self.line])


class Ledger:
    """Count what several runs over the same people cost together, in a file, up to a limit.

    Charge a run before it starts: `ledger.charge(release, "visits per day")`, then run the
    pipeline. The charge is on the disk when the call returns. Together, all runs that were charged
    are within the limit: (epsilon, delta)-DP or rho-zCDP, as one release would be.

    Nothing is ever given back: a run that failed may have drawn. Charge every run, also one that is
    started again: it draws again.

    Edge cases:
        a file that is damaged is refused, and nothing is charged (see `ledger_lines`); two jobs
        that charge at once wait for each other; the limit is that of the first charge, and a call
        with another one is refused; a file that somebody replaces by an older copy forgets what
        was charged since.

    Args:
        path: the file; it is made with the first charge.
        limit: what all runs together may cost; it may be left out where the file exists. A `Budget`
            counts epsilons, `Budget.zcdp` counts rhos, which grow slowly over many runs.
        planned: whether the costs of all runs are decided without looking at what earlier runs
            released. Then the tightest of three compositions counts, else the plain sum, which
            holds whatever decides (see `mechanisms.accounting.composition`). None: as the file
            says, False for a new one.

    Raises:
        TypeError, ValueError: for a wrong path or limit.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        limit: Budget | None = None,
        planned: bool | None = None,
    ) -> None:
        self._path = ledger_file.checked(path)
        if limit is not None and type(limit) is not Budget:
            rule = f"be a Budget, not {checks.shown(limit)}"
            raise checks.ParameterTypeError("Ledger", "limit", rule, _START)
        if planned is not None and type(planned) is not bool:
            rule = f"be True or False, not {checks.shown(planned)}"
            raise checks.ParameterTypeError("Ledger", "planned", rule)
        self._limit, self._planned = limit, planned

    @property
    def balance(self) -> Balance:
        """What was charged, and what is left.

        Raises:
            ValueError: for a damaged file, and for one that has another limit.
        """
        return self._balance(*self._read())

    def foresee(self, cost: "Budget | Costly", label: str) -> Balance:
        """Return the balance as a charge would leave it, which may be beyond the limit."""
        terms, charges = self._read()
        return self._balance(terms, (*charges, _charge(cost, label)))

    def charge(self, cost: "Budget | Costly", label: str) -> Balance:
        """Charge a run that is about to start, and return what is left.

        Args:
            cost: the transform, as `PrivateAggregate`; or the budget of a run.
            label: what the run is for: public text.

        Raises:
            ValueError: if the total would pass the limit, or the file is damaged; nothing is
                charged then, and the run must not start.
            OSError: if the file cannot be written.
        """
        made = _charge(cost, label)
        with ledger_file.locked(self._path):
            terms, charges = self._read()
            before, after = (self._balance(terms, runs) for runs in (charges, (*charges, made)))
            if not after.is_within:
                raise _refused(before, after)
            ledger_file.replace(self._path, written(terms, after.charges))
        return after

    def _read(self) -> tuple[Terms, tuple[Charge, ...]]:
        text = ledger_file.text_of(self._path)
        if text is None:
            checks.require(
                self._limit is not None,
                "Ledger",
                "limit",
                f"be given for a new ledger: there is no file {str(self._path)!r}",
                _START,
            )
            assert self._limit is not None
            return Terms(self._limit, bool(self._planned), today()), ()
        terms, charges = read(str(self._path), text)
        limit = self._limit or terms.limit
        checks.require(
            limit == terms.limit,
            "Ledger",
            "limit",
            f"be {_told(terms.limit)}, which the ledger was started with, not {_told(limit)}",
            "Leave it out.",
        )
        checks.require(
            self._planned in (None, terms.planned),
            "Ledger",
            "planned",
            f"be {terms.planned}, which the ledger was started with",
            "Leave it out.",
        )
        return terms, charges

    def _balance(self, terms: Terms, charges: tuple[Charge, ...]) -> Balance:
        return _balance(str(self._path), terms, charges)


def _balance(path: str, terms: Terms, charges: tuple[Charge, ...]) -> Balance:
    spent = composed([each.cost for each in charges], terms.limit, terms.planned)
    return Balance(path, terms, charges, spent)


def _charge(cost: object, label: object) -> Charge:
    if type(label) is not str or not label or not label.isprintable():
        rule = f"be text of one line that is not empty, not {checks.shown(label)}"
        raise checks.ParameterTypeError("Ledger.charge", "label", rule)
    if type(cost) is Budget:
        whole = Cost(cost, ((cost, 1),))
    elif isinstance(cost, Costly) and not isinstance(cost, type):
        whole = Cost(cost.budget, tuple(cost.pieces()))
        checks.require(
            _is_whole(whole),
            "Ledger.charge",
            "cost",
            "be a transform whose releases cost its budget together",
            "Make another transform: the budget of one that is made cannot be changed.",
        )
    else:
        raise checks.ParameterTypeError(
            "Ledger.charge",
            "cost",
            f"be a transform with a budget, or a Budget, not {checks.shown(cost)}",
            'Write ledger.charge(release, "visits per day").',
        )
    return Charge(label, _user(), today(), whole)


def _is_whole(cost: Cost) -> bool:
    """Return whether there are pieces, which cost no more than the budget says."""
    if not cost.pieces or cost.budget.is_zcdp or any(each.is_zcdp for each, _ in cost.pieces):
        return bool(cost.pieces)
    return sum(each.amount * times for each, times in cost.pieces) <= cost.budget.amount


def _refused(before: Balance, after: Balance) -> checks.ParameterError:
    limit, (amount, delta) = before.terms.limit, before.left
    word = "rho" if limit.is_zcdp else "epsilon"
    rule = (
        f"be at most {word} {_shown(limit.amount)}, delta {_shown(limit.delta)} over all runs, not "
        f"{word} {_shown(after.spent.amount)}, delta {_shown(after.spent.delta)}"
    )
    mend = f"Left are {word} {_shown(amount)} and delta {_shown(delta)}; nothing was charged"
    if not limit.is_zcdp and any(charge.cost.budget.is_zcdp for charge in after.charges):
        mend += ", for a cost in rho needs a limit in rho, or planned costs"
    return checks.ParameterError("Ledger", f"the total of {before.path}", rule, mend)


def _told(budget: Budget) -> str:
    word = "rho" if budget.is_zcdp else "epsilon"
    delta = f", delta {_shown(budget.delta)}" if budget.delta else ""
    return f"{word} {_shown(budget.amount)}{delta}"


def _shown(number: Fraction | float) -> str:
    """Return a number for people: whole, or with six digits."""
    if isinstance(number, Fraction) and abs(number.numerator.bit_length()) > 900:
        return readable(number)
    return f"{float(number):.6g}"


def _user() -> str:
    """Return the name of the user of this process."""
    with contextlib.suppress(KeyError, OSError, ImportError):
        return "".join(letter for letter in getpass.getuser() if letter.isprintable())
    return "unknown"
