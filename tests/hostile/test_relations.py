"""Hostile items and owners, and partitions of every shape: rows drop, nothing fails, nothing hangs.

Times are measured with what a person, a partition or a list of partitions can grow to; the limits
stand an order of magnitude above what one core needs.
"""

import decimal
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.program import compile_program
from tests.doubles import choices
from tests.hostile import support
from tests.relations import ONE_OWNER, views
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


def test_values_that_are_no_numbers_have_no_rank() -> None:
    values = [None, math.nan, "x", [1.0], b"1", 1j, support.Hostile(), 5.0]
    given = [{"person": person, "value": value} for person, value in enumerate(values)]
    found = levels(given, dp.KthLargest("value", 1))
    assert found == [5.0, *[-math.inf] * 4]
    assert levels(given, dp.KthLargest("value", 2)) == [-math.inf] * 5


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


def test_nothing_of_an_item_gets_out(caplog: Any, capfd: Any) -> None:
    """Not by logs, output or errors, whatever a user's function does with what it sees."""

    def telling(people: Any) -> Any:
        raise ValueError(f"{CANARY} {people}")

    metric = dp.CustomProfile("value", telling, candidates=CANDIDATES, lowest=0)
    given = [{"person": CANARY, "item": item, "value": 7.0} for item in NO_ITEMS.values()]
    [row] = run(given, dp.PrivateAggregate("person", [metric, *METRICS[3:5]], dp.Budget(1e6)))
    assert row.custom_value == 0
    captured = capfd.readouterr()
    assert CANARY not in caplog.text + captured.out + captured.err + repr(row)


def measured(table: dict[str, Any], metric: Any) -> float:
    """Return the seconds of one processor from rows to released numbers."""
    program = compile_program([metric], dp.Budget(1.0), 1)
    start = time.process_time()
    [(cells, _)] = views([pa.table(table)], program)
    program.release(cells, choices(program, 3), Noise())
    return time.process_time() - start


def one_person(size: int) -> dict[str, Any]:
    numbers = np.arange(size)
    return {"person": np.zeros(size, int), "day": np.zeros(size, int), "item": numbers,
            "value": numbers / 7}  # fmt: skip


def one_line_each(size: int) -> dict[str, Any]:
    numbers = np.arange(size)
    return {"person": numbers, "day": numbers, "item": numbers, "value": numbers / 7}


def one_partition(size: int) -> dict[str, Any]:
    numbers = np.arange(size)
    return {"person": numbers * 7919 % (size // 10), "day": np.zeros(size, int),
            "item": np.minimum(numbers * 104729 % size, numbers), "value": numbers % 1000 / 7}  # fmt: skip


SHAPES: dict[str, tuple[Callable[[int], dict[str, Any]], int]] = {
    "one person of 100,000 items": (one_person, 100_000),
    "1,000 partitions of one line": (one_line_each, 1_000),
    "200,000 lines in one partition": (one_partition, 200_000),
}
MOST_SECONDS = 30


@pytest.mark.audit
@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.output)
@pytest.mark.parametrize("shape", SHAPES)
def test_large_shapes_take_seconds(shape: str, metric: Any) -> None:
    """0.1 to 2 seconds each, and 4 for medians of rows; a quadratic step would take many minutes."""
    make, size = SHAPES[shape]
    assert measured(make(size), metric) < MOST_SECONDS
