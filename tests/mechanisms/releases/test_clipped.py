"""Releases are exact but for their noise, move by what they say, and stray no further.

Where noise is drawn it comes from the system, and the false alarm of a test is at most 1e-10 (DKW:
P(sup |F_n - F| > sqrt(ln(2 / a) / (2 n))) <= a).
"""

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
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.noise.tails import gaussian_bound, laplace_bound
from beam_dp.mechanisms.numerics.integers import scale
from beam_dp.mechanisms.profiles.from_summaries import Profiled
from beam_dp.mechanisms.releases import clipped
from beam_dp.mechanisms.releases.clipped import CLIP_BETA, ClippedSum
from beam_dp.mechanisms.releases.released import ALPHA, EVIDENCE_ALPHA, OVERSHOOT, PeopleRelease
from beam_dp.mechanisms.releases.shifted_inverse import DirectRelease
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.summaries import histograms
from beam_dp.mechanisms.summaries.histograms import PEOPLE, ROWS, Measure
from beam_dp.mechanisms.summaries.partition_view import Cells
from tests.doubles import ZeroNoise
from tests.reference import Row, table_of

GRID = tuple(1 << power for power in range(7))
FALSE_ALARM = 1e-10
ONE = Fraction(1)


def cells_of(rows: list[Row], measures, partitions: int, shared: bool = False) -> Cells:
    """Return the summary of rows seen from partitions 0, 1, ..., or over all of them."""
    bounder = Bounder(ContributionBounds(None), (Field(0, "sum"),), b"key")
    table = bounder.settle(bounder.prepare(table_of(rows)))
    if shared:
        summary = histograms.summarise_people(table, measures)
        return Cells(summary, np.zeros(len(summary), np.int64), 1)
    summary = histograms.summarise(table, measures)
    return Cells(summary, summary.partition[0].astype(np.int64), partitions)


def clipped_sum(signed=True, shared=True, search=1.0, noise=1.0, unit=ONE, grid=GRID, source=0):
    """Return a release; `search` None: only one threshold."""
    cost = None if search is None else Budget(search)
    return ClippedSum(source, signed, grid, unit, cost, Budget(noise), shared)


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
        found = release.release(cells_of(rows, release.measures, 3), 0, clip, ZeroNoise())
        low = -GRID[clip] if signed else 0
        for place in range(3):
            exact = sum(max(low, min(s, GRID[clip])) for s in numbers_of(rows, place))
            assert found.values[place] == float(exact * unit)


@pytest.mark.parametrize("shared", [False, True])
def test_without_noise_the_clip_is_the_first_that_cuts_at_most_theta_people(shared):
    generator = random.Random(2)
    release = clipped_sum(True, shared, search=40.0)
    theta = release.search._thresholds(len(GRID)).theta
    assert 0 <= theta < 5
    for _ in range(20):
        rows = random_rows(generator, 30, 2, generator.choice((3, 20, 90)))
        clip = None
        people = [numbers_of(rows, place) for place in range(2)]
        if shared:
            cells = cells_of(rows, [release.shared_measure], 1, shared=True)
            clip = release.choose_shared(cells, 0, ZeroNoise())
            assert clip == first_clip(largest_of(rows), theta)
        found = release.release(cells_of(rows, release.measures, 2), 0, clip, ZeroNoise())
        for place, numbers in enumerate(people):
            y = GRID[clip if shared else first_clip(numbers, theta)]
            assert found.values[place] == sum(max(-y, min(s, y)) for s in numbers)


def largest_of(rows: list[Row]) -> list[int]:
    """Return each person's largest magnitude of a total in any partition."""
    totals: dict = {}
    for row in rows:
        key = row.person, row.partition
        totals[key] = totals.get(key, 0) + (row.values[0] or 0)
    people = {person for person, _ in totals}
    return [max(abs(s) for (who, _), s in totals.items() if who == person) for person in people]


def first_clip(numbers: list[int], theta: int) -> int:
    """Return the first threshold that at most theta people exceed, the last if there is none."""
    passing = (j for j, y in enumerate(GRID) if sum(abs(s) > y for s in numbers) <= theta)
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
        release.release(cells_of(part, release.measures, 10_000), 0, clip, ZeroNoise()).values
        for part in (rows, [row for row in rows if row.person[0] % 6])
    )
    return more - less


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("clip", [0, 4])
def test_one_person_moves_the_clipped_sum_by_at_most_the_clip(signed, clip):
    moves = moves_of_neighbours(signed, clip)
    assert moves.max() == GRID[clip]  # never more, and the bound is reached
    assert moves.min() == (-GRID[clip] if signed else 0)


