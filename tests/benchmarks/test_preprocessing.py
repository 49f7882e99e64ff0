"""The table of preprocessing's speed: what is timed, what is a miss, and a job from end to end."""

import csv
import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import data, ours, preprocessing
from benchmarks.data import Shape
from benchmarks.measure import Contestant, Run


@pytest.mark.parametrize("kind", preprocessing.DATA)
@pytest.mark.parametrize("statistic", ["mean", "median", "variance", "trimmed_mean"])
def test_one_delta_cuts_and_one_does_not(statistic: str, kind: str) -> None:
    values = preprocessing.DATA[kind](np.random.default_rng(3), 400)
    plain = {"mean": np.mean, "median": np.median, "variance": np.var}.get(statistic, np.mean)(
        values
    )
    deltas = preprocessing.deltas(statistic, values)
    assert list(deltas) == ["small", "large"]
    power = 2 if statistic == "variance" else 1
    found = {}
    for name, delta in deltas.items():
        steps = preprocessing.integers(statistic, values, delta)()[0]
        resolution = next(2**k for k in range(99) if delta * 2**k / 1e-6**power >= 1 << 20)
        found[name] = float(steps / resolution * 1e-6**power)
    if statistic == "mean":
        assert found["large"] == pytest.approx(plain, abs=1e-5)
        assert abs(found["small"] - plain) > 1e-9 * np.ptp(values)
    if statistic == "variance":
        assert deltas["small"] * len(values) == pytest.approx(plain)
        assert found["small"] < 0.99 * plain


def test_the_slowest_of_all_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    times = itertools.cycle([0.01, 0.02, 0.01, 0.05, 0.01, 0.01])
    monkeypatch.setattr(preprocessing, "seconds", lambda work, rounds: next(times))
    question = preprocessing.Question("median", 50, 0.04)
    assert preprocessing.slowest(question, 1) == (0.05, "lognormal, large Delta")


def test_a_missed_goal_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--scale", "0.002", "--rounds", "1", "--only", "me"]
    easy = [dataclasses.replace(each, goal=each.goal and 60.0) for each in preprocessing.QUESTIONS]
    monkeypatch.setattr(preprocessing, "QUESTIONS", easy)  # that a busy machine meets too
    assert preprocessing.main(options) == 0
    monkeypatch.setattr(preprocessing, "QUESTIONS", (preprocessing.Question("mean", 10**5, 1e-9),))
    assert preprocessing.main(options) == 1
    lines = capsys.readouterr().out.splitlines()
    verdicts = [line.split("|")[-2].strip() for line in lines if line[2:5] != "---"]
    assert verdicts[:-2].count("yes") == 4
    assert verdicts[-2:] == ["met", "NO"]


@pytest.mark.parametrize(("slow", "code"), [(2.9, 0), (3.1, 1)])
def test_jobs_are_held_against_the_main_job(
    slow: float, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(data, "FOLDER", tmp_path)

    def run(found: list[Contestant], rounds: int) -> None:
        for place, contestant in enumerate(found):
            assert contestant.rows == 2000 and "--public" in contestant.command
            contestant.runs = [Run(slow if place else 1.0, 1.0, 1, {})]

    monkeypatch.setattr(preprocessing, "interleave", run)
    monkeypatch.chdir(tmp_path)
    link = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", str(link))
    assert preprocessing.main(["--only", "jobs", "--scale", "0.0002"]) == code


def test_the_job_releases_every_partition(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = data.write(Shape(3000, partitions=4, one_row_each=True), tmp_path / "rows.parquet")
    for statistic in ours.STATISTICS:
        output = tmp_path / f"{statistic}.csv"
        words = ["--input", str(rows), "--output", str(output), "--public", "5"]
        ours.main([*words, "--preprocessed", statistic])
        said = json.loads(capsys.readouterr().out)
        assert said["seconds"] > 0 and said["partitions"] == 5
        with output.open(newline="") as file:
            found = np.array([line for line in csv.reader(file)][1:], float)
        assert sorted(found[:, 0]) == list(range(5)) and np.isfinite(found[:, 1]).all()
