"""The exact joint laws of several partitions: of what adds up, its clip, and what selects partitions.

One person more moves the numbers of all partitions by a vector that is known exactly, in whole
steps of the grid of the noise. Of independent discrete Laplace noise the largest log ratio of the
joint laws is the rate times the L1 distance, which outcomes beyond both reach; of discrete Gaussian
noise the divergence of every order a is a times the squared distance over twice the variance, at
most. So each clip is audited for all outcomes, with every person of a list, by the library's own
summaries and the noise that it asks for.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.metrics.additive.additive_release import AdditiveRelease, grid_of
from beam_dp.mechanisms.noise.noise_on_a_sum import JointNoise
from beam_dp.mechanisms.planning.compile import compiled
from beam_dp.mechanisms.planning.program import Adaptive, Program, Step
from beam_dp.mechanisms.summaries import histograms
from beam_dp.mechanisms.summaries.histograms import WEIGHTS, Measure
from beam_dp.testing.losses.draw_costs import weigh_one_draw
from tests.doubles import Asked, ZeroNoise, compile_program
from tests.reference import Row, of_everybody, of_places, table_of
from tests.testing.test_release_audit import people_in_each_partition

pytestmark = pytest.mark.audit

PURE, RHO, BOTH = dp.Budget(Fraction(3, 2)), dp.Budget.zcdp(Fraction(1, 8)), dp.Budget(1, 1e-6)
Person = tuple[tuple[int, ...], ...]
"""The values of a person's rows, by partition."""


def of_sums(partitions: int) -> Iterator[Person]:
    """Yield people with one row in each partition, or none: of both signs, small and far out."""
    few = (None, 1, -2, 7, -(10**12) - 3)
    some = (*few, -1, 5, 3 * 10**6, 2**70 + 1) if partitions == 2 else few
    for numbers in itertools.product(some, repeat=partitions):
        yield tuple(() if number is None else (number,) for number in numbers)


def of_rows(partitions: int) -> Iterator[Person]:
    """Yield people with several rows, of values 0 and 1: far more in one partition."""
    several = ((), (0,), (1,), (0, 1, 1), (1,) * 5, (0,) * 300 + (1,) * 700)
    yield from itertools.product(several[: 6 if partitions == 2 else 5], repeat=partitions)


class Asking(NamedTuple):
    """What is released, of whom, about which centre."""

    metric: Any
    people: Callable[[int], Iterator[Person]]
    centres: tuple[int, ...] = ()


ASKED = {
    "sum": Asking(dp.Sum("v", unit=1), of_sums),
    "sum, a given clip": Asking(dp.Sum("v", unit=1, clip=6), of_sums),
    "count": Asking(dp.Count(), of_rows),
    "people": Asking(dp.PeopleCount(), of_rows),
    "mean": Asking(dp.Mean("v", unit=1), of_sums, (3,)),
    "mean over people": Asking(dp.Mean("v", unit=1, per="person"), of_sums, (-2,)),
    "variance": Asking(dp.Variance("v", unit=1), of_sums, (1,)),
    "share of rows": Asking(dp.Ratio("v"), of_rows),
    "share of people": Asking(dp.Ratio("v", per="person"), of_rows),
    "histogram": Asking(dp.Histogram("v", [-2, 0, 1, 6], unit=1, person_value="max"), of_rows),
}
CROWD: dict[int, list[Person]] = {
    2: [((3,), (4,)), ((-1,), ()), ((), (2, 2))],
    3: [((1,), (), (1, 0)), ((), (-6,), ())],
}
GROUPS = [(name, budget, n) for name in ASKED for budget in (PURE, RHO) for n in (2, 3)]
GROUPS += [(name, BOTH, 2) for name in ("sum", "count", "share of rows", "histogram")]


@functools.cache
def program_of(name: str, budget: dp.Budget, partitions: int) -> Program:
    """Return the program for an asking, about its centre."""
    asked = ASKED[name]
    made = compile_program([asked.metric], budget, partitions, partitions=partitions)
    return compiled(made.request, Adaptive(None, asked.centres))


