"""Rows with two owners: below the exact profile by a known factor, and sensitivity exactly 1."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.profiles import owner_pairs
from beam_dp.mechanisms.profiles.owner_pairs import Edges
from beam_dp.mechanisms.profiles.profile import Profile
from tests.sizes import tries as sized

PRICES = [Fraction(text) for text in ("1/4", "3/4", "1", "4/3", "2", "3", "7/2")]
SCALES = (1, 1, 1, 10, 10**6, 10**15)


def rows_of(generator, most=7):
    """Return per person the rows that come with her: with herself, or somebody before her."""
    scale = int(generator.choice(SCALES))

    def row(person):
        weight = int(generator.integers(0, 4)) * scale + int(generator.integers(0, scale))
        other = int(generator.integers(0, person + 1))
        return (person, other, weight) if generator.random() < 0.5 else (other, person, weight)

    count = int(generator.integers(0, most + 1))
    return [[row(p) for _ in range(generator.integers(0, 4))] for p in range(count)]


def columns(people):
    rows = [row for rows in people for row in rows]
    return np.array(rows, np.int64).reshape(-1, 3).T


def surviving(rows, size, k):
    """Yield the weights that survive, for every removal of k people."""
    for gone in itertools.combinations(range(size), min(k, size)):
        yield [w for a, b, w in rows if a not in gone and b not in gone]


def program(rows, size, price=None, k=None):
    """Return the linear program: the twin at a price, or the least of k removals."""
    if not rows:
        return 0.0
    above = np.zeros((len(rows) + 1, size + len(rows)))
    for place, (a, b, _) in enumerate(rows):
        above[place, [a, b, size + place]] = -1
    above[-1, :size] = 1
    limits = [*[-1] * len(rows), size if k is None else k]
    cost = [0 if price is None else float(price)] * size + [w for *_, w in rows]
    return float(linprog(cost, above, limits, bounds=[(0, 1)] * (size + len(rows))).fun)


def interlaced(before, after):
    shifted = all(b <= a for a, b in zip(before[:-1], after[1:], strict=True))
    return shifted and all(a <= b for a, b in zip(before, after, strict=True))


def chains(statistic, pairs, seed):
    """Yield the statistic before and after a person came with her rows."""
    generator = np.random.default_rng(seed)
    while pairs > 0:
        people = rows_of(generator)
        found = [statistic(*columns(people[:size])) for size in range(len(people) + 1)]
        yield from itertools.pairwise(found)
        pairs -= len(people)


def test_it_lies_between_the_linear_program_and_the_exact_profile():
    generator = np.random.default_rng(2)
    for _ in range(60):
        people = rows_of(generator)
        rows = [row for rows in people for row in rows]
        found = owner_pairs.profile(*columns(people), 4)
        total = sum(w for *_, w in rows)
        assert found[0] == total
        unit = max([1, *(w for *_, w in rows)])
        scaled = [(a, b, w / unit) for a, b, w in rows]
        for k in range(1, 5):
            exact = min((sum(left) for left in surviving(rows, len(people), k)), default=0)
            lowest = program(scaled, len(people), k=k) * unit
            assert found[k] <= exact
            assert found[k] <= lowest + 1e-7 * unit
            assert total - found[k] <= 65 / 64 * (total - lowest) + k / 64 + 1e-7 * unit
            assert 48 * (total - found[k]) <= 65 * (total - exact) + Fraction(3 * k, 4)


def test_the_double_cover_is_the_linear_program_at_every_price():
    generator = np.random.default_rng(3)
    for _ in range(60):
        people = rows_of(generator)
        rows = [row for rows in people for row in rows]
        unit = max([1, *(w for *_, w in rows)]) // 3 + 1
        scaled = [(a, b, w / unit) for a, b, w in rows]
        graph = Edges(*columns(people))
        for price in PRICES:
            found = float((graph.total - graph.point(price * unit, 0).loss) / unit)
            assert found == pytest.approx(program(scaled, len(people), price), abs=1e-7)


def test_rows_of_one_owner_are_exact():
    # A sum: the profile is the total less the largest people.
    owners, weights = [0, 0, 1, 2, 3], [5, 4, 8, 2, 100]
    assert owner_pairs.profile(owners, owners, weights, 5) == [119, 19, 10, 2, 0, 0]
    assert owner_pairs.profile(owners, owners, None, 1) == [5, 3]


def test_a_triangle_and_a_star():
    # Half of each of three people covers a triangle: the line from 3 rows to none at 3/2.
    triangle = [0, 1, 2], [1, 2, 0]
    assert owner_pairs.profile(*triangle, None, 2) == [3, 1, 0]
    star = [0] * 50, list(range(1, 51))
    assert owner_pairs.profile(*star, None, 2) == [50, 0, 0]


@sized(1_000, 10_000)
def test_profiles_of_10000_neighbours_interlace(tries):
    for before, after in chains(lambda *rows: owner_pairs.profile(*rows, 4), tries, 4):
        assert interlaced(before, after)


@pytest.mark.audit
def test_the_loss_of_every_candidate_moves_by_0_or_1_upwards():
    candidates = Candidates.linear(0, 20, Fraction(1, 4))

    def losses(first, second, weights):
        return Profile(owner_pairs.profile(first, second, weights % 5, 4)).loss(candidates)

    moves = set()
    for before, after in chains(losses, 1_000, 5):
        moves |= {b - a for a, b in zip(before, after, strict=True)}
    assert moves == {0, 1}


def test_people_of_one_side_of_a_cover_would_count_twice():
    # The broken twin: owners as if they were different people left and right.
    def apart(first, second, weights):
        return owner_pairs.profile(np.asarray(first) * 2, np.asarray(second) * 2 + 1, weights, 4)

    assert not all(interlaced(*pair) for pair in chains(apart, 300, 6))


def test_no_weights_are_too_large():
    """Sums beyond 64 bits are those of small weights: the grid of prices scales with them.

    But for its low end: the small weights lack prices below 1/64, which costs at most k / 64.
    """
    generator = np.random.default_rng(9)
    for _ in range(60):
        first, second, weights = columns(rows_of(generator))
        alone = np.arange(30) + 10  # so that there are 2^61 and more in all
        first, second = np.append(first, alone), np.append(second, alone)
        weights = np.append(weights % 7, np.full(30, 6))
        small = owner_pairs.profile(first, second, weights, 4)
        scaled = [level / 2**55 for level in owner_pairs.profile(first, second, weights << 55, 4)]
        assert scaled[0] == small[0] > 2**6
        for k, pair in enumerate(zip(small, scaled, strict=True)):
            assert 0 <= pair[1] - pair[0] <= Fraction(k, 64)


def test_weights_beyond_64_bits_interlace_and_count_for_at_most_2_to_61():
    huge = np.array([2**64 - 1, 2**63, 5], np.uint64)
    assert owner_pairs.profile([1, 2, 3], [1, 2, 3], huge, 3) == [2**62 + 5, 2**61 + 5, 5, 0]

    def statistic(first, second, weights):
        return owner_pairs.profile(first, second, (weights % 5) << 60, 4)

    found = list(chains(statistic, 500, 12))
    assert all(interlaced(*pair) for pair in found)
    assert max(after[0] for _, after in found) >= 2**63


@pytest.mark.audit
def test_maxima_lie_between_the_half_and_the_whole_of_the_loss():
    generator = np.random.default_rng(10)
    for _ in range(150):
        people = rows_of(generator)
        rows = [row for rows in people for row in rows]
        found = owner_pairs.max_profile(*columns(people), 8, -1)
        exact = [
            min((max(left, default=-1) for left in surviving(rows, len(people), k)), default=-1)
            for k in range(9)
        ]
        assert found[0] == exact[0]
        for k in range(9):
            assert found[k] <= exact[k]
            assert found[k // 2] >= exact[k]
            # From the definition: the rows above B[k] have a cover of k, those from it on do not.
            above = [(a, b, 9) for a, b, w in rows if w > found[k]]
            at = [(a, b, 9) for a, b, w in rows if w >= found[k]]
            assert program(above, len(people), 1) <= k + 1e-7
            assert found[k] == -1 or program(at, len(people), 1) > k + 1e-7


@sized(2_000, 10_000)
def test_maxima_of_10000_neighbours_interlace(tries):
    for before, after in chains(lambda *rows: owner_pairs.max_profile(*rows, 3, -1), tries, 11):
        assert interlaced(before, after)


def test_rows_that_cannot_matter_for_a_maximum_are_left_out():
    generator = np.random.default_rng(12)
    for _ in range(30):
        first = np.where(generator.random(200) < 0.7, generator.integers(0, 3, 200), 50)
        second = generator.integers(0, 40, 200)
        values = generator.integers(0, 60, 200)
        # Many removals keep all the rows; few leave rows out, and nothing changes.
        assert len(owner_pairs._Ordered(first, second, values, 2).low) < 60
        whole = owner_pairs.max_profile(first, second, values, 200, -1)
        assert owner_pairs.max_profile(first, second, values, 2, -1) == whole[:3]


def test_wrong_calls():
    with pytest.raises(ValueError, match="same length"):
        owner_pairs.profile([1, 2], [1], None, 1)
    for weights in ([-1], [0.5]):
        with pytest.raises(ValueError, match="weights must be integers from 0"):
            owner_pairs.profile([1], [2], weights, 1)
    with pytest.raises(ValueError, match="must be integers, both signed"):
        owner_pairs.profile(np.array([2**63], np.uint64), np.array([1]), None, 1)  # floats together
    with pytest.raises(ValueError, match="removals must be an int of at least 1, not 0"):
        owner_pairs.profile([1], [1], None, 0)
    assert owner_pairs.profile([], [], None, 2) == [0, 0, 0]
    assert owner_pairs.max_profile([], [], [], 1, 7) == [7, 7]
