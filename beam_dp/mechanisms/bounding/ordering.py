"""Order lines by person, pair and row, and find the lines that a person may keep, on columns.

A pair is a person and a partition. In every order here the lines of a person are consecutive:
people are ordered by a keyed hash, their pairs by priority, the rows of each pair by a keyed hash
of their values.
"""

import numpy as np

from beam_dp.mechanisms.numerics import hashing, integers

_PRIORITY_BITS = np.uint64(24)
_PERSON_BITS = np.uint64(64 - 24)
_ALL_BUT_PRIORITY = np.uint64((1 << 64) - (1 << 24))
_SHORT_BITS = np.uint64(20)  # of the priority, in words that end in an index
_FEW = 1 << 19
_OUTSIDE = np.uint64(0x9E3779B97F4A7C15)


def pick(columns: np.ndarray, index: np.ndarray | slice) -> np.ndarray:
    """Return the lines at `index` of columns of shape (words, n)."""
    if isinstance(index, slice):
        return columns[:, index]
    if index.dtype == bool:
        index = np.flatnonzero(index)
    # With two words columns[:, index] takes three times as long.
    return np.take(columns, index, axis=1)


def changes(columns: np.ndarray) -> np.ndarray:
    """Return where a line differs from the line before it; the first line counts as different."""
    changed = np.ones(columns.shape[1], bool)
    changed[1:] = columns[0, 1:] != columns[0, :-1]
    for column in columns[1:]:
        changed[1:] |= column[1:] != column[:-1]
    return changed


