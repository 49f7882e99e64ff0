"""Ledger: what several runs over the same people cost together, and a limit that holds."""

import contextlib
import dataclasses
import getpass
import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Protocol, runtime_checkable

from beam_dp.mechanisms.accounting.account import counted
from beam_dp.mechanisms.accounting.budget import Budget, readable
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.shown_tables import text_table
from beam_dp.spending import ledger_file
from beam_dp.spending.ledger_file import Charge

_HEADINGS = ("date", "who", "what", "person", "budget")
_START = 'Write dp.Ledger("visits.ledger.jsonl", limit=dp.Budget(3, 1e-6)).'


@runtime_checkable
class Costly(Protocol):
    """A transform that says what it costs: `PrivateAggregate` and what is built on it."""

    @property
    def person(self) -> str | Sequence[str]:
        """The columns that identify a person."""

    def cost(self) -> Budget:
        """Return what its releases cost together."""


@dataclasses.dataclass(frozen=True)
class Balance:
    """What runs cost together, and what their limit leaves.

    Costs add up, also where a run is decided on after earlier ones were seen. Of epsilons: an
    (epsilon, delta)-DP release leaks with probability delta, and else moves the loss by at most
    epsilon (Kairouz, Oh, Viswanath 2015, Theorem 3.1). Whatever is asked next, the loss is at most
    the sum of the epsilons, but where something leaked, which happens with at most the expected sum
    of the deltas. Of rhos: with the loss L and the sum rho so far,
    e^((alpha - 1) L - alpha (alpha - 1) rho) is a supermartingale (Feldman, Zrnic 2021, arXiv
    2008.11193; Whitehouse, Ramdas, Rogers, Wu 2023, arXiv 2203.05481).

    Attributes:
        path: the name of the ledger's file.
        limit: what all runs together may cost.
        charges: the runs.
    """

    path: str
    limit: Budget
    charges: tuple[Charge, ...]

    @property
    def amount(self) -> Fraction:
        """What the runs cost in the measure of the limit: a sum of epsilons, or of rhos."""
        return sum((counted(self.limit, each.budget) for each in self.charges), Fraction(0))

    @property
    def delta(self) -> Fraction:
        """The sum of their deltas."""
        return sum((each.budget.delta for each in self.charges), Fraction(0))

    @property
    def is_within(self) -> bool:
        """Whether the limit holds."""
        return self.amount <= self.limit.amount and self.delta <= self.limit.delta

    @property
    def left(self) -> tuple[Fraction, Fraction]:
        """The epsilon or rho, and the delta, that the limit leaves: at least 0 each."""
        left = self.limit.amount - self.amount, self.limit.delta - self.delta
        return max(left[0], Fraction(0)), max(left[1], Fraction(0))

    @property
    def line(self) -> str:
        """The balance in one line."""
        word = "rho" if self.limit.is_zcdp else "epsilon"
        return (
            f"{len(self.charges)} run{'s' * (len(self.charges) != 1)}: "
            f"{word} {_shown(self.amount)} of {_shown(self.limit.amount)}, "
            f"delta {_shown(self.delta)} of {_shown(self.limit.delta)}; left: "
            f"{self._told(*self.left)}"
        )

    def check(self, before: "Balance") -> None:
        """Refuse what passes the limit."""
        told = self._told
        checks.require(
            self.is_within,
            "Ledger",
            f"the total of {self.path}",
            f"be at most {told(self.limit.amount, self.limit.delta)} over all runs, not "
            f"{told(self.amount, self.delta)}",
            f"Left are {told(*before.left)}; nothing was charged",
        )

    def _told(self, amount: Fraction, delta: Fraction) -> str:
        word = "rho" if self.limit.is_zcdp else "epsilon"
        return f"{word} {_shown(amount)}, delta {_shown(delta)}"

    def __str__(self) -> str:
        cells = [
            (
                each.date,
                each.who,
                each.label,
                checks.listed(each.person) if each.person else "?",
                _told(each.budget),
            )
            for each in self.charges
        ]
        return "\n".join([*text_table(_HEADINGS, cells), self.line])


