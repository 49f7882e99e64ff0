"""CSV files: every cell as text, number columns by one strict grammar."""

import contextlib
import csv
import dataclasses
import io
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.columns import plain_values, written_forms
from beam_dp.transforms.io import open_files, records, table_files
from beam_dp.transforms.io.file_format import (
    DELIMITERS,
    THOUSANDS,
    UTF_8,
    CsvFormat,
    Format,
    Sniffed,
    Wanted,
)
from beam_dp.transforms.sql import query_engine, sql_trees

SLICE = 131_072
NUMBER_LIMIT = 1_000
# A cell may be of no number; with a digit, it is one in another form. Spreadsheets write #DIV/0!.
_DIGIT = r"^[^#]*\p{Nd}"
_OTHER_CELLS = "more or fewer cells than the header"
_SPOILED = "a quote that does not close, a CR that ends no line, or more than 1 MiB"
_NO_HEADER = "none of the wanted columns in its first line, which must be a header (capitals count)"
_RULE = (
    "a CSV file in UTF-8, or in the encoding that is given (.gz: by gzip), with lines that end in "
    "LF or CR LF, and a header of at most 1 MiB whose quotes are closed"
)


@dataclasses.dataclass(frozen=True)
class Csv(Format):
    """Files of cells with a delimiter between them, with a header.

    Below, a comma stands for the delimiter, and UTF-8 for the encoding of the `CsvFormat`. The
    delimiter is the one of `, ; |` and tab between which the header has most wanted columns. A
    header belongs to the table and to none of its rows, so what is taken from it tells of nobody.

    Columns in `numbers` are float64, all others text; nothing is inferred from the data, so the
    type of a cell depends on its column alone, and its value on its own text alone.

    **Records** are those of RFC 4180. A record ends with LF, or CRs and LF, or with the file. A
    cell that starts with a quote may hold commas and line ends; a quote in it is doubled, and
    after its closing quote comes a comma or a line end. Any other quote is an ordinary character.
    So in a file of a proper CSV writer no row, whatever its cells hold, changes what happens to
    another row. With `CsvFormat(quotes=False)`, for a writer that does not quote, no quote has a
    meaning: one line is one record.

    **Dropped, each alone:** a blank line; a record with more or fewer cells than the header; one
    longer than 1 MiB, however many lines are in its quoted cells; one with a CR outside of quotes
    that is not part of a line end.

    **Quotes that do not close.** Where text follows the closing quote, or where no quote closes
    the cell within 64 MiB or before the end of the file, the record is dropped up to the end of
    the line in which the cell opens; the next line is a record again. So *further lines of such a
    cell are read as rows*: in files that are not well written, in a file that was cut in the middle
    of a cell, and if one cell of more than 64 MiB holds line ends. Memory is a few blocks of 4 MiB,
    and up to 64 MiB more where a cell is longer than 1 MiB.

    Edge cases: an empty cell is null, quoted or not, and so is one that is not UTF-8 or has a NUL
    byte. A number is an optional sign, ASCII digits, optionally `.` (or the `decimal` of the
    `CsvFormat`) and digits, optionally an exponent, at most 1,000 characters; with its `thousands`
    between its digits, if between any, then three behind each (two behind the first ones, as in India). It
    becomes the nearest float64 (infinite beyond the largest), and any other text in such a column
    becomes null. A file of 0 bytes has no rows. If a file was cut within
    a record, that record is read as far as it is there.

    Args:
        delimiter: what stands between cells, where a header has the columns between several.
    """

    delimiter: str = ","
    packed = True
    typed = False

    def sniff(self, paths: Sequence[str], wanted: Wanted) -> Sniffed:
        """Refuse files for their headers, and for what their first 1 MiB shows to be misread.

        That is bytes that are not UTF-8, a number in another form than the `CsvFormat` says, times
        or numbers of which a query reads none, a row that would be dropped for its cells or quotes,
        and more than one line in a hundred without any delimiter: a few may be remarks. A file of 0
        bytes is refused unless another one has a header.
        """
        utf8 = wanted.csv.is_utf8
        filled = [path for path in paths if open_files.start_of(path, wanted.pattern, _RULE, utf8)]
        forms = [self._forms(path, wanted) for path in filled]
        checks.require(
            bool(filled) or not paths,
            "ReadRows",
            "pattern",
            f"name a file with a header, and {wanted.pattern!r} has 0 bytes",
        )
        numbers = wanted.numbers
        types = {name: pa.float64() if name in numbers else pa.string() for name in wanted.columns}
        found = {name: frozenset[str]().union(*(each[name] for each in forms)) for name in types}
        return Sniffed([types], found)

    def _forms(self, path: str, wanted: Wanted) -> dict[str, frozenset[str]]:
        """Refuse a file that would be misread; return how its cells are written, by column."""
        header, piece = _first(self._pieces(path, wanted))
        good = _check_rows(path, piece, len(header.names), wanted)
        texts = _texts(piece.only(good), header, wanted)
        for column in wanted.numbers:
            _check_numbers(path, column, texts[column], wanted)
        for column in (name for name in texts if name not in wanted.numbers):
            _check_casts(path, column, texts[column], wanted)
        return {column: written_forms.of_texts(texts[column]) for column in wanted.columns}

    def rows(self, part: str, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """Yield batches of at most 131,072 rows.

        Raises:
            ValueError: a wanted column is not in the header; the header is a record that would be
                dropped, or is not UTF-8; a .gz file ends early or is damaged. The message names
                only the column, the pattern, and names in the header.
        """
        batches = _batches(part, wanted, self.delimiter)
        return open_files.rows_of(batches, part, wanted.pattern, _RULE)

    def dropped(self, part: str, wanted: Wanted) -> dict[str, int]:
        """Return how many records are dropped, by the reason."""
        other, spoiled = 0, 0
        for header, piece in self._pieces(part, wanted):
            width = len(header.names)
            other += int((_filled(piece) & piece.good & (piece.cells != width)).sum())
            spoiled += int((_filled(piece) & ~piece.good).sum())
        return {_OTHER_CELLS: other, _SPOILED: spoiled}

    def taken(self, path: str, wanted: Wanted) -> str:
        """Return what is taken of how a file is written, in words; "" where that is as usual."""
        start = open_files.start_of(path, wanted.pattern, _RULE, wanted.csv.is_utf8)
        delimiter = _delimiter(start, wanted, self.delimiter)
        usual = delimiter == self.delimiter
        return "" if usual else f"{path}: {delimiter!r} between cells, as its header has it"

    def _pieces(self, path: str, wanted: Wanted) -> "Iterator[tuple[_Header, records.Piece]]":
        pieces = _pieces(path, wanted, self.delimiter)
        return open_files.rows_of(pieces, path, wanted.pattern, _RULE)

    def write(self, file: BinaryIO, table: pa.Table) -> None:
        """Write a header, and lines as RFC 4180 says: CRLF, quotes where needed, in UTF-8."""
        text = io.TextIOWrapper(file, UTF_8, newline="")
        try:
            writer = csv.writer(text, delimiter=self.delimiter)
            writer.writerow(table.column_names)
            writer.writerows(table_files.lines(table, table_files.text))
        finally:
            text.detach()  # the file is the caller's to close


class _Header(NamedTuple):
    """The names of columns, and how commas and delimiters change places."""

    names: list[str]
    places: bytes


class _WithCommas(io.BufferedIOBase):
    """A file as UTF-8 with commas between its cells: in the cells, commas and delimiters change places.

    So the rules of records know one delimiter only; `_cells` gives the cells back as they were, but
    for NUL bytes, which are no UTF-8 from here on: Arrow reads past a comma or a quote behind one.
    """

    def __init__(self, start: bytes, file: Any, written: CsvFormat, places: bytes) -> None:
        self._start, self._file, self._written, self._places = start, file, written, places

    def read(self, size: int | None = -1) -> bytes:
        """Return about so many bytes; those that the encoding lacks are no UTF-8 in their cell."""
        size = sys.maxsize if size is None or size < 0 else size
        start, self._start = self._start[:size], self._start[size:]
        read: bytes = start + self._file.read(size - len(start))
        if not self._written.is_utf8:
            text = read.decode(self._written.encoding, "surrogateescape")
            read = text.encode(UTF_8, "surrogateescape")
        return read.translate(self._places)


def _batches(path: str, wanted: Wanted, delimiter: str) -> Iterator[pa.RecordBatch]:
    for header, piece in _pieces(path, wanted, delimiter):
        rows = piece.only(piece.good & (piece.cells == len(header.names)))
        if rows:
            texts = _texts(rows, header, wanted)
            typed = [
                to_numbers(texts[column], wanted.csv) if column in wanted.numbers else texts[column]
                for column in wanted.columns
            ]
            table = pa.Table.from_arrays(typed, names=list(wanted.columns))
            yield from table.to_batches(max_chunksize=SLICE)


def _delimiter(start: bytes, wanted: Wanted, usual: str) -> str:
    """Return between what the header at the start of a file has most of the wanted columns."""
    text = start.decode(wanted.csv.encoding, "replace").lstrip("\ufeff")

    def there(delimiter: str) -> int:
        lines = csv.reader(
            io.StringIO(text, ""),
            delimiter=delimiter,
            quoting=csv.QUOTE_MINIMAL if wanted.csv.quotes else csv.QUOTE_NONE,
        )
        with contextlib.suppress(csv.Error):
            return len({*wanted.columns}.intersection(next(filter(None, lines), [])))
        return 0

    return max((usual, *DELIMITERS), key=there)


def _pieces(path: str, wanted: Wanted, delimiter: str) -> Iterator[tuple[_Header, records.Piece]]:
    """Yield the header with each piece of the rows below it; of 0 bytes nothing."""
    with open_files.opened(path) as stream:
        if not (start := stream.read(open_files.SNIFFED)):
            return
        found = _delimiter(start, wanted, delimiter)
        places = bytes.maketrans(f",{found}\0".encode(), f"{found},".encode() + b"\xff")
        source = _WithCommas(start, stream, wanted.csv, places)
        pieces = records.whole_records(source, wanted.csv.quotes)
        names, first = _header(path, pieces, wanted, places)
        for piece in chain(first, pieces):
            yield _Header(names, places), piece


def _header(
    path: str, pieces: Iterator[records.Piece], wanted: Wanted, places: bytes
) -> tuple[list[str], list[records.Piece]]:
    """Return the cells of the first record that is not blank, and the piece behind that record.

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
            if not piece.good[index]:
                raise pa.ArrowInvalid("the header would be dropped as a row")
            cells = _cells(record, width, range(width), wanted.csv.quotes, places)
            names = [(column[0].as_py() or b"").decode() for column in cells.columns]
            later = slice(index + 1, None)
            ends = piece.ends[later] - end
            rest = [records.Piece(piece.text[end:], ends, piece.good[later], piece.cells[later])]
            break
    # The names are shown only if a wanted one is among them: the first line of a file without a
    # header is a row, and its cells are data.
    known = any(name in names for name in wanted.columns)
    for column in wanted.columns:
        if names.count(column) != 1:
            shown = checks.listed(names) if known else _NO_HEADER
            near = [name for name in names if known or name.strip().lower() == column.lower()]
            raise open_files.absent(path, wanted.pattern, column, shown, near)
    return names, rest


def _first(
    pieces: Iterator[tuple[_Header, records.Piece]],
) -> tuple[_Header, records.Piece]:
    """Return the header, and the rows that end within the first 1 MiB, as one piece."""
    found: list[records.Piece] = []
    size = 0
    for header, piece in pieces:
        length = int(piece.ends[-1]) if len(piece.ends) else 0
        found.append(records.Piece(piece.text[:length], piece.ends + size, piece.good, piece.cells))
        size += length
        if size >= open_files.SNIFFED:
            break
    ends = np.concatenate([piece.ends for piece in found])
    few = int(np.searchsorted(ends, open_files.SNIFFED, "right"))
    good = np.concatenate([piece.good for piece in found])[:few]
    cells = np.concatenate([piece.cells for piece in found])[:few]
    text = b"".join(piece.text for piece in found)
    return header, records.Piece(text, ends[:few], good, cells)


def _check_rows(path: str, piece: records.Piece, width: int, wanted: Wanted) -> records.Flags:
    """Return which rows of the first 1 MiB are good; refuse a file with others, but for remarks.

    Raises:
        ValueError: says what is wrong with them, and how many cells the header has.
    """
    content = np.frombuffer(piece.text, np.uint8)
    filled = _filled(piece)
    good: records.Flags = filled & piece.good & (piece.cells == width)
    bad = filled & ~good
    remarks = bad & piece.good & (piece.cells == 1)
    if int(remarks.sum()) * open_files.FEW <= int(filled.sum()):
        bad &= ~remarks
    behind = content[piece.ends[bad] - 2]
    behind = np.where(behind == records.CARRIAGE_RETURN, content[piece.ends[bad] - 3], behind)
    longer = (piece.cells[bad] == width + 1) & (behind == records.COMMA)
    hint = "End the header with a delimiter too."
    if not longer.all():
        hint = (
            "A cell with a delimiter, a quote or a line end in it must stand in quotes, which are "
            "doubled in it; where no cell is quoted, quotes: false stands in a file of --config."
        )
    which = open_files.named(path, wanted.pattern)
    checks.require(
        not bad.any(),
        "ReadRows",
        f"every row of {wanted.pattern!r}",
        f"have as many cells as the header, {width}, and quotes as in RFC 4180; {which} has others "
        f"in {open_files.START}",
        hint,
    )
    return good


def _filled(piece: records.Piece) -> records.Flags:
    """Return which records are no blank lines."""
    first = np.frombuffer(piece.text, np.uint8)[np.append(0, piece.ends)[:-1]]
    filled: records.Flags = (first != records.LINE_FEED) & (first != records.CARRIAGE_RETURN)
    return filled


def _check_numbers(path: str, column: str, texts: pa.StringArray, wanted: Wanted) -> None:
    """Refuse a column that has numbers in another form than the `CsvFormat` says.

    Raises:
        ValueError: says how to read all of them, if they have one form; and for true and false.
    """
    given, name = wanted.csv, f"column {column!r} of {wanted.pattern!r}"
    held = pc.utf8_lower(texts.filter(pc.not_equal(texts, "")))
    truths = pc.is_in(held, pa.array(written_forms.TRUTHS))
    is_number = not len(held) or not pc.all(truths).as_py()
    checks.require(is_number, "ReadRows", name, written_forms.NO_NUMBERS)
    hint = format_hint(texts, given)
    if hint is None:
        return
    cell = column.replace('"', '""')
    raise checks.ParameterError(
        "ReadRows",
        name,
        f"hold numbers like -1{given.thousands or ''}234{given.decimal}5, or cells without digits; "
        f"{open_files.named(path, wanted.pattern)} has others in {open_files.START}",
        f"Write {hint}."
        if hint
        else f'A query makes empty what is no number, TRY_CAST ("{cell}" AS DOUBLE), takes signs '
        f"away, CAST (replace (\"{cell}\", '$', '') AS DOUBLE), and reads dates, "
        f'CAST ("{cell}" AS DATE).',
    )


def _check_casts(path: str, column: str, texts: pa.StringArray, wanted: Wanted) -> None:
    """Refuse cells of which a query makes times or numbers, and that it reads in none of its ways.

    Args:
        path: the file.
        column: a column of text.
        texts: its cells.
        wanted: what is read.
    """
    asked = [cast for cast in wanted.casts if cast.column == column]
    held = texts.filter(pc.match_substring_regex(texts, _DIGIT))
    named = open_files.named(path, wanted.pattern)
    if len(held) and any(cast.is_plain for cast in asked):
        rule = f"read {column!r} as its cells are, and reads none of {named} in {open_files.START}"
        cell = sql_trees.quoted(column)
        hint = f"Write CAST (replace ({cell}, '$', '') AS DOUBLE), in the form of its cells"
        if any(cast.is_time for cast in asked):
            hint = f"Write try_strptime ({cell}, '%d.%m.%Y %H:%M'), in the form of its cells"
        reads = query_engine.reads(column, held, [cast.sql for cast in asked])
        checks.require(reads, "Rows", "query", rule, hint)


def format_hint(texts: pa.StringArray, given: CsvFormat) -> str | None:
    """Return which options read all cells with a digit as numbers: "" for none, None: as given."""
    held = texts.filter(pc.match_substring_regex(texts, _DIGIT))
    if not to_numbers(held, given).null_count:
        return None
    signs = ((decimal, mark) for decimal in ".," for mark in (None, *THOUSANDS) if mark != decimal)
    others = (dataclasses.replace(given, decimal=d, thousands=mark) for d, mark in signs)
    ways = [
        [
            f'{name}="{getattr(other, name)}"'
            for name in ("decimal", "thousands")
            if getattr(other, name) not in (None, getattr(given, name))
        ]
        for other in others
        if not to_numbers(held, other).null_count
    ]
    fewest = min(map(len, ways), default=0)
    return " or ".join(f"csv=dp.CsvFormat({', '.join(way)})" for way in ways if len(way) == fewest)


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
    columns = [_translated(column.combine_chunks(), places) for column in table.columns]
    return pa.Table.from_arrays(columns, table.column_names)


def _translated(column: pa.BinaryArray, places: bytes) -> pa.BinaryArray:
    valid, offsets, content = column.buffers()
    content = pa.py_buffer(bytes(content or b"").translate(places))
    return pa.Array.from_buffers(column.type, len(column), [valid, offsets, content])


def _texts(rows: bytes, header: _Header, wanted: Wanted) -> dict[str, pa.StringArray]:
    """Return the wanted cells of some rows as text, by column."""
    if not rows:
        return {column: pa.array([], pa.string()) for column in wanted.columns}
    names, places = header
    indexes = [names.index(column) for column in wanted.columns]
    cells = _cells(rows, len(names), indexes, wanted.csv.quotes, places)
    texts = (_text(column.combine_chunks()) for column in cells.columns)
    return dict(zip(wanted.columns, texts, strict=True))


def _text(column: pa.BinaryArray) -> pa.StringArray:
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array(list(map(plain_values.decoded, column.to_pylist())), pa.string())


def to_numbers(text: pa.StringArray, written: CsvFormat) -> pa.DoubleArray:
    """Return each text as the nearest float64, null unless it is a number of the grammar.

    ASCII digits and nothing else: no spaces, `_`, `nan`, `infinity`, digits of other scripts.
    """
    whole, mark = "[0-9]+", written.thousands and THOUSANDS[written.thousands]
    if mark:
        whole = f"({whole}|[0-9]{{1,3}}({mark}[0-9]{{2,3}})*{mark}[0-9]{{3}})"
    grammar = rf"^[+-]?{whole}([{written.decimal}][0-9]+)?([eE][+-]?[0-9]+)?$"
    short = pc.less_equal(pc.binary_length(text), NUMBER_LIMIT)
    number = pc.and_(short, pc.match_substring_regex(text, grammar))
    known = pc.if_else(number, text, None)
    known = pc.replace_substring_regex(known, mark, "") if mark else known
    return pc.replace_substring(known, written.decimal, ".").cast(pa.float64())
