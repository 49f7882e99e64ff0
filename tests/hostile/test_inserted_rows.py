"""Fifty thousand hostile rows, alone and together: none fails a job or changes another row.

Each check inserts one row, two, or many at random places, some side by side, among good rows, and
reads all of it. The good rows must come out exactly, each inserted row becomes at most one row (that which it
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

from tests.hostile.inserted import files, layouts, memory, readers, watch
from tests.hostile.inserted.tally import Tally

Insert = Callable[[random.Random, Tally, Path], None]
PLAN: dict[str, tuple[Insert, int]] = {
    "CSV, proper": (files.proper_csv, 1_500),
    "CSV, raw": (files.raw_csv, 1_000),
    "JSON Lines": (files.json_lines, 45_000),
}
for name in layouts.layouts():
    PLAN |= {
        f"objects, {name}": (memory.python_objects(name), 600),
        f"batches, {name}": (memory.record_batches(name), 150),
    }
PART = 40


def insert(name: str, count: int, folder: Path) -> Tally:
    """Insert at least so many rows of one sort."""
    rng = random.Random(name)
    with watch.watching() as heard:
        found = Tally(heard)
        while found.inserted < count:
            PLAN[name][0](rng, found, folder)
    return found


@pytest.mark.parametrize("name", list(PLAN)[::3])
def test_a_part_of_the_inserted_rows(name: str, tmp_path: Path) -> None:
    """The first of them, without the others."""
    assert insert(name, PLAN[name][1] // PART, tmp_path).report() == ""


@pytest.mark.audit
@pytest.mark.parametrize("name", PLAN)
def test_no_inserted_row_fails_a_job_or_changes_another(name: str, tmp_path: Path) -> None:
    found = insert(name, PLAN[name][1], tmp_path)
    assert found.report() == ""
    assert found.inserted >= PLAN[name][1]


MIB = 1 << 20
LINES = b"forged,row,1\n"
AT_THE_LIMITS = {
    "a closed cell of lines above the limit of a record": b'a,"' + LINES * (MIB // 10) + b'",1\n',
    "a closed cell of lines above a block": b'a,"' + LINES * (MIB // 2) + b'",1\n',
    "a closed cell of quotes": b'a,"' + b'""' * MIB + b'",1\n',
    "a closed cell of quoted lines": b'"' + b'""forged"",""row"",1\n' * (MIB // 10) + b'",a,1\n',
    "a cell without quotes": b"a," + b"x" * (2 * MIB) + b",1\n",
    "a line of cells": b"," * (2 * MIB) + b"\n",
    "a line of carriage returns": b"\r" * (2 * MIB) + b"\n",
    "a quote that is not closed": b'a,1,"oops\n',
    "a quote that is not closed, in a long line": b'a,1,"' + b"x" * (2 * MIB) + b"\n",
    "text behind a closing quote": b'a,"b"c,1\n',
    "a lone carriage return": b"a\rb,c,1\n",
    "bytes that are not UTF-8, of a wrong width": b"Jos\xe9,1\n",
}


def read_among(folder: Path, row: bytes) -> bool:
    """Return whether 70,000 good rows come through, around one hostile row."""
    good = [b"%d,%s,1\n" % (number, b"x" * 50) for number in range(70_000)]
    path = folder / "r.csv"
    readers.write(path, [b"who,what,much\n", *good[:100], row, *good[100:]])
    batches = readers.csv_batches(path, ["who"], [])
    who = [name for batch in batches for name in batch["who"].to_pylist()]
    return who == [str(number) for number in range(len(good))]


@pytest.mark.audit
@pytest.mark.parametrize("name", AT_THE_LIMITS)
def test_rows_at_the_true_limits(name: str, tmp_path: Path) -> None:
    with watch.watching() as heard:
        assert read_among(tmp_path, AT_THE_LIMITS[name])
        assert heard.heard() == ""


@pytest.mark.audit
@pytest.mark.parametrize("line", [b'{"who":"' + b"x" * 2 * MIB, b"[" * 2 * MIB, b"\xff" * 9 * MIB])
def test_lines_of_json_at_the_true_limits(line: bytes, tmp_path: Path) -> None:
    good = [b'{"who":%d}\n' % number for number in range(1000)]
    for end in (b"\n", b'"}\n'):
        path = readers.write(tmp_path / "r.jsonl.gz", [*good[:100], line + end, *good[100:]])
        with watch.watching() as heard:
            rows = readers.json_rows(path, ["who"])
            assert heard.heard() == ""
        assert rows == [(number,) for number in range(1000)]


def test_they_are_fifty_thousand() -> None:
    assert sum(count for _, count in PLAN.values()) >= 50_000
