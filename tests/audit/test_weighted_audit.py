"""The exact privacy audit of medians by weight: each person by their own weight, no draw is made."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.metrics.person_epsilon import PersonalisedStatistic
from beam_dp.mechanisms.search.quantiles.middle_quantile import CentralSearch
from beam_dp.mechanisms.search.quantiles.node import Node
from tests import laws
from tests.doubles import compile_program

RESOLUTION, SIZE = 4, 4
ROUNDING = 1e-9
EPSILONS = (0.5, 1.0, 2.0)


def people():
    """Return all groups of up to 3 people with a place and a weight."""
    one = list(itertools.product(range(SIZE), (1, 2, 4)))
    return [group for n in range(4) for group in itertools.combinations_with_replacement(one, n)]


def worst_by_weight(epsilon, p=Fraction(1, 2)):
    """Return per weight the largest |ln P_x(o) / P_x'(o)| when such a person comes."""
    search = CentralSearch(Budget(epsilon), p, RESOLUTION)
    known, worst = {}, dict.fromkeys((1, 2, 4), 0.0)
    for group in people():
        places, weights = np.array(group, np.int64).reshape(-1, 2).T
        node = Node.of(places, weights, SIZE)
        known[group] = laws.chances_at(search, node, Candidates.of(range(SIZE)))
    for group, chances in known.items():
        for gone in range(len(group)):
            rest = known[group[:gone] + group[gone + 1 :]]
            loss = max(abs(math.log(a / b)) for a, b in zip(chances, rest, strict=True))
            worst[group[gone][1]] = max(worst[group[gone][1]], loss)
    return worst


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_each_person_pays_in_proportion_to_their_weight(epsilon):
    worst = worst_by_weight(epsilon)
    for weight, loss in worst.items():
        assert loss <= epsilon * weight / RESOLUTION + ROUNDING
    # Whoever counts in full pays more than that: a release without weights must be noticed.
    assert epsilon < 1 or worst[4] > epsilon / 2 * 1.05


def test_weights_are_in_proportion_to_epsilons_and_never_above():
    metric = PersonalisedStatistic("v", "median", "e", EPSILONS)
    for max_partitions in (1, 3):
        program = compile_program([metric], Budget(2.0), max_partitions)
        [step] = program.steps
        top = step.release.search.resolution
        for weight, epsilon in zip(step.release.weights, EPSILONS, strict=True):
            assert weight / top <= epsilon / 2 < (weight + 1) / top
        assert [spending.cost.amount * max_partitions for spending in step.release.spends] == [2]
