"""Views on partitions: every line is seen from its own partition and no other."""

import random

import numpy as np
import pytest

from beam_dp.mechanisms.summaries import histograms, owner_lines
from beam_dp.mechanisms.summaries.histograms import PEOPLE, Measure, Summary
from beam_dp.mechanisms.summaries.owner_lines import Owned
from beam_dp.mechanisms.summaries.partition_view import PartitionView, places_of

MEASURES = (Measure(PEOPLE),)
Identity = tuple[int, int]
EVERY = [(one, second) for one in (0, 1, 2, 5, 2**64 - 1) for second in (0, 1, 3, 2**64 - 1)]
"""Four identities share each first word."""


def identities(found: list[Identity], width: int) -> np.ndarray:
    return np.array(found, np.uint64).reshape(-1, 2).T[:width]


def summary_of(partitions: list[Identity], width: int) -> Summary:
    """Return one person in each of these partitions, however often they are listed."""
    size = len(partitions)
    nothing, one = np.zeros(size, np.int64), np.ones(size, np.int64)
    lines = Summary(identities(partitions, width), nothing, nothing, one, nothing)
    return histograms.reduce(lines, MEASURES)


def lines_of(partitions: list[Identity], width: int) -> Owned:
    """Return one line per listed partition, with its place among all of them as its item."""
    size, items = len(partitions), np.array([EVERY.index(one) for one in partitions], np.int64)
    people = np.arange(size, dtype=np.uint64)[None]
    zeros, ones = np.zeros(size, np.int64), np.ones(size, np.int64)
    lines = Owned(
        partition=identities(partitions, width),
        relation=zeros,
        person=people,
        item=items,
        count=ones,
    )
    return owner_lines.merge([lines])


def lists(seed: int) -> tuple[random.Random, list[Identity], list[Identity], int]:
    """Return the partitions of people, some often, and different ones that are asked for."""
    draw, width = random.Random(seed), 1 + seed % 2
    every = EVERY if width == 2 else [one for one in EVERY if not one[1]]
    people = draw.choices(every, k=draw.randrange(40))
    return draw, people, draw.sample(every, draw.randint(0, len(every))), width


@pytest.mark.parametrize("seed", range(8))
def test_places_are_those_of_whole_identities(seed: int) -> None:
    _, people, listed, width = lists(seed)
    for one, other in ((width, width), (2, width), (width, 2)):
        found = places_of(identities(people, one), identities(listed, other))
        expected = [listed.index(pair) if pair in listed else -1 for pair in people]
        assert found.tolist() == expected


@pytest.mark.parametrize("seed", range(8))
def test_listed_partitions_have_their_own_lines(seed: int) -> None:
    """Of people and of owners, in the order of the list; lines of no listed partition are unseen."""
    draw, people, listed, width = lists(seed)
    owning = [one for one in people for _ in range(draw.choice((0, 0, 1, 3)))]
    given = summary_of(people, width), identities(listed, width), lines_of(owning, width)
    view = PartitionView.of_listed(*given).among(99)
    assert (view.size, view.total) == (len(listed), 99)
    assert view.histogram(0, 1)[0].ravel().tolist() == [people.count(one) for one in listed]
    for pair, lines in zip(listed, view.owned(0), strict=True):
        assert lines.items.tolist() == [EVERY.index(pair)] * owning.count(pair)
    assert [len(lines.items) for lines in view.owned(1)] == [0] * len(listed)
    ordered = sorted(set(people), key=lambda one: one[::-1])
    every = PartitionView.of_all(given[0]).histogram(0, 1)[0]
    assert every.ravel().tolist() == [people.count(one) for one in ordered]
