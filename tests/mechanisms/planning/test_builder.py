"""The columns and steps of a program: labels, measures, shared clips, and what each enters."""

import dataclasses
from fractions import Fraction

import pytest

import beam_dp as dp
from beam_dp.mechanisms.accounting.account import Account
from beam_dp.mechanisms.bounding.columns import Column, Role
from beam_dp.mechanisms.metrics.base import Context
from beam_dp.mechanisms.metrics.released import ALPHA
from beam_dp.mechanisms.planning.allocation import share_out, weights_of
from beam_dp.mechanisms.planning.builder import build, columns_of

ASKED = [dp.Count(), dp.Max("x", search=dp.AboveThreshold), dp.Mean("x"), dp.PeopleCount()]


def built(asked, budget=None, reach=2):
    """Return the steps and the entries of the account."""
    whole, shares = share_out(budget or dp.Budget(4.0), weights_of(asked), reach, None)
    account, context = Account(whole), Context(columns_of(asked), reach=reach)
    steps = build(asked, shares, context, account)
    return steps, account.entries


def test_labels_are_numbers_words_and_columns():
    steps, _ = built(ASKED)
    assert [step.label for step in steps] == [
        "0 rows",
        "1 max x",
        "2 distances x",
        "3 valid x",
        "4 people",
    ]


def test_measures_follow_each_other_behind_the_people():
    steps, _ = built(ASKED)
    at = 1
    for step in steps:
        assert step.first == at
        at += len(step.release.measures)
    assert [step.shared for step in steps] == [0, None, 1, 2, None]


def test_everything_that_a_release_spends_is_entered_as_often_as_a_person_pays_it():
    steps, entries = built(ASKED, reach=5)
    wanted = [
        (f"{step.label}: {purpose}" if purpose else step.label, cost, 1 if once else 5)
        for step in steps
        for cost, purpose, once in step.release.spends
    ]
    assert list(entries) == wanted
    assert sum(cost.amount * times for _, cost, times in wanted) == 4


def test_error_bounds_of_one_output_hold_together():
    steps, _ = built(ASKED)
    alphas = [getattr(step.release, "alpha", None) for step in steps]
    assert alphas == [ALPHA, None, ALPHA, ALPHA, ALPHA]


def test_a_refusal_names_the_metric_that_asks():
    with pytest.raises(ValueError, match=r"^Max: budget .* output column most would look"):
        built(
            [dp.Count(), dp.Max("x", name="most", search="auto")],
            dp.Budget(Fraction(1, 10**6)),
            reach=1,
        )


def test_a_release_that_spends_more_than_its_share_is_refused(monkeypatch):
    original = dp.PeopleCount.build

    def greedy(self, context, share):
        return original(self, dataclasses.replace(context, reach=1), share)

    monkeypatch.setattr(dp.PeopleCount, "build", greedy)
    with pytest.raises(ValueError, match="Account"):
        built([dp.PeopleCount()])


UNIT = Fraction(1, 10**6)


def test_each_column_is_read_once_in_each_of_its_roles() -> None:
    asked = [
        dp.Ratio("x", per="person"),
        dp.DistinctCount("x"),
        dp.TrimmedMean("y", person_value="last", last_by="when"),
        dp.Sum("x"),
        dp.Max("x"),
        dp.Count(),
        dp.Ratio("x", equals=1.0, per="person", name="of_floats"),
    ]
    assert columns_of(asked) == (
        Column("y", Role.VALUE, UNIT),
        Column("x", Role.VALUE, UNIT),
        Column("x", Role.ITEM),
        Column("x", Role.FLAG, 1),
        Column("x", Role.FLAG, 1.0),
        Column("when", Role.ORDER),
    )


def test_an_owner_stands_apart_even_where_it_is_compared_too() -> None:
    asked = [dp.DistinctCount("to", one_sided=True), dp.Sum("x")]
    assert columns_of(asked, ["to", "by"]) == (
        Column("x", Role.VALUE, UNIT),
        Column("to", Role.OWNER),
        Column("by", Role.OWNER),
        Column("to", Role.ITEM),
    )
    assert columns_of([dp.Count()], ["to"]) == (Column("to", Role.OWNER),)


def test_two_units_of_one_column_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^Min: unit must be the same .* not both 1e-06 and 0\.5"):
        columns_of([dp.Sum("x"), dp.Sum("y", unit=1), dp.Min("x", unit=0.5)])
    same = [dp.Sum("x", unit=0.5), dp.Max("x", unit=Fraction(1, 2))]
    assert columns_of(same) == (Column("x", Role.VALUE, Fraction(1, 2)),)
