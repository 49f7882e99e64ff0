"""Folders of files of one format with hostile rows among good ones, for whole pipelines and jobs."""

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from beam_dp.transforms.io import open_files
from tests.hostile.inserted import columns_of_arrow, layouts, lines_of_csv, lines_of_json, readers

FORMATS = ("csv", "csv.gz", "jsonl", "jsonl.gz", "parquet")
FILES, GOOD = 3, 60
"""Files in a folder, and good rows in all of them: 20 people of each of the three days."""
_TYPES: columns_of_arrow.Types = {
    name: (pa.string(), False) for name in ("person", "other", "day", "place", "flag")
} | {name: (pa.float64(), False) for name in ("value", "item", "mark", "time", "epsilon")}


def write(folder: Path, extension: str, rng: random.Random, inserted: int) -> str:
    """Write a folder; returns the glob of its files.

    Args:
        folder: an empty folder.
        extension: one of `FORMATS`.
        rng: the source of chance.
        inserted: how many hostile rows, at random places in random files.
    """
    makers = {"csv": lines_of_csv.of_a_table, "jsonl": lines_of_json.of_a_table}
    make = makers.get(extension.split(".")[0])
    for part in range(FILES):
        good = range(part, GOOD, FILES)
        bad = inserted // FILES + (part < inserted % FILES)
        numbers = [*good, *[None] * bad]
        rng.shuffle(numbers)
        path = folder / f"part-{part}.{extension}"
        if make is None:
            rows = [_cells(rng, number) for number in numbers]
            batch = columns_of_arrow.batch(rng, _TYPES, rows, nulls=False)
            pq.write_table(pa.Table.from_batches([batch]), path, row_group_size=17)
            continue
        lines = [make(rng, 99) if n is None else make(None, n) for n in numbers]
        # What is looked at when a pipeline is built must be UTF-8: blank lines, which are no rows,
        # or one blank end of a line.
        is_csv = extension.startswith("csv")
        header = ",".join(layouts.NAMES).encode() if is_csv else b"{}"
        blank = (b"\n" if is_csv else b" ") * open_files.SNIFFED
        readers.write(path, [header + blank + b"\n", *lines])
    return f"{folder}/part-*.{extension}"


def _cells(rng: random.Random, number: int | None) -> list[object]:
    if number is None:
        return columns_of_arrow.bad(rng, _TYPES)
    texts = dict(zip(layouts.NAMES, layouts.texts_of(number), strict=True))
    numbers = ("value", "item", "mark", "time", "epsilon")
    return [float(text) if name in numbers else text.encode() for name, text in texts.items()]
