"""One bad row of a file, through the whole job: it succeeds, says nothing, loses that row only."""

import csv
import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines import aggregate
from tests.pipelines.conftest import DAYS

ROOT = Path(__file__).parents[2]
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

BAD = {
    "a wrong width that is not UTF-8": b"Jos\xe9,1\n",
    "wider, not UTF-8": b"Jos\xe9,1,2,3\n",
    "an unclosed quote": b'q,1,"oops\n',
    "an unclosed quote and one that is closed": b'q,1,"oops\nx,2,"fine\n',
    "an overlong cell of lines": b'"' + b"forged,1,2\n" * 120_000 + b'",1,2\n',
    "lone CRs": b"\r".join(b"forged-%d,1,2" % number for number in range(100)) + b"\n",
}


def rows(people: range) -> bytes:
    return b"".join(b"visitor-%d,%d,1.5\n" % (person, day) for person in people for day in DAYS)


def file_with(bad: bytes) -> bytes:
    return HEADER + rows(range(PEOPLE // 2)) + bad + rows(range(PEOPLE // 2, PEOPLE))


def counts(path: Path) -> list[float]:
    with path.open(newline="") as file:
        return [float(row["people_count"]) for row in csv.DictReader(file)]


def near(found: list[float]) -> bool:
    return len(found) == 3 and all(abs(count - PEOPLE) <= 5 for count in found)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("extension", ["csv", "csv.gz"])
@pytest.mark.parametrize("case", BAD)
def test_a_bad_row_costs_itself_only(
    tmp_path: Path, case: str, extension: str, capfd: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / f"in.{extension}", tmp_path / "out.csv"
    content = file_with(BAD[case])
    source.write_bytes(gzip.compress(content, 1) if extension == "csv.gz" else content)
    given = ["--input", str(source), "--output", str(out), *ASKED, *RUN]
    assert aggregate.main(given) == 0
    assert near(counts(out))
    assert capfd.readouterr().err == SAID


@pytest.mark.audit
def test_a_process_says_nothing_about_a_bad_row(tmp_path: Path) -> None:
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_bytes(file_with(b"".join(BAD.values())))
    job = [sys.executable, "-m", "pipelines.aggregate"]
    given = ["--input", str(source), "--output", str(out), *ASKED]
    done = subprocess.run([*job, *given], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stderr.decode()) == (0, SAID)
    assert near(counts(out))


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
