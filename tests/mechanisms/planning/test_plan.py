"""A plan says what a program would spend and how far it would stray, from parameters alone."""

import re
from fractions import Fraction

import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.histogram_choice.reach import FIRST, edges_up_to
from beam_dp.mechanisms.metrics import extremes, mean, totals
from beam_dp.mechanisms.metrics.ratio import Ratio
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics.short_numbers import short
from beam_dp.mechanisms.planning.allocation import SelectionRequest
from beam_dp.mechanisms.planning.plan import SEARCHED, Plan, describe, several_owners
from beam_dp.mechanisms.planning.program import compile_program
from beam_dp.mechanisms.releases import clipped, shifted_inverse
from beam_dp.mechanisms.summaries import worker_limits
from beam_dp.transforms.aggregate import PrivateAggregate

ASKED = [
    totals.Count(),
    totals.Sum("spent", weight=2),
    mean.Mean("spent", own_count=True, name="average"),
    extremes.Max("age", candidates=Candidates.linear(0, 120, 1)),
    totals.Count(candidates=Candidates.of([4]), name="visits"),
    totals.PeopleCount(),
]
REQUEST = SelectionRequest(Fraction(1), 5)


def plan(budget: Budget, reach: int = 3, selected: bool = False) -> Plan:
    """Return the plan of all kinds of metrics."""
    return describe(compile_program(ASKED, budget, reach, selection=REQUEST if selected else None))


@pytest.mark.parametrize(
    "budget", [Budget(1.0), Budget(1.0, 1e-6), Budget.zcdp(0.3, 1e-8)], ids=str
)
@pytest.mark.parametrize("selected", [False, True])
def test_the_rows_add_up_to_the_whole(budget, selected):
    if selected and not budget.delta:
        return
    found = plan(budget, selected=selected)
    whole = compile_program(
        ASKED, budget, 3, selection=REQUEST if selected else None
    ).question.whole
    amounts = [row.rho if whole.is_zcdp else row.epsilon for row in found.rows]
    assert sum(amounts) == pytest.approx(float(whole.amount), rel=1e-12)
    assert all(amount > 0 for amount in amounts)
    assert all((row.epsilon if whole.is_zcdp else row.rho) == 0 for row in found.rows)
    assert sum(row.delta for row in found.rows) == pytest.approx(
        float(whole.delta if selected else 0)
    )


def test_the_text_has_a_line_per_part_and_a_total():
    text = str(plan(Budget(1.0, 1e-6), selected=True))
    heading, *lines, total = text.splitlines()
    assert re.split(" {2,}", heading) == [
        *("metric", "spends", "expected error", "shift T", "noise scale", "mechanism"),
    ]
    assert [re.split(" {2,}", line)[0] for line in lines[:9]] == [
        "(centre of spent)",
        "(partitions)",
        "count",
        "sum_spent",
        "average (sum)",
        "average (number of rows)",
        "max_age",
        "visits",
        "people_count",
    ]
    explained = [line.partition(":")[0] for line in lines[9:-3]]
    assert explained == [
        "name (part)",
        "expected error",
        "at most N people",
        "clip",
        "cut",
        "shift T",
        "noise scale",
    ]
    assert lines[-1].startswith("visits: the interval holds the true number if nobody counts for")
    few = "max_age: NaN where fewer than about [0-9]+ people are"
    assert re.fullmatch(few, lines[-2])
    of_any = describe(compile_program([extremes.Max("age")], Budget(1.0), 1))
    assert re.search(few, str(of_any))
    assert total.startswith("in all: ") and total.endswith("one person in at most 3 partitions")
    assert all(line == line.rstrip() for line in text.splitlines())


