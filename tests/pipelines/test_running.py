"""Lost workers and job servers end a run with one line; slow, late or unknown ones do not."""

import contextlib
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions

from pipelines import running, stopping, terminal

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def no_proxy_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may need one."""
    for name in running.PROXIES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A job server that listens, and is too busy to answer."""
    with socket.create_server(("localhost", 0)) as listening:
        yield listening


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
    monkeypatch.setattr(terminal, "PATIENCE", 0.0)
    monkeypatch.setattr(running, "PAUSE", 0.001)
    return seen


def ends(pipeline: Any, codes: Any, seconds: float = 0.05) -> bool:
    """Return whether a pipeline that would connect so long is ended."""
    noticed = running._lost_job_server_noticed(running._job_server(pipeline))
    with noticed, contextlib.suppress(queue.Empty):
        return bool(codes.get(timeout=seconds))
    return False


def test_a_port_that_nobody_listens_to_refuses_and_a_busy_process_does_not(
    silent: socket.socket, deserted: int
) -> None:
    port = silent.getsockname()[1]
    assert running.refuses(f"localhost:{deserted}")
    assert running.refuses(f"127.0.0.1:{deserted}")
    assert not running.refuses(f"localhost:{port}")
    for other in ("", "embed", "unix:/tmp/nobody", "localhost:", f"localhost:{10**30}"):
        assert not running.refuses(other), other


def test_the_job_server_of_a_pipeline_is_watched_while_it_is_reached(
    silent: socket.socket, deserted: int, monkeypatch: pytest.MonkeyPatch, codes: Any
) -> None:
    gone = made(f"localhost:{deserted}")
    monkeypatch.setattr(running, "REFUSALS", 10**9)
    assert not ends(gone, codes)  # a minute is not over
    monkeypatch.setattr(running, "REFUSALS", 0)
    assert ends(gone, codes, 10)
    assert not ends(made(f"localhost:{silent.getsockname()[1]}"), codes)
    with monkeypatch.context() as proxy:  # which may reach what refuses us
        proxy.setenv("https_proxy", "http://localhost:1")
        assert not ends(gone, codes)
    chosen = made(f"localhost:{deserted}")
    chosen.options.view_as(PortableOptions).job_server_timeout = 600  # the operator waits longer
    assert not ends(chosen, codes)
    gone.runner = None  # the option is there, and no runner asks for it
    assert not ends(gone, codes)


@pytest.mark.parametrize(
    ("refusals", "expected"),
    [
        ([True] * 61, True),
        ([True] * 60, False),
        ([True] * 60 + [False] + [True] * 60, False),
        ([False] * 100 + [True] * 61, True),
    ],
)
def test_only_a_minute_of_refusals_ends_a_job(
    refusals: list[bool], expected: bool, monkeypatch: pytest.MonkeyPatch, codes: Any
) -> None:
    connected, left = threading.Event(), list(refusals)

    def refuses(endpoint: str) -> bool:
        refused = left.pop(0)
        if not left and not expected:
            connected.set()
        return refused

    monkeypatch.setattr(running, "refuses", refuses)
    running._watch("", connected)
    assert codes.empty() != expected and not left


def test_a_run_without_its_job_server_ends_with_one_line(
    deserted: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], codes: Any
) -> None:
    monkeypatch.setattr(running, "REFUSALS", 1)
    seen: list[int] = []
    running.run(
        made(f"localhost:{deserted}", lambda: seen.append(codes.get(timeout=10))), "Reading"
    )
    assert seen == [1] and capfd.readouterr().err == f"Reading\n{running.NO_JOB_SERVER}\n"


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
    running._job_server(pipeline)
    assert portable.job_server_timeout == expected


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
