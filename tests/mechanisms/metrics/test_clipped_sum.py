"""One clip of a person's vector: exact but for its noise, moved by what it says, and no further.

Where noise is drawn it comes from the system, and the false alarm of a test is at most 1e-10.

The clip, by its definition in Python integers, and for hostile vectors; one partition; intervals;
what is given back; the box; shares of rows; numbers that share a draw, by their joint law.
"""

import dataclasses
import itertools
import math
import random
from collections import Counter
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.accounting.budget import Budget, cost_of_all
from beam_dp.mechanisms.bounding.table import Column, Field, Role
from beam_dp.mechanisms.candidates.decimal_grid import VALUE_CLIPS
from beam_dp.mechanisms.histogram_choice.clip_choice import ClipChoice, clip_share_of_norm
from beam_dp.mechanisms.metrics.additive import additive_release
from beam_dp.mechanisms.metrics.additive.additive_release import (
    FINE,
    STEPS,
    AdditiveRelease,
    Limits,
    clipped_sum,
    draw_jointly,
    people_release,
)
from beam_dp.mechanisms.metrics.additive.shared_clip import row_clips
from beam_dp.mechanisms.metrics.base import Context
from beam_dp.mechanisms.metrics.ratio import Others, Share
from beam_dp.mechanisms.metrics.released import ALPHA, Released
from beam_dp.mechanisms.noise import noise_on_a_sum, noise_on_several_sums
from beam_dp.mechanisms.noise.interval_widths import gaussian_bound, laplace_bound
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise, JointNoise
from beam_dp.mechanisms.noise.noise_on_several_sums import OneDraw
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.summaries import histograms
from beam_dp.mechanisms.summaries.histograms import PEOPLE, ROWS, Measure
from tests.doubles import Asked, ZeroNoise
from tests.mechanisms.noise.test_noise_on_several_sums import law
from tests.reference import Row, of_everybody, of_places, settled

GRID = tuple(1 << power for power in range(7))
FALSE_ALARM = 1e-10
ONE = Fraction(1)
PURE, ZCDP = Budget(2), Budget.zcdp(Fraction(1, 2))
BUDGETS = pytest.mark.parametrize("budget", [PURE, ZCDP], ids=["L1", "L2"])
FIELDS = (Field(0, "sum"), Field(0, "count"))


def view_of(rows: list[Row], measures, partitions: int, fields=FIELDS):
    """Return the summary of rows seen from partitions 0, 1, ..."""
    return of_places(settled(rows, fields), measures, partitions)


def choice_of(release: AdditiveRelease, rows: list[Row], noise: Noise | None = None, fields=FIELDS):
    """Return the histogram by which the clip is chosen, over all partitions."""
    everybody = of_everybody(settled(rows, fields), [release.measure])
    return release.clip.choose(everybody.at(0), noise or ZeroNoise())


def made(signed=True, budget=PURE, partitions=1, source=0, clips=GRID, unit=ONE, **more):
    """Return the release of a sum of values, or of a number of rows."""
    measure = Measure(source, sign=0 if signed else 1, thresholds=clips)
    anchored = source == ROWS
    context = Context((), partitions=partitions)
    found = clipped_sum(context, budget, measure, unit, anchored=anchored, **more)
    if found.clip is None or clips == VALUE_CLIPS:
        return found
    # One histogram of octaves; two histograms, and round numbers, have tests of their own.
    octaves = dataclasses.replace(found.measure, thresholds=found.clip.choice.edges)
    choice = ClipChoice(found.clip.choice.cost, octaves.thresholds, 1 + signed, anchored)
    return with_measure(found, octaves, choice)


def with_measure(release, measure, choice=None) -> AdditiveRelease:
    """Return the release of another measure, whose clip is chosen in the same way or another."""
    total, clip = dataclasses.replace(release.contribution, measure=measure), release.clip
    if clip is not None:
        clip = dataclasses.replace(clip, measure=measure, choice=choice or clip.choice)
    return dataclasses.replace(release, contribution=total, clip=clip)


def chosen(release: AdditiveRelease, clip: int) -> np.ndarray:
    """Return a histogram by which the clip is the one of this index: many people are there."""
    choice = release.clip.choice
    noisy = np.zeros((1, choice.sides, choice.buckets), np.int64)
    noisy[0, 0, clip] = 1 << 60
    return choice.draw(noisy, ZeroNoise())


def drawn(
    release: AdditiveRelease, rows: list[Row], partitions: int, clip: int, noise=None
) -> Released:
    """Return the numbers at a shared clip, before what is lost is shared out."""
    view = view_of(rows, release.measures, partitions)
    view = view.at(0, chosen(release, clip))
    view = view if release.measure.steps > 1 else view.among(1)  # each apart, as if there were one
    return release.draw(view, ZeroNoise() if noise is None else noise)


