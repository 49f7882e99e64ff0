"""Wrong calls of the main job: one line, a code that is not 0, nothing touched."""

import subprocess
import sys
from pathlib import Path

import pytest

from pipelines import aggregate

ROOT = Path(__file__).parents[2]
PUBLIC = ["--person", "visitor", "--partition", "day", "--public_partitions", "1,2,3"]


def command(*words: str) -> list[str]:
    return [*PUBLIC, "--epsilon", "1", *words]


FILES = ["--input", "visits.csv", "--output", "out.csv"]
WRONG = {
    "no arguments": [],
    "no budget": [*FILES, *PUBLIC, "--count"],
    "two budgets": [*FILES, *command("--count", "--rho", "1")],
    "no metric": [*FILES, *command()],
    "no files": command("--count"),
    "epsilon 0": [*FILES, *PUBLIC, "--count", "--epsilon", "0"],
    "epsilon nan": [*FILES, *PUBLIC, "--count", "--epsilon", "nan"],
    "epsilon in words": [*FILES, *PUBLIC, "--count", "--epsilon", "one"],
    "delta 1": [*FILES, *command("--count", "--delta", "1")],
    "a typing error": [*FILES, *command("--count", "--max_partition", "3")],
    "a stray word": [*FILES, *PUBLIC, "2,", "--epsilon", "1", "--count"],
    "a metric twice": [*FILES, *command("--count", "--count")],
    "no partitions of 0": [*FILES, *command("--count", "--max_partitions", "0")],
    "an unknown weight": [*FILES, *command("--count", "--weights", "cuont=2")],
    "a weight without number": [*FILES, *command("--count", "--weights", "count")],
    "private without delta": [
        *FILES,
        "--person",
        "visitor",
        "--partition",
        "day",
        "--epsilon",
        "1",
        "--count",
        "--max_partitions",
        "3",
    ],
    "private without bound": [
        *FILES,
        "--person",
        "visitor",
        "--partition",
        "day",
        "--epsilon",
        "1",
        "--count",
        "--delta",
        "1e-6",
    ],
    "keys of two lengths": [
        *FILES,
        *command("--count", "--partition", "hour", "--public_partitions", "1/2,3"),
    ],
    "no key file": [*FILES, *command("--count", "--public_partitions", "@none.txt")],
    "an unknown format": ["--input", "a.xml", "--output", "out.csv", *command("--count")],
    "an unknown output": ["--input", "a.csv", "--output", "out", *command("--count")],
    "a threshold for public keys": [*FILES, *command("--count", "--pre_threshold", "5")],
    "output is input": ["--input", "a.csv", "--output", "a.csv", *command("--count")],
}


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_a_wrong_call_is_one_line(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        aggregate.main(words)
    said = capfd.readouterr()
    assert stopped.value.code == 2
    assert said.out == "" and said.err.count("\n") == 1
    assert said.err.startswith("python -m pipelines.aggregate: error: ")
    assert list(tmp_path.iterdir()) == []


def test_a_process_says_one_line_and_fails() -> None:
    job = [sys.executable, "-m", "pipelines.aggregate", *FILES, *command("--cuont")]
    done = subprocess.run(job, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == (
        "python -m pipelines.aggregate: error: unrecognized option: --cuont, did you mean --count?\n"
    )
