"""Releases are exact but for their noise, move by what they say, and stray no further.

Where noise is drawn it comes from the system, and the false alarm of a test is at most 1e-10 (DKW:
P(sup |F_n - F| > sqrt(ln(2 / a) / (2 n))) <= a).
"""

import dataclasses
import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Field
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.histogram_choice.noisy_histogram import Choice
from beam_dp.mechanisms.metrics import clipped
from beam_dp.mechanisms.metrics.clipped import ClippedSum, people_of
from beam_dp.mechanisms.metrics.profiled import DirectRelease
from beam_dp.mechanisms.metrics.released import ALPHA, Released
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.noise.tails import gaussian_bound, laplace_bound
from beam_dp.mechanisms.numerics.integers import scale
from beam_dp.mechanisms.profiles.from_summaries import OneNumberEach
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.summaries import histograms
from beam_dp.mechanisms.summaries.histograms import PEOPLE, ROWS, Measure
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from tests.doubles import ZeroNoise
from tests.reference import Row, table_of

GRID = tuple(1 << power for power in range(7))
FALSE_ALARM = 1e-10
ONE = Fraction(1)


def cells_of(rows: list[Row], measures, partitions: int, shared: bool = False) -> PartitionView:
    """Return the summary of rows seen from partitions 0, 1, ..., or over all of them."""
    bounder = Bounder(ContributionBounds(None), (Field(0, "sum"),), b"key")
    table = bounder.settle(bounder.prepare(table_of(rows)))
    if shared:
        summary = histograms.summarise_people(table, measures)
        return PartitionView(summary, np.zeros(len(summary), np.int64), 1)
    summary = histograms.summarise(table, measures)
    return PartitionView(summary, summary.partition[0].astype(np.int64), partitions)


def clipped_sum(signed=True, shared=True, search=1.0, noise=1.0, unit=ONE, grid=GRID, source=0):
    """Return a release of one look; `search` None: only one threshold."""
    looks = () if search is None else (Budget(search),)
    return ClippedSum(source, signed, grid, unit, looks, (Budget(noise),), shared)


def chosen(release: ClippedSum, clip: int) -> Choice:
    """Return a histogram by which the clip is the one of this index: many people are there."""
    choice = release.choice
    noisy = np.zeros((1, choice.sides, choice.buckets), np.int64)
    noisy[0, 0, clip] = 10**6
    return Choice(noisy, 0)


def drawn(release: ClippedSum, rows: list[Row], partitions: int, clip: int, noise=None) -> Released:
    """Return the numbers at a shared clip, before what is lost is shared out."""
    view = cells_of(rows, release.measures, partitions).at(0, chosen(release, clip))
    return release.draw(view, ZeroNoise() if noise is None else noise)


def numbers_of(rows: list[Row], partition: int) -> list[int]:
    """Return each person's total in one partition."""
    totals: dict = {}
    for row in rows:
        if row.partition[0] == partition:
            totals[row.person] = totals.get(row.person, 0) + (row.values[0] or 0)
    return list(totals.values())


def random_rows(
    generator: random.Random, people: int, partitions: int, most: int = 90
) -> list[Row]:
    return [
        Row((person, 0), (generator.randrange(partitions), 0), (generator.randrange(-most, most),))
        for person in range(people)
        for _ in range(generator.randrange(1, 4))
    ]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("clip", [0, 3, 6])
def test_for_a_fixed_clip_the_released_sum_is_the_clipped_one(signed, clip):
    generator = random.Random(1)
    for unit in (ONE, Fraction(1, 4), Fraction(7), Fraction(1, 10**6)):
        rows = random_rows(generator, 40, 3)
        release = clipped_sum(signed, unit=unit)
        found = drawn(release, rows, 3, clip)
        low = -GRID[clip] if signed else 0
        for place in range(3):
            exact = sum(max(low, min(s, GRID[clip])) for s in numbers_of(rows, place))
            assert found.values[place] == float(exact * unit)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("signed", [False, True])