def released(release: AdditiveRelease, rows: list[Row], partitions: int, noise: Noise) -> Released:
    """Return the numbers of all partitions, at the clip that is drawn for them."""
    choice = choice_of(release, rows, noise)
    found = release.draw(view_of(rows, release.measures, partitions).at(0, choice), noise)
    return found if found.loss is None else found.spread(found.loss.sums(found.values))


def random_rows(generator: random.Random, people: int, partitions: int, most=90) -> list[Row]:
    return [
        Row((person, 0), (generator.randrange(partitions), 0), (generator.randrange(-most, most),))
        for person in range(people)
        for _ in range(generator.randrange(1, 4))
    ]


def vectors_of(rows: list[Row], source: int = 0) -> dict[tuple, Counter]:
    """Return what each person has in each partition, in units."""
    found: dict[tuple, Counter] = {}
    for row in rows:
        size = 1 if source == ROWS else row.values[0] or 0
        found.setdefault(row.person, Counter())[row.partition[0]] += size
    return found


# ---------------------------------------------------------------------------------- the clip


def totals(release: AdditiveRelease, rows: list[Row], partitions: int, clip: int, fields=FIELDS):
    """Return the clipped totals as they are before the noise, in units, exactly."""
    view = view_of(rows, release.measures, partitions, fields=fields)
    choice = chosen(release, clip) if release.clip else None
    taken = release.clipped(view.at(0, choice).among(1))
    assert taken.index == clip
    return [Fraction(int(total), taken.grid * release.measure.fine) for total in taken.totals]


