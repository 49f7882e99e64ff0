"""A run in this process: a failure says what this package wrote, and nothing else."""

import logging
import sys

import apache_beam as beam
import pytest

import beam_dp as dp
from beam_dp.results import local_run

CANARY = "canary-77aa"


def fail(element: str) -> str:
    sys.stderr.write(element)
    logging.getLogger("apache_beam.anything").error(element)
    raise KeyError(element)


def failing() -> beam.Pipeline:
    made = beam.Pipeline(local_run.RUNNER)
    _ = made | beam.Create([CANARY]) | beam.Reshuffle() | beam.Map(fail)
    return made


def test_a_failure_shows_no_data(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(dp.RunFailed) as failed:
        local_run.run("release", failing())
    said = f"{failed.value}{failed.value.__cause__}{failed.value.__context__}"
    assert "release: the run failed with " in said and "Write show_errors=True" in said
    assert CANARY not in f"{said}{capfd.readouterr()}{caplog.text}"


def test_who_asks_for_the_error_gets_it() -> None:
    with pytest.raises(Exception, match=CANARY) as failed:
        local_run.run("release", failing(), show_errors=True)
    assert not isinstance(failed.value, dp.RunFailed)


def test_our_own_errors_are_passed_on() -> None:
    made = beam.Pipeline(local_run.RUNNER)
    _ = made | dp.ReadRows("none/*.csv", ["a"])
    with pytest.raises(dp.RunFailed, match="^ReadRows: pattern must match a file, and 'none/"):
        local_run.run("release", made)


def test_the_log_is_given_back(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("apache_beam")
    before = (log.propagate, list(log.handlers), sys.stderr)
    with local_run.hushed():
        log.error(CANARY)
    assert caplog.text == "" and before == (log.propagate, log.handlers, sys.stderr)
    log.error(CANARY)
    assert CANARY in caplog.text
