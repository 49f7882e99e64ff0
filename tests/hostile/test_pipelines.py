"""Section F of the table of bad inputs: the shape of pipelines."""

from collections.abc import Callable
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing import test_stream
from apache_beam.transforms import trigger, window

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


def global_windows(**options: Any) -> beam.PTransform:
    return beam.WindowInto(window.GlobalWindows(), **options)


EACH = trigger.Repeatedly(trigger.AfterCount(1))
DISCARDING, ACCUMULATING = (
    trigger.AccumulationMode.DISCARDING,
    trigger.AccumulationMode.ACCUMULATING,
)
SHAPES: dict[str, tuple[Callable[[], beam.PTransform], str]] = {
    "76 fixed windows": (lambda: beam.WindowInto(window.FixedWindows(1)), "global window"),
    "76 sliding windows": (lambda: beam.WindowInto(window.SlidingWindows(2, 1)), "global window"),
    "76 sessions": (lambda: beam.WindowInto(window.Sessions(1)), "global window"),
    "77 trigger": (lambda: global_windows(trigger=EACH, accumulation_mode=DISCARDING), "trigger"),
    "77 accumulating": (
        lambda: global_windows(trigger=EACH, accumulation_mode=ACCUMULATING), "trigger"),
    "77 accumulating without a trigger": (
        lambda: global_windows(accumulation_mode=ACCUMULATING), "trigger"),
    "78 earliest timestamp": (
        lambda: global_windows(timestamp_combiner=window.TimestampCombiner.OUTPUT_AT_EARLIEST),
        "timestamp combiner"),
    "78 latest timestamp": (
        lambda: global_windows(timestamp_combiner=window.TimestampCombiner.OUTPUT_AT_LATEST),
        "timestamp combiner"),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_refused_when_the_pipeline_is_built(name: str) -> None:
    make, words = SHAPES[name]
    with pytest.raises(ValueError, match=f"PrivateAggregate: .*{words}.* Apply beam.WindowInto"):
        _ = pipeline_of() | beam.Create(ROWS) | make() | aggregate()


def test_75_an_unbounded_input() -> None:
    stream = pipeline_of() | test_stream.TestStream().add_elements(ROWS)
    with pytest.raises(ValueError, match="must be bounded.*Write the stream to files"):
        _ = stream | aggregate()


@pytest.mark.parametrize("repeats", [0, 1])
def test_79_82_two_consumers_see_one_release_also_when_they_are_retried(repeats: int) -> None:
    with pipeline_of(direct_runner_bundle_repeat=repeats) as pipeline:
        released = support.start(pipeline, ROWS) | aggregate()
        first = support.keep(released, "First")
        second = support.keep(released | beam.Reshuffle(), "Second")
    numbers = [{(row.day, row.count) for row in seen} for seen in (first, second)]
    assert numbers[0] == numbers[1] and len(numbers[0]) == 4
    assert len(first) == 4 * (1 + repeats)


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


def test_90_one_label_twice_is_an_error_of_beam_that_costs_nothing() -> None:
    pipeline = pipeline_of()
    rows = pipeline | beam.Create(ROWS)
    _ = rows | "Release" >> aggregate()
    again = aggregate()
    with pytest.raises(RuntimeError, match='label "Release" already exists'):
        _ = rows | "Release" >> again
    _ = rows | "Again" >> again


def test_90_in_a_loop_with_labels() -> None:
    with pipeline_of() as pipeline:
        rows = support.start(pipeline, ROWS)
        seen = [
            support.keep(rows | f"Release{number}" >> aggregate(), f"Keep{number}")
            for number in range(2)
        ]
    first, second = ({row.day: row.count for row in part} for part in seen)
    assert set(first) == set(second) and first != second
