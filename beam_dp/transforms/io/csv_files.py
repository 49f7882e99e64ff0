"""Read CSV files: every cell as text, number columns by one strict grammar."""

import dataclasses
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.columns import plain_values
from beam_dp.transforms.io import open_files, records

SLICE = 131_072
# ASCII digits and nothing else: no spaces, `_`, `nan`, `infinity`, digits of other scripts.
NUMBER = r"^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
NUMBER_LIMIT = 1_000
_NO_HEADER = "none of the wanted columns in its first line, which must be the header"
_DELIMITERS = (";", "\t", "|")
RULE = (
    "a CSV file in UTF-8 (.gz: by gzip) whose lines end in LF or CR LF, with a header of at most "
    "1 MiB whose quotes are closed"
)


def read_csv(
    path: str, pattern: str, columns: Sequence[str], numbers: Sequence[str], quotes: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield the wanted columns of one CSV file in batches of at most 131,072 rows.

    Columns in `numbers` are float64, all others text; nothing is inferred from the data, so the
    type of a cell depends on its column alone, and its value on its own text alone.

    **Records** are those of RFC 4180. A record ends with LF, or CRs and LF, or with the file. A
    cell that starts with a quote may hold commas and line ends; a quote in it is doubled, and
    after its closing quote comes a comma or a line end. Any other quote is an ordinary character.
    So in a file of a proper CSV writer no row, whatever its cells hold, changes what happens to
    another row. With `quotes=False`, for a writer that does not quote, no quote has a meaning: one
    line is one record.

    **Dropped, each alone:** a blank line; a record with more or fewer cells than the header; one
    longer than 1 MiB, however many lines are in its quoted cells; one with a CR outside of quotes
    that is not part of a line end.

    **Quotes that do not close.** Where text follows the closing quote, or where no quote closes
    the cell within 64 MiB or before the end of the file, the record is dropped up to the end of
    the line in which the cell opens; the next line is a record again. So *further lines of such a
    cell are read as rows*: in files that are not well written, in a file that was cut in the middle
    of a cell, and if one cell of more than 64 MiB holds line ends. Memory is a few blocks of 4 MiB,
    and up to 64 MiB more where a cell is longer than 1 MiB.

    Edge cases: an empty cell is null, quoted or not, and so is one that is not UTF-8. A number is
    an optional sign, ASCII digits, optionally `.` and digits, optionally an exponent, at most
    1,000 characters; it becomes the nearest float64 (infinite beyond the largest), and any other
    text in such a column becomes null. A file of 0 bytes has no rows. If a file was cut within
    a record, that record is read as far as it is there.

    Raises:
        ValueError: a wanted column is not in the header; the header is a record that would be
            dropped, or is not UTF-8; a .gz file ends early or is damaged. The message names only
            the column, the pattern, and names in the header.
    """
    rows = _batches(path, _form(quotes), pattern, columns, numbers)
    return open_files.guarded(rows, open_files.unreadable(pattern, RULE))


def _form(quotes: bool) -> records.Form:
    return records.Form.QUOTED_CELLS if quotes else records.Form.CELLS


def _batches(
    path: str,
    form: records.Form,
    pattern: str,
    columns: Sequence[str],
    numbers: Sequence[str],
) -> Iterator[pa.RecordBatch]:
    with open_files.opened(path) as stream:
        pieces = records.whole_records(stream, form)
        header, first = _header(pieces, form, pattern, columns)
        if not header and not stream.tell():
            return
        _refuse_absent(header, pattern, columns)
        indexes = [header.index(column) for column in columns]
        for piece in chain(first, pieces):
            rows = piece.only(piece.good & piece.have_cells(len(header)))
            if rows:
                table = _typed(_cells(rows, len(header), indexes, form), columns, numbers)
                yield from table.to_batches(max_chunksize=SLICE)


def _header(
    pieces: Iterator[records.Piece], form: records.Form, pattern: str, columns: Sequence[str]
) -> tuple[list[str], list[records.Piece]]:
    """Return the cells of the first record that is not blank, and the piece without that record."""
    for piece in pieces:
        blank = len(piece.text) - len(piece.text.lstrip(b"\r\n"))
        index = int(np.searchsorted(piece.ends, blank, "right"))
        if index < len(piece.ends):
            start, end = np.append(0, piece.ends)[index : index + 2].tolist()
            record = piece.text[start:end]
            if not piece.good[index]:
                raise _spoiled(record.rstrip(b"\r\n"), pattern, columns)
            later = piece.good & (np.arange(len(piece.ends)) > index)
            width = 1 + int(np.count_nonzero(piece.commas[start:end]))
            [row] = _cells(record, width, range(width), form).to_pylist()
            names = [(name or b"").decode() for name in row.values()]
            return names, [dataclasses.replace(piece, good=later)]
    return [], []


def look(path: str, pattern: str, columns: Sequence[str], quotes: bool) -> bool:
    """Refuse a file for its header and its first 64 KiB; return whether it has a byte.

    Raises:
        ValueError: for what `read_csv` refuses so early, and for bytes that are not UTF-8.
    """
    start = open_files.start_of(path, pattern, RULE)
    if start:
        looked = _looked_at(path, pattern, columns, _form(quotes))
        list(open_files.guarded(looked, open_files.unreadable(pattern, RULE)))
    return bool(start)


def _looked_at(
    path: str, pattern: str, columns: Sequence[str], form: records.Form
) -> Iterator[list[str]]:
    with open_files.opened(path) as stream:
        pieces = records.whole_records(stream, form, block=open_files.LOOKED)
        names, _ = _header(pieces, form, pattern, columns)
        _refuse_absent(names, pattern, columns)
        yield names


def _refuse_absent(header: Sequence[str], pattern: str, columns: Sequence[str]) -> None:
    """Refuse a header in which a wanted column does not stand once.

    The names are shown only if a wanted one is among them: the first line of a file without a
    header is a row, and its cells are data.

    Raises:
        ValueError: names the column, and what the header has.
    """
    for column in columns:
        if header.count(column) != 1:
            known = not set(columns).isdisjoint(header)
            there = checks.listed(header) if known else _delimiter(",".join(header), columns)
            raise open_files.absent(pattern, column, there or _NO_HEADER, header if known else ())


def _spoiled(line: bytes, pattern: str, columns: Sequence[str]) -> ValueError:
    """Return the error for a header that would be dropped as a row."""
    there = _delimiter(line.decode(errors="replace"), columns)
    if there:
        return open_files.absent(pattern, columns[0], there)
    return ValueError(open_files.unreadable(pattern, RULE))


def _delimiter(line: str, columns: Sequence[str]) -> str:
    """Return in words which other mark separates the cells of a first line; "" for none."""
    for mark in _DELIMITERS:
        names = [name.strip(' "') for name in line.split(mark)]
        known = not set(columns).isdisjoint(names)
        if len(names) > 1 and (known or "," not in line):
            mend = "commas must separate them, so write the file again with commas"
            named = f" (its columns: {checks.listed(names)})" if known else ""
            return f"{mark!r} between the cells of its first line: {mend}{named}"
    return ""


def _cells(rows: bytes, width: int, indexes: Sequence[int], form: records.Form) -> pa.Table:
    """Return the wanted cells of one row or more, as bytes.

    Arrow gets whole records of the right width only. It decodes a row of another width before it
    calls the handler of such rows, and fails if that row is no UTF-8.
    """
    # Arrow drops a byte order mark at the start of any text: here it would belong to a cell.
    rows = b"\n" + rows if rows.startswith(records.BYTE_ORDER_MARK[:1]) else rows
    names = [str(index) for index in range(width)]
    wanted = [names[index] for index in indexes]
    quote = '"' if form is records.Form.QUOTED_CELLS else False
    return arrow_csv.read_csv(
        pa.BufferReader(rows),
        # One block holds the whole piece, so no record can be cut by the end of a block.
        arrow_csv.ReadOptions(use_threads=False, block_size=len(rows) + 1, column_names=names),
        arrow_csv.ParseOptions(newlines_in_values=True, quote_char=quote),
        # Bytes, not text: the check for UTF-8 would stop the whole file at its first bad cell.
        arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, pa.binary()),
            include_columns=wanted,
            null_values=[""],
            strings_can_be_null=True,
        ),
    )


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