def test_the_clip_is_the_smallest_that_few_enough_people_are_above(shared, signed):
    generator = random.Random(2)
    release = clipped_sum(signed, shared, search=2.0, noise=0.1)  # 10 per unit of the clip
    for _ in range(10):
        rows = random_rows(generator, 400, 2, generator.choice((3, 20, 90)))
        people = [numbers_of(rows, place) for place in range(2)]
        view = cells_of(rows, release.measures, 2)
        if shared:
            cells = cells_of(rows, [release.shared_measure], 1, shared=True)
            view = view.at(0, release.choose_shared(cells.at(0), ZeroNoise()))
            clips = [clip_of(release, largest_of(rows, signed), 2 * 10)] * 2
        else:
            clips = [clip_of(release, numbers, 10) for numbers in people]
        found = release.draw(view, ZeroNoise())
        for place, numbers in enumerate(people):
            y = GRID[clips[place]]
            low = -y if signed else 0
            assert found.values[place] == sum(max(low, min(s, y)) for s in numbers)


def largest_of(rows: list[Row], signed: bool) -> list[int]:
    """Return each person's total of the largest size in any partition."""
    totals: dict = {}
    for row in rows:
        key = row.person, row.partition
        totals[key] = totals.get(key, 0) + (row.values[0] or 0)
    people = {person for person, _ in totals}
    size = abs if signed else int
    return [max((s for (who, _), s in totals.items() if who == p), key=size) for p in people]


def clip_of(release: ClippedSum, numbers: list[int], allowed: float) -> int:
    """Return the first threshold that few enough people are above, of those who are shown."""
    sides = [[s for s in numbers if s > 0], [-s for s in numbers if s < 0]][: release.choice.sides]
    edges = [0, *GRID, 10**9]
    people = [
        [sum(low < s <= high for s in side) for low, high in itertools.pairwise(edges)]
        for side in sides
    ]
    tops = release.choice.evidence(0).highest(np.array([people]))[0].tolist()
    seen = [
        [index for index, n in enumerate(side[: top + 1]) for _ in range(n)]
        for side, top in zip(people, tops, strict=True)
    ]
    passing = (j for j in range(len(GRID)) if sum(i > j for side in seen for i in side) <= allowed)
    return next(passing, len(GRID) - 1)


def moves_of_neighbours(signed: bool, clip: int) -> np.ndarray:
    """Return how one person moves the clipped sum, for 10,000 pairs of neighbours at once.

    They are 10,000 partitions with people of their own, of whom one leaves each.
    """
    generator = random.Random(3)
    rows = [
        Row((6 * place + person, 0), (place, 0), (generator.randrange(-40, 40),))
        for place in range(10_000)
        for person in range(generator.randrange(1, 5))
        for _ in range(generator.randrange(1, 3))
    ]
    release = clipped_sum(signed)
    more, less = (
        drawn(release, part, 10_000, clip).values
        for part in (rows, [row for row in rows if row.person[0] % 6])
    )
    return more - less


@pytest.mark.sampled(3)
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("clip", [0, 4])
def test_one_person_moves_the_clipped_sum_by_at_most_the_clip(signed, clip):
    moves = moves_of_neighbours(signed, clip)
    assert moves.max() == GRID[clip]  # never more, and the bound is reached
    assert moves.min() == (-GRID[clip] if signed else 0)


def test_the_test_of_the_movement_notices_a_forgotten_clip(monkeypatch):
    def whole(view, measure, indexes, clip):
        return view.cut(measure, np.full(view.size, len(GRID)))[0]

    monkeypatch.setattr(clipped, "_clip", whole)
    assert moves_of_neighbours(True, 4).max() > GRID[4]


def test_counts_of_rows_and_people_are_exact_without_noise():
    rows = random_rows(random.Random(4), 50, 3)
    release = clipped_sum(False, source=ROWS)
    found = drawn(release, rows, 3, 6)
    assert found.values.tolist() == [sum(row.partition[0] == p for row in rows) for p in range(3)]
    assert found.values.dtype == np.int64
    for source in (PEOPLE, 0):
        people = people_of(Budget(1.0), source)
        found = people.draw(cells_of(rows, people.measures, 3).at(0), ZeroNoise())
        expected = [
            sum(source == PEOPLE or number > 0 for number in numbers_of(rows, place))
            for place in range(3)
        ]
        assert found.values.tolist() == expected
        assert found.above.tolist() == [float(laplace_bound(1, ALPHA))] * 3


