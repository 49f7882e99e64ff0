"""A program spends its budget exactly, in exact rationals, whatever is asked for.

How a budget is shared out among parts: exactly, by weight, and a delta to who wants one.

The columns and steps of a program: labels, measures, shared clips, and what each enters.

Whatever bound is chosen, the search and the program for it cost the whole, and no more.

Partitions are selected first, and their number is known to the rest.
"""

import collections
import dataclasses
import itertools
import math
import pickle
import random
from fractions import Fraction

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.accounting.budget import Budget, check_total, cost_of_all, counted
from beam_dp.mechanisms.accounting.zcdp import zcdp_rho
from beam_dp.mechanisms.bounding.table import Column, Role
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.decimal_grid import VALUE_CLIPS
from beam_dp.mechanisms.histogram_choice.partition_bound import LADDER, edges_up_to
from beam_dp.mechanisms.metrics import REGISTRY, mean, quantiles, sums
from beam_dp.mechanisms.metrics.base import CENTRE, Context
from beam_dp.mechanisms.metrics.released import Released
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.noise.partition_selection import WeightedThreshold
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics.enclosures import root_below
from beam_dp.mechanisms.planning import adaptive
from beam_dp.mechanisms.planning.budget_split import SelectionRequest, part_weights_of, share_out
from beam_dp.mechanisms.planning.compile import (
    CAP,
    SEARCH,
    build,
    columns_of,
    compiled,
    may_be_gaussian,
    program_at,
)
from beam_dp.mechanisms.planning.program import Adaptive, Program
from beam_dp.mechanisms.planning.request import CAP_SHARE, SEARCH_SHARE
from beam_dp.mechanisms.search import AboveThreshold, ExponentialMechanism, NoisyBinarySearch
from beam_dp.mechanisms.summaries.histograms import WEIGHTS, Measure, Summary
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from tests.doubles import Asked, ZeroNoise, compile_program
from tests.reference import Row, of_everybody, of_places, settled, table_of

