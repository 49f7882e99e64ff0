"""ExponentialMechanism: its table of shifts, its exact draw and its edges."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import LazyUniform, Noise
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.search import ExponentialMechanism, draws
from beam_dp.mechanisms.search.published import exponential

SIZE = 4_000
# DKW: sup |F_n - F| > sqrt(ln(2 / a) / (2 n)) has probability at most a = 1e-10: 0.0545.
TOLERANCE = math.sqrt(math.log(2e10) / (2 * SIZE))


class CountingNoise(Noise):
    """The true noise, counting the words that were drawn."""

    drawn = 0

    def words(self, size):
        CountingNoise.drawn += size
        return super().words(size)


def profile_of(losses: list[int], cap: int) -> tuple[Profile, Candidates]:
    """Return a profile that has these losses on the candidates 0, 1, ..."""
    n = len(losses)
    values = [next((i for i, loss in enumerate(losses) if loss <= k), n) for k in range(cap)]
    return Profile(values), Candidates.of(range(n))


def distance(drawn: list[int], chances: list[float]) -> float:
    counts = np.bincount(drawn, minlength=len(chances))
    return float(np.abs(np.cumsum(counts) / len(drawn) - np.cumsum(chances)).max())


@pytest.mark.parametrize(
    ("epsilon", "shifts"), [(1, (31, 53, 97, 187)), (0.1, (311, 533, 977, 1865))]
)
def test_shifts_of_the_table(epsilon, shifts):
    search = ExponentialMechanism(Budget(epsilon))
    assert tuple(search.shift(2**m) for m in (8, 16, 32, 64)) == shifts


@pytest.mark.parametrize(
    ("rho", "shifts"), [(0.5, (15, 27, 93)), (0.05, (49, 85, 295)), (0.005, (155, 267, 933))]
)
def test_shifts_of_the_zcdp_table(rho, shifts):
    search = ExponentialMechanism(Budget.zcdp(rho))
    assert tuple(search.shift(2**m) for m in (8, 16, 64)) == shifts


def test_caps_of_the_table():
    assert [ExponentialMechanism(Budget(1)).cap(2**m) for m in (10, 20, 64)] == [90, 118, 240]


def test_tau_is_the_smallest_one():
    for n in (2, 3, 100, 2**40):
        for epsilon in (0.3, 1, 4):
            tau = (ExponentialMechanism(Budget(epsilon)).shift(n) + 1) // 2

            def failure(tau, n=n, epsilon=epsilon):
                p = math.exp(-epsilon * tau / 2)
                two, step = (n - 2) * p, (n - 1) * p * p
                return max(two / (2 + two), step / (1 + step))

            assert failure(tau) <= 0.05
            assert tau == 1 or failure(tau - 1) > 0.05


def test_distribution_is_the_definition():
    losses = [9, 9, 7, 4, 4, 1, 0, 0]
    search = ExponentialMechanism(Budget(0.7), 0.3)
    tau = (search.shift(len(losses)) + 1) / 2
    strict = [math.inf, *losses[:-1]]
    scores = [max(a - tau, tau - b, -tau) for a, b in zip(losses, strict, strict=True)]
    weights = [math.exp(-0.35 * score) for score in scores]
    expected = [weight / sum(weights) for weight in weights]
    assert search.distribution(*profile_of(losses, 10)) == pytest.approx(expected, rel=1e-12)


def test_the_top_candidate_counts_as_the_rounded_value():
    # f lies above the top: rounded up it is the top, whose loss is then 0.
    search = ExponentialMechanism(Budget(1), 0.3)
    above, candidates = profile_of([6, 5, 3], 7)
    rounded, _ = profile_of([6, 5, 0], 7)
    assert search.distribution(above, candidates) == search.distribution(rounded, candidates)
    lone, _ = profile_of([6, 6, 6], 6)
    assert search.distribution(lone, candidates) == pytest.approx(
        search.distribution(profile_of([6, 6, 0], 6)[0], candidates)
    )


@pytest.mark.parametrize("budget", [Budget(1), Budget.zcdp(0.2)])
def test_choose_follows_the_distribution(budget):
    profile, candidates = profile_of([9, 7, 7, 6, 4, 2, 2, 0, 0, 0, 0, 0], 10)
    search = ExponentialMechanism(budget, 0.3)
    drawn = [search.choose(profile, candidates) for _ in range(SIZE)]
    assert distance(drawn, search.distribution(profile, candidates)) < TOLERANCE
    # The broken twin: weights without the half in the exponent.
    twin = ExponentialMechanism(budget, 0.3).distribution(profile, candidates)
    twin = [p * p for p in twin]
    assert distance(drawn, [p / sum(twin) for p in twin]) > TOLERANCE


def test_a_uniform_at_the_border_of_two_groups_is_refined():
    # Weights 1 and 1: the first 64 bits 0111...1 of U leave its side of 1/2 open until the end of
    # the enclosure is known; weights 1 and e^-1 with U just at their border need more bits.
    class Border(Noise):
        def uniform(self):
            share = Fraction(1) / (1 + Fraction(math.exp(-1)))
            return LazyUniform(self, int(share * 2**50), 50)

    groups = [(1, 0), (1, 2)]
    found = {draws.draw_by_score(groups, Fraction(1, 2), Border()) for _ in range(50)}
    assert found <= {0, 1}


def test_a_huge_set_takes_no_more_noise_than_a_small_one():
    search = ExponentialMechanism(Budget(1))
    profile = Profile([1000 - 4 * k for k in range(search.cap(2**64) + 1)])
    for size in (2**10, 2**64):
        candidates = Candidates.linear(0, size - 1, 1)
        CountingNoise.drawn = 0
        for _ in range(20):
            assert 0 <= search.choose(profile, candidates, CountingNoise()) < size
        # Two uniforms of a few words; doubled with a chance below 1e-18.
        assert CountingNoise.drawn <= 20 * 10


def test_a_huge_set_is_grouped_in_no_more_than_two_groups_per_plateau():
    profile = Profile([1000 - 4 * k for k in range(100)])
    groups = exponential._groups(profile, Candidates.linear(0, 2**64, 1), 90)
    assert len(groups) <= 2 * 101
    assert sum(group.size for group in groups) == 2**64 + 1


def test_one_candidate_is_returned_for_nothing():
    search = ExponentialMechanism(Budget(1))
    profile, one = Profile([3, 2]), Candidates.of([7])
    CountingNoise.drawn = 0
    assert search.choose(profile, one, CountingNoise()) == 7
    assert (search.shift(1), search.cap(1), search.distribution(profile, one)) == (0, 0, [1.0])
    assert CountingNoise.drawn == 0


def test_the_cap_is_enough():
    search = ExponentialMechanism(Budget(4), 0.3)
    losses = [60, 55, 50, 41, 30, 21, 12, 7, 5, 1, 0, 0]
    cap = search.cap(len(losses))
    assert cap < 40
    whole = search.distribution(*profile_of(losses, 60))
    cut = search.distribution(*profile_of(losses, cap + 1))
    assert sum(abs(a - b) for a, b in zip(whole, cut, strict=True)) < 2e-12
    # The broken twin: a cap at half of it is noticed.
    half = search.distribution(*profile_of(losses, cap // 2))
    assert sum(abs(a - b) for a, b in zip(whole, half, strict=True)) > 1e-9


def test_extreme_budgets_and_sets_work():
    profile, candidates = Profile([5, 3, 0]), Candidates.linear(0, 2**2000, 1)
    for budget in (Budget(10**400), Budget(2.0**-50), Budget.zcdp(2.0**-128)):
        search = ExponentialMechanism(budget)
        assert search.shift(2**2000) >= 1
        assert 0 <= search.choose(profile, candidates) <= 2**2000
    assert ExponentialMechanism(Budget(10**400)).choose(profile, candidates) in (3, 4, 5)


def test_cost_is_the_budget_without_delta():
    assert ExponentialMechanism(Budget(1, 1e-6)).cost == Budget(1)
    assert ExponentialMechanism(Budget.zcdp(0.5)).cost == Budget.zcdp(0.5)


def test_searches_travel_by_pickle():
    search = ExponentialMechanism(Budget(1), 0.01)
    assert pickle.loads(pickle.dumps(search)) == search


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ExponentialMechanism(1.0), TypeError, "budget must be a Budget, not 1.0"),
        (
            lambda: ExponentialMechanism(Budget(1), 1.5),
            ValueError,
            "beta must be above 0 and below 1",
        ),
        (
            lambda: ExponentialMechanism(Budget(1)).shift(0),
            ValueError,
            "n must be an int of at least 1",
        ),
        (
            lambda: ExponentialMechanism(Budget(1)).distribution(
                Profile([1]), Candidates.linear(0, 64, 1)
            ),
            ValueError,
            "candidates must be at most 64, not 65",
        ),
    ],
)
def test_wrong_calls_are_refused(make, error, message):
    with pytest.raises(error, match=r"^ExponentialMechanism[a-z._]*: ") as caught:
        make()
    assert message in str(caught.value)
