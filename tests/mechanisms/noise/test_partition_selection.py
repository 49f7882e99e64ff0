"""Selection keeps what (epsilon, delta) allows, exactly and nearly all of it; or what rho allows.

The distribution of the decision by Gaussian noise is computed from that of the noise, in floats of
1e-12.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.partition_selection import (
    GaussianThreshold,
    TruncatedGeometric,
    best_selection,
)
from beam_dp.mechanisms.noise.sampling import Noise

PAIRS = [
    (Fraction(epsilon), Fraction(delta))
    for epsilon in (0.01, 0.1, Fraction(1, 3), 1, 5, 50)
    for delta in (1e-300, 1e-20, 1e-9, 1e-6, 0.01, Fraction(1, 3), 0.9)
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


@pytest.mark.sampled(13)
@pytest.mark.parametrize(("epsilon", "delta"), PAIRS + RARE)
def test_every_inequality_holds_exactly(epsilon: Fraction, delta: Fraction) -> None:
    selection = TruncatedGeometric(epsilon, delta)
    kept = probabilities(selection)
    assert violations(kept, growth_below(epsilon), delta) == 0
    assert kept == sorted(kept)
    assert kept[0] == 0 < kept[1] <= delta
    assert kept[selection.threshold - 1] < 1 == kept[selection.threshold] == kept[-1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("delta", [Fraction(1e-300), Fraction(1e-20), Fraction(1e-6)])
def test_broken_tables_are_noticed(delta: Fraction) -> None:
    epsilon = Fraction(1)
    growth, kept = growth_below(epsilon), probabilities(TruncatedGeometric(epsilon, delta))
    tiny = Fraction(1, 2**90) * delta
    broken = [
        [Fraction(0), *kept[2:]],  # one person too few
        [min(p + tiny, Fraction(1)) if p else p for p in kept],
        probabilities(TruncatedGeometric(epsilon, 2 * delta)),
        probabilities(TruncatedGeometric(epsilon * (1 + Fraction(1, 2**60)), delta)),
        [min(n * delta * 2, Fraction(1)) for n in range(len(kept))],
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


@pytest.mark.parametrize(
    ("delta", "words"), [(Fraction(1e-6), 2), (Fraction(1e-9), 3), (Fraction(1e-300), 18)]
)
def test_comparison_is_exact_to_the_last_bit(delta: Fraction, words: int) -> None:
    selection = TruncatedGeometric(Fraction(1), delta)
    one = 2 ** (64 * words)
    for n in range(1, selection.threshold, max(1, selection.threshold // 40)):
        level = int(selection.probability(n) * one)
        assert Fraction(level, one) == selection.probability(n)
        for number in (level - 1, level, level + 1, 0, one - 1):
            script = [np.array(columns([number], words), dtype=np.uint64).ravel()]
            kept = selection.keep(np.array([n]), Scripted(iter(script)))
            assert kept.tolist() == [number < level]


@pytest.mark.parametrize("bad", [0, -1, 2**62 + 1])
def test_pre_threshold_out_of_range_is_refused(bad: int) -> None:
    for kind in (TruncatedGeometric, GaussianThreshold):
        with pytest.raises(ValueError, match="^PrivatePartitions: pre_threshold must be from 1"):
            kind(Fraction(1), Fraction(1, 10**6), bad)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(1e-3, 1e-300), (1e-5, 1e-12), (2.0**-50, 9e-7), (Fraction(1, 10**400), Fraction(1, 2))],
)
def test_tables_that_are_too_long_are_refused_at_once(epsilon: float, delta: float) -> None:
    with pytest.raises(ValueError, match=r"settle within 2\^20 people.* Raise epsilon or delta"):
        TruncatedGeometric(Fraction(epsilon), Fraction(delta))


CASES = [
    GaussianThreshold(Fraction(rho), Fraction(delta), pre)
    for rho in (1e-4, 0.009, 0.3, 5.0)
    for delta in (1e-9, 1e-4, Fraction(1, 4))
    for pre in (1, 4)
]
ORDERS = (1.001, 1.1, 2.0, 8.0, 64.0, 500.0)


def chances(selection: GaussianThreshold) -> np.ndarray:
    """Return the chance that a partition with 0, 1, 2, ... people is kept, then that it is not."""
    reach = selection.slack + math.ceil(40 * math.sqrt(selection.variance)) + 2
    noise = np.arange(-reach, reach + 1)
    weights = np.exp(-(noise**2) / (2 * float(selection.variance)))
    ends = np.append(0.0, np.cumsum(weights / weights.sum()))
    people = np.arange(selection.pre_threshold + 2 * selection.slack + 4)
    counted = np.maximum(0, people - selection.pre_threshold + 1)
    above = 1 + selection.slack - counted  # the noise must be above that
    dropped = np.where(counted == 0, 1.0, ends[np.clip(above + reach + 1, 0, len(noise))])
    # The noise is symmetric: sums of small numbers only, where the chance is small.
    kept = np.where(counted == 0, 0.0, ends[np.clip(reach - above, 0, len(noise))])
    return np.array([kept, dropped])


def renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    """Return the divergence of p from q; the logarithms of 0 stand for nothing."""
    with np.errstate(divide="ignore"):
        exponents = order * np.log(p) - (order - 1) * np.log(q)
    return float(np.logaddexp.reduce(exponents[p > 0])) / (order - 1)


def divergences(both: np.ndarray, rho: float, delta: float) -> int:
    """Count the neighbours that are told apart by more than delta-approximate rho-zCDP allows.

    From "never kept" only the chance to be kept counts; elsewhere the divergences of all orders.
    """
    kept, found = both[0], 0
    for people in range(both.shape[1] - 1):
        here, there = both[:, people], both[:, people + 1]
        if kept[people] == 0:
            found += kept[people + 1] > delta
            continue
        for order in ORDERS:
            most = max(renyi(here, there, order), renyi(there, here, order))
            found += most > rho * order * (1 + 1e-9) + 1e-12
    return found


@pytest.mark.parametrize("selection", CASES, ids=repr)
def test_no_neighbours_are_told_apart(selection: GaussianThreshold) -> None:
    both, rho = chances(selection), float(selection.rho)
    assert divergences(both, rho, float(selection.delta)) == 0
    assert (np.diff(both[0]) >= 0).all() and both[0][selection.pre_threshold] > 0
    assert (both[0][: selection.pre_threshold] == 0).all()


def test_broken_selections_are_noticed() -> None:
    selection = GaussianThreshold(Fraction(0.009), Fraction(1e-6))
    both, delta = chances(selection), 1e-6
    assert divergences(both[:, 1:], 0.009, delta) == 0
    early = np.concatenate([both[:, :1], both[:, 4:]], axis=1)  # a threshold that is 3 lower
    assert divergences(early, 0.009, delta) > 0
    assert divergences(both, 0.006, delta) > 0
    certain = np.array([both[0] > 0.5, both[0] <= 0.5], float)
    assert divergences(np.clip(certain, 1e-300, 1), 0.009, delta) > 0


def divergence(share: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Return share ln(share / chance), a part of the Kullback-Leibler divergence; 0 for no share."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(share == 0, 0.0, share * np.log(share / chance))


def test_the_draw_is_that_of_the_noise_and_the_threshold() -> None:
    """Chernoff: a share x of n = 1000 draws of chance p is as far off, on one side, as it is with at
    most e^(-n KL(x, p)): at most 36 e^-27 < 1e-10 for 18 numbers of people.
    """
    selection = GaussianThreshold(Fraction(0.3), Fraction(1e-4), 4)
    kept, dropped = chances(selection)
    people = np.arange(len(kept))
    drawn = np.mean([selection.keep(people, Noise()) for _ in range(1000)], axis=0)
    assert (divergence(drawn, kept) + divergence(1 - drawn, dropped) <= 27 / 1000).all()
    assert kept[selection.threshold] >= 0.999 > kept[selection.threshold - 3]


def test_certain_cases_and_large_numbers() -> None:
    selection = GaussianThreshold(Fraction(0.009), Fraction(1e-6), 2**62)
    people = np.array([-(2**63), 0, 2**62 - 1, 2**62 + 10**6, 2**63 - 1])
    assert selection.keep(people, Noise()).tolist() == [False, False, False, True, True]
    assert selection.keep(np.array([], np.int64), Noise()).tolist() == []
    wide = GaussianThreshold(Fraction(1, 2**90), Fraction(1e-6))  # noise beyond int64's half
    assert wide.keep(np.array([0, 2**63 - 1]), Noise()).tolist() == [False, True]


def test_it_is_taken_where_it_keeps_more() -> None:
    """By the tables: the chance with so many people is larger, around one half."""
    pure = best_selection(Budget(0.5, 1e-6), 3)
    assert pure == TruncatedGeometric(Fraction(0.5), Fraction(1e-6), 3)
    small = best_selection(Budget.zcdp(0.009 / 16, 1e-6 / 32), 1)
    assert isinstance(small, GaussianThreshold)
    middle = 1 + small.slack
    table = TruncatedGeometric(Fraction(math.sqrt(2 * float(small.rho))), small.delta)
    assert chances(small)[0][middle] > 0.49 and table.probability(2 * middle) < 0.49
    large = best_selection(Budget.zcdp(10**6, 1e-6), 1)
    assert isinstance(large, TruncatedGeometric) and large.threshold <= 3
    assert isinstance(best_selection(Budget.zcdp(0.001, 0.9), 1), TruncatedGeometric)
