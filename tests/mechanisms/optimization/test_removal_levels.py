"""The profile of the most frequent item: the linear program, exactly, whatever HiGHS says."""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from beam_dp.mechanisms.optimization import highs_model, removal_levels, removal_proposals
from beam_dp.mechanisms.optimization.highs_model import HighsModel
from beam_dp.mechanisms.optimization.removal_bounds import RemovalBounds
from beam_dp.mechanisms.optimization.removal_program import RemovalProgram
from beam_dp.mechanisms.optimization.removal_proposals import RemovalProposals
from beam_dp.mechanisms.profiles import frequency
from tests.mechanisms.optimization.test_rational_simplex import solution
from tests.sizes import tries as sized

ROOT = Fraction(math.isqrt(2 << 800), 1 << 400)
"""sqrt(2), rounded down to 400 bits."""

WAYS = ("as it is", "HiGHS", "interior points", "rational numbers")


@pytest.fixture(params=WAYS)
def way(request, monkeypatch) -> str:
    """Force each of the ways to solve a program."""
    if request.param != "as it is":
        monkeypatch.setattr(removal_levels, "_TINY", 0)
    if request.param == "interior points":
        monkeypatch.setattr(highs_model, "WAYS", highs_model.WAYS[2:])
    if request.param == "rational numbers":
        monkeypatch.setattr(highs_model, "WAYS", ())
    return request.param


@pytest.fixture
def no_last_resort(monkeypatch) -> None:
    """Let programs be proved by guesses only."""
    monkeypatch.setattr(removal_levels, "_TINY", 0)
    monkeypatch.setattr(RemovalProgram, "solved", None)


@pytest.fixture(autouse=True)
def any_counts(monkeypatch):
    """Counts of any size reach the program, which is exact for all of them."""
    monkeypatch.setattr(frequency, "_MOST", 1 << 62)


def test_a_person_counts_for_so_many_rows_of_a_value(monkeypatch):
    monkeypatch.undo()
    people, items = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 0, 0, 1])
    counts = np.array([1 << 40, 3, 5, 1 << 24, 1 << 30])
    cut = np.minimum(counts, 1 << 24)
    found = frequency.max_profile(people, items, counts, 3)
    assert found == frequency.max_profile(people, items, cut, 3)
    assert found[0] == 2 * (1 << 24) + 5
    # Lines of one person and item are added up first.
    halves = frequency.max_profile(
        *(np.repeat(c, 2) for c in (people, items)), np.repeat(cut, 2), 3
    )
    assert halves[0] == 2 * (1 << 24) + 10


@pytest.mark.audit
def test_one_level_more_than_the_program_has_interlaces(monkeypatch):
    """The boundary between the program and the items alone, with two and three levels of it."""
    generator = np.random.default_rng(5)
    for levels in (1, 2, 3):
        monkeypatch.setattr(frequency, "_SOLVED", levels)
        for _ in range(300):
            people, items = generator.integers(0, 6, 14), generator.integers(0, 3, 14)
            counts = generator.integers(1, 4, 14)
            fewer = people != generator.integers(0, 6)
            more = frequency.max_profile(people, items, counts, 6)
            less = frequency.max_profile(people[fewer], items[fewer], counts[fewer], 6)
            assert interlaces(more, less)
            assert more == sorted(more, reverse=True)


def rounded(value: Fraction) -> int:
    """Return ceil(value - sqrt(2) + 1), with more than enough digits."""
    found = {math.ceil(value - ROOT + 1), math.ceil(value - ROOT - Fraction(1, 1 << 400) + 1)}
    [only] = found
    return only


def table(people, items, counts) -> np.ndarray:
    """Return the counts as a matrix of people and items, of Python integers."""
    matrix = np.zeros((8, 6), object)
    np.add.at(matrix, (people, items), counts.astype(object))
    return matrix


def lines(random, size: int = 30, most: int = 5, people: int = 7, items: int = 6):
    count = int(random.integers(1, size))
    return (
        random.integers(0, people, count),
        np.minimum(random.zipf(1.7, count), items) - 1,
        random.integers(1, most, count),
    )


def exact(matrix: np.ndarray, removals: int) -> list[int]:
    """Return the exact profile, by all sets of people."""
    found = []
    for k in range(removals + 1):
        gone = itertools.combinations(range(len(matrix)), min(k, len(matrix)))
        found.append(min(np.delete(matrix, some, axis=0).sum(axis=0).max() for some in gone))
    return found


