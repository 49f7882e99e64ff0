"""Tests of what plans say of preprocessed statistics: the numbers, and that the words are true."""

import math
import random
from fractions import Fraction

import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics.mean import StandardDeviation, Variance
from beam_dp.mechanisms.metrics.person_epsilon import PersonalisedStatistic
from beam_dp.mechanisms.metrics.preprocessed import Preprocessed, TrimmedMean
from beam_dp.mechanisms.planning.plan import describe
from beam_dp.mechanisms.planning.program import compile_program
from tests.mechanisms.preprocessing import brute


def line(metric, budget, reach=1):
    return describe(compile_program([metric], budget, reach)).rows[0]


def numbers(text):
    """Return the numbers in a text that stand alone."""
    return [float(word) for word in text.replace(",", "").split() if word[0].isdigit()]


@pytest.mark.parametrize(
    ("metric", "factor", "per"),
    [
        (Preprocessed("x", "mean"), 2, "R/n"),
        (Preprocessed("x", "median"), 2, "R/n"),
        (TrimmedMean("x", trim=0.25), 4, "R/n"),
        (Variance("x", method="preprocessing"), 4, "R^2/n"),
        (StandardDeviation("x", method="preprocessing"), 4, "R^2/n"),
    ],
)
@pytest.mark.parametrize("reach", [1, 5])
def test_a_private_sensitivity_is_told_by_what_it_is_made_of(metric, factor, per, reach):
    """Half of the budget is for g: the scale is 2 reach Delta, and e^-3.04 is 4.8%."""
    found = line(metric, Budget(1.0), reach)
    scale = 2 * reach * factor
    assert found.noise_scale == f"{scale:.4g} {per}"
    assert f"Delta = {factor} {per};" in found.reason
    bound = -math.log(0.048) * scale
    assert f"noise within {bound:.4g} {per} for 95%" in found.reason


def test_a_given_sensitivity_is_told_in_numbers():
    found = line(Preprocessed("x", "mean", sensitivity=0.5, empty=3), Budget(0.25))
    assert numbers(found.noise_scale) == [2.0] and numbers(found.expected_error) == [2.0]
    assert "Delta = 0.5; g = f where the range and |mean - 3| are at most n Delta" in found.reason
    gaussian = line(Variance("x", sensitivity=8, method="preprocessing"), Budget.zcdp(0.5))
    assert numbers(gaussian.noise_scale) == [8.0]
    assert numbers(gaussian.expected_error)[0] == pytest.approx(
        8 * math.sqrt(2 / math.pi), rel=1e-3
    )
    assert "range^2 + variance is at most n Delta" in gaussian.reason


def test_people_with_their_own_epsilon_are_told_their_part():
    metric = PersonalisedStatistic("x", "sum", "e", (0.5, 1.0), sensitivity=3)
    found = line(metric, Budget(1.0))
    assert found.noise_scale == "1 Delta" and "at most 0.5, 1 times Delta" in found.reason
    assert "given sensitivity and an epsilon per person" in found.mechanism


def moves(f, values, empty):
    """Return by how much one person can move f of any group of people, at most."""
    found = {0: Fraction(empty)}
    for mask in range(1, 1 << len(values)):
        found[mask] = Fraction(f([v for i, v in enumerate(values) if mask >> i & 1]))
    places = range(len(values))
    return max(
        (abs(found[m] - found[m & ~(1 << i)]) for m in found for i in places if m >> i & 1),
        default=Fraction(0),
    )


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", brute.STATISTICS)
def test_where_the_plan_says_so_the_statistic_is_unchanged(name):
    """And one part in a hundred less is not always enough, so that the rules are not idle."""
    f, chance, changed = brute.STATISTICS[name], random.Random(name), 0
    for _ in range(300):
        values = [chance.randint(-9, 9) for _ in range(chance.randint(1, 6))]
        empty = 0 if "variance" in name else chance.randint(-5, 5)
        truth, size, spread = f(values), len(values), max(values) - min(values)
        rules = [moves(f, values, empty)]
        if name == "mean":
            rules.append(Fraction(max(spread, abs(truth - empty)), size))
        if name.endswith("variance"):
            rules.append(Fraction(spread**2 + truth) / size)
        for delta in rules:
            assert brute.preprocessed(f, values, [delta] * size, empty) == truth
        less = min(rules) * Fraction(99, 100)
        changed += brute.preprocessed(f, values, [less] * size, empty) != truth
    assert changed > 20
