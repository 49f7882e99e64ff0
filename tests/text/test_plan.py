"""A plan says what a program would spend and how far it would stray, from parameters alone.

Tests of what plans say of preprocessed statistics: the numbers, and that the words are true.

The record: the whole budget in exact numbers, and what was drawn to choose the clips.

Tables of words: on a terminal every line has its place.
"""

import json
import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.accounting.zcdp import zcdp_rho
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.histogram_choice.partition_bound import edges_up_to
from beam_dp.mechanisms.metrics import mean, profiled, quantiles, sums
from beam_dp.mechanisms.metrics.additive.additive_release import AdditiveRelease
from beam_dp.mechanisms.metrics.preprocessed import Preprocessed, TrimmedMean
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.budget_split import SelectionRequest
from beam_dp.mechanisms.planning.compile import program_at
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.planning.request import CAP_SHARE
from beam_dp.mechanisms.summaries.histograms import Summary
from beam_dp.mechanisms.summaries.owner_lines import OWNERS
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from beam_dp.text.plan import SEARCHED, Plan, describe, protected, record_of
from beam_dp.text.text_tables import text_table
from beam_dp.transforms.aggregate import PrivateAggregate
from tests.doubles import ZeroNoise, compile_program

ASKED = [
    sums.Count(),
    sums.Sum("spent", weight=2),
    mean.Mean("spent", high=10**9, name="average"),
    quantiles.Max("age", candidates=Candidates.linear(0, 120, 1)),
    sums.Count(clip=4, name="visits"),
    sums.PeopleCount(),
]
REQUEST = SelectionRequest(Fraction(1), 5)


def plan(budget: Budget, max_partitions: int = 3, selected: bool = False) -> Plan:
    """Return the plan of all kinds of metrics; without a selection of so many partitions."""
    return describe(program_of(budget, max_partitions, selected))


def program_of(budget: Budget, max_partitions: int = 3, selected: bool = False) -> Program:
    selection, partitions = (REQUEST, None) if selected else (None, max_partitions)
    known = {"bound": max_partitions, "selection": selection, "partitions": partitions}
    return compile_program(ASKED, budget, max_partitions, **known)


@pytest.mark.parametrize(
    ("budget", "selected"),
    [(Budget(1.0), False), (Budget(1.0, 1e-6), True), (Budget.zcdp(0.3, 1e-8), True)],
)
def test_the_rows_add_up_to_the_whole(budget, selected):
    found = plan(budget, selected=selected)
    whole = program_of(budget, selected=selected).request.whole
    amounts = [row.rho if whole.is_zcdp else row.epsilon for row in found.rows]
    assert sum(amounts) == pytest.approx(float(whole.amount), rel=1e-12)
    assert all(amount > 0 for amount in amounts)
    assert all((row.epsilon if whole.is_zcdp else row.rho) == 0 for row in found.rows)
    assert sum(row.delta for row in found.rows) == pytest.approx(float(whole.delta))


def test_the_text_has_a_line_per_part_and_a_total():
    text = str(plan(Budget(1.0, 1e-6), selected=True))
    heading, *lines, total = text.splitlines()
    assert re.split(" {2,}", heading) == [
        *("metric", "spends", "expected error", "shift T", "noise scale", "mechanism"),
    ]
    assert [re.split(" {2,}", line)[0] for line in lines[:9]] == [
        *("(centre of spent)", "(partitions)", "count", "sum_spent", "average (sum)"),
        *("average (number of rows)", "max_age", "visits", "people_count"),
    ]
    explained = [line.partition(":")[0] for line in lines[9:-3]]
    assert explained == ["expected error", "clip", "shift T", "noise scale"]
    assert lines[-1].startswith("visits: the interval holds the true number if nobody adds more")
    few = "max_age: NaN where fewer than about [0-9]+ people are"
    assert re.fullmatch(few, lines[-2])
    of_any = describe(compile_program([quantiles.Max("age")], Budget(1.0), 1))
    assert re.search(few, str(of_any))
    assert total.startswith("in all: ") and total.endswith("one person in at most 3 partitions")
    assert all(line == line.rstrip() for line in text.splitlines())


