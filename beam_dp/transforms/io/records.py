"""Cut a stream of bytes into whole records of bounded length, and tell which are spoiled.

*Quoted cells of CSV* (RFC 4180). A quote at the start of a cell opens it. The next run of quotes of
odd length closes it, with the last quote of the run: all pairs before it are quotes of the content.
A comma or a line end must follow: LF, or CRs and LF. If not, or if there is no such run, the
opening quote is *spoiled*: it opens nothing, and reading goes on at the line after it. All other
quotes are ordinary characters.

The work is linear in the length of the text, whatever it holds. A search for the closing quote
ends at the next run of odd length. A quote that opens after a failed search began, but before the
search ended, is the first of a run of even length, which closes the cell at once, or is in the run
that ended the search. So two searches share no bytes but those of one run.
"""

import dataclasses
import enum
import re
from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

LINE_FEED, CARRIAGE_RETURN, QUOTE, COMMA = b'\n\r",'
Positions = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
_CLOSING = re.compile(rb'(?:[^"]++|"")*+"\r*+')

RECORD_LIMIT = 1 << 20
LOOK_LIMIT = 64 << 20
BLOCK = 4 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# In place of the beginning of a dropped record: neither the end of a line nor the start of a cell.
_DROPPED = b"x"


class Form(enum.Enum):
    """What a record is: a line; a line of cells; or cells that may hold line ends, in quotes."""

    LINES = "lines"
    CELLS = "cells"
    QUOTED_CELLS = "quoted cells"


@dataclasses.dataclass(frozen=True, eq=False)
class Piece:
    """Whole records.

    Args:
        text: the records, one after the other, and perhaps some bytes behind the last record.
        ends: the offset behind each record.
        good: which records are neither spoiled nor too long.
        commas: which bytes are commas between two cells; none where there are no cells.
    """

    text: bytes
    ends: Positions
    good: Flags
    commas: Flags

    def have_cells(self, count: int) -> Flags:
        """Return which records have `count` cells."""
        words, ends = _words(self.commas), self.ends - 1
        upto = np.cumsum(np.bitwise_count(words), dtype=np.int64)
        word, bit = ends >> 6, (ends & 63).astype(np.uint64)
        commas = upto[word] - np.bitwise_count(words[word] >> bit)
        return np.asarray(np.diff(commas, prepend=0) == count - 1, np.bool_)

    def only(self, kept: Flags) -> bytes:
        """Return the text of some of the records."""
        bounds = np.flatnonzero(np.diff(kept, prepend=False, append=False))
        offsets = np.append(0, self.ends)[bounds].tolist()
        slices = zip(offsets[::2], offsets[1::2], strict=True)
        return b"".join([self.text[start:stop] for start, stop in slices])


def whole_records(
    stream: BinaryIO,
    form: Form,
    limit: int = RECORD_LIMIT,
    look: int = LOOK_LIMIT,
    block: int = BLOCK,
) -> Iterator[Piece]:
    """Yield the records of `stream` in pieces of about `block` bytes.

    A record ends with LF or with the end of the stream. Which records there are, and which of
    them are good, does not depend on where the blocks are cut. A byte order mark at the start
    is skipped. Memory stays below a few blocks; where a quoted cell is longer than `limit`,
    below `look` bytes and a few blocks. The work is linear in the length of the stream.

    Spoiled, in both forms with cells: a record with a CR outside of quotes that is not followed
    by CRs and LF (a file of the classic Mac is one long spoiled record). With quotes: a record
    in which a quote opens a cell that does not end properly; the record ends with its line, and
    the further lines of the cell are read as records.

    Args:
        stream: the bytes.
        form: what a record is.
        limit: the most bytes of a good record, its line end included.
        look: the most bytes from an opening quote to the end of its cell.
        block: how many bytes are read at once.
    """
    blocks = _Blocks(stream, block)
    unread, dropped = b"", False
    for read in blocks:
        piece, waiting = _cut(unread + read, form, limit, look, dropped)
        if piece.ends.size:
            yield piece
        dropped = dropped and not piece.ends.size
        used = int(piece.ends[-1]) if piece.ends.size else 0
        unread = piece.text[used:]
        if len(unread) > limit or (dropped and waiting is None):
            unread = _pass(piece.text, waiting, blocks, look)
            dropped = True
    if unread:
        yield _cut(unread, form, limit, look, dropped, final=True)[0]


