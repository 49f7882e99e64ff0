"""CSV records: the grammar, one bad record alone, and the work and memory that a file can cost."""

import gzip
import io
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beam_dp.transforms.io import records
from tests.hostile.inserted import readers
from tests.sizes import tries as sized

HEADER = b"who,what\n"
Rows = list[tuple[str | None, ...]]


def read(path: Path, columns: tuple[str, ...] = ("who", "what"), quoted: bool = True) -> Rows:
    return readers.csv_rows(path, columns, quotes=quoted)


def rows_of(tmp_path: Path, content: bytes, quoted: bool = True) -> Rows:
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    return read(path, quoted=quoted)


# --- One character at a time: the reader that the vectorised one must equal


def slow_quoted(text: bytes, opening: int, lookahead: int) -> tuple[bytes, int] | None:
    """The content of a quoted cell and where its comma or line end is; None if it never ends."""
    cell, place = b"", opening + 1
    while place < len(text):
        if text[place : place + 2] == b'""':
            cell, place = cell + b'"', place + 2
        elif text[place : place + 1] == b'"':
            after = place + 1
            while text[after : after + 1] == b"\r":
                after += 1
            ended = text[after : after + 1] == b"\n" or text[place + 1 : place + 2] == b","
            return (cell, after) if ended and after - opening <= lookahead else None
        else:
            cell, place = cell + text[place : place + 1], place + 1
    return None


def slow_record(
    text: bytes, start: int, quoted: bool, lookahead: int
) -> tuple[list[bytes] | None, int]:
    """The cells of the record at `start`, None if it is spoiled, and where the next one starts."""
    cells, place, spoiled = [], start, False
    while True:
        if quoted and text[place : place + 1] == b'"':
            found = slow_quoted(text, place, lookahead)
            if found is None:
                return None, text.index(b"\n", place) + 1
            cell, place = found
        else:
            first = place
            while text[place : place + 1] not in (b",", b"\n"):
                place += 1
            cell = text[first:place]
            if text[place : place + 1] == b"\n":
                cell = cell.rstrip(b"\r")
            spoiled |= b"\r" in cell
        cells.append(cell)
        place += 1
        if text[place - 1 : place] == b"\n":
            return (None if spoiled else cells), place


def slow_records(
    text: bytes, quoted: bool, limit: int, lookahead: int
) -> Iterator[tuple[bytes, list[bytes] | None]]:
    """Every record that is not blank, and its cells, or None if it is to be dropped."""
    text, place = text + b"\n", 0
    while place < len(text):
        cells, end = slow_record(text, place, quoted, lookahead)
        record = text[place:end]
        if record.strip(b"\r\n"):
            yield record, None if len(record) > limit else cells
        place = end


def decoded(cell: bytes) -> str | None:
    try:
        return cell.decode() or None
    except UnicodeDecodeError:
        return None


def slow_rows(text: bytes, names: bytes, quoted: bool, limit: int, lookahead: int) -> Rows | None:
    """All rows of a file; None if it is refused."""
    found = [cells for _, cells in slow_records(text, quoted, limit, lookahead)]
    if not text:
        return []
    if not found or found[0] is None or any(found[0].count(n) != 1 for n in names.split(b",")):
        return None
    places = [found[0].index(name) for name in names.split(b",")]
    rows = [cells for cells in found[1:] if cells and len(cells) == len(found[0])]
    return [tuple(decoded(cells[place]) for place in places) for cells in rows]


def rows_or_refused(path: Path, names: bytes, quoted: bool) -> Rows | None:
    try:
        return read(path, tuple(names.decode().split(",")), quoted)
    except ValueError:
        return None


WORDS = (b"a", b",", b",", b'"', b'"', b'""', b"\n", b"\n", b"\r", b"\xc3\xa9", b"\xe9")
MARK = records.BYTE_ORDER_MARK


def tricky(random_: random.Random) -> bytes:
    words = (*WORDS, MARK) if random_.random() < 0.2 else WORDS
    return b"".join(random_.choices(words, k=random_.randrange(40)))


@pytest.mark.sampled(5)
@sized(100, 300)
@pytest.mark.parametrize("quoted", [True, False])
@pytest.mark.parametrize("names", [b"a", b"a,b", b"a,b,c"])
@pytest.mark.parametrize("small", [False, True])
def test_every_text_is_read_as_one_character_at_a_time(
    tmp_path: Path, small: bool, names: bytes, quoted: bool, tries: int
) -> None:
    random_ = random.Random(f"{names!r}, {quoted}, {small}")
    path = tmp_path / "rows.csv"
    for _ in range(tries):
        # Small limits: no longer than what the texts hold.
        limit = random_.randrange(len(names) + 1, 25) if small else 1 << 20
        lookahead = random_.randrange(1, 30) if small else 64 << 20
        header = b"" if random_.random() < 0.1 else names + b"\n"
        text = header + tricky(random_)
        if not header:  # a first line that is not UTF-8 refuses the file
            text = text.replace(b"\xe9", b"")
        path.write_bytes(text)
        expected = slow_rows(text.removeprefix(MARK), names, quoted, limit, lookahead)
        with readers.limits(limit, lookahead, random_.randrange(1, 21)):
            assert rows_or_refused(path, names, quoted) == expected, (text, limit, lookahead)