def test_huge_sums_are_exact():
    grid = tuple(1 << power for power in range(84))
    release = clipped_sum(True, grid=grid)
    rows = [Row((person, 0), (0, 0), ((1 << 82) + person,)) for person in range(100)]
    rows += [Row((200, 0), (0, 0), (-(1 << 119),)), Row((201, 0), (1, 0), (-3,))]
    found = drawn(release, rows, 3, 83)
    assert found.values.tolist() == [(100 << 82) + 4950 - (1 << 83), -3, 0]


def test_many_partitions_are_released_in_parts(monkeypatch):
    rows = random_rows(random.Random(5), 300, 40)
    release = clipped_sum(shared=False, search=3.0)
    cells = cells_of(rows, release.measures, 40)
    whole = release.draw(cells.at(0), ZeroNoise())
    monkeypatch.setattr("beam_dp.mechanisms.metrics.clipped._CHUNK", 3 * (len(GRID) + 1))
    parts = release.draw(cells.at(0), ZeroNoise())
    for mine, theirs in zip(parts.columns, whole.columns, strict=True):
        assert np.array_equal(mine, theirs, equal_nan=True)
    assert len(release.draw(cells.part(0, 0).at(0), ZeroNoise()).values) == 0


UNITS = [ONE, Fraction(5), Fraction(1, 10**6), Fraction(1, 3), Fraction(0.01), Fraction(7, 2)]


@pytest.mark.parametrize("unit", [*UNITS, Fraction(1, 10**30 + 1)], ids=str)
def test_scale_gives_integers_or_the_nearest_floats(unit):
    for numbers in ([0, 1, -7, 123456789, (1 << 53) + 1], [1 << 90, -(1 << 140), 3], [], [-1]):
        column = np.empty(len(numbers), object)
        column[:] = numbers
        for form in (
            column,
            column.astype(np.int64) if all(abs(n) < 1 << 62 for n in numbers) else column,
        ):
            found = scale(form, unit).tolist()
            if unit.denominator == 1:
                assert found == [number * unit for number in numbers]
                assert all(type(value) is int for value in found)
            else:
                assert found == [float(number * unit) for number in numbers]
                assert all(type(value) is float for value in found)


BUDGETS = [Budget(1.0), Budget(Fraction(1, 7)), Budget.zcdp(0.5), Budget.zcdp(Fraction(1, 100))]


class Recording(ZeroNoise):
    """Zero noise that remembers what was asked for."""

    def __init__(self):
        object.__setattr__(self, "asked", [])

    def geometric(self, rate, size):
        self.asked.append(("geometric", rate, size))
        return super().geometric(rate, size)

    def discrete_laplace(self, rate, size):
        self.asked.append(("laplace", rate, size))
        return super().discrete_laplace(rate, size)

    def discrete_gaussian(self, variance, size):
        self.asked.append(("gaussian", variance, size))
        return super().discrete_gaussian(variance, size)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_the_noise_has_the_scale_of_the_sensitivity(budget):
    noise, adder = Recording(), AdditiveNoise(budget)
    clips = np.array([1, 8, 8, 1, 1 << 83], object)
    added = adder.add(np.array([5, 6, 7, 8, 9]), clips, noise)
    assert added.tolist() == [5, 6, 7, 8, 9]
    kind = "gaussian" if budget.is_zcdp else "laplace"
    for clip, size in ((1, 2), (8, 2), (1 << 83, 1)):
        amount = budget.amount
        asked = Fraction(clip**2) / (2 * amount) if budget.is_zcdp else amount / clip
        assert (kind, asked, size) in noise.asked
    assert len(noise.asked) == 3


