"""Any function of few people: Definition 3.1 to the last bit, on the line and in the plane."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from beam_dp.mechanisms.preprocessing import few_people
from tests.mechanisms.preprocessing import brute


def table(generator, count, width=1):
    """Return a function of sets of people that has no structure at all."""
    subsets = [
        some for size in range(count + 1) for some in itertools.combinations(range(count), size)
    ]
    numbers = generator.integers(-40, 41, (len(subsets), width)).tolist()
    rows = [[Fraction(number, 4) for number in row] for row in numbers]
    found = dict(zip(subsets, rows, strict=True))
    return lambda people: found[tuple(people)] if width > 1 else found[tuple(people)][0]


def prices(generator, count):
    return [Fraction(int(v), 3) for v in generator.integers(0, 20, count)]


def wrong(seed, runs=300):
    generator = np.random.default_rng(seed)
    mistakes = 0
    for _ in range(runs):
        count = int(generator.integers(0, 7))
        f, deltas = table(generator, count), prices(generator, count)
        exact = brute.preprocessed(f, range(count), deltas, f(()))
        mistakes += few_people.general(f, range(count), deltas) != exact
    return mistakes


@pytest.mark.audit
def test_it_is_the_definition_for_functions_without_structure():
    assert wrong(1, 2_000) == 0


def test_floats_are_taken_exactly():
    found = few_people.general(lambda some: float(np.mean(some)), [0.0, 0.0, 4.0], 2, 0)
    assert found == Fraction(4 / 3)
    assert few_people.general(lambda some: 1e300 * len(some), [1, 2], 1e-300) == 2 * Fraction(
        1e-300
    )


@pytest.mark.audit
def test_17_people_are_done_and_21_are_refused():
    assert few_people.general(len, range(17), 1) == 17
    with pytest.raises(ValueError, match="people must be at most 20"):
        few_people.general(len, range(21), 1)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, "7", True, [1, 2]])
def test_what_a_function_returns_is_checked_and_never_shown(value):
    with pytest.raises(ValueError, match="^general: f must return [a-z]+ [a-z]+ [a-z]+[.]$"):
        few_people.general(lambda some: value if some else 0, [1], 1)
    with pytest.raises(ValueError, match="^plane: f must return [a-z ]+[.]$"):
        few_people.plane(lambda some: [0, value] if some else [0, 0], [1], 1)
    with pytest.raises(ValueError, match="^plane: f must return [a-z ]+[.]$"):
        few_people.plane(lambda some: value if some and value != [1, 2] else 7, [1], 1)


@pytest.mark.parametrize(
    ("deltas", "rule"),
    [(-1, "at least 0"), ([1, 2], "one per person"), (float("nan"), "finite"), ([-1], "least 0")],
)
def test_bad_sensitivities_are_refused(deltas, rule):
    with pytest.raises(ValueError, match=rule):
        few_people.general(len, [1], deltas)


def test_in_the_plane_it_is_within_delta_in_l1_and_clamps_to_the_nearest_point():
    generator = np.random.default_rng(3)
    for _ in range(15):
        count = int(generator.integers(1, 5))
        f, deltas = table(generator, count, 2), prices(generator, count)
        found = {
            some: few_people.plane(f, some, [deltas[i] for i in some])
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
    """The broken twin: each coordinate on its own keeps Delta per coordinate only."""

    def f(some):
        return [10 * len(some), 10 * len(some)]

    assert sum(few_people.general(lambda some: f(some)[0], [1], 1) for _ in range(2)) == 2
    assert sum(few_people.plane(f, [1], 1)) == 1
