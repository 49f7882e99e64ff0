"""Insert rows into files and read them, thousands of times, by the readers' own functions."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.hostile.inserted import lines_of_csv, lines_of_json, readers, tally
from tests.hostile.inserted.tally import Tally

# So short that a few hundred bytes cross all of them.
RECORD, LOOKAHEAD = 64, 512
BLOCKS = (37, 200, readers.WHOLE, readers.WHOLE)
JSON_RECORDS = (96, 96, readers.TRUE_RECORD)


def _inserted(rng: random.Random) -> range:
    """Return how many rows come into one file: one, two, or many where none can change another."""
    return range(rng.choice((1, 2, 16)))


def _size(rng: random.Random) -> int:
    """Return how many good rows: few, or more than `LOOKAHEAD` bytes of them."""
    return 60 if rng.random() < 0.1 else rng.randint(1, 6)


def proper_csv(rng: random.Random, found: Tally, folder: Path) -> None:
    """Insert rows of any width and content, as a CSV writer writes them, into any base."""
    end = rng.choice((b"\n", b"\r\n"))
    base = rng.choices(lines_of_csv.pool(rng.random() < 0.7, end, inert=False), k=_size(rng))
    _csv(rng, found, folder, base, [lines_of_csv.proper(rng, LOOKAHEAD) for _ in _inserted(rng)])


def raw_csv(rng: random.Random, found: Tally, folder: Path) -> None:
    """Insert lines that no CSV writer writes into a base that closes nothing.

    The second of two lines closes nothing either: see `lines_of_csv`.
    """
    end = rng.choice((b"\n", b"\r\n"))
    base = rng.choices(lines_of_csv.pool(rng.random() < 0.7, end), k=_size(rng))
    rows = [lines_of_csv.raw(rng, LOOKAHEAD) for _ in range(1 + found.checks % 2)]
    while len(rows) > 1 and lines_of_csv.closes(rows[-1]):
        rows[-1] = lines_of_csv.raw(rng, LOOKAHEAD)
    _csv(rng, found, folder, base, rows)


def _csv(
    rng: random.Random,
    found: Tally,
    folder: Path,
    base: Sequence[bytes],
    rows: Sequence[bytes],
) -> None:
    end = [base[0].rstrip(b"\r\n")] * (rng.random() < 0.2)
    base, together = [*base, *end], [*tally.placed(rng, base, rows), *end]
    path = folder / rng.choice(("r.csv", "r.csv", "r.csv", "r.csv.gz"))
    header, columns = b",".join(lines_of_csv.HEADER), ("who", "what", "much")

    def lines(rows: Sequence[bytes]) -> list[Any]:
        readers.write(path, [header, b"\n", *rows])
        return readers.csv_rows(path, columns, columns[2:])

    with readers.limits(RECORD, LOOKAHEAD, rng.choice(BLOCKS)):
        found.check_union(lines, base, rows, together, together)


def json_lines(rng: random.Random, found: Tally, folder: Path) -> None:
    """Insert any line into a file of JSON Lines, behind a line that is blank.

    A byte order mark is none of a line's, if the line is the first of the file.
    """
    limit = rng.choice(JSON_RECORDS)
    base = rng.choices(lines_of_json.pool(rng.choice((b"\n", b"\r\n"))), k=_size(rng))
    rows = [lines_of_json.hostile(rng, limit) for _ in _inserted(rng)]
    lines = tally.placed(rng, base, rows)
    path = readers.write(folder / rng.choice(("r.jsonl", "r.jsonl", "r.jsonl.gz")), [b"\n", *lines])
    with readers.limits(limit, LOOKAHEAD, rng.choice(BLOCKS)):
        found.check(
            rows,
            lambda: lines_of_json.rows_of(lines, limit),
            lambda: readers.json_rows(path, lines_of_json.NAMES),
            lines,
        )