class Ledger:
    """Count what several runs over the same people cost together, in a file, up to a limit.

    Charge a run before it starts: `ledger.charge(release, "visits per day")`, then run the
    pipeline. The charge is on the disk when the call returns. Together, all runs that were charged
    are within the limit: (epsilon, delta)-DP or rho-zCDP, as one release would be.

    Nothing is ever given back: a run that failed may have drawn. Charge every run, also one that is
    started again: it draws again.

    Edge cases:
        a file that is damaged is refused, and nothing is charged (see `ledger_file`); two jobs
        that charge at once wait for each other; the limit is that of the first charge, and a call
        with another one is refused; so is a person in other columns than in the charges before,
        for those would be other people (lines that name no column bind nobody); so is a file of
        several hard links, while symbolic links are followed; a file that somebody replaces by an
        older copy forgets what was charged since.

    Args:
        path: the file; it is made with the first charge.
        limit: what all runs together may cost; it may be left out where the file exists. A `Budget`
            counts epsilons; it takes no run in rho. `Budget.zcdp` counts rhos, which grow slowly
            over many runs; a run of (epsilon, delta) counts epsilon^2 / 2 there, and its delta.

    Raises:
        TypeError, ValueError: for a wrong path or limit.
    """

    def __init__(self, path: str | os.PathLike[str], limit: Budget | None = None) -> None:
        ledger_file.checked(path)
        self._given = Path(path).absolute()
        if limit is not None and type(limit) is not Budget:
            rule = f"be a Budget, not {checks.shown(limit)}"
            raise checks.ParameterTypeError("Ledger", "limit", rule, _START)
        self._limit = limit

    @property
    def balance(self) -> Balance:
        """What was charged, and what is left.

        Raises:
            ValueError: for a damaged file, and for one that has another limit.
        """
        return self._read(self._path)[1]

    def foresee(
        self, cost: "Budget | Costly", label: str, person: str | Sequence[str] | None = None
    ) -> Balance:
        """Return the balance as a charge would leave it, which may be beyond the limit."""
        made = _charge(cost, label, person)
        return _with(self._read(self._path)[1], made)

    def charge(
        self, cost: "Budget | Costly", label: str, person: str | Sequence[str] | None = None
    ) -> Balance:
        """Charge a run that is about to start, and return what is left.

        Args:
            cost: the transform, as `PrivateAggregate`; or the budget of a run.
            label: what the run is for: public text.
            person: the columns that identify a person, where `cost` is a budget; None: unknown. A
                transform says it itself.

        Raises:
            ValueError: if the total would pass the limit, a person is in other columns than before,
                or the file is damaged or has several links; nothing is charged then, and the run
                must not start.
            OSError: if the file cannot be written.
        """
        path, made = self._path, _charge(cost, label, person)
        with ledger_file.locked(path):
            text, before = self._read(path)
            after = _with(before, made)
            after.check(before)
            ledger_file.replace(path, ledger_file.with_charge(text, made))
        return after

    @property
    def _path(self) -> Path:
        """The file now: a link may have been put in its place since the last charge."""
        return ledger_file.checked(self._given)

    def _read(self, path: Path) -> tuple[str, Balance]:
        """Return the text of the file, and what it says; of none, those of a new one."""
        text = ledger_file.text_of(path)
        if text is None:
            checks.require(
                self._limit is not None,
                "Ledger",
                "limit",
                f"be given for a new ledger: there is no file {str(path)!r}",
                _START,
            )
            assert self._limit is not None
            text = ledger_file.started(self._limit)
        limit, charges = ledger_file.read(str(path), text)
        asked = self._limit or limit
        rule = f"be {_told(limit)}, which the ledger was started with, not {_told(asked)}"
        checks.require(asked == limit, "Ledger", "limit", rule, "Leave it out.")
        for each in charges:
            checks.require(
                limit.is_zcdp or not each.budget.is_zcdp,
                "Ledger",
                f"the limit of {str(path)!r}",
                "be one in rho, as runs in it are",
                "Start a ledger with limit=dp.Budget.zcdp(rho), and charge these runs there.",
            )
        return text, Balance(str(path), limit, charges)


def _with(balance: Balance, made: Charge) -> Balance:
    """Return the balance with one more charge, of the same people."""
    before = next((each.person for each in balance.charges if each.person), made.person)
    checks.require(
        made.person in ((), before),
        "Ledger",
        "person",
        f"be {checks.listed(before)} as in earlier runs of {balance.path!r}, not "
        f"{checks.listed(made.person)}",
        "Charge other people to another ledger. If these are the same people, give their column "
        "the same name",
    )
    checks.require(
        balance.limit.is_zcdp or not made.budget.is_zcdp,
        "Ledger.charge",
        "cost",
        f"be an epsilon and a delta, as the limit is, not {_told(made.budget)}",
        "Start a ledger whose limit is a rho: it takes both.",
    )
    return dataclasses.replace(balance, charges=(*balance.charges, made))


def _charge(cost: object, label: object, person: object) -> Charge:
    if type(label) is not str or not label or not label.isprintable():
        rule = f"be text of one line that is not empty, not {checks.shown(label)}"
        raise checks.ParameterTypeError("Ledger.charge", "label", rule)
    whole = cost
    if isinstance(cost, Costly) and not isinstance(cost, type):
        checks.require(
            person is None, "Ledger.charge", "person", "be left out: the transform says it itself"
        )
        whole, person = cost.cost(), cost.person
    if type(whole) is not Budget:
        raise checks.ParameterTypeError(
            "Ledger.charge",
            "cost",
            f"be a transform with a budget, or a Budget, not {checks.shown(cost)}",
            'Write ledger.charge(release, "visits per day").',
        )
    return Charge(label, _user(), ledger_file.today(), whole, _columns(person))


def _columns(person: object) -> tuple[str, ...]:
    """Return the columns that identify a person, in a fixed order; none where they are unknown."""
    if person is None:
        return ()
    names = [person] if isinstance(person, str) else person
    return tuple(sorted(checks.columns("Ledger.charge", "person", names)))


def _told(budget: Budget) -> str:
    word = "rho" if budget.is_zcdp else "epsilon"
    delta = f", delta {_shown(budget.delta)}" if budget.delta else ""
    return f"{word} {_shown(budget.amount)}{delta}"


def _shown(number: Fraction) -> str:
    """Return a number for people: whole, or with six digits."""
    return readable(number) if number > 1 << 900 else f"{float(number):.6g}"


def _user() -> str:
    """Return the name of the user of this process."""
    with contextlib.suppress(KeyError, OSError, ImportError):
        return "".join(letter for letter in getpass.getuser() if letter.isprintable())
    return "unknown"
