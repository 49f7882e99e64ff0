"""ScaleThenChoose: where it wins, and whatever the profile looks like."""

import math

import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.search import ScaleThenChoose
from tests import laws

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
@pytest.mark.parametrize("bits", [20, 1030])
@pytest.mark.parametrize("name", SPREADS)
def test_the_shift_is_kept_whatever_the_profile_looks_like(bits, name):
    # beta = 1e-12: a failure in 14 x 7 choices has a probability of about 1e-10.
    search = ScaleThenChoose(Budget(1, 1e-6), 1e-12)
    candidates = Candidates.linear(0, 2**bits - 1, 1)
    shift = search.shift(candidates.size)
    values = [SPREADS[name](bits, t, shift) for t in range(shift + 1)]
    for _ in range(2 if bits > 1000 else 7):
        assert values[-1] <= search.choose(Profile(values), candidates) <= values[0]


def test_what_is_beyond_the_candidates_counts_as_their_ends():
    search = ScaleThenChoose(Budget(4, 0.1), 0.3)
    candidates = Candidates.of(range(12))
    inside = [11] * 9 + [4] * 9 + [0] * 30
    outside = [math.inf] * 4 + [12] * 5 + [4] * 9 + [-math.inf] * 30
    whole = laws.distribution(search, Profile(inside), candidates)
    assert laws.distribution(search, Profile(outside), candidates) == whole
    assert laws.distribution(search, Profile(inside[:18]), candidates) == whole  # cut: the lowest
