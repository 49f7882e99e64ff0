"""NoisyBinarySearch: its table of shifts, its comparisons, both noises and its edges."""

import math
import pickle
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics.intervals import exp_interval, normal_cdf_interval
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.search import NoisyBinarySearch
from beam_dp.mechanisms.search.published import binary

SIZE = 4_000
# DKW: sup |F_n - F| > sqrt(ln(2 / a) / (2 n)) has probability at most a = 1e-10: 0.0545.
TOLERANCE = math.sqrt(math.log(2e10) / (2 * SIZE))
SEARCHES = [
    NoisyBinarySearch(Budget(1.5), 0.3),
    NoisyBinarySearch(Budget.zcdp(0.6), 0.3),
    NoisyBinarySearch(Budget(1.5, 1e-3), 0.3, "gaussian"),
    NoisyBinarySearch(Budget.zcdp(0.6), 0.3, "gaussian"),
    NoisyBinarySearch(Budget.zcdp(0.6), 0.3, "bit"),
]


class CountingNoise(Noise):
    """The true noise, counting the words that were drawn."""

    drawn = 0

    def words(self, size):
        CountingNoise.drawn += size
        return super().words(size)


class NoNoise(Noise):
    """No noise at all: for the deterministic part of the search only."""

    def discrete_laplace(self, rate, size):
        return np.zeros(size, np.int64)

    def bernoulli_below(self, bound):
        return bound(64)[0] >= Fraction(1, 2)


def profile_of(losses: list[int], cap: int) -> tuple[Profile, Candidates]:
    """Return a profile that has these losses on the candidates 0, 1, ..."""
    n = len(losses)
    values = [next((i for i, loss in enumerate(losses) if loss <= k), n) for k in range(cap)]
    return Profile(values), Candidates.of(range(n))


def distance(drawn: list[int], chances: list[float]) -> float:
    counts = np.bincount(drawn, minlength=len(chances))
    return float(np.abs(np.cumsum(counts) / len(drawn) - np.cumsum(chances)).max())


@pytest.mark.parametrize(
    ("epsilon", "shifts"), [(1, (70, 162, 368, 824)), (0.1, (698, 1616, 3676, 8238))]
)
def test_laplace_shifts_of_the_table(epsilon, shifts):
    search = NoisyBinarySearch(Budget(epsilon))
    assert tuple(search.shift(2**m) for m in (8, 16, 32, 64)) == shifts


@pytest.mark.parametrize(
    ("epsilon", "shifts"), [(1, (59, 92, 140, 213)), (0.1, (511, 791, 1210, 1832))]
)
def test_gaussian_shifts_of_the_table(epsilon, shifts):
    search = NoisyBinarySearch(Budget(epsilon, 1e-6), noise="gaussian")
    assert tuple(search.shift(2**m) for m in (8, 16, 32, 64)) == shifts


@pytest.mark.parametrize(
    ("rho", "shifts"), [(0.5, (14, 21, 50)), (0.05, (44, 68, 159)), (0.005, (140, 218, 504))]
)
def test_shifts_of_the_zcdp_table(rho, shifts):
    search = NoisyBinarySearch(Budget.zcdp(rho), noise="gaussian")
    assert tuple(search.shift(2**m) for m in (8, 16, 64)) == shifts


def test_caps_of_the_table():
    assert [NoisyBinarySearch(Budget(1)).cap(2**m) for m in (10, 20, 64)] == [346, 718, 2447]
    gaussian = NoisyBinarySearch(Budget(1, 1e-6), noise="gaussian")
    assert [gaussian.cap(2**m) for m in (10, 20, 64)] == pytest.approx([133, 194, 364], abs=1)


@pytest.mark.sampled(26)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 9, 33, 64])
@pytest.mark.parametrize("search", SEARCHES)
def test_without_noise_every_candidate_can_be_found(n, search):
    # Also the lowest one: a search that starts at lo = 0 never returns it.
    for place in range(n):
        losses = [1000] * place + [0] * (n - place)
        assert search.choose(*profile_of(losses, 999), NoNoise()) == place


def test_comparisons_are_at_most_the_logarithm_rounded_up():
    for n in range(2, 300):
        deepest = _deepest(-1, n - 1)
        assert deepest == binary._comparisons(n) == math.ceil(math.log2(n))


