"""Selection keeps what (epsilon, delta) allows, exactly and nearly all of it.

The distribution of the decision by Gaussian noise is computed from that of the noise, in floats of
1e-12.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.partition_selection import (
    MOST,
    CapChoice,
    TruncatedGeometric,
    WeightedThreshold,
    best_selection,
    weights_of,
)
from beam_dp.mechanisms.noise.sampling import Noise
from tests.mechanisms.accounting.test_zcdp import best_log_delta

PAIRS = [
    (Fraction(epsilon), Fraction(delta))
    for epsilon in (0.01, Fraction(1, 3), 1, 50)
    for delta in (1e-300, 1e-9, 0.01, 0.9)
    if -2 * math.log(delta) / epsilon < 3000  # about the size of the table
]
RARE = [
    (Fraction(2.0**-50), Fraction(1e-3)),
    (Fraction(1, 2**100), Fraction(1, 1000)),
    (Fraction(700), Fraction(1e-300)),
    (Fraction(1023), Fraction(1, 10**700)),
    (Fraction(1, 7), 1 - Fraction(1, 10**40)),
]


def growth_below(epsilon: Fraction) -> Fraction:
    """A rational just below e^epsilon: the series of e^(epsilon / 2^k), squared k times.

    Cut off after 600 terms and in steps of 2^-4000, always downwards.
    """
    halvings, unit = max(0, math.ceil(epsilon).bit_length()), 1 << 4000
    term = total = unit
    for k in range(1, 600):
        term = math.floor(term * epsilon / k / 2**halvings)
        total += term
    for _ in range(halvings):
        total = total * total >> 4000
    return Fraction(total >> 3000, 1 << 1000)


def violations(kept: list[Fraction], growth: Fraction, delta: Fraction) -> int:
    """How many of the inequalities of (epsilon, delta)-DP fail between neighbours."""
    pairs = [
        pair
        for p, q in itertools.pairwise(kept)
        for pair in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p))
    ]
    return sum(left > growth * right + delta for left, right in pairs)


def probabilities(selection: TruncatedGeometric) -> list[Fraction]:
    return [selection.probability(n) for n in range(selection.threshold + 3)]


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("epsilon", "delta"), PAIRS + RARE)
def test_every_inequality_holds_exactly(epsilon: Fraction, delta: Fraction) -> None:
    selection = TruncatedGeometric(epsilon, delta)
    kept = probabilities(selection)
    assert violations(kept, growth_below(epsilon), delta) == 0
    assert kept == sorted(kept)
    assert kept[0] == 0 < kept[1] <= delta
    assert kept[selection.threshold - 1] < 1 == kept[selection.threshold] == kept[-1]


def test_broken_tables_are_noticed() -> None:
    epsilon, delta = Fraction(1), Fraction(1e-6)
    growth, kept = growth_below(epsilon), probabilities(TruncatedGeometric(epsilon, delta))
    tiny = Fraction(1, 2**90) * delta
    broken = [
        [Fraction(0), *kept[2:]],  # one person too few
        [min(p + tiny, Fraction(1)) if p else p for p in kept],
        probabilities(TruncatedGeometric(epsilon * (1 + Fraction(1, 2**60)), delta)),
        [Fraction(n >= 10) for n in range(12)],  # a threshold without chance
    ]
    assert all(violations(table, growth, delta) > 0 for table in broken)


def test_pre_threshold_shifts_everything() -> None:
    plain = TruncatedGeometric(Fraction(1), Fraction(1e-6))
    shifted = dataclasses.replace(plain, pre_threshold=5)
    assert shifted.threshold == plain.threshold + 4
    assert probabilities(shifted)[:5] == [0] * 5  # impossible with fewer than 5 people
    assert probabilities(shifted)[4:] == probabilities(plain)
    huge = dataclasses.replace(plain, pre_threshold=2**62)
    people = np.array([0, 2**62 - 1, 2**62 + 100, 2**63 - 1, -(2**63)])
    assert huge.keep(people, Noise()).tolist() == [False, False, True, True, False]


@dataclasses.dataclass(frozen=True)
class Scripted(Noise):
    """Hands out prepared words."""

    script: Iterator[npt.NDArray[np.uint64]]

    def words(self, size: int) -> npt.NDArray[np.uint64]:
        """Return the next ones."""
        drawn = next(self.script)
        assert drawn.size == size
        return drawn


def columns(numbers: list[int], words: int) -> list[list[int]]:
    """The words of each number, most significant first, as columns."""
    return [[number >> 64 * k & 2**64 - 1 for number in numbers] for k in reversed(range(words))]


@pytest.mark.parametrize(("delta", "words"), [(Fraction(1e-6), 2), (Fraction(1e-300), 18)])
def test_comparison_is_exact_to_the_last_bit(delta: Fraction, words: int) -> None:
    selection = TruncatedGeometric(Fraction(1), delta)
    one = 2 ** (64 * words)
    for n in range(1, selection.threshold, max(1, selection.threshold // 12)):
        level = int(selection.probability(n) * one)
        assert Fraction(level, one) == selection.probability(n)
        for number in (level - 1, level, level + 1, 0, one - 1):
            script = [np.array(columns([number], words), dtype=np.uint64).ravel()]
            kept = selection.keep(np.array([n]), Scripted(iter(script)))
            assert kept.tolist() == [number < level]


@pytest.mark.parametrize("bad", [0, 2**62 + 1])
def test_pre_threshold_out_of_range_is_refused(bad: int) -> None:
    for kind in (TruncatedGeometric, WeightedThreshold):
        with pytest.raises(ValueError, match="^PrivatePartitions: pre_threshold must be from 1"):
            kind(Fraction(1), Fraction(1, 10**6), pre_threshold=bad)


def test_tables_that_are_too_long_are_refused_at_once() -> None:
    for epsilon, delta in ((1e-3, 1e-300), (2.0**-50, 9e-7), (Fraction(1, 10**400), 0.5)):
        with pytest.raises(ValueError, match=r"settle within 2\^20 people.* Raise epsilon or"):
            TruncatedGeometric(Fraction(epsilon), Fraction(delta))


Cell = tuple[int, int]
"""The people of a partition, and what their weights add up to."""
SELECTIONS = [
    (epsilon, delta, most, pre)
    for epsilon, delta in ((0.3, 1e-5), (1, 1e-6), (3, 1e-3))
    for most in (9, 64)
    for pre in (1, 3)
]


def chances(selection: WeightedThreshold, cells: Iterable[Cell]) -> list[float]:
    """Return the chance that each partition is kept, by the tail of the noise.

    On a grid of 2^-20 the sum of the noise's chances is the integral of the normal density, but for
    less than one part in 10^12.
    """
    deviation = math.sqrt(selection.variance)
    beyond = [(selection.threshold + 0.5 - weights) / deviation for _, weights in cells]
    tails = [math.erfc(z / math.sqrt(2)) / 2 for z in beyond]
    people = [number for number, _ in cells]
    pairs = zip(people, tails, strict=True)
    return [chance * (number >= selection.pre_threshold) for number, chance in pairs]


def excess(
    selection: WeightedThreshold, cells: Sequence[Cell], weight: int, growth: float
) -> float:
    """Return by how much all sets of partitions are likelier than e^epsilon allows, either way.

    Args:
        selection: what decides.
        cells: the partitions of a person, without them.
        weight: what the person adds to each.
        growth: e^epsilon.
    """
    more = [(people + 1, weights + weight) for people, weights in cells]
    both = []
    for each in (cells, more):
        law = np.ones(1)
        for chance in chances(selection, each):
            law = np.concatenate([law * chance, law * (1 - chance)])
        both.append(law)
    one, other = both
    return max(np.maximum(p - growth * q, 0).sum() for p, q in ((one, other), (other, one)))


def worst(selection: WeightedThreshold, epsilon: float, weight: Callable[[int], int]) -> float:
    """Return the largest excess of somebody in up to 8 partitions, whatever others there are."""
    hidden = selection.pre_threshold - 1
    sums = [selection.threshold + step * 2**20 for step in (-12, -3, 0, 3, 12)]
    kinds = [(hidden, hidden * 2**20), *((max(hidden + 1, 9), max(w, 0)) for w in sums)]
    return max(
        excess(selection, [kind] * count + [other] * (k - count), weight(k), math.exp(epsilon))
        for k in (1, 2, 3, 8)
        for kind, other in itertools.combinations(kinds, 2)
        for count in range(k + 1)
    )


def normalised(k: int) -> int:
    return int(weights_of(np.array([k]))[0])


class Lowered(WeightedThreshold):
    """A threshold that is too low by eight people."""

    @property
    def threshold(self) -> int:
        """Return what is too little."""
        return super().threshold - 2**23


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("epsilon", "delta", "most", "pre"), SELECTIONS)
def test_no_neighbours_are_told_apart(epsilon: float, delta: float, most: int, pre: int) -> None:
    """The exact chances of all decisions on a person's partitions, as (epsilon, delta) allows."""
    selection = best_selection(Budget(epsilon, delta), most, pre)
    assert isinstance(selection, WeightedThreshold)
    assert worst(selection, epsilon, normalised) <= delta
    if epsilon >= 1:  # below, the noise is far larger than what one person does
        lower = Lowered(selection.rho, selection.delta, most, pre)
        assert worst(lower, epsilon, normalised) > delta
        assert worst(selection, epsilon, lambda _: 2**20) > delta


