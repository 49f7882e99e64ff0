"""Releases are exact but for their noise, move by what they say, and stray no further.

Where noise is drawn it comes from the system, and the false alarm of a test is at most 1e-10 (DKW:
P(sup |F_n - F| > sqrt(ln(2 / a) / (2 n))) <= a).

Metrics that choose a clip: the public clips, the shares, and what is shared or apart.

Shares of rows: what a person moves at any clips, what they keep, and broken twins that fail.

The most frequent value by one clip: brute force over small databases and all their neighbours.

Numbers that share a draw: the joint law of what is released for neighbours, and what it costs.

"""

import dataclasses
import itertools
import math
import random
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.accounting.budget import Budget, cost_of_all
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Field
from beam_dp.mechanisms.candidates.decimal_grid import VALUE_CLIPS
from beam_dp.mechanisms.metrics import sums as releases
from beam_dp.mechanisms.metrics import values
from beam_dp.mechanisms.metrics.base import Context
from beam_dp.mechanisms.metrics.ratio import STEPS, ClippedShare
from beam_dp.mechanisms.metrics.released import ALPHA, Released
from beam_dp.mechanisms.metrics.sums import ClippedSum, Pool, draw_together, people_of
from beam_dp.mechanisms.noise import noise_on_several_sums
from beam_dp.mechanisms.noise.interval_widths import gaussian_bound, laplace_bound
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.noise.noise_on_several_sums import OneDraw
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics.integers import scale
from beam_dp.mechanisms.planning.builder import columns_of
from beam_dp.mechanisms.planning.program import compile_program
from beam_dp.mechanisms.summaries import histograms
from beam_dp.mechanisms.summaries.histograms import PEOPLE, ROWS, Part
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from tests.doubles import Asked, ZeroNoise
from tests.mechanisms.noise.test_noise_on_several_sums import law
from tests.reference import Row, table_of
from tests.relations import Row as PlainRow
from tests.relations import as_dicts, views

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


def clipped_sum(signed=True, search=1.0, noise=1.0, unit=ONE, grid=GRID, source=0):
    """Return a release; `search` None: only one threshold."""
    cost = None if search is None else Budget(search)
    return ClippedSum(source, signed, grid, unit, cost, Budget(noise))


def chosen(release: ClippedSum, clip: int) -> np.ndarray:
    """Return a histogram by which the clip is the one of this index: many people are there."""
    choice = release.choice
    noisy = np.zeros((1, choice.sides, choice.buckets), np.int64)
    noisy[0, 0, clip] = 10**6
    return choice.draw(noisy, ZeroNoise())


def drawn(release: ClippedSum, rows: list[Row], partitions: int, clip: int, noise=None) -> Released:
    """Return the numbers at a shared clip, before what is lost is shared out."""
    view = cells_of(rows, release.measures, partitions).at(0, chosen(release, clip))
    return release.draw(view, ZeroNoise() if noise is None else noise)


def released(release: ClippedSum, rows: list[Row], partitions: int, noise: Noise) -> Released:
    """Return the numbers of all partitions, at the clip that is drawn for them."""
    everybody = cells_of(rows, [release.shared_measure], 1, shared=True)
    choice = release.choose_shared(everybody.at(0), noise)
    found = release.draw(cells_of(rows, release.measures, partitions).at(0, choice), noise)
    return found if found.cut is None else found.spread(found.cut.sums(found.values))


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


def test_counts_of_rows_and_people_are_exact_without_noise():
    rows = random_rows(random.Random(4), 50, 3)
    release = clipped_sum(False, source=ROWS)
    found = drawn(release, rows, 3, 6)
    assert found.values.tolist() == [sum(row.partition[0] == p for row in rows) for p in range(3)]
    assert found.values.dtype == np.int64
    for source in (PEOPLE, 0):
        people = people_of(Context(()), Budget(1.0), source)
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


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_the_noise_has_the_scale_of_the_sensitivity(budget):
    noise, adder = Asked(), AdditiveNoise(budget)
    kind, amount = "gaussian" if budget.is_zcdp else "laplace", budget.amount
    for clip in (1, 8, 1 << 83):
        assert adder.add(np.array([5, 6]), clip, noise).tolist() == [5, 6]
        asked = Fraction(clip**2) / (2 * amount) if budget.is_zcdp else amount / clip
        assert noise.asked[-1] == (kind, asked, 2)
        exact = gaussian_bound if budget.is_zcdp else laplace_bound
        assert adder.bound(clip, ALPHA) == exact(asked, ALPHA)


