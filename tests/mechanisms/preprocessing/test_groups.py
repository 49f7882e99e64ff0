"""g on the grid equals Definition 3.1 by brute force; a person moves it by at most Delta steps."""

import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.preprocessing import groups, saddle, staircase, variances
from beam_dp.mechanisms.preprocessing.release import PreprocessedStatistic
from tests.mechanisms.preprocessing import brute
from tests.sizes import tries as sized

RELEASES = 10


def releases(name, seed):
    """Return statistics with random public numbers."""
    generator = np.random.default_rng(seed)
    for _ in range(RELEASES):
        sensitivity = int(generator.integers(1, 60)) if generator.random() < 0.9 else 10**6
        empty = 0 if "variance" in name else int(generator.integers(-60, 61))
        resolution = Fraction(int(generator.integers(1, 9)), int(generator.integers(1, 5)))
        yield PreprocessedStatistic(name, sensitivity, empty, resolution, brute.TRIM), generator


def wrong(name, count, seed, most=7):
    """Return on how many of `count` databases g is not that of the brute force."""
    mistakes = 0
    for statistic, generator in releases(name, seed):
        databases = [brute.database(generator, most) for _ in range(count // RELEASES)]
        found = statistic.values(*brute.columns(databases))
        for values, number in zip(databases, found.tolist(), strict=True):
            price = [statistic.sensitivity / statistic.resolution] * len(values)
            empty = statistic.empty / statistic.resolution
            exact = brute.preprocessed(brute.STATISTICS[name], values, price, empty)
            mistakes += number != math.floor(exact * statistic.resolution)
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
def test_one_person_moves_each_of_10000_neighbours_by_at_most_delta(name):
    for statistic, generator in releases(name, 4):
        size = 12 if generator.random() < 0.9 else 300
        databases = [[*brute.database(generator, size), 0] for _ in range(10_000 // RELEASES)]
        gone = [int(generator.integers(len(values))) for values in databases]
        less = [
            [*values[:place], *values[place + 1 :]]
            for values, place in zip(databases, gone, strict=True)
        ]
        moved = statistic.values(*brute.columns(databases)) - statistic.values(*brute.columns(less))
        assert abs(moved).max() <= statistic.sensitivity


def test_every_saddle_is_that_of_the_recursion_and_the_mean_always_has_one():
    generator = np.random.default_rng(5)
    for _ in range(150):
        values = np.sort([0, *brute.database(generator, 400)]) * 1000
        width = int(values[-1] - values[0]) + 1
        step = max(1, int(width * math.exp(generator.uniform(-9, 0))))
        empty = int(generator.integers(-width, width + 1))
        for trim in (Fraction(0), brute.TRIM):
            windows = groups.Windows(values, 1, trim)
            low, high = saddle.bounds(windows, step, empty)
            exact = groups.recursed(windows, step, empty).item()
            assert low == high == exact or (trim and low <= exact <= high)


def unequal(seed, count=150):
    """Return how often g of the mean on a coarse grid, one group at a time, is not exact."""
    generator = np.random.default_rng(seed)
    mistakes = 0
    for _ in range(count):
        values = np.sort(np.array([0, *brute.database(generator, 300)]))
        step, empty = int(generator.integers(1, 4)), int(generator.integers(-40, 41))
        windows = groups.Windows(values)
        found = staircase.settled(windows, step, empty)
        mistakes += found != groups.recursed(windows, step, empty).item()
    return mistakes


def test_coarse_steps_and_ties_do_not_hide_g():
    assert unequal(10) == 0


def test_bounds_that_nearly_meet_are_noticed(monkeypatch):
    monkeypatch.setattr(saddle, "_rounding", lambda *_: 1.0)
    assert unequal(10) > 0


def walked(windows, step, empty):
    """Return g by walks alone, from bounds that are far away."""
    far = 2 * (abs(windows.values).max() + abs(empty) + step * (windows.size + 1)) + 1
    low, high = -int(far), int(far)
    walks = staircase.Walks(windows, step, empty)
    while low < high:
        reached, bound = walks.reach(staircase._between(low, high))
        assert low <= bound <= high
        low, high = (bound, high) if reached else (low, bound)
    return low


def differing(count, seed, most=40):
    """Return on how many databases walks or bounds and walks are not the recursion."""
    generator = np.random.default_rng(seed)
    mistakes = 0
    for number in range(count):
        values = np.sort(np.array([0, *brute.database(generator, most)]))
        values = values * (1000 if number % 2 else 1)
        width = int(values[-1] - values[0]) + 1
        step = int(width * math.exp(generator.uniform(-8, 0)))
        empty = int(generator.integers(-width, width + 1))
        trim = Fraction(int(generator.integers(0, 10)), 20)
        windows = groups.Windows(values, int(generator.integers(1, 4)), trim)
        exact = groups.recursed(windows, step, empty).item()
        found = walked(windows, step, empty), staircase.settled(windows, step, empty)
        mistakes += found != (exact, exact)
    return mistakes


@sized(700, 5_000)
def test_growing_windows_find_the_g_of_all_windows_of_5000_databases(tries):
    assert differing(tries, 12) == 0


def test_walks_with_another_delta_are_noticed(monkeypatch):
    true = staircase.Walks.__init__

    def broken(self, *given):
        true(self, *given)
        self._step += 1

    monkeypatch.setattr(staircase.Walks, "__init__", broken)
    assert differing(50, 12) > 0


def test_walks_settle_floats_too():
    generator = np.random.default_rng(13)
    unproved = 0
    for _ in range(100):
        values = np.sort(generator.lognormal(0.0, 2.0, 80))
        step = float(np.ptp(values)) * math.exp(generator.uniform(-8, -2))
        windows = groups.Windows(values, 1, Fraction(int(generator.integers(0, 10)), 20))
        low, high = saddle.bounds(windows, step, 0.0)
        unproved += low < high
        exact = groups.recursed(windows, step, 0.0).item()
        assert math.isclose(staircase.settled(windows, step, 0.0), exact, rel_tol=1e-11)
    assert unproved > 0


def test_wide_integers_and_narrow_ones_give_the_same():
    generator = np.random.default_rng(6)
    databases = [brute.database(generator, 9) for _ in range(40)]
    units, offsets = brute.columns(databases)
    wide = np.array([int(value) << 90 for value in units], object)
    for name in brute.STATISTICS:
        power = 180 if "variance" in name else 90
        narrow = PreprocessedStatistic(name, 30, 0, 4, brute.TRIM).values(units, offsets)
        scaled = PreprocessedStatistic(name, 30, 0, Fraction(4, 1 << power), brute.TRIM)
        assert scaled.values(wide, offsets).tolist() == narrow.tolist()


@pytest.mark.parametrize("trim", [Fraction(0), brute.TRIM])
def test_a_factor_beside_the_values_changes_nothing(monkeypatch, trim):
    """Sums times the factor are beyond int64 here, values times the factor are not."""
    generator = np.random.default_rng(11)
    for _ in range(30):
        sizes = [*generator.integers(0, 40, 20).tolist(), 300]
        databases = [generator.integers(-(2**34), 2**35, size).tolist() for size in sizes]
        step = int(2 ** generator.uniform(30, 49))
        grid = groups.Grid(step, 7, Fraction(3 << 20, 7))
        found = groups.Groups(*brute.columns(databases))
        assert found.windows(grid, trim).factor == 3 << 20
        fast = groups.means(found, grid, trim).tolist()
        with monkeypatch.context() as patch:
            patch.setattr(groups, "scaled", lambda *given: (groups.fitting(*given, 1 << 62), 1))
            assert found.windows(grid, trim).values.dtype == object
            assert groups.means(found, grid, trim).tolist() == fast


def test_values_that_would_overflow_are_exact():
    far = np.array([-(1 << 61), 0, 1 << 61])
    for name, expected in {
        "mean": 0,
        "median": 0,
        "maximum": 1 << 61,
        "minimum": -(1 << 61),
    }.items():
        assert PreprocessedStatistic(name, 1 << 90).values(far, np.array([0, 3])).tolist() == [
            expected
        ]
    found = PreprocessedStatistic("variance", 1 << 140).values(far, np.array([0, 3]))
    assert found.tolist() == [(1 << 123) // 3]


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
        "_within_reach": ("mean", lambda made, grid, windows, found: np.ones(len(found), bool)),
        "_undisputed": (
            "trimmed_mean",
            lambda made, grid, w, f, places: np.ones(len(places), bool),
        ),
        "settled": (
            "mean",
            lambda windows, step, empty: windows.stopping(windows.size)[0].item(),
        ),
    }
    for place, (name, twin) in twins.items():
        with monkeypatch.context() as patch:
            patch.setattr(groups, place, twin)
            patch.setattr(groups, "SMALL", 0)
            assert wrong(name, 300, 7) > 0


def test_a_median_that_only_looks_at_removals_from_above_is_noticed(monkeypatch):
    true = groups.doubled_medians

    def lazy(values, starts, sizes, step, empty):
        return true(values, starts, sizes, step, min(empty, 2 * values.min()) if len(values) else 0)

    monkeypatch.setattr(groups, "doubled_medians", lazy)
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
