"""The gate of AboveThreshold: one candidate that stands for too few people.

That it costs no more is audited exactly in tests/audit/test_search_audit.py.
"""

import itertools
import math
import pickle

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.search import AboveThreshold

SIZE = 4000
# DKW: cumulative shares of 4,000 draws are further off than this with a chance of 1e-10.
TOLERANCE = math.sqrt(math.log(2e10) / (2 * SIZE))
BUDGETS = [Budget(0.5), Budget(1), Budget(4), Budget.zcdp(0.5)]


def profile_of(losses, levels):
    """Return the profile with B[0..levels - 1] that gives candidates 0, 1, ... these losses."""
    n = len(losses)
    values = [next((i for i, loss in enumerate(losses) if loss <= k), n) for k in range(levels)]
    return Profile(values), Candidates.of(range(n))


def chances(search, losses):
    return search.distribution(*profile_of(losses, max(losses) + 1))


@pytest.mark.parametrize("budget", BUDGETS)
def test_who_passes_the_gate_stops_at_no_other_candidate_of_that_loss(budget):
    """With any number of people, and all of them above every candidate but the last."""
    gated, plain = AboveThreshold(budget, gate=True), AboveThreshold(budget)
    stray = []
    for search in (gated, plain):
        found = [chances(search, [people] * 63 + [0]) for people in range(0, 120, 3)]
        # (Of all runs: where nobody passes, that it is 3% of those who do says little.)
        stray.append(max(math.fsum(chance[1:-1]) for chance in found))
    assert stray[0] <= 0.03
    assert stray[1] > 0.3  # the broken twin: without the gate


@pytest.mark.parametrize("budget", BUDGETS)
def test_all_other_answers_are_within_the_shift_but_for_beta(budget):
    """Over all profiles of four candidates, in steps of a quarter of the shift."""
    search = AboveThreshold(budget, 0.2, gate=True)
    shift = search.shift(4)
    steps = sorted({0, 1, shift // 2, shift, shift + 1, 3 * shift})
    for losses in itertools.combinations_with_replacement(reversed(steps), 4):
        rounded = [*losses[:-1], 0]
        before = [math.inf, *rounded[:-1]]
        rows = list(zip(chances(search, losses), rounded, before, strict=True))[1:]
        assert math.fsum(p for p, loss, last in rows if loss > shift or last < 1) <= 0.2 + 1e-9


def test_few_people_end_at_the_gate_and_many_pass_it():
    search = AboveThreshold(Budget(1), gate=True)
    shift = search.shift(64)
    assert chances(search, [shift // 2] * 63 + [0])[0] > 0.9
    assert chances(search, [2 * shift] * 63 + [0])[0] < 0.01


def test_draws_follow_the_distribution():
    losses = [14, 14, 14, 12, 9, 4, 2, 0, 0, 0]
    search = AboveThreshold(Budget(1), 0.3, gate=True)
    profile, candidates = profile_of(losses, 15)
    wanted = np.cumsum(search.distribution(profile, candidates))
    drawn = [search.choose(profile, candidates) for _ in range(SIZE)]
    found = np.cumsum(np.bincount(drawn, minlength=len(losses))) / SIZE
    assert abs(found - wanted).max() < TOLERANCE
    # The broken twin: without the gate.
    plain = np.cumsum(AboveThreshold(Budget(1), 0.3).distribution(profile, candidates))
    assert abs(plain - wanted).max() > 2 * TOLERANCE


def test_where_the_gate_is_the_whole_plateau_and_where_all_are_one():
    search = AboveThreshold(Budget(1), gate=True)
    profile, candidates = profile_of([200, 3, 0, 0], 201)
    # 200 people end at the gate with a chance below e^-50.
    assert 0 not in {search.choose(profile, candidates) for _ in range(50)}
    # A plateau of all is left with 0.14%: in more than half of 20 draws with less than 1e-26.
    assert sum(search.choose(Profile([0]), candidates) == 0 for _ in range(20)) >= 10
    assert search.choose(Profile([9, 9]), Candidates.of([7])) == 7


def test_the_cap_is_enough():
    search = AboveThreshold(Budget(2), 0.3, gate=True)
    losses = [90, 55, 50, 41, 30, 21, 12, 7, 5, 1, 0, 0]
    cap = search.cap(len(losses))
    assert cap > AboveThreshold(Budget(2), 0.3).cap(len(losses))
    whole = search.distribution(*profile_of(losses, 91))
    cut = search.distribution(*profile_of(losses, cap + 1))
    assert sum(abs(a - b) for a, b in zip(whole, cut, strict=True)) < 2e-12
    half = search.distribution(*profile_of(losses, cap // 2))
    assert sum(abs(a - b) for a, b in zip(whole, half, strict=True)) > 1e-9


@pytest.mark.parametrize("rarity", [1.0, 5.0, 20.0])
def test_a_stop_beyond_the_reach_is_that_rare(rarity):
    for gate in (False, True):
        search = AboveThreshold(Budget(1), 0.3, gate=gate)
        reach = search.reach(8, rarity)
        assert math.fsum(chances(search, [reach + 1] * 7 + [0])[:-1]) <= math.exp(-rarity)
        assert search.reach(1, rarity) == 0


def test_it_travels():
    search = AboveThreshold(Budget(1), gate=True)
    assert pickle.loads(pickle.dumps(search)) == search != AboveThreshold(Budget(1))
