"""Section F of the table of bad inputs: the shape of pipelines."""

from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

import beam_dp as dp
from tests.hostile import support
from tests.hostile.support import as_dict

FAINT = dp.Budget(2.0**-20)
ROWS = [as_dict((person, f"day {person % 4}", 1.0)) for person in range(100)]
PUBLIC = dp.PublicPartitions([f"day {number}" for number in range(4)])


def aggregate() -> dp.PrivateAggregate:
    return dp.PrivateAggregate("person", [dp.Count()], FAINT, ["day"], partitions=PUBLIC)


def pipeline_of(**options: Any) -> beam.Pipeline:
    return beam.Pipeline(
        options=PipelineOptions.from_dictionary({"runner": "FnApiRunner", **options})
    )


def test_80_two_consumers_of_bounded_rows_see_one_choice() -> None:
    rows = [as_dict((person % 5, day, 1.0)) for person in range(50) for day in range(20)]
    with pipeline_of(direct_runner_bundle_repeat=1) as pipeline:
        bounded = support.start(pipeline, rows) | dp.BoundContributions(
            "person", ["day"], dp.ContributionBounds(3)
        )
        first = support.keep(bounded, "First")
        second = support.keep(bounded | beam.Reshuffle(), "Second")
    union = {(row.person, row.day) for row in [*first, *second]}
    assert len(union) == 3 * 5


def test_85_a_second_run_is_refused_and_said_to_be_a_second_release() -> None:
    pipeline = pipeline_of()
    seen = support.keep(support.start(pipeline, ROWS) | aggregate())
    pipeline.run().wait_until_finish()
    assert len(seen) == 4
    with pytest.raises(ValueError, match="must be run once, not twice: a second run draws again"):
        pipeline.run()
    assert len(seen) == 4
    assert "Running a job twice spends twice" in " ".join((dp.__doc__ or "").split())
