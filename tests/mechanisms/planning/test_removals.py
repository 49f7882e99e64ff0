"""What would look at more people than a worker holds is refused when the pipeline is built."""

import re

import pytest

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import REMOVALS

SEARCHED = [
    *(dp.Count(search=dp.AboveThreshold), dp.SumOfSquares("a")),
    dp.CustomProfile("a", len, candidates=dp.Candidates.linear(0, 1, 1)),
    *(dp.Max("a", search=kind) for kind in ("two_phase", dp.NoisyBinarySearch, "auto")),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("budget", [dp.Budget(1e-6)], ids=repr)
@pytest.mark.parametrize("metric", SEARCHED, ids=lambda metric: str(metric)[:60])
def test_a_search_that_looks_at_too_many_people_is_refused(metric, budget):
    rule = (
        rf"^{type(metric).__name__}: budget must be larger: the search for output column "
        rf"{metric.output} would look at the (\d+) most important people of each partition, and at "
        rf"most {REMOVALS} can be held\. Give it more epsilon"
    )
    with pytest.raises(ValueError, match=rule) as refused:
        dp.PrivateAggregate("person", [metric], budget)
    assert int(re.match(rule, str(refused.value))[1]) > REMOVALS


def test_more_partitions_per_person_need_a_larger_budget():
    keys, days = dp.PublicPartitions(range(1000)), ["day"]
    given = ("person", [dp.Max("a", search="two_phase")], dp.Budget(0.01), days)
    assert dp.PrivateAggregate(*given, dp.ContributionBounds(10), keys).plan().rows
    with pytest.raises(ValueError, match="fewer partitions per person: bounds=dp.Contribution"):
        dp.PrivateAggregate(*given, dp.ContributionBounds(None), keys)
    # A bound that is chosen privately is one with which it can be released.
    assert dp.PrivateAggregate(*given, None, keys).plan().rows


def test_a_loss_of_too_many_removals_is_refused():
    assert dp.RemovalLoss(dp.Max("a"), "person", removals=REMOVALS)
    rule = f"RemovalLoss: removals must be at most {REMOVALS}"
    with pytest.raises(ValueError, match=rule):
        dp.RemovalLoss(dp.Max("a"), "person", removals=REMOVALS + 1)
