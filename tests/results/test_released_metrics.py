"""Which columns of a released table belong together, whatever their names are."""

import math
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.results.released_metrics import keys_of, metrics_of
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