def by_hand(vector: list[int], clip: Fraction, norm: int) -> list[Fraction]:
    """Return what a person adds: their numbers, or their shares of the clip, in so many steps."""
    size = sum(abs(number) ** norm for number in vector)
    # An L2 norm is rounded up to a whole number of units; these are small.
    whole = size if norm == 1 or not size else math.isqrt(size - 1) + 1
    if whole <= clip:
        return list(map(Fraction, vector))
    return [
        (1 if number > 0 else -1) * Fraction(STEPS * abs(number) // whole, STEPS) * clip
        for number in vector
    ]


@BUDGETS
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("source", [0, ROWS])
def test_people_keep_what_they_have_up_to_the_clip_and_else_their_share_of_it(
    budget, signed, source
) -> None:
    generator = random.Random(1)
    release = made(signed, budget, partitions=4, source=source)
    norm, fine = release.measure.norm, release.measure.fine
    assert norm == (2 if budget.is_zcdp else 1) and fine == (FINE if norm == 2 and source else 1)
    rows = random_rows(generator, 30, 4)
    for clip, edge in enumerate(release.measure.thresholds):
        expected = [Fraction(0)] * 4
        for vector in vectors_of(rows, source).values():
            numbers = [fine * vector[at] for at in range(4)]
            numbers = [number if signed else max(number, 0) for number in numbers]
            for at, part in enumerate(by_hand(numbers, Fraction(edge), norm)):
                expected[at] += part / fine
        assert totals(release, rows, 4, clip) == expected


def hostile() -> list[Row]:
    """Return people of any size in 3 partitions: one has numbers beyond 64 bits, some both signs."""
    generator, sizes = random.Random(1), (1, 3, 1 << 30, (1 << 42) + 1, (1 << 62) - 1, 1 << 100)
    rows = []
    for person, kind in enumerate(itertools.product(sizes, "abc")):
        most, alike = kind[0], kind[1] == "a"
        rows += [
            Row((person, 0), (at, 0), ((1 if alike else generator.choice((1, -1))) * number,))
            for at in range(3 if kind[1] < "c" else 1)
            for number in [most if alike else generator.randint(1, most)]
        ]
    return rows


def moves_no_more(budget: Budget, partitions: int) -> None:
    """Alone nobody is beyond the clip, and nobody changes what another adds: at any clip."""
    clips = (1, 8, 3 << 20, 1 << 45, (1 << 62) - 1, 1 << 80)
    release, reached = made(True, budget, partitions, clips=clips), set()
    norm = release.measure.norm
    rows = [row for row in hostile() if row.partition[0] < partitions]
    for clip in range(0, len(release.measure.thresholds), 9 if partitions > 1 else 1):
        edge, together = release.measure.thresholds[clip], [Fraction(0)] * partitions
        for person in {row.person for row in rows}:
            own = [row for row in rows if row.person == person]
            alone = totals(release, own, partitions, clip)
            size = sum(abs(each) ** norm for each in alone)
            assert size <= edge**norm
            reached.add(size == edge**norm)
            together = [sum(pair) for pair in zip(together, alone, strict=True)]
        assert totals(release, rows, partitions, clip) == together
    assert reached == {False, True}


@pytest.mark.sampled(2)
@BUDGETS
@pytest.mark.parametrize("partitions", [1, 3])
def test_a_person_moves_all_partitions_by_a_vector_of_the_norm_of_the_clip(budget, partitions):
    moves_no_more(budget, partitions)


def of_one_partition(numbers, starts, norm):
    """A mutant: the norm is that of the largest number alone."""
    return np.maximum.reduceat(abs(numbers), starts)


SHARES = histograms.shares
MUTANTS = {
    "one partition": ("norms", of_one_partition),
    "away from 0": ("shares", lambda *given: SHARES(*given) + np.sign(given[0])),
    "too many steps": ("shares", lambda *given: SHARES(*given[:3], 2 * given[3])),
}


@BUDGETS
@pytest.mark.parametrize("mutant", MUTANTS)
def test_clips_of_something_else_are_noticed(monkeypatch, budget, mutant) -> None:
    monkeypatch.setattr(histograms, *MUTANTS[mutant])
    with pytest.raises(AssertionError):
        moves_no_more(budget, 3)


def test_of_one_partition_everybody_is_cut_to_the_clip():
    rows = random_rows(random.Random(1), 40, 1)
    for unit, signed, clip in itertools.product((ONE, Fraction(1, 4)), (False, True), (0, 3, 6)):
        release = made(signed, unit=unit)
        low = -GRID[clip] if signed else 0
        exact = sum(max(low, min(s[0], GRID[clip])) for s in vectors_of(rows).values())
        assert drawn(release, rows, 1, clip).values.tolist() == [float(exact * unit)]


def test_counts_of_rows_and_people_are_exact_without_noise():
    rows = random_rows(random.Random(4), 50, 3)
    found = drawn(made(False, partitions=3, source=ROWS), rows, 3, 8)
    assert found.values.tolist() == [sum(row.partition[0] == p for row in rows) for p in range(3)]
    for source in (PEOPLE, 0):
        people = people_release(Context((), partitions=1), Budget(1), source)
        found = people.draw(view_of(rows, people.measures, 3).at(0), ZeroNoise())
        expected = [
            sum(p in vector and (source == PEOPLE or vector[p] > 0) for vector in vectors)
            for p, vectors in enumerate([vectors_of(rows).values()] * 3)
        ]
        assert found.values.tolist() == expected and found.values.dtype == np.int64
        assert found.above.tolist() == [float(laplace_bound(1, ALPHA))] * 3


def test_what_is_released_has_a_form_that_the_numbers_alone_decide():
    # Whoever adds 2^119 widens the column of totals: a clip of 64 must leave no trace of it.
    rows = [Row((person, 0), (person % 3, 0), (40,)) for person in range(900)]
    more = [Row((900, 0), (0, 0), (1 << 119,)), Row((901, 0), (0, 0), (-(1 << 119),))]
    found = [drawn(made(partitions=3), each, 3, 6) for each in (rows, rows + more)]
    assert found[0].values.tolist() == found[1].values.tolist()
    for mine, theirs in zip(found[0].columns, found[1].columns, strict=True):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape


# ------------------------------------------------------------------------- the noise, and what is known


@pytest.mark.parametrize(
    "budget", [Budget(1), Budget(Fraction(1, 7)), Budget.zcdp(0.5), Budget.zcdp(Fraction(1, 100))]
)
def test_the_noise_has_the_scale_of_the_sensitivity(budget):
    noise, adder = Asked(), AdditiveNoise(budget)
    kind, amount = "gaussian" if budget.is_zcdp else "laplace", budget.amount
    for clip in (1, 8, 1 << 83):
        assert adder.add(np.array([5, 6]), clip, noise).tolist() == [5, 6]
        asked = Fraction(clip**2) / (2 * amount) if budget.is_zcdp else amount / clip
        assert noise.asked[-1] == (kind, asked, 2)
        exact = gaussian_bound if budget.is_zcdp else laplace_bound
        assert adder.bound(clip, ALPHA) == exact(asked, ALPHA)


@BUDGETS
def test_the_noise_of_the_clip_is_in_every_partition_and_paid_once(budget):
    release, noise = made(budget=budget, partitions=4), Asked()
    drawn(release, random_rows(random.Random(6), 30, 4), 4, 2, noise)
    clip, share = release.measure.thresholds[2], budget.amount * (1 - clip_share_of_norm(budget, 4))
    size = clip * additive_release.grid_of(clip, STEPS)
    kind, asked = (
        ("gaussian", size**2 / (2 * share)) if budget.is_zcdp else ("laplace", share / size)
    )
    assert noise.asked == [(kind, asked, 4)]
    assert all(spending.once for spending in release.spends)
    assert sum(spending.cost.amount for spending in release.spends) == budget.amount


def lognormal(people: int, partitions: int, seed: int, signed: bool = False) -> list[Row]:
    """Return people with one number in each of some partitions."""
    generator = random.Random(seed)
    return [
        Row(
            (person, 0),
            (place, 0),
            (int(2 ** generator.gauss(3, 1)) * (generator.choice((1, -1)) if signed else 1),),
        )
        for person in range(people)
        for place in range(partitions)
    ]


@pytest.mark.audit
@pytest.mark.parametrize("partitions", [1, 5])
@pytest.mark.parametrize("signed", [False, True])
def test_the_interval_holds_the_truth_with_95_percent(signed, partitions):
    # Hoeffding over 100 releases: the share is below 0.93 - t with at most 1e-10 for t = 0.34;
    # people above the highest shown bucket are estimated, hence 0.93. The twin has a 50th of it.
    release = made(signed, clips=tuple(1 << power for power in range(30)), partitions=partitions)
    held, tight = [], []
    for seed in range(100):
        rows = lognormal(300, partitions, seed, signed)
        found = released(release, rows, partitions, Noise())
        truth = sum(row.values[0] for row in rows if row.partition == (0, 0))
        away, below, above = truth - found.values[0], found.below[0], found.above[0]
        held.append(-below <= away <= above)
        tight.append(-below <= 50 * away <= above)
    tolerance = math.sqrt(math.log(1 / FALSE_ALARM) / (2 * 100))
    assert np.mean(held) >= 0.93 - tolerance > np.mean(tight)


@BUDGETS
@pytest.mark.parametrize("partitions", [1, 2])
def test_nobody_shown_is_no_sum_and_a_bound_for_rows(budget, partitions):
    for release in (
        made(budget=budget, partitions=partitions),
        made(False, budget, partitions, ROWS),
    ):
        rows = [Row((1, 0), (0, 0), (3,))]
        choice = np.zeros((1, release.clip.choice.sides, release.clip.choice.buckets), np.int64)
        view = view_of(rows, release.measures, 2).at(0, choice).among(partitions)
        found = release.draw(view, ZeroNoise())
        assert found.loss is None and (found.high == math.inf).all()
        if not release.clip.choice.anchored:
            assert not found.values.any() and (found.low == -math.inf).all()
            continue
        measure, clip = release.measure, release.measure.thresholds[0]
        fine = additive_release.grid_of(clip, measure.steps)
        bound = release.noise.bound(0, [clip * fine], ALPHA) / (fine * measure.fine)
        assert found.values.tolist() == [1, 0]
        assert found.low == pytest.approx([1 - bound, -bound])


def test_nobody_shown_is_no_distance_but_from_a_centre_that_was_chosen():
    """Where most people are at the centre, that is what is known."""
    for centre, signed in itertools.product((0, 3), (True, False)):
        release = made(signed)
        measure = dataclasses.replace(release.measure, centre=centre, totals=None if signed else 0)
        choice = dataclasses.replace(release.clip.choice, sides=1, folded=True)
        release = with_measure(release, measure, choice)
        nobody = np.zeros((1, 1, len(GRID) + 1), np.int64)
        rows = [Row((1, 0), (0, 0), (3,))]
        view = view_of(rows, release.measures, 2).at(0, nobody).among(1)
        found = release.draw(view, ZeroNoise())
        assert not found.values.any()
        unknown = dataclasses.replace(release, limits=Limits(if_nobody=math.nan))  # no centre
        assert np.isnan(unknown.draw(view, ZeroNoise()).values).all()
        assert (found.low == -math.inf).all() and (found.high == math.inf).all()


def test_a_bound_on_rows_opens_the_interval():
    rows = random_rows(random.Random(4), 400, 2)
    for signed in (False, True):
        found = drawn(dataclasses.replace(made(signed), limits=Limits(bounded=True)), rows, 2, 5)
        assert found.loss is None and (found.high == math.inf).all()
        assert (np.isfinite(found.low) == (not signed)).all()


def test_one_threshold_needs_no_choice_and_its_interval_is_the_noise():
    release = made(False, Budget(1), given=Fraction(5))
    assert release.clip is None and release.shift == 0
    assert release.measure.thresholds == (5,)
    view = view_of([Row((1, 0), (0, 0), (9,))], release.measures, 2).among(1)
    found = release.draw(view.at(0), ZeroNoise())
    assert found.values.tolist() == [5, 0] and found.loss is None
    assert found.above.tolist() == [float(laplace_bound(Fraction(1, 5), ALPHA))] * 2


@BUDGETS
@pytest.mark.parametrize("bound", [None, 3])
def test_a_given_clip_cuts_each_partition_and_with_a_bound_nothing_is_chosen(budget, bound):
    """Numbers are cut to 5 first; in 3 partitions that has a norm of 15, or of 5 sqrt(3)."""
    context = Context((), partitions=40, bound=bound)
    measure = Measure(0, thresholds=GRID)
    release = clipped_sum(context, budget, measure, given=Fraction(5), anchored=False)
    assert (release.clip is None) == (bound is not None)
    most, norm = bound or 40, release.measure.norm
    assert release.measure.thresholds[-1] == math.ceil(5 * most ** (1 / norm))
    rows = [Row((1, 0), (0, 0), (100,)), Row((1, 0), (1, 0), (3,)), Row((2, 0), (1, 0), (5,))]
    assert totals(release, rows, 2, len(release.measure.thresholds) - 1) == [5, 8]


def test_row_clips_are_powers_of_two_up_to_the_bound():
    for most, ends in ((1, (1,)), (6, (1, 2, 4, 6)), (8, (1, 2, 4, 8))):
        context = Context((), max_rows_per_partition=most, partitions=1)
        release = dp.Count().build(context, PURE)
        assert row_clips(most) == ends and {*ends} <= {*release.measure.thresholds}
        assert (release.clip is None) == (most == 1)
    assert row_clips(None) == tuple(2**n for n in range(41))
    assert VALUE_CLIPS == tuple(2**n for n in range(84))


# ---------------------------------------------------------------------------- the loss is given back


@BUDGETS
def test_what_people_lose_is_given_back_by_released_numbers_alone(budget):
    """Who is above the clip has it in the same partitions as the others: hardly anything is lost."""
    release = made(False, budget, partitions=60, source=ROWS)
    rows = [
        Row((person, 0), (at, 0), (1,))
        for person in range(400)
        for at in range(6)
        for _ in range((1 + at % 3) * (15 if person < 80 else 1))
    ]
    choice = choice_of(release, rows)
    taken = release.clipped(view_of(rows, release.measures, 60).at(0, choice))
    clips, noisy = [taken.clip * taken.grid], taken.totals
    [given, same] = [
        release.released(dataclasses.replace(taken, totals=each), noisy, clips, release.noise)
        for each in (taken.totals, np.zeros(60, np.int64))
    ]
    sums = given.loss.sums(given.values)
    found = given.spread(sums)
    assert given.loss == same.loss and found.values.tolist() == same.spread(sums).values.tolist()
    truth = np.array([(1 + at % 3) * (320 + 15 * 80) for at in range(6)])
    assert (given.values[:6] < 0.9 * truth).all() and not found.values[6:].any()
    back = found.values[:6] - given.values[:6]
    assert back / given.values[:6] == pytest.approx([back[0] / given.values[0]] * 6)
    assert (back > 0.6 * (truth - given.values[:6])).all()
    assert (found.values[:6] < 1.15 * truth).all()  # a bucket's people may have less than its mean
    # The interval stays where it was.
    below, above = given.loss.widths(given.values, sums)
    assert found.low == pytest.approx(given.values - below)
    assert found.high == pytest.approx(given.values + above)


@pytest.mark.parametrize("kind", ["one partition", "nobody shown"])
def test_nothing_is_given_back_where_nothing_is_known_to_share_it_by(kind):
    release = made(False, partitions=1 if kind == "one partition" else 3, source=ROWS)
    rows = [Row((person, 0), (0, 0), (1,)) for person in range(900) for _ in range(1 + person % 9)]
    choice = choice_of(release, rows)
    view = view_of(rows, release.measures, 3).at(0, choice * (kind != "nobody shown"))
    found = release.draw(view.among(1) if kind == "one partition" else view, ZeroNoise())
    assert (found.loss is None) == (kind == "nobody shown")
    assert found.loss is None or not found.loss.lost


# ------------------------------------------------------------------------------------------- the box


class Recorded(OneDraw):
    """A draw that remembers what it hides."""

    hidden: ClassVar[list[OneDraw]] = []

    def draw(self, noise, size=1):
        self.hidden.append(self)
        return super().draw(noise, size)


@BUDGETS
@pytest.mark.parametrize("partitions", [1, 5])
def test_people_of_few_partitions_take_the_box_where_it_errs_less(monkeypatch, budget, partitions):
    """Who is in one of five partitions has an L1 norm of 1; who is in all of them has one of 5."""
    monkeypatch.setattr(noise_on_a_sum, "OneDraw", Recorded)
    release = people_release(Context((), partitions=5), budget)
    pairs = itertools.product(range(4000), range(partitions))
    rows = [Row((person, 0), ((person + more) % 5, 0), (1,)) for person, more in pairs]
    choice = choice_of(release, rows)
    view = view_of(rows, release.measures, 5).at(0, choice)
    monkeypatch.setattr(Recorded, "hidden", [])
    found = release.draw(view, Noise())
    cost = release.clip.cost_of_noise(release.noise_cost, choice)
    box = JointNoise(cost, (False,), partitions=5).mean_error(0)
    error = release.mean_error(choice) * release.clipped(view).clip
    assert bool(Recorded.hidden) == (box * release.measure.fine <= error)
    assert Recorded.hidden or partitions == 1
    for law_ in Recorded.hidden:
        assert law_ == Recorded(cost, (release.measure.fine,) * 5, (False,) * 5)
    # A person moves each by 1: noise of a scale below 40 is beyond 1,000 with less than 1e-10.
    assert abs(found.values - 800 * partitions).max() < 1000
    monkeypatch.setattr(Recorded, "hidden", [])
    some = [row for row in rows if row.partition[0] < 4]
    release.draw(view_of(some, release.measures, 4).at(0, choice).among(5), ZeroNoise())
    assert not Recorded.hidden  # partitions of several buckets have no draw to share
    assert not people_release(Context((), partitions=65), budget).box


# ------------------------------------------------------------------------------------ shares of rows


FLAG = Column("x", Role.FLAG, 1)


def sides(per_person=False, budget=PURE, partitions=1) -> tuple[list[AdditiveRelease], tuple]:
    """Return the rows of the kind and the others, and the fields that they read."""
    context = Context((FLAG,), partitions=partitions)
    parts = Share(FLAG, per_person), Others(FLAG, per_person)
    found = [part.build(context, budget.scaled(Fraction(1, 2))) for part in parts]
    if found[0].clip is None:
        return found, tuple(context.fields)
    octaves = found[0].clip.choice.edges
    choice = ClipChoice(found[0].clip.choice.cost, octaves, anchored=True)
    measures = (dataclasses.replace(each.measure, thresholds=octaves) for each in found)
    found = [with_measure(*pair, choice) for pair in zip(found, measures, strict=True)]
    return found, tuple(context.fields)


def kinds(seed: int, people: int, partitions: int = 1) -> list[Row]:
    """Return the rows of some people: of the kind, others, and without a value."""
    source = random.Random(seed)
    own = [source.choice([(1,), (0,), (1, 0), (1, 0, 0, 0, None), (None,)]) for _ in range(people)]
    return [
        Row((person, 0), (source.randrange(partitions), 0), (source.choice(own[person]),))
        for person in range(people)
        for _ in range(source.choice([1, 2, 3, 5, 40]))
    ]


def count_on_their_side(budget: Budget, partitions: int) -> None:
    """Everybody adds their rows of each kind, which are scaled down to the norm of its clip."""
    found, fields = sides(budget=budget, partitions=partitions)
    norm, fine = found[0].measure.norm, found[0].measure.fine
    for seed, clip in itertools.product(range(12), (0, 1, 5)):
        rows, edge = kinds(seed, 1, partitions), Fraction(found[0].measure.thresholds[clip], fine)
        counts = Counter((row.partition[0], row.values[0]) for row in rows)
        for kind, release in zip((1, 0), found, strict=True):
            own = [counts[at, kind] for at in range(partitions)]
            side = totals(release, rows, partitions, clip, fields)
            size = sum(each ** max(norm, 1) for each in own)
            assert sum(number ** max(norm, 1) for number in side) <= edge ** max(norm, 1)
            weight = min(1.0, float(edge) / max(size, 1) ** (1 / max(norm, 1)))
            assert side == pytest.approx([weight * each for each in own], rel=0.02, abs=1e-4)


@pytest.mark.sampled(4)
@BUDGETS
@pytest.mark.parametrize("partitions", [1, 3])
def test_rows_with_the_value_and_others_each_have_their_own_clip(budget, partitions) -> None:
    count_on_their_side(budget, partitions)
    found, fields = sides(budget=budget, partitions=partitions)
    rows = kinds(99, 5, partitions)
    own = [[row for row in rows if row.person == person] for person in {row.person for row in rows}]
    for clip, each in itertools.product((0, 5), found):
        whole, *alone = (totals(each, some, partitions, clip, fields) for some in (rows, *own))
        assert whole == list(map(sum, zip(*alone, strict=True)))


@BUDGETS
def test_others_that_are_all_rows_are_noticed(monkeypatch, budget) -> None:
    monkeypatch.setattr(Measure, "_about_centre", lambda self, table, ones: -table.rows)
    with pytest.raises(AssertionError):
        count_on_their_side(budget, 3)


@pytest.mark.parametrize("values", [(1, 1, 1), (0, 0), (1, 0, None), (None,), (0, 1) * 30])
def test_of_people_each_is_on_one_side(values: tuple) -> None:
    found, fields = sides(per_person=True)
    rows = [Row((1, 0), (0, 0), (value,)) for value in values]
    known = any(value is not None for value in values)
    expected = [known and 1 in values, known and 1 not in values]
    assert [totals(each, rows, 1, 0, fields) for each in found] == [[one] for one in expected]


def test_shares_know_the_bounds_that_are_given() -> None:
    context = Context((FLAG,), partitions=1, max_rows_per_partition=10)
    for kind in (Share, Others):
        assert kind(FLAG, False).build(context, PURE).measure.thresholds[-1] == 10
        assert not kind(FLAG, True).build(context, PURE).describe().reason  # a person counts as 1
        bounded = Context((FLAG,), partitions=9, bound=3)
        assert kind(FLAG, True).build(bounded, PURE).measure.thresholds == (3,)  # none is chosen


@pytest.mark.parametrize("kind", [Share, Others])
def test_where_nobody_is_shown_of_a_kind_few_may_be(kind) -> None:
    """A share of a value that nobody has is near 0, with an end: not between 0 and 1."""
    context = Context((FLAG,), partitions=1)
    release, fields = kind(FLAG, False).build(context, PURE), tuple(context.fields)
    other = (0,) if kind is Share else (1,)
    rows = [Row((at, 0), (0, 0), other) for at in range(3000)]
    choice = choice_of(release, rows, fields=fields)
    rows.append(Row((9999, 0), (0, 0), (1 - other[0],)))
    view = view_of(rows, release.measures, 1, fields=fields).at(0, choice)
    found = release.draw(view, ZeroNoise())
    assert found.values.tolist() == [1] and found.high[0] < 100


def test_a_rare_value_has_little_noise() -> None:
    """3,000 people have 20 rows each, and 1 in 100 of them one row of the kind."""
    flags = [(1,) + (0,) * 19 if person % 100 == 0 else (0,) * 20 for person in range(3000)]
    rows = [Row((at, 0), (0, 0), (flag,)) for at, own in enumerate(flags) for flag in own]
    found, fields = sides()
    ones, others = (each.clip.largest(choice_of(each, rows, fields=fields)) for each in found)
    assert ones == 1 and others >= 19


# ------------------------------------------------------------------------ numbers that share a draw


WINDOW = 9
CROWD = [Row((person, 0), (0, 0), (person - 2,)) for person in range(5)]
PERSONS = [(1,), (-9,), (9, 9), (0,), (2, -1, 4)]


def pool(*costs: Fraction) -> list[AdditiveRelease]:
    """Return a count of rows, a sum and a number of people, with given clips, in one pool."""
    budgets, context = [Budget(cost) for cost in costs], Context((), partitions=1)
    numbers = [
        made(False, budgets[0], source=ROWS, given=Fraction(2)),
        made(True, budgets[1], given=Fraction(3)),
        people_release(context, budgets[2]),
    ]
    shared = JointNoise(cost_of_all(budgets), tuple(number.signed for number in numbers))
    return [
        dataclasses.replace(number, joint=shared, place=place)
        for place, number in enumerate(numbers)
    ]


def worst_of_joint_noise(epsilon: Fraction) -> float:
    """Return the largest |log ratio| of the joint law when a person is added, by enumeration."""

    def drawn_jointly(rows):
        views = [view_of(rows, number.measures, 1).at(0) for number in numbers]
        found = draw_jointly(numbers, views, ZeroNoise())
        return np.array([int(each.values[0]) for each in found])

    numbers, worst = pool(epsilon / 2, epsilon / 4, epsilon / 4), 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise_on_a_sum, "OneDraw", Recorded)
        patch.setattr(Recorded, "hidden", [])
        before = drawn_jointly(CROWD)
        for values in PERSONS:
            added = [Row((99, 0), (0, 0), (value,)) for value in values]
            move = drawn_jointly(CROWD + added) - before
            first, last = Recorded.hidden[0], Recorded.hidden[-1]
            assert first == last and first.budget == Budget(epsilon)  # the noise is of no data
            sides_ = tuple(zip(first.clips, first.signed, strict=True))
            chances = law(noise_on_several_sums._hull(epsilon, sides_), WINDOW)
            here = tuple(slice(max(0, -m), 2 * WINDOW + 1 - max(0, m)) for m in move.tolist())
            there = tuple(slice(max(0, m), 2 * WINDOW + 1 - max(0, -m)) for m in move.tolist())
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.abs(np.log(chances[here]) - np.log(chances[there]))
            worst = max(worst, float(np.nan_to_num(ratio, nan=0.0, posinf=np.inf).max()))
    return worst


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_one_more_person_changes_the_joint_law_by_at_most_epsilon(epsilon: Fraction) -> None:
    worst = worst_of_joint_noise(epsilon)
    assert 0.999 * epsilon < worst <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("budget", [PURE, ZCDP])
