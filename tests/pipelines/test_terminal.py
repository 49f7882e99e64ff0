"""What a run may say: its stages, and nothing that runners say."""

import logging
import os
import subprocess
import sys
import zlib
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from pipelines import aggregate, running, terminal

ROOT = Path(__file__).parents[2]
CANARY = "canary-40961"
PROCESSES = ["--direct_running_mode=multi_processing", "--direct_num_workers=1"]


def fail(element: str) -> str:
    raise ValueError(f"no good: {element}")


def failing(*options: str) -> beam.Pipeline:
    """A pipeline whose third element fails, with itself in the error's text."""
    pipeline = beam.Pipeline("FnApiRunner", PipelineOptions(list(options)))
    _ = pipeline | beam.Create([CANARY]) | beam.Reshuffle() | beam.Map(fail)
    return pipeline


def everything_that_can_be_said() -> None:
    """Speak in every way that a runner has."""
    logging.getLogger("apache_beam.anything").error(CANARY)
    sys.stderr.write(CANARY)
    os.write(2, CANARY.encode())
    subprocess.run([sys.executable, "-c", f"import os; os.write(2, b'{CANARY}')"], check=True)


@pytest.mark.parametrize(
    ("said", "wide"), [("72", 72), ("0", None), ("wide", None), ("", None), (None, None)]
)
def test_lines_are_as_wide_as_columns_says_where_there_is_no_terminal(
    said: str | None, wide: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1")
    monkeypatch.delenv("COLUMNS")
    if said is not None:
        monkeypatch.setenv("COLUMNS", said)
    assert terminal.width() == wide


def test_what_a_runner_says_is_held_back_and_the_stages_are_not(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with terminal.hushed():
        everything_that_can_be_said()
        terminal.say("Writing")
    assert capfd.readouterr().err == "Writing\n" and caplog.text == ""
    everything_that_can_be_said()  # and then nothing is held back any more
    said = capfd.readouterr().err
    assert said.count(CANARY) == 3 and CANARY in caplog.text


def test_standard_error_is_given_back_and_after_a_failure_no_log(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A failed run can leave threads, which have elements to log, while the process ends."""
    stream, log = sys.stderr, logging.getLogger("apache_beam.anything")
    good = beam.Pipeline("FnApiRunner")
    _ = good | beam.Create([1])
    running.run(good, "Good")
    log.error("good")
    with pytest.raises(SystemExit):
        running.run(failing(), "Bad")
    log.error(CANARY)
    os.write(2, b"there again\n")
    assert capfd.readouterr().err == "Good\nBad\nthere again\n" and sys.stderr is stream
    assert "good" in caplog.text and CANARY not in caplog.text


def test_a_failure_in_a_worker_process_shows_no_data(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        running.run(failing(*PROCESSES), "Reading")
    said = capfd.readouterr()
    assert said.err == "Reading\n" and said.out == "" and CANARY not in str(stopped.value.code)


@pytest.mark.parametrize(
    "options",
    [[], pytest.param(PROCESSES, marks=pytest.mark.audit)],
    ids=["in memory", "processes"],
)
def test_the_error_is_shown_to_who_asks_for_it(
    options: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        running.run(failing(*options), "Reading", show_errors=True)
    said = capfd.readouterr().err
    assert said.startswith("Reading\nTraceback ") and f"ValueError: no good: {CANARY}" in said
    line = str(stopped.value.code)
    assert "may quote data" in line and CANARY not in line


class OwnError(Exception):
    """An error of a kind of its own, as users' functions and libraries raise."""


@pytest.mark.parametrize(
    "kind", [OwnError, EOFError, zlib.error, StopIteration, MemoryError, SystemExit]
)
def test_an_error_of_any_kind_is_one_line(
    kind: type[BaseException], capfd: pytest.CaptureFixture[str]
) -> None:
    """What a runner raises is stood in for: its errors of other kinds quote elements too."""

    class Failing:
        runner = None
        options = PipelineOptions([])

        def run(self) -> None:
            raise kind(f"{CANARY} [while running 'Map']")

    with pytest.raises(SystemExit) as stopped:
        running.run(Failing(), "Reading")
    said = f"{stopped.value.code}{capfd.readouterr()}"
    assert f"the run failed with {kind.__name__}; its text may quote data" in said
    assert CANARY not in said and "Traceback" not in said


def test_what_nothing_catches_is_one_line_and_shown_to_who_asks() -> None:
    code = "import sys; sys.orig_argv = ['', '-m', 'pipelines.aggregate']\n"
    code += f"import pipelines; raise EOFError('{CANARY}')"
    for flag, shown in (([], False), (["--show_errors"], True)):
        words = [sys.executable, "-c", code, *flag]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and (CANARY in done.stderr) == shown
        assert "EOFError" in done.stderr and (done.stderr.count("\n") == 1) != shown


@pytest.mark.parametrize("quiet", [False, True])
def test_quiet_names_no_stage(
    visits: str, tmp_path: Path, quiet: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["--input", visits, "--output", str(tmp_path / "out.csv"), "--person", "visitor"]
    words += ["--count", "--epsilon", "1", "--runner", "FnApiRunner"]
    assert aggregate.main([*words, *(["--quiet"] if quiet else [])]) == 0
    assert capfd.readouterr().err == ("" if quiet else "Reading and bounding\nWriting\n")
