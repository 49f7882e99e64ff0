"""What a run may say: its stages, and nothing of what runners log, print or leave behind."""

import logging
import os
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from beam_dp.transforms.steps import guards
from pipelines import failures, terminal

ROOT = Path(__file__).parents[2]
CANARY = "canary-40961"
PROCESSES = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]


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


@pytest.mark.parametrize("before", [logging.NOTSET, logging.INFO, logging.CRITICAL])
def test_log_and_standard_error_are_given_back(
    before: int, capfd: pytest.CaptureFixture[str]
) -> None:
    logging.disable(before)
    stream = sys.stderr
    good = beam.Pipeline("FnApiRunner")
    _ = good | beam.Create([1])
    terminal.run(good, "Good")
    assert logging.root.manager.disable == before and sys.stderr is stream
    with pytest.raises(SystemExit):
        terminal.run(failing(), "Bad")
    assert logging.root.manager.disable == before and sys.stderr is stream
    os.write(2, b"there again\n")
    assert capfd.readouterr().err == "Good\nBad\nthere again\n"


def test_nothing_is_logged_by_threads_that_a_failure_leaves(
    caplog: pytest.LogCaptureFixture,
) -> None:
    go_on, log = threading.Event(), logging.getLogger("apache_beam.anything")
    late = threading.Thread(target=lambda: (go_on.wait(), log.error(CANARY)), daemon=True)

    def fails() -> None:
        with terminal.hushed():
            late.start()
            raise ValueError

    pytest.raises(ValueError, fails)
    go_on.set()
    late.join()
    assert caplog.text == "" and logging.root.manager.disable == logging.ERROR


def test_a_failure_in_a_worker_process_shows_no_data(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        terminal.run(failing(*PROCESSES), "Reading")
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
        terminal.run(failing(*options), "Reading", show_errors=True)
    said = capfd.readouterr().err
    assert said.startswith("Reading\nTraceback ") and f"ValueError: no good: {CANARY}" in said
    line = str(stopped.value.code)
    assert line.endswith("; its text may quote data and is above") and CANARY not in line


def test_a_line_says_where_to_look() -> None:
    line = "the run failed with KeyError; its text may quote data and is not shown: "
    local = ["DirectRunner", "FnApiRunner", "SwitchingDirectRunner", "PrismRunner"]
    remote = ["DataflowRunner", "PortableRunner", "FlinkRunner", "SparkRunner"]
    for runner in local:
        said = failures.explain(KeyError(CANARY), runner)
        assert said == f"{line}run again with --show_errors to see it"
    for runner in remote:
        said = failures.explain(KeyError(CANARY), runner)
        assert said == f"{line}see the runner's log, or run again with --show_errors"
    assert {*local, *remote} == set(guards.RUNNERS)
    with pytest.raises(SystemExit) as stopped:
        terminal.run(failing(), "Reading")
    assert "log" not in str(stopped.value.code) and "--show_errors" in str(stopped.value.code)


def test_what_this_package_says_is_passed_on_and_nothing_that_looks_like_it() -> None:
    """Beam puts the full name of an error's class before its text."""
    kind, rule = "beam_dp.mechanisms.numerics.checks.ParameterError", "must match a file, and 'x'"
    for text in (f"ReadRows: pattern {rule}.", f"{kind}: ReadRows: pattern {rule}."):
        assert failures.explain(RuntimeError(f"{text} [while running 'Read']")) == f"--input {rule}"
    for text in (f"a: Count: {CANARY}", f"other.kind: Count: {CANARY}", f"a b: Count: {CANARY}"):
        assert CANARY not in failures.explain(RuntimeError(text))


@pytest.mark.audit
def test_the_worker_process_would_show_it(capfd: pytest.CaptureFixture[str]) -> None:
    """The broken twin: run without holding anything back."""
    with pytest.raises(RuntimeError):
        failing(*PROCESSES).run().wait_until_finish()
    assert CANARY in capfd.readouterr().err


@pytest.mark.audit
def test_importing_the_jobs_says_nothing_and_changes_no_logger() -> None:
    program = "import logging, pipelines.aggregate; print(logging.getLogger().filters)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


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
        terminal.run(Failing(), "Reading")
    said = f"{stopped.value.code}{capfd.readouterr()}"
    assert f"the run failed with {kind.__name__}; its text may quote data" in said
    assert CANARY not in said and "Traceback" not in said


def test_what_nothing_catches_is_one_line_and_shown_to_who_asks() -> None:
    code = "import sys; sys.argv[0] = '-m'; sys.orig_argv = ['', '-m', 'pipelines.aggregate']\n"
    code += f"import pipelines; raise EOFError('{CANARY}')"
    for flag, shown in (([], False), (["--show_errors"], True)):
        words = [sys.executable, "-c", code, *flag]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and (CANARY in done.stderr) == shown
        assert "EOFError" in done.stderr and (done.stderr.count("\n") == 1) != shown
