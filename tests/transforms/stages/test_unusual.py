"""Unusual parameters are warned of where a pipeline is built and planned; what a job shows of all."""

import warnings

import apache_beam as beam
import pytest

import beam_dp as dp
from beam_dp.transforms.stages import guards
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


def test_the_plan_warns_too() -> None:
    assert dp.PrivateAggregate("person", [dp.Count()], dp.Budget(1, 1e-4)).plan().cautions == ()
    plan = dp.PrivateAggregate("person", [dp.Count()], dp.Budget(1, 0.01)).plan()
    [line] = plan.cautions
    assert str(plan).endswith(f"\nWarning: {line}")


def test_a_job_tells_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        aggregate.main(["--version"])
    assert stopped.value.code == 0 and capsys.readouterr().out == f"beam_dp {dp.__version__}\n"
