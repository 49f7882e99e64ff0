"""Long chains: the rules that shrink a problem stop after some rounds, and the flow does the rest.

A chain of n people needs about n rounds. What is left then has people who are full, with no room;
small databases never get there. Everything here is exact: no test can fail by chance.
"""

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from beam_dp.mechanisms.optimization import bipartite_flow, maximum_flow
from beam_dp.mechanisms.optimization.maximum_flow import Integers
from beam_dp.mechanisms.profiles import coverage, lipschitz_envelope

Patch = pytest.MonkeyPatch
Pairs = tuple[Integers, Integers]


def plain_loss(people: Integers, items: Integers, price: int) -> int:
    """How many items one flow over all pairs leaves uncovered, every person covering `price`."""
    names, person = np.unique(people, return_inverse=True)
    things, item = np.unique(items, return_inverse=True)
    pairs = np.unique(np.stack([person, item]), axis=1)
    n, m = len(names), len(things)
    found = maximum_flow.maximum(
        np.concatenate([np.full(n, n + m), pairs[0], n + np.arange(m)]),
        np.concatenate([np.arange(n), n + pairs[1], np.full(m, n + m + 1)]),
        np.concatenate([np.full(n, price), np.ones(pairs.shape[1] + m, np.int64)]),
        n + m + 2,
        n + m,
        n + m + 1,
    )
    return m - found.value


def chain(n: int, shared: int, first: int, more: int, draw: random.Random) -> Pairs:
    """Person v shares `shared` items with v + 1; the first owns `first` alone; others at random."""
    owners, item = [0] * first, 0
    items = list(range(first))
    for v in range(n - 1):
        for _ in range(shared):
            item = len(items) + n
            owners += [v, v + 1]
            items += [item, item]
    known = sorted(set(items))
    for _ in range(more):
        owners.append(draw.choice([draw.randrange(n), n + draw.randrange(20)]))
        items.append(draw.choice(known))
    return np.array(owners), np.array(items)


def chains(count: int, seed: int) -> list[Pairs]:
    draw = random.Random(seed)
    return [
        chain(
            draw.randint(66, 90),
            draw.randint(1, 4),
            draw.randint(1, 8),
            draw.randint(0, 200),
            draw,
        )
        for _ in range(count)
    ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rounds", [0, 1, 2, 64])
def test_a_capped_count_is_the_one_flow_over_all_pairs(rounds: int, monkeypatch: Patch) -> None:
    monkeypatch.setattr(coverage, "_ROUNDS", rounds)
    for people, items in chains(25, seed=rounds):
        total = len(np.unique(items))
        for price in (1, 2, 3, 5):
            expected = total - plain_loss(people, items, price)
            assert coverage.capped(people, items, price) == expected


def maximum_over_the_grid(relaxation: coverage.Coverage, removals: int) -> list[Fraction]:
    """B[k] by its definition, at every price up to the steepest."""
    last = lipschitz_envelope.first_price(relaxation.steepest)
    values = [Fraction(relaxation.total)]
    for k in range(1, removals + 1):
        least = min(
            relaxation.point(at, relaxation.level(at, k)).loss + k * at
            for at in map(lipschitz_envelope.price, range(last + 1))
        )
        values.append(max(Fraction(0), relaxation.total - least))
    return values


@pytest.mark.audit
@pytest.mark.parametrize("rounds", [0, 1, 64])
def test_profiles_are_maxima_over_the_whole_grid(rounds: int, monkeypatch: Patch) -> None:
    monkeypatch.setattr(coverage, "_ROUNDS", rounds)
    for people, items in chains(2, seed=10 + rounds):
        found = coverage.profile(people, items, 8)
        assert found == maximum_over_the_grid(coverage.Coverage(people, items, 8), 8)


def interlaces(with_all: list[Fraction], without: list[Fraction]) -> bool:
    return all(low <= high for low, high in zip(without, with_all, strict=True)) and all(
        after <= low for after, low in zip(with_all[1:], without, strict=False)
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rounds", [0, 1, 64])
def test_profiles_of_chains_interlace(rounds: int, monkeypatch: Patch) -> None:
    monkeypatch.setattr(coverage, "_ROUNDS", rounds)
    draw = random.Random(rounds)
    for people, items in chains(8, seed=20 + rounds):
        whole = coverage.profile(people, items, 90)
        for _ in range(3):
            kept = people != draw.choice(people.tolist())
            assert interlaces(whole, coverage.profile(people[kept], items[kept], 90))


def crowd_behind_a_chain(draw: random.Random, price: int) -> Pairs:
    """67 people in a chain, one of whom is full when 64 rounds end, and a crowd behind them."""
    people, items = chain(67, price + 2, price + 2, 0, draw)
    size = draw.randint(40, 120)
    own = draw.randint(20, size)
    near, far = draw.randint(1, size - 1), draw.choice([64, 65, 66])
    for person in range(max(1, size // price + draw.randint(-3, 9))):
        people = np.concatenate([people, np.full(own, 10**6 + person)])
        items = np.concatenate([items, np.array(draw.sample(range(10**6, 10**6 + size), own))])
    shown = np.array(draw.sample(range(10**6, 10**6 + size), near))
    return np.concatenate([people, np.full(near, far)]), np.concatenate([items, shown])


@pytest.mark.audit
def test_a_crowd_behind_a_long_chain_is_counted_to_the_last() -> None:
    draw = random.Random(1)
    for turn in range(300):
        price = 1 + turn % 2
        people, items = crowd_behind_a_chain(draw, price)
        expected = len(np.unique(items)) - plain_loss(people, items, price)
        assert coverage.capped(people, items, price) == expected


def people_without_room_are_kept(self: Any) -> tuple[Fraction, int]:
    """A broken twin of the last step: who is more than full has a negative capacity."""
    if not len(self.items):
        return Fraction(0), 0
    names, person = np.unique(self.people, return_inverse=True)
    scale = self.price.denominator
    room, weights = self.price.numerator - self.alone[names] * scale, self.weights * scale
    found = bipartite_flow.maximum(room, weights, person, self.items)
    missing = Fraction(int(weights.sum()) - found.value, scale)
    return missing, int(np.count_nonzero(~found.reached))


def test_people_without_room_would_be_noticed(monkeypatch: Patch) -> None:
    monkeypatch.setattr(coverage._Kernel, "_flow", people_without_room_are_kept)
    noticed = AssertionError, ArithmeticError  # the second is the check of `flow` itself
    with pytest.raises(noticed):
        test_a_crowd_behind_a_long_chain_is_counted_to_the_last()
    with pytest.raises(noticed):
        test_profiles_are_maxima_over_the_whole_grid(1, monkeypatch)
    with pytest.raises(noticed):
        test_profiles_of_chains_interlace(1, monkeypatch)
