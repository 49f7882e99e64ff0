"""A program spends its budget exactly, in exact rationals, whatever is asked for."""

import itertools
import math
import pickle
import random
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.account import Account
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.accounting.zcdp import zcdp_epsilon
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.columns import Column, Role
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.defaults import default_totals, default_values
from beam_dp.mechanisms.metrics import base, extremes, mean, totals
from beam_dp.mechanisms.metrics.clipped import ClippedSum
from beam_dp.mechanisms.noise.partition_selection import GaussianThreshold
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics.intervals import root_below
from beam_dp.mechanisms.planning.allocation import SelectionRequest
from beam_dp.mechanisms.planning.program import Program, compile_loss, compile_program
from beam_dp.mechanisms.search import AboveThreshold, ExponentialMechanism, NoisyBinarySearch
from beam_dp.mechanisms.summaries import histograms
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from tests.doubles import ZeroNoise
from tests.reference import Row, table_of

SMALL = Candidates.linear(0, 20, 1)
METRICS = {
    "people": [totals.PeopleCount()],
    "count": [totals.Count()],
    "clip of a partition": [totals.Sum("x", clip="partition", clip_share=0.3), totals.Count()],
    "one threshold": [totals.Count(candidates=Candidates.of([3]))],
    "one-sided": [
        totals.Count(one_sided=True, candidates=SMALL),
        totals.Sum("x", one_sided=True, candidates=SMALL, search=ExponentialMechanism),
        extremes.Max("y", candidates=SMALL, search=NoisyBinarySearch),
    ],
    "extremes": [extremes.Max("x", candidates=SMALL), extremes.Min("x", candidates=SMALL)],
    "mean of rows and sum": [mean.Mean("x"), totals.Sum("x"), mean.Mean("y", per="person")],
    "all": [
        totals.Count(weight=3),
        totals.Sum("x", weight=0.1),
        totals.Sum("y", one_sided=True, candidates=SMALL, weight=Fraction(2, 7)),
        extremes.Max("x", candidates=SMALL, search=AboveThreshold),
        totals.PeopleCount(),
        mean.Mean("x", own_count=True, name="m"),
    ],
}
BUDGETS = [
    Budget(1.0),
    Budget(Fraction(1, 3), 1e-6),
    Budget(0.1, 1e-9),
    Budget(4.0, 1e-5),
    Budget.zcdp(0.3),
    Budget.zcdp(Fraction(1, 7), 1e-7),
]
SELECTIONS = [None, SelectionRequest(Fraction(1), 1), SelectionRequest(Fraction(2, 5), 10)]
TABLE = [
    (name, budget, reach, depth, selection)
    for name, budget, reach, depth, selection in itertools.product(
        METRICS, BUDGETS, (1, 3, 1000), (None, 1, 6), SELECTIONS
    )
    if selection is None or budget.delta
]


def names_of(program: Program) -> list[str]:
    """Return the columns that are read, in the order of a table; all of them are numbers."""
    assert {column.role for column in program.columns} <= {Role.VALUE}
    return [column.name for column in program.columns]


def costs_of(program: Program) -> list[tuple[Budget, int]]:
    """Return what the releases themselves would spend, and how often one person pays it."""
    costs = []
    for step in program.steps:
        release = step.release
        if isinstance(release, ClippedSum):
            costs.append((release.noise_costs[-1], program.reach))
            times = 1 if step.shared is not None else program.reach
            costs += [(look, times) for look in release.looks[-1:]]
            check_looks(release, program.reach, times)
        else:
            costs += [(spending.cost, program.reach) for spending in release.spends]
    return costs


