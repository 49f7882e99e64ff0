"""Hostile items and owners, and partitions of every shape: rows drop, nothing fails, nothing hangs.

Times are measured with what a person, a partition or a list of partitions can grow to; the limits
stand an order of magnitude above what one core needs.
"""

import decimal
import math
from typing import Any

import numpy as np
import pytest

import beam_dp as dp
from tests.hostile import support
from tests.relations import ONE_OWNER
from tests.transforms.test_aggregate_relations import run

CANARY = "canary-7f3a"
CANDIDATES = dp.Candidates.linear(0, 1000, 1)
OF_ITEMS = {name: ONE_OWNER[name].metric for name in ("distinct", "frequency", "squares")}
NO_ITEMS: dict[str, Any] = {
    "none": None,
    "nan": math.nan,
    "infinity": math.inf,
    "list": [CANARY],
    "dict": {CANARY: 1},
    "tuple": (CANARY,),
    "set": {CANARY},
    "bytes": CANARY.encode(),
    "complex": 1j,
    "surrogate": "\udc80" + CANARY,
    "beyond 4096 bits": 1 << 5000,
    "not a time": np.datetime64("NaT"),
    "object": object(),
    "hostile": support.Hostile(),
    "signalling": decimal.Decimal("sNaN"),
    "array": np.array([1, 2]),
}


def levels(given: list[Any], metric: Any) -> list[float]:
    [row] = run(given, dp.RemovalLoss(metric, "person", removals=4))
    return list(row.profile)


def rows_of(items: list[Any]) -> list[dict[str, Any]]:
    return [{"person": person, "item": item} for person, item in enumerate(items)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("metric", OF_ITEMS.values(), ids=OF_ITEMS)
def test_what_is_no_item_drops_and_leaves_others_alone(metric: Any) -> None:
    """Nothing changes beside items; alone, a first level would be 1 or more if any of these counted."""
    hostile = [item for item in NO_ITEMS.values() for _ in range(2)]
    expected = levels(rows_of(["a", "a", "b"]), metric)
    assert levels(rows_of(["a", "a", "b", *hostile]), metric) == expected
    assert levels(rows_of(hostile), metric) == [0.0] * 5


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