def test_every_partition_has_noise_of_its_own():
    release = clipped_sum(True)
    noise = Asked()
    rows = random_rows(random.Random(6), 30, 4)
    drawn(release, rows, 4, 2, noise)
    assert noise.asked == [("laplace", Fraction(1, 4), 4)]  # once for both signs
    noisy = AdditiveNoise(Budget(1e-6)).add(np.zeros(50, np.int64), 1, Noise())
    assert len(set(noisy.tolist())) > 40  # equal values have chance 50^2 / 10^6, 10 of them none


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


def coverage(release: ClippedSum, samples: list[list[Row]], shrunk: float = 1.0) -> float:
    """Return how often the true sum is within the interval, by parts of its width."""
    held = []
    for rows in samples:
        found = released(release, rows, 1, Noise())
        truth = sum(row.values[0] for row in rows)
        [value], [below], [above] = found.values, found.below, found.above
        held.append(value - shrunk * below <= truth <= value + shrunk * above)
    return float(np.mean(held))


@pytest.mark.parametrize("signed", [False, True])
def test_the_interval_holds_the_truth_with_95_percent(signed):
    # Hoeffding over 200 releases: the share is below 0.93 - t with at most 1e-10 for t = 0.24;
    # people above the highest shown bucket are estimated, hence 0.93. The twin has a 50th of it.
    release = clipped_sum(signed, search=1.0, noise=1.0, grid=WIDE)
    samples = [lognormal(300, 1, seed, signed) for seed in range(200)]
    tolerance = math.sqrt(math.log(1 / FALSE_ALARM) / (2 * 200))
    assert coverage(release, samples) >= 0.93 - tolerance
    assert coverage(release, samples, 0.02) < 0.93 - tolerance


def test_nobody_shown_is_no_sum_and_a_bound_for_rows():
    total = clipped_sum(True)
    rows = [Row((1, 0), (0, 0), (3,))]
    nobody = np.zeros((1, 2, len(GRID) + 1), np.int64)
    found = total.draw(cells_of(rows, total.measures, 2).at(0, nobody), ZeroNoise())
    assert np.isnan(found.values).all() and found.cut is None
    assert (found.low == -math.inf).all() and (found.high == math.inf).all()
    count = dataclasses.replace(clipped_sum(False, source=ROWS), anchored=True)
    nobody = np.zeros((1, 1, len(GRID) + 1), np.int64)
    found = count.draw(cells_of(rows, count.measures, 2).at(0, nobody), ZeroNoise())
    assert found.values.tolist() == [1, 0] and (found.high == math.inf).all()
    assert found.low.tolist() == [1.0 - laplace_bound(1, ALPHA), -laplace_bound(1, ALPHA)]


@pytest.mark.parametrize("centre", [0, 3])
def test_nobody_shown_is_no_distance_but_from_a_centre_that_was_chosen(centre):
    """Where most people are at the centre, that is what is known. Of 0, noise was shown."""
    sums = dataclasses.replace(clipped_sum(True), folded=True, centre=centre)
    squares = dataclasses.replace(clipped_sum(False), totals=0, centre=centre)
    for release in (sums, squares):
        nobody = np.zeros((1, 1, len(GRID) + 1), np.int64)
        rows = [Row((1, 0), (0, 0), (3,))]
        found = release.draw(cells_of(rows, release.measures, 2).at(0, nobody), ZeroNoise())
        assert np.isnan(found.values).all() == (release is squares or not centre)
        assert (found.low == -math.inf).all() and (found.high == math.inf).all()


