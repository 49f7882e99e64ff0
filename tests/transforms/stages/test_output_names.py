"""Names of columns are kept in batches; in rows they are fields."""

import keyword
from typing import Any

import apache_beam as beam
import pytest

import beam_dp as dp
from beam_dp.transforms.stages import output_names
from tests.hostile import support

ONE = dp.Budget(1, 1e-6)
KEYS = dp.PublicPartitions([1, 2])
FIELDS = ["day", "Day2", "a_", "été", "x__y"]
OTHERS = ["visit day", "a-b", "2nd", "class", "self", "_id", "a.b", "$", "é è"]


def release(partition: str = "day", metric: Any = None, **options: Any) -> dp.PrivateAggregate:
    asked = [dp.Count() if metric is None else metric]
    return dp.PrivateAggregate("p", asked, ONE, [partition], None, KEYS, **options)


def test_fields_are_kept() -> None:
    for name in FIELDS:
        made = release(name, dp.Sum(name))
        kept = (name, *(f"sum_{name}{end}" for end in ("", "_low", "_high")))
        assert output_names.output_names(made.partition, made.metrics) == kept
        assert output_names.field_names(made.partition, made.metrics) == kept


def test_other_names_become_fields_of_rows_and_are_kept_in_batches() -> None:
    for name in OTHERS:
        made = release(name, dp.Sum(name))
        fields = output_names.field_names(made.partition, made.metrics)
        assert all(map(str.isidentifier, fields)) and not any(map(keyword.iskeyword, fields))
        assert output_names.output_names(made.partition, made.metrics)[0] == name
    with beam.Pipeline() as pipeline:
        seen = support.keep(support.start(pipeline, []) | made)
    assert set(seen[0].as_dict()) == set(fields)


def test_two_columns_with_one_field_are_refused() -> None:
    days = dp.PublicPartitions([(1, 2)])
    for columns in (["visit day", "visit_day"], ["a-b", "a.b"]):
        with pytest.raises(ValueError, match="output columns must have different names"):
            dp.PrivateAggregate("p", [dp.Count()], ONE, columns, None, days)


def test_what_a_metric_puts_into_its_own_name_is_plain() -> None:
    made = release(metric=dp.Quantile("age", 0.9))
    assert output_names.output_names((), made.metrics)[0] == "quantile_0_9_age"