def test_the_two_parts_of_delta_add_up_to_it() -> None:
    """What new partitions cost, and the delta of epsilon that rho-zCDP implies, in its own words."""
    epsilon, delta, most, pre = SELECTIONS[3]
    selection = best_selection(Budget(epsilon, delta), most, pre)
    assert isinstance(selection, WeightedThreshold)
    implied = math.exp(best_log_delta(selection.rho, Fraction(epsilon)))
    assert 0.99 * delta < float(selection.delta) + implied <= delta * (1 + 1e-12)


@pytest.mark.parametrize("most", [1, 9, 64, 10**9])
def test_new_partitions_are_named_as_rarely_as_delta_says(most: int) -> None:
    """j new partitions of one person, who is in j: one of them is kept with at most delta."""
    selection = WeightedThreshold(Fraction(0.02), Fraction(1e-6), most)
    for number in {1, 2, 3, 7, 64, 1000, most}:
        if number <= most:
            [chance] = chances(selection, [(1, normalised(number))])
            assert number * chance <= 1e-6
    number = min(most, 64)
    tight = [chances(selection, [(1, normalised(k))])[0] * k for k in (1, number)]
    assert max(tight) > 0.9e-6 or most > 64


def test_weights_are_one_in_l2_and_rounded_down() -> None:
    k = np.append(np.arange(1, 5000), [2**30, 2**31 - 1, 2**39])
    exact = [math.isqrt(2**40 // number) for number in k.tolist()]
    assert weights_of(k).tolist() == exact and (weights_of(k) ** 2 * k <= 2**40).all()


def test_the_draw_is_that_of_the_noise_and_the_threshold() -> None:
    """Hoeffding: a share of 4,000 draws is off by more than 0.06 with a chance below 10^-12."""
    selection = WeightedThreshold(Fraction(0.3), Fraction(1e-4), 4, 3)
    most = selection.threshold
    cells = [(2, most * 2), (3, most), (9, most + 2**20)]
    people, weights = (np.repeat(column, 4000) for column in np.array(cells).T)
    drawn = selection.keep(people, Noise(), weights).reshape(3, -1).mean(axis=1)
    assert drawn == pytest.approx(chances(selection, cells), abs=0.06) and drawn[0] == 0
    half = selection.middle(4)
    assert 0.4 < chances(selection, [(half, half * normalised(4))])[0] < 0.8


def test_certain_cases_and_large_numbers() -> None:
    selection = WeightedThreshold(Fraction(0.009), Fraction(1e-6), 1, 2**40)
    people = np.array([-(2**63), 0, 2**40 - 1, 2**40 + 10**6])
    weights = np.array([0, 0, 2**62, 2**60 + 10**6 * 2**20])
    assert selection.keep(people, Noise(), weights).tolist() == [False, False, False, True]
    nothing = np.array([], np.int64)
    assert selection.keep(nothing, Noise(), nothing).tolist() == []
    wide = WeightedThreshold(Fraction(1, 2**50), Fraction(1e-6))  # noise beyond int64's half
    assert wide.keep(np.array([0, 2**40]), Noise(), np.array([0, 2**60])).tolist() == [False, True]


def test_it_is_taken_where_it_needs_fewer_people() -> None:
    pure = best_selection(Budget(0.5, 1e-6), 1, 3)
    assert pure == TruncatedGeometric(Fraction(0.5), Fraction(1e-6), 3)
    for budget, max_partitions in ((Budget(1, 1e-6), 8), (Budget.zcdp(0.009, 1e-6), 16)):
        many = best_selection(budget, max_partitions, 1)
        assert isinstance(many, WeightedThreshold) and many.most == max_partitions
        table = TruncatedGeometric(Fraction(1, max_partitions), budget.delta / max_partitions)
        assert table.probability(many.middle(max_partitions)) < 0.5
    large = best_selection(Budget.zcdp(10**6, 1e-6), 1, 1)
    assert isinstance(large, TruncatedGeometric) and large.threshold <= 3
    assert isinstance(best_selection(Budget.zcdp(0.001, 0.9), 1, 1), TruncatedGeometric)


CAPS = [
    CapChoice(Budget(0.02), best_selection(budget, 1, pre), best_selection(budget, MOST, pre))
    for budget in (Budget(1, 1e-6), Budget(20, 0.1), Budget.zcdp(0.1, 1e-6))
    for pre in (1, 10**9)
]


class Sums(Noise):
    """Noise that is 0, and says no to other rates than that of the budget."""

    def discrete_laplace(self, rate: Any, size: int) -> np.ndarray:
        """Return a zero."""
        assert (rate, size) == (Fraction(0.02) / 2**20, 1)
        return np.zeros(size, np.int64)


@pytest.mark.parametrize("choice", CAPS)
def test_one_person_moves_the_vote_by_at_most_its_sensitivity(choice: CapChoice) -> None:
    """`choose` takes the sign of a sum of leads: it is that of any people, weighed by hand."""
    leads = choice.leads
    assert abs(leads).max() <= 2**20 and len(leads) == MOST
    assert abs(leads).max() >= 2**20 - 2  # no noise is wasted
    random = np.random.default_rng(len(CAPS))
    for _ in range(20):
        partitions = random.permutation(MOST)[:9] + 1
        people = random.integers(1, 10**9, 9)
        total = sum(int(leads[k - 1]) * n for k, n in zip(partitions, people.tolist(), strict=True))
        assert choice.choose(partitions, people, Sums()) == (1 if total > 0 else MOST)
    assert choice.choose(*np.zeros((2, 0), np.int64), Sums()) == MOST


def test_the_vote_follows_what_each_cap_needs() -> None:
    """With epsilon 1 and delta 10^-6 one partition of each person counts up to 3 of them."""
    choice = CAPS[0]
    wins = [choice.choose(np.array([k]), np.array([10**6]), Sums()) for k in range(1, MOST + 1)]
    assert wins == [1] * 3 + [MOST] * (MOST - 3)


@pytest.mark.audit
def test_the_vote_has_the_noise_of_its_budget() -> None:
    """The chance that a lead of 50 people is outvoted: Hoeffding, off by 0.06 below 10^-12."""
    choice, half, one = CAPS[0], np.array([50]), np.array([1])
    drawn = [choice.choose(one, half, Noise()) == 1 for _ in range(4000)]
    rate = 0.02 * int(choice.leads[0]) / 2**20
    assert np.mean(drawn) == pytest.approx(1 - math.exp(-50 * rate) / 2, abs=0.06)