def check_looks(release: ClippedSum, reach: int, times: int) -> None:
    """Whichever look is used, it and the noise that follows it cost the same."""
    assert len(release.noise_costs) == max(1, len(release.looks))
    wholes = {
        look.amount * times + noise.amount * reach
        for look, noise in zip(release.looks, release.noise_costs, strict=False)
    }
    assert len(wholes) <= 1 and len(release.looks) <= 2
    amounts = [look.amount for look in release.looks]
    assert amounts == sorted(set(amounts))
    if len(amounts) == 2:  # a coarser look is made of a finer one of discrete Laplace noise
        assert not release.looks[0].is_zcdp


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("name", "budget"), list(itertools.product(METRICS, BUDGETS)), ids=str)
def test_every_program_spends_its_whole_budget_and_no_more(name, budget):
    for _, _, reach, depth, selection in (row for row in TABLE if row[:2] == (name, budget)):
        program = compile_program(METRICS[name], budget, reach, depth=depth, selection=selection)
        whole = program.budget
        account = Account(whole)
        entries = [entry for entry in program.entries if not entry[0].startswith("centre")]
        for label, cost, times in entries:
            account.spend(label, cost, times)
        assert account.amount == whole.amount
        assert account.delta == (whole.delta if selection is not None else 0)
        # The releases hold the very costs that were entered.
        entered = [(cost, times) for label, cost, times in entries if "selection" not in label]
        assert sorted(entered, key=repr) == sorted(costs_of(program), key=repr)
        check_whole(program, selection)
        check_selection(program, selection)


def check_whole(program: Program, selection: SelectionRequest | None) -> None:
    """Centres and the rest cost the budget, or a zCDP budget that is proved to be within it."""
    budget, whole = program.question.budget, program.budget
    centres = sum(cost.amount for cost in program.question.centre_costs.values())
    if whole.is_zcdp == budget.is_zcdp:
        assert whole.amount + centres == budget.amount and whole.delta == budget.delta
        return
    assert whole.is_zcdp and budget.delta > 0
    assert whole.delta == (budget.delta / 2 if selection is not None else 0)
    together = program.question.whole.is_zcdp  # else the centres are counted in epsilon
    epsilon = zcdp_epsilon(whole.rho + centres * together, budget.delta - whole.delta)
    assert epsilon + float(centres) * (not together) <= budget.epsilon * (1 + 1e-9)


def check_selection(program: Program, selection: SelectionRequest | None) -> None:
    """All selections of one person's partitions together cost what was entered for them."""
    if selection is None:
        assert program.selection is None
        return
    [(cost, times)] = [entry[1:] for entry in program.entries if entry[0] == "partition selection"]
    chosen = program.selection
    assert times == program.reach and chosen.pre_threshold == selection.pre_threshold
    assert chosen.delta == cost.delta and chosen.delta * program.reach == program.budget.delta
    if isinstance(chosen, GaussianThreshold):
        assert cost.is_zcdp and chosen.rho == cost.amount
        return
    spent = chosen.epsilon**2 / 2 if cost.is_zcdp else chosen.epsilon
    assert (1 - Fraction(1, 2**40)) * cost.amount <= spent <= cost.amount


def test_weights_share_the_budget():
    program = compile_program(
        [totals.PeopleCount(weight=3), totals.Count(), extremes.Max("x", weight=0.5)],
        Budget(9.0),
        1,
    )
    amounts = [
        sum(cost.amount for label, cost, _ in program.entries if label.startswith(f"{place} "))
        for place in range(3)
    ]
    assert amounts == [6, 2, 1]


def test_selection_has_its_weight_too():
    request = SelectionRequest(Fraction(1, 2), 1)
    program = compile_program([totals.PeopleCount()], Budget(3.0, 1e-9), 1, selection=request)
    assert not program.budget.is_zcdp
    assert {label: cost.epsilon for label, cost, _ in program.entries} == {
        "partition selection": 1,
        "0 people: noise": 2,
    }


def test_a_shared_clip_is_paid_once_and_noise_in_every_partition():
    for clip, times in (("shared", 1), ("partition", 5)):
        program = compile_program([totals.Count(clip=clip, clip_share=0.25)], Budget(4.0), 5)
        assert [entry for entry in program.entries if "clip" in entry[0]] == [
            ("0 rows: clip", Budget(Fraction(1, times)), times)
        ]
        assert ("0 rows: noise", Budget(Fraction(3, 5)), 5) in program.entries
        assert len(program.shared_measures) == (clip == "shared")