class _Blocks:
    """The blocks of a stream, then one LF, which ends a last record that has no line end."""

    def __init__(self, stream: BinaryIO, block: int) -> None:
        first = stream.read(len(BYTE_ORDER_MARK)).removeprefix(BYTE_ORDER_MARK)
        self._blocks = chain([first], iter(lambda: stream.read(block), b""), [b"\n"])
        self._returned: deque[bytes] = deque()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.read, None)

    def read(self) -> bytes | None:
        """Return the next block; None at the end."""
        return self._returned.popleft() if self._returned else next(self._blocks, None)

    def put_back(self, blocks: list[bytes]) -> None:
        """Give back blocks, to be read again."""
        self._returned.extendleft(reversed(blocks))


def _cut(
    text: bytes, form: Form, limit: int, look: int, dropped: bool, final: bool = False
) -> tuple[Piece, int | None]:
    """Return the records of `text`, and the first quote that `text` does not decide."""
    content = np.frombuffer(text, np.uint8)
    breaks, commas = content == LINE_FEED, content == COMMA
    quoted = Quoted(None, np.empty(0, np.int64))
    if form is Form.QUOTED_CELLS and b'"' in text:
        quoted = find(content, look, final)
    outside = None if quoted.edges is None else _outside(quoted.edges)
    if outside is not None:
        breaks &= outside
        commas &= outside
    ends = np.flatnonzero(breaks) + 1
    if quoted.waiting is not None:
        ends = ends[: np.searchsorted(ends, quoted.waiting, "right")]
    good = np.diff(ends, prepend=0) <= limit
    good[:1] &= not dropped
    spoiled = [quoted.spoiled]
    if form is not Form.LINES and b"\r" in text:
        spoiled.append(_lone_returns(content, ends, outside))
    indexes = np.searchsorted(ends, np.concatenate(spoiled), "right")
    good[indexes[indexes < len(ends)]] = False
    return Piece(text, ends, good, commas), quoted.waiting


def _lone_returns(content: Bytes, ends: Positions, outside: Flags | None) -> Positions:
    """Return the CRs outside of quotes that spoil a record: neither a CR nor LF follows."""
    returns = content == CARRIAGE_RETURN
    if np.count_nonzero(returns) == np.count_nonzero(returns[np.maximum(ends - 2, 0)]):
        return ends[:0]  # all CRs are before the LF of a line end
    following = content[1:]
    others = (following != LINE_FEED) & (following != CARRIAGE_RETURN)
    lone = np.flatnonzero(returns[:-1] & others)
    return lone if outside is None else np.asarray(lone[outside[lone]], np.int64)


def _words(flags: Flags) -> npt.NDArray[np.uint64]:
    """Return flags as the bits of words, the first flag as the lowest bit."""
    packed = np.packbits(flags, bitorder="little")
    return np.append(packed, np.zeros(-len(packed) % 8, np.uint8)).view("<u8")


def _outside(edges: Flags) -> Flags:
    """Return which bytes have an even number of edges up to themselves.

    In words of 64 bits, each bit is combined with all lower bits by doubling the distance; then the
    highest bit of each word, which is the parity of the word, is carried on to the next words.
    """
    words = _words(edges)
    for distance in (1, 2, 4, 8, 16, 32):
        words ^= words << np.uint64(distance)
    carried = np.bitwise_xor.accumulate(words >> np.uint64(63))
    words[1:] ^= np.uint64(0) - carried[:-1]
    return np.unpackbits(~words.view(np.uint8), count=len(edges), bitorder="little").view(np.bool_)


