"""RankSearch: shares of rows, an exhaustive audit with broken twins, its shift, its draws."""

import dataclasses
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.search.draws import _suspects, failures_before_success
from beam_dp.mechanisms.search.rank_search import (
    RESOLUTION,
    RankProfile,
    RankSearch,
    increments,
)

SIZE = 4_000
# DKW: sup |F_n - F| > sqrt(ln(2 / a) / (2 n)) has probability at most a = 1e-10: 0.0545.
TOLERANCE = math.sqrt(math.log(2e10) / (2 * SIZE))
D, N = 2, 4  # of the audit
# What a person can be: a share that does not fall over the first N - 1 candidates, 1 at the last.
KINDS = [s for s in itertools.product(range(D + 1), repeat=N - 1) if list(s) == sorted(s)]


class CountingNoise(Noise):
    """The true noise, counting the words that were drawn."""

    drawn = 0

    def words(self, size):
        CountingNoise.drawn += size
        return super().words(size)


def profile_of(people: list[int]) -> RankProfile:
    """Return the profile of so many people of each kind."""
    shares = np.array(people) @ np.array(KINDS)
    total = D * sum(people)
    return RankProfile(np.arange(N), np.diff([0, *shares, total]), D)


def databases() -> list[tuple[int, ...]]:
    """Return all databases of up to 3 people, and some of up to 200."""
    found = []
    for size in range(4):
        for some in itertools.combinations_with_replacement(range(len(KINDS)), size):
            found.append(tuple(np.bincount(some, minlength=len(KINDS)).tolist()))
    random = np.random.default_rng(1)
    return found + [tuple(random.choice([0, 0, 0, 1, 5, 20], len(KINDS))) for _ in range(60)]


def ratios(search: RankSearch) -> tuple[float, float, float]:
    """Return the largest ln P_x / P_x', the largest ln P_x' / P_x and the largest range."""
    candidates, cache = Candidates.of(range(N)), {}

    def logarithms(people):
        if people not in cache:
            cache[people] = np.log(search.distribution(profile_of(people), candidates))
        return cache[people]

    seen = []
    for people in databases():
        for kind in range(len(KINDS)):
            more = tuple(count + (i == kind) for i, count in enumerate(people))
            change = logarithms(people) - logarithms(more)
            seen.append((change.max(), -change.min(), change.max() - change.min()))
    return tuple(np.max(seen, axis=0).tolist())


def step_ratio(search: RankSearch) -> float:
    """Return the largest ln P_x' / P_x where the new person is above all queries but the last.

    The 62 queries before it are equal, so that passing them all tells of a large rho.
    """
    n, people, one = 64, 100, search.resolution
    candidates, best = Candidates.of(range(n)), -math.inf
    for below in range(0, people + 1, 4):
        places, amounts = np.array([0, n - 1]), np.array([below, people - below]) * one
        if not search._rises:
            amounts = amounts[::-1]
        person = n - 2 if search._rises else 1
        less = RankProfile(places, amounts, one)
        more = RankProfile(np.append(places, person), np.append(amounts, one), one)
        chances = [np.log(search.distribution(profile, candidates)) for profile in (less, more)]
        best = max(best, float((chances[1] - chances[0]).max()))
    return best


@pytest.mark.sampled(2)
@pytest.mark.parametrize("p", [Fraction(1, 2), 0.25, Fraction(2, 3), 0.9])
def test_neighbours_are_as_close_as_the_theorem_says(p):
    search = RankSearch(Budget(2), p, 0.4, D)
    chosen, share = search._parameters(N), float(min(Fraction(p), 1 - Fraction(p)))
    first, second = (float(rate * search._unit) for rate in (chosen.first, chosen.second))
    out, into, _ = ratios(search)
    limit = max((1 - share) * first, share * second)
    assert limit - 1e-9 < out < limit + 1e-9  # it is attained
    assert into < share * first + second + 1e-9 <= 2 + 2e-9
    # Many equal queries attain the other one, all of epsilon, but for their finite number.
    assert 1.999 < step_ratio(search) < 2 + 1e-9