# --- One bad record, alone

BAD = {
    "too short, not UTF-8": b"Jos\xe9\n",
    "too long, not UTF-8": b"Jos\xe9,1,2\n",
    "a byte order mark cut short": b"\xef\n",
    "never closed": b'q,"oops\n',
    "never closed, at the start": b'"oops,1\n',
    "a quote alone": b'"\n',
    "text behind the closing quote": b'q,"oo"ps\n',
    "a space behind the closing quote": b'q,"oops" \n',
    "a lone CR": b"x\rz,9\n",
    "a lone CR behind a quoted cell": b'"x"\rz,9\n',
    "a lone CR before a comma": b"x\r,9\n",
    "only CRs and text": b"\r\rx,9\n",
    "CR, comma and quotes": b'x\r,"y"\n',
    "too long": b"x" * (2 << 20) + b",1\n",
    "too long, in many cells": b"x," * (1 << 20) + b"\n",
    "too long, quoted": b'"' + b"x" * (2 << 20) + b'",1\n',
    "too long, of lines": b'"' + b"z,9\n" * (3 << 18) + b'",1\n',
    "too long, of lines with pairs": b'q,"' + b'z,9\n""z"",9\n' * (1 << 18) + b'"\r\n',
    "too long, in two cells": (b'"' + b"z,9\n" * (3 << 17) + b'",') * 2 + b"\n",
    "too long, then never closed": b"x" * (2 << 20) + b',"1\n',
    "a quoted cell of six blocks": b'"' + b"z,9\n" * (6 << 20) + b'",1\n',
    "one comma, modulo 2^8": b"," * (2**8 + 1) + b"\n",
    "one comma, modulo 2^16": b"," * (2**16 + 1) + b"\n",
}
GOOD = b'a,1\n"b, ""c""\n",2\n5" pipe,3\n'
GOOD_ROWS: Rows = [("a", "1"), ('b, "c"\n', "2"), ('5" pipe', "3")]