def test_the_mechanisms_are_named_with_their_scales():
    rows = {row.metric: row for row in plan(Budget(8.0), max_partitions=1).rows}
    assert rows["people_count"].mechanism == rows["visits"].mechanism == "joint noise for 5 numbers"
    one, four = (float(rows[name].noise_scale) for name in ("people_count", "visits"))
    assert four == pytest.approx(4 * one, rel=1e-3)
    assert one < 0.7 / rows["people_count"].epsilon  # less than its own part would pay for
    scan = "sparse-vector scan from the outside, each person counts once"
    assert rows["max_age"].mechanism == scan
    assert rows["max_age"].noise_scale == "-" and rows["max_age"].shift > 0
    count = rows["count"]
    assert count.mechanism == "clip what each person adds, then joint noise for 5 numbers"
    assert count.noise_scale == f"{one:.4g} clips" and count.shift > 0
    # Another weight has a draw of its own, and one number alone the noise that it had.
    total = rows["sum_spent"]
    assert total.mechanism == "clip what each person adds, then discrete Laplace"
    alone = {
        budget: describe(compile_program([sums.PeopleCount()], budget, 1, partitions=1)).rows[0]
        for budget in (Budget(2.0), Budget.zcdp(2.0))
    }
    assert [row.mechanism for row in alone.values()] == ["discrete Laplace", "discrete Gaussian"]
    assert [row.noise_scale for row in alone.values()] == ["0.5", "0.5"]


def test_of_several_partitions_the_norm_is_named_and_a_given_clip():
    """Noise hides the norm of the clip of 4 in three partitions; the condition is about one."""
    where = "clip what each person adds to all partitions (L1 norm), then discrete Laplace"
    rows = {row.metric: row for row in plan(Budget(8.0)).rows}
    assert rows["count"].mechanism == where and rows["visits"].mechanism == "discrete Laplace"
    scale = 3 * 4 / rows["visits"].epsilon
    assert float(rows["visits"].noise_scale) == pytest.approx(scale, rel=1e-3)
    assert rows["visits"].reason.endswith("if nobody adds more than the given clip 4")
    asked = compile_program([sums.Count()], Budget(8.0, 1e-6), 1, partitions=70)
    [row] = describe(asked).rows
    assert row.mechanism == where + " (or Gaussian, of the L2 norm, where that errs less)"
    assert (row.epsilon, row.delta) == (8, pytest.approx(1e-6))
    assert describe(asked).total == "epsilon 8.0, delta 1e-06; pure composition"


def test_a_plan_draws_nothing_and_reads_no_data(monkeypatch):
    def touched(*args):
        raise AssertionError("a plan must not get here")

    monkeypatch.setattr(Noise, "words", touched)
    for kind in (AdditiveRelease, profiled.DirectRelease):
        monkeypatch.setattr(kind, "draw", touched)
    assert len(plan(Budget(1.0, 1e-6), selected=True).rows) == 9


def test_a_reach_that_nobody_bound_is_named_where_bounds_would_shrink_noise():
    ranks, added = (
        compile_program([asked], Budget(1.0), 3, partitions=3)
        for asked in (quantiles.Max("age"), sums.Count())
    )
    hint = "which is all of them: bounds would shrink all noise"
    assert describe(ranks, unbounded=True).total.endswith(f"in at most 3 partitions, {hint}")
    assert hint not in describe(ranks).total
    assert describe(added, unbounded=True).total == "epsilon 1.0, delta 0.0; pure composition"
    single = compile_program([quantiles.Max("age")], Budget(1.0), 1, partitions=1)
    assert hint not in describe(single, unbounded=True).total