def test_zcdp_by_its_bounded_range():
    for p in (Fraction(1, 2), 0.25):
        _, _, reach = ratios(RankSearch(Budget.zcdp(0.5), p, 0.4, D))
        assert 1.5 < reach <= math.sqrt(8 * 0.5) + 1e-9


def broken(rates):
    """Return a search with eps1 and eps2 times other numbers."""

    class Broken(RankSearch):
        def _parameters(self, n):
            right = super()._parameters(n)
            return dataclasses.replace(
                right, first=right.first * rates[0], second=right.second * rates[1]
            )

    return Broken(Budget(2), 0.25, 0.4, D)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "rates",
    [
        (2, 1),  # adding a person is forgotten: only p eps1 is counted
        (Fraction(1, 2), 2),  # candidates move by less than 1
        (4, 4),  # everything moves by p only
    ],
)
def test_broken_twins_are_noticed(rates):
    search = broken(rates)
    assert max(*ratios(search)[:2], step_ratio(search)) > 2.1


def test_walking_the_wrong_way_is_noticed():
    class Upwards(RankSearch):
        @property
        def _rises(self):
            return True

    # The rates for 1 - p, but a walk that needs those for p.
    assert step_ratio(Upwards(Budget(2), 0.9, 0.4, D)) > 3.7


@pytest.mark.parametrize("p", [0.5, 0.1, 0.75])
@pytest.mark.parametrize("budget", [Budget(1), Budget.zcdp(0.5)])
def test_the_shift_holds_with_probability_beta(p, budget):
    beta, n, people = 0.2, 64, 100
    search = RankSearch(budget, p, beta, 1)
    shift = search.shift(n)
    candidates, random = Candidates.of(range(n)), np.random.default_rng(2)
    rank = math.floor(p * people)
    shapes = [
        np.full(people, 60),
        np.repeat([0, 62], [rank - shift - 1, people - rank + shift + 1]),
        np.repeat([1, 62], [rank + shift + 1, people - rank - shift - 1]),
        random.integers(0, n, people),
        np.clip(random.normal(30, 2, people).astype(int), 0, n - 1),
    ]
    for buckets in shapes:
        below = np.searchsorted(np.sort(buckets), np.arange(n), side="right") - p * people
        right = (below >= -shift) & (np.append(-people, below[:-1]) <= shift)
        right[-1] = np.append(-people, below[:-1])[-1] <= shift
        profile = RankProfile(buckets, np.ones(people, np.int64), 1)
        chances = np.array(search.distribution(profile, candidates))
        assert chances.sum() == pytest.approx(1, abs=1e-12)
        assert chances[right].sum() >= 1 - beta


def test_a_step_shows_the_shift_is_not_far_too_large():
    # All 62 alarms wait at 1 person below -T: the failure is above beta / 8.
    beta, n, people, rank = 0.2, 64, 100, 50
    search = RankSearch(Budget(1), 0.5, beta, 1)
    gone = rank - search.shift(n) - 1
    buckets = np.repeat([0, 63], [gone, people - gone])
    profile = RankProfile(buckets, np.ones(people, np.int64), 1)
    chances = search.distribution(profile, Candidates.of(range(n)))
    assert beta / 8 < sum(chances[:-1]) <= beta


def test_shifts():
    # 2 T = ln((N - 1) / beta) / eps2 + ln(1 / beta) / eps1, within the person it is rounded up by.
    shifts = [RankSearch(Budget(1), p).shift(11_601) for p in (0.5, 0.1, 0.9, 0.01)]
    assert shifts == [12, 9, 9, 8]
    assert RankSearch(Budget(0.1)).shift(11_601) == 113
    assert RankSearch(Budget.zcdp(0.5)).shift(11_601) == 8
    assert RankSearch(Budget(1)).shift(2**40) == 23
    assert RankSearch(Budget(1)).shift(1) == 0