def table(program: Program, people: Sequence[Person], selected: Sequence[int] = ()) -> Table:
    """Return the settled lines of people, of all partitions or of some."""
    rows = [
        Row((person + 1, 0), (place, 0), (value,) * len(program.columns))
        for person, parts in enumerate(people)
        for place, values in enumerate(parts)
        for value in values
    ]
    bounder = Bounder(ContributionBounds(None), program.fields, b"key")
    lines = bounder.reduce(bounder.prepare(table_of(rows, columns=len(program.columns))))
    if selected:
        lines = lines.take(np.isin(lines.partition[0], np.array(selected, np.uint64)))
    return bounder.settle_reduced(lines)


def groups(program: Program) -> list[list[Step]]:
    """Return the numbers that share a clip, or have one of their own; of either noise."""
    found = []
    for steps in {program.steps, program.gaussian}:
        shared = {step.shared for step in steps if step.shared is not None}
        found += [[step for step in steps if step.shared == each] for each in sorted(shared)]
        found += [[step] for step in steps if step.shared is None]
    return found


class Database:
    """What the draws see of people."""

    def __init__(self, program: Program, lines: Table, partitions: int) -> None:
        self.program, self.partitions = program, partitions
        self.view = of_places(lines, program.measures, partitions)
        self.shared = of_everybody(lines, program.shared_measures)

    def totals(self, step: Step, index: int) -> list[int]:
        """Return what is released but for its noise, of all partitions and bins, for one clip."""
        release = step.release
        assert isinstance(release, AdditiveRelease)
        clip = release.measure.thresholds[index]
        fine = grid_of(clip, release.measure.steps)
        found = release.contribution.clipped(self.view.at(step.first), index, clip, fine)
        return [int(number) for number in found.tolist()]


def losses_of(
    group: list[Step], index: int, one: Database, neighbours: list[Database]
) -> Iterator[Fraction]:
    """Yield what all numbers of a group cost at a clip: the log ratio, or the divergence over a.

    Of each neighbour, in units of what they may cost.
    """
    releases = [step.release for step in group]
    pool: JointNoise = releases[0].noise
    clips = []
    for release in releases:
        clip = release.measure.thresholds[index]
        clips.append(clip * grid_of(clip, release.measure.steps))
    totals = [one.totals(step, index) for step in group]
    noise = Asked()
    pool.add([np.array(ones, object) for ones in totals], clips, noise)
    for other in neighbours:
        spent = Fraction(0)
        for (kind, parameter, size), step, ones in zip(noise.asked, group, totals, strict=True):
            assert size == len(ones)
            moves = [abs(a - b) for a, b in zip(ones, other.totals(step, index), strict=True)]
            if kind == "laplace":
                spent += Fraction(parameter) * sum(moves)
            else:
                spent += Fraction(sum(move**2 for move in moves)) / (2 * Fraction(parameter))
        yield spent / pool.budget.amount


@functools.cache
def databases(name: str, budget: dp.Budget, partitions: int) -> tuple[Database, list[Database]]:
    """Return a database, and its neighbours with one person more."""
    program, crowd = program_of(name, budget, partitions), CROWD[partitions]
    people = filter(any, ASKED[name].people(partitions))
    more = [Database(program, table(program, [*crowd, each]), partitions) for each in people]
    return Database(program, table(program, crowd), partitions), more


def worst_of(one: Database, others: list[Database]) -> Fraction:
    """Return the largest loss of all people, groups and clips; of three partitions some clips."""
    return max(
        loss
        for group in groups(one.program)
        for index in range(
            0, len(group[0].release.measure.thresholds), 1 if one.partitions == 2 else 5
        )
        for loss in losses_of(group, index, one, others)
    )


@pytest.mark.parametrize(("name", "budget", "partitions"), GROUPS)
def test_all_partitions_together_cost_what_the_noise_may(
    name: str, budget: dp.Budget, partitions: int
) -> None:
    """And all of it, where a person is at the clip or far above."""
    worst = worst_of(*databases(name, budget, partitions))
    assert 1 - 1e-5 < worst <= 1


