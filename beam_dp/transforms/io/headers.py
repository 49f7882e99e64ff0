"""Look at local files when the pipeline is built, so that nothing is paid for what cannot be read.

The names in a header and the types in a schema belong to a table and not to one of its rows: a
table of nobody has the same ones, so a refusal for them tells nothing of a person. Text must be
UTF-8 in its header and its first 64 KiB, and JSON Lines, which have no header, must have an object
on one of the lines there. *These two look at rows*: who starts the run learns whether it starts,
and nobody else learns anything. What comes later in a file decides about its own row only. A file
of 0 bytes is no table of nobody in CSV, where that has its header; it is in JSON Lines.

Files on other systems are left to the run, which reads their headers and schemas before any row:
who builds a pipeline need not have the right to read what its workers read.
"""

import itertools
import os
from collections.abc import Iterator, Sequence

import pyarrow as pa
from apache_beam.io.filesystems import FileSystems

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms import known_columns
from beam_dp.transforms.io import csv_files, json_lines, open_files, parquet

MOST = 100
"""How many files are looked at; the run looks at all."""


def check(
    pattern: str, extension: str, columns: Sequence[str], quotes: bool
) -> dict[str, pa.DataType]:
    """Refuse local files that the run could not read; return the types of columns, if they have.

    Args:
        pattern: paths and globs with commas between.
        extension: that of all files.
        columns: the wanted columns.
        quotes: whether quotes have a meaning in CSV.

    Raises:
        ValueError: names the pattern, the column, and the columns that there are.
    """
    paths = list(itertools.islice(_local(pattern), MOST))
    if extension == ".parquet":
        return parquet.types_of(paths, pattern, columns)
    if extension.startswith(".jsonl"):
        known_columns.warn("ReadRows", f"JSON Lines like {pattern!r} have no header", columns)
        json_lines.look(paths, pattern)
        return {}
    filled = [csv_files.look(path, pattern, columns, quotes) for path in paths]
    checks.require(
        not filled or any(filled),
        "ReadRows",
        "pattern",
        f"name a file with a header, and {pattern!r} has 0 bytes",
    )
    return {}


def _local(pattern: str) -> Iterator[str]:
    """Yield the paths of local files."""
    for part in filter(open_files.is_local, pattern.split(",")):
        [matched] = FileSystems.match([os.path.join(".", part)])
        paths = sorted(file.path for file in matched.metadata_list)
        yield from filter(os.path.isfile, paths)  # a pipe can be read once
