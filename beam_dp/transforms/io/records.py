"""Cut a stream of bytes into whole records of bounded length, and tell which are spoiled."""

import dataclasses
import enum
from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from beam_dp.transforms.io import quotes
from beam_dp.transforms.io.quotes import Flags, Positions

RECORD_LIMIT = 1 << 20
LOOK_LIMIT = 64 << 20
BLOCK = 4 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# In place of the beginning of a dropped record: neither the end of a line nor the start of a cell.
_DROPPED = b"x"
_NONE = np.empty(0, np.int64)
_NO_QUOTES = quotes.Quoted(None, _NONE)


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
    breaks, commas = content == quotes.LINE_FEED, content == quotes.COMMA
    quoted = _NO_QUOTES
    if form is Form.QUOTED_CELLS and b'"' in text:
        quoted = quotes.find(content, look, final)
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


def _lone_returns(content: quotes.Bytes, ends: Positions, outside: Flags | None) -> Positions:
    """Return the CRs outside of quotes that spoil a record: neither a CR nor LF follows."""
    returns = content == quotes.CARRIAGE_RETURN
    if np.count_nonzero(returns) == np.count_nonzero(returns[np.maximum(ends - 2, 0)]):
        return ends[:0]  # all CRs are before the LF of a line end
    following = content[1:]
    others = (following != quotes.LINE_FEED) & (following != quotes.CARRIAGE_RETURN)
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
    search, seen = quotes.QuoteSearch(look), [text[waiting:]]
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
