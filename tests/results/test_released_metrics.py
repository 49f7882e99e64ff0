"""Which columns of a released table belong together, whatever their names are."""

import datetime
import math
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.results.released_metrics import keys_of, label_of, metrics_of, positions_of
from beam_dp.transforms import release_record

METRICS = [
    dp.Sum("spent", name="day_low"),
    dp.Quantiles("ms", [0.5, 0.9]),
    dp.Histogram("age", edges=[-math.inf, 18, 30.5, math.inf]),
    dp.Median("ms", name="median_rank_error"),
]


def released(rows: int = 1) -> tuple[pa.Table, dict[str, Any]]:
    release = dp.PrivateAggregate("who", METRICS, dp.Budget(1.0, 1e-6), ["day"])
    record = release_record.facts(release, None)
    names = [*record["columns"]["keys"], *chain(*record["columns"]["numbers"])]
    return pa.table({name: [float(at)] * rows for at, name in enumerate(names)}), record


def test_every_metric_has_its_numbers() -> None:
    table, record = released()
    metrics = metrics_of(table, record)
    assert [(m.kind, m.column, len(m.series)) for m in metrics] == [
        ("Sum", "spent", 1), ("Quantiles", "ms", 2), ("Histogram", "age", 3), ("Median", "ms", 1)
    ]  # fmt: skip
    assert [m.is_histogram for m in metrics] == [False, False, True, False]
    assert [each.label for each in metrics[1].series] == ["0.5", "0.9"]
    bins = ["below 18", "18 to below 30.5", "30.5 or more"]
    assert [each.label for each in metrics[2].series] == bins
    numbers = [n for m in metrics for each in m.series for n in each.numbers]
    told = [(n.value, n.low, n.high, n.rank) for n in numbers]
    assert told[0] == (1, 2, 3, None) and told[1] == (4, None, None, 5) and told[-1][3] == 18
    assert [m.name for m in metrics] == [
        "day_low",
        "quantiles_ms_0",
        "histogram_age",
        "median_rank_error",
    ]
    assert keys_of(table, record) == [(0.0,)]


def test_a_table_without_keys_or_parameters() -> None:
    record = {"columns": {"keys": [], "numbers": [["n", "n_low", "n_high"]]}}
    table = pa.table({"n": [5, 6], "n_low": [4.0, math.inf], "n_high": [None, 9.0]})
    [metric] = metrics_of(table, record)
    assert keys_of(table, record) == [(), ()] and metric.kind == "" and metric.name == "n"
    first, second = metric.series[0].numbers
    assert (first.low, first.high, first.whole) == (4, None, True)
    assert (second.low, second.high) == (None, 9)


@pytest.mark.parametrize("statistic", [dp.Max("ms"), dp.Count()])
def test_a_record_of_one_statistic(statistic: dp.Max) -> None:
    loss = dp.RemovalLoss(statistic, "who", (), 5)
    record = release_record.facts(loss, None)
    assert record["columns"]["numbers"] == [
        [f"{statistic.output}{end}" for end in ("", "_low", "_high")]
    ]
    table = pa.table({name: [1.0] for name in record["columns"]["numbers"][0]})
    assert metrics_of(table, record)[0].kind == type(statistic).__name__


DATES = [datetime.date(2024, 1, day) for day in (1, 2, 20)]


@pytest.mark.parametrize(
    ("keys", "ordered"),
    [
        ([1, 2, 3], True),
        (["1", "2", "3"], True),
        ([1985, 1986, 1990], True),
        ([7, 4711, 88122], False),
        (["007", "008", "009"], False),
        ([1, 2], False),
        (DATES, True),
        ([date.isoformat() for date in DATES], True),
        (["2024-01", "2024-02", "2025-12"], True),
        (["2024-13", "2024-14", "2024-15"], False),
        ([True, False, 3], False),
        (["a", "b", "c"], False),
        (["1", "+1", "2"], False),
    ],
)
def test_days_and_years_are_in_order_and_numbers_of_shops_are_not(
    keys: list[object], ordered: bool
) -> None:
    found = positions_of([(key,) for key in keys])
    assert (found is not None) == ordered
    assert found is None or found == sorted(found)
    assert positions_of([(key, "DE") for key in keys]) is None


def test_a_key_is_one_text() -> None:
    assert [label_of(key) for key in (("a", 7), (), ("",))] == ["a / 7", "all rows", '""']