@pytest.mark.sampled(11)
@pytest.mark.parametrize("case", BAD)
def test_a_bad_record_is_dropped_alone(
    tmp_path: Path, case: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert rows_of(tmp_path, HEADER + GOOD + BAD[case] + GOOD * 2) == GOOD_ROWS * 3
    assert rows_of(tmp_path, HEADER + BAD[case] + GOOD) == GOOD_ROWS
    assert rows_of(tmp_path, HEADER + GOOD + BAD[case].rstrip(b"\r\n")) == GOOD_ROWS
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""


def test_a_cell_beyond_the_look_gives_its_further_lines_as_rows(tmp_path: Path) -> None:
    inside = b'"q\n' + b"z,9\n" * 40 + b'",1\n'
    beyond = b'"q\n' + b"z,9\n" * 60 + b'",1\n'
    with readers.limits(50, 200, 16):
        assert rows_of(tmp_path, HEADER + inside + b"a,1\n") == [("a", "1")]
        assert rows_of(tmp_path, HEADER + beyond + b"a,1\n") == [("z", "9")] * 60 + [("a", "1")]


def test_a_cell_starts_with_what_looks_like_a_byte_order_mark(tmp_path: Path) -> None:
    row = "\ufeffa,1\n".encode()
    for block in (1, 7, len(row), 1000):
        with readers.limits(1 << 20, 64 << 20, block):
            assert rows_of(tmp_path, MARK + HEADER + row * 50) == [("\ufeffa", "1")] * 50


@pytest.mark.parametrize("odd", [b'evil,"\0"\n', b"evil\0,1\n", b'"\0",1\nevil,",1\nf,g,",1\n'])
def test_a_nul_byte_takes_no_other_row(tmp_path: Path, odd: bytes) -> None:
    """Arrow reads past a comma or a quote behind one, in long texts only."""
    lines = [b"person-%08d,shop-number-%d\n" % (i // 2, i % 3) for i in range(60_000)]
    whole = rows_of(tmp_path, HEADER + b"".join(lines))
    bad = rows_of(tmp_path, HEADER + b"".join([*lines[:50_000], odd, *lines[50_000:]]))
    added = bad[50_000 : 50_000 + len(bad) - len(whole)]
    assert len(whole) == 60_000 and bad[:50_000] + bad[50_000 + len(added) :] == whole
    assert 1 <= len(added) <= 2 and {cell for row in added for cell in row} & {None}


# --- Without quotes


def test_without_quotes_one_line_is_one_record(tmp_path: Path) -> None:
    content = HEADER + b'q,"oops\n"a,1\n"b",""\nx\rz,9\nJos\xe9,1,2\nc,"2"\r\n"d,e",3\n'
    rows = [("q", '"oops'), ('"a', "1"), ('"b"', '""'), ("c", '"2"')]
    assert rows_of(tmp_path, content, quoted=False) == rows


# --- Headers

REFUSED = {
    "never closed": b'"who,what\na,1\n',
    "text behind the closing quote": b'"who"x,what\na,1\n',
    "a lone CR": b"who,what\ra,1\rb,2\r\n",
    "lone CRs before it": b"\r\rwho,what\na,1\n",
    "too long": b"who,what," + b"x" * (2 << 20) + b"\na,1\n",
    "too long, of lines": b'who,what,"' + b"who,what\n" * (1 << 18) + b'"\na,1\n',
    "never closed, too long": b'who,"' + b"x" * (2 << 20) + b"\nwho,what\na,1\n",
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("blank", [b"", b"\n\r\n"])
def test_no_row_becomes_the_header(tmp_path: Path, case: str, blank: bytes) -> None:
    rule = "^ReadRows: every file of 'rows' must be a CSV file .* LF or CR LF, .* cannot be read.$"
    for end in (b"", HEADER + b"a,1\n"):
        with pytest.raises(ValueError, match=rule):
            rows_of(tmp_path, blank + REFUSED[case] + end)


def test_a_header_may_be_quoted_and_long(tmp_path: Path) -> None:
    long = b"x" * (1 << 19)
    header = b'"who","' + long + b'","wh""at",caf\xc3\xa9\r\r\n'
    path = tmp_path / "rows.csv"
    path.write_bytes(header + b"a,1,2,3\n")
    assert read(path, ("who", 'wh"at', "caf\u00e9")) == [("a", "2", "3")]


# --- Files that end early


def test_a_file_cut_in_a_record_keeps_what_is_there(tmp_path: Path) -> None:
    assert rows_of(tmp_path, HEADER + b"a,1\nb,12") == [("a", "1"), ("b", "12")]
    assert rows_of(tmp_path, HEADER + b"a,1\nb") == [("a", "1")]
    # The documented price of a file that was cut in a cell with line ends.
    assert rows_of(tmp_path, HEADER + b'a,1\n"b\nz,9\ny') == [("a", "1"), ("z", "9")]


def many_rows() -> bytes:
    random_ = random.Random(1)
    return HEADER + b"".join(b"%d,%d\n" % (n, random_.getrandbits(60)) for n in range(100_000))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("damage", ["cut", "end cut", "middle", "check sum", "garbage"])
def test_a_damaged_gzip_file_is_refused_whatever_its_rows_hold(tmp_path: Path, damage: str) -> None:
    packed = gzip.compress(many_rows())
    half = len(packed) // 2
    content = {
        "cut": packed[:half],
        "end cut": packed[:-3],
        "middle": packed[:half] + bytes(100) + packed[half + 100 :],
        "check sum": packed[:-8] + bytes(4) + packed[-4:],
        "garbage": packed + b"garbage",
    }
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(content[damage])
    with pytest.raises(ValueError, match="^ReadRows: every file of 'rows' must be a CSV file"):
        read(path)


def test_a_gzip_file_may_have_members_and_zeros_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(HEADER + b"a,") + gzip.compress(b"1\nb,2\n") + bytes(512))
    assert read(path) == [("a", "1"), ("b", "2")]


# --- Work and memory

HOSTILE = {
    "openings": b'a,"x\n',
    "openings, one a cell": b'"x,',
    "openings and pairs": b'a,""",""\n',
    "pairs": b'""',
    "quotes and commas": b'",',
    "quotes, commas, lines": b'",\n',
    "quotes and text": b'"a",\n"b\n""c',
    "CRs behind a quote": b'a,"x"\r\r\r\r\r\r\r\r\n',
    "CRs": b'"a"\r',
    "stray quotes": b'5" pipe,1\n',
}


@pytest.mark.sampled(21)
@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("sizes", [(1 << 10, 1 << 16, 1 << 12), (1 << 8, 1 << 10, 1 << 10)])
@pytest.mark.parametrize("start", [b"", b'""a,"'])
def test_the_work_grows_with_the_length_alone(
    monkeypatch: pytest.MonkeyPatch, case: str, sizes: tuple[int, int, int], start: bytes
) -> None:
    looked = []
    find, end_of_cell = records._find, records._end_of_cell

    def counted_find(text: bytes, content: records.Bytes, final: bool) -> Any:
        looked.append(len(text))
        return find(text, content, final)

    def counted_end(text: bytes, opening: int, final: bool) -> int | None:
        closing = records._CLOSING.match(text, opening)
        looked.append(closing.end() - opening if closing else len(text) - opening)
        return end_of_cell(text, opening, final)

    monkeypatch.setattr(records, "_find", counted_find)
    monkeypatch.setattr(records, "_end_of_cell", counted_end)
    text = HEADER + start + HOSTILE[case] * 20_000
    with readers.limits(*sizes):
        for _ in records.whole_records(io.BytesIO(text), True):
            pass
    assert sum(looked) <= 16 * len(text) + 10_000


def peak_of(path: Path) -> int:
    tracemalloc.start()
    try:
        for _ in readers.csv_batches(path, ("who", "what")):
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.audit
def test_memory_is_the_look_and_a_few_blocks(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(HEADER + b'"')
        for _ in range(200):
            file.write(b"x" * ((1 << 20) - 1) + b"\n")
    assert peak_of(path) < records.LOOKAHEAD_LIMIT + 12 * records.BLOCK
