"""The outlook: what a guess at the people makes of the plan, and what is hopeless."""

import math
import re
from fractions import Fraction

import pytest

import beam_dp as dp
from beam_dp.mechanisms.histogram_choice.foresight import Foreseen
from beam_dp.mechanisms.histogram_choice.reach import edges_up_to
from beam_dp.mechanisms.planning.allocation import SelectionRequest
from beam_dp.mechanisms.planning.outlook import Expected, Outlook, foresee
from beam_dp.mechanisms.planning.program import compile_program

FIVE = [
    dp.Count(),
    dp.Sum("spent"),
    dp.Mean("spent", own_count=True),
    dp.Max("minutes"),
    dp.Median("minutes"),
]


def outlook(people: int, epsilon: float = 1.0, partitions: int = 7, **assume: float) -> Outlook:
    program = compile_program(FIVE, dp.Budget(epsilon), 3, partitions=partitions)
    return foresee(program, people, {"spent": 100, **assume}, partitions)


def test_every_release_has_a_row_and_the_people_are_shared_out() -> None:
    found = outlook(7000)
    assert found.people == 3000
    assert found.metrics == (
        *("count", "sum_spent", "mean_spent (sum)", "mean_spent (number of rows)"),
        *("max_minutes", "median_minutes"),
    )
    count, total, _, _, largest, _ = found.expected
    assert count.number is not None and count.number.value == 3000
    assert total.number is not None and total.number.value == 3000 * 50
    assert total.number.low < total.number.value < total.number.high
    assert largest.number is None and largest.needed > 100
    assert found.hopeless == () and found.warning == ""
    assert "for 7,000 people, each in 3 of 7 partitions, so about 3,000 in one" in str(found)


def test_what_is_hopeless_is_announced_with_what_helps() -> None:
    found = outlook(400)
    assert {"sum_spent", "max_minutes"} <= {*found.hopeless}
    needed = max(each.needed for each in found.expected)
    said = re.fullmatch(
        r"Warning: .*max_minutes.* would be of little use: about ([\d,]+) people per partition are "
        r"needed for 5 metrics at epsilon 1\.0; with 170, ask one or two, or raise epsilon, or "
        "take coarser partitions",
        found.warning,
    )
    assert said is not None
    assert abs(int(said[1].replace(",", "")) - needed) <= needed / 20
    assert str(found).endswith(found.warning)
    assert "coarser" not in outlook(100, partitions=1).warning


@pytest.mark.sampled(3)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_people_needed_are_those_from_whom_on_it_is_narrow(place: int) -> None:
    needed = outlook(1000).expected[place].needed
    for share, wide in ((0.8, True), (1.1, False)):
        number = outlook(round(needed * share * 7 / 3)).expected[place].number
        assert number is not None and number.is_wide == wide


def test_more_budget_needs_fewer_people() -> None:
    pairs = zip(outlook(1000).expected, outlook(1000, epsilon=10).expected, strict=True)
    assert all(much.needed < little.needed / 4 for little, much in pairs)


def test_rows_and_partitions_can_be_assumed() -> None:
    program = compile_program([dp.Count()], dp.Budget(1.0), 3)
    one = foresee(program, 1000, {"partitions": 30}, None)
    assert one.people == 100 and one.expected[0].number is not None
    assert one.expected[0].number.value == 100
    four = foresee(program, 1000, {"partitions": 30, "rows": 4}, None).expected[0].number
    assert four is not None and four.value == 100 * (1 + 4) / 2
    assert foresee(program, 1000, {"partitions": 30, "each": 1}, None).people == 1000 / 30


def test_a_column_without_a_guess_has_no_interval() -> None:
    program = compile_program([dp.Sum("spent")], dp.Budget(1.0), 1, partitions=1)
    [expected] = foresee(program, 1000, {}, 1).expected
    assert expected.number is None and expected.needed >= 1


