"""Seeded mutants: each known way to lose privacy, put in on purpose, must make a check fail.

Every mutant replaces one function of the library by a broken one; the check beside it passes with
the library as it is and fails with the mutant. The checks are small ones of their own or those of
the tests of the module. Random checks draw from the system; their false alarm is stated.
"""

import dataclasses
import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.account import Account
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding import table as tables
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Field
from beam_dp.mechanisms.metrics import clipped
from beam_dp.mechanisms.metrics.clipped import ClippedSum
from beam_dp.mechanisms.metrics.mean import Mean
from beam_dp.mechanisms.metrics.totals import Count, PeopleCount, Sum
from beam_dp.mechanisms.planning import allocation, program
from beam_dp.mechanisms.planning.allocation import SelectionRequest
from beam_dp.mechanisms.planning.builder import pools_of
from beam_dp.mechanisms.planning.first_choices import Chosen
from beam_dp.mechanisms.planning.program import Program, compile_program
from beam_dp.mechanisms.summaries import histograms
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from tests.doubles import ZeroNoise
from tests.reference import (
    Row,
    table_of,
)

FIELDS = (Field(0, "sum"),)
GRID = (1, 2, 4, 8)


# ---------------------------------------------------------------- checks: True where all is well


def selection_counts_people() -> bool:
    """One person with 1,000 rows is one person, far below the threshold."""
    request = SelectionRequest(Fraction(1), 1)
    made = compile_program([PeopleCount()], Budget(1.0, 1e-9), 1, selection=request)
    rows = [Row((1, 0), (0, 0), (n,)) for n in range(1000)]
    seen = cells(rows, made.measures, fields=())
    return not len(made.select(seen, ZeroNoise()))


def the_whole_is_spent_once() -> bool:
    """What the releases hold is at most the budget, by their own parameters."""
    made = compile_program([Count(), Sum("x"), PeopleCount()], Budget(1.0), 3)
    return dearest(made, 3) <= 1


def two_looks_spend_the_whole_once() -> bool:
    """Whichever look is used, it and the noise that follows it are what there is."""
    made = compile_program([Count(), Sum("x"), PeopleCount()], Budget(1.0), 1, partitions=1)
    assert [len(step.release.looks) for step in made.steps[:2]] == [2, 2]
    return dearest(made, 1) <= 1


def dearest(made: Program, reach: int) -> Fraction:
    """Return what numbers in pools cost at most, by their own parameters, whatever looks are used."""
    spent = Fraction(0)
    for pool, indexes in pools_of(made.steps).items():
        numbers = [made.steps[index].release for index in indexes]
        spent += max(
            sum(
                number.looks[look].amount
                for number, look in zip(numbers, looks, strict=True)
                if number.looks
            )
            + reach * pool.noise(looks).budget.amount
            for looks in itertools.product(*(range(len(number.noise_costs)) for number in numbers))
        )
    return spent


def a_centre_is_entered() -> bool:
    """The account holds the choice of the centre: its entries add up to the budget."""
    made = compile_program([Mean("x")], Budget(1), (1,))
    entries = made.at(Chosen(None, (7,))).entries
    return sum(cost.amount * times for _, cost, times in entries) == 1


def delta_is_shared_among_partitions() -> bool:
    request = SelectionRequest(Fraction(1), 1)
    made = compile_program([PeopleCount()], Budget(1.0, 1e-6), 5, selection=request)
    return 5 * made.selection.delta <= Fraction(1e-6)


def the_ledger_adds_without_rounding() -> bool:
    """Ten times the float 0.1 is more than 1, and nine of them leave less than another."""
    account = Account(Budget(1.0))
    try:
        for _ in range(10):
            account.spend("a tenth", Budget(0.1))
    except ValueError:
        return True
    return False


def a_person_is_in_one_bucket() -> bool:
    """One more person adds 1 to one bucket of the histogram of both signs, whatever they have."""
    release = ClippedSum(0, True, GRID, Fraction(1), (Budget(1.0),), (Budget(1.0),))
    buckets = 2 * release.choice.buckets
    others = [Row((person, 0), (0, 0), (3,)) for person in range(5)]
    for numbers in ((5, -5), (-1, 1), (7, -3), (1, 9), (-9, 2), (4, 4), (0, -8)):
        more = [Row((99, 0), (place, 0), (number,)) for place, number in enumerate(numbers)]
        found = []
        for rows in (others, others + more):
            summary = histograms.summarise_people(settled(rows), [release.shared_measure])
            view = PartitionView(summary, np.zeros(len(summary), np.int64), 1)
            found.append(view.histogram(0, buckets)[0])
        moves = np.abs(found[1] - found[0])
        if moves.sum() != 1:
            return False
    return True


