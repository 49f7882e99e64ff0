"""Hostile items and owners, and partitions of every shape: rows drop, nothing fails, nothing hangs.

Times are measured with what a person, a partition or a list of partitions can grow to; the limits
stand an order of magnitude above what one core needs.
"""

import math

import beam_dp as dp
from tests.transforms.test_aggregate_relations import run

CANDIDATES = dp.Candidates.linear(0, 1000, 1)


METRICS = [
    dp.KthLargest("value", 2, candidates=CANDIDATES),
    dp.Median("value", candidates=CANDIDATES),
    dp.Median("value", per="row", candidates=CANDIDATES, name="of_rows"),
    dp.DistinctCount("item"),
    dp.DistinctCount("item", search=dp.AboveThreshold, name="one_sided"),
    dp.MaxFrequency("item"),
    dp.SumOfSquares("item"),
    dp.CustomProfile("value", lambda people: [len(people)], candidates=CANDIDATES),
]


def test_a_partition_with_rows_but_no_valid_value_is_released() -> None:
    """Of private partitions too: they are named for their people, not for their values."""
    given = [{"person": person, "day": "a", "item": [1], "value": "x"} for person in range(200)]
    for partitions in (dp.PublicPartitions(["a"]), dp.PrivatePartitions()):
        budget = dp.Budget(1e6, 1e-6)
        transform = dp.PrivateAggregate(
            "person", METRICS, budget, ["day"], dp.ContributionBounds(1), partitions
        )
        [row] = run(given, transform)
        values = row._asdict()
        assert values["distinct_item"] == values["one_sided"] == values["max_frequency_item"] == 0
        assert values["sum_of_squares_item"] == 0 and math.isnan(values["largest_2_value"])
