"""Read files as `ReadRows` does, but in this process and without a pipeline, with smaller limits."""

import contextlib
import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from beam_dp.transforms.io import records
from beam_dp.transforms.io.file_format import CsvFormat, Wanted
from beam_dp.transforms.io.formats import FORMATS

TRUE_RECORD, WHOLE = records.RECORD_LIMIT, records.BLOCK


@contextlib.contextmanager
def limits(record: int, lookahead: int, block: int) -> Iterator[None]:
    """Make records, what is looked at behind a quote, and blocks this short meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "RECORD_LIMIT", record)
        patch.setattr(records, "LOOKAHEAD_LIMIT", lookahead)
        patch.setattr(records, "BLOCK", block)
        yield


def csv_batches(
    path: Path, columns: Sequence[str], numbers: Sequence[str] = (), quotes: bool = True
) -> Iterator[pa.RecordBatch]:
    """Return the rows of a CSV file in batches."""
    return FORMATS[".csv"].rows(str(path), Wanted("rows", columns, numbers, CsvFormat(quotes)))


def csv_rows(
    path: Path, columns: Sequence[str], numbers: Sequence[str] = (), quotes: bool = True
) -> list[Any]:
    """Return the rows of a CSV file."""
    batches = csv_batches(path, columns, numbers, quotes)
    return [row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True)]


def json_objects(path: Path, columns: Sequence[str]) -> list[dict[str, object]]:
    """Return the rows of a JSON Lines file as dicts."""
    return list(FORMATS[".jsonl"].rows(str(path), Wanted("rows", columns)))


def parquet_batches(path: str, columns: Sequence[str]) -> list[pa.RecordBatch]:
    """Return the rows of a Parquet file in batches."""
    kind, wanted = FORMATS[".parquet"], Wanted("rows", columns)
    return [batch for part in kind.parts([path], wanted) for batch in kind.rows(part, wanted)]


def json_rows(path: Path, columns: Sequence[str]) -> list[Any]:
    """Return the rows of a JSON Lines file."""
    return [tuple(row.values()) for row in json_objects(path, columns)]


def write(path: Path, parts: Sequence[bytes]) -> Path:
    """Write a file, by gzip if its name says so."""
    content = b"".join(parts)
    path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)
    return path
