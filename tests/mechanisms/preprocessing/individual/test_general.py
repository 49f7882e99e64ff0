"""Any function of few people: Definition 3.1 to the last bit, in one, two and d dimensions."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from beam_dp.mechanisms import preprocessing
from beam_dp.mechanisms.preprocessing.individual import general
from tests.mechanisms.preprocessing import brute


def table(generator, count, width=1):
    """Return a function of sets of people that has no structure at all."""
    found = {}

    def f(people):
        people = tuple(people)
        if people not in found:
            row = [Fraction(int(v), 4) for v in generator.integers(-40, 41, width)]
            found[people] = row if width > 1 else row[0]
        return found[people]

    for size in range(count + 1):
        for some in itertools.combinations(range(count), size):
            f(some)
    return f


def prices(generator, count):
    return [Fraction(int(v), 3) for v in generator.integers(0, 20, count)]


def wrong(seed, runs=300):
    generator = np.random.default_rng(seed)
    mistakes = 0
    for _ in range(runs):
        count = int(generator.integers(0, 7))
        f, deltas = table(generator, count), prices(generator, count)
        exact = brute.preprocessed(f, range(count), deltas, f(()))
        mistakes += preprocessing.general(f, range(count), deltas) != exact
    return mistakes


@pytest.mark.audit
def test_it_is_the_definition_for_functions_without_structure():
    assert wrong(1, 5_000) == 0


def test_a_function_that_is_cut_from_above_only_is_noticed(monkeypatch):
    def lazy(found, masks, steps, beyond):
        before = found[masks].copy()
        true(found, masks, steps, beyond)
        found[masks] = np.minimum(found[masks], before)

    true = general._cut_subsets
    monkeypatch.setattr(general, "_cut_subsets", lazy)
    assert wrong(1) > 0


def test_each_person_moves_it_by_at_most_their_own_delta():
    generator = np.random.default_rng(2)
    for _ in range(100):
        count = int(generator.integers(1, 7))
        f, deltas = table(generator, count), prices(generator, count)
        everybody = list(range(count))
        whole = preprocessing.general(f, everybody, deltas)
        for person in everybody:
            less, own = everybody[:person] + everybody[person + 1 :], list(deltas)
            del own[person]
            assert abs(whole - preprocessing.general(f, less, own)) <= deltas[person]


def test_floats_are_taken_exactly_and_returned_as_floats():
    found = preprocessing.general(lambda some: float(np.mean(some)), [0.0, 0.0, 4.0], 2, 0)
    assert type(found) is float and found == 4 / 3
    assert preprocessing.general(lambda some: 1e300 * len(some), [1, 2], 1e-300) == 2e-300
    assert type(preprocessing.general(len, [1, 2], 1)) is Fraction


@pytest.mark.audit
def test_20_people_are_done_and_21_are_refused():
    assert preprocessing.general(len, range(17), 1) == 17
    with pytest.raises(ValueError, match="people must be at most 20"):
        preprocessing.general(len, range(21), 1)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, "7", True, [1, 2]])
def test_what_a_function_returns_is_checked_and_never_shown(value):
    with pytest.raises(ValueError, match="^general: f must return [a-z0-9 ()]+[.]$"):
        preprocessing.general(lambda some: value if some else 0, [1], 1)


@pytest.mark.parametrize(
    ("deltas", "rule"),
    [
        (-1, "at least 0"),
        ([1, 2], "one per person"),
        (float("nan"), "finite"),
        ([-1], "at least 0"),
    ],
)
def test_bad_sensitivities_are_refused(deltas, rule):
    with pytest.raises(ValueError, match=rule):
        preprocessing.general(len, [1], deltas)


def test_in_the_plane_it_is_within_delta_in_l1_and_clamps_to_the_nearest_point():
    generator = np.random.default_rng(3)
    for _ in range(40):
        count = int(generator.integers(1, 5))
        f, deltas = table(generator, count, 2), prices(generator, count)
        found = {
            some: preprocessing.plane(f, some, [deltas[i] for i in some])
            for size in range(count + 1)
            for some in itertools.combinations(range(count), size)
        }
        for some, (x, y) in found.items():
            balls = [(found[tuple(j for j in some if j != i)], deltas[i]) for i in some]
            assert all(abs(x - a) + abs(y - b) <= delta for (a, b), delta in balls)
            a, b = f(some)
            nearest = closest((a, b), balls) if balls else 0.0
            assert float(abs(x - a) + abs(y - b)) == pytest.approx(nearest, abs=1e-9)


def closest(point, balls):
    """Return the L1 distance from a point to the intersection of L1 balls: a linear program."""
    signs = list(itertools.product((1, -1), repeat=2))
    rows = [[p, q, 0] for (_, _) in balls for p, q in signs]
    limits = [float(r + p * c[0] + q * c[1]) for c, r in balls for p, q in signs]
    rows += [[p, q, -1] for p, q in signs]
    limits += [float(p * point[0] + q * point[1]) for p, q in signs]
    return linprog([0, 0, 1], rows, limits, bounds=[(None, None)] * 3).fun


def test_two_runs_without_the_turn_are_not_within_delta():
    # The broken twin: each coordinate on its own keeps Delta per coordinate only.
    def f(some):
        return [10 * len(some), 10 * len(some)]

    assert sum(preprocessing.coordinates(f, [1], [1, 1])) == 2
    assert sum(preprocessing.plane(f, [1], 1)) == 1


def test_coordinates_have_their_own_deltas():
    generator = np.random.default_rng(4)
    f = table(generator, 4, 3)
    found = preprocessing.coordinates(f, range(4), [1, [2, 1, 0, 3], Fraction(1, 2)])
    for place, deltas in enumerate(([1] * 4, [2, 1, 0, 3], [Fraction(1, 2)] * 4)):
        own = preprocessing.general(lambda some, c=place: f(some)[c], range(4), deltas)
        assert found[place] == own


def test_the_bound_of_lemma_3_6_holds():
    generator = np.random.default_rng(5)
    tight = 0
    for _ in range(200):
        count = int(generator.integers(0, 6))
        f, deltas = table(generator, count), prices(generator, count)
        away = abs(preprocessing.general(f, range(count), deltas) - f(tuple(range(count))))
        bound = preprocessing.error_bound(f, range(count), deltas)
        assert away <= bound
        tight += away == bound > 0
    assert tight > 0