@pytest.mark.parametrize(("name", "budget", "partitions"), GROUPS)
def test_a_person_is_in_one_bucket_of_each_histogram(
    name: str, budget: dp.Budget, partitions: int
) -> None:
    one, others = databases(name, budget, partitions)
    assert max(most_moved(one, other) for other in others) <= 1


def most_moved(one: Database, other: Database) -> int:
    """Return by how much one histogram that chooses a clip moves, at most."""
    moved = [0]
    for index, measure in enumerate(one.program.shared_measures):
        buckets = (2 - abs(measure.sign)) * (len(measure.thresholds) + 1)
        counts = [each.shared.histogram(index, buckets)[0] for each in (one, other)]
        moved.append(int(np.abs(counts[0] - counts[1]).sum()))
    return max(moved)


@pytest.mark.parametrize("budget", [PURE, RHO])
@pytest.mark.parametrize("selected", [(0,), (1, 2), (0, 2)])
def test_who_is_clipped_by_selected_partitions_alone_costs_no_more(
    budget: dp.Budget, selected: tuple[int, ...]
) -> None:
    program, crowd = program_of("sum", budget, 3), CROWD[3]
    one = Database(program, table(program, crowd, selected), 3)
    others = [
        Database(program, table(program, [*crowd, person], selected), 3) for person in of_sums(3)
    ]
    assert 1 - 1e-5 < worst_of(one, others) <= 1
    assert max(most_moved(one, other) for other in others) == 1


def test_weights_of_a_person_are_at_most_one_in_l2() -> None:
    for partitions in (*range(1, 70), 200, 1000):
        people = np.zeros((1, partitions), np.uint64)
        places = np.arange(partitions, dtype=np.uint64)[None]
        lines = Table(people, places, np.ones(partitions, np.int64), [])
        weights = histograms.summarise(
            histograms.Contributions(lines), [Measure(WEIGHTS)]
        ).total.tolist()
        assert 2**40 * 0.99 < sum(weight**2 for weight in weights) <= 2**40


# ------------------------------------------------------------------ the box of people


@pytest.mark.parametrize("budget", [PURE, RHO])
@pytest.mark.parametrize("partitions", [2, 3])
def test_the_box_hides_a_person_in_any_partitions(budget: dp.Budget, partitions: int) -> None:
    losses = box_losses(budget, partitions)
    assert max(losses) <= 1 + 1e-9 and max(losses) > 0.9


