"""Lost workers and job servers end a run with one line."""

import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions

from pipelines import running, stopping

ROOT = Path(__file__).parents[2]
LISTEN = """
import socket, time
listening = socket.create_server(("localhost", 0))
print(listening.getsockname()[1], flush=True)
time.sleep(600)
"""
JOB = """
import sys
from pipelines import aggregate, running, stopping
stopping.watch()
sys.exit(aggregate.main(sys.argv[1:]))
"""


@pytest.fixture
def deserted() -> int:
    """A port that nobody listens to."""
    with socket.create_server(("localhost", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


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


def test_a_run_without_its_job_server_ends_with_one_line(
    deserted: int, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["--runner=PortableRunner", f"--job_endpoint=localhost:{deserted}"]
    pipeline = beam.Pipeline(options=PipelineOptions([*words, "--job_server_timeout=1"]))
    _ = pipeline | beam.Create([1])
    with pytest.raises(SystemExit) as stopped:
        running.run(pipeline, "Reading")
    assert stopped.value.code == running.NO_JOB_SERVER and capfd.readouterr().err == "Reading\n"


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
    pipeline = beam.Pipeline(options=PipelineOptions(words))
    portable = pipeline.options.view_as(PortableOptions)
    assert words or portable.job_server_timeout == running.BEAMS_SECONDS
    running._let_last(pipeline)
    assert portable.job_server_timeout == expected


def test_dataflow_which_has_no_job_server_is_told_nothing() -> None:
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


def test_the_first_lost_worker_ends_a_run_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], codes: Any
) -> None:
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


@pytest.mark.audit  # the same, without processes, is above
def test_a_driver_that_connects_while_its_job_server_is_killed_fails(
    tmp_path: Path, visits: str
) -> None:
    listen = [sys.executable, "-c", LISTEN]
    with subprocess.Popen(listen, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        at = f"localhost:{int(server.stdout.readline())}"
        asked = ["--person", "visitor", "--sum", "spent", "--epsilon", "1"]
        files = ["--input", visits, "--output", str(tmp_path / "released.csv")]
        on = ["--runner=PortableRunner", f"--job_endpoint={at}", "--cluster_never_restarts"]
        on += ["--job_server_timeout=8"]
        words = [sys.executable, "-c", JOB, *files, *asked, *on]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=ROOT) as job:
            assert job.stderr is not None
            said = [job.stderr.readline()]
            while said[-1] and "Reading" not in said[-1]:
                said.append(job.stderr.readline())
            time.sleep(2.0)  # a job server that is slow is waited for
            assert job.poll() is None, said
            server.kill()
            assert job.wait(30) == 1
            assert job.stderr.read() == f"{running.NO_JOB_SERVER}\n"
    assert not (tmp_path / "released.csv").exists()
