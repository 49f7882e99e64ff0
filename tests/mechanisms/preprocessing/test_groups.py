"""g on the grid equals Definition 3.1 by brute force; a person moves it by at most Delta steps."""

import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.preprocessing import variances, windows
from beam_dp.mechanisms.preprocessing.groups import PreprocessedStatistic
from tests.mechanisms.preprocessing import brute
from tests.sizes import tries as sized

RELEASES = 10


def releases(name, seed):
    """Return statistics with random public numbers."""
    generator = np.random.default_rng(seed)
    for _ in range(RELEASES):
        sensitivity = int(generator.integers(1, 60)) if generator.random() < 0.9 else 10**6
        empty = 0 if "variance" in name else int(generator.integers(-60, 61))
        resolution = int(generator.integers(1, 9))
        yield PreprocessedStatistic(name, sensitivity, empty, resolution, brute.TRIM), generator


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", brute.STATISTICS)
@sized(15, 40)
def test_g_is_that_of_all_subsets(name, tries):
    """Of so many databases of up to 6 people for each of ten sets of parameters."""
    for statistic, generator in releases(name, 1):
        databases = [brute.database(generator, 6) for _ in range(tries)]
        found = statistic.values(*brute.columns(databases))
        assert found.tolist() == [brute.in_steps(statistic, values) for values in databases]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["mean", "median", "trimmed_mean", "maximum"])
def test_g_of_longer_databases_is_that_of_all_windows(name):
    for statistic, generator in releases(name, 2):
        databases = [brute.database(generator, 60) for _ in range(3)]
        found = statistic.values(*brute.columns(databases))
        exact = [exactly(name, statistic, values) for values in databases]
        assert found.tolist() == exact


def exactly(name, statistic, values):
    """Return g by all windows."""

    def floored(window):
        return math.floor(brute.STATISTICS[name](window) * statistic.resolution)

    return brute.by_windows(floored, values, statistic.sensitivity, statistic.empty)


def test_the_search_for_the_best_window_misses_none():
    generator = np.random.default_rng(3)
    for _ in range(30):
        values = sorted([0, *brute.database(generator, 300)])
        n, resolution = len(values), 1 << 20
        price = math.ceil(brute.variance(values) * resolution * math.exp(generator.uniform(-8, 1)))
        whole = variances.Spread(np.array(values))
        best = min(
            math.floor(whole.least(size) * resolution) + (n - size) * price
            for size in range(1, n + 1)
        )
        assert variances.least(whole, n, max(1, price), resolution) == best


@pytest.mark.audit
@pytest.mark.parametrize("name", brute.STATISTICS)
def test_one_person_moves_each_of_thousands_of_neighbours_by_at_most_delta(name):
    for statistic, generator in releases(name, 4):
        size, count = (12, 500) if generator.random() < 0.9 else (300, 50)
        databases = [[*brute.database(generator, size), 0] for _ in range(count)]
        gone = [int(generator.integers(len(values))) for values in databases]
        less = [
            [*values[:place], *values[place + 1 :]]
            for values, place in zip(databases, gone, strict=True)
        ]
        moved = statistic.values(*brute.columns(databases)) - statistic.values(*brute.columns(less))
        assert abs(moved).max() <= statistic.sensitivity


