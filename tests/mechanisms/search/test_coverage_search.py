"""How far the values of people are covered at each octave, how one person moves that, and the search.

All is exact, by the summaries of a pipeline, but for the draws that follow the law.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.metrics.additive.additive_release import ClippedTotals
from beam_dp.mechanisms.metrics.additive.shared_clip import SharedClip
from beam_dp.mechanisms.metrics.values import CoveredValues
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.search import coverage_search
from beam_dp.mechanisms.search.coverage_search import CoverageSearch, coverage
from beam_dp.mechanisms.summaries.histograms import Summary
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from beam_dp.testing import without_noise
from beam_dp.testing.losses import search_laws
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.columns.public_keys import KeyList, PublicKeys
from beam_dp.transforms.stages import draw_once, noise_off
from beam_dp.transforms.stages.bound_and_summarise import Selected
from tests.doubles import Asked, ZeroNoise, choices, compile_program
from tests.mechanisms.metrics.test_covered_values import rows_for_norms
from tests.relations import Patch, check_noticed, views

BUDGETS = {1: dp.Budget(1), 2: dp.Budget.zcdp(0.5)}
DAYS, MESH, WHOLE, OCTAVES = 6, 16, 2**30, 31
Data = list[dict[str, Any]]
NONE = np.zeros(0, np.int64)
NOTHING = Summary(np.empty((1, 0), np.uint64), *[NONE] * 4)
NOWHERE = PartitionView(NOTHING, NONE, 0)


def program_of(norm: int) -> Program:
    return compile_program([dp.DistinctCount("item")], BUDGETS[norm], 1, partitions=DAYS)


def covered(rows: Data, norm: int) -> np.ndarray:
    """Return what is covered of all days together, from the summaries of two buckets."""
    program = program_of(norm)
    parts = [program.coverage(view.cells)[0] for view in views(rows, program, buckets=2)]
    return np.sum([np.zeros(OCTAVES, np.int64), *parts], axis=0)


def rows_of(random: np.random.Generator, people: int, items: int) -> Data:
    each = np.minimum(np.ceil(random.lognormal(0.8, 1.3, people)), 60).astype(int)
    return [
        {"person": int(p), "day": int(random.integers(DAYS)), "item": int(random.integers(items))}
        for p in np.repeat(np.arange(people), each)
    ]


def by_hand(rows: Data, norm: int, octave: int) -> float:
    """Return how many values are covered, by the definition, in floats."""
    pairs = {(row["person"], row["day"], row["item"]) for row in rows}
    numbers = np.zeros((1 + max(person for person, *_ in pairs), DAYS))
    for person, day, _ in pairs:
        numbers[person, day] += 1
    norms = (numbers**norm).sum(axis=1) ** (1 / norm)
    found: dict[tuple[int, int], float] = {}
    for person, day, item in pairs:
        part = min(1.0, 2.0**octave / 16 / norms[person])
        found[day, item] = found.get((day, item), 0.0) + part
    return sum(min(1.0, part) for part in found.values())


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("items", [7, 10**6])
def test_it_is_what_the_definition_says(norm: int, items: int) -> None:
    rows = rows_of(np.random.default_rng(items + norm), 50, items)
    found = covered(rows, norm)
    assert found.shape == (OCTAVES,)
    for octave in range(12):
        # Norms are rounded up to 64ths of a value.
        assert found[octave] / WHOLE == pytest.approx(by_hand(rows, norm, octave), rel=0.02)
    assert (found[12:] == WHOLE * len({(row["day"], row["item"]) for row in rows})).all()


def quotients(rows: Data, norm: int) -> list[int]:
    root = 3 if norm == 2 else 1  # at least the root of `DAYS`
    return CoverageSearch(BUDGETS[norm]).needs(covered(rows, norm), root, 0.0, OCTAVES - 1)


@functools.cache
def neighbours(norm: int) -> list[tuple[Data, Data]]:
    """Return data with and without a person: random ones, and one who covers what others lack."""
    random, found = np.random.default_rng(11), []
    for items in (3, 25, 10**6):
        rows = rows_of(random, 10, items)
        for person in {row["person"] for row in rows}:
            found.append(([row for row in rows if row["person"] != person], rows))
    for own, others in ((1, 0), (40, 0), (40, 3), (3000, 40)):
        crowd = [
            {"person": 1 + i % 9, "day": day, "item": item}
            for i, (day, item) in enumerate((d, i) for d in range(DAYS) for i in range(others))
        ]
        mine = [{"person": 0, "day": day, "item": i} for day in range(DAYS) for i in range(own)]
        found.append((crowd, [*crowd, *mine]))
    return found


@pytest.mark.parametrize("norm", [1, 2])
def test_a_person_moves_a_quotient_by_a_mesh(norm: int) -> None:
    """The lemma; and it is nearly reached."""
    up = down = 0
    for one, other in neighbours(norm):
        moves = np.subtract(quotients(other, norm), quotients(one, norm))
        assert abs(moves).max() <= MESH
        up, down = max(up, moves.max()), min(down, moves.min())
    assert up >= 0.75 * MESH and down <= -0.3 * MESH


@pytest.mark.parametrize("norm", [1, 2])
def test_the_choice_costs_its_budget(norm: int) -> None:
    """Exact chances of all outcomes; the bound is on their rounding (1e-13 each)."""
    budget = BUDGETS[norm]
    epsilon = math.sqrt(2 * budget.amount) if budget.is_zcdp else float(budget.amount)
    search, worst = CoverageSearch(budget), 0.0
    for one, other in neighbours(norm):
        for worth in (0.1, 2.0):
            laws = [law(search, covered(rows, norm), worth, 20) for rows in (one, other)]
            both = [pair for pair in zip(*laws, strict=True) if min(pair) > 1e-250]
            worst = max(worst, *(abs(math.log(a / b)) for a, b in both))
    assert epsilon / 4 < worst <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("budget", BUDGETS.values())
def test_the_cost_is_reached(budget: dp.Budget) -> None:
    """Where one quotient rises by a mesh and the next one falls by it, both far from the cut."""
    epsilon = math.sqrt(2 * budget.amount) if budget.is_zcdp else float(budget.amount)
    rates = [*map(float, CoverageSearch(budget)._rates)]
    laws = [
        search_laws.stop_chances([-1000 - move, 1500 + move], [1, 1], *rates) for move in (0, MESH)
    ]
    worst = max(abs(math.log(a / b)) for a, b in zip(*laws, strict=True) if min(a, b) > 1e-250)
    assert worst == pytest.approx(epsilon)


def law(search: CoverageSearch, found: np.ndarray, worth: float, octaves: int) -> list[float]:
    """Return the chance of each octave, and of none."""
    root = 3 if search.budget.is_zcdp else 1  # at least the root of `DAYS`
    chances = search_laws.law_of_octaves(search, found, root, worth, octaves).chances
    assert math.isclose(sum(chances), 1, rel_tol=1e-9)
    return chances


@pytest.mark.sampled(2)
def test_the_draws_follow_the_law() -> None:
    search, runs, noise = CoverageSearch(dp.Budget(2)), 3000, Noise()
    found = covered(rows_of(np.random.default_rng(3), 60, 30), 1)
    wanted = np.array(law(search, found, 0.5, 8))
    drawn = [search.choose(found, 1, 0.5, 8, noise) for _ in range(runs)]
    shares = np.array([drawn.count(octave) for octave in (*range(8), None)]) / runs
    # DKW: the cumulative shares differ by more than d with a chance of 2 e^(-2 n d^2) = 1e-10.
    distance = math.sqrt(math.log(2e10) / (2 * runs))
    assert abs(np.cumsum(shares - wanted)).max() <= distance
    assert abs(np.cumsum(shares - np.roll(wanted, 1))).max() > distance


def test_without_noise_it_goes_on_as_long_as_more_is_covered() -> None:
    search = CoverageSearch(dp.Budget(1))
    shared = coverage(np.arange(4000) % 10, np.full(4000, 40), 1)
    own = coverage(np.arange(4000), np.full(4000, 40), 1)
    # An 8th of a value of each of 400 people covers a value; of an own one all 40 are needed.
    assert search.choose(shared, 1, 1.0, 10, ZeroNoise()) == 1
    assert search.choose(own, 1, 1.0, 9, ZeroNoise()) is None
    assert search.choose(own, 1, 1.0, 12, ZeroNoise()) == 10
    assert coverage(np.arange(0), np.arange(0), 1).tolist() == [0] * OCTAVES


def test_values_that_many_share_have_a_small_clip() -> None:
    """30 values that 2,000 people share, each with four of them: the histogram alone chooses 4."""
    random, people = np.random.default_rng(1), np.repeat(np.arange(2000), 4).tolist()
    days, items = random.integers(DAYS, size=8000).tolist(), random.integers(30, size=8000).tolist()
    shared = [
        {"person": person, "day": day, "item": item}
        for person, day, item in zip(people, days, items, strict=True)
    ]
    own = [row | {"item": place} for place, row in enumerate(shared)]
    program = program_of(1)
    [(_, release)] = program.covering
    [histogram, _] = choices(program, release.measure.thresholds.index(4))
    root, cost = release._root_and_cost(histogram, DAYS)
    for rows, least in ((shared, 0.9), (own, 0.0)):
        chances = law(release.search, covered(rows, 1), cost, 6)
        assert root == 1 and sum(chances[:4]) >= least
        assert least or chances[-1] > 0.5
        octave = release.octave(histogram, covered(rows, 1), DAYS, ZeroNoise())
        assert octave in range(4) if least else octave == -1
    [nobody, _] = choices(program, 0)
    asked = Asked()
    assert release.octave(nobody * 0, covered(shared, 1), DAYS, asked) == -1 and not asked.asked
    with without_noise():
        assert release.octave(histogram, covered(shared, 1), DAYS, noise_off.noise()) == -1


@pytest.mark.parametrize("partitions", [2, 3, 5, 7, 10, 50, 1000])
def test_a_norm_is_at_most_r_of_the_other(partitions: int) -> None:
    for norm, budget in BUDGETS.items():
        asked = [dp.DistinctCount("item")]
        program = compile_program(asked, budget, 1, partitions=partitions)
        [(_, release)] = program.covering
        [histogram, _] = choices(program, 3)
        root, _ = release._root_and_cost(histogram, partitions)
        assert root == 1 if norm == 1 else root**2 >= partitions > (root - 1) ** 2


def test_the_curve_rises_by_no_more_than_it_says_but_for_beta() -> None:
    """On a straight curve, as steep as it says, a search mostly goes on."""
    for budget in BUDGETS.values():
        search = CoverageSearch(budget)
        for cost in (0.5, 20.0):
            steep = math.ceil(search.steepest(cost) * WHOLE / 16)
            line = np.array([steep << octave for octave in range(3)])
            chances = search_laws.law_of_octaves(search, line, 1, cost, 1).chances
            assert 0.001 < chances[0] <= coverage_search._BETA


@pytest.mark.parametrize("octave", [3, 6, 9])
def test_what_a_smaller_clip_does_not_cover_is_in_the_interval(octave: int) -> None:
    """Above the number, all that the curve may rise by; nothing is given back."""
    for norm in BUDGETS:
        program = program_of(norm)
        [(step, release)] = program.covering
        fine, thresholds = release.measure.fine, release.measure.thresholds
        index = thresholds.index(256 * fine)
        histogram, _ = choices(program, thresholds.index(1024 * fine))
        clip = release.clip_at(index, NOWHERE.at(step.first, histogram, octave))
        assert clip * 16 == fine << octave
        made = ClippedTotals(np.zeros(DAYS), clip, 1, index, True, histogram, DAYS)
        whole = release._loss(dataclasses.replace(made, clip=thresholds[index]), 1, release.noise)
        loss = release._loss(made, 1.0, release.noise)
        root, cost = release._root_and_cost(histogram, DAYS)
        wider = float((thresholds[index] - clip) * release.unit)
        assert loss.lost == whole.uncovered == 0 < whole.lost and loss.above == whole.above
        assert loss.uncovered == pytest.approx(root * release.search.steepest(cost) * wider)
        numbers = np.full(DAYS, 500.0)
        none = dataclasses.replace(loss, uncovered=0.0)
        (below, above), (same, less) = (
            each.widths(numbers, each.sums(numbers)) for each in (loss, none)
        )
        assert (below == same).all() and (above > less).all()


def test_one_search_is_drawn_where_either_noise_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [dp.DistinctCount("item")]
    program = compile_program(asked, dp.Budget(1, 1e-6), 1, partitions=1000)
    assert [release.measure.norm for _, release in program.covering] == [1, 2]
    labels = [label.rpartition(": ")[2] for label, *_ in program.entries]
    assert labels == ["noise", "coverage", "clip", "clip (L2)"]
    found: list[CoverageSearch] = []
    histograms = choices(program, 3)
    monkeypatch.setattr(
        SharedClip, "choose", lambda self, *_: histograms[program.clips.index(self)]
    )
    monkeypatch.setattr(CoverageSearch, "choose", lambda self, *_: found.append(self))
    line = np.zeros((2, OCTAVES), np.int64)
    *_, one, two = program.choose_clips(NOWHERE, ZeroNoise(), [line])
    assert len(found) == 1 and one == two == -1


def test_quotients_are_rounded_down() -> None:
    least, search = WHOLE // 16, CoverageSearch(dp.Budget(1))
    line = np.cumsum([0, least - 1, 2 * least + 1, 4 * least])
    assert search.needs(line, 1, 0.0, 3) == [15, 16, 16]


@pytest.mark.parametrize(("partitions", "part"), [(2, 0.32), (50, 0.15), (None, 0.15)])
def test_the_search_has_its_part_and_the_noise_the_rest(
    partitions: int | None, part: float
) -> None:
    program = compile_program([dp.DistinctCount("item")], dp.Budget(1), 1, partitions=partitions)
    costs = {label.rpartition(": ")[2]: cost.amount for label, cost, _ in program.entries}
    whole = costs["noise"] + costs["coverage"]
    assert float(costs["coverage"] / whole) == pytest.approx(part, abs=0.01)
    assert whole + costs["clip"] == 1


def test_every_bucket_says_what_it_covers_of_what_was_selected() -> None:
    layout = Layout(
        "person",
        ("day",),
        program_of(1).columns,
        PublicKeys(KeyList.of(((1,), (2,), (3,)))),
        bytes(32),
    )
    for bucket in (0, 1):
        places = draw_once.BucketPartitions(layout, 2)
        [found] = draw_once.covered_by((bucket, [b""]), program_of(1), places)
        assert found.tolist() == [[0] * OCTAVES]
    private = dp.PrivateAggregate("p", [dp.DistinctCount("item")], dp.Budget(1, 1e-6), ["day"])
    one = Selected(0, np.zeros((2, 1), np.uint64), np.array([None]))
    places = draw_once.BucketPartitions(dataclasses.replace(layout, public=None), 1)
    given = private._program, places, None
    assert private._program.covering and [*draw_once.covered_by((0, [b""]), *given, [one] * 2)]
    # Of one partition the clip is chosen in another way.
    assert not [*draw_once.covered_by((0, [b""]), *given, [one])]


def one_day(patch: Patch) -> None:
    """Take the values of all days for those of one."""

    def of_items(self: CoveredValues, view: PartitionView) -> np.ndarray:
        _, lines = view.lines(1)
        return coverage(lines.item, lines.count, self.measure.fine)

    patch.setattr(CoveredValues, "coverage", of_items)


def twice_the_least(patch: Patch) -> None:
    def twice(values: np.ndarray, norms: np.ndarray, fine: int) -> np.ndarray:
        return coverage(values, norms, 2 * fine)

    patch.setattr(coverage_search, "coverage", twice)


def no_root(patch: Patch) -> None:
    needs = CoverageSearch.needs
    patch.setattr(
        CoverageSearch, "needs", lambda self, found, _, *rest: needs(self, found, 1, *rest)
    )


MUTANTS: list[tuple[Callable[[Patch], None], Callable[[], None]]] = [
    (rows_for_norms, lambda: test_a_person_moves_a_quotient_by_a_mesh(1)),
    (rows_for_norms, lambda: test_a_person_moves_a_quotient_by_a_mesh(2)),
    (twice_the_least, lambda: test_a_person_moves_a_quotient_by_a_mesh(1)),
    (no_root, lambda: test_a_person_moves_a_quotient_by_a_mesh(2)),
    (one_day, lambda: test_it_is_what_the_definition_says(1, 7)),
]


@pytest.mark.parametrize(("mutant", "check"), MUTANTS)
def test_mutants_are_noticed(mutant: Callable[[Patch], None], check: Callable[[], None]) -> None:
    check_noticed(check, mutant)


def test_each_number_has_the_octave_of_its_own_search() -> None:
    asked = [dp.DistinctCount("item"), dp.DistinctCount("word")]
    program = compile_program(asked, dp.Budget(1), 1, partitions=DAYS)
    *histograms, _, _ = choices(program, 9)
    clips = (*histograms, np.array(3), np.array(5))
    drawn = program.release(PartitionView(NOTHING, NONE, DAYS), clips, ZeroNoise())
    assert [each.loss.clip for each in drawn if each.loss] == [2.0**3 / 16, 2.0**5 / 16]