def test_every_partition_has_noise_of_its_own():
    release = clipped_sum(True, True)
    noise = Recording()
    rows = random_rows(random.Random(6), 30, 4)
    drawn(release, rows, 4, 2, noise)
    assert noise.asked == [("laplace", Fraction(1, 4), 4)]  # once for both signs
    noisy = AdditiveNoise(Budget(1e-6)).add(np.zeros(50, np.int64), np.ones(50, np.int64), Noise())
    assert len(set(noisy.tolist())) > 40  # equal values have chance 50^2 / 10^6, 10 of them none


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("clip", [1, 64])
def test_the_error_bound_covers_the_noise_and_hardly_more(budget, clip):
    adder = AdditiveNoise(budget)
    bound = adder.bound(clip, ALPHA)
    if budget.is_zcdp:
        assert bound == gaussian_bound(Fraction(clip**2) / (2 * budget.amount), ALPHA)
        deviation = clip / math.sqrt(2 * budget.amount)
        # The mass of |k| <= bound, by the sum of the series.
        ks = np.arange(0, int(40 * deviation) + 2)
        mass = np.exp(-(ks**2) / (2 * deviation**2)) * np.where(ks == 0, 1, 2)
        tails = [mass[bound + 1 :].sum() / mass.sum(), mass[bound - 1 :].sum() / mass.sum()]
    else:
        q = math.exp(-budget.amount / clip)
        tails = [2 * q ** (t + 1) / (1 + q) for t in (bound, bound - 2)]
    assert tails[0] <= ALPHA * (1 + 1e-9) < tails[1] * 1.1
    assert ALPHA < Fraction(5, 100)


def test_the_expected_error_is_that_of_the_noise():
    for budget in BUDGETS:
        adder = AdditiveNoise(budget)
        if budget.is_zcdp:
            assert adder.name == "discrete Gaussian"
            assert adder.mean_error == pytest.approx(math.sqrt(1 / (math.pi * budget.amount)))
        else:
            assert adder.name == "discrete Laplace"
            assert adder.mean_error == adder.scale == pytest.approx(1 / float(budget.amount))


# ------------------------------------------------------------------------------ the interval


def lognormal(people: int, partitions: int, seed: int, signed: bool = False) -> list[Row]:
    """Return people with one number in each of some partitions."""
    generator = random.Random(seed)
    return [
        Row(
            (people * place + person, 0),
            (place, 0),
            (int(2 ** generator.gauss(3, 1)) * (generator.choice((1, -1)) if signed else 1),),
        )
        for place in range(partitions)
        for person in range(people)
    ]


WIDE = tuple(1 << power for power in range(30))


def coverage(release: ClippedSum, rows: list[Row], partitions: int, shrunk: float = 1.0) -> float:
    """Return in how many partitions the true sum is within the interval, by parts of its width."""
    found = release.draw(cells_of(rows, release.measures, partitions).at(0), Noise())
    truth = np.zeros(partitions)
    for row in rows:
        truth[row.partition[0]] += row.values[0]
    low = found.values - shrunk * found.below
    high = found.values + shrunk * found.above
    assert np.isfinite(found.values).all()
    return float(((low <= truth) & (truth <= high)).mean())


@pytest.mark.parametrize("signed", [False, True])
def test_the_interval_holds_the_truth_with_95_percent(signed):
    # Hoeffding over 200 partitions: the share is below 0.93 - t with at most 1e-10 for t = 0.24;
    # people above the highest shown bucket are estimated, hence 0.93. The twin has a 50th of it.
    release = clipped_sum(signed, False, search=1.0, noise=1.0, grid=WIDE)
    rows = lognormal(300, 200, 7, signed)
    tolerance = math.sqrt(math.log(1 / FALSE_ALARM) / (2 * 200))
    assert coverage(release, rows, 200) >= 0.93 - tolerance
    assert coverage(release, rows, 200, 0.02) < 0.93 - tolerance


