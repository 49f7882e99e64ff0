"""One bad row of a file, through the whole job: it succeeds, says nothing, loses that row only."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines import aggregate, shifted_inverse
from tests.pipelines.conftest import DAYS

PEOPLE = 4000
HEADER = b"visitor,day,spent\n"
# Discrete Laplace of rate 20 / 3 in each of three counts: P(some |X| > 5) < 3 * 2 e^-33 < 1e-13.
WORDS = ["--person", "visitor", "--partition", "day", "--public_partitions", "1,2,3"]
ASKED = [*WORDS, "--people_count", "--epsilon", "20", "--bounds", "partitions=3"]
RUN = ["--runner", "FnApiRunner"]
SAID = (
    "Warning: epsilon 20.0 is above 10: it hardly protects anybody; common values of epsilon are 0.1 "
    "to 3\nReading and bounding\nWriting\n"
)


def rows(people: range) -> bytes:
    return b"".join(b"visitor-%d,%d,1.5\n" % (person, day) for person in people for day in DAYS)


def counts(path: Path) -> list[float]:
    with path.open(newline="") as file:
        return [float(row["people_count"]) for row in csv.DictReader(file)]


def near(found: list[float]) -> bool:
    return len(found) == 3 and all(abs(count - PEOPLE) <= 5 for count in found)


def test_without_quotes_every_line_is_a_row(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], config: Callable[..., list[str]]
) -> None:
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    # With quotes these are one record: everything between is in one cell.
    source.write_bytes(HEADER + b'q,1,"oops\n' + rows(range(PEOPLE)) + b'r,2,fine",\n')
    given = ["--input", str(source), "--output", str(out), *ASKED, *RUN]
    assert aggregate.main([*given, *config(quotes=False)]) == 0
    assert near(counts(out))
    assert capfd.readouterr().err == SAID


def test_the_other_job_takes_the_quotes_too(
    tmp_path: Path, config: Callable[..., list[str]]
) -> None:
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_bytes(HEADER + b'q,1,"oops\n' + rows(range(400)) + b'r,2,fine",\n')
    given = ["--input", str(source), "--output", str(out), *WORDS, "--epsilon", "20", *RUN]
    # 1.5 is the largest candidate, and at 1 or below are 400 people too few: at epsilon 20 / 3 for
    # each partition noise of such a size has a probability below e^-100.
    asked = ["--max", "spent", "--candidates", "0:1.5:0.5", "--bounds", "partitions=3"]
    assert shifted_inverse.main([*given, *asked, *config(quotes=False)]) == 0
    with out.open(newline="") as file:
        assert [row["max_spent"] for row in csv.DictReader(file)] == ["1.5"] * 3
