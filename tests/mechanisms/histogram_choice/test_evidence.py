"""Evidence: people are seen where they are, and hardly ever where nobody is.

False alarms are bounded by exact tails of what the decision is seen to ask for, and for few buckets
by trying all values of the noise.
"""

import itertools

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.histogram_choice.clip import BEYOND, NOBODY, WINDOWS, Evidence
from beam_dp.mechanisms.histogram_choice.noisy_histogram import HistogramNoise

PURE = HistogramNoise(Budget(0.4))
GAUSSIAN = HistogramNoise(Budget.zcdp(0.0068))
NOISES = pytest.mark.parametrize("noise", [PURE, GAUSSIAN], ids=["Laplace", "Gaussian"])
SURELY, ANYWHERE = NOBODY
TWO_ABOVE = 2**-1.5 + 2**-3.0  # the first and the second bucket above
NOTHING = -(1 << 40)
EVERYBODY = 1 << 45


def law_of(noise: HistogramNoise, reach: int) -> np.ndarray:
    """Return P(X = k) for k from -reach to reach."""
    k = np.arange(-reach, reach + 1.0)
    amount = float(noise.budget.amount)
    weights = np.exp(-amount * (k**2 if noise.budget.is_zcdp else np.abs(k)))
    return weights / weights.sum()


def tail(law: np.ndarray, buckets: int, least: int) -> float:
    """Return P(sum of so many >= least)."""
    total = law
    for _ in range(buckets - 1):
        total = np.convolve(total, law)
    reach = (len(total) - 1) // 2
    return float(total[np.arange(-reach, reach + 1) >= least].sum())