@pytest.mark.parametrize(
    ("partitions", "share"),
    [
        (1, Fraction(2, 5)),
        (2, Fraction(2, 5)),
        (16, Fraction(1, 5)),
        (10**4, Fraction(1, 32)),
        (None, Fraction(1, 8)),
    ],
)
def test_the_default_share_of_the_clip(partitions, share):
    program = compile_program([totals.Count()], Budget(1.0), 1, partitions=partitions)
    [step] = program.steps
    assert isinstance(step.release, ClippedSum) and step.release.looks[-1] == Budget(share)
    parts = ("clip and noise", 1) if partitions == 1 else ("clip", share)
    assert (f"0 rows: {parts[0]}", Budget(parts[1]), 1) in program.entries


@pytest.mark.parametrize("kind", [np.float32, np.float64, Fraction, float])
def test_numbers_of_any_kind_are_taken_exactly(kind):
    asked = [totals.Sum("x", weight=kind(0.5), clip_share=kind(0.5), unit=kind(0.25))]
    program = compile_program([*asked, totals.PeopleCount()], Budget(3.0), 1)
    assert program.columns == (Column("x", Role.VALUE, Fraction(1, 4)),)
    assert ("0 sum x: clip", Budget(Fraction(1, 2)), 1) in program.entries
    assert ("1 people: noise", Budget(2), 1) in program.entries


def test_wrapping_integers_do_not_get_into_the_shares():
    program = compile_program([totals.Count(weight=np.int64(2**62))], Budget(1.0), 4)
    assert sum(cost.amount * times for _, cost, times in program.entries) == 1
    assert all(type(cost.amount.numerator) is int for _, cost, _ in program.entries)


def test_a_mean_shares_its_parts():
    asked = [
        mean.Mean("x", own_count=True),
        totals.Sum("x"),
        mean.Mean("x", per="person", own_count=True, name="per_person"),
    ]
    program = compile_program(asked, Budget(15.0), 1)
    assert [(type(step.part), step.part.word) for step in program.steps] == [
        (mean.Distances, "distances"),
        (mean.RowsWithValue, "valid"),
        (totals.Sum, "sum"),
        (mean.Distances, "distances"),
        (mean.PeopleWithValue, "valid"),
    ]
    amounts = [
        sum(cost.amount for label, cost, _ in program.entries if label.startswith(f"{place} "))
        for place in range(5)
    ]
    mean_part = Fraction(17, 40)
    parts = [mean_part, mean_part, 1, mean_part, mean_part]
    assert amounts == [5 * part for part in parts]  # 17/20: a centre is paid before
    twice = [mean.Mean("x"), mean.Mean("x", name="again")]
    assert len(compile_program(twice, Budget(1.0), 1).steps) == 2


def test_fields_are_shared_and_measures_have_their_places():
    program = compile_program(METRICS["all"], Budget(1.0), 2)
    assert names_of(program) == ["x", "y"]
    assert [(field.column, field.operation) for field in program.fields] == [
        (0, "sum"),
        (1, "sum"),
        (0, "max"),
        (0, "count"),
    ]
    assert program.measures[0] == histograms.Measure(histograms.PEOPLE)
    for step in program.steps:
        measures = program.measures[step.first : step.first + len(step.release.measures)]
        assert measures == step.release.measures
    assert [step.shared for step in program.steps] == [0, 1, None, None, None, 2, 3]


@pytest.mark.parametrize(("depth", "expected"), [(1, (1,)), (6, (1, 2, 4, 6)), (8, (1, 2, 4, 8))])
def test_the_clips_of_a_count_end_at_the_row_bound(depth, expected):
    [step] = compile_program([totals.Count()], Budget(1.0), 1, depth=depth).steps
    assert step.release.thresholds == expected
    assert (step.release.looks == ()) == (depth == 1)


def test_candidates_of_a_clip_are_rounded_up_to_units():
    candidates = Candidates.of([-3, 0, 0.001, 0.5, 0.51, 7])
    [step] = compile_program(
        [totals.Sum("x", unit=0.25, candidates=candidates)], Budget(1.0), 1
    ).steps
    assert step.release.thresholds == (1, 3, 28)  # each at least twice the one before


