"""Rows with a column of any type are rows to Python, and bytes to a runner."""

import pickle
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.coders import registry
from apache_beam.coders.row_coder import RowCoder
from apache_beam.portability import common_urns, python_urns
from apache_beam.runners.pipeline_context import PipelineContext
from apache_beam.typehints.row_type import RowTypeConstraint

import beam_dp as dp
from beam_dp.transforms.stages.output_names import row_type

ROW = common_urns.coders.ROW.urn
PUBLIC = dp.PublicPartitions(["a", "b"])
BUDGET, BOUNDS = dp.Budget(1, 1e-6), dp.ContributionBounds(1)


def urn_of(kind: Any) -> str:
    return registry.get_coder(kind).to_runner_api(PipelineContext()).spec.urn


def test_open_rows_are_coded_as_rows_that_no_runner_reads() -> None:
    kind = row_type([("day", Any), ("count", int)])
    assert isinstance(kind, RowTypeConstraint) and urn_of(kind) == python_urns.PICKLED_CODER
    coder = registry.get_coder(kind)
    worker = pickle.loads(pickle.dumps(coder))
    assert type(worker) is RowCoder
    for day in ("a", 7, None, 1.5):
        assert tuple(worker.decode(coder.encode(beam.Row(day=day, count=3)))) == (day, 3)


OUTPUTS: dict[str, Any] = {
    "private": (dp.PrivateAggregate("person", [dp.Count()], BUDGET, ["day"], BOUNDS), False),
    "public": (
        dp.PrivateAggregate("person", [dp.Count()], BUDGET, ["day"], BOUNDS, PUBLIC), True
    ),
    "bounded": (dp.BoundContributions("person", ["day"], BOUNDS), False),
    "loss": (dp.RemovalLoss(dp.Count(), "person", ["day"], partitions=PUBLIC), False),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTPUTS)
def test_no_runner_is_shown_a_column_of_any_type(name: str) -> None:
    transform, known = OUTPUTS[name]
    rows = beam.Pipeline(runner="FnApiRunner") | beam.Create([{"person": 1, "day": "a"}])
    assert (urn_of((rows | transform).element_type) == ROW) is known
