"""Which tables agree, and intervals: their constants, by exact laws."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.consistency.agreement import UNKNOWN
from beam_dp.mechanisms.consistency.tables import (
    GAUSS,
    LAPLACE,
    NoiseSize,
    ReleasedTable,
    interval_of_sum,
    nested,
    noise_of_sum,
)
from beam_dp.mechanisms.metrics.released import Released
from beam_dp.mechanisms.noise.interval_widths import laplace_bound
from beam_dp.mechanisms.numerics.checks import ParameterError

CHAINS = [["a", "ab", ""], ["abc", "c"], ["a"]]
CROSSED = [["ab", "a", "b", ""], ["b", "ab", "a"], ["abc", "c", "ba", ""]]
REFUSED = [
    *(["abc", "ab", "bc"], ["abc", "a", "b"], ["abc", "a", "b", "c"], ["abc", "ab", "a", "b"]),
    *(["a", "b"], ["a", "a"], ["ab", "a", "b", "", "ab"], ["a", "b", ""]),
]


@pytest.mark.parametrize("columns", CHAINS + CROSSED)
def test_tables_that_agree_are_put_in_order(columns):
    order, pairs = nested("release", "also_by", columns)
    assert sorted(order) == list(range(len(columns)))
    sizes = [len(columns[index]) for index in order]
    assert sizes == sorted(sizes)
    last = len(order) - 1
    chain = [(at, at + 1) for at in range(last)]
    diamond = {2: [(0, 2), (1, 2)], 3: [(0, 1), (0, 2), (1, 3), (2, 3)]}
    assert pairs == (diamond[last] if columns in CROSSED else chain)


@pytest.mark.parametrize("columns", REFUSED)
def test_other_tables_are_refused_in_plain_words(columns):
    with pytest.raises(ParameterError, match="release: also_by must be tables that nest, or one"):
        nested("release", "also_by", columns)


def theorem(alpha, ends):
    weights = np.exp(-ends)
    far = -np.log(alpha + (1 - alpha) * weights)
    return far / np.sqrt((2 - weights * (ends**2 + 2 * ends + 2)) / (1 - weights))


def test_the_constant_is_the_largest_value_of_the_theorem():
    ends = np.linspace(1e-2, 100, 100_000)
    values = theorem(0.05, ends)
    assert LAPLACE - 0.001 < values.max() < LAPLACE
    assert ends[values.argmax()] == pytest.approx(4.48, abs=0.01)
    assert values[-1] == pytest.approx(math.log(20) / math.sqrt(2))


def beyond(scales, far):
    """Return P(|X| > far) of a sum of Laplace noises of different scales, in partial fractions."""
    squares = scales**2
    return sum(
        math.exp(-far / scale) * math.prod(s / (s - t) for t in squares if t != s)
        for scale, s in zip(scales.tolist(), squares.tolist(), strict=True)
    )


def test_no_sum_of_laplace_noises_passes_the_constant():
    generator = np.random.default_rng(1)
    largest = 0.0
    for _ in range(200):
        scales = np.exp(generator.uniform(-1, 1, generator.integers(1, 6)).cumsum())
        deviation = math.sqrt(2 * float((scales**2).sum()))
        assert beyond(scales, LAPLACE * deviation) < 0.05
        largest = max(largest, beyond(scales, 2.0 * deviation))
    assert largest > 0.05, "a constant of 2 would not do"


def law(kind, spread):
    """Return whole numbers and their chances: discrete Laplace of a rate, or discrete Gaussian."""
    numbers = np.arange(-25, 26)
    logs = -spread * np.abs(numbers) if kind == "Laplace" else -(numbers**2) / (2 * spread)
    chances = np.exp(logs)
    return numbers, chances / chances.sum()


SPREADS = {"Laplace": (0.7, 1.0, 3.0), "Gauss": (0.4, 1.0, 9.0)}
DEVIATIONS = {"Laplace": LAPLACE, "Gauss": GAUSS}


def chance_beyond(kind, spreads, half):
    """Return the chance that a parent less two parts misses the truth, by the exact law."""
    laws = [law(kind, spread) for spread in spreads]
    variance = sum(float(chances @ numbers**2) for numbers, chances in laws)
    width = float(noise_of_sum(DEVIATIONS[kind], variance)) - 0.5 + half
    (first, second, third), chances = zip(*laws, strict=True)
    errors = first[:, None, None] - second[:, None] - third
    beyond = np.abs(errors) > width + 1e-9
    return float(np.einsum("i,j,k,ijk", *chances, beyond))


@pytest.mark.parametrize("kind", SPREADS)
def test_sums_of_whole_noise_are_within_by_their_exact_law(kind):
    worst, without = 0.0, 0.0
    for spreads in itertools.combinations_with_replacement(SPREADS[kind], 3):
        worst = max(worst, chance_beyond(kind, spreads, 0.5))
        without = max(without, chance_beyond(kind, spreads, 0.0))
    assert worst <= 0.05 < without, "half a unit is needed"


def test_intervals_of_single_numbers_hold():
    for rate in (Fraction(n, 40) for n in range(1, 400, 7)):
        deviation = math.sqrt(0.5) / math.sinh(float(rate) / 2)
        assert laplace_bound(rate, Fraction(1, 20)) <= LAPLACE * deviation + 0.5


def test_the_interval_of_a_sum_adds_losses_and_the_squares_of_noise():
    values, loss = np.array([100.0, 50.0, 3.0]), np.array([10.0, 0.0, 1.0])
    low, high = np.maximum(values - 6, 0), values + 6 + loss
    least, most = interval_of_sum(low, high, 6.0, 2.0, GAUSS)
    assert most == pytest.approx(153 + 11 + GAUSS * 2 * math.sqrt(3) + 0.5)
    assert least == pytest.approx(150 - GAUSS * 2 * math.sqrt(2) - 0.5), "the third adds 0"


def released(values, below, above, noise):
    return ReleasedTable(Released.between(np.array(values), below, above), noise)


def test_a_number_loses_a_quarter_of_its_ends_and_one_alone_at_most_half_of_a_deviation():
    noise = NoiseSize(6.0, 3.0, LAPLACE)
    for size, loss in ((1, 1.5), (2, 25.0)):
        numbers = np.zeros(size)
        found = released(numbers, numbers + 46.0, numbers + 66.0, noise).level(0.5)
        assert found.losses.tolist() == [2 * loss] * size and found.variance == 36


def test_numbers_without_any_end_are_not_known():
    nothing, noise = np.full(2, np.inf), NoiseSize(6.0, 3.0, LAPLACE)
    for values in ([1.0, 2.0], [np.nan, np.nan]):
        found = released(values, nothing, nothing, noise).level(1.0)
        assert found.variance == UNKNOWN and np.isfinite(found.values).all()
    known = released([1.0, 2.0], nothing, np.array([9.0, np.inf]), noise).level(1.0)
    assert known.variance == 9 and known.losses.tolist() == [0.75, 0]
