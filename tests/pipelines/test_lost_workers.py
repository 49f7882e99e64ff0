"""The thread that waits for a worker is heard when it fails, once, and no other thread is."""

import threading
from typing import Any

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from pipelines import lost_workers, stopping, terminal


def fails() -> None:
    raise RuntimeError


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads fail here on purpose."""
    monkeypatch.setattr(threading, "excepthook", lambda _: None)


def ended(name: str) -> None:
    """Run a thread of this name, which fails, to its end."""
    thread = threading.Thread(name=name, target=fails)
    thread.start()
    thread.join()


def test_the_first_lost_worker_is_noticed_while_it_matters() -> None:
    seen: list[str] = []
    with lost_workers.noticed(lambda: seen.append("lost")):
        ended("another")
        assert seen == []
        ended(lost_workers.THREAD)
        ended(lost_workers.THREAD)
        assert seen == ["lost"]
    ended(lost_workers.THREAD)
    assert seen == ["lost"]


def test_a_run_that_waits_for_a_lost_worker_ends_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    codes: list[int] = []
    monkeypatch.setattr(stopping, "end", codes.append)
    monkeypatch.setattr(terminal, "PATIENCE", 0.0)

    class Waiting:
        runner = None
        options = PipelineOptions([])

        def run(self) -> "Waiting":
            ended(lost_workers.THREAD)
            return self

        def wait_until_finish(self) -> None:
            """A stage that has ended."""

    waiting: Any = Waiting()
    terminal.run(waiting, "Reading")
    assert codes == [1] and capfd.readouterr().err == f"Reading\n{terminal.LOST}\n"