def test_without_noise_the_interval_holds_what_is_cut():
    # 5,000 people, few of them above the clip: the truth is beyond the noise, and inside.
    release = clipped_sum(False, True, search=1.0, noise=0.01, grid=WIDE)
    rows = lognormal(5000, 1, 8)
    cells = cells_of(rows, [release.shared_measure], 1, shared=True)
    choice = release.choose_shared(cells.at(0), ZeroNoise())
    found = release.draw(cells_of(rows, release.measures, 1).at(0, choice), ZeroNoise())
    assert found.cut is not None
    whole = found.spread(found.cut.sums(found.values))
    truth = sum(row.values[0] for row in rows)
    assert found.values[0] < truth <= whole.high[0] and whole.low[0] <= truth
    cut = truth - found.values[0]
    assert whole.above[0] - found.above[0] >= 0.8 * cut  # the estimate of what is cut


def test_signed_numbers_lose_on_both_sides():
    release = clipped_sum(True, True, search=1.0, noise=0.01, grid=WIDE)
    rows = lognormal(4000, 1, 9, signed=True)
    cells = cells_of(rows, [release.shared_measure], 1, shared=True)
    choice = release.choose_shared(cells.at(0), ZeroNoise())
    assert choice.noisy.shape == (1, 2, len(WIDE) + 1)
    found = release.draw(cells_of(rows, release.measures, 1).at(0, choice), ZeroNoise())
    cut = found.cut
    assert cut.below[0] > 0 and cut.above[0] > 0
    index = int(release.choice.clips(choice, 100.0)[0])
    for sign, (lost, _) in ((1, cut.above), (-1, cut.below)):
        exact = sum(max(0, sign * row.values[0] - WIDE[index]) for row in rows)
        assert 0.7 * exact <= lost <= 3 * exact + 1000


def test_nobody_shown_is_no_sum_and_a_bound_for_rows():
    for shared in (True, False):
        total = clipped_sum(True, shared)
        rows = [Row((1, 0), (0, 0), (3,))]
        nobody = Choice(np.zeros((1, 2, len(GRID) + 1), np.int64), 0) if shared else None
        found = total.draw(cells_of(rows, total.measures, 2).at(0, nobody), ZeroNoise())
        assert np.isnan(found.values).all() and found.cut is None
        assert (found.low == -math.inf).all() and (found.high == math.inf).all()
        count = dataclasses.replace(clipped_sum(False, shared, source=ROWS), anchored=True)
        nobody = Choice(np.zeros((1, 1, len(GRID) + 1), np.int64), 0) if shared else None
        found = count.draw(cells_of(rows, count.measures, 2).at(0, nobody), ZeroNoise())
        assert found.values.tolist() == [1, 0] and (found.high == math.inf).all()
        assert found.low.tolist() == [1.0 - laplace_bound(1, ALPHA), -laplace_bound(1, ALPHA)]


def test_a_bound_on_rows_opens_the_interval():
    rows = random_rows(random.Random(4), 400, 2)
    for signed in (False, True):
        release = dataclasses.replace(clipped_sum(signed), bounded=True)
        found = drawn(release, rows, 2, 5)
        assert found.cut is None and (found.high == math.inf).all()
        assert (np.isfinite(found.low) == (not signed)).all()


def test_the_look_that_was_used_says_the_noise():
    looks, noises = (Budget(0.5), Budget(0.8)), (Budget(1.5), Budget(1.2))
    release = ClippedSum(0, False, GRID, ONE, looks, noises)
    assert [spending.cost for spending in release.spends] == [Budget(2)]
    assert [spending.cost for spending in release.spends_on_clip] == [Budget(0.8)]
    for look in (0, 1):
        noise = Recording()
        noisy = np.zeros((1, 1, len(GRID) + 1), np.int64)
        noisy[0, 0, 3] = 10**6
        view = cells_of(random_rows(random.Random(6), 30, 1), release.measures, 1)
        found = release.draw(view.at(0, Choice(noisy, look)), noise)
        rate = Fraction(noises[look].amount) / 8
        assert noise.asked == [("laplace", rate, 1)]
        assert found.above.tolist() == [float(laplace_bound(rate, ALPHA))]


