"""g on the grid equals Definition 3.1 by brute force; a person moves it by at most Delta steps."""

import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.preprocessing import groups, means, order_statistics, variances
from beam_dp.mechanisms.preprocessing.groups import PreprocessedStatistic, noisy
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


def wrong(name, count, seed):
    """Return on how many of `count` databases g is not that of the brute force."""
    mistakes = 0
    for statistic, generator in releases(name, seed):
        databases = [brute.database(generator, 7) for _ in range(count // RELEASES)]
        found = statistic.values(*brute.columns(databases))
        sizes = np.array([len(values) for values in databases])
        for size in np.unique(sizes):
            alike = np.flatnonzero(sizes == size)
            rows = np.array([databases[place] for place in alike], np.int64).reshape(
                len(alike), size
            )
            mistakes += int((found[alike] != brute.stepped(statistic, rows)).sum())
    return mistakes


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", brute.STATISTICS)
@sized(1_000, 5_000)
def test_g_is_that_of_all_subsets_of_5000_databases(name, tries):
    assert wrong(name, tries, 1) == 0


@pytest.mark.parametrize("name", ["mean", "median", "trimmed_mean", "maximum"])
def test_g_of_longer_databases_is_that_of_all_windows(name):
    for statistic, generator in releases(name, 2):
        databases = [brute.database(generator, 60) for _ in range(6)]
        found = statistic.values(*brute.columns(databases))

        def floored(window, resolution=statistic.resolution):
            return math.floor(brute.STATISTICS[name](window) * resolution)

        for values, number in zip(databases, found.tolist(), strict=True):
            exact = brute.by_windows(floored, values, statistic.sensitivity, statistic.empty)
            assert number == exact


@pytest.mark.parametrize("sample", [False, True])
def test_the_search_for_the_best_window_misses_none(sample):
    generator = np.random.default_rng(3)
    for _ in range(60):
        values = sorted([0, *brute.database(generator, 300)])
        price = brute.variance(values) * Fraction(math.exp(generator.uniform(-8, 1)))
        whole = variances.Spread(np.array(values), sample)
        n = len(values)
        sizes = range(1, n + 1)
        every = [(i, i + size) for size in sizes for i in range(n - size + 1)]
        starts, stops = np.array(every).T
        about, _ = whole.about_mean(starts, stops)
        rough = about / whole.divisors(stops - starts) + (n - stops + starts) * float(price)
        near = [every[place] for place in np.flatnonzero(rough <= rough.min() * (1 + 1e-9))]
        best = min(whole.exactly(i, j) + (n - j + i) * price for i, j in near)
        assert variances.least(whole, price) == best


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", brute.STATISTICS)
def test_one_person_moves_each_of_thousands_of_neighbours_by_at_most_delta(name):
    for statistic, generator in releases(name, 4):
        size, count = (12, 1_000) if generator.random() < 0.9 else (300, 100)
        databases = [[*brute.database(generator, size), 0] for _ in range(count)]
        gone = [int(generator.integers(len(values))) for values in databases]
        less = [
            [*values[:place], *values[place + 1 :]]
            for values, place in zip(databases, gone, strict=True)
        ]
        moved = statistic.values(*brute.columns(databases)) - statistic.values(*brute.columns(less))
        assert abs(moved).max() <= statistic.sensitivity


def walked(windows, step, empty):
    """Return g by walks alone, from bounds that are far away."""
    low, high = empty - step * windows.size, empty + step * windows.size
    walks = means.Walks(windows, step, empty)
    while low < high:
        reached, bound = walks.reach(high - (high - low) // 2)
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
        step = int(width * math.exp(generator.uniform(-8, 0)))
        empty = int(generator.integers(-width, width + 1))
        trim = Fraction(int(generator.integers(0, 10)), 20) if number % 3 else Fraction(0)
        windows = means.Windows(values, int(generator.integers(1, 4)), trim)
        exact = means.recursed(windows, step, empty).item()
        low, high = means.bounds(windows, step, empty)
        found = walked(windows, step, empty), means.settled(windows, step, empty)
        mistakes += found != (exact, exact) or not low <= exact <= high
    return mistakes


@sized(700, 5_000)
def test_a_saddle_and_walks_find_the_g_of_all_windows_of_5000_databases(tries):
    assert differing(tries, 12) == 0
    assert differing(tries // 50, 5, 400) == 0


def test_walks_with_another_delta_are_noticed(monkeypatch):
    true = means.Walks.__init__

    def broken(self, *given):
        true(self, *given)
        self._step += 1

    monkeypatch.setattr(means.Walks, "__init__", broken)
    assert differing(50, 12) > 0


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


@pytest.mark.parametrize("trim", [Fraction(0), brute.TRIM])
def test_sums_times_the_resolution_may_be_beyond_64_bits(monkeypatch, trim):
    """Values times the resolution are not, so that int64 is enough."""
    generator = np.random.default_rng(11)
    for _ in range(30):
        sizes = [*generator.integers(0, 40, 20).tolist(), 300]
        databases = [generator.integers(-(2**34), 2**35, size).tolist() for size in sizes]
        delta, name = int(2 ** generator.uniform(30, 49)), "trimmed_mean"
        grid, given = PreprocessedStatistic(name, delta, 7, 3 << 20, trim), brute.columns(databases)
        assert groups.Groups(*given).windows(grid).values.dtype == np.int64
        fast = grid.values(*given).tolist()
        with monkeypatch.context() as patch:
            patch.setattr(groups, "fitting", lambda column, *others: column.astype(object))
            assert grid.values(*given).tolist() == fast


@pytest.mark.parametrize("name", ["variance", "sample_variance"])
@pytest.mark.parametrize("bound", [1 << 61, 1 << 62, 3 << 61, (1 << 63) - 2])
def test_ranges_of_2_to_the_62_and_above_are_exact(name, bound):
    """In 64 bits they wrap: to -2^63, whose square is right by accident, or to less than they are.

    Too short a range says that nothing is cut, where one person moves the variance by too much.
    """
    for values in ([-bound, bound], [-bound, 0, bound], [-bound, bound - 7, bound]):
        offsets = np.array([0, len(values)])
        for power in range(110, 129):
            statistic = PreprocessedStatistic(name, 1 << power)
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


def test_mistakes_are_noticed(monkeypatch):
    """Broken twins: each breaks one claim that the proofs need."""
    twins = {
        "trimmed_mean": (PreprocessedStatistic, "_disputed", lambda *given: np.zeros(0, np.int64)),
        "mean": (groups, "settled", lambda *given: means.bounds(*given)[0] - 1),
    }
    for name, broken in twins.items():
        with monkeypatch.context() as patch:
            patch.setattr(*broken)
            patch.setattr(groups, "SMALL", 0)
            assert wrong(name, 300, 7) > 0


def test_a_median_that_only_looks_at_removals_from_above_is_noticed(monkeypatch):
    true = order_statistics.doubled_medians

    def lazy(values, starts, sizes, step, empty):
        return true(values, starts, sizes, step, min(empty, 2 * values.min()) if len(values) else 0)

    monkeypatch.setitem(order_statistics.KERNELS, "median", lazy)
    assert wrong("median", 300, 8) > 0


def test_a_search_for_windows_that_loses_a_quarter_is_noticed(monkeypatch):
    true = variances._quarters
    monkeypatch.setattr(groups, "SMALL", 0)
    monkeypatch.setattr(variances, "_SIDE", 1)
    assert wrong("variance", 300, 9) == 0

    def lazy(starts, stops, width):
        return [(a[a % 4 != 3], b[a % 4 != 3], w) for a, b, w in true(starts, stops, width)]

    monkeypatch.setattr(variances, "_quarters", lazy)
    assert wrong("variance", 300, 9) > 0


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


def test_noise_of_a_release_has_the_scale_of_delta():
    # b = 2: P(X = 0) = tanh(1 / (2 b)) = 0.245; 4000 draws: 2 exp(-2 * 4000 * 0.06^2) = 6e-13.
    statistic = PreprocessedStatistic("mean", 2)
    given = np.ones(4000, np.int64), np.arange(4001)
    drawn = noisy(statistic, *given, Budget(1.0))
    assert abs((drawn == 1).mean() - math.tanh(1 / 4)) < 0.06
    # Variance 2^2 / (2 * 0.5) = 4: P(X = 0) is 1 / sum_k e^(-k^2 / 8).
    gaussian = noisy(statistic, *given, Budget.zcdp(0.5))
    chance = 1 / sum(math.exp(-k * k / 8) for k in range(-60, 61))
    assert abs((gaussian == 1).mean() - chance) < 0.06
