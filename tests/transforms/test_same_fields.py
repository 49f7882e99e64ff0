"""What is collected before anything is chosen is what is read afterwards, for every metric."""

import pytest

import beam_dp as dp
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.histogram_choice.partition_bound import edges_up_to
from beam_dp.mechanisms.planning.budget_split import SelectionRequest
from beam_dp.mechanisms.planning.compile import compiled
from beam_dp.mechanisms.planning.program import Adaptive
from tests.doubles import compile_program

METRICS = (
    dp.Count(),
    dp.PeopleCount(),
    dp.Sum("v"),
    dp.Mean("v"),
    dp.Variance("v"),
    dp.Histogram("v", edges=[0, 1]),
    dp.DistinctCount("item"),
    dp.Mean("w", own_count=True),
    dp.MaxFrequency("item"),
    dp.Ratio("flag"),
    dp.Median("v"),
    dp.Max("v"),
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("budget", [Budget(1, 1e-6), Budget.zcdp(0.5, 1e-6)], ids=str)
@pytest.mark.parametrize("first", range(0, len(METRICS), 2))
def test_every_number_of_selected_partitions_reads_the_same(first, budget) -> None:
    asked, selection = METRICS[first:] + METRICS[:first], SelectionRequest(1, 1)
    program = compile_program(asked[:3], budget, edges_up_to(None), selection=selection)
    for number in (0, 1, 2, 500):
        made = compiled(program.request, Adaptive(partitions=number))
        assert (made.fields, made.columns) == (program.fields, program.columns)