def test_one_threshold_needs_no_choice_and_its_interval_is_the_noise():
    release = clipped_sum(False, True, search=None, grid=(5,))
    assert release.looks == () and release.shift == 0 and release.shared_measure is None
    found = release.draw(
        cells_of([Row((1, 0), (0, 0), (9,))], release.measures, 2).at(0), ZeroNoise()
    )
    assert found.values.tolist() == [5, 0] and found.cut is None
    assert found.above.tolist() == [float(laplace_bound(Fraction(1, 5), ALPHA))] * 2


@pytest.mark.parametrize("shared", [False, True])
def test_what_is_released_has_a_form_that_the_numbers_alone_decide(shared):
    # Whoever adds 2^119 widens the column of totals: a clip of 64 must leave no trace of it.
    release = clipped_sum(True, shared, search=2.0)
    rows = [Row((person, 0), (person % 3, 0), (40,)) for person in range(900)]
    more = [Row((900, 0), (0, 0), (1 << 119,)), Row((901, 0), (0, 0), (-(1 << 119),))]
    found = []
    for each in (rows, rows + more):
        clip = chosen(release, 6) if shared else None
        view = cells_of(each, release.measures, 3)
        found.append(release.draw(view.at(0, clip), ZeroNoise()))
    assert found[0].values.tolist() == found[1].values.tolist()
    for mine, theirs in zip(found[0].columns, found[1].columns, strict=True):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape


def test_released_numbers_are_multiples_of_the_unit():
    # Noise is drawn on the grid of units, and each number is the float nearest to its multiple.
    for unit in (Fraction(1, 4), Fraction(1, 10**6), Fraction(1, 3)):
        release = clipped_sum(True, unit=unit, noise=0.3)
        found = drawn(release, random_rows(random.Random(7), 300, 4), 4, 5, Noise())
        for value in found.values.tolist():
            assert value == float(round(Fraction(value) / unit) * unit)


@pytest.mark.parametrize("sign", [1, -1])
def test_an_extreme_without_noise_is_the_first_candidate_of_small_loss(sign):
    search = AboveThreshold(Budget(40.0))
    candidates = Candidates.linear(-300, 300, 5)
    theta = search._thresholds(candidates.size).theta
    generator = random.Random(8)
    rows = random_rows(generator, 60, 3)
    keep = search.cap(candidates.size) + 1
    measure = Measure(0, sign, (), keep, additive=False)
    release = DirectRelease(
        OneNumberEach(measure, ONE), search, candidates.mirrored() if sign < 0 else candidates
    )
    found = release.draw(cells_of(rows, release.measures, 3).at(0), ZeroNoise())
    for place in range(3):
        numbers = [s * sign for s in numbers_of(rows, place)]
        expected = next(y for y in range(-300, 301, 5) if sum(s > y for s in numbers) <= theta)
        assert found.values[place] == expected * sign


def test_a_one_sided_sum_is_below_the_true_one_by_its_largest_people():
    search = AboveThreshold(Budget(40.0))
    candidates = Candidates.linear(0, 5000, 1)
    theta = search._thresholds(candidates.size).theta
    rows = random_rows(random.Random(9), 60, 3)
    measure = Measure(0, 1, (), search.cap(candidates.size) + 1)
    release = DirectRelease(OneNumberEach(measure, Fraction(1, 2)), search, candidates)
    found = release.draw(cells_of(rows, release.measures, 4).at(0), ZeroNoise())
    for place in range(3):
        numbers = sorted(max(0, s) for s in numbers_of(rows, place))
        assert found.values[place] == math.ceil(sum(numbers[: len(numbers) - theta]) / 2)
    assert found.values[3] == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_the_lowest_default_candidate_is_no_number(sign):
    search = AboveThreshold(Budget(40.0))
    candidates = Candidates.linear(-30, 30, 5)
    measure = Measure(0, sign, (), search.cap(candidates.size) + 1, additive=False)
    release = DirectRelease(OneNumberEach(measure, ONE), search, candidates, blank=True)
    rows = [Row((person, 0), (0, 0), (7 * sign,)) for person in range(50)]
    found = release.draw(cells_of(rows, release.measures, 2).at(0), ZeroNoise())
    assert found.values[0] == 10 * sign and math.isnan(found.values[1])