def test_the_test_of_the_movement_notices_a_forgotten_clip(monkeypatch):
    def whole(cells, measure, places, clip):
        return cells.cut(measure, np.full(cells.size, len(GRID)))[0]

    monkeypatch.setattr(clipped, "_clip", whole)
    assert moves_of_neighbours(True, 4).max() > GRID[4]


def test_counts_of_rows_and_people_are_exact_without_noise():
    rows = random_rows(random.Random(4), 50, 3)
    release = clipped_sum(False, source=ROWS)
    found = release.release(cells_of(rows, release.measures, 3), 0, 6, ZeroNoise())
    assert found.values.tolist() == [sum(row.partition[0] == p for row in rows) for p in range(3)]
    assert found.values.dtype == np.int64
    for source in (PEOPLE, 0):
        people = PeopleRelease(Budget(1.0), source)
        found = people.release(cells_of(rows, people.measures, 3), 0, None, ZeroNoise())
        expected = [
            sum(source == PEOPLE or number > 0 for number in numbers_of(rows, place))
            for place in range(3)
        ]
        assert found.values.tolist() == expected
        assert found.errors.tolist() == [float(laplace_bound(1, ALPHA))] * 3


def test_huge_sums_are_exact():
    grid = tuple(1 << power for power in range(84))
    release = clipped_sum(True, grid=grid)
    rows = [Row((person, 0), (0, 0), ((1 << 82) + person,)) for person in range(100)]
    rows += [Row((200, 0), (0, 0), (-(1 << 119),)), Row((201, 0), (1, 0), (-3,))]
    found = release.release(cells_of(rows, release.measures, 3), 0, 83, ZeroNoise())
    assert found.values.tolist() == [(100 << 82) + 4950 - (1 << 83), -3, 0]


def test_many_partitions_are_released_in_parts(monkeypatch):
    rows = random_rows(random.Random(5), 300, 40)
    release = clipped_sum()
    cells = cells_of(rows, release.measures, 40)
    whole = release.release(cells, 0, 5, ZeroNoise())
    monkeypatch.setattr("beam_dp.mechanisms.releases.clipped._CHUNK", 3 * (len(GRID) + 1))
    parts = release.release(cells, 0, 5, ZeroNoise())
    assert (parts.values == whole.values).all() and (parts.errors == whole.errors).all()
    assert len(release.release(cells.part(0, 0), 0, 5, ZeroNoise()).values) == 0


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
    release.release(cells_of(rows, release.measures, 4), 0, 2, noise)
    assert noise.asked == [("laplace", Fraction(1, 4), 4)]  # once for both signs
    drawn = AdditiveNoise(Budget(1e-6)).add(np.zeros(50, np.int64), np.ones(50, np.int64), Noise())
    assert len(set(drawn.tolist())) > 40  # equal values have chance 50^2 / 10^6, 10 of them none


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
    assert ALPHA + Fraction(CLIP_BETA) + Fraction(OVERSHOOT) <= Fraction(5, 100)


def test_the_expected_error_is_that_of_the_noise():
    for budget in BUDGETS:
        adder = AdditiveNoise(budget)
        if budget.is_zcdp:
            assert adder.name == "discrete Gaussian"
            assert adder.mean_error == pytest.approx(math.sqrt(1 / (math.pi * budget.amount)))
        else:
            assert adder.name == "discrete Laplace"
            assert adder.mean_error == adder.scale == pytest.approx(1 / float(budget.amount))


def coverage(release: ClippedSum, partitions: int, divide: float) -> float:
    """Return how often the sum cut for at most `shift` people is within the error bound."""
    generator = random.Random(7)
    rows = [
        Row((1000 * place + person, 0), (place, 0), (int(2 ** generator.uniform(0, 5)),))
        for place in range(partitions)
        for person in range(120)
    ]
    found = release.release(cells_of(rows, release.measures, partitions), 0, None, Noise())
    assert np.isfinite(found.errors).mean() > 0.9
    covered = 0
    for place, (value, error) in enumerate(zip(found.values, found.errors, strict=True)):
        numbers = [row.values[0] for row in rows[120 * place : 120 * place + 120]]
        sums = [
            sum(min(s, y) for s in numbers)
            for y in GRID
            if sum(s > y for s in numbers) <= release.shift
        ]
        covered += any(abs(value - total) <= error / divide for total in sums)
    return covered / partitions


