"""Ledger: what several runs over the same people cost together, and a limit that holds."""

import collections
import contextlib
import dataclasses
import functools
import getpass
import math
import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from beam_dp.mechanisms.accounting import periods
from beam_dp.mechanisms.accounting.budget import Budget, counted
from beam_dp.mechanisms.numerics import checks
from beam_dp.spending import ledger_bucket, ledger_file
from beam_dp.spending.ledger_file import Charge
from beam_dp.text.text_tables import text_table

_HEADINGS = ("date", "who", "what", "person", "budget")
_HIGHEST = Fraction(700)  # e to the power of it is a float
_SAME = {"true": "1", "false": "0"}  # a column of booleans has the same rows by either name
_START = 'Write dp.Ledger("visits.ledger.jsonl", limit=dp.Budget(3, 1e-6)).'


@dataclasses.dataclass(frozen=True)
class Balance:
    """What runs cost together, and what their limit leaves.

    Costs add up, also where a run is decided on after earlier ones were seen. Of epsilons: an
    (epsilon, delta)-DP release leaks with probability delta, and else moves the loss by at most
    epsilon (Kairouz, Oh, Viswanath 2015, Theorem 3.1). Whatever is asked next, the loss is at most
    the sum of the epsilons unless something leaked, and the probability of that is at most the
    expected sum of the deltas. Of rhos: with the loss L and the sum rho so far,
    e^((alpha - 1) L - alpha (alpha - 1) rho) is a supermartingale (Feldman, Zrnic 2021, arXiv
    2008.11193; Whitehouse, Ramdas, Rogers, Wu 2023, arXiv 2203.05481).

    *Periods.* Where runs protect one person's rows of one period, so does the limit. Take a person
    and a period. A run that reads only rows of other periods has the same input with and without
    these rows, whatever was released before: it moves the loss by 0. The others add up. So the cost
    is the largest, over the periods, of the sum of the runs that read it; a run that does not say
    which it reads, reads all. A run over n periods is n steps for a person who has rows in all:
    (n epsilon, delta (1 + e^epsilon + ... + e^((n - 1) epsilon)))-DP (Dwork, Roth 2014, Theorem
    2.2), or n^2 rho (Bun, Steinke 2016, Proposition 1.9). That bound on persons has no limit.

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
        return self._largest(lambda each: counted(self.limit, each.budget))

    @property
    def delta(self) -> Fraction:
        """The sum of their deltas."""
        return self._largest(lambda each: each.budget.delta)

    def _largest(self, cost: Callable[[Charge], Fraction]) -> Fraction:
        """Return the sum of the runs of all periods, and of those of the period that has most."""
        whole, apart = Fraction(0), collections.defaultdict[str, Fraction](Fraction)
        for each in self.charges:
            if not each.ledger_period:
                whole += cost(each)
                continue
            for period in periods.named(each.ledger_period):
                apart[_SAME.get(period, period)] += cost(each)
        return whole + max(apart.values(), default=Fraction(0))

    @property
    def period(self) -> str:
        """The column of the period, of which the limit holds for one each; "" for none."""
        return next((each.period for each in self.charges if each.period), "")

    @property
    def of_persons(self) -> tuple[Fraction, float] | None:
        """What the runs cost, at most, a person who has rows in all periods; None: unknown."""
        amount, delta = Fraction(0), 0.0
        for each in self.charges:
            budget = each.budget
            if each.period and not each.ledger_period:
                return None
            steps = len(periods.named(each.ledger_period)) if each.ledger_period else 1
            if steps > 1 and budget.is_zcdp and budget.delta:
                return None
            amount += counted(self.limit, budget) * steps ** (2 if self.limit.is_zcdp else 1)
            if budget.delta:
                grown = (min(budget.amount * step, _HIGHEST) for step in range(steps))
                delta += float(budget.delta) * sum(math.exp(each) for each in grown)
        return amount, min(delta, 1.0)

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
        left = _amounts(self.limit.is_zcdp, *self.left)
        runs = f"{len(self.charges)} run{'s' * (len(self.charges) != 1)}: "
        spent = (
            f"{word} {_shown(self.amount)} of {_shown(self.limit.amount)}, "
            f"delta {_shown(self.delta)} of {_shown(self.limit.delta)}"
        )
        if not self.period:
            return f"{runs}{spent}; left: {left}"
        found = self.of_persons
        most = "not bounded" if found is None else f"at most {_amounts(self.limit.is_zcdp, *found)}"
        of_all = tuple(each for each in self.charges if not each.ledger_period)
        fresh = _amounts(self.limit.is_zcdp, *dataclasses.replace(self, charges=of_all).left)
        return (
            f"{runs}per person and {self.period}: {spent}; left for a {self.period} that no run "
            f"named: {fresh}; for others: at least {left}; per person over all: {most}"
        )

    def with_charge(self, made: Charge) -> "Balance":
        """Return the balance with one more charge, of the same people."""
        before = next((each.person for each in self.charges if each.person), made.person)
        checks.require(
            made.person in ((), before),
            "Ledger",
            "person",
            f"be {checks.listed(before)} as in earlier runs of {self.path!r}, not "
            f"{checks.listed(made.person)}",
            "Charge other people to another ledger. If these are the same people, give their "
            "column the same name",
        )
        unit = next((each.period for each in self.charges if each.person), made.period)
        checks.require(
            made.period in ("", unit),
            "Ledger",
            "period",
            f"be {unit or 'none'} as in earlier runs of {self.path!r}, not {made.period}",
            "Charge runs that protect something else to another ledger",
        )
        checks.require(
            self.limit.is_zcdp or not made.budget.is_zcdp,
            "Ledger.charge",
            "cost",
            f"be an epsilon and a delta, as the limit is, not {_text_of(made.budget)}",
            "Start a ledger whose limit is a rho: it takes both.",
        )
        return dataclasses.replace(self, charges=(*self.charges, made))

    def __str__(self) -> str:
        cells = [
            (each.date, each.who, each.label, _unit(each), _text_of(each.budget))
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
        for those would be other people (lines that name no column bind nobody), and a run that
        protects one period of a person where they protect all, or periods of another column;
        symbolic links are followed; a file that somebody replaces by an older copy, or of which
        there are hard links, forgets what was charged since.

    Args:
        path: the file; it is made with the first charge. `s3://bucket/name` and `gs://bucket/name`
            are changed by conditional writes (see `ledger_bucket`), with the credentials of the
            environment: every job that reads the same object counts, wherever it runs.
        limit: what all runs together may cost; it may be left out where the file exists. A `Budget`
            counts epsilons; it takes no run in rho. `Budget.zcdp` counts rhos, which grow slowly
            over many runs; a run of (epsilon, delta) counts epsilon^2 / 2 there, and its delta.

    Raises:
        TypeError, ValueError: for a wrong path or limit.
    """

    def __init__(self, path: str | os.PathLike[str], limit: Budget | None = None) -> None:
        self._given: Any = path
        if not ledger_bucket.is_bucket(path):
            ledger_file.checked(path)
            self._given = Path(path).absolute()
        if limit is not None:
            checks.of_type("Ledger", "limit", limit, Budget, _START)
        self._limit = limit

    @property
    def balance(self) -> Balance:
        """What was charged, and what is left.

        Raises:
            ValueError: for a damaged file, and for one that has another limit.
        """
        store, path = self._stored
        return self._read(store.text_of(path))[1]

    @property
    def exists(self) -> bool:
        """Whether there is such a file."""
        store, path = self._stored
        return store.text_of(path) is not None

    def preview(self, cost: Any, label: str, person: str | Sequence[str] | None = None) -> Balance:
        """Return the balance as a charge would leave it, which may be beyond the limit."""
        return self.balance.with_charge(_charge(cost, label, person))

    def charge(self, cost: Any, label: str, person: str | Sequence[str] | None = None) -> Balance:
        """Charge a run that is about to start, and return what is left.

        Args:
            cost: the transform, as `PrivateAggregate`, or `PrivateTables` for all its tables; or
                the `Budget` of a run.
            label: what the run is for: public text.
            person: the columns that identify a person, where `cost` is a budget; None: unknown. A
                transform names it.

        Raises:
            ValueError: if the total would pass the limit, a person is in other columns than before,
                or the file is damaged; nothing is charged then, and the run must not start.
            OSError: if the file cannot be written.
        """
        made = _charge(cost, label, person)
        store, path = self._stored
        after: Balance = store.changed(path, functools.partial(self._with_charge, made))
        return after

    def _with_charge(self, made: Charge, content: str | None) -> tuple[str, Balance]:
        """Return the text with one more line, and what it says."""
        text, before = self._read(content)
        after, zcdp = before.with_charge(made), before.limit.is_zcdp
        each = after.period and f" of one {after.period}"
        total = _amounts(zcdp, after.amount, after.delta)
        checks.require(
            after.is_within,
            "Ledger",
            f"the total of {after.path}",
            f"be at most {_text_of(before.limit)} over all runs{each}, not {total}",
            f"Left are {_amounts(zcdp, *before.left)}; nothing was charged",
        )
        return ledger_file.with_charge(text, made), after

    @property
    def _stored(self) -> tuple[Any, Any]:
        """What reads and changes the file, and its path now: a link may have been put in its place."""
        if isinstance(self._given, str):
            return ledger_bucket, self._given
        return ledger_file, ledger_file.checked(self._given)

    def _read(self, text: str | None) -> tuple[str, Balance]:
        """Return the text of a file, and what it says; of none, those of a new one."""
        path = str(self._stored[1])
        if text is None:
            if self._limit is None:
                rule = f"be given for a new ledger: there is no file {path!r}"
                raise checks.ParameterError("Ledger", "limit", rule, _START)
            text = ledger_file.started(self._limit)
        limit, charges = ledger_file.read(path, text)
        asked = self._limit or limit
        rule = f"be {_text_of(limit)}, which the ledger was started with, not {_text_of(asked)}"
        checks.require(asked == limit, "Ledger", "limit", rule, "Leave it out.")
        return text, Balance(path, limit, charges)