@pytest.mark.parametrize("search", [AboveThreshold, ExponentialMechanism, NoisyBinarySearch])
@pytest.mark.parametrize("budget", [Budget(2.0), Budget.zcdp(0.5)], ids=str)
def test_one_sided_releases_keep_what_their_search_can_look_at(search, budget):
    asked = [extremes.Min("x", search=search, candidates=SMALL, beta=0.2)]
    [step] = compile_program(asked, budget, 2).steps
    release = step.release
    assert release.search.beta == 0.2 and release.search.cost == budget.scaled(Fraction(1, 2))
    assert release.profiler.measure.keep == release.search.cap(SMALL.size) + 1
    assert (
        list(release.candidates) == [-y for y in SMALL][::-1]
        and release.profiler.measure.sign == -1
    )


def test_the_default_candidates_are_multiples_of_the_unit_and_wide():
    grid = default_totals(Fraction(1, 4))
    values = [grid[i] for i in (0, 1, 2, 100, grid.size - 1)]
    assert values[0] == 0 and values[1] == 0.25 and values[-1] >= 2**60
    assert all(Fraction(value) % Fraction(1, 4) == 0 for value in values)
    grid = default_values(Fraction(1))
    assert grid[0] == -grid[grid.size - 1] and grid[grid.size - 1] == 1e24
    assert 0 in list(grid)
    assert list(grid.mirrored()) == list(grid)


def test_the_smaller_noise_is_taken():
    # Many partitions: zCDP composes with the root of their number. One: pure noise is smaller.
    many = compile_program([totals.PeopleCount()], Budget(1.0, 1e-6), 1000)
    one = compile_program([totals.PeopleCount()], Budget(1.0, 1e-6), 1)
    assert many.budget.is_zcdp and not one.budget.is_zcdp
    [pure] = compile_program([totals.PeopleCount()], Budget(1.0), 1000).steps
    deviation = math.sqrt(1000 / (2 * float(many.budget.rho)))
    assert deviation < math.sqrt(2) / float(pure.release.noise_costs[0].epsilon)


def test_the_root_is_just_below():
    for value in (Fraction(2), Fraction(1, 3), Fraction(1, 2**100), Fraction(10**40), Fraction(9)):
        found = root_below(value)
        assert found**2 <= value < (found * (1 + Fraction(1, 2**60))) ** 2


REFUSED = [
    (
        [totals.Count()],
        Budget(1.0),
        SelectionRequest(Fraction(1), 1),
        r"PrivatePartitions: delta must be above 0 .* not 0\. Write Budget\(",
    ),
    (
        [totals.Sum("x"), extremes.Max("x", unit=0.5)],
        Budget(1.0),
        None,
        r"Max: unit must be the same for all metrics of 'x', not both 1e-06 and 0\.5\.",
    ),
    (
        [totals.Sum("x", candidates=Candidates.linear(0, 10**6, 1))],
        Budget(1.0),
        None,
        r"Sum: candidates for a clip must be at most 4096, not 1000001\. Write Candidates",
    ),
    (
        [totals.Count(candidates=Candidates.linear(0, 5000, 1))],
        Budget(1.0),
        None,
        r"Count: candidates for a clip must be at most 4096, not 5001\. Write Candidates",
    ),
    ([totals.Count()], Budget(1e-15), None, r"epsilon must be above 0 \(at least 2\^-50\)"),
]


@pytest.mark.parametrize(("asked", "budget", "selection", "message"), REFUSED)
def test_what_cannot_be_promised_is_refused(asked, budget, selection, message):
    with pytest.raises(ValueError, match=message):
        compile_program(asked, budget, 10, selection=selection)


def test_a_metric_that_builds_no_release_cannot_be_released():
    class Own(base.Metric):
        pass

    with pytest.raises(TypeError, match="^Own: its parts are released"):
        compile_program([Own()], Budget(1.0), 1)


def test_many_candidates_are_fine_where_they_cost_nothing():
    wide = Candidates.linear(0, 10**15, 1)
    [step] = compile_program(
        [totals.Sum("x", one_sided=True, candidates=wide)], Budget(1.0), 1
    ).steps
    assert step.release.candidates is wide


