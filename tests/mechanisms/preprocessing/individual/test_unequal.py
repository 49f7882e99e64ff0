"""A Delta for each person: exact where there is a way, refused where the recursion is wrong."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms import preprocessing
from beam_dp.mechanisms.preprocessing.individual import unequal
from tests.mechanisms.preprocessing import brute
from tests.sizes import tries as sized

HALF = Fraction(1, 2)


def tiered(values, deltas):
    """Return the window recursion, as if it were allowed to have a Delta per person."""
    pairs = sorted(zip(values, deltas, strict=True), key=lambda pair: pair[0])

    def g(i, j, f):
        if i == j:
            return Fraction(0)
        high, low = g(i, j - 1, f) + pairs[j - 1][1], g(i + 1, j, f) - pairs[i][1]
        return max(min(f([value for value, _ in pairs[i:j]]), high), low)

    return lambda f: g(0, len(pairs), f)


@pytest.mark.parametrize(
    ("f", "values", "deltas", "exact", "windows"),
    [
        (brute.mean, (0, 0, 4), (1, HALF, 2), Fraction(3, 2), Fraction(4, 3)),
        (brute.median, (0, 0, 3), (2, 1, 2), HALF, 0),
    ],
)
def test_the_window_recursion_is_wrong_for_unequal_deltas(f, values, deltas, exact, windows):
    assert brute.preprocessed(f, values, deltas, 0) == exact
    assert tiered(values, deltas)(f) == windows
    assert preprocessing.classes(f, values, deltas) == exact
    assert preprocessing.individual(f, values, deltas) == exact
    assert preprocessing.general(f, values, deltas, 0) == exact


@pytest.mark.sampled(3)
@sized(500, 2_500)
@pytest.mark.parametrize("f", [brute.mean, brute.median, brute.trimmed_mean, max, min])
def test_classes_are_exact(f, tries):
    generator = np.random.default_rng(1)
    for _ in range(tries):
        values = brute.database(generator, 7)
        tiers = [Fraction(int(d), 3) for d in generator.integers(0, 60, 3)]
        deltas = [tiers[t] for t in generator.integers(0, 3, len(values))]
        empty = Fraction(int(generator.integers(-40, 41)), 2)
        exact = brute.preprocessed(f, values, deltas, empty)
        assert preprocessing.classes(f, values, deltas, empty) == exact
        assert preprocessing.individual(f, values, deltas, empty) == exact


def test_one_class_is_the_window_recursion():
    generator = np.random.default_rng(2)
    values = generator.integers(-50, 50, 40).tolist()
    assert preprocessing.ordered(brute.mean, values, 2, 9) == brute.by_windows(
        brute.mean, values, 2, 9
    )


def test_many_different_deltas_of_many_people_are_refused():
    values, deltas = list(range(25)), list(range(1, 26))
    with pytest.raises(ValueError, match="recursion over windows is wrong for unequal"):
        preprocessing.individual(brute.mean, values, deltas)
    with pytest.raises(ValueError, match="fewer different values"):
        preprocessing.classes(brute.mean, values, deltas)


def distinct(people):
    return len(set().union(*people)) if people else 0


@pytest.mark.audit
def test_monotone_functions_need_the_best_removal_only():
    generator = np.random.default_rng(3)
    for _ in range(5_000):
        count = int(generator.integers(0, 7))
        people = [frozenset(generator.integers(0, 6, 3).tolist()) for _ in range(count)]
        deltas = [Fraction(int(d), 2) for d in generator.integers(0, 7, count)]
        exact = brute.preprocessed(distinct, people, deltas, 0)
        assert preprocessing.monotone(distinct, people, deltas) == exact


def test_prices_and_gains_below_one_count():
    weights = {"a": Fraction(1, 2), "b": Fraction(3, 10)}

    def weigh(people):
        return sum((weights[person] for person in people), Fraction(0))

    # "a" is worth its removal, "b" is not.
    assert preprocessing.monotone(weigh, "ab", [Fraction(1, 4), Fraction(2, 5)]) == Fraction(11, 20)


@pytest.mark.audit
def test_sums_and_maxima_have_closed_forms():
    generator = np.random.default_rng(4)
    for _ in range(5_000):
        values = [abs(value) for value in brute.database(generator, 7)]
        deltas = [Fraction(int(d), 2) for d in generator.integers(0, 30, len(values))]
        exact = brute.preprocessed(sum, values, deltas, 0)
        assert preprocessing.total(values, deltas) == exact
        for signed in (values, [value - 20 for value in values]):
            exact = brute.preprocessed(lambda some: max(-5, *some), signed, deltas, -5)
            assert preprocessing.largest(signed, deltas, -5) == exact


def test_many_people_are_no_obstacle_to_monotone_functions(monkeypatch):
    people = [frozenset([i % 40, i % 7]) for i in range(200)]
    assert preprocessing.monotone(distinct, people, 15) == 40
    monkeypatch.setattr(unequal, "EVALUATIONS", 1000)
    with pytest.raises(ValueError, match="larger sensitivities"):
        preprocessing.monotone(distinct, people, Fraction(1, 100))
    assert preprocessing.total([3] * 1000, [1, 5] * 500) == 2000


def profile(values, last):
    ordered = sorted(values, reverse=True)
    return [(ordered[k] if k < len(ordered) else 0) for k in range(last + 1)]


def moved(form, seed):
    """Return the most that g moves by, over neighbours and Delta = 1."""
    generator = np.random.default_rng(seed)
    most = 0
    for _ in range(300):
        values = generator.integers(0, 12, generator.integers(1, 9)).tolist()
        whole, less = (form(profile(some, 3), 0, 1) for some in (values, values[1:]))
        most = max(most, abs(whole - less))
    return most


def test_a_capped_profile_is_within_delta_and_without_its_last_term_is_not():
    def short(levels, lowest, delta):
        return min(level + k * delta for k, level in enumerate(levels))

    assert moved(preprocessing.from_profile, 5) == 1
    assert moved(short, 5) > 1
    full = preprocessing.from_profile(profile([9, 4, 2], 3), 0, 2)
    assert full == preprocessing.largest([9, 4, 2], 2)


def test_values_are_never_shown():
    with pytest.raises(ValueError, match="^total: values must be at least 0[.]$"):
        preprocessing.total([-12345], 1)
    with pytest.raises(ValueError, match="^largest: values must be finite real numbers[.]$"):
        preprocessing.largest([float("nan")], 1)


def test_sets_come_in_the_order_of_their_price():
    prices = [Fraction(p) for p in (3, 1, 4, 1)]
    found = list(unequal._by_price(prices))
    assert [price for price, _ in found] == sorted(price for price, _ in found)
    every = {frozenset(s) for n in range(5) for s in itertools.combinations(range(4), n)}
    assert {gone for _, gone in found} == every and len(found) == 16