def _deepest(low: int, high: int) -> int:
    if high - low == 1:
        return 0
    middle = (low + high) // 2
    return 1 + max(_deepest(low, middle), _deepest(middle, high))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("search", SEARCHES)
def test_choose_follows_the_distribution(search):
    profile, candidates = profile_of([9, 7, 7, 6, 4, 2, 2, 0, 0, 0, 0], 10)
    drawn = [search.choose(profile, candidates) for _ in range(SIZE)]
    assert distance(drawn, search.distribution(profile, candidates)) < TOLERANCE
    # The broken twin: a tenth of the budget.
    twin = NoisyBinarySearch(search.budget.scaled(Fraction(1, 10)), 0.3, search.noise)
    assert distance(drawn, twin.distribution(profile, candidates)) > TOLERANCE


@pytest.mark.parametrize("search", SEARCHES[:4])
def test_distribution_is_the_product_of_the_answers(search):
    losses = [5, 3, 2, 0]  # asks y_1 first ((-1 + 3) // 2), then y_0 or y_2
    chances = [_goes_down(search, loss) for loss in losses]
    expected = [
        chances[1] * chances[0],
        chances[1] * (1 - chances[0]),
        (1 - chances[1]) * chances[2],
        (1 - chances[1]) * (1 - chances[2]),
    ]
    assert search.distribution(*profile_of(losses, 6)) == pytest.approx(expected, rel=1e-10)


