"""Compare the wanted columns with the headers of local files, when the pipeline is built.

The names in a header or a schema belong to a table and not to one of its rows: a table of nobody
has the same ones, so a refusal for a name tells nothing of a person. What a file holds beside that
decides nothing here: a damaged one is left to the run. JSON Lines have no header. A file of 0 bytes
is no table of nobody in CSV, where that has its header; it is in JSON Lines.

Files on other systems are left to the run too, which reads their headers before any row: who builds
a pipeline need not have the right to read what its workers read.
"""

import contextlib
import itertools
import os
from collections.abc import Iterator, Sequence

from apache_beam.io.filesystems import FileSystems

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms import known_columns
from beam_dp.transforms.io import csv_files, open_files, parquet

MOST = 100
"""How many files are looked at; the run looks at all."""


def check(pattern: str, extension: str, columns: Sequence[str], quotes: bool) -> None:
    """Refuse a column that a local file has not, and CSV files of 0 bytes if there is no other.

    Args:
        pattern: paths and globs with commas between.
        extension: that of all files.
        columns: the wanted columns.
        quotes: whether quotes have a meaning in CSV.

    Raises:
        ValueError: names the pattern, the column, and the columns that there are.
    """
    if extension.startswith(".jsonl"):
        known_columns.warn("ReadRows", f"JSON Lines like {pattern!r} have no header", columns)
        return
    headers = list(itertools.islice(_headers(pattern, extension, quotes), MOST))
    checks.require(
        not headers or any(header is None or header for header in headers),
        "ReadRows",
        "pattern",
        f"name a file with a header, and {pattern!r} has 0 bytes",
    )
    for header in filter(None, headers):
        if extension == ".parquet":
            _refuse_absent(header, pattern, columns)
        else:
            csv_files.refuse_absent(header, pattern, columns)


def _headers(pattern: str, extension: str, quotes: bool) -> Iterator[list[str] | None]:
    """Yield the columns of each local file, None where they cannot be read."""
    for part in filter(open_files.is_local, pattern.split(",")):
        [matched] = FileSystems.match([os.path.join(".", part)])
        for path in sorted(file.path for file in matched.metadata_list):
            header = None
            if not os.path.isfile(path):  # a pipe can be read once
                continue
            with contextlib.suppress(*open_files.DAMAGE):
                csv = extension != ".parquet"
                header = csv_files.names_of(path, quotes) if csv else parquet.names_of(path)
            yield header


def _refuse_absent(names: Sequence[str], pattern: str, columns: Sequence[str]) -> None:
    for column in columns:
        if names.count(column) != 1:
            raise open_files.absent(pattern, column, checks.listed(names), names)