def box_losses(budget: dp.Budget, partitions: int) -> list[float]:
    """Return what a person costs at all outcomes near the truth, for all partitions they are in.

    In units of what the draw may cost. It is chosen by a released histogram of many people.
    """
    program = program_of("people", budget, partitions)
    [step] = program.steps
    release = step.release
    assert isinstance(release, AdditiveRelease)
    many = np.zeros((1, 1, release.clip.choice.buckets), np.int64)
    many[0, 0, -2] = 10**6
    choice = release.clip.choice.draw(many, ZeroNoise())
    found = []
    for places in itertools.product(((), (1,)), repeat=partitions):
        seen = []
        for crowd in (CROWD[partitions], [*CROWD[partitions], places]):
            database = Database(program, table(program, crowd), partitions)
            view = database.view.at(step.first, choice)
            box = release.better_box(release.clipped(view))
            assert box is not None and box.partitions == partitions
            clipped = release.unclipped(view)
            seen.append((box, clipped.clip * clipped.grid, clipped.totals.tolist()))
        (one, clip, ones), (other, again, others) = seen
        assert (one, clip) == (other, again)
        draw, near = one._law([clip]), range(-4 * clip, 5 * clip, max(1, clip // 2))
        for noise in itertools.product(near, repeat=partitions):
            outcomes = [a + b for a, b in zip(ones, noise, strict=True)]
            loss = weigh_one_draw(draw, outcomes, ones, others)
            spent = loss.rho if budget.is_zcdp else abs(loss.pure)
            found.append(float(spent / one.budget.amount))
    return found


def test_what_is_given_back_follows_from_what_was_released() -> None:
    assert given_back_alike()


def given_back_alike() -> bool:
    """Return whether neighbours have the same intervals and losses, by one noisy histogram.

    It shows people above the best clip of 200 partitions, three of which are looked at.
    """
    program, crowd = program_of("sum", PURE, 3), CROWD[3]
    [step] = program.steps
    release = step.release
    assert isinstance(release, AdditiveRelease)
    many = np.zeros((1, 2, release.clip.choice.buckets), np.int64)
    many[0, :, 2], many[0, :, release.clip.choice.places[6]] = 10**4, 60
    choice = release.clip.choice.draw(many, ZeroNoise())
    found = []
    for people in (crowd, [*crowd, ((7,), (), (-(10**12),))]):
        view = Database(program, table(program, people), 3).view.at(step.first, choice)
        clipped = release.clipped(view.among(200))
        pool = release.noise
        released = release.released(clipped, clipped.totals, [clipped.clip * clipped.grid], pool)
        assert released.loss is not None and released.loss.lost > 0
        found.append(
            (clipped.clip, released.loss, released.below.tolist(), released.above.tolist())
        )
    return found[0] == found[1]


# ------------------------------------------------------------------ broken twins

NORMS, LOSS, LAW = histograms.norms, AdditiveRelease._loss, JointNoise._law


def of_one_partition(numbers, starts, norm):
    return np.maximum.reduceat(abs(numbers), starts)


def a_little_short(numbers, starts, norm):
    """Round the norm down."""
    found = NORMS(numbers, starts, norm)
    return found - (found > 1)


def away_from_zero(numbers, whole, lengths, steps):
    up = -(-abs(numbers).astype(object) * steps // np.repeat(whole.astype(object), lengths))
    return np.where(np.asarray(numbers < 0, bool), -up, up)


def by_true_numbers(self, clipped, bound, noise):
    return dataclasses.replace(
        LOSS(self, clipped, bound, noise), lost=float(abs(clipped.totals).sum())
    )


def of_one_number(self, clips):
    law = LAW(self, clips)
    made = dp.Budget.zcdp if law.budget.is_zcdp else dp.Budget
    return dataclasses.replace(law, budget=made(self.partitions * law.budget.amount))


COSTLY = [
    (histograms, "norms", of_one_partition, "sum", PURE),
    (histograms, "norms", of_one_partition, "count", RHO),
    (histograms, "norms", a_little_short, "sum", PURE),
    (histograms, "norms", a_little_short, "count", RHO),
    (histograms, "shares", away_from_zero, "sum", PURE),
    (histograms, "shares", away_from_zero, "sum", RHO),
    (histograms, "norms", of_one_partition, "share of rows", PURE),
    (histograms, "norms", of_one_partition, "share of rows", RHO),
]


@pytest.mark.parametrize("twin", COSTLY, ids=lambda twin: f"{twin[2].__name__}, {twin[3]}")
def test_broken_twins_cost_more(twin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, broken, name, budget = twin
    monkeypatch.setattr(owner, attribute, broken)
    assert worst_of(*databases.__wrapped__(name, budget, 2)) > 1


def test_a_histogram_of_partitions_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histograms, "summarise_people", people_in_each_partition)
    program, crowd = program_of("sum", PURE, 2), CROWD[2]
    found = [
        Database(program, table(program, people), 2) for people in (crowd, [*crowd, ((7,), (1,))])
    ]
    assert most_moved(*found) == 2


def test_a_loss_that_is_given_back_by_true_numbers_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(AdditiveRelease, "_loss", by_true_numbers)
    assert not given_back_alike()


@pytest.mark.parametrize("budget", [PURE, RHO])
def test_a_box_of_too_little_noise_is_noticed(
    budget: dp.Budget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JointNoise, "_law", of_one_number)
    assert max(box_losses(budget, 2)) > 1.5


def test_weights_that_forget_other_partitions_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histograms, "weights_of", lambda found: np.full(len(found), 2**20))
    with pytest.raises(AssertionError):
        test_weights_of_a_person_are_at_most_one_in_l2()
