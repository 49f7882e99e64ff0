"""AboveThreshold: its table of shifts, its failure formula, its samplers and its edges."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.search import thresholds as parameters
from beam_dp.mechanisms.search.thresholds import Thresholds, thresholds

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


def failure(first: float, second: float, tau: int, theta: int, queries: int) -> float:
    """Return the failure on the step profile by its definition, summed over rho one by one."""
    r = np.arange(math.ceil(60 / first) + theta)
    right = (1 - np.exp(-second * (tau + r))) ** queries * np.exp(
        -second * np.maximum(r - theta, 0)
    )
    return float(1 - (-math.expm1(-first)) * (np.exp(-first * r) @ right))


@pytest.mark.parametrize(
    ("epsilon", "n", "shift"),
    [
        (1, 1000, 23),
        (1, 4000, 25),
        (1, 2**16, 29),
        (1, 2**20, 33),
        (1, 2**32, 45),
        (1, 2**64, 74),
        (0.1, 2**8, 216),
        (0.1, 2**10, 238),
        (0.1, 2**16, 300),
        (0.1, 2**20, 340),
        (0.1, 2**32, 455),
        (0.1, 2**64, 741),
    ],
)
def test_shifts_of_the_table(epsilon, n, shift):
    assert AboveThreshold(Budget(epsilon)).shift(n) == shift


@pytest.mark.parametrize(
    ("rho", "shifts"), [(0.5, (17, 24, 65)), (0.05, (54, 78, 207)), (0.005, (171, 247, 656))]
)
def test_shifts_of_the_zcdp_table(rho, shifts):
    search = AboveThreshold(Budget.zcdp(rho))
    assert tuple(search.shift(2**m) for m in (8, 16, 64)) == shifts


def test_caps_of_the_table():
    assert [AboveThreshold(Budget(1)).cap(2**m) for m in (10, 20, 64)] == pytest.approx(
        [59, 68, 104], abs=2
    )
    assert [AboveThreshold(Budget(0.1)).cap(2**m) for m in (10, 20, 64)] == pytest.approx(
        [603, 679, 1035], abs=5
    )


def test_small_beta_costs_little():
    assert [AboveThreshold(Budget(1), beta).shift(2**64) for beta in (1e-3, 1e-6)] == [95, 128]


@pytest.mark.sampled(19)
@pytest.mark.parametrize("n", [2, 5, 1000, 2**20])
@pytest.mark.parametrize("epsilon", [0.3, 1, 5])
@pytest.mark.parametrize("beta", [1e-6, 0.05, 0.5])
def test_the_failure_formula_is_at_most_beta(n, epsilon, beta):
    found = thresholds(Fraction(epsilon), False, n, beta)
    tau = found.shift + 1 - found.theta
    assert failure(float(found.first), float(found.second), tau, found.theta, n - 1) <= beta


@pytest.mark.parametrize("n", [10, 1000])
def test_no_other_choice_has_a_smaller_shift(n):
    shift = AboveThreshold(Budget(1)).shift(n) - 1
    worst = min(
        failure(part / 100, 1 - part / 100, tau, shift + 1 - tau, n - 1)
        for part in range(1, 100)
        for tau in range(1, shift + 2)
    )
    assert worst > 0.05


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(0.1), Fraction(1, 3), Fraction(10**400)])
@pytest.mark.parametrize("n", [2, 3, 2**64, 2**2000])
def test_the_budget_is_never_exceeded(epsilon, n):
    pure = thresholds(epsilon, False, n, 0.05)
    assert 0 < pure.first and 0 < pure.second and pure.first + pure.second <= epsilon
    rho = thresholds(epsilon, True, n, 0.05)
    assert 0 < rho.first and 0 < rho.second
    assert (rho.first + 2 * rho.second) ** 2 <= 8 * epsilon


def test_tiny_budgets_and_huge_sets_have_parameters():
    assert AboveThreshold(Budget(2.0**-50)).shift(2) == pytest.approx(12 * 2**50, rel=0.01)
    assert AboveThreshold(Budget(1)).shift(2**2000) < 1600
    assert AboveThreshold(Budget(50)).shift(1000) == 0


def test_distribution_sums_the_definition():
    # By 40-digit decimals from the definition, for every candidate, to 1e-12 of each chance.
    import decimal

    search = AboveThreshold(Budget(0.8), 0.3)
    losses = [9, 9, 7, 4, 4, 1, 0]
    chosen = search._thresholds(len(losses))
    with decimal.localcontext(prec=40):
        first = decimal.Decimal(chosen.first.numerator) / chosen.first.denominator
        second = decimal.Decimal(chosen.second.numerator) / chosen.second.denominator
        expected = [decimal.Decimal(0)] * len(losses)
        for r in range(600):
            left = (1 - (-first).exp()) * (-first * r).exp()
            for i, loss in enumerate(losses[:-1]):
                stop = (-second * max(loss - chosen.theta + r, 0)).exp()
                expected[i] += left * stop
                left *= 1 - stop
            expected[-1] += left
    found = search.distribution(*profile_of(losses, 10))
    assert found == pytest.approx([float(p) for p in expected], rel=1e-12, abs=0)


def test_the_last_loss_is_never_asked():
    search = AboveThreshold(Budget(1), 0.3)
    assert search.distribution(*profile_of([5, 3, 3], 6)) == search.distribution(
        *profile_of([5, 3, 0], 6)
    )


def test_choose_follows_the_distribution():
    profile, candidates = profile_of([9, 7, 7, 6, 4, 2, 2, 0, 0, 0, 0, 0], 10)
    search = AboveThreshold(Budget(1), 0.3)
    drawn = [search.choose(profile, candidates) for _ in range(SIZE)]
    assert distance(drawn, search.distribution(profile, candidates)) < TOLERANCE
    # The broken twin: noise for half of the epsilon.
    twin = AboveThreshold(Budget(0.5), 0.3).distribution(profile, candidates)
    assert distance(drawn, twin) > TOLERANCE


def test_a_huge_set_takes_no_more_noise_than_a_small_one():
    search = AboveThreshold(Budget(1))
    profile = Profile([1000 - 9 * k for k in range(search.cap(2**64) + 1)])
    for size in (2**10, 2**64):
        candidates = Candidates.linear(0, size - 1, 1)
        CountingNoise.drawn = 0
        for _ in range(20):
            assert 0 <= search.choose(profile, candidates, CountingNoise()) < size
        # One word per plateau, and a few for those where stopping is not rare.
        assert CountingNoise.drawn < 20 * 5 * len(profile.values)


def test_one_candidate_is_returned_for_nothing():
    search = AboveThreshold(Budget(1))
    profile, one = Profile([3, 2]), Candidates.of([7])
    CountingNoise.drawn = 0
    assert search.choose(profile, one, CountingNoise()) == 7
    assert (search.shift(1), search.cap(1), search.distribution(profile, one)) == (0, 0, [1.0])
    assert CountingNoise.drawn == 0


def test_the_cap_is_enough():
    # Profiles cut at K give the same distribution as whole ones, but for 1e-12.
    search = AboveThreshold(Budget(2), 0.3)
    losses = [60, 55, 50, 41, 30, 21, 12, 7, 5, 1, 0, 0]
    cap = search.cap(len(losses))
    assert cap < 40
    whole = search.distribution(*profile_of(losses, 60))
    cut = search.distribution(*profile_of(losses, cap + 1))
    assert sum(abs(a - b) for a, b in zip(whole, cut, strict=True)) < 2e-12
    # The broken twin: a cap at half of it is noticed.
    half = search.distribution(*profile_of(losses, cap // 2))
    assert sum(abs(a - b) for a, b in zip(whole, half, strict=True)) > 1e-9


def test_cost_is_the_budget_without_delta():
    assert AboveThreshold(Budget(1, 1e-6)).cost == Budget(1)
    assert AboveThreshold(Budget.zcdp(0.5)).cost == Budget.zcdp(0.5)
    assert AboveThreshold(Budget(1, 1e-6)).shift(1000) == AboveThreshold(Budget(1)).shift(1000)


def test_searches_travel_by_pickle():
    search = AboveThreshold(Budget(1), 0.01)
    assert pickle.loads(pickle.dumps(search)) == search


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: AboveThreshold(1.0), TypeError, "budget must be a Budget, not 1.0"),
        (
            lambda: AboveThreshold(Budget(1), 0),
            ValueError,
            "beta must be above 0 and below 1, not 0",
        ),
        (
            lambda: AboveThreshold(Budget(1), 1),
            ValueError,
            "beta must be above 0 and below 1, not 1",
        ),
        (lambda: AboveThreshold(Budget(1), math.nan), ValueError, "beta must be finite"),
        (lambda: AboveThreshold(Budget(1), "x"), TypeError, "beta must be a real number"),
        (lambda: AboveThreshold(Budget(1)).shift(0), ValueError, "n must be an int of at least 1"),
        (lambda: AboveThreshold(Budget(1)).shift(2.0), TypeError, "n must be an int of at least 1"),
        (
            lambda: AboveThreshold(Budget(1)).distribution(
                Profile([1]), Candidates.linear(0, 64, 1)
            ),
            ValueError,
            "candidates must be at most 64, not 65",
        ),
    ],
)
def test_wrong_calls_are_refused(make, error, message):
    with pytest.raises(error, match=r"^AboveThreshold[a-z._]*: ") as caught:
        make()
    assert message in str(caught.value)


def test_thresholds_are_a_record():
    found = thresholds(Fraction(1), False, 1000, 0.05)
    assert found == Thresholds(found.first, found.second, found.theta, 23)


@pytest.mark.parametrize("beta", [1e-12, 0.5, 0.99, 1 - 1e-12])
def test_the_shift_of_a_tiny_budget_is_found_at_once(beta):
    """It grows like 1 / epsilon; going down from the first bound one by one took minutes."""
    shifts = [AboveThreshold(Budget(epsilon), beta).shift(1000) for epsilon in (1e-9, 1e-3)]
    assert shifts[0] * 1e-9 == pytest.approx(shifts[1] * 1e-3, rel=0.02)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 3])
@pytest.mark.parametrize("beta", [0.05, 0.6, 0.99])
def test_the_shift_is_what_going_down_one_by_one_finds(epsilon, beta, monkeypatch):
    def one_by_one(problem, allowed, found):
        while better := parameters._first_allowed(problem, allowed[0] - 1, found):
            allowed = better
        return allowed

    fast = parameters.thresholds.__wrapped__(Fraction(epsilon), False, 50, beta)
    monkeypatch.setattr(parameters, "_least_allowed", one_by_one)
    assert parameters.thresholds.__wrapped__(Fraction(epsilon), False, 50, beta) == fast
