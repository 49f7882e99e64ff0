"""Ratios between neighbours of whole databases: one person's rows in several partitions.

The exact audit of one ratio (`test_ratio_audit`) says what a partition costs. Here one person has
rows in some partitions before and in others after: what all of them cost together, by sums over the
outcomes of the noise.
"""

import itertools
import math

import pytest

import beam_dp as dp
from beam_dp.mechanisms import ratio
from beam_dp.mechanisms.metrics.ratio import RatioRelease
from tests.audit.test_ratio_audit import distribution, people
from tests.doubles import compile_program

PURE = ["kulesza_suresh_wang", "naive"]
EPSILON = 4.0
BUDGET = dp.Budget(EPSILON)
FAR = 48  # noise of a rate of at least 1/2 is beyond with a chance below 1e-10
LIKELY = 1e-6  # so that what is beyond changes outputs of this chance by less than ROUNDING
ROUNDING = 1e-3
REST = (1, 3)  # what the other people of a partition have


def release(method, max_partitions, partitions, budget=BUDGET, rows=1):
    asked = [dp.Ratio("x", method=method)]
    made = compile_program(
        asked, budget, max_partitions, max_rows_per_partition=rows, partitions=partitions
    )
    assert isinstance(made.steps[0].release, RatioRelease)
    return made.steps[0].release


def moves(max_partitions, partitions):
    """Return what one person adds to (a, b - a) of each partition, before and after."""
    one = itertools.product(people(1), repeat=partitions)
    owned = [rows for rows in one if sum(part != (0, 0) for part in rows) <= max_partitions]
    nobody = ((0, 0),) * partitions
    return [(rows, nobody) for rows in owned]


def worst_exponent(mechanism, max_partitions, partitions):
    """Return the largest |ln P(outputs | x) - ln P(outputs | x')|, where it is one per partition.

    Partitions are independent, so it is the sum of the largest of each.
    """
    found = {
        part: distribution(mechanism, REST[0] + part[0], REST[1] + sum(part), FAR)
        for part in people(1)
    }
    apart = {
        (old, new): max(
            math.log(mass / found[new].get(output, 1e-300))
            for output, mass in found[old].items()
            if mass > LIKELY
        )
        for old, new in itertools.product(found, repeat=2)
    }
    both = moves(max_partitions, partitions)
    both += [(after, before) for before, after in both]
    return max(sum(apart[pair] for pair in zip(*move, strict=True)) for move in both)


SHAPES = [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (2, 4)]


@pytest.mark.parametrize(("max_partitions", "partitions"), SHAPES)
@pytest.mark.parametrize("method", PURE)
def test_all_partitions_of_a_person_together_cost_epsilon(method, max_partitions, partitions):
    mechanism = release(method, max_partitions, partitions).mechanism
    assert worst_exponent(mechanism, max_partitions, partitions) <= EPSILON * (1 + ROUNDING)


@pytest.mark.parametrize("method", ratio.METHODS)
def test_the_noise_is_for_all_rows_of_a_person(method):
    bounds, budget = dp.ContributionBounds(None, rows_per_partition=7), dp.Budget(1.0, 1e-6)
    for per, rows in [("row", 7), ("person", 1)]:
        asked = [dp.Ratio("x", per=per, method=method)]
        made = compile_program(
            asked, budget, 1, max_rows_per_partition=bounds.max_rows_per_partition
        )
        assert made.steps[0].release.mechanism.rows == rows