def test_a_bound_on_rows_opens_the_interval():
    rows = random_rows(random.Random(4), 400, 2)
    for signed in (False, True):
        release = dataclasses.replace(clipped_sum(signed), bounded=True)
        found = drawn(release, rows, 2, 5)
        assert found.cut is None and (found.high == math.inf).all()
        assert (np.isfinite(found.low) == (not signed)).all()


def test_one_threshold_needs_no_choice_and_its_interval_is_the_noise():
    release = clipped_sum(False, search=None, grid=(5,))
    assert release.clip_cost is None and release.shift == 0 and release.chooser is None
    found = release.draw(
        cells_of([Row((1, 0), (0, 0), (9,))], release.measures, 2).at(0), ZeroNoise()
    )
    assert found.values.tolist() == [5, 0] and found.cut is None
    assert found.above.tolist() == [float(laplace_bound(Fraction(1, 5), ALPHA))] * 2


def test_what_is_released_has_a_form_that_the_numbers_alone_decide():
    # Whoever adds 2^119 widens the column of totals: a clip of 64 must leave no trace of it.
    release = clipped_sum(True, search=2.0)
    rows = [Row((person, 0), (person % 3, 0), (40,)) for person in range(900)]
    more = [Row((900, 0), (0, 0), (1 << 119,)), Row((901, 0), (0, 0), (-(1 << 119),))]
    found = []
    for each in (rows, rows + more):
        found.append(drawn(release, each, 3, 6))
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


def built(metric, share=None, **options):
    """Return the release of a metric."""
    context = Context(columns_of([metric]), asker=type(metric).__name__, **options)
    return metric.build(context, share or dp.Budget(6.0))


@pytest.mark.parametrize(
    ("depth", "ends"),
    [(1, (1,)), (2, (1, 2)), (5, (1, 2, 4, 5)), (6, (1, 2, 4, 6)), (8, (1, 2, 4, 8))],
)
def test_row_clips_are_powers_of_two_up_to_the_bound(depth, ends):
    release = built(dp.Count(), depth=depth)
    assert releases.row_clips(depth) == ends == release.thresholds
    assert (release.clip_cost is None) == (depth == 1)
    assert releases.row_clips(None) == tuple(2**n for n in range(41))
    assert VALUE_CLIPS == tuple(2**n for n in range(84))


WEIGHED = (0, 1, 2, 5)
"""Indexes of clips: 1, 2, 4 and 32 rows."""
BUDGET = dp.Budget(1)


def numbers(per: str = "row") -> tuple[list[ClippedShare], tuple]:
    """Return the rows of the kind and the others, as a job releases them, and the fields."""
    program = compile_program([dp.Ratio("x", per=per)], BUDGET, 1)
    made = [step.release for step in program.steps]
    assert [type(each) for each in made] == [ClippedShare] * 2
    assert [each.rest for each in made] == [False, True]
    return [dataclasses.replace(each, pool=None, place=0) for each in made], program.fields


def in_steps(release: ClippedShare, fields: tuple, rows: list[Row], clip: int) -> int:
    """Return what is released without noise at the clip of an index, in steps of a row."""
    bounder = Bounder(ContributionBounds(None), fields, bytes(32))
    table = bounder.settle(bounder.prepare(table_of(rows)))
    summary = histograms.summarise(table, release.measures)
    view = PartitionView(summary, np.zeros(len(summary), np.int64), 1)
    choice = chosen(release, clip) if release.clip_cost else None
    [value] = release.draw(view.at(0, choice), ZeroNoise()).values
    exact = Fraction(float(value)) * STEPS
    assert exact.denominator == 1
    return int(exact)


def people(source: random.Random, size: int) -> list[Row]:
    """Return the rows of some people: of the kind, others, and without a value."""
    kinds = [source.choice([(1,), (0,), (1, 0), (1, 0, 0, 0, None), (None,)]) for _ in range(size)]
    return [
        Row((person, 0), (0, 0), (source.choice(kinds[person]),))
        for person in range(size)
        for _ in range(source.choice([1, 2, 3, 5, 40]))
    ]