def test_numbers_of_all_partitions_may_be_one_draw(monkeypatch, budget) -> None:
    """Whose theorem holds for a person who moves all of them by up to their clips."""
    monkeypatch.setattr(noise_on_a_sum, "OneDraw", Recorded)
    monkeypatch.setattr(Recorded, "hidden", [])
    several = JointNoise(budget, (False, True), partitions=3)
    columns = several.add([np.zeros(3, np.int64)] * 2, [2, 5], Noise())
    assert [len(column) for column in columns] == [3, 3]
    sides_ = (False,) * 3 + (True,) * 3
    assert Recorded.hidden == [Recorded(budget, (2, 2, 2, 5, 5, 5), sides_)]
    with pytest.raises(checks.ParameterError, match="be of all partitions"):
        several.add([np.zeros(2, np.int64)] * 2, [2, 5], Noise())


@pytest.mark.parametrize(("numbers", "share"), [([5] * 2000, "7/10"), ([5] * 9, "6/10")])
def test_what_two_looks_leave_goes_to_the_noise(numbers, share) -> None:
    # Of one partition: 5 is a round number, at which people end if they are many.
    release = made(budget=Budget(10), clips=VALUE_CLIPS)
    rows = [Row((person, 0), (0, 0), (number,)) for person, number in enumerate(numbers)]
    choice, asked = choice_of(release, rows), Asked()
    found = release.draw(view_of(rows, release.measures, 1).at(0, choice), asked)
    clip = 5 if share == "7/10" else 8
    assert asked.asked == [("laplace", 10 * Fraction(share) / clip, 1)]
    told = release.clip.record(choice, [], release.noise_cost)
    assert Fraction(told["cost_of_the_noise"]) == 10 * Fraction(share)
    scales = [histogram["scale"] for histogram in told["histograms"]]
    assert scales == [0.5, 1.0 if clip == 5 else 0.25]
    assert found.values.tolist() == [sum(numbers)]


