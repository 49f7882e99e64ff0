"""Views on partitions: every line of owners is seen from its own partition and no other."""

import random

import numpy as np
import pytest

from beam_dp.mechanisms.summaries import histograms, owner_lines
from beam_dp.mechanisms.summaries import partition_view as module
from beam_dp.mechanisms.summaries.histograms import PEOPLE, Measure, Summary
from beam_dp.mechanisms.summaries.owner_lines import Owned
from beam_dp.mechanisms.summaries.partition_view import PartitionView

MEASURES = (Measure(PEOPLE),)
Identity = tuple[int, int]


def identities(found: list[Identity], width: int) -> np.ndarray:
    return np.array(found, np.uint64).reshape(-1, 2).T[:width]


def summary_of(partitions: list[Identity], width: int) -> Summary:
    """Return one person in each of these partitions, however often they are listed."""
    size = len(partitions)
    nothing, one = np.zeros(size, np.int64), np.ones(size, np.int64)
    lines = Summary(identities(partitions, width), nothing, nothing, one, nothing)
    return histograms.reduce(lines, MEASURES)


def lines_of(partitions: list[Identity], width: int) -> Owned:
    """Return one line per listed partition, with the first word of its identity as its item."""
    size, items = len(partitions), np.array([one for one, _ in partitions], np.int64)
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


def listed(draw: random.Random, wide: bool) -> tuple[list[Identity], list[Identity]]:
    """Return partitions of people, and some of them (some often) with lines."""
    second = (0, 1, 3) if wide else (0,)
    partitions = [(draw.randrange(30), draw.choice(second)) for _ in range(draw.randrange(1, 40))]
    return partitions, [one for one in partitions for _ in range(draw.choice((0, 0, 1, 3)))]


@pytest.mark.parametrize("seed", range(20))
def test_all_partitions_have_their_own_lines(seed: int) -> None:
    draw = random.Random(seed)
    partitions, owning = listed(draw, seed % 2 == 0)
    width = 2 if any(second for _, second in partitions) else 1
    narrow = 2 if any(second for _, second in owning) else 1
    summary = summary_of(partitions, width)
    cells = PartitionView.of_all(summary, lines_of(owning, narrow))
    found = histograms.partitions(summary)
    pairs = [tuple(pair) for pair in np.vstack([found, np.zeros_like(found)])[:2].T.tolist()]
    assert cells.size == len(pairs) == len(set(partitions))
    views = cells.owned(0)
    for pair, view in zip(pairs, views, strict=True):
        assert view.items.tolist() == [pair[0]] * owning.count(pair)
    check_selections(cells, draw)


def check_selections(cells: PartitionView, draw: random.Random) -> None:
    """What is selected, in any order and again, is seen as before."""
    whole = [view.items.tolist() for view in cells.owned(0)]
    kept = draw.sample(range(cells.size), draw.randint(0, cells.size))
    chosen = cells.select(np.array(kept, np.int64))
    assert [view.items.tolist() for view in chosen.owned(0)] == [whole[place] for place in kept]
    assert chosen.histogram(0, 1)[0].tolist() == cells.histogram(0, 1)[0][kept].tolist()
    assert [len(view.items) for view in cells.owned(1)] == [0] * cells.size


def test_lines_of_a_partition_without_people_are_not_seen() -> None:
    cells = PartitionView.of_all(summary_of([(1, 0)], 1), lines_of([(1, 0), (2, 0), (1, 5)], 2))
    assert [view.items.tolist() for view in cells.owned(0)] == [[1]]


def test_without_lines_or_partitions_views_are_empty() -> None:
    assert [len(view.items) for view in PartitionView.of_all(summary_of([(4, 0)], 1)).owned(0)] == [
        0
    ]
    nobody = PartitionView.of_all(summary_of([], 1), lines_of([(2, 0)], 1))
    assert nobody.size == 0 and nobody.owned(0) == []
    empty = np.empty(0, np.int64)
    public = PartitionView(summary_of([], 1), empty, 3, Owned.nothing(), empty)
    assert [len(view.items) for view in public.owned(0)] == [0, 0, 0]
    assert [len(view.items) for view in PartitionView(summary_of([], 1), empty, 2).owned(0)] == [
        0,
        0,
    ]


def test_a_view_by_the_first_word_alone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    original = module._find
    monkeypatch.setattr(module, "_find", lambda one, other: original(one[:1], other[:1]))
    with pytest.raises(AssertionError):
        for seed in range(20):
            test_all_partitions_have_their_own_lines(seed)