def _goes_down(search: NoisyBinarySearch, loss: int) -> float:
    shift, budget = search.shift(4), search.budget
    if search.noise == "laplace":
        rate = math.sqrt(budget.rho) if budget.is_zcdp else budget.epsilon / 2
        weights = {k: math.exp(-rate * abs(k)) for k in range(-300, 301)}
        good = sum(w for k, w in weights.items() if loss + k <= shift // 2)
        return good / sum(weights.values())
    rho = budget.rho if budget.is_zcdp else binary._gaussian_rho(budget)
    return NormalDist().cdf(((shift + 1) / 2 - loss) / math.sqrt(1 / rho))


def phi(numerator: Fraction, square: Fraction) -> tuple[Fraction, Fraction]:
    """Enclose Phi(numerator / sqrt(square)) by rationals."""
    sign = (numerator > 0) - (numerator < 0)
    return normal_cdf_interval(sign, square / numerator**2 if sign else square, 1000)


def delta_of(square: Fraction, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Enclose the delta of mu-GDP, mu^2 = square, by rationals.

    Dong, Roth, Su 2022, Corollary 2.13: Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu),
    and mu/2 - epsilon/mu = (mu^2 - 2 epsilon) / (2 mu).
    """
    plus = phi(square - 2 * epsilon, 4 * square)
    minus = phi(-square - 2 * epsilon, 4 * square)
    factor = exp_interval(epsilon, 1000)
    return plus[0] - factor[1] * minus[1], plus[1] - factor[0] * minus[0]


@pytest.mark.sampled(17)
@pytest.mark.parametrize("epsilon", [2.0**-30, 0.01, 0.1, 1, 5, 20, 49, 51])
@pytest.mark.parametrize("delta", [1e-190, 1e-15, 1e-9, 1e-6, 0.05, 0.9])
def test_gaussian_noise_is_within_delta_proved_with_rationals(epsilon, delta):
    square = 2 * binary._gaussian_rho(Budget(epsilon, delta))
    assert delta_of(square, Fraction(epsilon))[1] <= delta
    # It wastes little: 1% more of mu would be too much (epsilon counts up to 50 only, and a delta
    # near 1e-15 is no match for the margin of 1e-12 at tiny epsilons).
    if epsilon < 50 and (epsilon > 1e-3 or delta > 1e-9):
        assert delta_of(square * Fraction(102, 100), Fraction(epsilon))[0] > delta


@pytest.mark.parametrize(("epsilon", "mu"), [(1, 0.2367), (0.1, 0.02754)])
def test_mu_of_the_table(epsilon, mu):
    assert math.sqrt(2 * binary._gaussian_rho(Budget(epsilon, 1e-6))) == pytest.approx(mu, rel=1e-3)


def test_the_gaussian_formula_beats_the_conversion_of_zcdp():
    for budget in (Budget(1, 1e-6), Budget(0.1, 1e-9)):
        assert binary._gaussian_rho(budget) > budget.to_zcdp().amount


def test_extreme_budgets_work():
    profile, candidates = Profile([5, 3, 0]), Candidates.linear(0, 2**70, 1)
    for search in (
        NoisyBinarySearch(Budget(10**400)),
        NoisyBinarySearch(Budget(2.0**-50)),
        NoisyBinarySearch(Budget.zcdp(2.0**-128), noise="gaussian"),
        NoisyBinarySearch(Budget(10**400, 1e-6), noise="gaussian"),
        NoisyBinarySearch(Budget(2.0**-50, 1e-300), noise="gaussian"),
        NoisyBinarySearch(Budget(1, 0.999999), noise="gaussian"),
    ):
        assert search.shift(2**70 + 1) >= 0
        assert search.cap(2**70 + 1) >= 0
        assert 0 <= search.choose(profile, candidates) <= 2**70


def test_noise_grows_with_the_comparisons_only():
    search = NoisyBinarySearch(Budget(1))
    profile = Profile([1000 - 4 * k for k in range(300)])
    for power in (10, 64):
        CountingNoise.drawn = 0
        for _ in range(20):
            search.choose(profile, Candidates.linear(0, 2**power - 1, 1), CountingNoise())
        # Each of the `power` comparisons takes two geometric values of a few words.
        assert CountingNoise.drawn <= 20 * power * 30


def test_one_candidate_is_returned_for_nothing():
    profile, one = Profile([3, 2]), Candidates.of([7])
    for search in SEARCHES:
        CountingNoise.drawn = 0
        assert search.choose(profile, one, CountingNoise()) == 7
        assert (search.shift(1), search.cap(1), search.distribution(profile, one)) == (0, 0, [1.0])
        assert CountingNoise.drawn == 0


@pytest.mark.parametrize("search", SEARCHES)
def test_the_cap_is_enough(search):
    losses = [200, 180, 150, 110, 60, 30, 12, 7, 5, 1, 0, 0]
    cap = search.cap(len(losses))
    assert cap < 180
    whole = search.distribution(*profile_of(losses, 200))
    cut = search.distribution(*profile_of(losses, cap + 1))
    assert sum(abs(a - b) for a, b in zip(whole, cut, strict=True)) < 2e-12
    # The broken twin: a cap at a third of it is noticed.
    third = search.distribution(*profile_of(losses, cap // 3))
    assert sum(abs(a - b) for a, b in zip(whole, third, strict=True)) > 1e-9


def test_cost_has_delta_only_for_gaussian_noise():
    assert NoisyBinarySearch(Budget(1, 1e-6)).cost == Budget(1)
    assert NoisyBinarySearch(Budget(1, 1e-6), noise="gaussian").cost == Budget(1, 1e-6)
    for noise in ("laplace", "gaussian", "bit"):
        assert NoisyBinarySearch(Budget.zcdp(0.5), noise=noise).cost == Budget.zcdp(0.5)


@pytest.mark.parametrize("search", SEARCHES)
def test_searches_travel_by_pickle(search):
    assert pickle.loads(pickle.dumps(search)) == search


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: NoisyBinarySearch(1.0), TypeError, "budget must be a Budget, not 1.0"),
        (lambda: NoisyBinarySearch(Budget(1), -1), ValueError, "beta must be above 0 and below 1"),
        (
            lambda: NoisyBinarySearch(Budget(1), noise="normal"),
            ValueError,
            "noise must be one of laplace, gaussian, bit, not 'normal'",
        ),
        (
            lambda: NoisyBinarySearch(Budget(1), noise="gaussian"),
            ValueError,
            "Write Budget(epsilon, delta=1e-6) or Budget.zcdp(rho)",
        ),
        (
            lambda: NoisyBinarySearch(Budget(1)).cap(True),
            TypeError,
            "n must be an int of at least 1",
        ),
        (
            lambda: NoisyBinarySearch(Budget(1)).distribution(
                Profile([1]), Candidates.linear(0, 64, 1)
            ),
            ValueError,
            "candidates must be at most 64, not 65",
        ),
    ],
)
def test_wrong_calls_are_refused(make, error, message):
    with pytest.raises(error, match=r"^NoisyBinarySearch[a-z._]*: ") as caught:
        make()
    assert message in str(caught.value)