def by_staircases(shown, step, empty):
    """Return g by walks alone, from bounds that are far away."""
    low, high = empty - step * shown.size, empty + step * shown.size
    staircases = windows.Staircases(shown, step, empty)
    while low < high:
        reached, bound = staircases.at_least(high - (high - low) // 2)
        assert low <= bound <= high
        low, high = (bound, high) if reached else (low, bound)
    return low


def differing(count, seed, most=40):
    """Return on how many databases bounds, walks, or bounds and walks are not the recursion."""
    generator = np.random.default_rng(seed)
    mistakes = 0
    for number in range(count):
        values = np.sort(np.array([0, *brute.database(generator, most)]))
        values = values * (1000 if number % 2 else 1)
        width = int(values[-1] - values[0]) + 1
        step = int(width * math.exp(generator.uniform(-8, 0))) or 1
        empty = int(generator.integers(-width, width + 1))
        name = ("mean", "trimmed_mean", "median", "maximum", "minimum")[number % 5]
        statistic = PreprocessedStatistic(
            name, step, empty, int(generator.integers(1, 4)), brute.TRIM
        )
        exact = exactly(name, statistic, values.tolist())
        shown = windows.Windows.of(name, values, statistic.resolution, brute.TRIM)
        low, high = windows.bounds(shown, step, empty)
        found = by_staircases(shown, step, empty), windows.settled(shown, step, empty)
        mistakes += found != (exact, exact) or not low <= exact <= high
    return mistakes


@sized(150, 800)
def test_a_saddle_and_walks_find_the_g_of_all_windows(tries):
    assert differing(tries, 12) == 0


def test_wide_integers_and_narrow_ones_give_the_same():
    generator = np.random.default_rng(6)
    databases = [brute.database(generator, 9) for _ in range(40)]
    units, offsets = brute.columns(databases)
    wide = np.array([int(value) << 90 for value in units], object)
    for name in brute.STATISTICS:
        power = 180 if "variance" in name else 90
        narrow = PreprocessedStatistic(name, 30, 0, 1 << power, brute.TRIM).values(units, offsets)
        scaled = PreprocessedStatistic(name, 30, 0, 1, brute.TRIM).values(wide, offsets)
        assert scaled.tolist() == narrow.tolist()


def test_what_does_not_fit_64_bits_is_computed_in_python_integers():
    values = np.arange(300)
    fits, exceeds = (
        windows.Windows.of("mean", values, 3 << power, Fraction(0)) for power in (20, 55)
    )
    assert fits.values.dtype == np.int64 and exceeds.values.dtype == object


@pytest.mark.parametrize("bound", [1 << 61, 1 << 62, 3 << 61, (1 << 63) - 2])
def test_ranges_of_2_to_the_62_and_above_are_exact(bound):
    """In 64 bits they wrap: to -2^63, whose square is right by accident, or to less than they are.

    Too short a range says that nothing is cut, where one person moves the variance by too much.
    """
    for values in ([-bound, bound], [-bound, 0, bound], [-bound, bound - 7, bound]):
        offsets = np.array([0, len(values)])
        for power in range(110, 129):
            statistic = PreprocessedStatistic("variance", 1 << power)
            wide = statistic.values(np.array(values, object), offsets)
            assert statistic.values(np.array(values), offsets).tolist() == wide.tolist()


@pytest.mark.parametrize("name", brute.STATISTICS)
def test_nobody_one_person_and_equal_values(name):
    empty = 0 if "variance" in name else 5
    statistic = PreprocessedStatistic(name, 2, empty)
    units, offsets = brute.columns([[], [100], [6] * 9, [], []])
    flat = "variance" in name
    assert statistic.values(units, offsets).tolist() == [
        empty,
        0 if flat else 7,
        0 if flat else 6,
        empty,
        empty,
    ]
    assert statistic.values(units[:0], np.array([0])).tolist() == []
    assert statistic.values(units[:0], np.array([0, 0])).tolist() == [empty]


def test_a_delta_near_2_to_the_63_wraps_nowhere() -> None:
    """One person moved g by 506 Delta where found + gone * Delta was computed in 64 bits."""
    delta = (2**63 - 1) // 254
    values = np.arange(256) * 2**28
    statistic = PreprocessedStatistic("variance", delta)
    both = statistic.values(np.concatenate([values, values[:-1]]), np.array([0, 256, 511]))
    assert abs(int(both[0]) - int(both[1])) <= delta and min(both) >= 0
    huge = PreprocessedStatistic("variance", 2**62).values(
        np.array([0, 2**40, 2**41]), np.array([0, 3])
    )
    assert int(huge[0]) >= 0