def asked(evidence: Evidence, start: int, width: int, top: int | None) -> int:
    """Return what a window must have to be shown, by trying: spread evenly, so that no part is.

    Args:
        evidence: what decides.
        start: the lowest bucket of the window.
        width: how many buckets it has.
        top: a bucket of very many people, far below; None: nobody is anywhere else.
    """
    low, high = 0, 1 << 20
    while high - low > 1:
        middle = (low + high) // 2
        noisy = np.full((1, evidence.sides, evidence.buckets), NOTHING)
        if top is not None:
            noisy[0, :, top] = EVERYBODY
        noisy[0, -1, start : start + width] = [(middle + part) // width for part in range(width)]
        shown = evidence.highest(noisy)[0, -1] >= start
        low, high = (low, middle) if shown else (middle, high)
    return high


@pytest.mark.sampled(3)
@NOISES
@pytest.mark.parametrize(("buckets", "sides"), [(6, 1), (85, 1), (85, 2), (1500, 1)])
def test_where_nobody_is_nobody_is_shown(noise, buckets, sides):
    evidence, law = Evidence(noise, buckets, sides), law_of(noise, 300)
    chances = [tail(law, width, asked(evidence, 1, width, None)) for width in WINDOWS]
    # The union of all windows; most of it is not wasted, but for whole numbers.
    assert ANYWHERE / 3 < sides * buckets * sum(chances) <= ANYWHERE
    assert evidence.highest(np.zeros((3, sides, buckets))).tolist() == [[-1] * sides] * 3


@pytest.mark.sampled(3)
@NOISES
@pytest.mark.parametrize("sides", [1, 2])
def test_above_people_false_alarms_are_as_rare_as_said_in_all(noise, sides):
    evidence, law = Evidence(noise, 30, sides), law_of(noise, 500)
    total = 0.0
    for distance in range(1, 20):
        chance = sides * sum(
            tail(law, width, asked(evidence, 5 + distance, width, 5)) for width in WINDOWS
        )
        # Far above, a bucket is tested as all are.
        most = max(BEYOND * 2 ** (-1.5 * distance), SURELY / 30)
        assert most / 4 < chance <= most
        total += chance
    assert total <= 0.55 * BEYOND + SURELY


def chance_of_any(evidence: Evidence, reach: int) -> float:
    """Return the exact chance that anything shows where nobody is, for three buckets."""
    law, values = law_of(evidence.noise, reach), np.arange(-reach, reach + 1)
    grid = np.array(list(itertools.product(values, repeat=3)))
    weights = law[grid + reach].prod(axis=1)
    shown = evidence.highest(grid[:, None, :])[:, 0] >= 0
    return float(weights[shown].sum())


@pytest.mark.parametrize("noise", [HistogramNoise(Budget(1.0)), HistogramNoise(Budget.zcdp(0.1))])
def test_the_exact_chance_of_any_false_alarm(noise):
    assert ANYWHERE / 20 < chance_of_any(Evidence(noise, 3), 22) <= ANYWHERE
    # Anchored, the first bucket is tested as those near people are.
    chance = chance_of_any(Evidence(noise, 3, anchored=True), 22)
    assert BEYOND / 10 < chance <= ANYWHERE + BEYOND * TWO_ABOVE


@pytest.mark.parametrize("noise", [HistogramNoise(Budget(1.0)), HistogramNoise(Budget.zcdp(0.1))])
def test_the_exact_chance_of_a_false_alarm_above_few_people(noise):
    # Wherever the anchor is: few people in the first bucket may be seen there or not.
    reach, law = 22, law_of(noise, 22)
    grid = np.array(list(itertools.product(range(-reach, reach + 1), repeat=3)))
    weights = law[grid + reach].prod(axis=1)
    for people in (1, 8, 12, 1000):
        noisy = grid[:, None, :] + np.array([people, 0, 0])
        above = Evidence(noise, 3).highest(noisy)[:, 0] >= 1
        assert float(weights[above].sum()) <= ANYWHERE + BEYOND * TWO_ABOVE


@NOISES
def test_people_are_shown_in_their_bucket_or_the_lowest_of_a_window(noise):
    evidence = Evidence(noise, 40)
    for start in (0, 7, 35, 39):
        noisy = np.zeros((2, 1, 40))
        noisy[:, 0, start] = 1000
        assert evidence.highest(noisy).tolist() == [[start]] * 2
    spread = np.zeros((1, 1, 40))
    spread[0, 0, 10:14] = asked(evidence, 10, 4, None) // 4 + 1
    assert evidence.highest(spread)[0, 0] >= 10
    assert asked(evidence, 10, 1, None) > 1.5 * asked(evidence, 10, 4, None) / 4


@NOISES
def test_near_people_less_evidence_is_enough(noise):
    evidence = Evidence(noise, 85)
    near = [asked(evidence, place, 1, 10) for place in (11, 12, 20)]
    assert near == sorted(near) and near[0] < asked(evidence, 11, 1, None)
    anchored = Evidence(noise, 85, anchored=True)
    assert asked(anchored, 1, 1, None) == near[0]


def test_rows_are_judged_each_by_itself_and_sides_share_an_anchor():
    evidence = Evidence(PURE, 10, 2)
    noisy = np.zeros((3, 2, 10), np.int64)
    noisy[0, 0, 4] = 500
    noisy[2, 0, 6], noisy[2, 1, 7] = 500, asked(Evidence(PURE, 10, 2), 7, 1, 6)
    assert evidence.highest(noisy).tolist() == [[4, -1], [-1, -1], [6, 7]]
    noisy[2, 0, 6] = 0  # the same few are nobody without the many
    assert evidence.highest(noisy).tolist()[2] == [-1, -1]
    assert evidence.highest(np.zeros((0, 2, 10))).shape == (0, 2)


@pytest.mark.parametrize("budget", [Budget(1e-6), Budget(1e6), Budget(50), Budget.zcdp(1e-9)])
@pytest.mark.parametrize("buckets", [2, 85, 4097])
def test_extreme_budgets_and_numbers_of_clips(budget, buckets):
    evidence = Evidence(HistogramNoise(budget), buckets)
    noisy = np.zeros((1, 1, buckets), np.int64)
    assert evidence.highest(noisy).tolist() == [[-1]]
    noisy[0, 0, 1] = 1 << 60
    assert evidence.highest(noisy).tolist() == [[1]]
    wide = noisy.astype(object) * (1 << 30)
    assert evidence.highest(wide).tolist() == [[1]]


def test_what_goes_unseen_is_what_one_bucket_must_have():
    for noise in (PURE, GAUSSIAN):
        for sides in (1, 2):
            evidence = Evidence(noise, 85, sides)
            assert asked(evidence, 11, 1, 10) - 1 <= evidence.unseen < asked(evidence, 11, 1, 10)