def _pass(text: bytes, waiting: int | None, blocks: _Blocks, look: int) -> bytes:
    """Read a dropped record on, and return bytes in place of its beginning.

    Args:
        text: the bytes so far, up to some point within that record.
        waiting: the quote in the record that `text` does not decide.
        blocks: the blocks that follow; a quoted cell that waits is read to its end.
        look: the most bytes from the opening quote to the end of the cell.
    """
    if waiting is None:
        return b"," if text.endswith(b",") else _DROPPED
    search, seen = QuoteSearch(look), [text[waiting:]]
    while search.goes_on(seen[-1]) and (read := blocks.read()) is not None:
        seen.append(read)
    if search.closed is None:
        _to_line_end(seen, blocks)
    else:
        blocks.put_back([seen[-1][search.closed :]])
    return _DROPPED


def _to_line_end(seen: list[bytes], blocks: _Blocks) -> None:
    """Put back the first line end, and all bytes that follow it."""
    index = next((i for i, read in enumerate(seen) if b"\n" in read), len(seen))
    line = seen[index:] or [next(read for read in blocks if b"\n" in read)]
    blocks.put_back([line[0][line[0].index(b"\n") :], *line[1:]])


@dataclasses.dataclass(frozen=True, eq=False)
class Quoted:
    """The quoted cells of a text.

    Args:
        edges: which bytes are quotes that open and close, in turn; None if there is no such cell.
        spoiled: the quotes at the start of a cell that do not close.
        waiting: the first opening quote for which only the bytes behind the text decide, or None;
            nothing is known of the bytes after it.
    """

    edges: Flags | None
    spoiled: Positions
    waiting: int | None = None


def find(content: Bytes, look: int, final: bool) -> Quoted:
    """Return the quoted cells of `content`, which starts with a record or with a dropped one.

    Args:
        content: the bytes.
        look: the most bytes from an opening quote to the end of its cell.
        final: whether nothing follows; the last byte is LF then.
    """
    are_quotes = content == QUOTE
    quotes = np.flatnonzero(are_quotes)
    known = len(content) <= look and not final
    quoted = _find_in_turn(content, are_quotes, quotes) if known and quotes.size else None
    return quoted or _find_among_strays(content, quotes, look, final)


def _find_in_turn(content: Bytes, are_quotes: Flags, quotes: Positions) -> Quoted | None:
    """Find the cells where all quotes open and close in turn: the fast way, for proper files."""
    # The bytes behind quotes at the very end are unknown: the cell of such quotes has to wait.
    known = int(np.searchsorted(quotes, len(content) - 2))
    used = quotes if known == len(quotes) else quotes[: known | 1]
    opens = _before(content, used[::2])
    # A doubled quote closes a cell and opens it again, with the same result.
    may_open = _between_cells(opens) | (opens == QUOTE)
    if not may_open.all() or not _all_close(content, used[1::2]):
        return None
    if len(used) % 2 == 0:
        return Quoted(are_quotes, used[:0])
    # The last cell opens at the last quote that is not the second of a pair.
    opened = np.flatnonzero(opens != QUOTE)[-1] * 2
    return Quoted(are_quotes, used[:0], int(used[opened]))


def _all_close(content: Bytes, closing: Positions) -> bool:
    after = content[closing + 1]
    others = closing[~(_between_cells(after) | (after == QUOTE))]
    ended = (content[others + 1] == CARRIAGE_RETURN) & (content[others + 2] == LINE_FEED)
    return bool(ended.all())


def _before(content: Bytes, positions: Positions) -> Bytes:
    before = content[positions - 1]
    before[positions == 0] = LINE_FEED
    return before


def _between_cells(before: Bytes) -> Flags:
    return np.asarray((before == COMMA) | (before == LINE_FEED), np.bool_)