def test_the_mechanisms_are_named_with_their_scales():
    rows = {row.metric: row for row in plan(Budget(8.0), reach=1).rows}
    assert rows["people_count"].mechanism == rows["visits"].mechanism == "one draw for 5 numbers"
    one, four = (float(rows[name].noise_scale) for name in ("people_count", "visits"))
    assert four == pytest.approx(4 * one, rel=1e-3)
    assert one < 0.7 / rows["people_count"].epsilon  # less than its own part would pay for
    assert rows["max_age"].mechanism == "walk from the outside, each person counts once"
    assert rows["max_age"].noise_scale == "-" and rows["max_age"].shift > 0
    count = rows["count"]
    assert count.mechanism == "clip for all partitions, then one draw for 5 numbers"
    assert count.noise_scale == f"{one:.4g} clips" and count.shift > 0
    # Another weight has a draw of its own, and one number alone the noise that it had.
    total = rows["sum_spent"]
    assert total.mechanism == "clip for all partitions, then discrete Laplace"
    alone = {
        budget: describe(compile_program([totals.PeopleCount()], budget, 1)).rows[0]
        for budget in (Budget(2.0), Budget.zcdp(2.0))
    }
    assert [row.mechanism for row in alone.values()] == ["discrete Laplace", "discrete Gaussian"]
    assert [row.noise_scale for row in alone.values()] == ["0.5", "0.5"]


def test_the_total_names_the_composition():
    assert (
        plan(Budget(1.0)).total
        == "epsilon 1.0, delta 0.0; pure composition, one person in at most 3 partitions"
    )
    assert "zCDP composition" in plan(Budget.zcdp(0.5)).total
    assert plan(Budget.zcdp(0.5)).total.startswith("rho 0.5")


def test_a_plan_draws_nothing_and_reads_no_data(monkeypatch):
    def touched(*args):
        raise AssertionError("a plan must not get here")

    monkeypatch.setattr(Noise, "words", touched)
    for kind in (clipped.ClippedSum, shifted_inverse.DirectRelease):
        monkeypatch.setattr(kind, "draw", touched)
    assert len(plan(Budget(1.0, 1e-6), selected=True).rows) == 9


def test_the_selection_says_from_when_on_it_is_sure():
    row = plan(Budget(1.0, 1e-6), selected=True).rows[1]
    program = compile_program(ASKED, Budget(1.0, 1e-6), 3, selection=REQUEST)
    assert program.selection is not None and row.mechanism == program.selection.name
    assert row.expected_error == program.selection.certainty
    assert "delta" in row.cells[1]


def test_a_reach_that_nobody_bound_is_named():
    program = compile_program(ASKED, Budget(1.0), 3)
    hint = "which is all of them: bounds would shrink all noise"
    assert describe(program, unbounded=True).total.endswith(f"in at most 3 partitions, {hint}")
    assert hint not in describe(program).total
    single = compile_program(ASKED, Budget(1.0), 1)
    assert hint not in describe(single, unbounded=True).total


def test_several_owners_are_named_in_one_line():
    assert several_owners(["who"]) == "" == plan(Budget(1.0)).owners
    assert several_owners(["VisitorId", "Day"]) == (
        "each row has two owners: VisitorId and Day; each of them is a person, protected with all rows "
        "that have them. If that is not meant, name one column as the person"
    )
    columns = [f"c{number}" for number in range(worker_limits.OWNERS)]
    assert several_owners(columns).startswith(
        "each row has eight owners: c0, c1, c2, c3, c4, c5, c6 an"
    )
    made = PrivateAggregate(["VisitorId", "Day"], [totals.Count()], Budget(1.0))
    assert str(made.plan()).splitlines()[-1] == several_owners(["VisitorId", "Day"])


def test_what_passes_over_nobody_has_no_shift():
    rows = {row.metric: row for row in plan(Budget(8.0), reach=1).rows}
    assert rows["people_count"].shift == 0 and rows["people_count"].cells[3] == "-"
    assert rows["count"].cells[3] == short(rows["count"].shift) != "-"


@pytest.mark.parametrize(
    ("per", "depth", "words"),
    [("person", None, "at most 1 row per person"), ("row", 4, "at most 4 rows per person")],
)
def test_a_ratio_is_told_in_words(per, depth, words):
    asked = Ratio("clicked", per=per, method="kulesza_suresh_wang")
    program = compile_program([asked], Budget(1.0), 1, depth=depth)
    [row] = describe(program).rows
    assert row.mechanism == f"ratio, noise on both counts (Kulesza, Suresh, Wang), {words}"


