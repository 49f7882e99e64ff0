"""Pipelines without a proof are refused while they are built, with what to write instead."""

from collections.abc import Iterator
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
TRANSFORMS = {
    "PrivateAggregate": lambda: dp.PrivateAggregate("person", [dp.Count()], BUDGET),
    "ShiftedInverse": lambda: dp.ShiftedInverse(dp.Count(), "person", BUDGET),
    "SelectPartitions": lambda: dp.SelectPartitions("person", ["day"], BUDGET, BOUNDS),
    "BoundContributions": lambda: dp.BoundContributions("person", ["day"], BOUNDS),
    "RemovalLoss": lambda: dp.RemovalLoss(dp.Count(), "person"),
}


@pytest.fixture(params=TRANSFORMS)
def transform(request: pytest.FixtureRequest) -> beam.PTransform:
    return TRANSFORMS[request.param]()


@pytest.fixture
def rows() -> beam.PCollection:
    return beam.Pipeline(runner="FnApiRunner") | beam.Create([{"person": 1, "day": 1}])


def test_a_stream_is_refused(transform: beam.PTransform) -> None:
    stream = beam.Pipeline(runner="FnApiRunner") | test_stream.TestStream().add_elements(
        [{"person": 1}]
    )
    with pytest.raises(
        ValueError, match="must be bounded, not a stream.*Write the stream to files"
    ):
        stream | transform


def test_a_streaming_job_is_refused_though_its_input_is_bounded(transform: beam.PTransform) -> None:
    options = PipelineOptions(["--runner=FnApiRunner", "--streaming"])
    rows = beam.Pipeline(options=options) | beam.Create([{"person": 1, "day": 1}])
    with pytest.raises(ValueError, match="a batch job, not with --streaming.*Leave it out"):
        rows | transform


WINDOWS = [window.FixedWindows(1), window.SlidingWindows(2, 1), window.Sessions(1)]


@pytest.mark.parametrize("windows", WINDOWS, ids=lambda found: type(found).__name__)
def test_windows_are_refused(
    windows: window.WindowFn, transform: beam.PTransform, rows: beam.PCollection
) -> None:
    with pytest.raises(ValueError, match="global window.*make time a partition column"):
        rows | beam.WindowInto(windows) | transform


DISCARDING, ACCUMULATING = (
    trigger.AccumulationMode.DISCARDING,
    trigger.AccumulationMode.ACCUMULATING,
)
TRIGGERS: list[dict[str, Any]] = [
    {"trigger": trigger.Repeatedly(trigger.AfterCount(1)), "accumulation_mode": DISCARDING},
    {"trigger": trigger.Repeatedly(trigger.AfterCount(1)), "accumulation_mode": ACCUMULATING},
    {
        "trigger": trigger.AfterWatermark(early=trigger.AfterCount(1)),
        "accumulation_mode": DISCARDING,
    },
    {"trigger": trigger.DefaultTrigger(), "accumulation_mode": ACCUMULATING},
]


@pytest.mark.parametrize("options", TRIGGERS, ids=range(len(TRIGGERS)))
def test_triggers_are_refused(
    options: dict[str, Any], transform: beam.PTransform, rows: beam.PCollection
) -> None:
    with pytest.raises(ValueError, match="default trigger.*Apply beam.WindowInto"):
        rows | beam.WindowInto(window.GlobalWindows(), **options) | transform


@pytest.mark.parametrize("name", ["OUTPUT_AT_EARLIEST", "OUTPUT_AT_LATEST"])
def test_timestamps_of_rows_may_not_reach_the_output(
    name: str, transform: beam.PTransform, rows: beam.PCollection
) -> None:
    combiner = getattr(window.TimestampCombiner, name)
    windowed = rows | beam.WindowInto(window.GlobalWindows(), timestamp_combiner=combiner)
    with pytest.raises(ValueError, match="default timestamp combiner.*Apply beam.WindowInto"):
        windowed | transform


def test_the_mended_call_works(transform: beam.PTransform, rows: beam.PCollection) -> None:
    windowed = rows | "Windows" >> beam.WindowInto(window.FixedWindows(1))
    assert windowed | "Global" >> beam.WindowInto(window.GlobalWindows()) | transform


class UnknownRunner(beam.runners.PipelineRunner):
    """A runner that nobody has tried."""


