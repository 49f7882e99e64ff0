"""UnboundedSearch: exact audits of privacy and of every shift, its sampler and its edges."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.search import AboveThreshold, UnboundedSearch

SIZE = 4_000
# DKW: sup |F_n - F| > sqrt(ln(2 / a) / (2 n)) has probability at most a = 1e-10: 0.0545.
TOLERANCE = math.sqrt(math.log(2e10) / (2 * SIZE))
ROUNDING = 1e-9


def profile_of(losses: tuple[int, ...]) -> Profile:
    """Return a profile that has these losses on 0, 1, ... and 0 on all that follow."""
    n = len(losses)
    return Profile(
        next((i for i, loss in enumerate(losses) if loss <= k), n) for k in range(max(losses) + 1)
    )


def all_losses(n: int) -> list[tuple[int, ...]]:
    return list(itertools.combinations_with_replacement(range(6, -1, -1), n))


def log_ratios(search: UnboundedSearch, n: int) -> tuple[float, float]:
    """Return the largest ln P_x'/P_x and ln P_x/P_x' over all neighbours, for 0..n + 3 and more."""
    logs = {
        losses: np.log(search.distribution(profile_of(losses), n + 4)) for losses in all_losses(n)
    }
    changes = [
        logs[after] - logs[before]
        for before in logs
        for more in itertools.product((0, 1), repeat=n)
        if (after := tuple(a + b for a, b in zip(before, more, strict=True))) in logs
    ]
    return float(np.max(changes)), float(-np.min(changes))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("budget", "beta"), [(Budget(1), 0.3), (Budget(3), 0.05)])
@pytest.mark.parametrize("n", [1, 2, 4, 6])
def test_it_spends_epsilon_one_way_and_its_second_part_the_other(budget, beta, n):
    search = UnboundedSearch(budget, beta, typical=4)
    rates = search._rates
    assert rates.first + rates.second == budget.epsilon
    adding, removing = log_ratios(search, n)
    assert adding <= float(budget.epsilon) + ROUNDING
    assert removing <= float(rates.second) + ROUNDING


def test_zcdp_is_by_the_bounded_range():
    for rho in (0.005, 0.5, 2.0):
        rates = UnboundedSearch(Budget.zcdp(rho))._rates
        assert (rates.first + 2 * rates.second) ** 2 <= 8 * Fraction(rho)
    adding, removing = log_ratios(UnboundedSearch(Budget.zcdp(0.5), 0.3, typical=4), 5)
    assert (adding + removing) ** 2 / 8 <= 0.5 + ROUNDING


def test_the_audit_notices_half_of_the_noise():
    # The broken twin: built for twice the epsilon.
    assert max(log_ratios(UnboundedSearch(Budget(2), 0.3, typical=4), 6)) > 1 + ROUNDING


def failure(search: UnboundedSearch, losses: tuple[int, ...], less: int = 0) -> float:
    """Return the chance of an answer above f, or with a loss above its shift (minus `less`)."""
    chances = search.distribution(profile_of(losses), len(losses) + 1)
    f = next((i for i, loss in enumerate(losses) if loss == 0), len(losses))
    kept = [i for i in range(f + 1) if (*losses, 0)[i] <= search.shift_at(i) - less]
    return 1 - sum(chances[i] for i in kept)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("epsilon", "beta"), [(6, 0.3), (8, 0.05), (4, 0.5)])
def test_the_shift_of_the_answer_is_kept_but_for_beta_on_all_profiles(epsilon, beta):
    search = UnboundedSearch(Budget(epsilon), beta, typical=2)
    assert search.shift_at(0) < 6
    for n in range(1, 7):
        for losses in all_losses(n):
            assert failure(search, losses) <= beta + ROUNDING


@pytest.mark.parametrize("epsilon", [0.3, 1])
def test_the_shift_is_kept_on_steps_and_a_smaller_one_is_not(epsilon):
    search = UnboundedSearch(Budget(epsilon), 0.05, typical=2**6)
    for places in (1, 5, 30, 63):
        height = search.shift_at(places - 1) + 1
        assert failure(search, (height,) * places) <= 0.05
    # The broken twin: half of the shift is claimed.
    half = search.shift_at(0) // 2
    assert failure(search, (search.shift_at(62) - half + 1,) * 63, half) > 0.05


@pytest.mark.parametrize("power", [10, 20, 64, 1000])
@pytest.mark.parametrize("budget", [Budget(1), Budget(0.1), Budget.zcdp(0.05)])
def test_the_failure_of_long_steps_is_at_most_beta(budget, power):
    # All of the first 2^power candidates have a loss just above the shift of the last one; the
    # failure is summed over rho by its definition.
    search = UnboundedSearch(budget)
    rates = search._rates
    first, second = float(rates.first), float(rates.second)
    r = np.arange(math.ceil(60 / first) + rates.theta)
    height = search.shift_at(2**power - 1) + 1
    hazard = np.exp(power * math.log(2) - second * (height - rates.theta + r))
    # -ln(1 - x) <= x / (1 - x), x the chance of one stop.
    passed = np.exp(-hazard / (1 - np.exp(-second * (height - rates.theta + r))))
    right = passed * np.exp(-second * np.maximum(r - rates.theta, 0))
    assert 1 + math.expm1(-first) * (np.exp(-first * r) @ right) <= 0.05


def test_the_weights_of_all_candidates_sum_to_at_most_1():
    for middle in (0, 5, 20, 300):
        blocks = [abs(j - middle) for j in range(10_000)]
        assert sum(1 / (2 * (d + 1) * (d + 2)) for d in blocks) <= 1
    rates = UnboundedSearch(Budget(1))._rates
    # The shift follows these weights: the first index of a block has that of the last one.
    assert all(rates.shift_at(2**j - 1) == rates.shift_at(2 ** (j + 1) - 2) for j in range(1, 40))


def test_it_costs_little_more_than_a_known_number_of_candidates():
    search, known = UnboundedSearch(Budget(1)), AboveThreshold(Budget(1))
    assert [search.shift_at(2**m) for m in (10, 20, 64)] == [33, 36, 84]
    assert UnboundedSearch(Budget(1), typical=2**64).shift_at(2**64) == 76
    assert [known.shift(2**m) for m in (20, 64)] == [33, 74]


@pytest.mark.parametrize("budget", [Budget(1.5), Budget.zcdp(0.6)])
def test_choose_follows_the_distribution(budget):
    search = UnboundedSearch(budget, 0.3, typical=8)
    profile = profile_of((9, 7, 7, 6, 4, 2, 2))
    drawn = np.minimum([search.choose(profile) for _ in range(SIZE)], 12)
    chances = np.cumsum(search.distribution(profile, 12))
    counts = np.cumsum(np.bincount(drawn, minlength=13)) / SIZE
    assert np.abs(counts - chances).max() < TOLERANCE
    # The broken twin: a tenth of the budget.
    twin = UnboundedSearch(budget.scaled(Fraction(1, 10)), 0.3, typical=8)
    assert np.abs(counts - np.cumsum(twin.distribution(profile, 12))).max() > TOLERANCE


def test_any_magnitude_is_found():
    # beta = 1e-11 for each of 9 answers; 1e-12 more for the cap.
    search = UnboundedSearch(Budget(1), 1e-11, typical=2**1400)
    for top in (0, 1000, 2**64, 10**400):
        values = [max(0, top - k) for k in range(search.cap_at(top) + 1)]
        found = search.choose(Profile(values))
        assert type(found) is int
        assert max(0, top - search.shift_at(found)) <= found <= top
    assert 1e300 * 0.99 <= search.choose(Profile([1e300] * 2000)) <= 1e300


def test_an_infinite_profile_ends():
    search = UnboundedSearch(Budget(1))
    assert search.choose(Profile([math.inf] * 40)) >= 0
    assert sum(search.distribution(Profile([math.inf] * 40), 5)) == pytest.approx(1)
    assert search.choose(Profile([-math.inf])) >= 0
    assert search.distribution(Profile([-5]), 3) == search.distribution(Profile([0]), 3)


def test_steps_that_are_no_ints_give_exact_fractions():
    """An answer is 7.1 in 97% of draws, and else far above: false alarm 0.03^12 < 1e-18 each."""
    tenths, fives = UnboundedSearch(Budget(30), step=0.1), UnboundedSearch(Budget(30), step=5)
    answers = [tenths.choose(Profile([7.05] * 100)) for _ in range(12)]
    assert min(answers) == Fraction(71, 10) and all(10 * each % 1 == 0 for each in answers)
    assert min(fives.choose(Profile([12] * 100)) for _ in range(12)) == 15


def test_a_limit_that_is_met_goes_on(monkeypatch):
    found = iter([1 << 80, 1 << 80, 3])
    monkeypatch.setattr(Noise, "first_success", lambda _self, _rate, limit: min(limit, next(found)))
    search = UnboundedSearch(Budget(1))
    monkeypatch.setattr(Noise, "geometric", lambda _self, _rate, size: np.zeros(size, np.int64))
    answer = search.choose(Profile([0]))
    assert answer > 3 and (answer - 3) % 2**60 == 0


def test_it_travels_by_pickle():
    search = UnboundedSearch(Budget(1), 0.01, 0.5)
    assert pickle.loads(pickle.dumps(search)) == search
    assert search.cost == Budget(1) == UnboundedSearch(Budget(1, 1e-6)).cost


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: UnboundedSearch(1.0), TypeError, "budget must be a Budget, not 1.0"),
        (lambda: UnboundedSearch(Budget(1), 2), ValueError, "beta must be above 0 and below 1"),
        (lambda: UnboundedSearch(Budget(1), step=0), ValueError, "step must be above 0, not 0"),
        (lambda: UnboundedSearch(Budget(1), step="1"), TypeError, "step must be a real number"),
        (lambda: UnboundedSearch(Budget(1), typical=0), ValueError, "Write typical=2**20."),
        (lambda: UnboundedSearch(Budget(1)).shift_at(-1), ValueError, "i must be an int"),
        (lambda: UnboundedSearch(Budget(1)).cap_at(1.5), ValueError, "i must be an int"),
        (
            lambda: UnboundedSearch(Budget(1)).distribution(Profile([1]), 65),
            ValueError,
            "top must be an int from 1 to 64, not 65",
        ),
    ],
)
def test_wrong_calls_are_refused(make, error, message):
    with pytest.raises(error, match=r"^UnboundedSearch[a-z._]*: ") as caught:
        make()
    assert message in str(caught.value)
