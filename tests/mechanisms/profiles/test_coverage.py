"""Distinct counts: between the convex envelope and the exact profile, and sensitivity exactly 1."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.profiles import coverage
from beam_dp.mechanisms.profiles.coverage import Coverage
from beam_dp.mechanisms.profiles.profile import Profile
from tests.sizes import tries as sized

PRICES = [Fraction(text) for text in ("1/4", "3/4", "1", "4/3", "2", "3")]


def people_of(generator, most=8, items=9):
    """Return random sets, one per person; some people share a set."""
    count = int(generator.integers(0, most + 1))
    sets = [
        set(generator.integers(0, items, generator.integers(0, 6)).tolist()) for _ in range(count)
    ]
    for person in range(1, count):
        if generator.random() < 0.3:
            sets[person] = set(sets[person - 1])
    return sets


def columns(sets):
    pairs = [(person, item) for person, owned in enumerate(sets) for item in owned]
    return np.array(pairs, np.int64).reshape(-1, 2).T


def exact(sets, removals):
    """Return the exact profile, by all subsets."""
    found = []
    for k in range(removals + 1):
        kept = itertools.combinations(sets, max(0, len(sets) - k))
        found.append(min(len(set().union(*rest)) for rest in kept))
    return found


def program(sets, k, price=None):
    """Return the linear program of level k: the twin at a price, or the least of k removals."""
    items = sorted(set().union(*sets))
    if not items:
        return 0.0
    owners = [[p for p, owned in enumerate(sets) if item in owned] for item in items]
    rows = []
    for place, people in enumerate(owners):
        for person in people:
            row = np.zeros(len(sets) + len(items))
            row[[person, len(sets) + place]] = -1
            rows.append(row)
    cost = [0 if price is None else float(price)] * len(sets) + [1] * len(items)
    budget = np.array([1.0] * len(sets) + [0.0] * len(items))
    bounds = [(0, 1)] * len(sets) + [(float(len(o) > k), 1) for o in owners]
    above = np.array([*rows, budget])
    limits = [*[-1] * len(rows), k if price is None else len(sets)]
    return float(linprog(cost, above, limits, bounds=bounds).fun)


def interlaced(before, after):
    shifted = all(b <= a for a, b in zip(before[:-1], after[1:], strict=True))
    return shifted and all(a <= b for a, b in zip(before, after, strict=True))


def chains(statistic, pairs, seed, make=people_of):
    """Yield the statistic before and after a person came, on `pairs` neighbours."""
    generator = np.random.default_rng(seed)
    while pairs > 0:
        sets = make(generator)
        found = [statistic(sets[:size]) for size in range(len(sets) + 1)]
        yield from itertools.pairwise(found)
        pairs -= len(sets)


def test_it_lies_between_the_envelope_and_the_exact_profile():
    generator = np.random.default_rng(2)
    for _ in range(60):
        sets = people_of(generator)
        found = coverage.profile(*columns(sets), 5)
        brute = exact(sets, 5)
        assert found[0] == brute[0]
        assert all(type(value) is Fraction for value in found)
        for k in range(1, 6):
            lowest = program(sets, k) if sets else 0.0
            assert found[k] <= brute[k]
            assert found[k] <= lowest + 1e-7
            assert brute[0] - found[k] <= 65 / 64 * (brute[0] - lowest) + k / 64 + 1e-7


@pytest.mark.audit
def test_the_flow_is_the_linear_program_at_every_price():
    generator = np.random.default_rng(3)
    for _ in range(40):
        sets = people_of(generator)
        cover = Coverage(*columns(sets), 4)
        for price, k in itertools.product(PRICES, (1, 2, 4)):
            point = cover.point(price, cover.level(price, k))
            expected = program(sets, k, price) if sets else 0.0
            assert float(cover.total - point.loss) == pytest.approx(expected, abs=1e-7)


def test_owners_of_single_items_are_exact():
    sets = [{(p, i) for i in range(size)} for p, size in enumerate((9, 7, 7, 3, 1, 0))]
    people, items = columns([{hash(i) for i in owned} for owned in sets])
    assert coverage.profile(people, items, 7) == [27, 18, 11, 4, 1, 0, 0, 0]


@sized(500, 10_000)
def test_profiles_of_10000_neighbours_interlace(tries):
    for before, after in chains(lambda sets: coverage.profile(*columns(sets), 4), tries, 4):
        assert interlaced(before, after)


def test_the_loss_of_every_candidate_moves_by_0_or_1_upwards():
    candidates = Candidates.linear(0, 10, Fraction(1, 4))

    def losses(sets):
        return Profile(coverage.profile(*columns(sets), 4)).loss(candidates)

    moves = set()
    for before, after in chains(losses, 1_000, 5):
        moves |= {b - a for a, b in zip(before, after, strict=True)}
    assert moves == {0, 1}


def test_the_same_safe_items_at_all_levels_would_break_it(monkeypatch):
    # The broken twin: 100 items of the same K owners, and then of one more.
    removals = 4
    before = [set(range(100))] * removals
    after = [set(range(100))] * (removals + 1)
    profiles = [coverage.profile(*columns(sets), removals) for sets in (before, after)]
    assert interlaced(*profiles)
    monkeypatch.setattr(Coverage, "level", lambda self, price, k: removals)
    assert not interlaced(*(coverage.profile(*columns(s), removals) for s in (before, after)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("cap", [1, 2, 3])
def test_a_capped_count_moves_by_at_most_the_cap(cap):
    def statistic(sets):
        return coverage.capped(*columns(sets), cap), len(set().union(*sets))

    moves = set()
    for before, after in chains(statistic, 700, 7 + cap):
        moves.add(after[0] - before[0])
        assert after[0] <= after[1]
    assert moves == set(range(cap + 1))


def test_a_capped_count_is_the_linear_program():
    generator = np.random.default_rng(8)
    for _ in range(60):
        sets = people_of(generator)
        expected = program(sets, len(sets), 2) if sets else 0.0
        assert coverage.capped(*columns(sets), 2) == pytest.approx(expected, abs=1e-7)


def test_repeated_pairs_and_strange_codes_change_nothing():
    people = np.array([2**64 - 1, 5, 5, 2**64 - 1, 7], np.uint64)
    items = np.array([0, 2**63, 2**63, 0, 0], np.uint64)
    assert coverage.profile(people, items, 3)[:2] == [2, 1]
    assert coverage.profile([], [], 2) == [0, 0, 0]


def test_wrong_calls():
    with pytest.raises(ValueError, match="same length"):
        coverage.profile([1, 2], [1], 1)
    with pytest.raises(ValueError, match="must be integers"):
        coverage.profile([2**63, -1], [1, 2], 1)  # floats to numpy
    with pytest.raises(ValueError, match="removals must be an int of at least 1, not 0"):
        coverage.profile([1], [1], 0)
    with pytest.raises(TypeError, match="cap must be"):
        coverage.capped([1], [1], 1.5)
