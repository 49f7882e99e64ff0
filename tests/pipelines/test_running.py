"""Lost workers and job servers end a run with one line."""

import queue
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions

from pipelines import running, stopping


def made(endpoint: object, run: Callable[[], object] = lambda: None) -> Any:
    """A pipeline for a job server; `run` is what its runner does."""

    def started() -> Any:
        run()
        return pipeline

    options = PipelineOptions([f"--job_endpoint={endpoint}"])
    runner = SimpleNamespace(create_job_service=None)
    pipeline = SimpleNamespace(
        runner=runner, options=options, run=started, wait_until_finish=lambda: None
    )
    return pipeline


@pytest.fixture
def codes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Codes with which the process would have ended; `put` is called where it would end."""
    seen: queue.Queue[int] = queue.Queue()
    monkeypatch.setattr(stopping, "end", seen.put)
    monkeypatch.setattr(running, "PATIENCE", 0.0)
    return seen


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], 2_592_000),
        (["--job_server_timeout=20"], 20),
        (["--job_endpoint=localhost:8099"], 300),
        (["--job_endpoint=localhost:8099", "--job_server_timeout=20"], 20),
    ],
)
def test_only_a_limit_that_nobody_chose_is_raised(words, expected):
    pipeline = beam.Pipeline(options=PipelineOptions(words))
    portable = pipeline.options.view_as(PortableOptions)
    assert words or portable.job_server_timeout == running.BEAMS_SECONDS
    running._let_last(pipeline)
    assert portable.job_server_timeout == expected


def test_dataflow_which_has_no_job_server_is_told_nothing():
    pipeline = beam.Pipeline(options=PipelineOptions([]))
    pipeline.runner = type("DataflowRunner", (), {})()
    running._let_last(pipeline)
    assert pipeline.options.view_as(PortableOptions).job_server_timeout == running.BEAMS_SECONDS


def failed(name: str) -> None:
    """Run a thread of this name, which fails, to its end."""

    def fails() -> None:
        raise RuntimeError

    thread = threading.Thread(name=name, target=fails)
    thread.start()
    thread.join()


def test_the_first_lost_worker_ends_a_run_with_one_line(monkeypatch, capfd, codes):
    monkeypatch.setattr(threading, "excepthook", lambda _: None)  # threads fail here on purpose
    counts: list[int] = []

    def run() -> None:
        for name in ("another", running.WORKERS, running.WORKERS):
            failed(name)
            counts.append(codes.qsize())

    running.run(made("", run), "Reading")
    failed(running.WORKERS)
    assert counts == [0, 1, 1] and codes.get() == 1 and codes.empty()
    assert capfd.readouterr().err == f"Reading\n{running.LOST}\n"
