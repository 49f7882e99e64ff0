"""Cut a CSV file into whole records of bounded length, and tell which are spoiled.

*Quoted cells* (RFC 4180). A quote at the start of a cell opens it. The next run of quotes of odd
length closes it, with the last quote of the run: all pairs before it are quotes of the content.
A comma or a line end must follow: LF, or CRs and LF. If not, or if there is no such run, the
opening quote is *spoiled*: it opens nothing, and reading goes on at the line after it. All other
quotes are ordinary characters.

The work is linear in the length of the text, whatever it holds. A search for the closing quote
ends at the next run of odd length. A quote that opens after a failed search began, but before the
search ended, is the first of a run of even length, which closes the cell at once, or is in the run
that ended the search. So two searches share no bytes but those of one run. Where a search needs
more text than is there, it begins anew when the text has grown by a quarter.
"""

import dataclasses
import io
import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

LINE_FEED, CARRIAGE_RETURN, QUOTE, COMMA = b'\n\r",'
Positions = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
_CLOSING = re.compile(rb'"(?:[^"]++|"")*+"\r*+')

RECORD_LIMIT = 1 << 20
"""The most bytes of a good record, its line end included."""
LOOKAHEAD_LIMIT = 64 << 20
"""The most bytes from an opening quote to the end of its cell."""
BLOCK = 4 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# In place of the beginning of a dropped record: neither the end of a line nor the start of a cell.
_DROPPED = b"x"
_SPOILED = -1


@dataclasses.dataclass(frozen=True, eq=False)
class Piece:
    """Whole records.

    Args:
        text: the records, one after the other, and perhaps some bytes behind the last record.
        ends: the offset behind each record.
        good: which records are neither spoiled nor too long.
        cells: how many cells each record has.
    """

    text: bytes
    ends: Positions
    good: Flags
    cells: Positions

    def only(self, kept: Flags) -> bytes:
        """Return the text of some of the records."""
        bounds = np.flatnonzero(np.diff(kept, prepend=False, append=False))
        offsets = np.append(0, self.ends)[bounds].tolist()
        slices = zip(offsets[::2], offsets[1::2], strict=True)
        return b"".join([self.text[start:stop] for start, stop in slices])


def whole_records(stream: io.BufferedIOBase, quotes: bool) -> Iterator[Piece]:
    """Yield the records of `stream` in pieces of about `BLOCK` bytes.

    A record ends with LF or with the end of the stream. Which records there are, and which of
    them are good, does not depend on where the blocks are cut. A byte order mark at the start
    is skipped. Memory stays below a few blocks; where a quoted cell is longer than `RECORD_LIMIT`,
    below `LOOKAHEAD_LIMIT` bytes and a few blocks. The work is linear in the length of the stream.

    Spoiled: a record with a CR outside of quotes that is not followed by CRs and LF (a file of the
    classic Mac is one long spoiled record). With quotes: a record in which a quote opens a cell
    that does not end properly; the record ends with its line, and the further lines of the cell are
    read as records.

    Args:
        stream: the bytes.
        quotes: whether quotes have a meaning; if not, a record is a line.
    """
    source = _Source(stream)
    unread, dropped = b"", False
    while read := source.read(BLOCK):
        piece, waiting = _cut(unread + read, quotes, final=False)
        if piece.ends.size:
            piece.good[0] &= not dropped
            dropped = False
            yield piece
        unread = piece.text[int(piece.ends[-1]) :] if piece.ends.size else piece.text
        if dropped and waiting is None or len(unread) > RECORD_LIMIT:
            if waiting is not None:
                source.pass_cell(piece.text[waiting:])
            unread = b"," if waiting is None and unread.endswith(b",") else _DROPPED
            dropped = True
    if unread:
        piece, _ = _cut(unread, quotes, final=True)
        piece.good[0] &= not dropped
        yield piece


