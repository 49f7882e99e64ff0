"""The table of a job's start: what it runs, its ratio within rounds, and its goal."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import measure, start
from benchmarks.measure import Contestant, Run

ROOT = Path(__file__).parents[2]


def timed(*seconds: float) -> Contestant:
    return Contestant("one", [], 0, runs=[Run(9.0, second, 1 << 20, {}) for second in seconds])


def test_the_ratio_is_the_median_within_rounds() -> None:
    assert start.ratio(timed(1.0, 2.0, 10.0), timed(2.0, 2.0, 11.0)) == pytest.approx(1.1)


@pytest.mark.parametrize(("seconds", "met", "code"), [(1.2, "yes", 0), (1.21, "NO", 1)])
def test_a_missed_goal_fails(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    seconds: float,
    met: str,
    code: int,
) -> None:
    spent = {"import apache_beam": 1.0, "--plan": seconds}

    def run(command: list[str], first_to_go: bool) -> Run:
        return Run(1.5, next(spent[word] for word in command if word in spent), 7 << 20, {})

    monkeypatch.setattr(measure, "run", run)
    assert start.main(["--rounds", "2"]) == code
    lines = capsys.readouterr().out.splitlines()
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("| python")]
    assert cells[0][1:] == ["1.50", f"{seconds:.2f}", "7", f"{seconds:.2f}", "1.2", met]


def test_what_is_run_is_a_plan() -> None:
    command = [sys.executable, "-m", "pipelines.aggregate", *start.PLAN.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("metric ") and done.stderr == ""