def _find_among_strays(content: Bytes, quotes: Positions, look: int, final: bool) -> Quoted:
    opening, closing = _openings(content, quotes)
    if not opening.size:
        return Quoted(None, opening)
    proper, decided = _fates(content, opening, closing, look)
    lines = np.flatnonzero(content == LINE_FEED)
    line = np.searchsorted(lines, opening)
    # A spoiled quote spoils the rest of its line, so its line must end within the content.
    decided = (decided | final) & (proper | (line < len(lines)))
    resumed = np.where(proper, closing, np.append(lines, len(content))[line])
    live = _live(np.searchsorted(opening, resumed, "right"))
    stop = np.flatnonzero(live & ~decided)
    waiting = int(opening[stop[0]]) if stop.size else None
    live[stop[0] if stop.size else len(live) :] = False
    edges = np.zeros(len(content), np.bool_)
    edges[opening[live & proper]] = edges[closing[live & proper]] = True
    return Quoted(edges, opening[live & ~proper], waiting)


def _openings(content: Bytes, quotes: Positions) -> tuple[Positions, Positions]:
    """Return the quotes at the start of a cell, and the quote that would close each."""
    firsts = np.flatnonzero(np.diff(quotes, prepend=-2) != 1)
    first, last = quotes[firsts], quotes[np.append(firsts[1:], len(quotes)) - 1]
    odd = np.flatnonzero((last - first) % 2 == 0)
    runs = np.flatnonzero(_between_cells(_before(content, first)))
    # Without its opening quote an even run is odd, so it closes; an odd run is pairs only.
    is_odd = (last[runs] - first[runs]) % 2 == 0
    ends = np.append(last[odd], len(content))
    return first[runs], np.where(is_odd, ends[np.searchsorted(odd, runs, "right")], last[runs])


def _fates(
    content: Bytes, opening: Positions, closing: Positions, look: int
) -> tuple[Flags, Flags]:
    """Return which opening quotes close properly, and for which this is decided."""
    size = len(content)
    after = np.minimum(closing + 1, size)
    padded = np.append(content, np.uint8(0))
    # The first byte behind the closing quote that is no CR decides.
    deciding = _behind_returns(content, after, padded[after] == CARRIAGE_RETURN)
    ended = (padded[deciding] == LINE_FEED) | ((padded[after] == COMMA) & (after == deciding))
    proper = ended & (deciding < size) & (deciding - opening <= look)
    return proper, (deciding < size) | (size - opening > look)


def _behind_returns(content: Bytes, positions: Positions, returns: Flags) -> Positions:
    if not returns.any():
        return positions
    all_returns = np.flatnonzero(content == CARRIAGE_RETURN)
    lasts = all_returns[np.append(np.diff(all_returns) != 1, True)]
    moved = positions.copy()
    moved[returns] = lasts[np.searchsorted(lasts, positions[returns])] + 1
    return moved


def _live(following: Positions) -> Flags:
    """Return which opening quotes are reached, if opening number following[i] comes after i."""
    live = np.ones(len(following), np.bool_)
    skipping = np.flatnonzero(following > np.arange(1, len(following) + 1))
    reached = 0
    for index, target in zip(skipping.tolist(), following[skipping].tolist(), strict=True):
        if index >= reached:
            live[index + 1 : target] = False
            reached = target
    return live


class QuoteSearch:
    """The search for the end of one quoted cell, block by block.

    Args:
        look: the most bytes from the opening quote to the end of the cell.
    """

    def __init__(self, look: int) -> None:
        self._look = look
        self._seen = 0
        self._held = b""  # a quote, or a quote and CR: the next bytes decide whether it closes
        self.closed: int | None = None
        """The offset in the last block at which the record goes on, if the cell has ended."""

    def goes_on(self, block: bytes) -> bool:
        """Search a block (the first begins at the opening quote); return if more is needed."""
        start = 0 if self._seen else 1
        text = self._held + block[start:]
        closing = _CLOSING.match(text)
        offset = start - len(self._held)
        if closing and closing.end() < len(text):
            end = closing.end()
            near = self._seen + end + offset <= self._look
            comma = text[end] == COMMA and text[end - 1] == QUOTE
            self.closed = end + offset if near and (comma or text[end] == LINE_FEED) else None
            return False
        self._held = (b'"\r' if text.endswith(b"\r") else b'"') if closing else b""
        self._seen += len(block)
        return self._seen <= self._look
