"""CSV files: every cell as text, number columns by one strict grammar."""

import codecs
import csv
import dataclasses
import io
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.columns import plain_values
from beam_dp.transforms.io import open_files, records, table_files
from beam_dp.transforms.io.file_format import DELIMITERS, UTF_8, Dialect, Format, Wanted

SLICE = 131_072
# ASCII digits and nothing else: no spaces, `_`, `nan`, `infinity`, digits of other scripts.
NUMBER = r"^[+-]?[0-9]+([{}][0-9]+)?([eE][+-]?[0-9]+)?$"
NUMBER_LIMIT = 1_000
_NO_HEADER = "none of the wanted columns in its first line, which must be a header with {!r}"
_RULE = (
    "a CSV file in UTF-8, or in the encoding that is given (.gz: by gzip), with lines that end in "
    "LF or CR LF, and a header of at most 1 MiB whose quotes are closed"
)


@dataclasses.dataclass(frozen=True)
class Csv(Format):
    """Files of cells with a delimiter between them, with a header.

    Below, a comma stands for the delimiter, and UTF-8 for the encoding, of the `Dialect`.

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
    an optional sign, ASCII digits, optionally `.` (or the decimal comma of the dialect) and digits,
    optionally an exponent, at most 1,000 characters; it becomes the nearest float64 (infinite beyond the largest), and any other
    text in such a column becomes null. A file of 0 bytes has no rows. If a file was cut within
    a record, that record is read as far as it is there.

    Args:
        delimiter: what stands between cells, where the dialect does not say.
    """

    delimiter: str = ","
    packed = True
    typed = False

    def look(self, paths: Sequence[str], wanted: Wanted) -> dict[str, pa.DataType]:
        """Refuse files for their headers, and for bytes in their first 64 KiB that are not UTF-8.

        A file of 0 bytes is refused unless another one has a header.
        """
        dialect, mend = wanted.dialect, 'Write delimiter=";".'
        unlike = dialect.decimal != (dialect.delimiter or self.delimiter)
        checks.require(unlike, "ReadRows", "decimal", "differ from delimiter", mend)
        utf8 = wanted.dialect.is_utf8
        filled = [path for path in paths if open_files.start_of(path, wanted.pattern, _RULE, utf8)]
        for path in filled:
            next(self.rows(path, wanted), None)
        checks.require(
            bool(filled) or not paths,
            "ReadRows",
            "pattern",
            f"name a file with a header, and {wanted.pattern!r} has 0 bytes",
        )
        numbers = wanted.numbers
        return {name: pa.float64() if name in numbers else pa.string() for name in wanted.columns}

    def rows(self, part: str, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """Yield batches of at most 131,072 rows.

        Raises:
            ValueError: a wanted column is not in the header; the header is a record that would be
                dropped, or is not UTF-8; a .gz file ends early or is damaged. The message names
                only the column, the pattern, and names in the header.
        """
        delimiter = wanted.dialect.delimiter or self.delimiter
        return _guarded(_batches(part, wanted, delimiter), wanted)

    def write(self, file: BinaryIO, table: pa.Table) -> None:
        """Write a header, and lines as RFC 4180 says: CRLF, quotes where needed, in UTF-8."""
        writer = csv.writer(codecs.getwriter(UTF_8)(file), delimiter=self.delimiter)
        writer.writerow(table.column_names)
        writer.writerows(table_files.lines(table, table_files.text))


def _guarded(items: Iterator[Any], wanted: Wanted) -> Iterator[Any]:
    return open_files.guarded(items, open_files.unreadable(wanted.pattern, _RULE))


class _WithCommas(io.BufferedIOBase):
    """A file as UTF-8 with commas between its cells: in the cells, commas and delimiters change places.

    So the rules of records know one delimiter only; `_cells` gives the cells back as they were.
    """

    def __init__(self, file: Any, dialect: Dialect, places: bytes) -> None:
        self._file, self._dialect, self._places = file, dialect, places

    def read(self, size: int | None = -1) -> bytes:
        """Return about so many bytes; those that the encoding lacks are no UTF-8 in their cell."""
        read: bytes = self._file.read(size)
        if not self._dialect.is_utf8:
            text = read.decode(self._dialect.encoding, "surrogateescape")
            read = text.encode(UTF_8, "surrogateescape")
        return read.translate(self._places)


def _batches(path: str, wanted: Wanted, delimiter: str) -> Iterator[pa.RecordBatch]:
    places = bytes.maketrans(f",{delimiter}".encode(), f"{delimiter},".encode())
    with open_files.opened(path) as stream:
        if not stream.peek(1):
            return
        source = _WithCommas(stream, wanted.dialect, places)
        pieces = records.whole_records(source, wanted.dialect.quotes)
        header, first = _header(pieces, wanted, delimiter, places)
        indexes = [header.index(column) for column in wanted.columns]
        for piece in chain(first, pieces):
            rows = piece.only(piece.good & (piece.cells == len(header)))
            if rows:
                cells = _cells(rows, len(header), indexes, wanted.dialect.quotes, places)
                table = _typed(cells, wanted)
                yield from table.to_batches(max_chunksize=SLICE)


def _header(
    pieces: Iterator[records.Piece], wanted: Wanted, delimiter: str, places: bytes
) -> tuple[list[str], list[records.Piece]]:
    """Return the cells of the first record that is not blank, and the piece without that record.

    Raises:
        ValueError: names a column that does not stand once in it.
    """
    names: list[str] = []
    rest: list[records.Piece] = []
    for piece in pieces:
        blank = len(piece.text) - len(piece.text.lstrip(b"\r\n"))
        index = int(np.searchsorted(piece.ends, blank, "right"))
        if index < len(piece.ends):
            start, end = np.append(0, piece.ends)[index : index + 2].tolist()
            record, width = piece.text[start:end], int(piece.cells[index])
            if piece.good[index]:
                cells = _cells(record, width, range(width), wanted.dialect.quotes, places)
                names = [(column[0].as_py() or b"").decode() for column in cells.columns]
            _check_delimiter(record.translate(places), names, wanted, delimiter)
            if not piece.good[index]:
                raise pa.ArrowInvalid("the header would be dropped as a row")
            later = piece.good & (np.arange(len(piece.ends)) > index)
            rest = [dataclasses.replace(piece, good=later)]
            break
    # The names are shown only if a wanted one is among them: the first line of a file without a
    # header is a row, and its cells are data.
    known = not set(wanted.columns).isdisjoint(names)
    for column in wanted.columns:
        if names.count(column) != 1:
            shown = checks.listed(names) if known else _NO_HEADER.format(delimiter)
            raise open_files.absent(wanted.pattern, column, shown)
    return names, rest


def _check_delimiter(header: bytes, names: Sequence[str], wanted: Wanted, delimiter: str) -> None:
    """Refuse a header that has the wanted columns between other delimiters, and not between these.

    Raises:
        ValueError: says which delimiter to give; of the file only that its header has the columns.
    """
    for other in {*DELIMITERS} - {delimiter}:
        cells = {cell.strip('"') for cell in header.decode().strip("\r\n").split(other)}
        checks.require(
            set(wanted.columns) <= set(names) or not set(wanted.columns) <= cells,
            "ReadRows",
            "delimiter",
            f"be the one of every file of {wanted.pattern!r}; one of them has its columns between "
            f"{other!r}",
            f"Write delimiter={other!r}.",
        )


def _cells(
    rows: bytes, width: int, indexes: Sequence[int], quotes: bool, places: bytes
) -> pa.Table:
    """Return the wanted cells of one row or more, as bytes.

    Arrow gets whole records of the right width only. It decodes a row of another width before it
    calls the handler of such rows, and fails if that row is no UTF-8.
    """
    # Arrow drops a byte order mark at the start of any text: here it would belong to a cell.
    rows = b"\n" + rows if rows.startswith(records.BYTE_ORDER_MARK[:1]) else rows
    names = [str(index) for index in range(width)]
    wanted = [names[index] for index in indexes]
    table = arrow_csv.read_csv(
        pa.BufferReader(rows),
        # One block holds the whole piece, so no record can be cut by the end of a block.
        arrow_csv.ReadOptions(use_threads=False, block_size=len(rows) + 1, column_names=names),
        arrow_csv.ParseOptions(newlines_in_values=True, quote_char='"' if quotes else False),
        # Bytes, not text: the check for UTF-8 would stop the whole file at its first bad cell.
        arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, pa.binary()),
            include_columns=wanted,
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    if places[records.COMMA] == records.COMMA:
        return table
    columns = [_translated(column.combine_chunks(), places) for column in table.columns]
    return pa.Table.from_arrays(columns, table.column_names)


def _translated(column: pa.BinaryArray, places: bytes) -> pa.BinaryArray:
    valid, offsets, content = column.buffers()
    content = pa.py_buffer(bytes(content or b"").translate(places))
    return pa.Array.from_buffers(column.type, len(column), [valid, offsets, content])


def _typed(table: pa.Table, wanted: Wanted) -> pa.Table:
    texts = [_text(column.combine_chunks()) for column in table.columns]
    typed = [
        to_numbers(text, wanted.dialect.decimal) if column in wanted.numbers else text
        for column, text in zip(wanted.columns, texts, strict=True)
    ]
    return pa.Table.from_arrays(typed, names=list(wanted.columns))


def _text(column: pa.BinaryArray) -> pa.StringArray:
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array(list(map(plain_values.decoded, column.to_pylist())), pa.string())


def to_numbers(text: pa.StringArray, decimal: str = ".") -> pa.DoubleArray:
    """Return each text as the nearest float64, null unless it is a number of the grammar."""
    short = pc.less_equal(pc.binary_length(text), NUMBER_LIMIT)
    number = pc.and_(short, pc.match_substring_regex(text, NUMBER.format(decimal)))
    known = pc.if_else(number, text, None)
    return pc.replace_substring(known, decimal, ".").cast(pa.float64())
