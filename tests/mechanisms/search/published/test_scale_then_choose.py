"""ScaleThenChoose: its table of shifts, where it wins, its sampler and its edges."""

import math
import pickle

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.search import AboveThreshold, ScaleThenChoose

SIZE = 4_000
# DKW: sup |F_n - F| > sqrt(ln(2 / a) / (2 n)) has probability at most a = 1e-10: 0.0545.
TOLERANCE = math.sqrt(math.log(2e10) / (2 * SIZE))


class Refusing(Noise):
    """Draws nothing."""

    def words(self, size):
        raise AssertionError


def distance(drawn: list[int], chances: list[float]) -> float:
    counts = np.bincount(drawn, minlength=len(chances))
    return float(np.abs(np.cumsum(counts) / len(drawn) - np.cumsum(chances)).max())


@pytest.mark.parametrize(("epsilon", "shifts"), [(1, (286, 297, 320)), (0.1, (2987, 3094, 3332))])
def test_shifts_of_the_table(epsilon, shifts):
    search = ScaleThenChoose(Budget(epsilon, 1e-6))
    assert tuple(search.shift(2**m) for m in (20, 64, 1024)) == shifts
    assert search.cap(2**64) == search.shift(2**64)


@pytest.mark.audit
def test_it_wins_only_beyond_2_to_the_360():
    search, other = ScaleThenChoose(Budget(1, 1e-6)), AboveThreshold(Budget(1))
    wins = [m for m in range(8, 1025, 8) if search.shift(2**m) < other.shift(2**m)]
    assert wins == list(range(368, 1025, 8))


SPREADS = {
    "equal": lambda bits, t, shift: 1 << (bits - 1),
    "dense": lambda bits, t, shift: (1 << (bits - 1)) - t,
    "even": lambda bits, t, shift: (shift - t) * ((1 << bits) // (shift + 1)),
    "geometric": lambda bits, t, shift: (1 << (bits - 1)) >> (t * (bits - 1) // shift),
    "halves": lambda bits, t, shift: (1 << (bits - 1)) - (t > shift // 2),
    "ends": lambda bits, t, shift: ((1 << bits) - 1) * (t < shift // 2),
    "middle": lambda bits, t, shift: (1 << (bits - 1)) + (shift // 2 - t) * (1 << (bits // 2)),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("bits", [20, 64, 1030])
@pytest.mark.parametrize("name", SPREADS)
def test_the_shift_is_kept_whatever_the_profile_looks_like(bits, name):
    # beta = 1e-12: a failure in 14 x 8 choices has a probability of about 1e-10.
    search = ScaleThenChoose(Budget(1, 1e-6), 1e-12)
    candidates = Candidates.linear(0, 2**bits - 1, 1)
    shift = search.shift(candidates.size)
    values = [SPREADS[name](bits, t, shift) for t in range(shift + 1)]
    for _ in range(2 if bits > 1000 else 7):
        assert values[-1] <= search.choose(Profile(values), candidates) <= values[0]


@pytest.mark.parametrize(("epsilon", "delta"), [(20, 0.5), (4, 0.1)])
def test_choose_follows_the_distribution(epsilon, delta):
    search = ScaleThenChoose(Budget(epsilon, delta), 0.3)
    shift, candidates = search.shift(12), Candidates.of(range(12))
    profile = Profile([round(11 * (1 - (t / (shift + 1)) ** 2)) for t in range(shift + 1)])
    drawn = [search.choose(profile, candidates) for _ in range(SIZE)]
    assert distance(drawn, search.distribution(profile, candidates)) < TOLERANCE
    # The broken twin: the upper half of the profile only.
    twin = Profile(profile.values[: shift // 2])
    assert distance(drawn, search.distribution(twin, candidates)) > TOLERANCE


def test_what_is_beyond_the_candidates_counts_as_their_ends():
    search = ScaleThenChoose(Budget(4, 0.1), 0.3)
    candidates = Candidates.of(range(12))
    inside = [11] * 9 + [4] * 9 + [0] * 30
    outside = [math.inf] * 4 + [12] * 5 + [4] * 9 + [-math.inf] * 30
    whole = search.distribution(Profile(inside), candidates)
    assert search.distribution(Profile(outside), candidates) == whole
    assert search.distribution(Profile(inside[:18]), candidates) == whole  # cut: the lowest


def test_one_candidate_is_returned_for_nothing():
    search, profile, one = ScaleThenChoose(Budget(1, 1e-6)), Profile([3, 2]), Candidates.of([7])
    assert search.choose(profile, one, Refusing()) == 7
    assert (search.shift(1), search.cap(1), search.distribution(profile, one)) == (0, 0, [1.0])


def test_it_travels_by_pickle_and_extreme_budgets_work():
    for budget in (Budget(10**400, 0.5), Budget(1, 1e-300), Budget(0.01, 0.9)):
        search = ScaleThenChoose(budget)
        assert pickle.loads(pickle.dumps(search)) == search
        found = search.choose(Profile([5, 3, 0]), Candidates.linear(0, 2**70, 1))
        assert 0 <= found <= 2**70


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ScaleThenChoose(1.0), TypeError, "budget must be a Budget, not 1.0"),
        (lambda: ScaleThenChoose(Budget(1)), ValueError, "Write Budget(epsilon, delta=1e-6)."),
        (lambda: ScaleThenChoose(Budget.zcdp(1)), ValueError, "must have an epsilon and a delta"),
        (lambda: ScaleThenChoose(Budget(1, 1e-6), 1), ValueError, "beta must be above 0"),
        (lambda: ScaleThenChoose(Budget(1, 1e-6)).shift(0), ValueError, "n must be an int"),
        (
            lambda: ScaleThenChoose(Budget(1, 1e-6)).distribution(
                Profile([1]), Candidates.linear(0, 64, 1)
            ),
            ValueError,
            "candidates must be at most 64, not 65",
        ),
    ],
)
def test_wrong_calls_are_refused(make, error, message):
    with pytest.raises(error, match=r"^ScaleThenChoose[a-z._]*: ") as caught:
        make()
    assert message in str(caught.value)