def weighed(rows: list[Row], clip: int, rest: bool) -> int:
    """Return, by the definition, what all people count for, in steps."""
    counts: dict = defaultdict(lambda: [0, 0])
    for row in rows:
        if row.values[0] is not None:
            counts[row.person][row.values[0]] += 1
    total = 0
    for zeros, ones in counts.values():
        whole, part = zeros + ones, zeros if rest else ones
        # Below the clip everybody keeps each row; above it their share of the clip, rounded down.
        total += part * STEPS if whole <= clip else part * STEPS // whole * clip
    return total


def test_people_count_for_their_rows_or_for_their_share_of_the_clip() -> None:
    source = random.Random(11)
    released, fields = numbers()
    for _ in range(60):
        rows = people(source, source.randrange(1, 7))
        for release, clip in itertools.product(released, WEIGHED):
            found = in_steps(release, fields, rows, clip)
            assert found == weighed(rows, 1 << clip, release.rest)


def moves_at_most_the_clip() -> bool:
    """A person moves each number by 0 to C, whatever the clip of the other is."""
    source = random.Random(12)
    released, fields = numbers()
    reached = set()
    for _ in range(40):
        rows = people(source, source.randrange(2, 6))
        fewer = [row for row in rows if row.person != (0, 0)]
        moved = [
            {
                clip: in_steps(each, fields, rows, clip) - in_steps(each, fields, fewer, clip)
                for clip in WEIGHED
            }
            for each in released
        ]
        for one, other in itertools.product(WEIGHED, WEIGHED):
            sides = moved[0][one], moved[1][other]
            for move, clip in zip(sides, (one, other), strict=True):
                if not 0 <= move <= STEPS << clip:
                    return False
                reached.add(move == STEPS << clip)
    return True in reached


def keeps_the_share() -> bool:
    """The number of the kind is a_i / b_i of what a person counts for, within 1 / 1024."""
    released, fields = numbers()
    source = random.Random(13)
    for _ in range(40):
        whole = source.randrange(1, 90)
        part = source.randrange(whole + 1)
        rows = [Row((7, 0), (0, 0), (int(place < part),)) for place in range(whole)]
        for clip in WEIGHED:
            counted = min(whole, 1 << clip)
            for release, mine in zip(released, (part, whole - part), strict=True):
                found = Fraction(in_steps(release, fields, rows, clip), STEPS * counted)
                if not Fraction(mine, whole) - Fraction(1, STEPS) < found <= Fraction(mine, whole):
                    return False
    return True


@pytest.mark.parametrize("values", [(1, 1, 1), (0, 0), (1, 0, None), (None,), (0, 1) * 30])
def test_of_people_each_is_on_one_side(values: tuple) -> None:
    released, fields = numbers("person")
    rows = [Row((1, 0), (0, 0), (value,)) for value in values]
    known = any(value is not None for value in values)
    expected = [known and 1 in values, known and 1 not in values]
    assert [in_steps(each, fields, rows, 0) for each in released] == [STEPS * e for e in expected]


# ------------------------------------------------------------------------------------- broken twins


