"""Ledger: what several runs over the same people cost together, and a limit that holds."""

import contextlib
import dataclasses
import getpass
import math
import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Protocol, runtime_checkable

from beam_dp.mechanisms.accounting.budget import Budget, readable
from beam_dp.mechanisms.accounting.composition import Composition, Cost, composed, rho_of
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.shown_tables import text_table
from beam_dp.spending import ledger_file
from beam_dp.spending.ledger_file import Charge, Terms

_HEADINGS = ("date", "who", "what", "person", "budget")
_START = 'Write dp.Ledger("visits.ledger.jsonl", limit=dp.Budget(3, 1e-6)).'


@runtime_checkable
class Costly(Protocol):
    """A transform that says what it costs: `PrivateAggregate` and what is built on it."""

    budget: Budget

    @property
    def person(self) -> str | Sequence[str]:
        """The columns that identify a person."""

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

    @classmethod
    def of(cls, path: Path | str, terms: Terms, charges: tuple[Charge, ...]) -> "Balance":
        """Return what these runs cost together."""
        spent = composed([each.cost for each in charges], terms.limit, terms.planned)
        return cls(str(path), terms, charges, spent)

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
        before = Balance.of(self.path, self.terms, self.charges[:-1])
        needed = self.spent.amount - before.spent.amount, self.spent.delta - before.spent.delta
        need = _needed(*needed, self.terms.limit)
        return f"{before.line}; this run would need {need}: THIS RUN WOULD BE REFUSED"

    @property
    def line(self) -> str:
        """The balance in one line."""
        limit, spent = self.terms.limit, self.spent
        word = "rho" if limit.is_zcdp else "epsilon"
        by = f" (by {spent.way})" if len(spent.ways) > 1 else ""
        return (
            f"{len(self.charges)} run{'s' * (len(self.charges) != 1)}: "
            f"{word} {_shown(spent.amount)} of {_shown(limit.amount)}{by}, "
            f"delta {_shown(spent.delta)} of {_shown(limit.delta)}; left: "
            f"{_needed(*self.left, limit)}"
        )

    def __str__(self) -> str:
        cells = [
            (
                each.date,
                each.who,
                each.label,
                checks.listed(each.person) if each.person else "?",
                _told(each.cost.budget),
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
        ledger_file.checked(path)
        self._given = Path(path).absolute()
        if limit is not None and type(limit) is not Budget:
            rule = f"be a Budget, not {checks.shown(limit)}"
            raise checks.ParameterTypeError("Ledger", "limit", rule, _START)
        if planned is not None:
            checks.boolean("Ledger", "planned", planned)
        self._limit, self._planned = limit, planned

    @property
    def balance(self) -> Balance:
        """What was charged, and what is left.

        Raises:
            ValueError: for a damaged file, and for one that has another limit.
        """
        path = self._path
        return Balance.of(path, *self._read(path))

    def foresee(
        self, cost: "Budget | Costly", label: str, person: str | Sequence[str] | None = None
    ) -> Balance:
        """Return the balance as a charge would leave it, which may be beyond the limit."""
        path, made = self._path, _charge(cost, label, person)
        terms, charges = self._read(path)
        return Balance.of(path, terms, _with(path, charges, made))

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
            terms, charges = self._read(path)
            after = Balance.of(path, terms, _with(path, charges, made))
            if not after.is_within:
                raise _refused(Balance.of(path, terms, charges), after)
            ledger_file.replace(path, ledger_file.written(terms, after.charges))
        return after

    @property
    def _path(self) -> Path:
        """The file now: a link may have been put in its place since the last charge."""
        return ledger_file.checked(self._given)

    def _read(self, path: Path) -> tuple[Terms, tuple[Charge, ...]]:
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
            return Terms(self._limit, bool(self._planned), ledger_file.today()), ()
        terms, charges = ledger_file.read(str(path), text)
        limit = self._limit or terms.limit
        rule = f"be {_told(terms.limit)}, which the ledger was started with, not {_told(limit)}"
        checks.require(limit == terms.limit, "Ledger", "limit", rule, "Leave it out.")
        rule = f"be {terms.planned}, which the ledger was started with"
        is_same = self._planned in (None, terms.planned)
        checks.require(is_same, "Ledger", "planned", rule, "Leave it out.")
        return terms, charges


def _with(path: Path, charges: tuple[Charge, ...], made: Charge) -> tuple[Charge, ...]:
    """Return the charges and one more, of the same people."""
    before = next((each.person for each in charges if each.person), made.person)
    checks.require(
        made.person in ((), before),
        "Ledger",
        "person",
        f"be {checks.listed(before)} as in earlier runs of {str(path)!r}, not "
        f"{checks.listed(made.person)}",
        "Charge other people to another ledger. If these are the same people, give their column "
        "the same name",
    )
    return (*charges, made)


def _charge(cost: object, label: object, person: object) -> Charge:
    if type(label) is not str or not label or not label.isprintable():
        rule = f"be text of one line that is not empty, not {checks.shown(label)}"
        raise checks.ParameterTypeError("Ledger.charge", "label", rule)
    if type(cost) is Budget:
        whole = Cost(cost, ((cost, 1),))
    elif isinstance(cost, Costly) and not isinstance(cost, type):
        checks.require(
            person is None, "Ledger.charge", "person", "be left out: the transform says it itself"
        )
        whole, person = Cost(cost.budget, tuple(cost.pieces())), cost.person
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
    return Charge(label, _user(), ledger_file.today(), whole, _columns(person))


def _columns(person: object) -> tuple[str, ...]:
    """Return the columns that identify a person, in a fixed order; none where they are unknown."""
    if person is None:
        return ()
    names = [person] if isinstance(person, str) else person
    return tuple(sorted(checks.columns("Ledger.charge", "person", names)))


def _is_whole(cost: Cost) -> bool:
    """Return whether the pieces cost the budget's amount, exactly, and at most its delta.

    The whole amount is shared out, but of the delta only what there is use for. A budget in epsilon
    may be spent in rho: in as much as epsilon and the delta that is left are turned into.
    """
    whole, (rho, delta) = cost.budget, rho_of([cost])
    if not cost.pieces or delta > whole.delta:
        return False
    if whole.is_zcdp:
        return rho == whole.amount
    if not any(each.is_zcdp for each, _ in cost.pieces):
        return sum(each.amount * times for each, times in cost.pieces) == whole.amount
    left = whole.delta - delta
    return left > 0 and rho == Budget(whole.amount, left).to_zcdp().amount


def _refused(before: Balance, after: Balance) -> checks.ParameterError:
    limit = before.terms.limit
    rule = (
        f"be at most {_needed(limit.amount, limit.delta, limit)} over all runs, not "
        f"{_needed(after.spent.amount, after.spent.delta, limit)}"
    )
    mend = f"Left are {_needed(*before.left, limit)}; nothing was charged"
    if not limit.is_zcdp and any(charge.cost.budget.is_zcdp for charge in after.charges):
        mend += ", for a cost in rho needs a limit in rho, or planned costs"
    return checks.ParameterError("Ledger", f"the total of {before.path}", rule, mend)


def _needed(amount: Fraction | float, delta: Fraction, limit: Budget) -> str:
    """Return a cost in words: where no epsilon is enough, what is the cause."""
    if amount < math.inf:
        word = "rho" if limit.is_zcdp else "epsilon"
        return f"{word} {_shown(amount)}, delta {_shown(delta)}"
    return f"delta {_shown(delta)}" if delta > limit.delta else "an amount of rho"


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
