"""What a run may say: its stages, and nothing that runners say."""

import logging
import os
import subprocess
import sys

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from pipelines import aggregate, running, terminal

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


@pytest.mark.parametrize(("said", "wide"), [("72", 72), ("0", None), ("wide", None), ("", None)])
def test_lines_are_as_wide_as_columns_says_where_there_is_no_terminal(said, wide, monkeypatch):
    monkeypatch.setenv("COLUMNS", said)
    assert terminal.width() == wide


def test_what_a_runner_says_is_held_back_and_the_stages_are_not(capfd, caplog):
    with terminal.hushed():
        everything_that_can_be_said()
        terminal.say("Writing")
    assert capfd.readouterr().err == "Writing\n" and caplog.text == ""
    everything_that_can_be_said()  # and then nothing is held back any more
    said = capfd.readouterr().err
    assert said.count(CANARY) == 3 and CANARY in caplog.text


def test_standard_error_is_given_back_and_after_a_failure_no_log(capfd, caplog):
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


@pytest.mark.parametrize("options", [[], pytest.param(PROCESSES, marks=pytest.mark.audit)])
@pytest.mark.parametrize("shown", [False, True])
def test_a_failure_shows_data_to_who_asks(shown, options, capfd):
    """Also one in a worker process."""
    with pytest.raises(SystemExit) as stopped:
        running.run(failing(*options), "Reading", show_errors=shown)
    said = capfd.readouterr()
    line = str(stopped.value.code)
    assert "may quote data" in line and CANARY not in line and said.out == ""
    assert said.err == "Reading\n" or shown
    assert said.err.startswith("Reading\nTraceback ") == shown
    assert (f"ValueError: no good: {CANARY}" in said.err) == shown


class OwnError(Exception):
    """An error of a kind of its own, as users' functions and libraries raise."""


@pytest.mark.parametrize("kind", [OwnError, StopIteration, SystemExit])
def test_an_error_of_any_kind_is_one_line(kind, capfd):
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


def test_quiet_names_no_stage(visits, tmp_path, capfd):
    words = ["--input", visits, "--output", str(tmp_path / "out.csv"), "--person", "visitor"]
    words += ["--count", "--epsilon", "1", "--runner", "FnApiRunner", "--quiet"]
    assert aggregate.main(words) == 0
    assert capfd.readouterr().err == ""