def by_items(matrix: np.ndarray, removals: int) -> list[int]:
    """Return the bound that removes people for each item apart."""
    columns = -np.sort(-matrix, axis=0)
    return [int(columns[k:].sum(axis=0).max(initial=0)) for k in range(removals + 1)]


def by_vertices(matrix: np.ndarray, k: int) -> Fraction:
    """Return the value of the program by all vertices: `len(matrix) + 1` walls meet in each."""
    people, items = matrix.shape
    one = np.eye(people + 1, dtype=object)[:people]
    walls = np.vstack([
        np.append(matrix.T, np.ones((items, 1), object), axis=1),  # m + sum c r >= C
        one, -one, -one.sum(axis=0, keepdims=True),
    ])  # fmt: skip
    limits = np.array([*matrix.sum(axis=0), *[0] * people, *[-1] * people, -k], object)
    found = []
    for chosen in map(list, itertools.combinations(range(len(walls)), people + 1)):
        point = solution(walls[chosen], limits[chosen])
        if point is not None and np.all(walls.dot(np.array(point, object)) >= limits):
            found.append(point[-1])
    return min(found)


def program(matrix: np.ndarray, k: int) -> float:
    """Return the value of the program in floating point."""
    people, items = matrix.shape
    rows = np.vstack([np.c_[-matrix.T, -np.ones(items)], [*[1.0] * people, 0.0]]).astype(float)
    limits = np.append(-matrix.sum(axis=0), k).astype(float)
    bounds = [(0, 1)] * people + [(0, None)]
    return linprog([*[0] * people, 1], A_ub=rows, b_ub=limits, bounds=bounds).fun


@functools.cache
def rational_cases() -> list:
    """Return lines of three people and three items, and B[0..2] by all vertices."""
    random, found = np.random.default_rng(1), []
    for most in (9, 9, 9, 9, 9, 9, 1 << 40, 1 << 40, 1 << 61, 1 << 61):
        data = lines(random, 12, most, people=3, items=3)
        matrix = table(*data)[:3, :3]
        found.append((data, [rounded(by_vertices(matrix, k)) for k in range(3)]))
    return found


def test_it_is_the_program_in_rational_numbers(way):
    """Counts up to 2^61 each, and sums beyond int64, among them."""
    for data, expected in rational_cases():
        assert frequency.max_profile(*data, 2) == expected


def test_it_is_the_program_between_other_bounds(way):
    """b_v[k] <= B[k] <= exact profile, and LP[k] - c < B[k] < LP[k] + 1 - c."""
    random = np.random.default_rng(2)
    better = lost = 0
    for _ in range(40):
        data = lines(random)
        matrix, found = table(*data), frequency.max_profile(*data, 8)
        low, high = by_items(matrix, 8), exact(matrix, 8)
        assert found[0] == high[0]
        assert all(a <= b <= c for a, b, c in zip(low, found, high, strict=True))
        for k in range(9):
            assert -0.58579 < program(matrix, k) - found[k] < 0.41422
        better += found != low
        lost += found != high
    assert better > 5 and lost > 5


def whole(people, items, counts) -> RemovalProgram:
    """Return the program of lines, each of which has one owner."""
    owned = frequency.owned(people, items, counts)
    groups = np.unique(owned.items, return_inverse=True)[1]
    return RemovalProgram(owned.people[:, None], np.arange(len(groups)), owned.counts, groups)


@pytest.mark.audit
def test_all_ways_agree(monkeypatch):
    random = np.random.default_rng(3)
    for most in (2, 50, 10**6, 1 << 58):
        for _ in range(20):
            data = lines(random, most=most)
            expected = [rounded(whole(*data).solved(k)) for k in range(9)]
            for tiny in (0, 10**9):
                monkeypatch.setattr(removal_levels, "_TINY", tiny)
                assert frequency.max_profile(*data, 8) == expected


def interlaces(larger: list[int], smaller: list[int]) -> bool:
    """Return whether B'[k + 1] <= B[k] <= B'[k]."""
    upper = all(a <= b for a, b in zip(smaller, larger, strict=True))
    return upper and all(a <= b for a, b in zip(larger[1:], smaller[:-1], strict=True))


