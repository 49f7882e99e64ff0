"""Seeded mutants: each known way to lose privacy, put in on purpose, must make a check fail.

Each check passes with the library as it is, and fails where one function is replaced by a broken
one. Most mutants are those of whole releases (`tests.hostile.test_forced_draws`).
"""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.account import Account
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding import table as tables
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Field
from beam_dp.mechanisms.metrics.clipped import ClippedSum
from beam_dp.mechanisms.metrics.totals import PeopleCount
from beam_dp.mechanisms.planning import allocation, program
from beam_dp.mechanisms.planning.allocation import SelectionRequest
from beam_dp.mechanisms.planning.program import compile_program
from beam_dp.mechanisms.summaries import histograms
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from tests.reference import (
    Row,
    table_of,
)

FIELDS = (Field(0, "sum"),)
GRID = (1, 2, 4, 8)


def delta_is_shared_among_partitions() -> bool:
    request = SelectionRequest(Fraction(1), 1)
    made = compile_program([PeopleCount()], Budget(1.0, 1e-6), 5, selection=request)
    return 5 * made.selection.delta <= Fraction(1e-6)


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


def settled(rows: list[Row]) -> tables.Table:
    bounder = Bounder(ContributionBounds(None), FIELDS, b"key")
    return bounder.settle(bounder.prepare(table_of(rows)))


def _largest_of_each_sign(table, measures):
    """Count a person with their largest number above 0, and with that below 0."""
    signs = [dataclasses.replace(m, sign=s) for m in measures for s in (1, -1)]
    summary = PEOPLE(table, signs)
    below = summary.measure == 1
    summary.bucket = summary.bucket + below * (len(GRID) + 1)
    summary.measure = np.zeros_like(summary.measure)
    return summary


def _undivided_delta(budget, weights, reach, selection):
    whole, parts = SHARE_OUT(budget, weights, reach, selection)
    parts[None] = Budget(parts[None].amount, whole.delta)
    return whole, parts


SHARE_OUT, PEOPLE = allocation.share_out, histograms.summarise_people


def test_a_person_who_counts_on_both_sides_is_noticed(monkeypatch):
    assert a_person_is_in_one_bucket()
    monkeypatch.setattr(histograms, "summarise_people", _largest_of_each_sign)
    assert not a_person_is_in_one_bucket()


def test_a_delta_that_is_not_divided_is_noticed_and_refused(monkeypatch):
    assert delta_is_shared_among_partitions()
    monkeypatch.setattr(program, "share_out", _undivided_delta)
    with pytest.raises(ValueError, match="^Account.spend: the total must be at most"):
        delta_is_shared_among_partitions()
    monkeypatch.setattr(Account, "spend", lambda self, label, cost, times=1: cost)
    assert not delta_is_shared_among_partitions()