SMALL = Candidates.linear(0, 20, 1)
METRICS = {
    "people": [sums.PeopleCount()],
    "count": [sums.Count()],
    "one threshold": [sums.Count(clip=3)],
    "one-sided": [
        sums.Count(search=AboveThreshold, candidates=SMALL),
        sums.Sum("x", candidates=SMALL, search=ExponentialMechanism),
        quantiles.Max("y", candidates=SMALL, search=NoisyBinarySearch),
    ],
    "extremes": [quantiles.Max("x", candidates=SMALL), quantiles.Min("x", candidates=SMALL)],
    "mean of rows and sum": [mean.Mean("x"), sums.Sum("x"), mean.Mean("y", per="person")],
    "ranks": [dp.KthLargest("x", 3), dp.Median("x"), dp.Quantile("x", 0.9, per="row")],
    "different": [dp.DistinctCount("x")],
    "of values": [dp.DistinctCount("x"), dp.MaxFrequency("x"), dp.SumOfSquares("x")],
    "all": [
        sums.Count(weight=3),
        sums.Sum("x", weight=0.1),
        sums.Sum("y", search=AboveThreshold, candidates=SMALL, weight=Fraction(2, 7)),
        quantiles.Max("x", candidates=SMALL, search=AboveThreshold),
        sums.PeopleCount(),
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
FIRST = ("centre", CAP)
"""What is chosen before."""
PLACES = [(1, 1), (3, None), (1000, None), (5, 5)]
"""Bounds on partitions per person, and public numbers of partitions."""
TABLE = [
    (name, budget, places, max_rows_per_partition, selection)
    for name, budget, places, max_rows_per_partition, selection in itertools.product(
        METRICS, BUDGETS, PLACES, (None, 1), SELECTIONS
    )
    if selection is None or (budget.delta and places[1] is None)
]


def names_of(program: Program) -> list[str]:
    """Return the columns that are read, in the order of a table; all of them are numbers."""
    assert {column.role for column in program.columns} <= {Role.VALUE}
    return [column.name for column in program.columns]


def costs_of(program: Program) -> list[tuple[Budget, int]]:
    """Return what the releases themselves would spend, and how often one person pays it.

    Where there is Gaussian noise for Laplace noise both choose their clips, and one has noise.
    """
    pairs = zip(program.steps, program.gaussian, strict=True)
    spends = [
        (*one.release.spends, *(() if one is two else two.release.clip.spends))
        for one, two in pairs
    ]
    return [
        (cost, 1 if once else program.max_partitions) for each in spends for cost, _, once in each
    ]


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("name", "budget"), list(itertools.product(METRICS, BUDGETS)), ids=str)
def test_every_program_spends_its_whole_budget_and_no_more(name, budget):
    for _, _, places, max_rows_per_partition, selection in (
        row for row in TABLE if row[:2] == (name, budget)
    ):
        program = compile_program(
            METRICS[name],
            budget,
            places[0],
            max_rows_per_partition=max_rows_per_partition,
            selection=selection,
            partitions=places[1],
        )
        whole = program.composed
        entries = [entry for entry in program.entries if not entry[0].startswith(FIRST)]
        assert sum(counted(whole, cost) * times for _, cost, times in entries) == whole.amount
        spent = sum(cost.delta * times for _, cost, times in entries)
        # Half of a delta is kept for Gaussian noise, even where nothing adds up.
        both = program.gaussian != program.steps
        idle = (
            may_be_gaussian(program.request, program.partitions) and not whole.is_zcdp and not both
        )
        wanted = whole.delta * (selection is not None or both)
        assert spent == (wanted / 2 if idle else wanted)
        # The releases hold the very costs that were entered.
        entered = [(cost, times) for label, cost, times in entries if "selection" not in label]
        assert sorted(entered, key=repr) == sorted(costs_of(program), key=repr)
        check_whole(program, selection)
        check_selection(program, selection)
        check_gaussian(program)


def first_of(program: Program) -> Fraction:
    """Return what centres and the cap of the selection cost."""
    costs = [cost.amount for label, cost, _ in program.entries if label.startswith(FIRST)]
    assert (CAP_SHARE * program.request.whole.amount in costs) == program.request.chooses_cap
    return sum(costs, Fraction(0))


def check_gaussian(program: Program) -> None:
    """All Gaussian noise costs no more than the Laplace noise whose place it may take."""
    pairs = zip(program.steps, program.gaussian, strict=True)
    both = [(one.release, two.release) for one, two in pairs if one is not two]
    if both:
        laplace, gaussian = (  # all but the histogram, which comes last
            [spent.cost for each in noises for spent in each.spends[:-1]]
            for noises in zip(*both, strict=True)
        )
        epsilon, delta = sum(each.amount for each in laplace), sum(each.delta for each in laplace)
        assert sum(each.rho for each in gaussian) <= zcdp_rho(epsilon, delta)
        assert all(one.measure.norm == 1 and two.measure.norm == 2 for one, two in both)


def check_whole(program: Program, selection: SelectionRequest | None) -> None:
    """Centres, a cap and the rest cost the budget, or a zCDP budget that is proved to be within it."""
    budget, whole = program.request.budget, program.composed
    first = first_of(program)
    if whole.is_zcdp == budget.is_zcdp:
        assert whole.amount + first == budget.amount and whole.delta == budget.delta
        return
    assert whole.is_zcdp and budget.delta > 0 and program.gaussian == program.steps
    assert whole.delta == (budget.delta / 2 if selection is not None else 0)
    together = program.request.whole.is_zcdp  # else the centres are counted in epsilon
    most = zcdp_rho(budget.epsilon - first * (not together), budget.delta - whole.delta)
    assert whole.rho + first * together <= most


def check_selection(program: Program, selection: SelectionRequest | None) -> None:
    """All selections of one person's partitions together cost what was entered for them."""
    if selection is None:
        assert program.selection is None
        return
    [(cost, times)] = [entry[1:] for entry in program.entries if entry[0] == "partition selection"]
    chosen = program.selection
    assert chosen.pre_threshold == selection.pre_threshold
    kept = may_be_gaussian(program.request, program.partitions) and not program.composed.is_zcdp
    assert cost.delta * times == program.composed.delta / (2 if kept else 1)
    if isinstance(chosen, WeightedThreshold):
        assert times == 1 and chosen.most == program.cap
        delta = cost.delta if cost.is_zcdp else cost.delta / 2
        rho = cost.amount if cost.is_zcdp else zcdp_rho(cost.amount, delta)
        assert (chosen.rho, chosen.delta) == (rho, delta)
        return
    assert times == program.cap and chosen.delta == cost.delta
    spent = chosen.epsilon**2 / 2 if cost.is_zcdp else chosen.epsilon
    assert (1 - Fraction(1, 2**40)) * cost.amount <= spent <= cost.amount


def test_weights_share_the_budget_and_selection_has_one_too():
    asked = [sums.PeopleCount(weight=3), sums.Count(), quantiles.Max("x", weight=0.5)]
    request = SelectionRequest(Fraction(1, 2), 1)
    for metrics, budget, selection, wanted in (
        (asked, Budget(9.0), None, {"0": 6, "1": 2, "2": 1}),
        (asked[1:2], Budget(3.0, 1e-9), request, {"0": 2, "p": 1}),
    ):
        amounts = collections.Counter()
        for label, cost, _ in compile_program(
            metrics, budget, 1, bound=1, selection=selection
        ).entries:
            amounts[label[0]] += cost.epsilon
        assert amounts == wanted


def test_the_smaller_noise_is_taken():
    # Many partitions: zCDP composes with the root of their number. One: pure noise is smaller.
    asked = [dp.DistinctCount("x", clip=1)]
    many = compile_program(asked, Budget(1.0, 1e-6), 1000, partitions=1000)
    one = compile_program(asked, Budget(1.0, 1e-6), 1, partitions=1)
    assert many.composed.is_zcdp and not one.composed.is_zcdp
    [pure] = compile_program(asked, Budget(1.0), 1000, partitions=1000).steps
    deviation = math.sqrt(1000 / (2 * float(many.composed.rho)))
    assert deviation < math.sqrt(2) / float(pure.release.noise_cost.epsilon)


def test_the_root_is_just_below():
    for value in (Fraction(2), Fraction(1, 3), Fraction(1, 2**100), Fraction(10**40), Fraction(9)):
        found = root_below(value)
        assert found**2 <= value < (found * (1 + Fraction(1, 2**60))) ** 2


def test_what_cannot_be_promised_is_refused():
    message = r"Budget: delta must be above 0 .* not 0\. Write Budget\("
    with pytest.raises(ValueError, match=message):
        compile_program([sums.Count()], Budget(1.0), 10, selection=SELECTIONS[1])
    with pytest.raises(ValueError, match=r"epsilon must be above 0 \(at least 2\^-50\)"):
        compile_program([sums.Count()], Budget(1e-15), 10)


def test_each_cap_that_may_be_chosen_is_compiled_before_the_run():
    budget, private = Budget(1e-5, 1e-9), dp.PrivatePartitions()
    dp.PrivateAggregate("who", [sums.Count()], budget, ["day"], dp.ContributionBounds(64))
    with pytest.raises(ValueError, match=r"the probabilities must settle within 2\^20 people"):
        dp.PrivateAggregate("who", [sums.Count()], budget, ["day"], partitions=private)


def test_a_program_survives_pickling():
    every = [metric for asked in list(METRICS.values())[3:] for metric in asked]
    program = compile_program(every, Budget(9.0, 1e-6), 3, selection=SELECTIONS[1])
    assert pickle.loads(pickle.dumps(program)) == program


def cells_of(program: Program, rows: list[Row]) -> tuple[PartitionView, tuple[int, ...]]:
    """Return the summary of rows in partitions 0..2, and the shared clips drawn without noise."""
    table = settled(rows, program.fields, len(program.columns))
    clips = ()
    if program.shared_measures:
        clips = program.choose_clips(of_everybody(table, program.shared_measures), ZeroNoise())
    return of_places(table, program.measures, 3), clips


def test_a_program_releases_every_metric_in_order():
    generator = random.Random(1)
    rows = [
        Row((person, 0), (person % 2, 0), (generator.randrange(5), generator.choice((None, 2))))
        for person in 2 * [*range(4000)]
    ]
    asked = [
        sums.Sum("y", unit=1),
        sums.PeopleCount(),
        mean.Mean("x", unit=1, own_count=True),
        mean.Mean("y", unit=1, own_count=True, per="person", name="per_person"),
        sums.Count(),
    ]
    program = compile_program(asked, Budget(50.0), 3, partitions=3)
    assert names_of(program) == ["y", "x"]
    swapped = [Row(row.person, row.partition, row.values[::-1]) for row in rows]
    drawn = program.release(*cells_of(program, swapped), ZeroNoise())
    assert len(drawn) == len(program.steps)
    columns = program.combine(drawn, program.sums(drawn))
    assert len(columns) == sum(len(metric.outputs) for metric in program.request.metrics)
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
    request = SelectionRequest(Fraction(1), 1)
    program = compile_program([], Budget(1.0, 1e-6), 1, bound=1, selection=request)
    rows = [Row((person, 0), (person % 2 * (person < 4), 0), ()) for person in range(500)]
    view = of_places(table_of(rows, columns=0), [Measure(WEIGHTS)], 3)
    assert view.histogram(0, 1)[0].ravel().tolist() == [498, 2, 0]
    # 498 are above the threshold; 2 people are kept with a chance of about 4e-6, nobody never.
    assert program.selection.threshold < 498
    assert program.select(view, Noise()).tolist()[0] == 0
    assert 2 not in program.select(view, Noise())


def test_a_selection_has_all_delta_or_half_beside_requests_that_want_some() -> None:
    selection, budget = SelectionRequest(Fraction(1), 1), dp.Budget(Fraction(2), Fraction(1, 10**6))
    _, shares = share_out(budget, part_weights_of([dp.PeopleCount()]), 1, selection)
    assert shares[None] == dp.Budget(1, Fraction(1, 10**6))
    wanting, other = (dp.Ratio(name, method="local_sensitivity") for name in "xy")
    whole, shares = share_out(budget, part_weights_of([wanting]), 4, selection)
    [part] = wanting.parts()
    assert whole == budget
    assert shares[part] == dp.Budget(1, Fraction(1, 2 * 10**6))
    assert shares[None] == dp.Budget(1, Fraction(1, 2 * 10**6))
    _, shares = share_out(budget, part_weights_of([wanting, other]), 4, selection)
    assert [share.delta / budget.delta for share in shares.values()] == [0.25, 0.25, 0.5]


def test_the_parts_of_a_mean_share_what_its_centre_leaves() -> None:
    asked = dp.Mean("x", weight=2), dp.Max("y")
    weights = part_weights_of(asked)
    of_each = [sum(weights[part] for part in metric.parts()) for metric in asked]
    assert of_each == [2 * (1 - CENTRE), 1]
    assert 2 * CENTRE + sum(of_each) == sum(metric.weight for metric in asked)


def built(asked, budget=None, max_partitions=2):
    """Return the steps and the entries of the account."""
    whole, shares = share_out(
        budget or dp.Budget(4.0), part_weights_of(asked), max_partitions, None
    )
    steps, _, entries = build(
        asked, shares, Context(columns_of(asked), max_partitions=max_partitions)
    )
    check_total(whole, entries)
    return steps, entries


def test_a_release_that_spends_more_than_its_share_is_refused(monkeypatch):
    original = dp.Max.build

    def greedy(self, context, share):
        return original(self, dataclasses.replace(context, max_partitions=1), share)

    monkeypatch.setattr(dp.Max, "build", greedy)
    with pytest.raises(ValueError, match="account"):
        built([dp.Max("x")])


UNIT = Fraction(1, 10**6)


def test_each_column_is_read_once_in_each_of_its_roles() -> None:
    asked = [
        dp.Ratio("x", per="person"),
        dp.DistinctCount("x"),
        dp.TrimmedMean("y"),
        dp.Sum("x"),
        dp.Max("x"),
        dp.Count(),
        dp.Ratio("x", equals=1.0, per="person", name="of_floats"),
    ]
    assert columns_of(asked) == (
        Column("y", Role.VALUE, UNIT),
        Column("x", Role.VALUE, UNIT),
        Column("x", Role.ITEM),
        Column("x", Role.FLAG, 1),
        Column("x", Role.FLAG, 1.0),
    )


def test_two_units_of_one_column_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^Min: unit must be the same .* not both 1e-06 and 0\.5"):
        columns_of([dp.Sum("x"), dp.Sum("y", unit=1), dp.Min("x", unit=0.5)])
    same = [dp.Sum("x", unit=0.5), dp.Max("x", unit=Fraction(1, 2))]
    assert columns_of(same) == (Column("x", Role.VALUE, Fraction(1, 2)),)


@pytest.mark.parametrize("budget", [Budget(1), Budget.zcdp(0.3)])
@pytest.mark.parametrize("partitions", [1, 20])
def test_the_sum_of_a_mean_has_two_thirds_and_noise_of_its_own(budget, partitions):
    program = compile_program([dp.Mean("v")], budget, partitions, partitions=partitions)
    total, rows = program.steps
    costs = [cost_of_all([each.cost for each in step.release.spends]) for step in program.steps]
    assert costs[0].amount == 2 * costs[1].amount
    assert total.additive.joint is rows.additive.joint is None
    of_noise = [step.additive.noise_cost.amount for step in program.steps]
    assert partitions > 1 or of_noise[0] == 2 * of_noise[1]
    beside = compile_program([dp.Mean("v"), dp.Count()], budget, partitions, partitions=partitions)
    draws = {step.additive.joint for step in beside.steps}
    assert len(draws) == 1 and (None in draws) == (partitions > 1)


SELECTION = SelectionRequest(Fraction(1), 1)
ASKED_FOR = {
    "ranks": [dp.Max("v"), dp.Median("v")],
    "many": [dp.Count(), dp.Sum("v"), dp.Mean("v"), dp.PeopleCount(), dp.MaxFrequency("v")],
}
WHOLES = [Budget(1), Budget(Fraction(1, 3), 1e-6), Budget.zcdp(0.3), Budget.zcdp(0.1, 1e-7)]
SEARCHED = [
    (name, budget, selection)
    for name, budget, selection in itertools.product(ASKED_FOR, WHOLES, (None, SELECTION))
    if selection is None or budget.delta
]


@pytest.mark.sampled(65)
@pytest.mark.parametrize(("name", "budget", "selection"), SEARCHED)
@pytest.mark.parametrize("max_partitions", [1, 3, 48, 1024])
def test_the_search_and_the_releases_cost_the_whole(name, budget, selection, max_partitions):
    programs = compile_program(ASKED_FOR[name], budget, edges_up_to(None), selection=selection)
    program = program_at(programs.request, max_partitions)
    (label, search, times), *entries = program.entries
    assert (label, times, search.delta) == (SEARCH, 1, 0)
    assert program.max_partitions == max_partitions
    whole = search.amount / SEARCH_SHARE  # as it is counted: epsilon, or rho
    assert program.request.budget == budget
    if search.is_zcdp == budget.is_zcdp:
        assert whole == budget.amount
    else:  # counted in rho throughout, for zCDP is better whatever the bound
        kept = budget.delta / 2 if selection else 0
        assert whole == Budget(budget.amount, budget.delta - kept).to_zcdp().amount
        assert program.composed.is_zcdp
    left = whole * (1 - SEARCH_SHARE) - first_of(program)
    if program.composed.is_zcdp and not search.is_zcdp:
        kept = budget.delta / 2 if selection else 0
        left = Budget(left, budget.delta - kept).to_zcdp().amount
    kept = [entry for entry in entries if not entry[0].startswith(FIRST)]
    spent = sum(cost.amount * times for _, cost, times in kept)
    assert spent == left == program.composed.amount
    assert sum(cost.delta * times for _, cost, times in entries) <= budget.delta


@pytest.mark.parametrize("budget", WHOLES[1:3])
def test_a_program_is_that_of_a_given_bound_with_what_is_left(budget):
    programs = compile_program(ASKED_FOR["ranks"], budget, edges_up_to(50), partitions=50)
    for max_partitions in (1, 50):
        program = program_at(programs.request, max_partitions)
        whole = programs.request.whole.amount
        left = whole * (1 - SEARCH_SHARE)
        kind = Budget.zcdp if programs.request.whole.is_zcdp else Budget
        rest = kind(left, budget.delta)
        given = compile_program(ASKED_FOR["ranks"], rest, max_partitions, partitions=50)
        assert program.steps == given.steps and program.composed == given.composed


def choice_of(programs, counts, noise):
    """Return what is chosen where so many people stand on each step of the ladder."""
    steps = np.flatnonzero(counts)
    nothing = np.zeros_like(steps)
    ids = np.zeros((1, len(steps)), np.uint64)
    return adaptive.choose(programs, Summary(ids, nothing, steps, counts[steps], nothing), noise)


def asked_of(kind):
    """Return a metric of each kind, as a command line would ask for it."""
    own = {
        "count": dp.Count(),
        "people_count": dp.PeopleCount(),
        "kth_largest": dp.KthLargest("v", 3),
        "quantile": dp.Quantile("v", 0.9),
        "quantiles": dp.Quantiles("v", [0.5, 0.9]),
        "histogram": dp.Histogram("v", [0, 1, 2]),
        "preprocessed": dp.Preprocessed("v", "mean"),
        "ratio": dp.Ratio("v", per="person"),
    }
    return own[kind] if kind in own else REGISTRY[kind]("v")


@pytest.mark.sampled(7)
@pytest.mark.parametrize("kind", sorted(set(REGISTRY) - {"black_box", "custom_profile"}))
@pytest.mark.parametrize("budget", WHOLES)
def test_what_is_read_and_summarised_is_the_same_for_every_bound(kind, budget):
    metric = asked_of(kind)
    programs = compile_program(
        [metric, dp.PeopleCount()], budget, edges_up_to(1000), partitions=1000
    )
    model = programs
    for max_partitions in programs.request.ladder[::3]:
        program = program_at(programs.request, max_partitions)
        assert program.columns == model.columns and program.fields == model.fields
        assert program.keep_rows == model.keep_rows
        assert program.request.metrics == model.request.metrics
        assert bool(program.shared_measures) == bool(model.shared_measures)
        assert [step.part for step in program.steps] == [step.part for step in model.steps]


def test_blocks_of_people_take_no_chosen_bound():
    """The broken twin of the test above: their number depends on the budget per partition."""
    metric = dp.BlackBox("v", max)
    assert not metric.takes_auto_bound
    request = compile_program([metric], Budget(8), edges_up_to(4), partitions=4).request
    first, last = (program_at(request, most).measures[0] for most in (1, 4))
    assert first.blocks != last.blocks


def test_the_ladder_ends_where_a_metric_cannot_be_released():
    metrics = [dp.SumOfSquares("v"), dp.Median("v")]
    programs = compile_program(metrics, Budget(0.05), edges_up_to(None), partitions=2000)
    last = programs.request.ladder[-1]
    assert 1 < last < 1024 and programs.request.ladder == LADDER[: len(programs.request.ladder)]
    assert program_at(programs.request, last)
    with pytest.raises(ValueError, match="be larger: the search"):
        program_at(programs.request, LADDER[len(programs.request.ladder)])


def test_where_not_even_one_partition_is_possible_the_message_is_that_of_a_given_bound():
    with pytest.raises(ValueError, match="be larger: the search"):
        compile_program([dp.SumOfSquares("v")], Budget(1e-6), edges_up_to(8))


@pytest.mark.parametrize("limit", [1, 2, None])
def test_where_there_is_nothing_to_choose_nothing_is_spent_on_it(limit):
    for metric in (dp.Max("v"), dp.Count(), dp.Histogram("v", [0, 1])):
        made = compile_program([metric], Budget(1), edges_up_to(limit), partitions=limit)
        searches = limit != 1 and type(metric) is dp.Max  # all else is paid once
        assert made.request.searches == made.request.chooses == searches
        assert (
            made.max_partitions == 1
            and (SEARCH in {entry[0] for entry in made.entries}) == searches
        )


@pytest.mark.parametrize("budget", [Budget(1), Budget.zcdp(0.2)])
def test_the_noise_that_is_weighed_is_that_of_the_releases(budget):
    """Of a number with a clip to be chosen the share of that choice is no noise."""
    for clip, max_partitions in itertools.product((1, None), (1, 64)):
        metrics = [dp.MaxFrequency("v", clip=clip), dp.PeopleCount()]
        request = compile_program(metrics, budget, edges_up_to(64), partitions=64).request
        step, _ = program_at(request, max_partitions).steps
        [cost] = [spending.cost for spending in step.release.spends if not spending.once]
        mean = math.sqrt(2 / math.pi) if budget.is_zcdp else 1
        noise = adaptive.noise_at(request, max_partitions)
        assert noise == pytest.approx(AdditiveNoise(cost).scale * mean)


def test_the_choice_reaches_the_program_and_survives_a_pickle():
    programs = compile_program([dp.Max("v")], Budget(1), edges_up_to(7), partitions=7)
    people = np.array([100, 0, 9000, 0, 0, 0])
    chosen = choice_of(programs, people, ZeroNoise())
    assert chosen.bound.bound == 3
    assert chosen.bound.noisy.ravel().tolist() == [*people.tolist(), 0]
    program = compiled(programs.request, chosen)
    assert program.chosen is chosen and program.max_partitions == 3
    assert compiled(programs.request) is programs and programs.max_partitions == 1
    assert compiled(programs.request, chosen) == program
    copy = pickle.loads(pickle.dumps(programs))
    assert compiled(copy.request, pickle.loads(pickle.dumps(chosen))).entries == program.entries
    for more in (0, 30):  # what is kept of a program is no other choice of the same bound
        chosen = choice_of(programs, people + [0, 0, 0, more, 0, 0], ZeroNoise())
        assert chosen.bound.bound == 3
        assert compiled(programs.request, chosen).chosen.bound.noisy.ravel()[3] == more


def test_what_a_chosen_bound_has_cut_widens_what_adds_up():
    asked = [dp.DistinctCount("v", clip=1)]
    programs = compile_program(asked, Budget(1), edges_up_to(7), partitions=7)
    chosen = choice_of(programs, np.array([100, 0, 9000, 300, 0, 0]), ZeroNoise())
    program, share = compiled(programs.request, chosen), chosen.bound.lost_share
    drawn = [Released.between(np.full(7, 100.0), 5.0, 5.0)]
    [found] = program.parts(drawn, program.sums(drawn)).values()
    assert share > 0 and (found.below == 5).all() and (found.above >= 5 + share * 105).all()


def test_a_request_that_is_changed_is_compiled_anew():
    """Nothing of what another request spends or reads is left, as the noise of its budget."""
    known = {"max_rows_per_partition": 4, "selection": SELECTION}
    made = compile_program([dp.Sum("v"), dp.Sum("w")], Budget(1, 1e-6), 3, **known)
    changed = {"budget": Budget(100, 1e-6), "metrics": (dp.Sum("v", clip=3),), "partitions": 5}
    changed |= {"max_rows_per_partition": 2, "others": ("other",), "selection": SELECTIONS[2]}
    for name, value in changed.items():
        other = dataclasses.replace(made.request, **{name: value})
        assert compiled(other) == program_at(other, 3) != made


@pytest.mark.parametrize("budget", [Budget(1, 1e-6), Budget.zcdp(0.3, 1e-7)])
def test_the_number_of_selected_partitions_is_known_to_the_rest(budget):
    """The selection, which was drawn before, is the same; the others are those of that number."""
    asked = [dp.Sum("v"), dp.Count()]
    programs = compile_program(asked, budget, edges_up_to(None), selection=SELECTION)
    for number in (0, 1, 12, 5000):
        program = compiled(programs.request, Adaptive(partitions=number))
        assert program.partitions == max(1, number)
        assert program.fields == programs.fields
        assert program.selection == programs.selection
        assert sum(cost.amount * times for _, cost, times in program.entries) == budget.amount
        first, second = (step.release for step in program.steps)
        assert (first.joint is not None and first.joint == second.joint) == (number < 2)
        norm = 2 if budget.is_zcdp and number > 1 else 1
        assert first.measure.norm == norm
        assert first.measure.thresholds[-1] ** norm >= VALUE_CLIPS[-1] ** norm * max(1, number)


def test_a_budget_too_small_to_be_shared_chooses_nothing():
    made = compile_program([dp.Max("v")], Budget(1e-15), edges_up_to(8), partitions=8)
    assert not made.request.searches and made.max_partitions == 1


@pytest.mark.parametrize("everywhere", [False, True])
def test_laplace_or_gaussian_noise_is_taken_where_it_errs_less(everywhere):
    """Who is in 100 partitions alike has an L1 norm of 100, and an L2 norm of 10."""
    program = compile_program([dp.Count()], Budget(1, 1e-6), edges_up_to(100), partitions=100)
    rows = [
        Row((person, 0), (place, 0))
        for person in range(1000)
        for place in (range(100) if everywhere else [person % 100])
    ]
    table = table_of(rows, columns=0)
    clips = program.choose_clips(of_everybody(table, program.shared_measures), ZeroNoise())
    assert program.with_better_noise(clips) == (program.gaussian if everywhere else program.steps)
    noise = Asked()
    [found] = program.release(of_places(table, program.measures, 100), clips, noise)
    [(kind, _, size)] = noise.asked
    assert (kind, size) == ("gaussian" if everywhere else "laplace", 100)
    assert found.values == pytest.approx(1000.0 if everywhere else 10.0)


def test_a_mean_beside_its_parts_and_a_share_have_one_draw_each():
    """Both parts are equal."""
    together = [dp.Mean("v"), dp.Sum("v"), dp.Count()]
    program = compile_program(together, Budget(1), 1, partitions=1)
    total, count = (step.additive for step in program.steps)
    assert total.joint is not None and total.joint == count.joint
    assert {metric.part_weights() for metric in program.request.metrics} <= {(1,), (1, 1)}
    program = compile_program([dp.Ratio("v", equals=1)], Budget(1), 1, partitions=1)
    assert len({step.additive.joint for step in program.steps}) == 1
    assert program.steps[0].additive.joint is not None
