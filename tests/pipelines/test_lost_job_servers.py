"""A job server that nobody reaches ends its job, and one that is slow, late or unknown does not."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions

from pipelines import lost_job_servers, stopping, terminal

ROOT = Path(__file__).parents[2]
LISTEN = """
import socket, time
listening = socket.create_server(("localhost", 0))
print(listening.getsockname()[1], flush=True)
time.sleep(600)
"""
JOB = """
import sys
from pipelines import aggregate, lost_job_servers, stopping
lost_job_servers.PATIENCE = 2.0
stopping.watch()
sys.exit(aggregate.main(sys.argv[1:]))
"""


@pytest.fixture(autouse=True)
def no_proxy_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may need one."""
    for name in lost_job_servers.PROXIES:
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


def watched(pipeline: Any, seconds: float) -> bool:
    """Return whether a pipeline that would connect so long is ended."""
    lost = threading.Event()
    with lost_job_servers.noticed(pipeline, lost.set):
        return lost.wait(seconds)


def test_a_port_that_nobody_listens_to_refuses_and_a_busy_process_does_not(
    silent: socket.socket, deserted: int
) -> None:
    port = silent.getsockname()[1]
    assert lost_job_servers.refuses(f"localhost:{deserted}")
    assert lost_job_servers.refuses(f"127.0.0.1:{deserted}")
    assert not lost_job_servers.refuses(f"localhost:{port}")
    for other in ("", "embed", "unix:/tmp/nobody", "localhost:", f"localhost:{10**30}"):
        assert not lost_job_servers.refuses(other), other


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([ConnectionRefusedError()], True),
        ([ConnectionRefusedError(), ConnectionRefusedError()], True),
        ([TimeoutError(), ConnectionRefusedError()], False),
        ([ConnectionRefusedError(), OSError()], False),
    ],
)
def test_a_host_of_several_addresses_refuses_with_all_of_them(
    errors: list[OSError], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*_: object, **__: object) -> None:
        raise ExceptionGroup("", errors)

    monkeypatch.setattr(socket, "create_connection", connect)
    assert lost_job_servers.refuses("localhost:1") == expected


def test_the_job_server_of_a_pipeline_is_watched_while_it_is_reached(
    silent: socket.socket, deserted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = made(f"localhost:{deserted}")
    monkeypatch.setattr(lost_job_servers, "PAUSE", 0.001)
    assert not watched(gone, 0.02)  # a minute is not over
    monkeypatch.setattr(lost_job_servers, "PATIENCE", 0.0)
    assert watched(gone, 10.0)
    assert not watched(made(f"localhost:{silent.getsockname()[1]}"), 0.02)
    with monkeypatch.context() as proxy:  # which may reach what refuses us
        proxy.setenv("https_proxy", "http://localhost:1")
        assert not watched(gone, 0.02)
    chosen = made(f"localhost:{deserted}")
    chosen.options.view_as(PortableOptions).job_server_timeout = 600  # the operator waits longer
    assert not watched(chosen, 0.02)
    gone.runner = None  # the option is there, and no runner asks for it
    assert not watched(gone, 0.02)


@pytest.mark.parametrize(
    ("refusals", "expected"),
    [
        ([True] * 61, True),
        ([True] * 60, False),
        ([True] * 60 + [False] + [True] * 60, False),
        ([False] * 1000, False),
        ([False] * 1000 + [True] * 61, True),
    ],
)
def test_only_a_minute_of_refusals_ends_a_job(
    refusals: list[bool], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, ended, seconds = list[str](), threading.Event(), 0

    def refuses(endpoint: str) -> bool:
        nonlocal seconds
        seconds += 1
        if seconds == len(refusals) and not expected:
            ended.set()
        return refusals[seconds - 1]

    monkeypatch.setattr(lost_job_servers, "PAUSE", 2.0**-20)
    monkeypatch.setattr(lost_job_servers, "PATIENCE", 60 * 2.0**-20)
    monkeypatch.setattr(lost_job_servers, "refuses", refuses)
    lost_job_servers._watch("", ended, lambda: lost.append("lost"))
    assert bool(lost) == expected and seconds == len(refusals)


def test_a_run_without_its_job_server_ends_with_one_line(
    deserted: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    codes, ended = list[int](), threading.Event()
    monkeypatch.setattr(stopping, "end", lambda code: (codes.append(code), ended.set()))
    monkeypatch.setattr(terminal, "PATIENCE", 0.0)
    monkeypatch.setattr(lost_job_servers, "PAUSE", 0.01)
    monkeypatch.setattr(lost_job_servers, "PATIENCE", 0.02)
    terminal.run(made(f"localhost:{deserted}", lambda: ended.wait(10)), "Reading")
    assert codes == [1] and capfd.readouterr().err == f"Reading\n{terminal.NO_JOB_SERVER}\n"


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
        words = [sys.executable, "-c", JOB, *files, *asked, *on]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=ROOT) as job:
            assert job.stderr is not None
            said = [job.stderr.readline()]
            while said[-1] and "Reading" not in said[-1]:
                said.append(job.stderr.readline())
            time.sleep(4.0)  # twice the patience: a job server that is slow is waited for
            assert job.poll() is None, said
            server.kill()
            assert job.wait(30) == 1
            assert job.stderr.read() == f"{terminal.NO_JOB_SERVER}\n"
    assert not (tmp_path / "released.csv").exists()
