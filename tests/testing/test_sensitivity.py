"""Claims of sensitivity: false ones are refuted by a real counterexample, true ones are not."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms import sensitivity
from beam_dp.testing import check_sensitivity
from beam_dp.testing import sensitivity as checking

SPENT = [(3, 9), (40,), (), (7, 7, 7), (1,), (0, 2)]
MANY = [tuple(range(i % 5)) for i in range(40)]


def clipped_sum(cap):
    return lambda people: sum(min(sum(rows), cap) for rows in people)


def clipped_rows(cap):
    """Return the broken twin: every row is clipped, not every person."""
    return lambda people: sum(min(row, cap) for rows in people for row in rows)


def clipped_histogram(edges_of_bins):
    """Return how many people have each clipped value: a vector."""
    return lambda people: [
        sum(min(len(rows), edges_of_bins - 1) == i for rows in people) for i in range(edges_of_bins)
    ]


# Our own mechanisms, with the sensitivity that their noise is scaled to.
OURS = {
    "clipped sum": (clipped_sum(10), 10, SPENT),
    "people per bin": (clipped_histogram(3), 1, MANY),
}
BROKEN = {
    "clipped rows": (clipped_rows(10), 10, SPENT),
    "too low a clip": (clipped_sum(10), 9, SPENT),
    "people and rows": (lambda people: [len(people), clipped_sum(1)(people)], 1, SPENT),
}


@pytest.mark.parametrize(("f", "claimed", "people"), OURS.values(), ids=OURS)
def test_our_own_sensitivities_are_not_refuted(f, claimed, people):
    assert check_sensitivity(f, claimed, people, attempts=300) is None


@pytest.mark.parametrize(("f", "claimed", "people"), BROKEN.values(), ids=BROKEN)
def test_false_claims_are_refuted(f, claimed, people):
    found = check_sensitivity(f, claimed, people, attempts=300)
    assert found.rule == "|f(larger) - f(smaller)|_p <= claimed" and found.at == 1
    (joined,) = Counter(found.larger) - Counter(found.smaller)
    assert joined in people and len(found.larger) == len(found.smaller) + 1
    moved = np.abs(np.subtract(f(found.larger), f(found.smaller))).sum()
    assert found.values == (moved, claimed) and moved > claimed


@pytest.mark.parametrize("p", [1, 2, math.inf])
def test_it_proves_the_claim_where_it_looks_at_all(p):
    """Of all histograms up to 4 people in 3 bins it refutes exactly what is below the maximum."""
    functions = [
        lambda x: Fraction(int(x[1] + 2 * x[2]), max(1, int(x.sum()))),
        lambda x: [int(x[0]) ** 2, int(x[1]) * int(x[2])],
        lambda x: x.max(),
        lambda x: int(x[0] == 3 and x[1] == 1 and x[2] == 0),
    ]
    for f in functions:
        most = sensitivity.global_sensitivity(f, sensitivity.histograms(3, 3), p)
        below = most * (1 - 1e-9) if isinstance(most, float) else most - Fraction(1, 10**30)
        assert check_sensitivity(f, most, bins=3, p=p, size=4, attempts=35) is None
        found = check_sensitivity(f, below, bins=3, p=p, size=4, attempts=35)
        assert found.values[0] > below and len(found.larger) <= 4 and found.at == p


def test_all_subsets_are_looked_at():
    """Also where the pairs are more than the attempts."""

    def one_place(people):
        return 5 * (people == tuple(range(10)))

    assert check_sensitivity(one_place, 4, range(10), attempts=1024) is not None
    assert check_sensitivity(one_place, 5, range(10), attempts=1024) is None
    assert check_sensitivity(one_place, 4, range(10), attempts=1024, size=9) is None
    assert check_sensitivity(len, 0, []) is None
    assert check_sensitivity(len, 0, [7]).larger == (7,)


def test_a_bin_is_a_record():
    found = check_sensitivity(lambda x: x[0] ** 2 + 0 * x[1], 4, bins=2, size=4)
    assert found.values == (5, 4) and found.smaller == (0, 0) and found.larger == (0, 0, 0)


def test_random_histograms_refute_what_is_false_in_one_bin():
    """Of 4,096 pairs none has the bin with a chance of (7/8)^4096 < 1e-200."""
    assert check_sensitivity(lambda x: 2 * x[5], 2, bins=8) is None
    found = check_sensitivity(lambda x: 2 * x[5], 1, bins=8)
    assert found.values == (2, 1) and len(found.larger) <= 32
    assert Counter(found.larger) - Counter(found.smaller) == {5: 1}


def test_the_rounding_of_floats_is_no_counterexample():
    people = [0.1, 0.2, 0.3, 0.7]
    assert check_sensitivity(math.fsum, 0.7, people) is None
    assert check_sensitivity(sum, 0.7, people) is None
    assert check_sensitivity(sum, 0.6999, people).values[1] == Fraction(0.6999)
    assert check_sensitivity(lambda rows: [len(rows)] * 3, math.sqrt(3), [1, 2], p=2) is None
    assert check_sensitivity(lambda rows: [len(rows)] * 3, 1.7, [1, 2], p=2) is not None


def test_a_check_that_sees_only_one_bin_is_noticed(monkeypatch):
    """The broken twin joins people to the first bin only."""
    moves = checking._moves
    monkeypatch.setattr(checking, "_moves", lambda *given: (m for m in moves(*given) if m[1] == 0))
    assert check_sensitivity(lambda x: 2 * x[1], 1, bins=2, size=3) is None
    monkeypatch.undo()
    assert check_sensitivity(lambda x: 2 * x[1], 1, bins=2, size=3) is not None


BAD = [
    (lambda: check_sensitivity(3, 1, []), TypeError, "f must be a function"),
    (lambda: check_sensitivity(len, -1, []), ValueError, "claimed must be at least 0, not -1"),
    (lambda: check_sensitivity(len, math.nan, []), ValueError, "claimed must be finite"),
    (lambda: check_sensitivity(len, 1), TypeError, "either people or bins must be given"),
    (lambda: check_sensitivity(len, 1, [], p=0.5), ValueError, "p must be from 1 to inf"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_wrong_calls_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