@pytest.mark.parametrize("name", METRICS)
def test_a_program_survives_pickling(name):
    program = compile_program(METRICS[name], Budget(1.0, 1e-6), 3, selection=SELECTIONS[1])
    assert pickle.loads(pickle.dumps(program)) == program


def cells_of(program: Program, rows: list[Row]) -> tuple[PartitionView, tuple[int, ...]]:
    """Return the summary of rows in partitions 0..2, and the shared clips drawn without noise."""
    bounder = Bounder(ContributionBounds(None), program.fields, b"key")
    columns = len(program.columns)
    table = bounder.settle(bounder.prepare(table_of(rows, columns=columns)))
    summary = histograms.summarise(table, program.measures)
    clips = ()
    if program.shared_measures:
        people = histograms.summarise_people(table, program.shared_measures)
        clips = program.choose_clips(
            PartitionView(people, np.zeros(len(people), np.int64), 1), ZeroNoise()
        )
    return PartitionView(summary, summary.partition[0].astype(np.int64), 3), clips


def test_a_program_releases_every_metric_in_order():
    generator = random.Random(1)
    rows = [
        Row((person, 0), (person % 2, 0), (generator.randrange(5), generator.choice((None, 2))))
        for person in range(4000)
        for _ in range(2)
    ]
    asked = [
        totals.Sum("y", unit=1),
        totals.PeopleCount(),
        mean.Mean("x", unit=1, own_count=True),
        mean.Mean("y", unit=1, own_count=True, per="person", name="per_person"),
        totals.Count(),
    ]
    program = compile_program(asked, Budget(50.0), 1)
    assert names_of(program) == ["y", "x"]
    swapped = [Row(row.person, row.partition, row.values[::-1]) for row in rows]
    drawn = program.release(*cells_of(program, swapped), ZeroNoise())
    assert len(drawn) == len(program.steps)
    columns = program.combine(drawn, program.sums(drawn))
    assert len(columns) == len(program.outputs)
    found = list(zip(columns[::3], columns[1::3], columns[2::3], strict=True))
    for place in range(2):
        inside = [row for row in rows if row.partition[0] == place]
        x, y = ([row.values[k] for row in inside if row.values[k] is not None] for k in (0, 1))
        people = {row.person for row in inside if row.values[1] is not None}
        expected = [sum(y), 2000, sum(x) / len(x), sum(y) / len(people), 4000]
        for (values, lows, highs), exact in zip(found, expected, strict=True):
            assert values[place] == pytest.approx(exact, rel=0.02)  # a few people may be cut
            assert 0.9 * exact < lows[place] <= values[place] <= highs[place]
    empty = [float(values[2]) for values, _, _ in found]  # of a partition without rows
    assert np.array_equal(empty, [0, 0, math.nan, math.nan, 0], equal_nan=True)
    unknown = [lows[2] == -math.inf and highs[2] == math.inf for _, lows, highs in found]
    assert unknown[2:4] == [True, True] and not unknown[1]  # of a mean of nothing


def test_partitions_are_selected_by_their_people():
    program = compile_program([], Budget(1.0, 1e-6), 1, selection=SelectionRequest(Fraction(1), 1))
    assert program.selection.epsilon == 1 and program.steps == ()
    rows = [Row((person, 0), (person % 2 * (person < 4), 0), ()) for person in range(500)]
    cells, _ = cells_of(program, rows)
    assert cells.people(0).tolist() == [498, 2, 0]
    # 498 are above the threshold; 2 people are kept with a chance of about 4e-6, nobody never.
    assert program.selection.threshold < 498
    assert program.select(cells, Noise()).tolist()[0] == 0
    assert 2 not in program.select(cells, Noise())
    public = compile_program([totals.Count()], Budget(1.0), 1)
    assert public.select(cells, Noise()).tolist() == [0, 1, 2]


def test_the_loss_of_a_statistic_needs_no_budget():
    loss = compile_loss(extremes.Min("x", unit=0.5), 3)
    assert loss.columns == (Column("x", Role.VALUE, Fraction(1, 2)),)
    measure = loss.profiler.measure
    assert (measure.keep, measure.sign, measure.additive) == (4, -1, False)
    assert compile_loss(totals.PeopleCount(), 0).profiler.measure.source == histograms.PEOPLE