class _Source:
    """The bytes of a stream, then one LF, which ends a last record that has no line end."""

    def __init__(self, stream: io.BufferedIOBase) -> None:
        self._stream, self._end = stream, iter([b"\n"])
        start = stream.read(len(BYTE_ORDER_MARK))
        self._held = memoryview(start.removeprefix(BYTE_ORDER_MARK))

    def read(self, size: int) -> bytes:
        """Return at most so many bytes; none at the end."""
        held, self._held = bytes(self._held[:size]), self._held[size:]
        return held or self._stream.read(size) or next(self._end, b"")

    def pass_cell(self, start: bytes) -> None:
        """Read on to the end of a quoted cell; to that of the line in which it opens if spoiled.

        Args:
            start: what was read of the cell, from the opening quote.
        """
        text, final = bytearray(start), False
        while (end := _end_of_cell(text, 0, final)) is None:
            read = self.read(max(BLOCK, min(len(text) // 4, LOOKAHEAD_LIMIT - len(text))))
            text += read
            final = not read
        while end == _SPOILED and (end := text.find(b"\n")) < 0:
            text, end = bytearray(self.read(BLOCK)), _SPOILED
        rest = memoryview(text)[end:]
        self._held = memoryview(b"".join([rest, self._held])) if self._held else rest


def _end_of_cell(text: bytes | bytearray, opening: int, final: bool) -> int | None:
    """Return the offset of the comma or line end behind a quoted cell.

    It is `_SPOILED` if the cell does not end properly, None if that needs more text.

    Args:
        text: what there is.
        opening: the offset of the quote that opens the cell.
        final: whether nothing follows the text.
    """
    closing = _CLOSING.match(text, opening)
    end = closing.end() if closing else len(text)
    near = end - opening <= LOOKAHEAD_LIMIT
    if end == len(text):
        return None if near and not final else _SPOILED
    proper = text[end] == LINE_FEED or text[end - 1 : end + 1] == b'",'
    return end if near and proper else _SPOILED


def _cut(text: bytes, quotes: bool, final: bool) -> tuple[Piece, int | None]:
    """Return the records of `text`, and the first quote that `text` does not decide."""
    content = np.frombuffer(text, np.uint8)
    breaks, commas = content == LINE_FEED, content == COMMA
    outside = None
    spoiled, waiting = np.empty(0, np.int64), None
    if quotes and b'"' in text:
        outside, spoiled, waiting = _find(text, content, final)
        breaks &= outside
        commas &= outside
    ends = np.flatnonzero(breaks) + 1
    if waiting is not None:
        ends = ends[: np.searchsorted(ends, waiting, "right")]
    good = np.diff(ends, prepend=0) <= RECORD_LIMIT
    if b"\r" in text:
        spoiled = np.append(spoiled, _lone_returns(content, outside))
    indexes = np.searchsorted(ends, spoiled, "right")
    good[indexes[indexes < len(ends)]] = False
    return Piece(text, ends, good, 1 + np.diff(_ones(commas, ends), prepend=0)), waiting


def _lone_returns(content: Bytes, outside: Flags | None) -> Positions:
    """Return the CRs outside of quotes that neither a CR nor LF follows."""
    following = content[1:]
    lone = np.flatnonzero(content[:-1] == CARRIAGE_RETURN)
    lone = lone[(following[lone] != LINE_FEED) & (following[lone] != CARRIAGE_RETURN)]
    return lone if outside is None else np.asarray(lone[outside[lone]], np.int64)


def _ones(flags: Flags, ends: Positions) -> Positions:
    """Return how many flags are set before each offset; offsets are above 0."""
    words, last = _words(flags), ends - 1
    upto = np.cumsum(np.bitwise_count(words), dtype=np.int64)
    word, bit = last >> 6, (last & 63).astype(np.uint64)
    behind = np.bitwise_count(words[word] >> bit >> np.uint64(1))
    return np.asarray(upto[word] - behind, np.int64)


def _words(flags: Flags) -> npt.NDArray[np.uint64]:
    """Return flags as the bits of words, the first flag as the lowest bit."""
    packed = np.packbits(flags, bitorder="little")
    return np.append(packed, np.zeros(-len(packed) % 8, np.uint8)).view("<u8")


def _find(text: bytes, content: Bytes, final: bool) -> tuple[Flags, Positions, int | None]:
    """Return which bytes are outside of quoted cells, which quotes are spoiled, and which waits.

    Args:
        text: bytes that start with a record, or with a dropped one.
        content: the same.
        final: whether nothing follows; the last byte is LF then.
    """
    edges = content == QUOTE
    outside = _outside(edges)
    breaks = np.flatnonzero((content == LINE_FEED) & outside)
    known = int(breaks[-1]) + 1 if breaks.size else 0
    short = max(len(text) - known, 0) <= RECORD_LIMIT and len(text) <= LOOKAHEAD_LIMIT and not final
    if short and _in_turn(content, np.flatnonzero(edges[:known])):
        return outside, np.empty(0, np.int64), known if known < len(text) else None
    opened: list[int] = []
    closed: list[int] = []
    spoiled: list[int] = []
    waiting, place = None, 0
    while (quote := text.find(b'"', place)) >= 0:
        if quote and text[quote - 1 : quote] not in (b",", b"\n"):
            place = quote + 1
            continue
        end = _end_of_cell(text, quote, final)
        place = text.find(b"\n", quote) if end == _SPOILED else end or -1
        if place < 0:
            waiting = quote
            break
        if end == _SPOILED:
            spoiled.append(quote)
        else:
            opened.append(quote)
            closed.append(text.rindex(b'"', quote, end))
    edges[:] = False
    edges[opened + closed] = True
    return _outside(edges), np.array(spoiled, np.int64), waiting


def _outside(edges: Flags) -> Flags:
    """Return which bytes have an even number of edges up to themselves.

    In words of 64 bits, each bit is combined with all lower bits by doubling the distance; then the
    highest bit of each word, which is the parity of the word, is carried on to the next words. It
    takes a tenth of the time of `logical_xor.accumulate`.
    """
    words = _words(edges)
    for distance in (1, 2, 4, 8, 16, 32):
        words ^= words << np.uint64(distance)
    carried = np.bitwise_xor.accumulate(words >> np.uint64(63))
    words[1:] ^= np.uint64(0) - carried[:-1]
    return np.unpackbits(~words.view(np.uint8), count=len(edges), bitorder="little").view(np.bool_)


def _in_turn(content: Bytes, quotes: Positions) -> bool:
    """Return whether quotes open and close cells in turn, which is faster to tell for all of them.

    A doubled quote closes a cell and opens it again, with the same result.
    """
    before, after = content[quotes[::2] - 1], content[quotes[1::2] + 1]
    before[quotes[::2] == 0] = LINE_FEED
    open_cells = (before == COMMA) | (before == LINE_FEED) | (before == QUOTE)
    closed = (after == COMMA) | (after == LINE_FEED) | (after == QUOTE)
    others = quotes[1::2][~closed]
    returns = (content[others + 1] == CARRIAGE_RETURN) & (content[others + 2] == LINE_FEED)
    return bool(open_cells.all() and returns.all())