def test_several_owners_are_named_in_one_line():
    budget = {"epsilon": "1"}
    assert protected(["who"], None, budget) == "" == plan(Budget(1.0)).owners
    two = "each row has 2 owners: VisitorId and {0}; each of them is a person, protected with all rows "
    two += "that have them. If that is not meant, name one column as the person"
    assert protected(["VisitorId", "Payee"], None, budget) == two.format("Payee")
    meant = ". For one person's rows of one Day, write --period Day"
    assert protected(["VisitorId", "Day"], None, budget) == two.format("Day") + meant
    columns = [f"c{number}" for number in range(OWNERS)]
    eight = "each row has 8 owners: c0, c1, c2, c3, c4, c5, c6 an"
    assert protected(columns, None, budget).startswith(eight)
    made = PrivateAggregate(["VisitorId", "Day"], [sums.Count()], Budget(1.0))
    assert str(made.plan()).splitlines()[-1] == protected(["VisitorId", "Day"], None, budget)


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (
            {"epsilon": "1", "delta": "0"},
            "(epsilon 1); all rows of a person less: for a person with 30",
        ),
        (
            {"rho": "1/10", "delta": "0"},
            "less: for a person with 30 values of day rho 90 in all. Where",
        ),
        (
            {"epsilon": "1", "delta": "1/9"},
            "of day epsilon 30 in all, and more delta. Where",
        ),
        ({"rho": "1", "delta": "1/9"}, "(rho 1); all rows of a person less. Where people are"),
    ],
)
def test_a_period_is_what_the_plan_protects(budget, said):
    note = protected(["who"], "day", budget)
    assert note.startswith("protected: one person's rows of one day (") and said in note
    made = PrivateAggregate("who", [sums.Sum("v")], Budget(1.0), period="day")
    told = str(made.plan())
    assert told.count("one person") == told.count("one person's rows of one day") == 2
    assert "the contribution of one person's rows of one day is clipped" in told


def chosen_plan(limit=7, budget=None):
    metrics = [quantiles.Max("v"), sums.Sum("v")]
    made = compile_program(metrics, budget or Budget(1), edges_up_to(limit), partitions=limit)
    return made, describe(made)


def test_the_cost_of_the_search_stands_first():
    _, made = chosen_plan()
    assert made.rows[0].metric == SEARCHED and made.rows[0].epsilon == 0.08
    assert made.rows[0].cells[1] == "epsilon 0.08" and made.rows[0].cells[4] == "12.5"
    assert "--bounds partitions=3" in str(made)
    _, made = chosen_plan(budget=Budget.zcdp(0.5))
    assert "rho 0.04" in made.rows[0].cells and made.rows[0].rho == 0.04


@pytest.mark.parametrize(("limit", "shown"), [(2, 2), (7, 3), (None, 3)])
def test_figures_are_those_of_one_bound(limit, shown):
    question, made = chosen_plan(limit)
    last = 1024 if limit is None else limit
    assert f"count one person in at most 1 to {last}, chosen privately" in made.total
    assert f"the figures are for {shown}" in made.total
    said = program_at(question.request, shown).steps[0].release.describe()
    assert made.rows[1].noise_scale == said.noise_scale
    assert made.rows[1].expected_error == said.expected_error and len(made.rows) == 3


def line(metric, budget, max_partitions=1):
    return describe(compile_program([metric], budget, max_partitions)).rows[0]


def numbers(text):
    """Return the numbers in a text that stand alone."""
    return [float(word) for word in text.replace(",", "").split() if word[0].isdigit()]


@pytest.mark.parametrize(
    ("metric", "factor", "per"),
    [
        (Preprocessed("x", "mean"), 2, "R/n"),
        (TrimmedMean("x", trim=0.25), 4, "R/n"),
        (Preprocessed("x", "standard_deviation"), 4, "R^2/n"),
    ],
)
def test_a_private_sensitivity_is_told_by_what_it_is_made_of(metric, factor, per):
    """Half of the budget is for g: the scale is 10 Delta in 5 partitions, and e^-3.04 is 4.8%."""
    found, scale = line(metric, Budget(1.0), 5), 10 * factor
    assert found.noise_scale == f"{scale:.4g} {per}"
    assert f"Delta = {factor} {per};" in found.reason
    bound = -math.log(0.048) * scale
    assert f"noise within {bound:.4g} {per} for 95%" in found.reason


