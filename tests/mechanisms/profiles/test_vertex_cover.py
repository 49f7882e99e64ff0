"""Distinct counts of rows with two owners: covers by brute force, and sensitivity exactly 1."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.profiles import vertex_cover
from beam_dp.mechanisms.profiles.profile import Profile
from tests.sizes import tries as sized


def rows_of(generator, most=7, values=4):
    """Return per person the rows that come with her: with herself, or somebody before her."""
    count = int(generator.integers(0, most + 1))
    loops = generator.random() < 0.5

    def row(person):
        other = int(generator.integers(0, person + loops)) if person + loops else 0
        pair = (person, other) if generator.random() < 0.5 else (other, person)
        return (*pair, int(generator.integers(0, values)))

    return [[row(p) for _ in range(generator.integers(0, 7)) if p + loops] for p in range(count)]


def columns(people):
    rows = [row for rows in people for row in rows]
    return np.array(rows, np.int64).reshape(-1, 3).T


def graphs_of(people):
    """Return the edges of every value, by value."""
    found = {}
    for a, b, value in itertools.chain.from_iterable(people):
        found.setdefault(value, set()).add((min(a, b), max(a, b)))
    return dict(sorted(found.items()))


def exact(people, removals):
    """Return the exact profile, by all subsets."""
    graphs, everybody = graphs_of(people), range(len(people))
    found = []
    for k in range(removals + 1):
        sets = map(set, itertools.combinations(everybody, min(k, len(people))))
        found.append(
            min(
                sum(any(not {*edge} & gone for edge in g) for g in graphs.values()) for gone in sets
            )
        )
    return found


def cover(edges, size):
    """Return the least sum(r) by trying 0, 1/2 and 1 for everybody."""
    choices = itertools.product((0, 1, 2), repeat=size)
    return min(sum(r) for r in choices if all(r[a] + r[b] * (a != b) >= 2 for a, b in edges))


def interlaced(before, after):
    shifted = all(b <= a for a, b in zip(before[:-1], after[1:], strict=True))
    return shifted and all(a <= b for a, b in zip(before, after, strict=True))


def chains(statistic, pairs, seed, values=4):
    """Yield the statistic before and after a person came with her rows."""
    generator = np.random.default_rng(seed)
    while pairs > 0:
        people = rows_of(generator, values=values)
        found = [statistic(*columns(people[:size])) for size in range(len(people) + 1)]
        yield from itertools.pairwise(found)
        pairs -= len(people)


@pytest.mark.parametrize("removals", [1, 2, 9])
def test_it_is_the_covers_in_halves_and_never_above_the_exact_profile(removals):
    generator = np.random.default_rng(removals)
    for _ in range(120):
        people = rows_of(generator, most=6)
        needed = [cover(edges, len(people)) for edges in graphs_of(people).values()]
        expected = [sum(halves > 2 * k for halves in needed) for k in range(removals + 1)]
        found = vertex_cover.profile(*columns(people), removals)
        assert found == expected
        assert found[0] == exact(people, 0)[0]
        assert all(a <= b for a, b in zip(found, exact(people, removals), strict=True))


def test_covers_in_halves_are_the_linear_program():
    generator = np.random.default_rng(3)
    for _ in range(60):
        people = rows_of(generator)
        found = vertex_cover.cover_halves(*columns(people), 50)
        for edges, halves in zip(graphs_of(people).values(), found.tolist(), strict=True):
            above = np.zeros((len(edges), len(people)))
            for place, (a, b) in enumerate(edges):
                above[place, [a, b]] = -1
            program = linprog(np.ones(len(people)), above, [-1] * len(edges), bounds=(0, 1))
            assert 2 * program.fun == pytest.approx(halves, abs=1e-7)


def test_the_rules_decide_what_the_matching_would():
    """Stars, triangles, crowds and paths of one value each: above 2 K only that they are above."""
    generator = np.random.default_rng(4)
    decided = 0
    for _ in range(40):
        size, value = int(generator.integers(2, 40)), generator.integers(0, 3, 80)
        first = generator.integers(0, size, 80) * (generator.random(80) < 0.5)
        second = generator.integers(0, size, 80)
        whole = vertex_cover.cover_halves(first, second, value, 100)
        for removals in (1, 2, 4):
            found = vertex_cover.cover_halves(first, second, value, removals)
            low = np.minimum(whole, 2 * removals + 1)
            assert np.array_equal(np.minimum(found, 2 * removals + 1), low)
            decided += int((found != whole).sum())
    assert decided > 50


@sized(2_000, 10_000)
def test_profiles_of_10000_neighbours_interlace(tries):
    for before, after in chains(lambda *rows: vertex_cover.profile(*rows, 4), tries, 5):
        assert interlaced(before, after)


def test_the_loss_of_every_candidate_moves_by_0_or_1_upwards():
    candidates = Candidates.linear(0, 6, Fraction(1, 2))

    def losses(*rows):
        return Profile(vertex_cover.profile(*rows, 4)).loss(candidates)

    moves = set()
    for before, after in chains(losses, 2_000, 6):
        moves |= {b - a for a, b in zip(before, after, strict=True)}
    assert moves == {0, 1}


def test_owners_of_one_side_would_not_do():
    # The broken twins: every owner is needed, as in counts of one owner; or people of both sides.
    def owners(first, second, items):
        pairs = {(i, p) for i, *both in zip(items, first, second, strict=True) for p in both}
        found = [sum(1 for item, _ in pairs if item == i) for i in set(items.tolist())]
        return [sum(count > k for count in found) for k in range(5)]

    def apart(first, second, items):
        return vertex_cover.profile(first * 2, second * 2 + 1, items, 4)

    for broken in (owners, apart):
        assert not all(interlaced(*pair) for pair in chains(broken, 1_000, 7, values=1))


def test_all_values_at_once_are_no_flow():
    """Why values are taken one by one: the fractional matching of rows and values has thirds."""
    owned = [(0, 4, 5), (0, 5, 7), (1, 4, 7), (1, 5, 6)]  # value, owner, owner
    limits = np.zeros((8, len(owned)))
    for place, row in enumerate(owned):
        limits[row, place] = 1
    assert -3 * linprog([-1] * 4, limits, np.ones(8)).fun == pytest.approx(5, abs=1e-9)


def test_known_graphs():
    triangle = [1, 2, 3], [2, 3, 1], [7, 7, 7]
    assert vertex_cover.profile(*triangle, 2) == [1, 1, 0]
    assert vertex_cover.cover_halves(*triangle, 2).tolist() == [3]
    star = [0] * 50, [*range(1, 51)], [1] * 50
    assert vertex_cover.profile(*star, 3) == [1, 0, 0, 0]
    loops = [5, 5, 6], [5, 6, 6], [0, 0, 0]
    assert vertex_cover.profile(*loops, 3) == [1, 1, 0, 0]
    path = np.arange(300_000)
    assert vertex_cover.profile(path, path + 1, path * 0, 100) == [1] * 101


def test_repeated_rows_directions_and_strange_codes_change_nothing():
    low, high = -(2**63), 2**63 - 1
    given = np.array([[low, high, 3], [high, low, 3], [low, low, high]])
    assert vertex_cover.profile(*given.T, 2) == vertex_cover.profile(*given[1:].T, 2) == [2, 0, 0]
    assert vertex_cover.profile([], [], [], 2) == [0, 0, 0]


def test_wrong_calls():
    with pytest.raises(ValueError, match="same length"):
        vertex_cover.profile([1, 2], [1], [1], 1)
    with pytest.raises(ValueError, match="must be integers"):
        vertex_cover.profile(np.array([2**63], np.uint64), np.array([1]), [1], 1)  # floats together
    with pytest.raises(ValueError, match="removals must be an int of at least 1, not 0"):
        vertex_cover.profile([1], [1], [1], 0)