@pytest.mark.parametrize("kind", [UnknownRunner, BundleBasedDirectRunner])
def test_other_runners_are_refused(kind: type, transform: beam.PTransform) -> None:
    rows = beam.Pipeline(runner=kind()) | beam.Create([{"person": 1}])
    with pytest.raises(ValueError, match=f"one of FnApiRunner, .*, not {kind.__name__}"):
        rows | transform


def inputs(rows: beam.PCollection) -> Iterator[object]:
    yield (rows, rows)
    yield rows.pipeline


def test_one_collection_is_asked_for(rows: beam.PCollection) -> None:
    for number, given in enumerate(inputs(rows)):
        with pytest.raises(TypeError, match="must be one PCollection of rows.*beam.Flatten"):
            given | str(number) >> dp.PrivateAggregate("person", [dp.Count()], BUDGET)


RELEASES = ["PrivateAggregate", "ShiftedInverse", "SelectPartitions"]


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_is_applied_once(name: str, rows: beam.PCollection) -> None:
    transform = TRANSFORMS[name]()
    rows | "First" >> transform
    with pytest.raises(ValueError, match="applied once, not twice.*Make another object"):
        rows | "Second" >> transform
    other = beam.Pipeline(runner="FnApiRunner") | beam.Create([{"person": 1}])
    with pytest.raises(ValueError, match="applied once"):
        other | transform


def test_a_job_that_keeps_rows_to_show_them_is_refused(transform: beam.PTransform) -> None:
    for words in (["enable_data_sampling"], ["other,enable_data_sampling"]):
        options = PipelineOptions(["--runner=FnApiRunner", *(f"--experiments={w}" for w in words)])
        rows = beam.Pipeline(options=options) | beam.Create([{"person": 1, "day": 1}])
        with pytest.raises(ValueError, match="without --experiments=enable_data_sampling"):
            rows | transform


def test_at_least_once_is_refused(transform: beam.PTransform) -> None:
    words = ["--runner=FnApiRunner", "--dataflow_service_options=streaming_mode_at_least_once"]
    rows = beam.Pipeline(options=PipelineOptions(words)) | beam.Create([{"person": 1, "day": 1}])
    with pytest.raises(
        ValueError, match="run without --dataflow_service_options=streaming_mode_at"
    ):
        rows | transform


@pytest.mark.parametrize("given", [[], ["other"], ["enable_always_on_exception_sampling"]])
def test_no_element_is_kept_that_made_a_step_fail(
    given: list[str], transform: beam.PTransform
) -> None:
    """What Beam's own worker makes of the options that a job is sent with."""
    words = [f"--experiments={word}" for word in given]
    options = PipelineOptions(["--runner=FnApiRunner", *words])
    pipeline = beam.Pipeline(options=options)
    rows = pipeline | beam.Create([{"person": 1, "day": 1}])
    assert (DataSampler.create(pipeline.options) is None) == ("enable" not in str(given))
    _ = rows | transform
    sent = PipelineOptions.from_dictionary(pipeline.options.get_all_options())
    sent.view_as(DebugOptions).add_experiment("enable_always_on_exception_sampling")  # the service
    assert DataSampler.create(sent) is None
    assert set(given) < set(sent.view_as(DebugOptions).experiments)


@pytest.mark.parametrize("given", [[], ["data_buffer_size_limit=1000"]])
@pytest.mark.parametrize("runner", ["FnApiRunner", "PrismRunner", *guards.RECOMPUTING])
def test_engines_send_small_messages_unless_the_job_says_otherwise(
    runner: str, given: list[str], transform: beam.PTransform
) -> None:
    """20 million rows in messages of Beam's 1 MB end as "Direct buffer memory" on Flink."""
    words = [f"--experiments={word}" for word in [*given, "other"]]
    pipeline = beam.Pipeline(runner, PipelineOptions([*words, "--cluster_never_restarts"]))
    _ = pipeline | beam.Create([{"person": 1, "day": 1}]) | transform
    found = pipeline.options.view_as(DebugOptions).experiments
    limits = [each for each in found if each.startswith("data_buffer_size_limit")]
    is_engine = runner in guards.RECOMPUTING
    assert limits == (given or ["data_buffer_size_limit=65536"] * is_engine)