def test_a_given_sensitivity_is_told_in_numbers():
    found = line(Preprocessed("x", "mean", sensitivity=0.5, empty=3), Budget(0.25))
    assert numbers(found.noise_scale) == [2.0] and numbers(found.expected_error) == [2.0]
    assert "Delta = 0.5; noise within" in found.reason
    gaussian = line(Preprocessed("x", "variance", sensitivity=8), Budget.zcdp(0.5))
    assert numbers(gaussian.noise_scale) == [8.0]
    error = 8 * math.sqrt(2 / math.pi)
    assert numbers(gaussian.expected_error)[0] == pytest.approx(error, rel=1e-3)


METRICS = [dp.Count(), dp.Sum("spent"), dp.Max("minutes"), dp.PeopleCount()]
BUDGETS = {"pure": dp.Budget(1.0), "zCDP": dp.Budget.zcdp(0.5), "with delta": dp.Budget(1.0, 1e-6)}


def recorded(program: Program) -> dict[str, Any]:
    """Return the record of a run over no rows, whose shared clips are drawn."""
    none = np.zeros(0, np.int64)
    nothing = Summary(np.empty((1, 0), np.uint64), none, none, none, none)
    choices = program.choose_clips(PartitionView(nothing, none, 1), Noise())
    taken = [[(2.0, 3.5)] if step.shared is not None else [] for step in program.steps]
    return record_of(program, choices, taken)


@pytest.mark.parametrize("partitions", [1, 40])
def test_what_the_choice_of_a_clip_leaves_is_spent_on_the_noise(partitions: int) -> None:
    """Where many people have one row, a quarter of the cost of the choice is left."""
    program = compile_program([dp.Count()], dp.Budget(1), 1, partitions=partitions)
    [clip] = program.clips
    people = np.zeros((1, 1, clip.choice.buckets), np.int64)
    people[0, 0, 0] = 10**6
    record = record_of(program, [clip.choice.draw(people, ZeroNoise())], [[]])
    spent = {each["on"]: Fraction(each["epsilon"]) for each in record["spent"]}
    [release] = record["releases"]
    [step] = program.steps
    assert spent[f"{step.label}: clip"] == Fraction(3, 4) * clip.choice.cost.amount
    noise = Fraction(release["clip"]["cost_of_the_noise"])
    assert spent[f"{step.label}: noise"] == noise > step.additive.noise_cost.amount
    assert sum(spent.values()) == 1


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("partitions", [1, 40])
@pytest.mark.parametrize("metrics", [[dp.Count(), dp.Sum("v")], [dp.Mean("v")]], ids=len)
def test_the_plan_says_what_noise_a_run_has_within_a_factor_of_three_halves(
    budget: dp.Budget, partitions: int, metrics: list[Any]
) -> None:
    """Whoever the people are: nobody, many alike, or a tail, in one partition each or in many."""
    program = compile_program(metrics, budget, 1, partitions=partitions)
    said = [re.findall(r"[\d.]+(?= clips)", row.noise_scale) for row in describe(program).rows]
    said = said[-len(program.steps) :]
    for of_people in ({}, {0: 10**6}, {0: 10**6, 30: 10**4}, {0: 10**4, 3: 5000, 9: 40}):
        choices = []
        for clip in program.clips:
            people = np.zeros((1, clip.choice.sides, clip.choice.buckets), np.int64)
            people[0, 0, list(of_people)] = list(of_people.values())
            choices.append(clip.choice.draw(people, ZeroNoise()))
        steps = program.with_better_noise(choices)
        for step, planned in zip(steps, said, strict=True):
            scale = step.release._noise_at(choices[step.shared]).scale(step.release.place)
            assert min(abs(math.log(float(each) / scale)) for each in planned) < math.log(1.5)


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_what_is_spent_is_the_budget_exactly(budget: dp.Budget) -> None:
    selection = SelectionRequest(Fraction(1), 1) if budget.delta else None
    program = compile_program(METRICS, budget, 3, selection=selection, partitions=None)
    record = recorded(program)
    unit = "rho" if program.composed.is_zcdp else "epsilon"
    spent = sum(Fraction(entry[unit]) * entry["times"] for entry in record["spent"])
    delta = sum(Fraction(entry["delta"]) * entry["times"] for entry in record["spent"])
    first = CAP_SHARE * program.request.whole.amount * program.request.chooses_cap
    assert spent == program.composed.amount + first
    assert delta == program.composed.delta
    assert record["budget"]["delta"] == str(budget.delta)
    assert json.loads(json.dumps(record, allow_nan=False)) == record