def test_the_error_bound_holds_with_95_percent():
    # Hoeffding over 800 partitions: the share is below 0.95 - t with at most 1e-10 for t = 0.12.
    # The broken twin states a sixth of the bounds.
    release = clipped_sum(True, False, search=6.0, noise=0.3)
    assert release.shift < 15
    tolerance = math.sqrt(math.log(1 / FALSE_ALARM) / (2 * 800))
    assert coverage(release, 800, 1) >= 0.95 - tolerance
    assert coverage(release, 800, 6) < 0.95 - tolerance


@pytest.mark.parametrize("shared", [False, True])
def test_people_are_shown_by_what_is_beyond_the_noise(shared):
    release = clipped_sum(False, shared, search=2.0, noise=1.0, grid=(4, 8))
    adder = AdditiveNoise(Budget(1.0))
    shift, bound = release.shift, adder.bound(4, ALPHA)
    assert shift > 5
    # People of 4 each: at the edge the sum is 4 shift beyond the noise, not more.
    edge = shift + (adder.bound(4, EVIDENCE_ALPHA) if shared else bound) // 4
    for people, enough in ((1, False), (edge, False), (edge + 1, True), (5 * edge, True)):
        rows = [Row((person, 0), (0, 0), (4,)) for person in range(people)]
        clip = 0 if shared else None
        found = release.release(cells_of(rows, release.measures, 1), 0, clip, ZeroNoise())
        assert found.values[0] == 4 * people
        assert not shared or (found.shown > shift) == enough
        # Where the clip is shared the numbers of all partitions are judged, by the program.
        assert found.errors[0] == (bound if enough or shared else math.inf)


def test_one_threshold_needs_no_search_and_its_bound_is_always_finite():
    release = clipped_sum(False, True, search=None, grid=(5,))
    assert release.search is None and release.shift == 0 and release.shared_measure is None
    found = release.release(
        cells_of([Row((1, 0), (0, 0), (9,))], release.measures, 2), 0, None, ZeroNoise()
    )
    assert found.values.tolist() == [5, 0]
    assert found.errors.tolist() == [float(laplace_bound(Fraction(1, 5), ALPHA))] * 2


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
        Profiled(measure, ONE), search, candidates.mirrored() if sign < 0 else candidates
    )
    found = release.release(cells_of(rows, release.measures, 3), 0, None, ZeroNoise())
    for place in range(3):
        numbers = [s * sign for s in numbers_of(rows, place)]
        expected = next(y for y in range(-300, 301, 5) if sum(s > y for s in numbers) <= theta)
        assert found.values[place] == expected * sign
    assert set(found.errors.tolist()) == {float(search.shift(candidates.size))}


def test_a_one_sided_sum_is_below_the_true_one_by_its_largest_people():
    search = AboveThreshold(Budget(40.0))
    candidates = Candidates.linear(0, 5000, 1)
    theta = search._thresholds(candidates.size).theta
    rows = random_rows(random.Random(9), 60, 3)
    measure = Measure(0, 1, (), search.cap(candidates.size) + 1)
    release = DirectRelease(Profiled(measure, Fraction(1, 2)), search, candidates)
    found = release.release(cells_of(rows, release.measures, 4), 0, None, ZeroNoise())
    for place in range(3):
        numbers = sorted(max(0, s) for s in numbers_of(rows, place))
        assert found.values[place] == math.ceil(sum(numbers[: len(numbers) - theta]) / 2)
    assert found.values[3] == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_the_lowest_default_candidate_is_no_number(sign):
    search = AboveThreshold(Budget(40.0))
    candidates = Candidates.linear(-30, 30, 5)
    measure = Measure(0, sign, (), search.cap(candidates.size) + 1, additive=False)
    release = DirectRelease(Profiled(measure, ONE), search, candidates, blank=True)
    rows = [Row((person, 0), (0, 0), (7 * sign,)) for person in range(50)]
    found = release.release(cells_of(rows, release.measures, 2), 0, None, ZeroNoise())
    assert found.values[0] == 10 * sign and math.isnan(found.values[1])