def _clip_one_larger(self, view, indexes, clip):
    shares = view.above(1, indexes) * (clip // STEPS + 1)
    return view.cut(0, indexes)[0] * STEPS + shares


def _unweighed(self, view, indexes, clip):
    return (view.cut(0, indexes)[0] + view.above(0, indexes)) * STEPS


def _rest_is_all(self, table, present, whole):
    part = np.clip(table.values[self.field][present], 0, whole)
    part = whole if self.rest else part
    return part * self.steps // whole if self.steps else part


def _rounded_up(self, table, present, whole):
    part = np.clip(table.values[self.field][present], 0, whole)
    part = whole - part if self.rest else part
    return -(-part * self.steps // whole) if self.steps else part


@pytest.mark.parametrize(
    ("owner", "name", "broken", "check"),
    [
        (ClippedShare, "_clipped", _clip_one_larger, moves_at_most_the_clip),
        (ClippedShare, "_clipped", _unweighed, moves_at_most_the_clip),
        (Part, "of", _rest_is_all, keeps_the_share),
        (Part, "of", _rounded_up, keeps_the_share),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_broken_twin_is_noticed(monkeypatch, owner, name, broken, check) -> None:
    assert check()
    monkeypatch.setattr(owner, name, broken)
    assert not check()


PROGRAM = compile_program([dp.MaxFrequency("item")], dp.Budget(2.0), 1, partitions=1)
[STEP] = PROGRAM.steps
CLIPS = (0, 1, 3)
"""The indexes of the clips 1, 2 and 4: 3 is among them."""
# What a person can have: how many rows of each of three values.
KINDS = [kind for kind in itertools.product((0, 1, 3), (0, 2), (0, 5)) if any(kind)]
SMALL = [
    people
    for size in range(3)
    for people in itertools.combinations_with_replacement(range(len(KINDS)), size)
]


@pytest.mark.parametrize(("numbers", "share"), [([5] * 2000, "7/10"), ([5] * 9, "6/10")])
def test_what_two_looks_leave_goes_to_the_noise(numbers, share):
    # Of one partition: 5 is a round number, at which people end if they are many.
    release = built(dp.Sum("v", unit=1), dp.Budget(10.0), partitions=1)
    rows = [Row((person, 0), (0, 0), (number,)) for person, number in enumerate(numbers)]
    everybody = cells_of(rows, [release.shared_measure], 1, shared=True)
    choice, asked = release.choose_shared(everybody.at(0), ZeroNoise()), Asked()
    found = release.draw(cells_of(rows, release.measures, 1).at(0, choice), asked)
    clip = 5 if share == "7/10" else 8
    assert asked.asked == [("laplace", 10 * Fraction(share) / clip, 1)]
    told = release.told(choice, [])
    assert Fraction(told["cost_of_the_noise_per_partition"]) == 10 * Fraction(share)
    assert [look["scale"] for look in told["histograms"]] == [0.4, 2.0 if clip == 5 else 0.25]
    # Of several partitions, and under zCDP, there is one look at octaves.
    several = built(dp.Sum("v", unit=1), dp.Budget(10.0), partitions=2)
    gaussian = built(dp.Sum("v", unit=1), dp.Budget.zcdp(0.1), partitions=1)
    assert several.thresholds == gaussian.thresholds == VALUE_CLIPS != release.thresholds
    assert found.values.tolist() == [sum(numbers)]


def rows_of(people) -> list[PlainRow]:
    return [
        PlainRow(number, 1, item="abc"[place])
        for number, kind in enumerate(people)
        for place, count in enumerate(KINDS[kind])
        for _ in range(count)
    ]


def statistics(people) -> list[float]:
    """Return what the release adds noise to, for each clip."""
    if not people:
        return [0.0] * len(CLIPS)
    found = []
    for cells, _ in views(as_dicts(rows_of(people)), PROGRAM):
        buckets = STEP.release.choice.buckets
        for clip in CLIPS:
            people = np.zeros((1, 1, buckets), np.int64)
            people[0, 0, clip] = 10**6
            noisy = STEP.release.choice.draw(people, ZeroNoise())
            [drawn] = PROGRAM.release(cells, (noisy,), ZeroNoise())
            found.append(float(drawn.values[0]))
    return found


def sums(people) -> np.ndarray:
    return np.array([KINDS[kind] for kind in people]).reshape(-1, 3)


@pytest.fixture(scope="module")
def known() -> dict:
    return {people: statistics(people) for people in SMALL}


def test_everybody_counts_for_at_most_the_clip_of_each_value(known):
    for people, found in known.items():
        for clip, value in zip((1, 2, 4), found, strict=True):
            own = sums(people)
            assert value == np.minimum(own, clip).sum(axis=0).max(initial=0)
            most = own.max(axis=1, initial=0)
            truth = own.sum(axis=0).max(initial=0)
            assert value <= truth <= value + np.maximum(most - clip, 0).sum()


def worst_move(known) -> float:
    """Return the largest move by a person more, in clips; the least is checked to be 0 or more."""
    worst = 0.0
    for people in (each for each in SMALL if len(each) < 2):
        for kind in range(len(KINDS)):
            more = tuple(sorted((*people, kind)))
            for clip, one, other in zip((1, 2, 4), known[people], known[more], strict=True):
                assert other >= one
                worst = max(worst, (other - one) / clip)
    return worst


def test_a_person_more_moves_it_by_0_to_the_clip(known):
    assert worst_move(known) == 1


def every_row(lines, cap):
    """A mutant: nobody is clipped."""
    return int(np.bincount(np.unique(lines.items, return_inverse=True)[1], lines.counts).max())


def several_values(lines, cap):
    """A mutant: a person counts for the clip with each of their values, in one number."""
    return int(np.minimum(lines.counts, cap).sum())


@pytest.mark.parametrize("mutant", [every_row, several_values])
def test_broken_statistics_are_noticed(mutant, monkeypatch):
    monkeypatch.setattr(values, "_most_rows", mutant)
    assert worst_move({people: statistics(people) for people in SMALL}) > 1


WINDOW = 9
CROWD = [Row((person, 0), (0, 0), (person - 2,)) for person in range(5)]
PERSONS = [(1,), (-9,), (9, 9), (0,), (2, -1, 4)]


def pool(*costs: Fraction) -> list[ClippedSum]:
    """Return a count of rows, a sum and a number of people, with given clips, in one pool."""
    budgets = [Budget(cost) for cost in costs]
    count = ClippedSum(ROWS, False, (2,), Fraction(1), None, budgets[0])
    total = ClippedSum(0, True, (3,), Fraction(1), None, budgets[1])
    numbers = [count, total, people_of(Context(()), budgets[2])]
    shared = Pool(cost_of_all(budgets), tuple(number.signed for number in numbers))
    return [
        dataclasses.replace(number, pool=shared, place=place)
        for place, number in enumerate(numbers)
    ]


def worst_of_pool(epsilon: Fraction) -> float:
    """Return the largest |log ratio| of the joint law when a person is added, by enumeration."""
    asked: list[OneDraw] = []

    class Recorded(OneDraw):
        def draw(self, noise, size=1):
            asked.append(self)
            return super().draw(noise, size)

    def totals(rows):
        views = [cells_of(rows, number.measures, 1).at(0) for number in numbers]
        released = draw_together(numbers, views, ZeroNoise())
        return np.array([int(each.values[0]) for each in released])

    numbers, worst = pool(epsilon / 2, epsilon / 4, epsilon / 4), 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(releases, "OneDraw", Recorded)
        before = totals(CROWD)
        for values in PERSONS:
            added = [Row((99, 0), (0, 0), (value,)) for value in values]
            move = totals(CROWD + added) - before
            first, last = asked[0], asked[-1]
            assert first == last and first.budget == Budget(epsilon)  # the noise is of no data
            sides = tuple(zip(first.clips, first.signed, strict=True))
            chances = np.zeros((2 * WINDOW + 1,) * 3)
            moving = [place for place, (clip, _) in enumerate(sides) if clip]
            hull = noise_on_several_sums._hull(epsilon, tuple(sides[place] for place in moving))
            at = tuple(slice(None) if place in moving else WINDOW for place in range(3))
            chances[at] = law(hull, WINDOW)
            here = tuple(slice(max(0, -m), 2 * WINDOW + 1 - max(0, m)) for m in move.tolist())
            there = tuple(slice(max(0, m), 2 * WINDOW + 1 - max(0, -m)) for m in move.tolist())
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.abs(np.log(chances[here]) - np.log(chances[there]))
            worst = max(worst, float(np.nan_to_num(ratio, nan=0.0, posinf=np.inf).max()))
    return worst


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_one_more_person_changes_the_joint_law_by_at_most_epsilon(epsilon: Fraction) -> None:
    worst = worst_of_pool(epsilon)
    assert 0.999 * epsilon < worst <= epsilon * (1 + 1e-9)


def noise_of_smaller_clips(self, totals, clips, noise):
    """Draw noise for clips that are one too small."""
    return ADD(self, totals, [max(each - 1, 0) for each in clips], noise)


ADD = Pool.add
