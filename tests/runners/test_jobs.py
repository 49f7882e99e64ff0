"""The jobs, by their command lines, on every runner: formats, partitions, owners and statistics.

At epsilon 10,000 all noise is 0 but for a chance below e^-100, so that what is released is known.
"""

import csv
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from pipelines import aggregate
from tests.row_files import write

DAYS, PEOPLE = (1, 2, 3), 240
VISITS = [
    {"visitor": f"v{n}", "friend": f"w{n}", "day": day, "minutes": n % 60, "clicked": n % 4 // 3}
    for n in range(PEOPLE)
    for day in DAYS[: 1 + n % 3]
]
LONER = {"visitor": "loner", "friend": "", "day": 99, "minutes": 1, "clicked": 0}
PUBLIC = ["--public_partitions", "1,2,3,4"]
BUDGET = ["--epsilon", "10000"]


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file, their cells as text."""
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
    elif path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    return [{name: str(cell) for name, cell in row.items()} for row in rows]


def options_of(options: PipelineOptions) -> list[str]:
    """Return the options of a runner as words of a command line."""
    given = options.get_all_options(drop_default=True)
    return [f"--{name}" if value is True else f"--{name}={value}" for name, value in given.items()]


def run(
    main: Callable[[Sequence[str]], int],
    words: Sequence[str],
    options: PipelineOptions,
    source: Path,
    out: Path,
) -> dict[str, dict[str, str]]:
    """Run a job; return its rows by their first cell."""
    files = ["--input", str(source), "--output", str(out)]
    assert main([*files, *words, *BUDGET, *options_of(options)]) == 0
    return {next(iter(row.values())): row for row in read(out)}


def truth(day: int) -> list[int]:
    """Return the minutes of a day, of one row per person."""
    return [int(row["minutes"]) for row in VISITS if row["day"] == day]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("before", "after", "public"),
    [
        ("csv", "jsonl", True),
        ("parquet", "csv", False),
        ("jsonl.gz", "parquet", True),
        ("csv.gz", "csv", False),
        ("jsonl", "csv", True),
    ],
)
def test_files_of_every_format_with_all_that_is_chosen_privately(
    before: str, after: str, public: bool, job_options: PipelineOptions, tmp_path: Path
) -> None:
    """The bound on partitions, the clips, and which private partitions are kept."""
    source, out = tmp_path / f"in.{before}", tmp_path / f"out.{after}"
    write(source, [*VISITS, LONER])
    asked = ["--people_count", "--count", "--sum", "minutes", "--mean", "minutes"]
    asked += ["--max", "minutes", "--median", "minutes", "--distinct_count", "clicked"]
    people = ["--person", "visitor", "--partition", "day"]
    # A person alone is named with probability at most delta.
    kept = PUBLIC if public else ["--delta", "1e-12"]
    found = run(aggregate.main, [*people, *asked, *kept], job_options, source, out)
    assert list(found) == ["1", "2", "3", "4"][: 4 if public else 3]
    for day in DAYS:
        row, minutes = found[str(day)], truth(day)
        assert int(row["people_count"]) == int(row["count"]) == len(minutes)
        assert float(row["sum_minutes"]) == pytest.approx(sum(minutes), rel=0.02)
        assert float(row["mean_minutes"]) == pytest.approx(sum(minutes) / len(minutes), rel=0.02)
        assert float(row["max_minutes"]) == pytest.approx(max(minutes), abs=2)
        assert float(row["median_minutes"]) == pytest.approx(29.5, abs=3)
        assert int(row["distinct_clicked"]) == 2


def test_rows_with_two_owners(job_options: PipelineOptions, tmp_path: Path) -> None:
    """Each row disappears with either; one person shares no row with another here."""
    source, out = tmp_path / "in.parquet", tmp_path / "out.csv"
    write(source, VISITS)
    words = ["--person", "visitor,friend", "--partition", "day", "--count", "--sum", "minutes"]
    found = run(aggregate.main, [*words, *PUBLIC], job_options, source, out)
    for day in DAYS:
        assert float(found[str(day)]["count"]) == pytest.approx(len(truth(day)), abs=2)
        assert float(found[str(day)]["sum_minutes"]) == pytest.approx(sum(truth(day)), rel=0.02)


def test_shares_preprocessing_and_a_search(job_options: PipelineOptions, tmp_path: Path) -> None:
    source, options = tmp_path / "in.csv", job_options
    write(source, VISITS)
    person = ["--person", "visitor"]
    first = [row for row in VISITS if row["day"] == 1]
    words = [*person, "--partition", "day", *PUBLIC, "--ratio", "clicked,per=person"]
    rates = run(
        aggregate.main, [*words, "--bounds", "partitions=3"], options, source, tmp_path / "a.csv"
    )
    share = sum(int(row["clicked"]) for row in first) / len(first)
    assert float(rates["1"]["ratio_clicked_per_person"]) == pytest.approx(share, abs=0.01)
    words = [*person, "--preprocessed", "minutes,of=mean,person_value=max"]
    [row] = run(aggregate.main, words, options, source, tmp_path / "b.csv").values()
    assert float(row["preprocessed_mean_minutes"]) == pytest.approx(29.5, abs=0.5)
    words = [*person, "--partition", "day", *PUBLIC, "--bounds", "partitions=3"]
    words += ["--max", "minutes,search=above_threshold,candidates=0..100..1"]
    found = run(aggregate.main, words, options, source, tmp_path / "c.csv")
    assert {"1", "2", "3", "4"} == set(found)


def test_one_person_with_very_many_keys(job_options: PipelineOptions, tmp_path: Path) -> None:
    """Those lines as one element would be more than Flink's sorter takes (5,505,024 bytes)."""
    source, out = tmp_path / "in.parquet", tmp_path / "out.csv"
    keys = 10_000 if job_options.get_all_options()["runner"] == "FnApiRunner" else 250_000
    write(source, [*VISITS, *({**LONER, "day": 1000 + n} for n in range(keys))])
    words = ["--person", "visitor", "--partition", "day", "--people_count", "--delta", "1e-12"]
    found = run(aggregate.main, words, job_options, source, out)
    people = {day: int(row["people_count"]) for day, row in found.items()}
    assert people == {str(day): len(truth(day)) for day in DAYS}


@pytest.mark.parametrize("kept", [PUBLIC, ["--delta", "1e-12"]])
def test_tables_that_agree(kept: list[str], job_options: PipelineOptions, tmp_path: Path) -> None:
    """Counts and sums of all rows are those of the days, and of what is not listed, exactly."""
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    write(source, [*VISITS, LONER])
    words = ["--person", "visitor", "--partition", "day", "--also_by", "total", *kept]
    run(aggregate.main, [*words, "--count", "--sum", "minutes"], job_options, source, out)
    days, [total] = read(out), read(tmp_path / "out_total.csv")
    assert len(days) == 4  # day 4, or (other)
    for name in ("count", "sum_minutes"):
        assert sum(Decimal(day[name]) for day in days) == Decimal(total[name])
    assert int(total["count"]) == pytest.approx(len(VISITS), abs=2)
