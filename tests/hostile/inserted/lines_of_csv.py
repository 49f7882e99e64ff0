"""Rows of CSV files: a base that must come through, and hostile rows of two sorts.

Proper rows are what a CSV writer writes, with any content: every one stands for itself, whatever
the base. Raw lines are what no writer writes: quotes that are not closed, text behind a closing
quote, carriage returns outside of quotes. What a raw line may open is closed by the first odd run of
quotes behind it, if a comma, a line end or the end of the file follows that run. So every row
stands for itself again where no other row begins so (`closes`): the base and the second of two
raw lines are chosen so.
"""

import csv
import io
import random
import re

from tests.hostile.inserted import layouts, texts

HEADER = (b"who", b"what", b"much")
_ODD_RUN = re.compile(rb'(?<!")"(?:"")*(?!")')
_ENDS = re.compile(rb"\r*\n|,|\r*\Z")
_PLAIN = (b"a", b"b c", "é".encode(), b'5" pipe', b"", b"-", b"x" * 20)
_INERT = (b"a, b", b"two\nlines", b'say "yes"', b"cr\rin it", b"two\r\nlines", b"row\nx,y,1\n")
_CLOSING = (b",a", b"\na", b"\r\na", b'",a', b",", b"\n", b'"\n')


def closes(record: bytes) -> bool:
    """Return whether a record would close a quote that another one before it left open."""
    run = _ODD_RUN.search(record)
    return run is not None and _ENDS.match(record, run.end()) is not None


def written(
    cells: tuple[bytes, ...], quoting: int = csv.QUOTE_MINIMAL, end: bytes = b"\n"
) -> bytes:
    """Return a row as the standard library's writer writes it, by the rules of RFC 4180."""
    text = io.StringIO(newline="")
    csv.writer(text, quoting=quoting).writerow([cell.decode("latin-1") for cell in cells])
    return text.getvalue().encode("latin-1").removesuffix(b"\r\n") + end


def pool(quotes: bool, end: bytes, inert: bool = True) -> list[bytes]:
    """Return rows of a base.

    Args:
        quotes: whether some cells are in quotes.
        end: the line end.
        inert: whether no row may close what another one left open.
    """
    contents = _PLAIN + (_INERT if quotes else ()) + (() if inert else _CLOSING)
    cells = [(b"base-%d" % n, what, b"%d" % n) for n, what in enumerate(contents)]
    rows = [written(row, end=end) for row in cells]
    if quotes:
        rows += [written(row, csv.QUOTE_ALL, end) for row in cells if row[1] not in _CLOSING]
    assert not inert or not any(map(closes, rows))
    return rows


def of_a_table(rng: random.Random | None, number: int) -> bytes:
    """Return a row of all columns of the `layouts`, with hostile cells if there is chance."""
    cells = [cell.encode() for cell in layouts.texts_of(number)]
    for _ in range(rng.choice((1, 1, 2, 10)) if rng else 0):
        cells[rng.randrange(len(cells))] = texts.cell(rng, 2000)
    if rng and rng.random() < 0.1:
        cells = cells[: rng.randrange(len(cells))] * rng.randint(1, 2)
    return written(tuple(cells), csv.QUOTE_ALL if rng and rng.random() < 0.3 else csv.QUOTE_MINIMAL)


def proper(rng: random.Random, longest: int) -> bytes:
    """Return a row of any width and content, as a writer writes it.

    Args:
        rng: the source of chance.
        longest: the most bytes of a cell.
    """
    width = len(HEADER) if rng.random() < 0.6 else rng.choice((0, 1, 2, 4, 5))
    cells = tuple(texts.cell(rng, longest // 2) for _ in range(width))
    if rng.random() < 0.3 and width:  # one hostile cell among good ones
        place = rng.randrange(width)
        cells = tuple(c if at == place else b"5" for at, c in enumerate(cells))
    quoting = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    return written(cells, quoting, rng.choice((b"\n", b"\r\n")))


def raw(rng: random.Random, longest: int) -> bytes:
    """Return one line of `longest` bytes at most, about, that no writer writes."""
    cells = tuple(texts.cell(rng) for _ in range(rng.choice((1, 2, 3, 3, 3, 4))))
    if rng.random() < 0.5:
        line = texts.mutated(rng, written(cells).removesuffix(b"\n"))
    else:
        line = b",".join(cells)
    if rng.random() < 0.05:
        line += texts.overlong(rng, rng.randint(1, longest - 100))
    return texts.on_one_line(line) + rng.choice((b"\n", b"\n", b"\r\n", b"\r\r\n"))
