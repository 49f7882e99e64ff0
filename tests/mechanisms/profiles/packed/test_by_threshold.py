"""Profiles of rows of any number of owners by thresholds: sensitivity exactly 1, for every
shape."""

import functools
import itertools
import math
import operator

import numpy as np
import pytest

from beam_dp.mechanisms.packing import packing_program
from beam_dp.mechanisms.profiles.packed import by_threshold
from tests.mechanisms.profiles.packed import neighbours
from tests.mechanisms.profiles.packed.neighbours import REMOVALS, STATISTICS, Statistic
from tests.mechanisms.profiles.packed.test_packings import KINDS, exactly, some_rows
from tests.sizes import tries as sized

EVERY = [(name, roles) for name, one in STATISTICS.items() for roles in one.owners]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("name", "roles"), EVERY)
@sized(12, 30)
def test_profiles_of_neighbours_interlace(name, roles, tries):
    """Of 100 pairs the mutant at the end violates a quarter."""
    assert neighbours.violations(STATISTICS[name], roles, tries, 7) == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", STATISTICS)
@sized(2, 6)
def test_it_is_exact_for_nobody_and_at_most_the_exact_profile(name, tries):
    """All sets of up to 5 of 6 people."""
    statistic = STATISTICS[name]
    for roles in statistic.owners:
        generator = np.random.default_rng(10 + roles)
        for _ in range(tries):
            rows = neighbours.some_rows(generator, roles)
            for k, level in enumerate(statistic.profile(rows)):
                sets = itertools.combinations(range(neighbours.PEOPLE), k)
                exact = min(statistic.exact(rows.owned.without(gone)) for gone in sets)
                assert level <= exact
                assert k or level == exact


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
@sized(1, 3)
def test_it_is_the_formula_over_all_prices_by_an_independent_solver(kind, tries):
    generator = np.random.default_rng(20)
    for roles, _ in itertools.product((1, 2, 3), range(tries)):
        rows = some_rows(generator, roles, most=8)
        packed = KINDS[kind](*rows)
        best = [packed.total] + [0] * REMOVALS
        enough = functools.partial(operator.ge, packed.total + 1)
        for at in itertools.takewhile(enough, by_threshold.THRESHOLDS):
            parts = exactly(kind, rows, at) * 32 / float(at) - float(packing_program.EDGE)
            start = (math.ceil(parts - 1e-7) - 1) * at / 32
            for k in range(1, REMOVALS + 1):
                best[k] = max(best[k], math.ceil(start - k * at))
        assert by_threshold.profile(packed, REMOVALS) == best


def marginals(rows):
    """Return the twin that is broken: the sum less the largest losses by one person."""
    people, owned = np.unique(rows.owners[rows.owners >= 0]).tolist(), rows.owned
    lost = [int(owned.weights.sum() - owned.without([one]).weights.sum()) for one in people]
    cuts = np.append(0, np.cumsum(np.sort(lost)[::-1]))[: REMOVALS + 1]
    left = (int(owned.weights.sum()) - cuts).tolist()
    return left + [left[-1]] * (REMOVALS + 1 - len(left))


def test_a_profile_that_does_not_interlace_is_found():
    broken = Statistic(marginals, neighbours.total)
    assert neighbours.violations(broken, 3, 300, 1) > 10
