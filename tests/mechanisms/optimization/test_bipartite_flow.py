"""A flow on some of the pairs is maximal on all of them, whichever it begins with."""

import numpy as np
import pytest

from beam_dp.mechanisms.optimization import bipartite_flow, maximum_flow


def problem(generator):
    """Return rooms, weights, and the pairs of random people and items, ordered by item."""
    people, items = (int(number) for number in generator.integers(1, 30, 2))
    room = generator.integers(1, 12, people)
    weights = generator.integers(1, 9, items) * generator.choice([1, 64])
    pairs = np.unique(generator.integers(0, people * items, generator.integers(1, 200)))
    item, person = np.divmod(pairs, people)
    return room, weights, person, item


def whole(room, weights, people, items):
    """Return the value and the reached people of one flow on all pairs."""
    count, nodes = len(room), len(room) + len(weights) + 2
    found = maximum_flow.maximum(
        np.concatenate([np.full(count, nodes - 2), people, np.arange(count, nodes - 2)]),
        np.concatenate([np.arange(count), count + items, np.full(len(weights), nodes - 1)]),
        np.concatenate([room, np.minimum(room[people], weights[items]), weights]),
        nodes,
        nodes - 2,
        nodes - 1,
    )
    return found.value, found.reached[:count].tolist()


def differences(patience, monkeypatch, first=None):
    """Return how often the flow on some pairs is another than that on all."""
    generator = np.random.default_rng(patience)
    monkeypatch.setattr(bipartite_flow, "_PATIENCE", patience)
    if first is not None:
        monkeypatch.setattr(bipartite_flow, "_first", first)
    different = 0
    for _ in range(150):
        given = problem(generator)
        found = bipartite_flow.maximum(*given)
        different += (found.value, found.reached.tolist()) != whole(*given)
    return different


def none_first(room, weights, people, items):
    return np.zeros(len(people), bool)


def half_first(room, weights, people, items):
    return np.arange(len(people)) % 2 == 0


@pytest.mark.sampled(9)
@pytest.mark.parametrize("patience", [1, 2, 12])
@pytest.mark.parametrize("first", [None, none_first, half_first])
def test_it_is_the_flow_on_all_pairs(first, patience, monkeypatch):
    assert differences(patience, monkeypatch, first) == 0


def test_a_flow_that_stops_after_its_first_pairs_is_noticed(monkeypatch):
    # The broken twin: it never adds a pair, as if the first ones were all.
    original = bipartite_flow.maximum

    def stopped(room, weights, people, items):
        kept = half_first(room, weights, people, items)
        return original(room, weights, people[kept], items[kept])

    monkeypatch.setattr(bipartite_flow, "maximum", stopped)
    assert differences(12, monkeypatch) > 50


def test_crowded_items_need_few_pairs(monkeypatch):
    generator = np.random.default_rng(1)
    people, items = generator.integers(0, 5_000, 300_000), np.repeat(np.arange(10_000), 30)
    sizes = []
    original = maximum_flow.maximum

    def counted(tails, *others, **named):
        sizes.append(len(tails) - 15_000)
        return original(tails, *others, **named)

    monkeypatch.setattr(maximum_flow, "maximum", counted)
    pairs = np.unique(items * 5_000 + people)
    items, people = np.divmod(pairs, 5_000)
    room, weights = np.full(5_000, 3), np.ones(10_000, np.int64)
    assert bipartite_flow.maximum(room, weights, people, items).value == 10_000
    assert sizes[-1] < len(pairs) / 3