def test_partitions_that_would_not_be_selected_are_announced() -> None:
    selection = SelectionRequest(Fraction(1), 1)
    program = compile_program([dp.Count()], dp.Budget(1.0, 1e-6), 3, selection=selection)
    found = foresee(program, 100, {"partitions": 30}, None)
    assert "many partitions would not be selected" in found.warning
    [first, _] = found.expected
    assert program.selection is not None and first.needed == program.selection.threshold


def test_a_bound_that_is_chosen_is_foreseen_as_it_is_needed() -> None:
    programs = compile_program([dp.Count()], dp.Budget(1.0), edges_up_to(7), partitions=7)
    given = compile_program([dp.Count()], dp.Budget(1.0), 3, partitions=7)
    chosen = foresee(programs, 7000, {"each": 3}, 7)
    assert chosen.people == 3000
    [mine], [theirs] = chosen.expected, foresee(given, 7000, {}, 7).expected
    assert mine.needed >= theirs.needed  # the choice of the bound has its price


@pytest.mark.parametrize(
    ("people", "assume", "said"),
    [
        (0, {}, "plan: people must be an int of at least 1"),
        (1.5, {}, "plan: people must be an int of at least 1"),
        (10, {"spnet": 3}, "plan: assume must name columns of metrics, 'rows', 'each' or 'par"),
        (10, {"spent": 0}, r"plan: assume\['spent'\] must be above 0"),
        (10, {"spent": "much"}, r"plan: assume\['spent'\] must be a real number"),
    ],
)
def test_wrong_guesses_are_refused(people: int, assume: dict[str, float], said: str) -> None:
    program = compile_program([dp.Sum("spent")], dp.Budget(1.0), 1, partitions=1)
    with pytest.raises((TypeError, ValueError), match=said):
        foresee(program, people, assume, 1)


def test_the_plan_of_a_release_takes_the_guess() -> None:
    release = dp.PrivateAggregate("who", [dp.Sum("spent")], dp.Budget(1.0))
    assert release.plan().outlook is None
    plan = release.plan(people=5000, assume={"spent": 100})
    assert plan.outlook is not None and str(plan).endswith(str(plan.outlook))
    with pytest.raises(ValueError, match="assume must be left out without people"):
        release.plan(assume={"spent": 100})
    one = dp.ShiftedInverse(dp.Max("spent"), "who", dp.Budget(1.0)).plan(people=10)
    assert one.outlook is not None and one.outlook.hopeless == ("max_spent",)


def test_the_numbers_are_rounded_to_their_interval() -> None:
    found = outlook(7000)
    _, _, count, total, *_, meaning = str(found).splitlines()
    assert re.fullmatch(r"count +3,000 +2,9\d\d to 3,0\d\d +\d+", count)
    assert re.fullmatch(r"sum_spent.* 150,000 +1[34]\d,\d00 to 1[56]\d,\d00 +\d+", total)
    assert meaning.startswith("a number like: ") and "people needed: " in meaning


@pytest.mark.parametrize(
    ("value", "low", "high", "cells"),
    [
        (857.14, 841.09, 878.92, ("857", "841 to 879")),
        (42_857.1, 40_700.3, 45_520.7, ("42,900", "40,700 to 45,600")),
        (0.5, 0.4567, 0.5678, ("0.50", "0.45 to 0.57")),
        (5.0, -math.inf, 9.0, ("5", "? to 9")),
        (5.0, 5.0, 5.0, ("5", "5 to 5")),
    ],
)
def test_ends_are_rounded_outwards(
    value: float, low: float, high: float, cells: tuple[str, str]
) -> None:
    shown = Expected(Foreseen(value, low, high), 12).cells
    assert shown[:2] == cells


def test_the_outlook_fits_the_terminal() -> None:
    for columns in (60, 80):
        lines = outlook(400).text(columns).splitlines()
        assert max(map(len, lines)) <= columns
    assert outlook(400).text(60) != str(outlook(400))
