"""Find where the quoted cells of a CSV text begin and end (RFC 4180), and which never close.

A quote at the start of a cell opens it. The next run of quotes of odd length closes it, with the
last quote of the run: all pairs before it are quotes of the content. A comma or a line end must
follow: LF, or CRs and LF. If not, or if there is no such run, the opening quote is *spoiled*: it
opens nothing, and reading goes on at the line after it. All other quotes are ordinary characters.

The work is linear in the length of the text, whatever it holds. A search for the closing quote
ends at the next run of odd length. A quote that opens after a failed search began, but before the
search ended, is the first of a run of even length, which closes the cell at once, or is in the run
that ended the search. So two searches share no bytes but those of one run.
"""

import dataclasses
import re

import numpy as np
import numpy.typing as npt

LINE_FEED, CARRIAGE_RETURN, QUOTE, COMMA = b'\n\r",'

Positions = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]


_CLOSING = re.compile(rb'(?:[^"]++|"")*+"\r*+')


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
