"""The record: the whole budget in exact numbers, and what was drawn to choose the clips."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.allocation import SelectionRequest
from beam_dp.mechanisms.planning.plan import record_of
from beam_dp.mechanisms.planning.program import Program, compile_program
from beam_dp.mechanisms.summaries.histograms import Summary
from beam_dp.mechanisms.summaries.partition_view import PartitionView

METRICS = [dp.Count(), dp.Sum("spent"), dp.Max("minutes"), dp.PeopleCount()]
BUDGETS = {
    "pure": dp.Budget(1.0),
    "zCDP": dp.Budget.zcdp(0.5),
    "with delta": dp.Budget(1.0, 1e-6),
}


def recorded(program: Program) -> dict[str, Any]:
    """Return the record of a run over no rows, whose shared clips are drawn."""
    none = np.zeros(0, np.int64)
    nothing = Summary(np.empty((1, 0), np.uint64), none, none, none, none)
    choices = program.choose_clips(PartitionView(nothing, none, 1), Noise())
    taken = [[(2.0, 3.5)] if step.shared is not None else [] for step in program.steps]
    return record_of(program, choices, taken)


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_what_is_spent_is_the_budget_exactly(budget: dp.Budget) -> None:
    selection = SelectionRequest(Fraction(1), 1) if budget.delta else None
    program = compile_program(METRICS, budget, 3, selection=selection, partitions=None)
    record = recorded(program)
    unit = "rho" if program.budget.is_zcdp else "epsilon"
    spent = sum(Fraction(entry[unit]) * entry["times"] for entry in record["spent"])
    delta = sum(Fraction(entry["delta"]) * entry["times"] for entry in record["spent"])
    assert spent == program.budget.amount
    assert delta == program.budget.delta
    assert record["budget"]["delta"] == str(budget.delta)
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_every_release_is_listed_with_its_clip() -> None:
    program = compile_program(METRICS, BUDGETS["pure"], 3, partitions=7)
    record = recorded(program)
    assert [release["metric"] for release in record["releases"]] == [m.output for m in METRICS]
    clips = [release.get("clip") for release in record["releases"]]
    assert [clip is not None for clip in clips] == [True, True, False, False]
    for clip, step in zip(clips[:2], program.steps, strict=False):
        [scale], [taken] = clip["noise_scales"], clip["clips"]
        assert (taken, scale) == (2.0, 3.5)
        costs = [str(cost.amount) for cost in step.release.noise_costs]
        assert clip["cost_of_the_noise_per_partition"] in costs
        assert Fraction(clip["cost_of_the_look"]) in [look.amount for look in step.release.looks]
        sides, buckets = np.shape(clip["noisy_people"])
        assert buckets == len(clip["people_up_to"]) + 1 and sides in (1, 2)
    assert record["selection"] is None and record["partitions_of_one_person"] == 3


def test_a_given_clip_has_no_histogram() -> None:
    program = compile_program([dp.Sum("spent", clip=100)], BUDGETS["pure"], 1, partitions=1)
    [release] = recorded(program)["releases"]
    assert "clip" not in release and release["noise_scale"] == "100"