# ------------------------------------------------------------------------------- what they need


def settled(rows: list[Row], fields: tuple[Field, ...] = FIELDS) -> tables.Table:
    bounder = Bounder(ContributionBounds(None), fields, b"key")
    return bounder.settle(bounder.prepare(table_of(rows)))


def cells(rows: list[Row], measures, fields: tuple[Field, ...] = FIELDS) -> PartitionView:
    return PartitionView.of_all(histograms.summarise(settled(rows, fields), measures))


# -------------------------------------------------------------------------------- the mutants


def _whole_noise_after_a_first_look(context, share, looks, shared):
    searches, noises = COSTS(context, share, looks, shared)
    return searches, noises[:1] * len(noises)


def _largest_of_each_sign(table, measures):
    """Count a person with their largest number above 0, and with that below 0."""
    signs = [dataclasses.replace(m, sign=s) for m in measures for s in (1, -1)]
    summary = PEOPLE(table, signs)
    below = summary.measure == 1
    summary.bucket = summary.bucket + below * (len(GRID) + 1)
    summary.measure = np.zeros_like(summary.measure)
    return summary


def _rows(self, measure):
    lines = np.flatnonzero(self._summary.measure == measure)
    return np.full(self.size, 1000 * len(lines), np.int64)


def _whole_for_each(budget, weights, reach, selection):
    whole, parts = SHARE_OUT(budget, weights, reach, selection)
    return whole, dict.fromkeys(parts, whole)


def _undivided_delta(budget, weights, reach, selection):
    whole, parts = SHARE_OUT(budget, weights, reach, selection)
    parts[None] = Budget(parts[None].amount, whole.delta)
    return whole, parts


def _unchecked(self, label, cost, times=1):
    return cost


def _float_sums(self, entry, amount, delta):
    self.amount = Fraction(float(self.amount) + float(amount))
    if float(self.amount) > float(self._budget.amount):
        raise ValueError("over")


COSTS, SHARE_OUT = clipped._costs, allocation.share_out
PEOPLE = histograms.summarise_people

BROKEN: dict[str, tuple[object, str, object, Callable[[], bool]]] = {
    "21 rows for people": (PartitionView, "people", _rows, selection_counts_people),
    "23 epsilon spent twice": (program, "share_out", _whole_for_each, the_whole_is_spent_once),
    "24 delta not divided": (program, "share_out", _undivided_delta, delta_is_shared_among_partitions),
    "25 float sums": (Account, "_record", _float_sums, the_ledger_adds_without_rounding),
    "a person counts on both sides": (histograms, "summarise_people", _largest_of_each_sign, a_person_is_in_one_bucket),
    "the centre of a mean is not entered": (Program, "centre_costs", property(lambda self: {}), a_centre_is_entered),
    "the second look is not taken from the noise": (clipped, "_costs", _whole_noise_after_a_first_look, two_looks_spend_the_whole_once),
}  # fmt: skip
"""What is replaced in which owner, by what, and the check that must notice."""
UNWATCHED = "23 epsilon spent twice", "24 delta not divided"
"""Those that the account would refuse are noticed without it too."""

CHECKS = list(dict.fromkeys(check for *_, check in BROKEN.values()))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_library_passes_every_check(check):
    assert check()


@pytest.mark.parametrize(
    ("name", "unwatched"),
    [*((name, False) for name in BROKEN), *((name, True) for name in UNWATCHED)],
)
def test_every_mutant_is_noticed(name, unwatched, monkeypatch):
    owner, attribute, broken, check = BROKEN[name]
    monkeypatch.setattr(owner, attribute, broken)
    if unwatched:  # the account, which would refuse it, is taken away as well
        monkeypatch.setattr(Account, "spend", _unchecked)
    try:
        assert not check()
    except ValueError as refusal:
        assert str(refusal).startswith("Account.spend: the total must be at most")
