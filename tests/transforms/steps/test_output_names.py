"""Names of columns are kept in the output, or refused: never rewritten in silence."""

from typing import Any

import pytest

import beam_dp as dp
from beam_dp.transforms.steps import output_rows

ONE = dp.Budget(1, 1e-6)
KEYS = dp.PublicPartitions([1, 2])
FIELDS = ["day", "Day2", "a_", "été", "x__y"]
OTHERS = ["visit day", "a-b", "2nd", "class", "self", "_id", "a.b", "$", "é è"]


def release(partition: str = "day", metric: Any = None, **options: Any) -> dp.PrivateAggregate:
    asked = [dp.Count() if metric is None else metric]
    return dp.PrivateAggregate("p", asked, ONE, [partition], None, KEYS, **options)


@pytest.mark.parametrize("name", FIELDS)
def test_fields_are_kept(name: str) -> None:
    made = release(name, dp.Sum(name))
    kept = (name, *(f"sum_{name}{end}" for end in ("", "_low", "_high")))
    assert output_rows.output_names(made.partition, made.metrics) == kept
    assert output_rows.field_names(made.partition, made.metrics) == kept


@pytest.mark.parametrize("name", OTHERS)
def test_other_names_are_refused_in_rows_and_kept_in_batches(name: str) -> None:
    with pytest.raises(ValueError, match="Rename the column before"):
        release(name)
    with pytest.raises(ValueError, match="Rename the column before"):
        dp.SelectPartitions("p", [name], ONE, dp.ContributionBounds(1))
    made = release(name, batches=True)
    assert output_rows.output_names(made.partition, made.metrics)[0] == name
    assert release(name, plain_names=True).plain_names


@pytest.mark.parametrize("name", ["visit day", "a-b", "a.b", "$"])
def test_a_metric_of_such_a_column_needs_a_name(name: str) -> None:
    with pytest.raises(
        ValueError, match=r'words that begin with a letter.*Name the metric: name="sum'
    ):
        release(metric=dp.Sum(name))
    release(metric=dp.Sum(name, name="spent"))
    made = release(metric=dp.Sum(name), batches=True)
    assert output_rows.output_names((), made.metrics) == (
        f"sum_{name}", f"sum_{name}_low", f"sum_{name}_high",
    )  # fmt: skip


def test_what_a_metric_puts_into_its_own_name_is_plain() -> None:
    made = release(metric=dp.Quantile("age", 0.9))
    assert output_rows.output_names((), made.metrics)[0] == "quantile_0_9_age"
