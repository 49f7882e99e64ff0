"""A hundred thousand hostile rows, alone and in pairs: none fails a job or changes another row.

Each check inserts one row, or two at random places or side by side, among good rows, and reads all
of it. The good rows must come out exactly, each inserted row becomes at most one row (that which it
says itself, where that is known), and nothing is said on standard error, as a warning, as a log line
or as an "Exception ignored". Which promise holds for which CSV files is said in `lines_of_csv`.

Most checks call what `ReadRows` and the transforms call, without a pipeline; `test_inserted_jobs` does
the same by whole pipelines and jobs. Seeds are fixed: every run inserts the same rows. All of it is
run by `make audit`, a part of it by `make test`.
"""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.inserted import files, layouts, memory, watch
from tests.hostile.inserted.tally import Tally

Insert = Callable[[random.Random, Tally, Path], None]
PLAN: dict[str, tuple[Insert, int]] = {
    "CSV, proper": (files.proper_csv, 30_000),
    "CSV, raw": (files.raw_csv, 20_000),
    "CSV, without quotes": (files.csv_without_quotes, 10_000),
    "JSON Lines": (files.json_lines, 15_000),
}
for name in layouts.layouts():
    PLAN |= {
        f"CSV, {name}": (files.options_on("csv", name), 1_000),
        f"JSON Lines, {name}": (files.options_on("jsonl", name), 1_000),
        f"objects, {name}": (memory.python_objects(name), 4_000),
        f"batches, {name}": (memory.record_batches(name), 2_000),
        f"Parquet, {name}": (memory.parquet_files(name), 1_000),
    }
PART = 40


def insert(name: str, count: int, folder: Path) -> Tally:
    """Insert at least so many rows of one sort."""
    rng = random.Random(f"{name} {count}")
    with watch.watching() as heard:
        found = Tally(heard)
        while found.inserted < count:
            PLAN[name][0](rng, found, folder)
    return found


@pytest.mark.parametrize("name", PLAN)
def test_a_part_of_the_inserted_rows(name: str, tmp_path: Path) -> None:
    assert insert(name, PLAN[name][1] // PART, tmp_path).report() == ""


@pytest.mark.audit
@pytest.mark.parametrize("name", PLAN)
def test_no_inserted_row_fails_a_job_or_changes_another(name: str, tmp_path: Path) -> None:
    found = insert(name, PLAN[name][1], tmp_path)
    assert found.report() == ""
    assert found.inserted >= PLAN[name][1]


def test_they_are_a_hundred_thousand() -> None:
    assert sum(count for _, count in PLAN.values()) >= 100_000