@pytest.mark.parametrize("p", [0.5, 0.3, 0.8, Fraction(1, 10**6)])
@pytest.mark.parametrize("n", [2, 1000, 2**60])
def test_the_budget_is_never_exceeded(p, n):
    for epsilon in (Fraction(1, 2**40), Fraction(1, 3), Fraction(10**400)):
        search = RankSearch(Budget(epsilon), p)
        chosen, share = search._parameters(n), min(search._share, 1 - search._share)
        first, second = chosen.first * search._unit, chosen.second * search._unit
        assert 0 < first and 0 < second
        assert max((1 - share) * first, share * second, share * first + second) <= epsilon
        chosen = RankSearch(Budget.zcdp(epsilon), p)._parameters(n)
        first, second = chosen.first * search._unit, chosen.second * search._unit
        assert max(first + second, share * first + (1 + share) * second) ** 2 <= 8 * epsilon


@pytest.mark.audit
def test_choose_follows_the_distribution():
    random = np.random.default_rng(3)
    candidates = Candidates.of(range(12))
    for p in (0.5, 0.8):
        search = RankSearch(Budget(2), p, 0.3, 2)
        profile = RankProfile(random.integers(0, 12, 9), np.full(9, 2), 2)
        drawn = [search.choose_from(profile, candidates) for _ in range(SIZE)]
        counts = np.bincount(drawn, minlength=12).cumsum() / SIZE
        chances = np.cumsum(search.distribution(profile, candidates))
        assert np.abs(counts - chances).max() < TOLERANCE
        # The broken twin: noise for half of the epsilon.
        twin = RankSearch(Budget(1), p, 0.3, 2).distribution(profile, candidates)
        assert np.abs(counts - np.cumsum(twin)).max() > TOLERANCE


def test_many_candidates_take_one_word_for_each_run():
    random = np.random.default_rng(4)
    search = RankSearch(Budget(1), 0.9)
    for n in (2**14, 2**61):
        candidates = Candidates.linear(0, n - 1, 1)
        profile = RankProfile(random.integers(0, n, 1000), np.full(1000, RESOLUTION))
        CountingNoise.drawn = 0
        below = np.cumsum(profile.amounts) // RESOLUTION
        for _ in range(10):
            found = search.choose_from(profile, candidates, CountingNoise())
            rank = int(below[np.searchsorted(profile.buckets, found)])
            # T for beta = 1e-10 is the false-alarm rate of each draw.
            assert abs(rank - 900) <= RankSearch(Budget(1), 0.9, 1e-10).shift(n) + 60
        assert CountingNoise.drawn < 10 * 1100


def test_no_run_with_a_success_is_skipped():
    # What is not suspect ends without a success; words near the bound are the ones to fear.
    random, noise, rate = np.random.default_rng(6), Noise(), Fraction(1, 10**6)
    over = random.integers(-(10**6), 45 * 10**6, 3000)
    lengths = 2 ** random.integers(0, 60, 3000)
    rare = np.exp(np.minimum(np.log(lengths) - float(rate) * over, 0)) * 2.0**64
    near = rare * random.uniform(0.999, 1.001, 3000) + random.integers(0, 6, 3000)
    words = np.minimum(near, 2.0**63).astype(np.uint64)
    suspect = set(_suspects(float(rate), over, lengths, words))
    skipped = [run for run in range(3000) if run not in suspect]
    assert 500 < len(skipped) < 2500
    for run in skipped:
        need, length, word = int(over[run]), int(lengths[run]), int(words[run])
        assert failures_before_success(rate, need, length, word, noise) == length


def brute(people, buckets, counts, resolution: int, n: int) -> list[int]:
    """Return the sum of the rounded shares at every candidate."""
    sums = [0] * n
    for person in set(people.tolist()):
        mine = people == person
        total = int(counts[mine].sum())
        for y in range(n):
            sums[y] += resolution * int(counts[mine & (buckets <= y)].sum()) // total
    return sums