@pytest.mark.parametrize(
    ("metric", "limit"), [(dp.Mean("v"), 16), (dp.Mean("v"), None), (dp.Count(), None)]
)
def test_what_is_spent_as_zcdp_is_worth_the_whole_budget(metric: Any, limit: int | None) -> None:
    """Epsilon of what is chosen first, if any, and that of the rho beside it, are epsilon 1."""
    edges = (limit,) if limit else edges_up_to(None)
    asked = [metric, dp.Median("v")]  # which pays for each partition
    whole, selection = Budget(1, 1e-6), REQUEST if limit else None
    request = compile_program(asked, whole, edges, selection=selection, partitions=99).request
    made = program_at(request, 16)
    said = recorded(made)["composition"]
    epsilon, rho = re.search(r"spent as (?:epsilon (\S+) and )?rho (\S+) by zCDP", said).groups()
    left = Fraction(1) - Fraction(epsilon or 0)
    spent = sum(float(cost.amount) * times for _, cost, times in made.entries if cost.is_zcdp)
    assert float(rho) == pytest.approx(spent, rel=1e-3)
    turned = whole.delta - made.composed.delta
    assert float(rho) == pytest.approx(float(zcdp_rho(left, turned)), rel=1e-3)


def test_every_release_is_listed_with_its_clip() -> None:
    program = compile_program(METRICS, BUDGETS["pure"], 3, partitions=7)
    record = recorded(program)
    assert [release["metric"] for release in record["releases"]] == [m.output for m in METRICS]
    clips = [release.get("clip") for release in record["releases"]]
    assert [clip is not None for clip in clips] == [True, True, False, True]
    for clip, step in zip(clips, program.steps, strict=False):
        if clip is None:
            continue
        [scale], [taken] = clip["noise_scales"], clip["clips"]
        assert (taken, scale) == (2.0, 3.5) and clip["norm"] == "L1"
        assert clip["cost_of_the_noise"] == str(step.release.noise_cost.amount)
        costs = [Fraction(histogram["cost"]) for histogram in clip["histograms"]]
        whole = step.release.clip.choice.cost.amount  # of the second, of which the first is made
        assert costs == [whole * Fraction(1, 2), whole]
        for histogram in clip["histograms"]:
            sides, buckets = np.shape(histogram["noisy_people"])
            assert buckets == len(histogram["people_up_to"]) + 1 and sides in (1, 2)
    assert record["selection"] is None and record["partitions_of_one_person"] == 3
    given = compile_program([dp.Sum("spent", clip=100)], BUDGETS["pure"], 1, partitions=1)
    [release] = recorded(given)["releases"]
    assert "clip" not in release and release["noise_scale"] == "100"


def test_a_table_for_a_terminal_is_aligned_and_loses_its_last_columns() -> None:
    heading, rows = ("name", "of", "what it is"), [("a", "12,345", "words"), ("bcdef", "1", "")]
    assert text_table(heading, rows) == [
        "name   of      what it is",
        "a      12,345  words",
        "bcdef  1",
    ]
    assert text_table(heading, rows, 24, "<>") == [
        "name       of",
        "a      12,345",
        "bcdef       1",
        "... and what it is: the terminal is too",
        "  narrow",
    ]
    assert len(text_table(heading, rows, 25)) == 3
    assert text_table(heading, rows, 1)[0] == "name   of", "two columns stay"
