"""Cut a stream of bytes into whole records of bounded length, quotes respected."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

RECORD_LIMIT = 1 << 20
BLOCK = 4 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_LINE_FEED, _CARRIAGE_RETURN, _QUOTE, _COMMA = b'\n\r",'
_LINE_BREAK = re.compile(rb"[\r\n]")

Positions = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


def whole_records(
    stream: BinaryIO, quoted: bool, limit: int = RECORD_LIMIT, block: int = BLOCK
) -> Iterator[bytes]:
    """Yield pieces of `stream`, each made of whole records.

    Memory stays below a few blocks whatever the stream holds. The records do not depend on
    where the blocks are cut.

    Edge cases: a record without an end within `limit` bytes (a field of 100 MB, a quote
    never closed) is dropped, together with all bytes up to the first line break after the
    limit. A record that the end of the stream cuts inside quotes is dropped. A byte order
    mark at the start is skipped. LF, CR and CRLF end a record.

    Args:
        stream: the bytes.
        quoted: whether line breaks inside double quotes belong to the record (RFC 4180).
        limit: the most bytes of one record, its line break included.
        block: how many bytes are read at once.
    """
    blocks = _blocks(stream, block)
    rest = b""
    for piece in blocks:
        rest += piece
        overlong = True
        while overlong and rest:
            stop, overlong = _cut(rest, quoted, limit)
            if stop:
                yield rest[:stop]
            rest = _resume(rest[stop:], blocks, limit) if overlong else rest[stop:]


def _blocks(stream: BinaryIO, block: int) -> Iterator[bytes]:
    # The line break at the end closes a last record that has none.
    first = stream.read(len(BYTE_ORDER_MARK)).removeprefix(BYTE_ORDER_MARK)
    return chain([first], iter(lambda: stream.read(block), b""), [b"\n"])


def _cut(text: bytes, quoted: bool, limit: int) -> tuple[int, bool]:
    """Return where the whole records end, and whether an overlong one follows."""
    ends = record_ends(text, quoted)
    lengths = np.diff(ends, prepend=0)
    overlong = np.flatnonzero(lengths > limit)
    if overlong.size:
        return int(ends[overlong[0]] - lengths[overlong[0]]), True
    stop = int(ends[-1]) if ends.size else 0
    return stop, len(text) - stop > limit


def _resume(text: bytes, blocks: Iterator[bytes], limit: int) -> bytes:
    """Return what follows the first line break at or after `limit`."""
    found = _LINE_BREAK.search(text, limit)
    while not found:
        text = next(blocks, b"\n")
        found = _LINE_BREAK.search(text)
    return text[found.end() :]


def record_ends(text: bytes, quoted: bool) -> Positions:
    """Return the offset after each line break that ends a record; `text` starts with a record."""
    content = np.frombuffer(text, np.uint8)
    breaks = np.flatnonzero((content == _LINE_FEED) | (content == _CARRIAGE_RETURN))
    if quoted and b'"' in text:
        quotes = _structural_quotes(content)
        breaks = breaks[np.searchsorted(quotes, breaks) % 2 == 0]
    return breaks + 1


def _structural_quotes(content: Bytes) -> Positions:
    """Return the positions of the quotes that open or close a quoted stretch, in turn.

    As in Arrow's reader: a quote opens at the start of a field only; a doubled quote inside
    closes and opens again; any other quote is an ordinary character.
    """
    quotes = np.flatnonzero(content == _QUOTE)
    before = np.where(quotes > 0, content[quotes - 1], _LINE_FEED)
    starts = (before == _COMMA) | (before == _LINE_FEED) | (before == _CARRIAGE_RETURN)
    may_open = starts | (before == _QUOTE)
    if may_open[::2].all():
        return quotes
    return quotes[_opened_and_closed(quotes, starts)]


def _opened_and_closed(quotes: Positions, starts: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Walk over the quotes one by one: the slow way, for text with stray quotes."""
    kept = np.zeros(len(quotes), np.bool_)
    inside, last = False, -2
    for index, (position, start) in enumerate(zip(quotes.data, starts.data)):
        if inside or start or last == position - 1:
            inside, last = not inside, position
            kept[index] = True
    return kept
