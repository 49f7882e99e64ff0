"""Whatever bound is chosen, the search and the program for it cost the whole, and no more."""

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.histogram_choice.reach import FIRST, LADDER, SECOND, StepNoise, edges_up_to
from beam_dp.mechanisms.metrics import REGISTRY
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.allocation import SelectionRequest
from beam_dp.mechanisms.planning.program import SEARCH, compile_program
from beam_dp.mechanisms.summaries.histograms import Summary
from tests.doubles import ZeroNoise

SELECTION = SelectionRequest(Fraction(1), 1)
METRICS = {
    "people": [dp.PeopleCount()],
    "count and sum": [dp.Count(), dp.Sum("v")],
    "many": [dp.Count(), dp.Sum("v"), dp.Mean("v"), dp.PeopleCount(), dp.DistinctCount("v")],
}
BUDGETS = [Budget(1), Budget(Fraction(1, 3), 1e-6), Budget.zcdp(0.3), Budget.zcdp(0.1, 1e-7)]
TABLE = [
    (name, budget, selection)
    for name, budget, selection in itertools.product(METRICS, BUDGETS, (None, SELECTION))
    if selection is None or budget.delta
]


@pytest.mark.sampled(65)
@pytest.mark.parametrize(("name", "budget", "selection"), TABLE)
@pytest.mark.parametrize("share", [FIRST, SECOND])
@pytest.mark.parametrize("reach", [1, 3, 48, 1024])
def test_the_search_and_the_releases_cost_the_whole(name, budget, selection, share, reach):
    programs = compile_program(
        METRICS[name], budget, edges_up_to(None), selection=selection
    ).question
    program = programs.program(reach, share)
    (label, search, times), *entries = program.entries
    assert (label, times, search.delta) == (SEARCH, 1, 0) and program.reach == reach
    whole = search.amount / share  # as it is counted: epsilon, or rho
    assert program.question.budget == budget
    if search.is_zcdp == budget.is_zcdp:
        assert whole == budget.amount
    else:  # counted in rho throughout, for zCDP is better whatever the bound
        kept = budget.delta / 2 if selection else 0
        assert whole == Budget(budget.amount, budget.delta - kept).to_zcdp().amount
        assert program.budget.is_zcdp
    left = whole * (1 - share)
    if program.budget.is_zcdp and not search.is_zcdp:
        kept = budget.delta / 2 if selection else 0
        left = Budget(left, budget.delta - kept).to_zcdp().amount
    spent = sum(cost.amount * times for _, cost, times in entries)
    assert spent == left == program.budget.amount
    assert sum(cost.delta * times for _, cost, times in entries) <= budget.delta


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_program_is_that_of_a_given_bound_with_what_is_left(budget):
    programs = compile_program(
        METRICS["count and sum"], budget, edges_up_to(50), partitions=50
    ).question
    for reach in (1, 6, 50):
        program = programs.program(reach, FIRST)
        whole = programs.whole.amount
        left = whole * (1 - FIRST)
        kind = Budget.zcdp if programs.whole.is_zcdp else Budget
        rest = kind(left, budget.delta)
        given = compile_program(METRICS["count and sum"], rest, reach, partitions=50)
        assert program.steps == given.steps and program.budget == given.budget


def test_where_zcdp_is_better_for_one_partition_the_search_is_counted_in_rho():
    """Forty counts at epsilon 1: the noise of zCDP is smaller even for one partition."""
    columns = [dp.Sum(f"c{number}") for number in range(40)]
    assert compile_program(columns, Budget(1, 1e-6), edges_up_to(9)).question.whole.is_zcdp
    assert not compile_program(columns[:1], Budget(1, 1e-6), edges_up_to(9)).question.whole.is_zcdp
    assert not compile_program(columns, Budget(1), edges_up_to(9)).question.whole.is_zcdp
    one = compile_program(columns[:1], Budget(1, 1e-6), edges_up_to(1024)).question
    assert one.program(9, FIRST).budget.epsilon
    many = one.program(1024, FIRST)
    assert many.budget.is_zcdp and not many.entries[0][1].is_zcdp


