"""The ladder: one step per person, so one count moves by 1 when a person comes or goes."""

import itertools

import numpy as np
import pytest

from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.reach import ladder

PAIRS = list(itertools.product(range(3), range(3)))  # (person, partition)


def test_the_ladder_has_two_steps_per_octave_up_to_1024():
    assert ladder.LADDER[:9] == (1, 2, 3, 4, 6, 8, 12, 16, 24)
    assert ladder.LADDER[-3:] == (512, 768, 1024) and len(ladder.LADDER) == 20


@pytest.mark.parametrize(
    ("limit", "edges"),
    [
        (None, ladder.LADDER),
        (1, (1,)),
        (2, (1, 2)),
        (5, (1, 2, 3, 4, 5)),
        (7, (1, 2, 3, 4, 6, 7)),
        (1024, ladder.LADDER),
        (10**6, ladder.LADDER),
    ],
)
def test_the_last_step_is_the_public_limit(limit, edges):
    assert ladder.edges_up_to(limit) == edges


def test_people_stand_on_the_lowest_edge_that_holds_them():
    reaches = np.array([1, 2, 3, 4, 5, 6, 7, 8, 5000])
    assert ladder.people_per_step(reaches, (1, 2, 3, 4, 6, 7)).tolist() == [1, 1, 1, 1, 2, 3]
    assert ladder.people_per_step(np.zeros(0, np.int64), (1, 2)).tolist() == [0, 0]


def counted(rows, reach, people):
    """Return the counts of a small database, by the library's own reduction."""
    rows = [row for row in rows if row[0] in people]
    person = np.array([[row[0] for row in rows]], np.uint64).reshape(1, -1)
    partition = np.array([[row[1] for row in rows]], np.uint64).reshape(1, -1)
    table = Table(person, partition, np.ones(len(rows), np.int64), [])
    bounder = Bounder(ContributionBounds(reach), (), b"key")
    return ladder.people_per_step(ladder.reaches_of(bounder.reduce(table)), (1, 2, reach))


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


def test_a_person_who_is_counted_per_octave_below_moves_more():
    """The broken twin: cumulative counts, whose sensitivity is the number of steps."""
    reaches = np.array([1, 3])
    cumulative = ladder.people_per_step(reaches, (1, 2, 3))[::-1].cumsum()[::-1]
    less = ladder.people_per_step(reaches[:1], (1, 2, 3))[::-1].cumsum()[::-1]
    assert (cumulative - less).sum() == 3