def _charge(cost: Any, label: object, person: Any) -> Charge:
    if type(label) is not str or not label or not label.isprintable():
        rule = f"be text of one line that is not empty, not {checks.shown(label)}"
        raise checks.ParameterTypeError("Ledger.charge", "label", rule)
    whole = cost = cost if isinstance(cost, type) else getattr(cost, "charged", cost)
    named = ["", ""]
    if hasattr(cost, "cost") and not isinstance(cost, type):
        rule = "be left out: the transform names it"
        checks.require(person is None, "Ledger.charge", "person", rule)
        whole, person = cost.cost(), cost.person
        named = [getattr(cost, name, None) or "" for name in ("period_source", "ledger_period")]
    if type(whole) is not Budget:
        raise checks.ParameterTypeError(
            "Ledger.charge",
            "cost",
            f"be a transform with a budget, or a Budget, not {checks.shown(cost)}",
            'Write ledger.charge(release, "visits per day").',
        )
    names = () if person is None else [person] if isinstance(person, str) else person
    columns = checks.columns("Ledger.charge", "person", names)
    return Charge(label, _user(), ledger_file.today(), whole, tuple(sorted(columns)), *named)


def _unit(charge: Charge) -> str:
    """Return what a run protects: the columns of the person, and the periods."""
    person = checks.listed(charge.person) if charge.person else "?"
    if not charge.period:
        return person
    return f"{person} by {charge.period!r}: {charge.ledger_period or 'all'}"


def _amounts(zcdp: bool, amount: Fraction, delta: Fraction | float) -> str:
    return f"{'rho' if zcdp else 'epsilon'} {_shown(amount)}, delta {_shown(delta)}"


def _text_of(budget: Budget) -> str:
    return _amounts(budget.is_zcdp, budget.amount, budget.delta)


def _shown(number: Fraction | float) -> str:
    """Return a number for people: whole, or with six digits."""
    return checks.readable(Fraction(number)) if number > 1 << 900 else f"{float(number):.6g}"


def _user() -> str:
    """Return the name of the user of this process."""
    with contextlib.suppress(KeyError, OSError, ImportError):
        return "".join(letter for letter in getpass.getuser() if letter.isprintable())
    return "unknown"
