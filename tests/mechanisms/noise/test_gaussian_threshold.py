"""Selection by Gaussian noise is delta-approximate rho-zCDP, and keeps more than what it replaces.

The exact distribution of the decision is computed from that of the noise, in floats of 1e-12.
"""

import dataclasses
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.gaussian_threshold import GaussianThreshold, best_selection
from beam_dp.mechanisms.noise.partition_selection import TruncatedGeometric
from beam_dp.mechanisms.noise.sampling import Noise

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


def violations(both: np.ndarray, rho: float, delta: float) -> int:
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
    assert violations(both, rho, float(selection.delta)) == 0
    assert (np.diff(both[0]) >= 0).all() and both[0][selection.pre_threshold] > 0
    assert (both[0][: selection.pre_threshold] == 0).all()


def test_broken_selections_are_noticed() -> None:
    selection = GaussianThreshold(Fraction(0.009), Fraction(1e-6))
    both, delta = chances(selection), 1e-6
    assert violations(both[:, 1:], 0.009, delta) == 0
    early = np.concatenate([both[:, :1], both[:, 4:]], axis=1)  # a threshold that is 3 lower
    assert violations(early, 0.009, delta) > 0
    assert violations(both, 0.006, delta) > 0
    certain = np.array([both[0] > 0.5, both[0] <= 0.5], float)
    assert violations(np.clip(certain, 1e-300, 1), 0.009, delta) > 0


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


def test_the_words_of_the_plan() -> None:
    selection = GaussianThreshold(Fraction(0.009), Fraction(5e-7))
    assert selection.certainty == "kept nearly always from 63 people on, half of the time with 38"
    table = TruncatedGeometric(Fraction(1), Fraction(1e-6))
    assert table.certainty == "kept for sure from 28 people on"
    assert selection.name != table.name


def test_parameters_are_checked_and_pickles_too() -> None:
    selection = CASES[0]
    assert pickle.loads(pickle.dumps(selection)) == selection
    for wrong in ({"rho": 0}, {"delta": Fraction(1, 3)}, {"delta": 0}, {"pre_threshold": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            dataclasses.replace(selection, **wrong)
