"""The line of a long run: on the operator's terminal alone, cleared at the end."""

import contextlib
import os
import pty
import select
import time
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import pytest

from beam_dp.transforms.inputs import progress
from pipelines import aggregate, progress_line, terminal

FILE = __file__


class Screen:
    """A terminal, and what was written on it."""

    def __init__(self) -> None:
        self._master, self.descriptor = pty.openpty()

    def text(self) -> str:
        """Return what is new; a sign may be cut where the line is being written."""
        read, until = b"", time.monotonic() + 0.2
        while select.select([self._master], [], [], 0.05)[0]:
            read += os.read(self._master, 1 << 16)
            if time.monotonic() > until:
                break
        return read.decode(errors="ignore")

    def close(self) -> None:
        os.close(self._master)
        os.close(self.descriptor)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    monkeypatch.setattr(progress_line, "DELAY", 0.0)
    monkeypatch.setattr(progress_line, "_EVERY", 0.01)
    made = Screen()
    monkeypatch.setattr(terminal, "_terminal", [made.descriptor])
    yield made
    made.close()


def wait_for(screen: Screen, words: str) -> str:
    """Return what is on the screen, once the words are."""
    seen, until = "", time.monotonic() + 20
    while words not in seen and time.monotonic() < until:
        seen += screen.text()
    assert words in seen
    return seen


def test_it_shows_the_stage_and_the_share(screen: Screen) -> None:
    with progress_line.line(screen.descriptor, "Reading", FILE, "FnApiRunner") as line:
        assert line is not None
        progress.add(Path(FILE).stat().st_size * 0.375)
        wait_for(screen, "Reading  37% |")
        progress.add(Path(FILE).stat().st_size)
        wait_for(screen, "All is read: bounding and drawing 100% |")
        line.stage("Writing")
        wait_for(screen, "Writing 100% |")
    cleared = screen.text().split("\r")
    assert cleared[-1] == "" and cleared[-2].strip() == ""


@pytest.mark.parametrize("case", ["no terminal", "nothing read", "another runner"])
def test_there_is_none_elsewhere(screen: Screen, case: str) -> None:
    with contextlib.ExitStack() as stack:
        device = stack.enter_context(open(os.devnull, "wb"))
        descriptor = device.fileno() if case == "no terminal" else screen.descriptor
        read = "" if case == "nothing read" else FILE
        runner = "DataflowRunner" if case == "another runner" else "FnApiRunner"
        shown = stack.enter_context(progress_line.line(descriptor, "Reading", read, runner))
        assert shown is None
    assert screen.text() == ""


def test_a_short_run_has_none(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_line, "DELAY", 60.0)
    with progress_line.line(screen.descriptor, "Reading", FILE, "FnApiRunner"):
        pass
    assert screen.text() == ""


def test_a_run_shows_its_stages_in_the_line_while_all_else_is_held_back(screen: Screen) -> None:
    def slow(element: str) -> str:
        os.write(2, b"canary-611")
        progress.add(10)
        time.sleep(0.3)
        return element

    made = beam.Pipeline("FnApiRunner")
    rows = made | "Rows" >> beam.Create(["canary-611"]) | "Slow" >> beam.Map(slow)
    terminal.when_ready("Writing", rows)
    terminal.run(made, "Reading and bounding", reads=FILE)
    said = screen.text()
    assert "\rReading and bounding   0% |" in said and "canary" not in said
    assert "\n" not in said  # one line


@pytest.mark.parametrize("quiet", [False, True])
def test_quiet_names_no_stage(
    visits: str, tmp_path: Path, quiet: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["--input", visits, "--output", str(tmp_path / "out.csv"), "--person", "visitor"]
    words += ["--count", "--epsilon", "1", "--runner", "FnApiRunner"]
    assert aggregate.main([*words, *(["--quiet"] if quiet else [])]) == 0
    assert capfd.readouterr().err == ("" if quiet else "Reading and bounding\nWriting\n")
