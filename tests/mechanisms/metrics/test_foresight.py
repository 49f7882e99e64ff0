"""What is foreseen for a guess is what people who are as guessed get, but for the noise."""

import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics.clipped import ClippedDistinct, people_of
from beam_dp.mechanisms.metrics.released import ALPHA, Crowd, Foreseen
from beam_dp.mechanisms.noise.tails import laplace_bound
from tests.doubles import ZeroNoise
from tests.mechanisms.metrics.test_clipped_sum import cells_of, clipped_sum
from tests.reference import Row

EVEN = [number for number in range(1, 65) for _ in range(10)]  # 640 people, even up to 64


def rows_of(partitions: int) -> list[Row]:
    """Return one row for each person in each partition."""
    return [
        Row((person, 0), (partition, 0), (number,))
        for person, number in enumerate(EVEN)
        for partition in range(partitions)
    ]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("partitions", [1, 5])
@pytest.mark.parametrize("rate", [0.05, 0.3, 3.0])
def test_it_is_what_people_as_guessed_get(
    signed: bool, shared: bool, partitions: int, rate: float
) -> None:
    release = clipped_sum(signed, shared, search=rate, noise=rate)
    rows = rows_of(partitions)
    view = cells_of(rows, release.measures, partitions).at(0)
    if shared:
        [measure] = [release.shared_measure]
        everybody = cells_of(rows, [measure], 1, shared=True)
        view = view.at(0, release.choose_shared(everybody.at(0), ZeroNoise()))
    found = release.draw(view, ZeroNoise())
    if found.cut is not None:
        found = found.spread(found.cut.sums(found.values))
    crowd = Crowd(len(EVEN), partitions, partitions, 64, whole=True)
    foreseen = release.foreseen(crowd)
    assert foreseen is not None and foreseen.value == sum(EVEN)
    if not math.isfinite(foreseen.high):
        assert np.isnan(found.values).all()
        return
    # The released number is that of the clipped people; the guess shows their number as it is.
    below, above = foreseen.value - foreseen.low, foreseen.high - foreseen.value
    assert found.below == pytest.approx(np.full(partitions, below), rel=0.1)
    assert found.above == pytest.approx(np.full(partitions, above), rel=0.1)


def test_a_given_clip_leaves_the_noise_alone() -> None:
    release = clipped_sum(search=None, noise=0.5, grid=(64,))
    found = release.foreseen(Crowd(100, 1, 1, 64))
    assert found is not None
    bound = laplace_bound(Fraction(1, 2) / 64, ALPHA)
    assert found.high - found.value == found.value - found.low == bound


def test_people_are_a_number_with_the_noise_on_both_sides() -> None:
    found = people_of(Budget(1.0)).foreseen(Crowd(100.0, 7, 3, None))
    assert found is not None and found.value == 100
    # P(|X| > 3) = 2 e^-4 / (1 + e^-1) = 0.027 < 0.048 < 0.073 = P(|X| > 2).
    assert (found.low, found.high) == (97, 103)


def test_different_values_are_not_guessed() -> None:
    base = clipped_sum(False, False)
    release = ClippedDistinct(
        0, False, base.thresholds, Fraction(1), looks=base.looks, noise_costs=base.noise_costs
    )
    assert release.foreseen(Crowd(100, 1, 1, 64)) is None


@pytest.mark.parametrize(
    ("low", "high", "wide"),
    [(5, 14, False), (5, 15, True), (-math.inf, 12, True), (-math.inf, math.inf, True)],
)
def test_a_number_is_wide_where_its_interval_is_as_wide_as_it(
    low: float, high: float, wide: bool
) -> None:
    assert Foreseen(10, low, high).is_wide == wide


def test_everybody_is_counted_once() -> None:
    crowd = Crowd(30, partitions=10, reach=3, most=8, whole=True)
    assert crowd.everybody == 100
    assert crowd.total == 30 * 4.5
    assert crowd.histogram((1, 2, 4, 8, 16), Fraction(1), 80).tolist() == [10, 10, 20, 40, 0, 0]
    assert crowd.histogram((1, 2), Fraction(1), 80).tolist() == [10, 10, 60]