def neighbours(random, number: int):
    """Yield lines with and without one person, of many shapes."""
    for _ in range(number):
        data = lines(random, int(random.choice([8, 16, 30])), int(random.choice([2, 5, 300])))
        heavy = random.random() < 0.2
        more = (np.full(6, 7), np.arange(6), random.integers(1, 40, 6)) if heavy else ([], [], [])
        people, items, counts = (np.append(a, b).astype(np.int64) for a, b in zip(data, more))
        kept = people != random.choice(people)
        yield (people, items, counts), (people[kept], items[kept], counts[kept])


@sized(300, 5_000)
def test_one_person_more_interlaces(tries):
    for larger, smaller in neighbours(np.random.default_rng(4), tries):
        assert interlaces(frequency.max_profile(*larger, 4), frequency.max_profile(*smaller, 4))


@pytest.mark.audit
@pytest.mark.usefixtures("no_last_resort")
def test_one_person_more_interlaces_by_guesses():
    for larger, smaller in neighbours(np.random.default_rng(5), 300):
        assert interlaces(frequency.max_profile(*larger, 4), frequency.max_profile(*smaller, 4))


def near_tie(top: int, bottom: int):
    """Return lines of a program whose value at k = 1 is n + top / bottom for an integer n.

    Two people own a and b = bottom - a rows of two items, where others own x and y, in many parts.
    Removing r of the one and 1 - r of the other leaves (a b + x b + y a) / bottom of both items,
    which is a (y - x - a) more than a multiple of bottom.
    """
    a = next(a for a in itertools.count(bottom // 2 + 1) if math.gcd(a, bottom) == 1)
    more = (a + top * pow(a, -1, bottom)) % bottom
    more -= bottom if more > a else 0  # else the second item is so much larger that r = 0
    counts, items = [a, bottom - a], [0, 1]
    for item, extra in enumerate((bottom, bottom + more)):
        base, rest = divmod(extra, 100)
        counts += [base + (place < rest) for place in range(100)]
        items += [item] * 100
    kept = np.array(counts) > 0
    return np.arange(len(counts))[kept], np.array(items)[kept], np.array(counts)[kept]


def ties(bits: int):
    """Yield the convergents of sqrt(2) - 1, on both sides of it, and lines with such a value."""
    top, bottom = 2, 5
    while bottom.bit_length() < bits:
        yield Fraction(top, bottom), near_tie(top, bottom)
        top, bottom = bottom, top + 2 * bottom


@pytest.mark.usefixtures("no_last_resort")
def test_values_close_to_a_step_are_refined():
    """Up to 10^-34 from a step: half of them are rounded up, the others down."""
    sides = []
    for share, data in ties(58):
        _, items, counts = data
        a, b = counts[:2].tolist()
        first, second = (int(counts[items == item].sum()) for item in (0, 1))
        value = Fraction(first * b + a * second - a * b, a + b)
        assert value % 1 == share
        assert frequency.max_profile(*data, 1) == [max(first, second), rounded(value)]
        sides.append(rounded(value) - math.floor(value))
    assert sides.count(0) >= 20 and sides.count(1) >= 20


def by_floats(data, k: int) -> int:
    """Return the mutant: what HiGHS says, rounded."""
    people, items, counts = data
    matrix = np.zeros((people.max() + 1, 2))
    np.add.at(matrix, (people, items), counts)
    return math.ceil(program(matrix, k) - math.sqrt(2) + 1)


def test_floating_point_alone_would_be_wrong():
    """The broken twin: a profile that rounding errors decide."""
    wrong = sum(by_floats(data, 1) != frequency.max_profile(*data, 1)[1] for _, data in ties(40))
    assert wrong > 3


def test_a_rational_step_would_be_hit():
    """The broken twin: with c = 2/5 no bounds would ever agree where LP[k] is n + 2/5."""
    bounds = RemovalBounds(whole(*near_tie(2, 5)))
    proposals = RemovalProposals.of(bounds, 1)
    found = [guess for guess, _ in proposals.guesses(1, 0, 30)]
    assert found[-1].bits > 200
    for guess in found:
        removed = np.clip(guess.removed, 0, 1 << guess.bits)
        if sum(removed.tolist()) > 1 << guess.bits:
            removed = removed.astype(object) * (1 << guess.bits) // sum(removed.tolist())
        left = bounds.left(removed, proposals.touched, proposals.lines, guess.bits).max()
        high = Fraction(int(left), 1 << guess.bits)
        low = Fraction(int(bounds.lowers(guess.weights, 1, guess.bits)[1]), 1 << guess.bits)
        assert low <= high < low + 1
        assert math.ceil(low - Fraction(2, 5)) < math.ceil(high - Fraction(2, 5))
        assert rounded(low) == rounded(high)


def test_lying_solvers_do_not_matter(monkeypatch):
    """Whatever HiGHS returns, or where it fails, the profile is the same."""
    random = np.random.default_rng(6)
    honest, calls = HighsModel.solved, itertools.count()

    def lying(self, way):
        found, call = honest(self, way), next(calls)
        if call % 3 == 0 or found is None:
            return None
        if call % 3 == 1:
            values = random.normal(size=len(found.values)) * (1e3 if call % 2 else 1e300)
            values[0] = math.nan
            return found._replace(values=values)
        return found._replace(prices=random.normal(size=len(found.prices)))

    monkeypatch.setattr(removal_levels, "_TINY", 0)
    for _ in range(30):
        data = lines(random)
        monkeypatch.setattr(HighsModel, "solved", honest)
        expected = frequency.max_profile(*data, 6)
        monkeypatch.setattr(HighsModel, "solved", lying)
        assert frequency.max_profile(*data, 6) == expected


def test_proposals_may_be_of_any_size():
    """Doubles near their end, and numbers of more bits than an int64 holds."""
    column = np.array([1e300, -1e300, math.nan, math.inf, 0.5])
    assert removal_proposals._wide(column)[2:].tolist() == [0, 0, 1 << 47]
    few = np.array([0, 1, -5], np.int64)
    assert removal_levels._feasible(few, 2, 88).tolist() == [0, 1, 0]
    assert sum(removal_levels._feasible(few * (1 << 60), 1, 59).tolist()) <= 1 << 59


def test_codes_order_and_splits_do_not_matter(way):
    random = np.random.default_rng(7)
    for _ in range(10):
        people, items, counts = lines(random, 60)
        order = random.permutation(len(people))
        names, kinds = random.permutation(100), random.permutation(100)
        split = np.append(counts[order] - 1, np.ones_like(counts))
        twice, there = np.append(order, order), split > 0
        other = names[people[twice]], kinds[items[twice]], split
        found = frequency.max_profile(*(column[there] for column in other), 5)
        assert found == frequency.max_profile(people, items, counts, 5)


def test_fewer_removals_are_a_part_of_more():
    random = np.random.default_rng(8)
    people = random.integers(0, 300, 2000)
    items, counts = random.integers(0, 90, 2000), random.integers(1, 4, 2000)
    whole = frequency.max_profile(people, items, counts, 60)
    assert whole == sorted(whole, reverse=True) and whole[0] > whole[-1]
    for removals in (0, 1, 2, 17, 59):
        assert frequency.max_profile(people, items, counts, removals) == whole[: removals + 1]


@pytest.mark.usefixtures("no_last_resort")
def test_many_even_items_are_solved_by_guesses():
    """More items than are begun with, and more people than are looked at first."""
    random = np.random.default_rng(9)
    people, items = random.integers(0, 900, 6000), random.integers(0, 300, 6000)
    matrix = np.zeros((900, 300), np.int64)
    np.add.at(matrix, (people, items), 1)
    found = frequency.max_profile(people, items, np.ones(6000, np.int64), 60)
    for k in (0, 1, 7, 30, 60):
        assert -0.58579 < program(matrix, k) - found[k] < 0.41422
    low = by_items(matrix, 60)
    assert found[60] > low[60] + 5


def test_some_of_many_even_items_are_enough(no_last_resort):
    """Two rows of each of 3,000 items: no 20 people matter, which 64 or 128 items prove."""
    people, items = np.arange(6000), np.arange(6000) % 3000
    assert frequency.max_profile(people, items, np.ones(6000, np.int64), 20) == [2] * 21


def test_one_item_ahead_needs_one_program(no_last_resort):
    people = np.append(np.arange(500), np.arange(100))
    items = np.append(np.zeros(500, np.int64), np.arange(100) % 7 + 1)
    found = frequency.max_profile(people, items, np.ones(600, np.int64), 70)
    assert found == list(range(500, 429, -1))


def test_steps_are_exact():
    for bottom in (1, 7, 1 << 70):
        for top in (0, 1, bottom, 3 * bottom, 41 * bottom // 99, 10**30 + 7):
            assert removal_levels.rounded(top, bottom) == rounded(Fraction(top, bottom))
    assert [removal_levels.rounded(n, 1) for n in range(5)] == list(range(5))