def choice_of(programs, counts, noise):
    """Return what is chosen where so many people stand on each step of the ladder."""
    steps = np.flatnonzero(counts)
    nothing = np.zeros_like(steps)
    ids = np.zeros((1, len(steps)), np.uint64)
    return programs.choose(Summary(ids, nothing, steps, counts[steps], nothing), noise)


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
@pytest.mark.parametrize("budget", BUDGETS)
def test_what_is_read_and_summarised_is_the_same_for_every_bound(kind, budget):
    metric = asked_of(kind)
    programs = compile_program(
        [metric, dp.PeopleCount()], budget, edges_up_to(1000), partitions=1000
    ).question
    model = programs.model
    for reach, share in itertools.product(programs.edges[::3], (FIRST, SECOND)):
        program = programs.program(reach, share)
        assert program.columns == model.columns and program.fields == model.fields
        assert program.keep_rows == model.keep_rows and program.outputs == model.outputs
        assert len(program.shared_measures) == len(model.shared_measures)
        assert [step.part for step in program.steps] == [step.part for step in model.steps]
        assert [s.shared for s in program.steps] == [s.shared for s in model.steps]
        assert [s.first for s in program.steps] == [s.first for s in model.steps]


def test_blocks_of_people_take_no_chosen_bound():
    """The broken twin of the test above: their number depends on the budget per partition."""
    metric = dp.BlackBox("v", max)
    assert not metric.takes_auto_bound
    programs = compile_program([metric], Budget(8), edges_up_to(4), partitions=4).question
    first, last = (programs.program(reach, FIRST).measures[1] for reach in (1, 4))
    assert first.blocks != last.blocks


def test_the_ladder_ends_where_a_metric_cannot_be_released():
    metrics = [dp.SumOfSquares("v"), dp.Median("v")]
    programs = compile_program(metrics, Budget(0.05), edges_up_to(None), partitions=2000).question
    last = programs.edges[-1]
    assert 1 < last < 1024 and programs.edges == LADDER[: len(programs.edges)]
    assert programs.program(last, SECOND)
    with pytest.raises(ValueError, match="be larger: the search"):
        programs.program(LADDER[len(programs.edges)], SECOND)


def test_where_not_even_one_partition_is_possible_the_message_is_that_of_a_given_bound():
    with pytest.raises(ValueError, match="be larger: the search"):
        compile_program([dp.SumOfSquares("v")], Budget(1e-6), edges_up_to(8))


@pytest.mark.parametrize("limit", [1, 2])
def test_where_there_is_nothing_to_choose_nothing_is_spent_on_it(limit):
    made = compile_program([dp.Count()], Budget(1), edges_up_to(limit), partitions=limit)
    assert made.reach == 1 and made.question.searches == (limit > 1)
    assert (SEARCH in {entry[0] for entry in made.entries}) == (limit > 1)


@pytest.mark.parametrize("budget", [Budget(1), Budget.zcdp(0.2)])
@pytest.mark.parametrize("metric", [dp.PeopleCount(), dp.Count(clip=1), dp.Count()])
def test_the_noise_that_is_weighed_is_that_of_the_releases(budget, metric):
    """Of a count with a clip to be chosen, the share of that choice is no noise."""
    programs = compile_program([metric], budget, edges_up_to(64), partitions=64).question
    for reach in (1, 8, 64):
        noise = programs.noise_at(FIRST, reach)
        [step] = programs.program(reach, FIRST).steps
        assert noise.gauss == budget.is_zcdp
        [cost] = [spending.cost for spending in step.release.spends if not spending.once]
        assert noise.scale == pytest.approx(AdditiveNoise(cost).scale)


def test_of_several_releases_the_mean_noise_is_weighed():
    metrics = [dp.PeopleCount(weight=1), dp.Count(clip=1, weight=3)]
    programs = compile_program(metrics, Budget(1), edges_up_to(64)).question
    noise = programs.noise_at(FIRST, 8)
    assert noise.scale == pytest.approx((8 * 4 + 8 * 4 / 3) / 2 / 0.96)


