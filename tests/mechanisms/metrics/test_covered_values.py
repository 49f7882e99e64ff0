"""Different values of several partitions: the statistic, how far one person moves it, and its loss.

All is exact, and against brute force: nothing is drawn.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.metrics import values
from beam_dp.mechanisms.metrics.additive import additive_release
from beam_dp.mechanisms.metrics.additive.additive_release import grid_of
from beam_dp.mechanisms.metrics.values import CoveredValues, CoveringRelease
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.summaries import norm_lines, owner_lines
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Lines
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.stages import bound_and_summarise
from tests.doubles import compile_program
from tests.relations import FREE, KEY, Patch, check_noticed, views

BUDGETS = {1: dp.Budget(1), 2: dp.Budget.zcdp(0.2)}
DAYS = 5
Data = list[dict[str, Any]]


def program_of(norm: int) -> Program:
    return compile_program([dp.DistinctCount("item")], BUDGETS[norm], 1, partitions=DAYS)


def release_of(norm: int) -> CoveringRelease:
    [step] = program_of(norm).steps
    assert isinstance(step.release, CoveringRelease)
    assert isinstance(step.release.contribution, CoveredValues)
    assert step.release.measure.norm == norm
    return step.release


def rows_of(random: np.random.Generator, people: int, items: int) -> Data:
    """Return rows of people, of whom some have many; some have no value."""
    each = np.minimum(np.ceil(random.lognormal(0.5, 1.2, people)), 40).astype(int)
    return [
        {
            "person": int(person),
            "day": int(random.integers(DAYS)),
            "item": None if random.random() < 0.1 else int(random.integers(items)),
        }
        for person in np.repeat(np.arange(people), each)
    ]


def clip_of(norm: int, index: int) -> int | Fraction:
    """Return a clip of the histogram, by its index; or, below 0, that of an octave from -1 on."""
    measure = release_of(norm).measure
    return measure.thresholds[index] if index >= 0 else Fraction(measure.fine << -index - 1, 16)


def statistic(rows: Data, norm: int, index: int) -> dict[int, int]:
    """Return what the release computes per day, in units over `fine`."""
    release = release_of(norm)
    clip = clip_of(norm, index)
    fine = grid_of(clip, release.measure.steps)
    found: dict[int, int] = {}
    for cells, days in views(rows, program_of(norm)):
        totals = release.contribution.clipped(cells, index, clip, fine)
        found |= dict(zip(days, totals.tolist(), strict=True))
    return found


def size_of(norm: int, index: int) -> tuple[int, int]:
    """Return the clip in units over `fine`, and what one value is."""
    measure, clip = release_of(norm).measure, clip_of(norm, index)
    fine = grid_of(clip, measure.steps)
    return int(clip * fine), measure.fine * fine


def numbers_of(rows: Data) -> dict[int, dict[int, set[int]]]:
    """Return the values of each person on each day."""
    found: dict[int, dict[int, set[int]]] = {}
    for row in rows:
        if row["item"] is not None:
            found.setdefault(row["person"], {}).setdefault(row["day"], set()).add(row["item"])
    return found


def by_hand(rows: Data, norm: int, index: int) -> dict[int, Fraction]:
    """Return the statistic in values, by its definition; and norms up to their rounding."""
    clip, whole = size_of(norm, index)
    covered: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for days in numbers_of(rows).values():
        sizes = [len(items) for items in days.values()]
        length = sum(sizes) if norm == 1 else math.sqrt(sum(size**2 for size in sizes))
        part = min(Fraction(1), Fraction(clip, whole) / Fraction(length))
        for day, items in days.items():
            for item in items:
                covered[day, item] += part
    found: dict[int, Fraction] = defaultdict(Fraction)
    for (day, _), part in covered.items():
        found[day] += min(Fraction(1), part)
    return found


CLIPS = (-1, -2, -4, 0, 1, 2, 4, 9)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("items", [8, 10**6])
def test_the_statistic_is_what_it_says(norm: int, items: int) -> None:
    random = np.random.default_rng(norm * 10 + items % 7)
    rows, clipped = rows_of(random, 60, items), 0
    truth = Counter((row["day"], row["item"]) for row in rows if row["item"] is not None)
    true = Counter(day for day, _ in truth)
    for index in CLIPS:
        _, whole = size_of(norm, index)
        expected = by_hand(rows, norm, index)
        for day, found in statistic(rows, norm, index).items():
            # L2 norms are rounded up to 64ths of a value.
            assert found / whole == pytest.approx(float(expected[day]), rel=0.01)
            assert found <= whole * true[day]
            clipped += found < whole * true[day]
    assert clipped >= DAYS
    assert statistic(rows, norm, 30) == {day: size_of(norm, 30)[1] * n for day, n in true.items()}


def test_a_person_moves_the_vector_by_a_clip() -> None:
    """Exactly, for each person of random data; and what is lost is what they lose in the sum."""
    random, tight = np.random.default_rng(5), 0
    for norm in (1, 2):
        for items in (5, 40, 10**6):
            rows = rows_of(random, 12, items)
            for index in CLIPS:
                clip, _ = size_of(norm, index)
                after = statistic(rows, norm, index)
                for person in {row["person"] for row in rows}:
                    others = [row for row in rows if row["person"] != person]
                    before = statistic(others, norm, index)
                    steps = [after[day] - before.get(day, 0) for day in after]
                    assert min(steps) >= 0
                    moved = sum(step**norm for step in steps)
                    assert moved <= clip**norm
                    tight += moved > (clip * 0.99) ** norm
    assert tight > 50


def test_the_loss_is_at_most_that_of_the_sum() -> None:
    random = np.random.default_rng(6)
    for norm in (1, 2):
        rows = rows_of(random, 40, 60)
        own = numbers_of(rows)
        true = Counter(
            day for day, _ in {(r["day"], r["item"]) for r in rows if r["item"] is not None}
        )
        for index in CLIPS:
            clip, whole = size_of(norm, index)
            lost: dict[int, float] = defaultdict(float)
            for days in own.values():
                sizes = np.array([len(items) for items in days.values()], float)
                length = (sizes**norm).sum() ** (1 / norm)
                part = max(0.0, 1 - clip / whole / length)
                for day, items in days.items():
                    lost[day] += len(items) * part
            for day, found in statistic(rows, norm, index).items():
                assert true[day] - found / whole <= lost[day] * 1.01 + 0.02


def every_value_in_full(patch: Patch) -> None:
    def covered(self: CoveredValues, lines: Any, clip: int, fine: int) -> int:
        return len(set(lines.items.tolist())) * self.measure.fine * fine

    patch.setattr(CoveredValues, "_covered", covered)


def rows_for_norms(patch: Patch) -> None:
    patch.setattr(bound_and_summarise, "with_norms", lambda lines, *_: lines)


def parts_add_up_beyond_one(patch: Patch) -> None:
    patch.setattr(values.np, "minimum", lambda one, _: one)


def norms_of_the_next_person(patch: Patch) -> None:
    places_of = norm_lines.places_of
    patch.setattr(norm_lines, "places_of", lambda *given: np.maximum(places_of(*given) - 1, 0))


MUTANTS: list[tuple[Callable[[Patch], None], Callable[[], None]]] = [
    (every_value_in_full, test_a_person_moves_the_vector_by_a_clip),
    (rows_for_norms, test_a_person_moves_the_vector_by_a_clip),
    (norms_of_the_next_person, test_a_person_moves_the_vector_by_a_clip),
    (parts_add_up_beyond_one, lambda: test_the_statistic_is_what_it_says(1, 8)),
]


@pytest.mark.parametrize(("mutant", "check"), MUTANTS)
def test_mutants_are_noticed(mutant: Callable[[Patch], None], check: Callable[[], None]) -> None:
    check_noticed(check, mutant)


def test_lines_by_a_norm_are_those_of_all_partitions() -> None:
    """Beside a metric that pays for each partition, whose lines are of one of each person's."""
    metrics = [dp.DistinctCount("item"), dp.MaxFrequency("item")]
    program = compile_program(metrics, dp.Budget(1), 1, partitions=DAYS)
    whole = settled(rows_of(np.random.default_rng(2), 30, 9), program)
    settle = bound_and_summarise.Settle(
        Bounder(FREE, program.fields, KEY, keep_rows=True), program.measures, (), 1
    )
    settle._most = 1
    _, _, lines = settle._summarised(lambda: whole)
    assert lines is not None
    by_norm = {
        relation.by_norm: np.flatnonzero(lines.relation == index)
        for index, relation in enumerate(program.measures)
        if isinstance(relation, owner_lines.Relation)
    }
    places = {
        which: {(p, d) for p, d in zip(lines.person[0, at], lines.partition[0, at], strict=True)}
        for which, at in by_norm.items()
    }
    people = {person for person, _ in places[True]}
    assert 20 < len(places[False]) <= len(people) < len(places[True])


