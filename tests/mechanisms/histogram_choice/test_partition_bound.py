"""The ladder, the rule that turns noisy counts into a bound, and what it says of people beyond."""

import itertools
import math

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.histogram_choice.clip_choice import ClipChoice
from beam_dp.mechanisms.histogram_choice.partition_bound import (
    CUT,
    LADDER,
    USABLE,
    BoundChoice,
    choose,
    edges_up_to,
    partitions_of,
)
from beam_dp.mechanisms.noise.sampling import Noise
from tests.mechanisms.histogram_choice.test_clip_choice import best_by_trying
from tests.reference import Row, table_of

PURE, ZCDP = Budget(0.08), Budget.zcdp(0.0016)


@pytest.mark.parametrize(
    ("limit", "edges"),
    [
        (None, LADDER),
        (1, (1,)),
        (2, (1, 2)),
        (7, (1, 2, 3, 4, 6, 7)),
        (1024, LADDER),
        (10**6, LADDER),
    ],
)
def test_the_last_step_is_the_public_limit(limit, edges):
    assert edges_up_to(limit) == edges


@pytest.mark.parametrize("most", [2, None])
def test_every_person_has_the_number_of_their_partitions(most):
    """All databases of three people in three partitions, rows once or twice."""
    pairs = list(itertools.product(range(3), range(3)))
    bounder = Bounder(ContributionBounds(most), (), b"key")
    for chosen in itertools.product((0, 1), repeat=9):
        rows = [
            Row((who, 0), (where, 0))
            for (who, where), there in zip(pairs, chosen, strict=True)
            for _ in range(there * (1 + who % 2))
        ]
        own = [sum(chosen[3 * who : 3 * who + 3]) for who in range(3)]
        found = partitions_of(bounder.reduce(table_of(rows, columns=0)))
        assert sorted(found) == sorted(min(each, most or 3) for each in own if each)


def chosen_of(counts, partitions, noise=float, limit=None):
    """Return the bound for exact counts, with the noise at each edge."""
    choice = ClipChoice(PURE, edges_up_to(limit))
    noisy = np.zeros((1, 1, choice.buckets), np.int64)
    noisy[0, 0, : len(counts)] = counts
    return choose(choice, noisy, [noise(edge) for edge in choice.thresholds], partitions)


@pytest.mark.parametrize("partitions", [2, 7, 50, 1000, 5000])
@pytest.mark.parametrize("power", [1, 0.5])
def test_the_bound_is_the_one_of_least_error(partitions, power):
    random = np.random.default_rng(partitions)
    edges = edges_up_to(partitions)
    for _ in range(40):
        counts = random.integers(-60, 10 ** random.integers(2, 5), len(edges) + 1)
        factor = random.uniform(0.5, 9)
        found = chosen_of(counts, partitions, lambda edge, f=factor: f * edge**power, partitions)
        if found.choice.highest(found.noisy)[0, 0] >= 0:
            noise = [factor * edge**power for edge in edges]
            best, _ = best_by_trying(found.choice, found.noisy, noise, partitions, CUT)
            assert found.bound == edges[best]


def test_a_number_of_partitions_that_is_not_public_is_guessed_by_the_people_shown():
    """10,000 people in 6 partitions: at least 6, and at most so many as are worth asking for."""
    edges, step = edges_up_to(None), edges_up_to(None).index(6)
    counts = [0] * step + [10_000]
    pairs = 10_000 * 2 / math.log(6.5 / 4.5)  # 5 or 6 each, evenly over the logarithms
    for noise in (0.1, 3.0, 1e5):
        among = max(6, math.sqrt(6 * pairs / (USABLE * noise * 6)))
        noises = [noise * edge for edge in edges]
        found = chosen_of(counts, None, lambda edge, f=noise: f * edge)
        expected, _ = best_by_trying(found.choice, found.noisy, noises, among, CUT)
        assert found.bound == edges[expected]


@pytest.mark.parametrize(
    ("partitions", "bound"), [(1, 1), (2, 2), (3, 3), (7, 3), (199, 3), (200, 1), (None, 3)]
)
def test_where_nobody_shows_the_bound_is_a_guess(partitions, bound):
    found = chosen_of([], partitions, limit=partitions)
    assert found.bound == bound
    assert found.lost_share == (0 if partitions and partitions <= 3 else math.inf)


@pytest.mark.parametrize("budget", [PURE, ZCDP])
@pytest.mark.parametrize("step", [0, 3, 8])
def test_everybody_alike_is_not_cut(budget, step):
    """10,000 people on one step: the noise cannot hide them (a chance far below 1e-10)."""
    choice = ClipChoice(budget, edges_up_to(50))
    people = np.zeros((1, 1, choice.buckets), np.int64)
    people[0, 0, step] = 10_000
    noises = list(map(float, choice.thresholds))
    assert choose(choice, people, noises, 50).bound == choice.thresholds[step]
    drawn = choose(choice, choice.draw(people, Noise()), noises, 50)
    assert drawn.bound >= choice.thresholds[step]


@pytest.mark.parametrize(("budget", "people"), [(PURE, 10_000), (ZCDP, 100_000)])
def test_no_more_is_cut_than_is_said_mostly(budget, people):
    random = np.random.default_rng(people)
    own = np.minimum(random.poisson(6, people) + 1, 50)
    choice = ClipChoice(budget, edges_up_to(50))
    counts = np.bincount(np.searchsorted(choice.thresholds, own), minlength=choice.buckets)
    cut = np.maximum(own - 4, 0).sum() / np.minimum(own, 4).sum()
    drawn = [choice.draw(counts[None, None], Noise()) for _ in range(200)]
    shares = np.array([BoundChoice(4, choice, noisy).lost_share for noisy in drawn])
    assert (shares >= cut).sum() >= 150 and shares.mean() < 1.1 * cut
