"""Runs on a job server of their own last for 30 days, and others as long as Beam lets them."""

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions

from pipelines import long_runs, terminal


def seconds(words: list[str]) -> int:
    """Return the limit of a pipeline with such options, once it may run."""
    made = beam.Pipeline(options=PipelineOptions(words))
    long_runs.allow(made)
    return made.options.view_as(PortableOptions).job_server_timeout


def test_beams_own_limit_is_as_it_was() -> None:
    assert PipelineOptions([]).view_as(PortableOptions).job_server_timeout == 300


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], 2_592_000),
        (["--job_server_timeout=20"], 20),
        (["--job_endpoint=localhost:8099"], 300),
        (["--job_endpoint=localhost:8099", "--job_server_timeout=20"], 20),
    ],
)
def test_only_a_limit_that_nobody_chose_is_raised(words: list[str], expected: int) -> None:
    assert seconds(words) == expected


def test_dataflow_is_told_nothing() -> None:
    made = beam.Pipeline(options=PipelineOptions([]))
    made.runner = type("DataflowRunner", (), {})()
    long_runs.allow(made)
    assert made.options.view_as(PortableOptions).job_server_timeout == 300


def test_every_job_may_last() -> None:
    made = beam.Pipeline(runner="FnApiRunner")
    terminal.run(made, "Reading")
    assert made.options.view_as(PortableOptions).job_server_timeout == long_runs.LONGEST
