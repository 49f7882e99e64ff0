"""Unusual parameters are warned of where a pipeline is built and planned; what a job shows of all."""

import warnings

import apache_beam as beam
import pytest

import beam_dp as dp
from beam_dp.transforms.steps import guards
from pipelines import aggregate


def applied(budget: dp.Budget) -> None:
    rows = beam.Pipeline("FnApiRunner") | beam.Create([{"person": 1}])
    _ = rows | dp.PrivateAggregate("person", [dp.Count()], budget, columns=["person"])


def test_a_pipeline_with_a_large_epsilon_warns_once() -> None:
    with pytest.warns(
        dp.UnusualParameters, match="PrivateAggregate: epsilon 11.0 is above 10"
    ) as found:
        applied(dp.Budget(11))
    assert len(found) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        applied(dp.Budget(10, 1e-6))
        guards.warn_of_unusual("owner", dp.Budget(1))


@pytest.mark.parametrize("people", [0, -1, 1.5])
def test_a_plan_for_nobody_says_what_to_write(people: float) -> None:
    made = dp.PrivateAggregate("p", [dp.Count()], dp.Budget(1, 1e-6))
    with pytest.raises((ValueError, TypeError), match=r"people must be .* Write plan\(people=5000"):
        made.plan(people=people)


def test_the_plan_knows_the_people() -> None:
    made = dp.PrivateAggregate("person", [dp.Count()], dp.Budget(1, 1e-4))
    assert made.plan().cautions == ()
    [line] = made.plan(people=20_000).cautions
    assert str(made.plan(people=20_000)).endswith(f"\nWarning: {line}")


def test_a_job_tells_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        aggregate.main(["--version"])
    assert stopped.value.code == 0 and capsys.readouterr().out == f"beam_dp {dp.__version__}\n"


def test_display_data_show_all_public_parameters() -> None:
    keys, bounds = dp.PublicPartitions([1, 2]), dp.ContributionBounds(partitions=2)
    metrics = [dp.Count(), dp.Sum("spent", clip=9)]
    made = dp.PrivateAggregate("person", metrics, dp.Budget(1), ["day"], bounds, keys, shards=8)
    told = made.display_data()
    assert told["person"] == "person" and told["partition"] == "day" and told["shards"] == 8
    assert told["budget"] == "Budget(epsilon=1.0)" and "partitions=2" in told["bounds"]
    assert told["partitions"] == "PublicPartitions(keys=2)" and told["batches"] is False
    assert "Sum(" in told["metrics"] and "clip=9" in told["metrics"]
    assert set(told) >= {"person", "metrics", "budget", "partition", "bounds", "partitions"}
    one = dp.ShiftedInverse(dp.Max("spent"), "person", dp.Budget(1))
    assert "column=spent" in one.display_data()["statistic"]
    selected = dp.SelectPartitions("person", ["day"], dp.Budget(1, 1e-6), bounds).display_data()
    assert selected["pre_threshold"] == 1 and "delta=1e-06" in selected["budget"]
