"""What noise is scaled to, in every part of the library, through `check_sensitivity`.

The functions are the library's own, as they stand before the noise; none may be refuted. Each kind
has a twin without what bounds it, which must be.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms import preprocessing
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.preprocessing.groups import STATISTICS, PreprocessedStatistic
from beam_dp.mechanisms.profiles import frequency, kth_largest
from beam_dp.mechanisms.profiles.packed import by_price, kth_by_price
from beam_dp.mechanisms.profiles.packed.packings import PackedRows
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.ratio import local_bound
from beam_dp.testing import check_sensitivity

# ------------------------------------------------------- preprocessed statistics, before the noise

NUMBERS = [-40, 0, 0, 1, 3, 7, 7, 25]
DELTA = 6


def released(statistic, delta=DELTA):
    """Return the integer that noise is added to."""
    made = PreprocessedStatistic(statistic, delta, resolution=3)

    def steps(people):
        units = np.array(people, np.int64)
        return int(made.values(units, np.array([0, len(units)]))[0])

    return steps


@pytest.mark.sampled(4)
@pytest.mark.parametrize("statistic", STATISTICS)
def test_preprocessed_statistics_move_by_delta(statistic):
    assert check_sensitivity(released(statistic), DELTA, NUMBERS) is None
    assert check_sensitivity(released(statistic), DELTA - 1, NUMBERS) is not None


@pytest.mark.parametrize("statistic", STATISTICS)
def test_unless_delta_is_beyond_what_they_are(statistic):
    """The broken twin: f itself, with the noise of Delta."""
    assert check_sensitivity(released(statistic, 10**9), DELTA, NUMBERS) is not None


def both(people):
    return sum(people), max(people, default=0)


SMALL = NUMBERS[:6]
EXACT = {
    "general": (lambda people: preprocessing.general(lambda x: sum(x) ** 2, people, 5), 5),
    "plane": (lambda people: preprocessing.plane(both, people, 4), 4),
}


@pytest.mark.parametrize(("f", "delta"), EXACT.values(), ids=EXACT)
def test_exact_forms_move_by_delta(f, delta):
    assert check_sensitivity(f, delta, SMALL) is None
    assert check_sensitivity(f, delta - Fraction(1, 2), SMALL) is not None


def test_two_coordinates_are_not_one():
    """The broken twin: the noise of the larger Delta for both."""

    def separate(people):
        return [preprocessing.general(lambda x, c=c: both(x)[c], people, 2 + c) for c in range(2)]

    assert check_sensitivity(separate, 5, SMALL) is None
    assert check_sensitivity(separate, 3, SMALL) is not None


# -------------------------------------------------------------------- removal losses of searches

OWNERS = [(0, (1, 2, 2)), (1, (2, 3)), (2, (5, 5, 5)), (3, (1, 5)), (4, ()), (5, (2, 2, 5, 4))]
GRID = Candidates.of(range(40))
REMOVALS = 3


def lines(people):
    """Return a column of people and one of what they own."""
    pairs = [(person, item) for person, items in people for item in items]
    columns = np.array(pairs, np.int64).reshape(-1, 2).T
    return columns[0], columns[1]


def edge(people):
    """Return the rows of which both owners are there."""
    there = {person for person, _ in people}
    first, second = lines(people)
    kept = np.isin(second, list(there))
    return first[kept], second[kept]


def ones(people):
    return np.ones(len(lines(people)[0]), np.int64)


PROFILES = {
    "distinct": lambda x: by_price.profile(PackedRows(lines(x)[0][None], lines(x)[1]), REMOVALS),
    "rows of two owners": lambda x: by_price.profile(PackedRows(np.array(edge(x)), None), REMOVALS),
    "largest of two owners": lambda x: kth_by_price.profile(
        np.array(edge(x)), sum(edge(x)), np.ones(len(edge(x)[0]), np.int64), 1, REMOVALS, 0
    ),
    "most frequent": lambda x: frequency.max_profile(*lines(x), ones(x), REMOVALS),
    "squares": lambda x: frequency.squares_profile(*lines(x), ones(x), REMOVALS),
    "second row": lambda x: kth_largest.profile(*lines(x), ones(x), 2, REMOVALS),
}


def loss(profile):
    return lambda people: Profile(profile(people)).loss(GRID)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_a_removal_loss_moves_by_one(profile):
    """At all candidates at once: that is what the searches rely on."""
    assert check_sensitivity(loss(profile), 1, OWNERS, p=math.inf) is None
    assert check_sensitivity(loss(profile), Fraction(1, 2), OWNERS, p=math.inf) is not None


def test_a_greedy_profile_does_not():
    """The broken twin: whoever owns most rows goes first, whatever else there is."""

    def greedy(people):
        order = sorted(people, key=lambda person: -len(person[1]))
        left = [order[k:] for k in range(REMOVALS + 1)]
        return [len({item for _, items in kept for item in items}) for kept in left]

    assert check_sensitivity(loss(greedy), 1, OWNERS, p=math.inf) is not None


# ------------------------------------------------------------------------------------- ratios

CLICKS = [(0, 0), (1, 0), (0, 1), (2, 1), (3, 0), (0, 3), (1, 2)]  # ones and zeros per person
ROWS = 3


def parts(people):
    return [sum(one for one, _ in people), sum(zero for _, zero in people)]


def counts(people):
    ones, zeros = parts(people)
    return [ones, ones + zeros]


def test_parts_move_by_the_rows_of_a_person_together():
    assert check_sensitivity(parts, ROWS, CLICKS) is None
    assert check_sensitivity(counts, ROWS, CLICKS, p=math.inf) is None
    assert check_sensitivity(counts, ROWS, CLICKS) is not None  # the broken twin


BOXES = list(itertools.product((2, 9), (2, 5, 30), (1, 4)))


@pytest.mark.parametrize(("ones", "zeros", "more"), BOXES)
def test_a_ratio_moves_by_its_bound(ones, zeros, more):
    """People with one row each, `more` of them at most beside some that stay."""

    def ratio(x):
        return Fraction(ones + int(x[0]), ones + zeros + int(x.sum()))

    def claimed(span, other):
        return Fraction(*local_bound.largest_bound(span, other, 1))

    most = claimed((ones, ones + more), (zeros, zeros + more))
    assert check_sensitivity(ratio, most, bins=2, size=more) is None
    # The broken twin: the bounds exchanged, as in the article's code.
    least = claimed((ones + more, ones + more), (zeros + more, zeros + more))
    assert check_sensitivity(ratio, least / 2, bins=2, size=more) is not None
