"""What is measured of a process, and the table that is made of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import measure
from benchmarks.measure import MEBIBYTE, Contestant, Run

ROOT = Path(__file__).parents[2]


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def test_a_process_of_its_own_is_measured() -> None:
    program = "import os, json, time; time.sleep(.2); print('hello'); print(json.dumps({'id': os.getpid()}))"
    runs = [measure.run(python(program)) for _ in range(2)]
    assert len({run.result["id"] for run in runs} | {os.getpid()}) == 3
    assert all(run.wall >= 0.2 and 0 < run.processor and run.peak > MEBIBYTE for run in runs)


def test_the_peak_is_that_of_the_process_alone() -> None:
    """Measured from a small process, as benchmarks are: the kernel books a big parent to a child."""
    program = (
        "import sys; from benchmarks import measure, speed\n"
        "peaks = [measure.run([sys.executable, '-c', one]).peak for one in sys.argv[1:]]\n"
        "heavy = {'numpy', 'pyarrow', 'apache_beam'} & set(sys.modules)\n"
        "print(*peaks, *heavy)"
    )
    command = [*python(program), "b'1' * (300 << 20)", "pass"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    large, small = map(int, done.stdout.split())  # and nothing heavy is imported
    assert large - small > 250 * MEBIBYTE


def test_a_failure_says_what_the_process_said() -> None:
    with pytest.raises(RuntimeError, match="failed, with code 1:\n(.|\n)*no such luck"):
        measure.run(python("raise SystemExit('no such luck')"))


@pytest.mark.parametrize(
    ("output", "found"),
    [("", {}), ("words\n", {}), ('words\n{"a": 1}\n', {"a": 1}), ('{"a": 1}\nwords\n', {})],
)
def test_the_result_is_the_object_of_the_last_line(output: str, found: dict[str, int]) -> None:
    assert measure.last_object(output) == found


def test_rounds_are_interleaved(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def run(command: list[str], first_to_go: bool) -> Run:
        order.extend(command)
        return Run(1.0, 1.0, 1, {})

    monkeypatch.setattr(measure, "run", run)
    contestants = [Contestant("a", ["a"], 1), Contestant("b", ["b"], 1, once=True)]
    measure.interleave([*contestants, Contestant("c", ["c"], 1)], 3)
    assert order == list("abcacac")
    assert [len(one.runs) for one in contestants] == [3, 1]


def timed(name: str, rows: int, *walls: float, told: bool = True) -> Contestant:
    """Return a process that ran so often; of each run, half is after the imports."""
    runs = [
        Run(wall, 2 * wall, 64 << 20, {"n": 7, **({measure.INNER: wall / 2} if told else {})})
        for wall in walls
    ]
    return Contestant(name, [], rows, runs=runs)


def test_a_table_has_medians_and_ratios_within_rounds() -> None:
    one, two = timed("one", 1000, 1.0, 2.0, 10.0), timed("two", 3000, 2.0, 8.0, 10.0)
    lines = measure.table("Title", [one, two], one).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert lines[0] == "### Title" and {len(line) for line in cells} == {len(measure.HEAD)}
    assert cells[2] == (
        ["one", "1,000", "2.00", "1.00", "1.00", "4.00", "64", "500", "1.00", "1.00", "1.00", "n 7"]
    )
    # Ratios 2, 4 and 1 within the rounds: the median is 2, at three times the rows.
    assert cells[3] == (
        ["two", "3,000", "8.00", "2.00", "4.00", "16.00", "64", "375", "2.00", "2.00", "1.50", "n 7"]
    )  # fmt: skip


def test_who_tells_no_seconds_after_the_imports_has_no_ratio_of_them() -> None:
    told, silent = timed("told", 1, 1.0), timed("silent", 1, 1.0, told=False)
    assert silent.inner_ratio(told) is None and told.inner_ratio(silent) is None
    assert timed("often", 1, 1.0, 2.0).inner_ratio(told) is None
    assert measure.line(silent, told).split(" | ")[4] == ""


def test_what_was_run_once_is_compared_by_medians() -> None:
    assert timed("once", 1, 3.0).ratio(timed("often", 1, 1.0, 2.0, 9.0)) == 1.5


def test_one_that_may_fail_has_its_failure_as_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    commands = {"killed": kill, "failing": "raise SystemExit(3)", "well": "pass"}
    contestants = [
        Contestant(name, python(code), 10, may_fail=True) for name, code in commands.items()
    ]
    measure.interleave(contestants, 2)
    assert [len(one.runs) for one in contestants] == [0, 0, 2]
    said = measure.table("Some", contestants, contestants[-1]).splitlines()[4:]
    assert [line.strip("| ").split(" | ")[-1] for line in said[:2]] == [
        "failed, killed by SIGKILL", "failed, with code 3"
    ]  # fmt: skip
    assert all(line.count("|") == said[2].count("|") for line in said[:2])
    contestants[0].may_fail, contestants[0].failure = False, ""
    with pytest.raises(RuntimeError, match="failed, killed by SIGKILL"):
        measure.interleave(contestants[:1], 1)


def test_what_may_fail_is_killed_first_where_memory_is_short() -> None:
    read = "open('/proc/self/oom_score_adj').read()"
    program = f"import json, time; time.sleep(0.3); print(json.dumps({{'at': int({read})}}))"
    assert measure.run(python(program), first_to_go=True).result == {"at": 1000}