def test_the_table_is_cut_to_the_terminal_and_explains_what_is_left() -> None:
    made = plan(Budget(1.0))
    for columns in range(40, 200, 7):
        lines = made.text(columns).splitlines()
        assert len(lines[0].split()) >= 2 and lines[0].startswith("metric")
        below = lines[1 + len(made.rows) :]
        assert max(map(len, below)) <= columns
        cut = [name for name in ("mechanism", "noise scale", "shift T") if name not in lines[0]]
        note = " ".join(" ".join(below).split()).partition(": the terminal is too narrow")[0]
        assert all(name in note for name in cut) and ("... and" in note) == bool(cut)
        assert ("noise scale: in 95" in made.text(columns)) == ("noise scale" in lines[0])
    assert made.text(1000) == made.text() == str(made)


def test_costs_of_one_unit_have_it_in_the_heading() -> None:
    assert re.split(" {2,}", str(plan(Budget(1.0))).splitlines()[0])[1] == "epsilon"
    zcdp = str(plan(Budget.zcdp(0.3))).splitlines()
    assert re.split(" {2,}", zcdp[0])[1] == "rho" and "rho" not in zcdp[1]
    both = str(plan(Budget(1.0, 1e-6), selected=True)).splitlines()
    assert "spends" in both[0] and "delta" in both[2]


def test_no_number_of_the_table_has_more_than_three_digits_or_powers_of_ten() -> None:
    large = [totals.Sum("spent", clip=10**9), totals.Count()]
    lines = str(describe(compile_program(large, Budget(0.0123), 3))).splitlines()[1:3]
    numbers = re.findall(r"[\d.,]*\d(?:e\S+)?", " ".join(lines))
    assert len(numbers) >= 7 and any("," in each for each in numbers)
    assert all(len(each.replace(",", "").replace(".", "").strip("0")) <= 3 for each in numbers)


def chosen_plan(limit=7, budget=None):
    metrics = [totals.PeopleCount(), totals.Sum("v")]
    made = compile_program(metrics, budget or Budget(1), edges_up_to(limit), partitions=limit)
    return made.question, describe(made)


def test_the_cost_of_the_search_stands_first():
    _, made = chosen_plan()
    assert made.rows[0].metric == SEARCHED and made.rows[0].epsilon == 0.12
    assert made.rows[0].cells[1] == "epsilon 0.04 to 0.12" and made.rows[0].cells[4] == "25 to 8.33"
    assert re.search(r"  0\.04 to 0\.12  .*  25 to 8\.33  ", str(made).splitlines()[1])
    assert "--bounds partitions=3" in str(made)
    _, made = chosen_plan(budget=Budget.zcdp(0.5))
    assert "rho 0.02 to 0.06" in made.rows[0].cells and made.rows[0].rho == 0.06


@pytest.mark.parametrize(("limit", "bounds"), [(2, (1, 2)), (7, (1, 3, 7)), (None, (1, 3, 12))])
def test_figures_are_those_of_a_few_bounds(limit, bounds):
    question, made = chosen_plan(limit)
    last = 1024 if limit is None else limit
    shown = " / ".join(map(str, bounds))
    assert f"in at most 1 to {last} partitions, chosen privately" in made.total
    assert f"the figures are for {shown} of them" in made.total
    each = [question.program(bound, FIRST).steps[0].release.describe() for bound in bounds]
    assert made.rows[1].noise_scale == " / ".join(row.noise_scale for row in each)
    assert made.rows[1].expected_error == " / ".join(row.expected_error for row in each)
    assert len(made.rows) == 3


def test_words_that_agree_stand_once():
    _, made = chosen_plan()
    assert made.rows[2].noise_scale.endswith(" clips") and made.rows[2].noise_scale.count("c") == 1
    assert made.rows[2].mechanism.count("clip") == 1


def test_both_kinds_of_noise_are_shown():
    few, many = (
        describe(compile_program([totals.PeopleCount()], Budget(1, 1e-6), edges_up_to(limit)))
        for limit in (4, 1000)
    )
    assert few.rows[1].mechanism == "discrete Laplace"
    assert many.rows[1].mechanism == "discrete Laplace / Gaussian"
    assert "epsilon" in many.rows[1].spends and "rho" in many.rows[1].spends
