"""The ladder, the rule that turns noisy counts into a bound, and what it says of people beyond."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from beam_dp.mechanisms.histogram_choice.reach import Look

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.histogram_choice import reach as choice
from beam_dp.mechanisms.noise.sampling import Noise

PURE, ZCDP = Budget(1), Budget.zcdp(Fraction(1, 50))


def look(counts):
    return Look(np.array(counts, float), PURE.scaled(choice.SHARE))


def slow_choice(counts, edges, noise, partitions, top):
    """The rule once more, from its text, person by person of rounded counts."""
    best = None
    for bound, at in list(zip(edges, noise, strict=True))[: top + 1]:
        lost, before = 0.0, 0
        for count, edge in list(zip(counts, edges, strict=True))[: top + 1]:
            middle = sum(range(before + 1, edge + 1)) / (edge - before)
            before = edge
            lost += max(count, 0) * (middle - bound) * (edge > bound)
        error = math.sqrt((lost / partitions) ** 2 + at**2)
        if best is None or error < best[0]:
            best = error, bound
    return best[1]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("partitions", [2, 7, 50, 1000, 5000])
@pytest.mark.parametrize("power", [1, 0.5])
def test_the_bound_is_the_one_of_least_error(partitions, power):
    random = np.random.default_rng(partitions)
    edges = choice.edges_up_to(partitions)
    for _ in range(200):
        counts = random.integers(-60, 10 ** random.integers(2, 5), len(edges)).astype(float)
        noise = [random.uniform(0.5, 9) * edge**power for edge in edges]
        at = dict(zip(edges, noise, strict=True)).__getitem__
        chosen = choice.choose(look(counts), edges, at, partitions)
        if chosen.top >= 0:
            expected = slow_choice(counts, edges, noise, partitions, chosen.top)
            assert chosen.reach == expected


@pytest.mark.parametrize(
    ("partitions", "bound"), [(1, 1), (2, 2), (3, 3), (7, 3), (199, 3), (200, 1), (None, 3)]
)
def test_where_nobody_shows_the_bound_is_a_guess(partitions, bound):
    edges = choice.edges_up_to(partitions)
    chosen = choice.choose(look([0] * len(edges)), edges, float, partitions)
    assert chosen.top == -1 and chosen.reach == bound
    assert chosen.pairs_lost == (0 if partitions and partitions <= 3 else math.inf)
    assert chosen.pairs_lost_estimate == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("partitions", [50, None])
@pytest.mark.parametrize("budget", [PURE, ZCDP])
def test_nobody_shows_where_nobody_is(partitions, budget):
    """An anchor is anywhere with 0.3% (`clip.NOBODY`): more than 16 of 400 have less than 1e-11."""
    empty = np.zeros(len(choice.edges_up_to(partitions)), np.int64)
    looks = [choice.draw(empty, budget, Noise()) for _ in range(400)]
    assert sum(look.top >= 0 for look in looks) <= 16


def test_everybody_alike_is_not_cut_and_not_guessed_higher():
    """10,000 people on one step: the noise cannot hide them (a chance far below 1e-10)."""
    for step in (0, 3, 8):
        edges = choice.edges_up_to(50)
        counts = np.zeros(len(edges), np.int64)
        counts[step] = 10_000
        exact = look(counts)
        chosen = choice.choose(exact, edges, float, 50)
        assert chosen.reach == edges[step] and chosen.pairs_lost_estimate == 0
        taken = choice.draw(counts, PURE.scaled(choice.SHARE), Noise())
        drawn = choice.choose(taken, edges, float, 50)
        assert drawn.reach >= edges[step]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("budget", [PURE, ZCDP])
@pytest.mark.parametrize("people", [10_000, 100_000])
def test_what_is_cut_is_below_its_bound_nearly_always(budget, people):
    """The bound's own chance is 95%; of 200 draws fewer than 150 have a chance below 1e-10."""
    random = np.random.default_rng(people)
    reaches = np.minimum(random.poisson(6, people) + 1, 50)
    edges = choice.edges_up_to(50)
    counts = choice.people_per_step(reaches, edges)
    pairs = 0
    for _ in range(200):
        taken = choice.draw(counts, budget.scaled(choice.SHARE), Noise())
        chosen = choice.ReachChoice(4, edges, taken, taken.top)
        pairs += chosen.pairs_lost >= np.maximum(reaches - 4, 0).sum()
        assert chosen.pairs_lost >= chosen.pairs_lost_estimate
    assert pairs >= 150


# --------------------------------------------------------------------------------- the ladder

PAIRS = list(itertools.product(range(3), range(3)))  # (person, partition)


@pytest.mark.parametrize(
    ("limit", "edges"),
    [
        (None, choice.LADDER),
        (1, (1,)),
        (2, (1, 2)),
        (5, (1, 2, 3, 4, 5)),
        (7, (1, 2, 3, 4, 6, 7)),
        (1024, choice.LADDER),
        (10**6, choice.LADDER),
    ],
)
def test_the_last_step_is_the_public_limit(limit, edges):
    assert choice.edges_up_to(limit) == edges


def test_people_stand_on_the_lowest_edge_that_holds_them():
    reaches = np.array([1, 2, 3, 4, 5, 6, 7, 8, 5000])
    assert choice.people_per_step(reaches, (1, 2, 3, 4, 6, 7)).tolist() == [1, 1, 1, 1, 2, 3]
    assert choice.people_per_step(np.zeros(0, np.int64), (1, 2)).tolist() == [0, 0]


def counted(rows, reach, people):
    """Return the counts of a small database, by the library's own reduction."""
    rows = [row for row in rows if row[0] in people]
    person = np.array([[row[0] for row in rows]], np.uint64).reshape(1, -1)
    partition = np.array([[row[1] for row in rows]], np.uint64).reshape(1, -1)
    table = Table(person, partition, np.ones(len(rows), np.int64), [])
    bounder = Bounder(ContributionBounds(reach), (), b"key")
    return choice.people_per_step(choice.reaches_of(bounder.reduce(table)), (1, 2, reach))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("reach", [2, 3])
@pytest.mark.parametrize("times", [1, 2])
def test_every_person_moves_one_count_by_one(reach, times):
    """All databases of up to three people in three partitions, rows once or twice."""
    for size in range(len(PAIRS) + 1):
        for chosen in itertools.combinations(PAIRS, size):
            rows = [row for row in chosen for _ in range(times)]
            whole = counted(rows, reach, {0, 1, 2})
            for person in range(3):
                less = counted(rows, reach, {0, 1, 2} - {person})
                own = {partition for who, partition in rows if who == person}
                moved = whole - less
                assert sorted(moved.tolist()) == [0] * (2 if own else 3) + [1] * bool(own)
                if own:
                    assert (1, 2, reach)[int(np.argmax(moved))] >= min(len(own), reach)


# ------------------------------------------------------------------- the number of partitions


@pytest.mark.parametrize("buckets", [8, 64])
def test_one_alone_says_nothing_and_many_say_it_all(buckets: int) -> None:
    assert choice.partitions_about(1, buckets) == choice.ABOUT
    assert choice.partitions_about(1, buckets, 37.4) == 37
    assert choice.partitions_about(1, buckets, 0.001) == 1
    for kept in (50, 500, 100_000):
        for guess in (1.0, choice.ABOUT, 1e4):
            assert (
                abs(math.log(choice.partitions_about(kept, buckets, guess) / (kept * buckets)))
                < 50 / kept
            )
    numbers = [choice.partitions_about(kept, buckets) for kept in range(1, 200)]
    assert numbers == sorted(numbers)