def settled(rows: Data, program: Program) -> Table:
    """Return the rows of all people, settled."""
    layout = Layout("person", ("day",), program.columns, None, KEY)
    bounder = Bounder(FREE, program.fields, KEY, keep_rows=True)
    names = layout.names
    [table] = layout.from_lists([[row[name] for row in rows] for name in names])
    return bounder.settle(bounder.prepare(table))


def test_what_is_given_back_is_the_part_that_nobody_shares() -> None:
    """S of K values that people keep are no one else's: S / K of the loss is given back."""
    made = (5.0, 4.0, 1.0, (0.0, 0.0, 0.0), (100.0, 10.0, 1.0))
    known = {"lost": 100.0, "kept": 1000.0, "norm": 1}
    for share in (0.05, 0.5, 1.0):
        released = np.full(10, 100.0 * share)
        plain, covers = (
            additive_release.ClippingLoss(*made, **known, covers=covers) for covers in (False, True)
        )
        sums = plain.sums(released)
        given = covers.given_back(released, sums)
        assert given == pytest.approx(plain.given_back(released, sums) * share)


def test_an_interval_has_all_of_the_loss_of_those_who_have_most() -> None:
    """Their values may be their own, though those of others are shared by many."""
    release = release_of(2)
    choice = release.clip.choice if release.clip else None
    assert choice is not None
    noisy = np.zeros((1, 1, choice.buckets), np.int64)
    noisy[0, 0, 3], noisy[0, 0, 20] = 20_000, 200
    clipped = additive_release.ClippedTotals(np.zeros(DAYS), 64, 1, 8, True, noisy, DAYS)
    loss = release._loss(clipped, 1.0, release.noise)
    assert loss.covers and loss.by_norm
    norms, kept, lost = np.array(loss.by_norm).T
    whole = 2.0
    given, most = loss._sum_of_norm(whole * loss.kept)
    assert most == pytest.approx(whole * (lost @ norms) / (kept @ norms)) and given < most


@pytest.mark.parametrize("steps", [values._STEPS, 1 << 58])
@pytest.mark.parametrize(("most", "clip"), [(1_100_000, 1 << 20), (90_000, 1 << 16), (900, 7)])
def test_many_values_of_one_person_count(steps: int, most: int, clip: int) -> None:
    """They cover what they add to the sum, but for rounding; exactly, whatever 64 bits hold."""
    measure = Measure(0, thresholds=(clip,), norm=1, steps=steps)
    lines = Lines(np.zeros((1, most), np.int64), np.arange(most), np.full(most, most))
    fine = grid_of(clip, steps)
    shares = steps * most // most
    each = shares * (clip * fine // steps) // most
    covered = CoveredValues(measure, owner_lines.Relation(0, by_norm=True))
    assert covered._covered(lines, clip, fine) == each * most
    assert clip * 0.99 < each * most / fine <= clip
