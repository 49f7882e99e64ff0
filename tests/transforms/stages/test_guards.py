"""Pipelines without a proof are refused while they are built, with what to write instead."""

from collections.abc import Callable
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import DebugOptions, PipelineOptions
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.runners.worker.data_sampler import DataSampler
from apache_beam.testing import test_stream
from apache_beam.transforms import trigger, window

import beam_dp as dp
from beam_dp.transforms.stages import guards

BUDGET = dp.Budget(1, 1e-6)
BOUNDS = dp.ContributionBounds(partitions=1)
RELEASES: dict[str, Callable[[], beam.PTransform]] = {
    "PrivateAggregate": lambda: dp.PrivateAggregate("person", [dp.Count()], BUDGET),
    "ShiftedInverse": lambda: dp.ShiftedInverse(dp.Count(), "person", BUDGET),
    "SelectPartitions": lambda: dp.SelectPartitions("person", ["day"], BUDGET, BOUNDS),
}
TRANSFORMS = RELEASES | {
    "BoundContributions": lambda: dp.BoundContributions("person", ["day"], BOUNDS),
    "RemovalLoss": lambda: dp.RemovalLoss(dp.Count(), "person"),
}


def rows(*flags: str, runner: Any = "FnApiRunner") -> beam.PCollection:
    options = PipelineOptions(["--cluster_never_restarts", *flags])
    return beam.Pipeline(runner, options) | beam.Create([{"person": 1, "day": 1}])


def windowed(windows: window.WindowFn, **options: Any) -> beam.PCollection:
    return rows() | "Window" >> beam.WindowInto(windows, **options)


def stream() -> beam.PCollection:
    events = test_stream.TestStream().add_elements([{"person": 1}])
    return beam.Pipeline(runner="FnApiRunner") | events


class UnknownRunner(beam.runners.PipelineRunner):
    """A runner that nobody has tried."""


ALL = window.GlobalWindows()
ANEW = trigger.AccumulationMode.DISCARDING
MORE = trigger.AccumulationMode.ACCUMULATING
REPEATED = trigger.Repeatedly(trigger.AfterCount(1))
IN_TIME = "default timestamp combiner.*Apply beam.WindowInto"
RUNNER = f"one of {', '.join(guards.RUNNERS)}, not"
SAMPLING = "without --experiments=enable_data_sampling"
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "stream": (stream, "must be bounded, not a stream.*Write the stream to files"),
    "streaming": (lambda: rows("--streaming"), "a batch job, not with --streaming.*Leave it out"),
    "windows": (
        lambda: windowed(window.FixedWindows(1)),
        "global window.*make time a partition column",
    ),
    "repeated": (
        lambda: windowed(ALL, trigger=REPEATED, accumulation_mode=ANEW),
        "default trigger.*Apply beam.WindowInto",
    ),
    "accumulating": (
        lambda: windowed(ALL, trigger=trigger.DefaultTrigger(), accumulation_mode=MORE),
        "default trigger.*Apply beam.WindowInto",
    ),
    "time of rows": (
        lambda: windowed(ALL, timestamp_combiner=window.TimestampCombiner.OUTPUT_AT_LATEST),
        IN_TIME,
    ),
    "unknown runner": (lambda: rows(runner=UnknownRunner()), f"{RUNNER} UnknownRunner.*dp.release"),
    "runner that retries": (lambda: rows(runner=BundleBasedDirectRunner()), f"{RUNNER} Bundle"),
    "sampling": (lambda: rows("--experiments=other,enable_data_sampling"), SAMPLING),
    "at least once": (
        lambda: rows("--dataflow_service_options=streaming_mode_at_least_once"),
        "run without --dataflow_service_options=streaming_mode_at",
    ),
    "two collections": (lambda: (rows(),) * 2, "must be one PCollection of rows.*beam.Flatten"),
    "a pipeline": (lambda: rows().pipeline, "must be one PCollection of rows.*beam.Flatten"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_input_without_a_proof_is_refused(case: str) -> None:
    given, said = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=said):
        given() | TRANSFORMS["PrivateAggregate"]()


@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_transform_looks_at_its_input_and_takes_the_mended_one(name: str) -> None:
    with pytest.raises(ValueError, match=IN_TIME):
        REFUSED["time of rows"][0]() | TRANSFORMS[name]()
    mended = windowed(window.FixedWindows(1)) | "Global" >> beam.WindowInto(ALL)
    assert mended | TRANSFORMS[name]()


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_is_applied_once(name: str) -> None:
    transform, given = RELEASES[name](), rows()
    given | "First" >> transform
    for again in (given, rows()):
        with pytest.raises(ValueError, match="applied once, not twice.*Make another object"):
            again | "Second" >> transform


@pytest.mark.parametrize("given", [[], ["enable_always_on_exception_sampling"]])
def test_no_element_is_kept_that_made_a_step_fail(given: list[str]) -> None:
    """What Beam's own worker makes of the options that a job is sent with."""
    made = rows(*(f"--experiments={word}" for word in given))
    assert (DataSampler.create(made.pipeline.options) is None) == (not given)
    _ = made | TRANSFORMS["PrivateAggregate"]()
    sent = PipelineOptions.from_dictionary(made.pipeline.options.get_all_options())
    sent.view_as(DebugOptions).add_experiment("enable_always_on_exception_sampling")  # the service
    assert DataSampler.create(sent) is None
    assert set(given) < set(sent.view_as(DebugOptions).experiments)


@pytest.mark.parametrize("given", [[], ["data_buffer_size_limit=1000"]])
@pytest.mark.parametrize("runner", ["FnApiRunner", "PrismRunner", *guards.RECOMPUTING])
def test_engines_send_small_messages_unless_the_job_says_otherwise(
    runner: str, given: list[str]
) -> None:
    """20 million rows in messages of Beam's 1 MB end as "Direct buffer memory" on Flink."""
    made = rows(*(f"--experiments={word}" for word in [*given, "other"]), runner=runner)
    _ = made | TRANSFORMS["PrivateAggregate"]()
    found = made.pipeline.options.view_as(DebugOptions).experiments
    limits = [each for each in found if each.startswith("data_buffer_size_limit")]
    is_engine = runner in guards.RECOMPUTING
    assert limits == (given or ["data_buffer_size_limit=65536"] * is_engine)
