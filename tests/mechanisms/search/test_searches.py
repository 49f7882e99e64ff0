"""What all searches of a removal loss promise: their shifts, draws, caps, costs and errors."""

import math
import pickle

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.search import (
    AboveThreshold,
    ExponentialMechanism,
    NoisyBinarySearch,
)
from tests import laws

SIZE = 2_000
# DKW: sup |F_n - F| > sqrt(ln(2 / a) / (2 n)) has probability at most a = 1e-10: 0.0770.
TOLERANCE = math.sqrt(math.log(2e10) / (2 * SIZE))
KINDS = [AboveThreshold, ExponentialMechanism, NoisyBinarySearch]
TINY_RHO = Budget.zcdp(1e-6)  # no table of coins is so long: Laplace noise


def profile_of(losses, cap: int) -> tuple[Profile, Candidates]:
    """Return a profile that has these losses on the candidates 0, 1, ..."""
    n = len(losses)
    values = [next((i for i, loss in enumerate(losses) if loss <= k), n) for k in range(cap)]
    return Profile(values), Candidates.of(range(n))


def chances(search, losses) -> list[float]:
    """Return the output probabilities for a profile that has these losses."""
    return laws.distribution(search, *profile_of(losses, max(losses) + 1))


def distance(drawn: list[int], chances: list[float]) -> float:
    """Return sup |F_n - F|."""
    counts = np.bincount(drawn, minlength=len(chances))
    return float(np.abs(np.cumsum(counts) / len(drawn) - np.cumsum(chances)).max())


SHIFTS = [
    (AboveThreshold, Budget(1), {8: 21, 16: 30, 20: 34, 32: 45, 64: 74}),
    (AboveThreshold, Budget(0.1), {8: 217, 10: 238, 16: 300, 20: 341, 32: 455, 64: 742}),
    (AboveThreshold, Budget.zcdp(0.5), {8: 17, 16: 24, 64: 65}),
    (AboveThreshold, Budget.zcdp(0.005), {8: 172, 16: 248, 64: 657}),
    (ExponentialMechanism, Budget(1), {8: 31, 16: 53, 32: 97, 64: 187}),
    (ExponentialMechanism, Budget(0.1), {8: 311, 16: 533, 32: 977, 64: 1865}),
    (ExponentialMechanism, Budget.zcdp(0.5), {8: 15, 16: 27, 64: 93}),
    (ExponentialMechanism, Budget.zcdp(0.005), {8: 155, 16: 267, 64: 933}),
    (NoisyBinarySearch, Budget(1), {8: 70, 16: 162, 32: 368, 64: 824}),
    (NoisyBinarySearch, Budget(0.1), {8: 698, 16: 1616, 32: 3676, 64: 8238}),
    (NoisyBinarySearch, Budget.zcdp(0.5), {8: 12, 16: 18, 64: 43}),
    (NoisyBinarySearch, Budget.zcdp(0.005), {8: 117, 16: 183, 64: 428}),
]


@pytest.mark.parametrize(("kind", "budget", "shifts"), SHIFTS)
def test_shifts_of_the_table(kind, budget, shifts):
    assert {bits: kind(budget).shift(2**bits) for bits in shifts} == shifts


DRAWN = [
    AboveThreshold(Budget(1), 0.3),
    AboveThreshold(Budget(1), 0.3, gate=True),
    ExponentialMechanism(Budget(1), 0.3),
    ExponentialMechanism(Budget.zcdp(0.2), 0.3),
    NoisyBinarySearch(Budget(1.5), 0.3),
    NoisyBinarySearch(Budget.zcdp(0.6), 0.3),
]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("search", DRAWN)
def test_choose_follows_the_distribution(search):
    shift = search.shift(12)
    steps = [round(11 * (1 - (t / (shift + 1)) ** 2)) for t in range(shift + 1)]
    profile, candidates = Profile(steps), Candidates.of(range(12))
    drawn = [search.choose(profile, candidates) for _ in range(SIZE)]
    assert distance(drawn, laws.distribution(search, profile, candidates)) < TOLERANCE
    # The broken twin: the upper half of the profile only.
    twin = Profile(steps[: shift // 2])
    assert distance(drawn, laws.distribution(search, twin, candidates)) > TOLERANCE


@pytest.mark.parametrize(
    ("search", "part"),
    [
        (AboveThreshold(Budget(2), 0.3), 2),
        (AboveThreshold(Budget(2), 0.3, gate=True), 2),
        (ExponentialMechanism(Budget(4), 0.3), 2),
        (NoisyBinarySearch(Budget(4), 0.3), 3),
        (NoisyBinarySearch(Budget.zcdp(0.6), 0.3), 3),
    ],
)
def test_the_cap_is_enough(search, part):
    losses = [200, 180, 150, 110, 60, 50, 41, 30, 21, 12, 7, 5, 1, 0, 0]
    cap = search.cap(len(losses))
    assert cap < 180
    whole = laws.distribution(search, *profile_of(losses, 200))
    cut = laws.distribution(search, *profile_of(losses, cap + 1))
    assert sum(abs(a - b) for a, b in zip(whole, cut, strict=True)) < 2e-12
    # The broken twin: a cap at a part of it is noticed.
    short = laws.distribution(search, *profile_of(losses, cap // part))
    assert sum(abs(a - b) for a, b in zip(whole, short, strict=True)) > 1e-9


@pytest.mark.parametrize("search", [*DRAWN[::2], NoisyBinarySearch(TINY_RHO)])
def test_one_candidate_is_returned_for_nothing(search):
    profile, one = Profile([3, 2]), Candidates.of([7])
    assert search.choose(profile, one, None) == 7  # without noise nothing can be drawn
    assert (search.shift(1), search.cap(1)) == (0, 0)
    assert laws.distribution(search, profile, one) == [1.0]
    assert pickle.loads(pickle.dumps(search)) == search
    assert search != type(search)(search.budget, 0.01)


EXTREME = [Budget(10**400), Budget(2.0**-50), Budget.zcdp(2.0**-128), Budget.zcdp(2.0**40)]


@pytest.mark.parametrize("search", [kind(budget) for kind in KINDS for budget in EXTREME])
def test_extreme_budgets_and_sets_work(search):
    profile, candidates = Profile([5, 3, 0]), Candidates.linear(0, 2**2000, 1)
    size = candidates.size
    assert search.shift(size) >= 0 and search.cap(size) >= 0
    found = search.choose(profile, candidates)
    assert 0 <= found <= 2**2000
    if search.budget == EXTREME[0]:
        assert found in (3, 4, 5)


WRONG = [
    (lambda kind, _: kind(1.0), TypeError, "budget must be of type Budget, not 1.0"),
    (lambda kind, budget: kind(budget, 0), ValueError, "beta must be above 0 and below 1, not 0"),
    (lambda kind, budget: kind(budget, "x"), TypeError, "beta must be a real number"),
    (lambda kind, budget: kind(budget).shift(0), ValueError, "n must be an int of at least 1"),
    (lambda kind, budget: kind(budget).cap(True), TypeError, "n must be an int of at least 1"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("make", "error", "message"), WRONG)
def test_wrong_calls_are_refused(kind, make, error, message):
    with pytest.raises(error, match=rf"^{kind.__name__}[a-z._]*: ") as caught:
        make(kind, Budget(1, 1e-6))
    assert message in str(caught.value)