def test_what_two_looks_leave_goes_to_the_noise_of_several_partitions_too() -> None:
    rows = [Row((person, 0), (person % 2, 0), (5,)) for person in range(2000)]
    release = made(budget=Budget(10), clips=VALUE_CLIPS, partitions=2)
    choice, asked = choice_of(release, rows), Asked()
    found = release.draw(view_of(rows, release.measures, 2).at(0, choice), asked)
    cost = 10 * (1 - Fraction(3, 4) * clip_share_of_norm(Budget(10), 2))  # a quarter of it is left
    size = 5 * additive_release.grid_of(5, STEPS)
    assert asked.asked == [("laplace", cost / size, 2)] and found.values.tolist() == [5000, 5000]
    assert release.mean_error(choice) == pytest.approx(float(1 / cost), rel=0.01)
    assert type(made(budget=ZCDP, clips=VALUE_CLIPS).clip.choice) is ClipChoice  # one histogram


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("partitions", [2, 50])
def test_the_tail_is_that_of_so_many_partitions_but_of_distances_that_of_many(folded, partitions):
    """Distances are not all on one side."""
    numbers = [1 << power for power in range(9) for _ in range(4000 >> power)]
    rows = [Row((n, 0), (n % 2, 0), (number,)) for n, number in enumerate(numbers)]
    release = made(budget=ZCDP, clips=VALUE_CLIPS, partitions=partitions, folded=folded)
    choice = choice_of(release, rows)
    view = view_of(rows, release.measures, partitions).at(0, choice)
    loss = release.draw(view, ZeroNoise()).loss
    above = loss.above
    assert loss.folded == folded
    at = np.array([release._chosen(choice, partitions)])
    tail = math.inf if folded else partitions
    expected, of_one = (release.clip.choice.losses(choice, at, each)[0] for each in (tail, 1))
    assert above[0] == pytest.approx(expected.total[0]) and expected.total < of_one.total
    assert above[2] == pytest.approx(math.sqrt(expected.beyond[0]))
    assert expected.beyond[0] > 0