def test_increments_add_up_to_the_shares_of_all_people():
    random = np.random.default_rng(5)
    for _ in range(300):
        size = int(random.integers(1, 30))
        people, buckets = random.integers(0, 6, size), random.integers(0, 9, size)
        counts = random.integers(1, 40, size)
        resolution = int(random.choice([1, 7, RESOLUTION, 2**61]))
        shard = random.integers(0, 3, 6)[people]  # every person in one shard
        parts = [
            increments(people[shard == s], buckets[shard == s], counts[shard == s], resolution)
            for s in range(3)
        ]
        joined = [np.concatenate([part[i] for part in parts]) for i in (0, 1)]
        order = random.permutation(len(joined[0]))
        profile = RankProfile(joined[0][order], joined[1][order], resolution)
        found = [int(sum(profile.amounts[profile.buckets <= y].tolist())) for y in range(9)]
        assert found == brute(people, buckets, counts, resolution, 9)
        assert found[-1] == resolution * len(set(people.tolist()))


def test_queries_count_every_person_once():
    # 3 people: shares 1/2, 0, 1 at 0; all 1 at 1. With p = 1/3: Q = 3 sum G - D n.
    people, buckets = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 1, 0, 0])
    profile = RankProfile(*increments(people, buckets, np.ones(5, np.int64), 2), 2)
    scores, starts, stops = profile.queries(Fraction(1, 3), 4)
    assert (scores.tolist(), starts.tolist(), stops.tolist()) == ([3, 12], [0, 1], [1, 3])


def test_edges():
    search = RankSearch(Budget(1))
    empty = np.empty(0, np.int64)
    nobody = RankProfile(*increments(empty, empty, empty))
    assert search.choose_from(nobody, Candidates.of([4])) == 4
    assert search.choose_from(nobody, Candidates.of([4, 5])) in (4, 5)
    above = RankProfile(np.full(500, 9), np.full(500, RESOLUTION))  # no candidate is so large
    # A false alarm needs geometric noise of hundreds of people: below e^-100.
    assert search.choose_from(above, Candidates.of([4, 5, 6])) == 6
    assert RankSearch(Budget(1), 0.9).choose_from(above, Candidates.of([4, 5, 6])) == 6
    below = RankProfile(np.zeros(500, np.int64), np.full(500, RESOLUTION))
    assert search.choose_from(below, Candidates.of([4, 5, 6])) == 4
    assert RankSearch(Budget(1), 0.9).choose_from(below, Candidates.of([4, 5, 6])) in (4, 5)
    assert repr(nobody) == "RankProfile(of 0 buckets)"
    assert pickle.loads(pickle.dumps(search)) == search
    assert RankSearch(Budget(1, 1e-6)).cost == Budget(1)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RankSearch(1.0), TypeError, "budget must be a Budget, not 1.0"),
        (lambda: RankSearch(Budget(1), 1), ValueError, "p must be above 0 and below 1, not 1"),
        (lambda: RankSearch(Budget(1), 0.5, 1), ValueError, "beta must be above 0 and below 1"),
        (lambda: RankSearch(Budget(1), resolution=0), ValueError, "resolution must be an int"),
        (lambda: RankSearch(Budget(1)).shift(0), ValueError, "n must be an int of at least 1"),
        (
            lambda: RankSearch(Budget(1)).choose_from(profile_of([1] * 10), Candidates.of([1])),
            ValueError,
            f"resolution must be that of the profile, 2, not {RESOLUTION}",
        ),
        (
            lambda: RankSearch(Budget(1), resolution=D).choose_from(
                profile_of([1] * 10), Candidates.linear(0, 2**62, 1)
            ),
            ValueError,
            "candidates must be fewer than 2\\*\\*62",
        ),
        (
            lambda: RankSearch(Budget(1), resolution=D).distribution(
                profile_of([1] * 10), Candidates.linear(0, 64, 1)
            ),
            ValueError,
            "candidates must be at most 64, not 65",
        ),
        (
            lambda: RankSearch(Budget(1)).distribution(
                RankProfile(np.arange(3), np.full(3, RESOLUTION)), Candidates.of([1, 2, 3])
            ),
            ValueError,
            "resolution must be smaller",
        ),
    ],
)
def test_wrong_calls_are_refused(make, error, message):
    with pytest.raises(error, match=rf"^RankSearch[a-z._]*: {message}"):
        make()
