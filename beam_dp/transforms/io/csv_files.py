"""Read CSV: every cell as text, value columns by one strict grammar of numbers."""

import csv
import io
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from beam_dp.transforms.columns import plain_values
from beam_dp.transforms.io import open_files, records

SLICE = 131_072
# ASCII digits, nothing around them: no spaces, `_`, `nan`, `infinity`, other scripts' digits.
NUMBER = r"^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
NUMBER_LIMIT = 1_000


def read_csv(
    path: str, pattern: str, columns: Sequence[str], numbers: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the wanted columns of one CSV file in batches of at most 131,072 rows.

    Every column is text, those in `numbers` float64; nothing is inferred from the data, so
    the type of a cell depends on its column alone and its content on itself alone.

    Edge cases: an empty cell is null, quoted or not, and so is one that is not UTF-8. A row
    with more or fewer cells than the header is dropped; so is a record longer than 1 MiB. A
    number is an optional sign, ASCII digits, optionally `.` and digits, optionally an
    exponent, at most 1,000 characters; it becomes the nearest float64 (infinite beyond the
    largest), and any other text in such a column becomes null. A file of zero bytes has no rows.

    Raises:
        ValueError: a wanted column is not in the header, or the file is damaged (gzip); the
            message names column and pattern only.
    """
    message = open_files.unreadable(pattern, "a CSV file in UTF-8 (.gz: by gzip)")
    return open_files.guarded(_batches(path, pattern, columns, numbers), message)


def _batches(
    path: str, pattern: str, columns: Sequence[str], numbers: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    with open_files.opened(path) as stream:
        pieces = (piece.lstrip(b"\r\n") for piece in records.whole_records(stream, quoted=True))
        first = next(filter(None, pieces), b"")
        if not first and not stream.tell():
            return
        end = int(records.record_ends(first, quoted=True)[0]) if first else 0
        header = _cells(first[:end])
        places = _places(header, pattern, columns)
        for piece in _filled(first[end:], pieces):
            table = _table(piece, len(header), places)
            yield from _typed(table, columns, numbers).to_batches(max_chunksize=SLICE)


def _filled(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from filter(None, pieces)


def _cells(record: bytes) -> list[str]:
    text = record.decode("utf-8", errors="replace")
    return next(csv.reader(io.StringIO(text, newline="")), [])


def _places(header: Sequence[str], pattern: str, columns: Sequence[str]) -> list[int]:
    for column in columns:
        if header.count(column) != 1:
            raise ValueError(open_files.missing(pattern, column))
    return [header.index(column) for column in columns]


def _table(piece: bytes, width: int, places: Sequence[int]) -> pa.Table:
    names = [str(place) for place in range(width)]
    wanted = [names[place] for place in places]
    return arrow_csv.read_csv(
        pa.BufferReader(piece),
        # One block holds the whole piece, so no record can straddle two.
        arrow_csv.ReadOptions(use_threads=False, block_size=len(piece) + 1, column_names=names),
        arrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=_skip),
        # Bytes, not text: the check for UTF-8 would stop the whole file at its first bad cell.
        arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, pa.binary()),
            include_columns=wanted,
            null_values=[""],
            strings_can_be_null=True,
        ),
    )


def _skip(row: arrow_csv.InvalidRow) -> str:
    return "skip"


def _typed(table: pa.Table, columns: Sequence[str], numbers: Sequence[str]) -> pa.Table:
    texts = [_text(column.combine_chunks()) for column in table.columns]
    typed = [
        to_numbers(text) if column in numbers else text
        for column, text in zip(columns, texts, strict=True)
    ]
    return pa.Table.from_arrays(typed, names=list(columns))


def _text(column: pa.BinaryArray) -> pa.StringArray:
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array(list(map(plain_values.decoded, column.to_pylist())), pa.string())


def to_numbers(text: pa.StringArray) -> pa.DoubleArray:
    """Return each text as the nearest float64, null unless it is a number of the grammar."""
    short = pc.less_equal(pc.binary_length(text), NUMBER_LIMIT)
    number = pc.and_(short, pc.match_substring_regex(text, NUMBER))
    return pc.if_else(number, text, None).cast(pa.float64())