def order_pairs(
    person: np.ndarray, partition: np.ndarray, person_hash: np.ndarray, priority: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return an order by (person hash, person, priority, partition), and where its pairs begin.

    One sort of a packed word (the first bits of the person hash, then those of the priority) orders
    nearly all lines. Runs in which two people share their bits, or two partitions of one person
    theirs, are sorted again in full afterwards: people are told apart by their full identity.
    """
    order, words, bits = _by_word(person_hash, priority)
    new_person, new_pair = changes(pick(person, order)), changes(pick(partition, order))
    new_pair |= new_person
    differs = words[1:] ^ words[:-1]
    other_person = differs >> bits != 0
    mixed = (new_person[1:] & ~other_person) | (new_pair[1:] & (differs == 0))
    if mixed.any():
        rows = _runs(words >> bits, np.flatnonzero(mixed))
        lines = order[rows]
        keys = (pick(partition, lines), priority[None, lines], pick(person, lines))
        again = np.lexsort([*keys[0], *keys[1], *keys[2], person_hash[lines], words[rows] >> bits])
        order[rows] = lines[again]
        new_pair[rows] = _differ(person, order, rows) | _differ(partition, order, rows)
        new_pair[0] = True
    return order, new_pair


def _by_word(
    person_hash: np.ndarray, priority: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.uint64]:
    """Return an order by a word of both hashes, the words in it, and their bits of the priority.

    The words of few lines end in the index of the line: it takes half the time to sort words that
    it takes to sort indexes by them, and the lines that then share their bits are few.
    """
    size = len(person_hash)
    index_bits = np.uint64(size.bit_length())
    if size >= _FEW:
        words = person_hash & _ALL_BUT_PRIORITY
        words |= priority >> _PERSON_BITS
        order = np.argsort(words)
        return order, words[order], _PRIORITY_BITS
    words = person_hash >> index_bits + _SHORT_BITS
    words <<= _SHORT_BITS
    words |= priority >> np.uint64(64) - _SHORT_BITS
    words <<= index_bits
    words |= np.arange(size, dtype=np.uint64)
    words.sort()
    order = (words & (np.uint64(1) << index_bits) - np.uint64(1)).view(np.int64)
    words >>= index_bits
    return order, words, _SHORT_BITS


def _runs(prefix: np.ndarray, indexes: np.ndarray) -> np.ndarray:
    """Return all indexes of the runs of equal entries that hold these indexes of a sorted array."""
    values = np.unique(prefix[indexes])
    starts, ends = np.searchsorted(prefix, values), np.searchsorted(prefix, values, "right")
    sizes = ends - starts
    return np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())


def _differ(columns: np.ndarray, order: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return which of these lines of an order differ from the line before them."""
    return np.asarray((pick(columns, order[rows]) != pick(columns, order[rows - 1])).any(axis=0))


def order_rows(
    order: np.ndarray, new_pair: np.ndarray, row_hash: np.ndarray, columns: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return an order by pair, row hash and values, and where different rows begin in it.

    Each pair keeps its start and its number of lines.

    One sort of a packed word (the index of the pair, the first bits of the row hash) orders nearly
    all lines. Runs in which two different rows share their word are sorted again in full
    afterwards.

    Args:
        order: an order in which the lines of each pair are consecutive.
        new_pair: where pairs begin in it.
        row_hash: per line, not yet in that order.
        columns: of `sortable` values, not yet in that order.
    """
    pair = np.cumsum(new_pair) - 1
    bits = np.uint64(max(1, int(pair[-1]).bit_length()))
    packed = pair.astype(np.uint64) << np.uint64(64) - bits | row_hash[order] >> bits
    inside = np.argsort(packed)
    order, packed = order[inside], packed[inside]
    new_word = changes(packed[None])
    new_row = _new_rows(order, new_word, columns)
    mixed = new_row & ~new_word
    if mixed.any():
        runs = np.cumsum(new_word) - 1
        mixed_lines = np.flatnonzero(np.bincount(runs[mixed], minlength=runs[-1] + 1)[runs] > 0)
        lines = order[mixed_lines]
        again = np.lexsort(
            [*(part[lines] for part in columns), row_hash[lines], packed[mixed_lines]]
        )
        order[mixed_lines] = lines[again]
        new_row = _new_rows(order, new_word, columns)
    return order, new_row


def _new_rows(order: np.ndarray, new_word: np.ndarray, columns: list[np.ndarray]) -> np.ndarray:
    """Return where a row differs from the one before it, given where the packed words do."""
    again = np.flatnonzero(~new_word)
    new_row = new_word.copy()
    for part in columns:
        new_row[again] |= part[order[again]] != part[order[again - 1]]
    return new_row


def sortable(column: np.ndarray) -> list[np.ndarray]:
    """Return int64 columns that order the values of a column, equal for its narrow and wide form.

    A column is wide when any value in it is. That must not change the order of a person's rows: a
    value within int64 is in the last of the columns alone, where the other columns are 0.
    """
    if column.dtype != object:
        return [column]
    low, middle = integers.to_limbs(column)[:0:-1]
    outside = middle - (low >> 63)
    outside[low == integers.LOWEST] |= (
        1 << 62
    )  # in the narrow form this means no value; here it is a value
    missing = integers.is_missing(column, integers.LOWEST)
    low[missing], outside[missing] = integers.LOWEST, 0
    return [outside, low]


def row_hash(pair: np.ndarray, columns: list[list[np.ndarray]], constant: np.uint64) -> np.ndarray:
    """Return a keyed hash of each row, from the hash of its pair and its `sortable` values."""
    mixed = pair
    for *outside, low in columns:
        word = low.view(np.uint64)
        for part in outside:
            word = word + part.view(np.uint64) * _OUTSIDE
        mixed = hashing.mix(mixed + word, constant)
    return mixed


def lowest(person: np.ndarray, limit: int | None) -> np.ndarray:
    """Return which pairs, in order of person and priority, are a person's first `limit`."""
    kept = np.ones(person.shape[1], bool)
    if limit is not None and limit < person.shape[1]:
        kept[limit:] = person[0, limit:] != person[0, :-limit]
        for word in person[1:]:
            kept[limit:] |= word[limit:] != word[:-limit]
    return kept


def first_rows(rows: np.ndarray, starts: np.ndarray, limit: int | np.ndarray) -> np.ndarray:
    """Return how many copies of each line are among the first `limit` rows of its pair.

    Args:
        rows: copies per line.
        starts: where each pair begins.
        limit: most rows per pair, one number or one per pair.
    """
    sizes = np.diff(starts, append=len(rows))
    before = np.cumsum(rows) - rows
    before -= np.repeat(before[starts], sizes)
    limits = np.repeat(np.broadcast_to(limit, len(starts)), sizes)
    return np.asarray(np.clip(limits - before, 0, rows))


def in_proportion(
    rows: np.ndarray, sizes: np.ndarray, limits: np.ndarray, turns: np.ndarray
) -> np.ndarray:
    """Return how many copies of each line stay where each pair is cut to its limit.

    *Systematic sampling.* The n copies of a pair stand in a row, line after line; of the first s of
    them floor((s b + v) / n) stay, with b the limit and v in 0..n-1: every (n / b)-th one, from a
    random start on. A line of c copies behind s others keeps what that number grows by from s to
    s + c. So

    * b copies stay: v < n, so floor(v / n) = 0 and floor((n b + v) / n) = b;
    * each line keeps c b / n rounded down or up: floor(x + y) - floor(x) is either for y = c b / n.
      So it keeps c at most, as b <= n;
    * over v uniform in 0..n-1 it keeps c b / n on average, exactly, in whatever order the lines
      stand: the sum of floor((x + v) / n) over these v is x, for every whole x (Hermite). To round
      up the largest remainders would not do that: one click in 50 rows would never be among b < 25.

    v is a keyed hash of the pair modulo n, uniform but for n / 2^64, and the lines are in the order
    of a keyed hash of their values: for a fixed key, what stays is a function of the rows of the
    pair alone, in whatever order and batches they came.

    Source: Madow and Madow, "On the Theory of Systematic Sampling", 1944.

    Args:
        rows: copies per line; the lines of a pair are consecutive.
        sizes: lines per pair.
        limits: rows to keep per pair, at most as many as there are.
        turns: a hash of each pair, uint64.
    """
    last = np.cumsum(sizes) - 1
    ends = np.cumsum(rows)
    totals = np.diff(ends[last], prepend=0)
    upto = ends - np.repeat(ends[last] - totals, sizes)
    starts = (turns % totals.view(np.uint64)).view(np.int64)
    if int(totals.max()) * int(limits.max()) >= 1 << 62:
        upto, limits = upto.astype(object), limits.astype(object)
    stay = upto * np.repeat(limits, sizes)
    stay = (stay + np.repeat(starts, sizes)) // np.repeat(totals, sizes)
    kept = np.diff(stay, prepend=0)
    first = last - sizes + 1
    kept[first] = stay[first]
    return np.asarray(kept, np.int64)


def rounds(counts: np.ndarray, starts: np.ndarray, limit: int) -> np.ndarray:
    """Share `limit` rows of each person out in rounds, one row per pair and round.

    Water-filling in closed form: with the counts c of one person in increasing order and S_j the
    sum of the j smallest, all pairs get min(c, t) with t = floor((limit - S_j) / (m - j)) at the
    first j where t is less than the next count. The rows that are left over, fewer than the pairs
    that want another row, go to these pairs in order of priority.

    Args:
        counts: rows per pair, in order of person and priority.
        starts: where each person's pairs begin.
        limit: most rows per person.
    """
    sizes = np.diff(starts, append=len(counts))
    owner = np.repeat(np.arange(len(starts)), sizes)
    over = np.repeat(np.add.reduceat(counts, starts) > limit, sizes)
    ordered = counts[np.lexsort((counts, owner))]
    before = np.cumsum(ordered) - ordered
    before -= np.repeat(before[starts], sizes)
    rank = np.arange(len(counts)) - np.repeat(starts, sizes)
    level = (limit - before) // (np.repeat(sizes, sizes) - rank)
    candidates = np.where((level < ordered) & (level >= 0), np.arange(len(counts)), len(counts))
    first = np.minimum.reduceat(candidates, starts)
    levels = np.repeat(level[np.minimum(first, len(counts) - 1)], sizes)
    shares = np.minimum(counts, levels)
    left = np.repeat(limit - np.add.reduceat(shares, starts), sizes)
    wants = counts > levels
    turn = np.cumsum(wants, dtype=np.int64)
    turn -= np.repeat(turn[starts] - wants[starts], sizes)
    return np.where(over, shares + (wants & (turn <= left)), counts)


def numbered(people: np.ndarray) -> np.ndarray:
    """Return a number from 0 for each different person, in the order of their words.

    Only the first line of each run of equal people is sorted: lines of a person mostly follow each
    other.

    Args:
        people: uint64 of shape (1 or 2, n).
    """
    heads = changes(people)
    firsts = pick(people, heads)
    # Any order of equal people will do: numpy sorts one word without a stable order far sooner.
    order = np.lexsort(firsts[::-1]) if len(firsts) > 1 else np.argsort(firsts[0])
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(changes(pick(firsts, order))) - 1
    return np.asarray(numbers[np.cumsum(heads) - 1])