def test_where_partitions_alone_are_selected_their_noise_is_weighed():
    programs = compile_program([], Budget(1, 1e-6), edges_up_to(64), selection=SELECTION).question
    noise = programs.noise_at(FIRST, 8)
    assert noise == StepNoise(pytest.approx(8 / 0.96), False)


def test_the_choice_reaches_the_program_and_survives_a_pickle():
    programs = compile_program([dp.Max("v")], Budget(1), edges_up_to(7), partitions=7).question
    people = np.array([100, 0, 9000, 0, 0, 0])
    chosen = choice_of(programs, people, ZeroNoise())
    assert chosen.reach.reach == 3 and chosen.reach.look.share == FIRST
    assert chosen.reach.look.counts.tolist() == people.tolist()
    program = programs.at(chosen)
    assert program.chosen == chosen.reach and program.reach == 3
    assert programs.model.at(None) is programs.model and programs.model.reach == 1
    copy = pickle.loads(pickle.dumps(programs))
    assert len(pickle.dumps(programs)) <= len(pickle.dumps(copy))  # nothing that was compiled
    assert copy.at(pickle.loads(pickle.dumps(chosen))).entries == program.entries


def test_the_guess_of_the_number_of_partitions_shares_the_budget_out_anew():
    """10^6 people in 2 partitions each: many partitions are guessed, which want a small share."""
    programs = compile_program(
        [dp.Sum("v")], Budget(1, 1e-6), edges_up_to(None), selection=SELECTION
    ).question
    counts = np.zeros(len(LADDER), np.int64)
    shares = []
    for people in (20_000, 10**6):
        counts[1] = people
        chosen = choice_of(programs, counts, ZeroNoise())
        program, alike = (
            programs.at(chosen),
            programs.program(chosen.reach.reach, chosen.reach.look.share),
        )
        assert program.measures == alike.measures and program.fields == alike.fields
        assert program.selection == alike.selection and program.budget == alike.budget
        assert sum(cost.amount * times for _, cost, times in program.entries) == 1
        costs = {label: cost.amount for label, cost, _ in program.entries}
        [clip] = [cost for label, cost in costs.items() if label.endswith("clip")]
        assert clip != alike.steps[0].release.looks[-1].amount
        shares.append(clip)
    assert shares[0] > shares[1]
    public = compile_program([dp.Sum("v")], Budget(1), edges_up_to(None), partitions=50).question
    chosen = choice_of(public, counts, ZeroNoise())
    assert (
        public.at(chosen).entries
        == public.program(chosen.reach.reach, chosen.reach.look.share).entries
    )


def test_few_people_pay_for_a_second_look():
    programs = compile_program([dp.PeopleCount()], Budget(1), edges_up_to(7), partitions=7).question
    chosen = choice_of(programs, np.array([300, 0, 0, 0, 0, 0]), Noise())
    # The first look's sum would have to stray by 4,700 of a noise of 25: a chance below e^-150.
    assert chosen.reach.look.share == SECOND
    assert programs.at(chosen).entries[0][1] == Budget(SECOND)


def test_a_budget_too_small_to_be_shared_chooses_nothing():
    made = compile_program([dp.Count()], Budget(1e-14), edges_up_to(8), partitions=8)
    assert not made.question.chooses and made.reach == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("epsilon", [0.05, 0.02, 0.2])
def test_the_ladder_ends_where_pure_composition_cannot_be_paid_though_zcdp_could(epsilon):
    """Every step of the ladder is possible: the largest bounds may have the smaller noise."""
    made = compile_program(
        [dp.SumOfSquares("w")], Budget(epsilon, 1e-6), edges_up_to(1024), partitions=1024
    )
    for edge in made.question.edges:
        for share in made.question.shares:
            assert made.question.program(edge, share).reach == edge
