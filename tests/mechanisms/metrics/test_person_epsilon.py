"""Everybody their own epsilon: each person their own sensitivity, and their own epsilon."""

import random
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics import person_epsilon, preprocessed
from beam_dp.mechanisms.metrics.person_epsilon import PersonalisedStatistic
from tests.doubles import Asked, compile_program
from tests.mechanisms.preprocessing import brute

EPSILONS = (0.25, 0.5, 2)


def column(values):
    found = np.empty(len(values), object)
    found[:] = values
    return found


def clamped(statistic, people, empty):
    values, deltas = zip(*people, strict=True) if people else ((), ())
    return person_epsilon.clamped(statistic, column(values), column(deltas), empty)


def some_people(chance):
    size = chance.randint(0, 7)
    return [(chance.randint(-9, 9), chance.choice([0, 1, 2, 5])) for _ in range(size)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("statistic", ["sum", "maximum", "minimum"])
def test_no_person_moves_it_by_more_than_their_own(statistic):
    chance, moved = random.Random(statistic), 0
    for _ in range(500):
        people, empty = some_people(chance), chance.randint(-5, 5)
        found = clamped(statistic, people, empty)
        for gone, (_, price) in enumerate(people):
            difference = abs(found - clamped(statistic, people[:gone] + people[gone + 1 :], empty))
            assert difference <= price
            moved += difference == price > 0
    assert moved > 100


def test_it_is_the_function_of_definition_3_1():
    chance = random.Random(3)
    for _ in range(150):
        people, empty = some_people(chance), chance.randint(-5, 5)
        values, deltas = [v for v, _ in people], [p for _, p in people]

        for name, of in (("maximum", max), ("minimum", min)):
            exact = brute.preprocessed(
                lambda kept, f=of, least=empty: f(least, *kept), values, deltas, empty
            )
            assert clamped(name, people, empty) == exact
        positive = [abs(value) for value in values]
        pairs = list(zip(positive, deltas, strict=True))
        assert clamped("sum", pairs, 0) == brute.preprocessed(sum, positive, deltas, 0)


def released(max_partitions=1, sensitivity="auto", of="sum", epsilons=EPSILONS):
    metric = PersonalisedStatistic("v", of, "e", epsilons, sensitivity=sensitivity)
    program = compile_program([metric], Budget(max(epsilons)), max_partitions)
    [step] = program.steps
    return program, step.release


@pytest.mark.parametrize("of", ["sum", "maximum"])
@pytest.mark.parametrize(("max_partitions", "sensitivity"), [(3, "auto"), (1, 7)])
def test_each_person_pays_their_own_epsilon(of, max_partitions, sensitivity):
    program, release = released(max_partitions, sensitivity, of)
    clips = [entry for entry in program.entries if entry[0].endswith("clip")]
    everybody = sum(cost.amount * times for _, cost, times in clips)
    if release.people is not None:
        everybody += release.people.noise_cost.amount * max_partitions
    paid = [everybody + each * max_partitions for each in release.epsilons]
    assert paid == [Fraction(each) for each in EPSILONS]
    assert sum(cost.amount * times for _, cost, times in program.entries) == 2
    assert all(each > 0 for each in release.epsilons)


@pytest.mark.parametrize("delta", [Fraction(1, 3), Fraction(7), Fraction(10**9)])
def test_the_ratio_of_output_chances_is_that_of_the_person(delta):
    """P(k) is proportional to e^(-rate |k|): a person who moves g by d changes it by e^(rate d)."""
    _, release = released(2)
    noise = Asked()
    release._drawn(column([5]), np.array([0]), delta, noise)
    for tier, epsilon in enumerate(release.epsilons):
        low = release._drawn(column([]), np.array([], np.int64), delta, noise)
        high = release._drawn(column([10**15]), np.array([tier]), delta, noise)
        assert low == 0
        moved = round(Fraction(high) / release.metric.exact_unit * release_step(delta))
        assert epsilon * (1 - Fraction(1, 10**4)) <= moved * noise.rates[-1] <= epsilon


def release_step(delta):
    """Return how many steps of the grid a unit has, as `preprocessed.grid` chooses."""
    coarse, resolution = preprocessed.grid(delta, 1)
    return Fraction(resolution, 1 << coarse)
