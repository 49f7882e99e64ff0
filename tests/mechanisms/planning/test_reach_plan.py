"""The plan before the bound is known: what the search costs, and the errors for a few bounds."""

import re

import pytest

import beam_dp as dp
from beam_dp.mechanisms.planning.plan import describe
from beam_dp.mechanisms.planning.reach_plan import SEARCHED, describe_programs
from beam_dp.mechanisms.planning.reach_programs import compile_programs
from beam_dp.mechanisms.reach.ladder import edges_up_to
from beam_dp.mechanisms.reach.looks import FIRST


def plan(limit=7, budget=None):
    metrics = [dp.PeopleCount(), dp.Sum("v")]
    programs = compile_programs(
        metrics, budget or dp.Budget(1), edges_up_to(limit), partitions=limit
    )
    return programs, describe_programs(programs)


def test_the_cost_of_the_search_stands_first():
    _, made = plan()
    assert made.rows[0].metric == SEARCHED and made.rows[0].epsilon == 0.12
    assert made.rows[0].cells[1] == "epsilon 0.04 to 0.12" and made.rows[0].cells[4] == "25 to 8.33"
    assert re.search(r"  0\.04 to 0\.12  .*  25 to 8\.33  ", str(made).splitlines()[1])
    assert "--bounds partitions=3" in str(made)
    _, made = plan(budget=dp.Budget.zcdp(0.5))
    assert "rho 0.02 to 0.06" in made.rows[0].cells and made.rows[0].rho == 0.06


@pytest.mark.parametrize(("limit", "bounds"), [(2, (1, 2)), (7, (1, 3, 7)), (None, (1, 3, 12))])
def test_figures_are_those_of_a_few_bounds(limit, bounds):
    programs, made = plan(limit)
    last = 1024 if limit is None else limit
    shown = " / ".join(map(str, bounds))
    assert f"in at most 1 to {last} partitions, chosen privately" in made.total
    assert f"the figures are for {shown} of them" in made.total
    each = [describe(programs.program(bound, FIRST)).rows[0] for bound in bounds]
    assert made.rows[1].noise_scale == " / ".join(row.noise_scale for row in each)
    assert made.rows[1].expected_error == " / ".join(row.expected_error for row in each)
    assert len(made.rows) == 3


def test_words_that_agree_stand_once():
    _, made = plan()
    assert made.rows[2].noise_scale.endswith(" clips") and made.rows[2].noise_scale.count("c") == 1
    assert made.rows[2].mechanism.count("clip") == 1


def test_both_kinds_of_noise_are_shown():
    metrics = [dp.PeopleCount()]
    programs = compile_programs(metrics, dp.Budget(1, 1e-6), edges_up_to(4), partitions=4)
    made = describe_programs(programs)
    assert made.rows[1].mechanism == "discrete Laplace"
    many = compile_programs([dp.PeopleCount()], dp.Budget(1, 1e-6), edges_up_to(1000))
    assert describe_programs(many).rows[1].mechanism == "discrete Laplace / Gaussian"
    assert "epsilon" in describe_programs(many).rows[1].spends
    assert "rho" in describe_programs(many).rows[1].spends
