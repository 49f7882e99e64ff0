"""The most frequent value by one clip: brute force over small databases and all their neighbours."""

import itertools

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.metrics import values
from tests.doubles import ZeroNoise, choices, compile_program
from tests.relations import Row, as_dicts, views

PROGRAM = compile_program([dp.MaxFrequency("item")], dp.Budget(2.0), 1, partitions=1)
CLIPS = (0, 1, 2)
"""The indexes of the clips 1, 2 and 4."""
# What a person can have: how many rows of each of two values.
KINDS = [kind for kind in itertools.product((0, 1, 3), (0, 5)) if any(kind)]
SMALL = [
    people
    for size in range(3)
    for people in itertools.combinations_with_replacement(range(len(KINDS)), size)
]


def rows_of(people) -> list[Row]:
    return [
        Row(number, 1, item="ab"[place])
        for number, kind in enumerate(people)
        for place, count in enumerate(KINDS[kind])
        for _ in range(count)
    ]


def statistics(people) -> list[float]:
    """Return what the release adds noise to, for each clip."""
    if not people:
        return [0.0] * len(CLIPS)
    found = []
    for cells, _ in views(as_dicts(rows_of(people)), PROGRAM):
        for clip in CLIPS:
            [drawn] = PROGRAM.release(cells, choices(PROGRAM, clip), ZeroNoise())
            found.append(float(drawn.values[0]))
    return found


def sums(people) -> np.ndarray:
    return np.array([KINDS[kind] for kind in people]).reshape(-1, 2)


@pytest.fixture(scope="module")
def known() -> dict:
    return {people: statistics(people) for people in SMALL}


def test_everybody_counts_for_at_most_the_clip_of_each_value(known):
    for people, found in known.items():
        for clip, value in zip((1, 2, 4), found, strict=True):
            own = sums(people)
            assert value == np.minimum(own, clip).sum(axis=0).max(initial=0)
            most = own.max(axis=1, initial=0)
            truth = own.sum(axis=0).max(initial=0)
            assert value <= truth <= value + np.maximum(most - clip, 0).sum()


def worst_move(known) -> float:
    """Return the largest move by a person more, in clips; the least is checked to be 0 or more."""
    worst = 0.0
    for people in (each for each in known if len(each) < 2):
        for kind in range(len(KINDS)):
            more = tuple(sorted((*people, kind)))
            for clip, one, other in zip((1, 2, 4), known[people], known[more], strict=True):
                assert other >= one
                worst = max(worst, (other - one) / clip)
    return worst


def test_a_person_more_moves_it_by_0_to_the_clip(known):
    assert worst_move(known) == 1


def every_row(lines, cap):
    """A mutant: nobody is clipped."""
    return int(np.bincount(np.unique(lines.items, return_inverse=True)[1], lines.counts).max())


def several_values(lines, cap):
    """A mutant: a person counts for the clip with each of their values, in one number."""
    return int(np.minimum(lines.counts, cap).sum())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mutant", [every_row, several_values])
def test_broken_statistics_are_noticed(mutant, monkeypatch):
    monkeypatch.setattr(values, "_most_rows", mutant)
    assert worst_move({people: statistics(people) for people in SMALL}) > 1
