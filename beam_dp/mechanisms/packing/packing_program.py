"""A linear program in integers, and the exact bounds of its value that any guess proves.

    E = max { g x : A x <= b, 0 <= x <= u }
      = min { b y + sum of u_j max(0, g_j - (y A)_j) : y >= 0 }

(duality of linear programs). So any y >= 0 gives an upper bound. Let h be such that a best y has
y <= h. Then any 0 <= x <= u gives a lower one, though A x may be above b:

    E >= g x - sum of h_i max(0, (A x - b)_i),

for g x = y A x + (g - y A) x <= y A x + E - b y = E + y (A x - b) for that best y. Both are
computed from integers over 2^bits without any rounding, so that it does not matter where x and y
come from.

*The lines.* The first are people, each of whom carries a threshold p at most. A part r_i <= 1 of a
person may be removed, at p each: y_i = r_i. Behind them are blocks of lines whose best thresholds
follow from r: each is the least at which no column of the line gains more than it pays. A column is
in one line of a block at most, with an entry of 1; all other entries of a block are below 0 or in
blocks before.

*A guess where each row has one owner: a maximum flow.* A unit flows from its person, who has room
for the threshold, over a row to its value, which has room for its weight. What flows is packed, and
the people whom the residual graph does not reach are removed: the others are the source's side of a
minimum cut (Ford and Fulkerson, 1956). Nobody has to trust the solver: the bounds are those of any
guess, and meet where the flow is a maximum.

*Guesses by a first-order method in floats.* It is the primal-dual hybrid gradient method (Chambolle
and Pock, 2011), with the steps of Pock and Chambolle, 2011, and the restarts and weights of
Applegate et al., "Practical large-scale linear programming using primal-dual hybrid gradient",
2021. A step takes time and memory for the rows, and no more. Where a program has many solutions, as
where everybody is removed by the same small part, it comes close in few steps; the simplex method
walks through millions of vertices there. Measured on 100,000 rows of two owners: 2 to 4 seconds,
where HiGHS takes 5 to 29 by its own method of this kind ("pdlp"), and 3 to 37 by "ipx".

*Solutions by HiGHS, each closer than the last.* HiGHS proposes a solution in floats. What this
still lacks is a program of the same form: its numbers are what is left of each bound and of each
threshold, exact integers, multiplied by a scale until floats see them. HiGHS solves that program;
its solution, divided by the scale, is added, and so on (iterative refinement: Gleixner, Steffy,
Wolter, "Iterative refinement for linear programming", 2016). Where HiGHS ends with the best vertex,
a round adds some 30 bits and takes no pivot. Nothing depends on time: each round ends after so many
pivots or steps.

*In which cell of a grid E lies* is certain, whoever made the guess. With s = D / 32 for the
threshold D, the cell is the whole number

    q(E) = ceil(E / s - c),    0.4142 < c < 0.4143,

which never falls where E rises: a lower and an upper bound of E with the same q decide it. And
0 <= E' - E <= D gives 0 <= q' - q <= 32, whatever c is.

*Each process draws its c.* q jumps at the points (n + c) s: for E near one of them bounds must be
close. If c were known, somebody could make up a database whose E is as near to such a point as they
like: its cell would be decided late, or never. With 64 random bits of c the chance that E is within
2^-k s of such a point is at most 20,000 * 2^-k for every database. `_Refined` gains about 30 bits
in a round: a database needs a fifth round with a chance of 2^-105.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.numerics.flows import largest_flow

_MOST_BITS = 50  # bits of a guess in floats


class PackingBounds(NamedTuple):
    """Bounds of E / p that a guess proves, and a line above E at all lower thresholds.

    Attributes:
        low: a lower bound.
        high: an upper bound.
        stays: what a removal leaves. E at a threshold p' <= p is at most stays + p' removed.
        removed: the sum of r over that removal.
        parts: r.
    """

    low: Fraction
    high: Fraction
    stays: Fraction
    removed: Fraction
    parts: np.ndarray = np.zeros(0)


@dataclass(frozen=True, eq=False)
class Packing:
    """The program, with one entry of A per place of `columns`, `lines` and `numbers`.

    Attributes:
        threshold: D; E is counted in its denominator, where the threshold is its numerator, p.
        people: how many lines are people.
        columns: the column of each entry.
        lines: its line.
        numbers: the entry.
        gains: g.
        rooms: b.
        most: u; the lines imply it where there are blocks, so that no solver need know it.
        worth: h.
        column_sizes: about how large each column gets: p, or 1.
        line_sizes: and each line.
        blocks: where each block of lines behind the people ends.
        known: what is added to E.
        is_flow: whether each column has one person and one line of the only block.
    """

    threshold: Fraction
    people: int
    columns: np.ndarray
    lines: np.ndarray
    numbers: np.ndarray
    gains: np.ndarray
    rooms: np.ndarray
    most: np.ndarray
    worth: np.ndarray
    column_sizes: np.ndarray
    line_sizes: np.ndarray
    blocks: tuple[int, ...] = ()
    known: int = 0
    is_flow: bool = False

    @functools.cached_property
    def wide(self) -> Packing:
        """The same in Python integers."""
        names = "numbers", "gains", "rooms", "most", "worth", "column_sizes", "line_sizes"
        columns: dict[str, Any] = {name: getattr(self, name).astype(object) for name in names}
        return dataclasses.replace(self, **columns)

    @functools.cached_property
    def bits(self) -> int:
        """The most bits for which all sums stay below 2^62; below 0: not even whole numbers do."""
        numbers, most = np.abs(self.numbers.astype(float)), self.most.astype(float)
        worth, gains = self.worth.astype(float), self.gains.astype(float)
        needed = numbers * most[self.columns] * np.maximum(worth[self.lines], 1)
        whole = needed.sum() + (gains * most).sum() + (self.rooms * np.maximum(worth, 1)).sum()
        return min(_MOST_BITS, 60 - int(whole + worth.sum()).bit_length())

    def needed(self, columns: np.ndarray) -> np.ndarray:
        """Return A x."""
        return summed(self.lines, self.numbers * columns[self.columns], len(self.rooms))

    def paid(self, thresholds: np.ndarray) -> np.ndarray:
        """Return y A."""
        return summed(self.columns, self.numbers * thresholds[self.lines], len(self.gains))

    def bounds(self, columns: np.ndarray, removed: np.ndarray, bits: int) -> PackingBounds:
        """Return what a guess proves: of x, and of r, in integers over 2^bits."""
        exact = self if bits <= self.bits else self.wide
        kind, one, top = exact.most.dtype, 1 << bits, self.threshold.numerator
        low = Fraction(exact.lower(columns.astype(kind), one), one) + self.known
        parts = np.clip(removed.astype(kind), 0, one)
        left = Fraction(exact.left(parts, one), one) + self.known
        gone = Fraction(int(parts.sum()), one)
        stays, taken = left / self.threshold.denominator, np.asarray(parts / one, float)
        return PackingBounds(low / top, left / top + gone, stays, gone, taken)

    def lower(self, columns: np.ndarray, one: int) -> int:
        """Return a lower bound of E, from x; both over `one`."""
        columns = np.clip(columns, 0, self.most * one)
        over = np.maximum(self.needed(columns) - self.rooms * one, 0)
        return int((self.gains * columns).sum() - (self.worth * over).sum())

    def left(self, removed: np.ndarray, one: int) -> int:
        """Return what a removal leaves; both over `one`."""
        thresholds = np.zeros(len(self.rooms), removed.dtype)
        thresholds[: self.people] = removed
        start = self.people
        for end in self.blocks:
            gains = self.gains * one - self.paid(thresholds)
            own = np.flatnonzero((self.lines >= start) & (self.lines < end) & (self.numbers == 1))
            np.maximum.at(thresholds, self.lines[own], gains[self.columns[own]])
            start = end
        gains = np.maximum(self.gains * one - self.paid(thresholds), 0)
        kept = self.rooms[self.people :] * thresholds[self.people :]
        return int(kept.sum() + (self.most * gains).sum())


def summed(indexes: np.ndarray, column: np.ndarray, size: int) -> np.ndarray:
    """Return the sums of integers of any size by index, 0 to before `size`.

    They are known to fit: `integers.sums_at`, which looks, makes a search a quarter slower.
    """
    sums = np.zeros(size, column.dtype)
    np.add.at(sums, indexes, column)
    return sums


def of_rows(
    threshold: Fraction,
    owners: np.ndarray,
    weights: np.ndarray,
    values: np.ndarray,
    free: np.ndarray,
) -> Packing:
    """Return the program of the most that rows of one value pack, the value chosen by parts.

        max { sum of u_t + sum of f_v l_v : 0 <= u_t <= w_t l_v for each row t of v,
              sum of l_v <= 1, sum of u_t over the rows of i <= D for each person i }.

    Lines are people, rows, and one for all values; the threshold of the last one is the most that a
    removal leaves of a value. Of one value alone l is 1, and no line but those of people is needed.

    Args:
        threshold: D; everything is counted in its denominator.
        owners: shape (rows, roles): people from 0, each once in a row; -1 where there are fewer.
        weights: w_t, at least 1.
        values: the value of each row.
        free: f_v.
    """
    top, parts = threshold.as_integer_ratio()
    factor, rows, size = np.array([parts]), len(values), len(free)
    room, free = integers.product(weights, factor), integers.product(free, factor)
    most = np.minimum(room, top)
    if size == 1:
        return _packing(threshold, owners, most, known=int(free[0]))
    own, ones = np.arange(rows), np.ones(size, np.int64)
    total = max(integers.add(free, integers.sums_at(values, room, size)).tolist())
    people = int(owners.max(initial=-1)) + 1
    return _packing(
        threshold,
        owners,
        most,
        columns=np.concatenate([own, rows + values, np.arange(rows, rows + size)]),
        lines=people + np.concatenate([own, own, np.full(size, rows)]),
        numbers=integers.concatenate([np.ones(rows, np.int64), -room, ones]),
        gains=free,
        rooms=np.append(0 * own, 1),
        most=ones,
        worth=integers.concatenate([0 * own + 1, integers.alone(total)]),
        column_sizes=ones,
        line_sizes=np.append(np.full(rows, top), 1),
        blocks=(people + rows, people + rows + 1),
    )


def of_values(
    threshold: Fraction, owners: np.ndarray, values: np.ndarray, weights: np.ndarray, known: int = 0
) -> Packing:
    """Return the program of the most that rows pack where those of a value share a room.

        max { sum of u_t : 0 <= u_t, sum of u_t over the rows of v <= w_v for each value v,
                           sum of u_t over the rows of i <= D for each person i }.

    Args:
        threshold: D; everything is counted in its denominator.
        owners: shape (rows, roles): people from 0, each once in a row; -1 where there are fewer.
        values: the value of each row, numbered from 0.
        weights: w_v.
        known: what else counts in full.
    """
    top, parts = threshold.as_integer_ratio()
    people, size, rows = int(owners.max()) + 1, len(weights), len(values)
    rooms = weights * parts
    return _packing(
        threshold,
        owners,
        np.minimum(rooms[values], top),
        columns=np.arange(rows),
        lines=people + values,
        numbers=np.ones(rows, np.int64),
        rooms=rooms,
        worth=np.ones(size, np.int64),
        line_sizes=np.full(size, top),
        blocks=(people + size,),
        known=known * parts,
        is_flow=owners.shape[1] == 1,
    )


def _packing(threshold: Fraction, owners: np.ndarray, limit: np.ndarray, **more: Any) -> Packing:
    """Return the program of rows that gain 1 each, with lines for people, and what is behind."""
    top, rows, people = threshold.numerator, len(limit), int(owners.max(initial=-1)) + 1
    row, role = np.nonzero(owners >= 0)
    own = {
        "columns": row,
        "lines": owners[row, role],
        "numbers": np.ones(len(row), np.int64),
        "gains": np.ones(rows, np.int64),
        "rooms": np.full(people, top),
        "most": limit,
        "worth": np.ones(people, np.int64),
        "column_sizes": np.full(rows, top),
        "line_sizes": np.full(people, top),
    }
    joined: dict[str, Any] = {
        name: integers.concatenate([part, more.pop(name, part[:0])]) for name, part in own.items()
    }
    return Packing(threshold=threshold, people=people, **joined, **more)


def guess(packing: Packing) -> tuple[np.ndarray, np.ndarray]:
    """Return x and r, whole numbers: the best where no number is too large for the solver.

    Args:
        packing: a flow, whose columns are different.
    """
    people, rows = packing.people, len(packing.most)
    ends = np.empty((2, rows), np.int64)
    of_value = packing.lines >= people
    ends[of_value.astype(int), packing.columns] = packing.lines - people * of_value
    rooms = packing.rooms
    flow, missed = largest_flow((ends[0], ends[1]), packing.most, rooms[:people], rooms[people:])
    return flow, missed.astype(np.int64)


_CHECKED_EVERY = 20  # steps between two checks
_ENOUGH, _SOME, _LONG = 0.2, 0.8, 0.36  # when to begin again, as in that article


class PackingProposals:
    """Guesses that come closer, of x and y, counted in the sizes of columns and lines."""

    def __init__(self, packing: Packing) -> None:
        """Begin with nothing packed and nobody removed."""
        from scipy import sparse

        self.packing = packing
        columns, lines = packing.column_sizes.astype(float), packing.line_sizes.astype(float)
        threshold = float(packing.threshold.numerator)
        entries = packing.numbers.astype(float) * columns[packing.columns] / lines[packing.lines]
        shape = len(lines), len(columns)
        self._matrix = sparse.csr_matrix((entries, (packing.lines, packing.columns)), shape)
        self._turned = self._matrix.T.tocsr()
        self._gains, self._rooms = packing.gains * columns / threshold, packing.rooms / lines
        self._most = np.full(len(columns), np.inf) if packing.blocks else packing.most / columns
        self._worth = packing.worth * lines / threshold
        self._of_column, self._of_line = (
            1 / np.maximum(abs(matrix).sum(axis=1).A1, 1e-9)
            for matrix in (self._turned, self._matrix)
        )
        size = np.linalg.norm(np.append(self._rooms, packing.most / columns))
        self._weight = float(np.linalg.norm(self._gains) / size)

    def bounds(self, steps: int) -> Iterator[PackingBounds]:
        """Yield what guesses prove until so many steps are done."""
        state = begin = np.zeros(len(self._most)), np.zeros(len(self._rooms))
        sums, count, first, last = [np.zeros_like(part) for part in state], 0, math.inf, math.inf
        for step in range(1, steps + 1):
            state, count = self._step(*state), count + 1
            for total, part in zip(sums, state, strict=True):
                total += part
            if step % _CHECKED_EVERY:
                continue
            mean = sums[0] / count, sums[1] / count
            found = [(self._proved(*each), each) for each in (state, mean)]
            yield from (bounds for bounds, _ in found)
            gaps = [float(bounds.high - bounds.low) for bounds, _ in found]
            gap = min(gaps)
            best = found[gaps.index(gap)][1]
            first = gap if math.isinf(first) else first
            falls = gap <= last
            soon = gap <= _ENOUGH * first or (gap <= _SOME * first and not falls)
            if soon or count >= _LONG * step:
                self._reweigh(begin, best)
                state = begin = best
                sums, count, first = [np.zeros_like(part) for part in best], 0, gap
            last = gap

    def _step(self, columns: np.ndarray, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rise = self._of_column / self._weight * (self._gains - self._turned @ thresholds)
        new = np.clip(columns + rise, 0, self._most)
        spare = self._rooms - self._matrix @ (2 * new - columns)
        return new, np.clip(thresholds - self._weight * self._of_line * spare, 0, self._worth)

    def _reweigh(self, old: tuple[np.ndarray, ...], new: tuple[np.ndarray, ...]) -> None:
        """Balance the steps of both sides by how far they went."""
        columns, thresholds = (float(np.linalg.norm(b - a)) for a, b in zip(old, new, strict=True))
        if columns > 1e-12 and thresholds > 1e-12:
            self._weight = math.sqrt(self._weight * thresholds / columns)

    def _proved(self, columns: np.ndarray, thresholds: np.ndarray) -> PackingBounds:
        """Return the bounds of a guess, or of its removal scaled until somebody is removed whole.

        So a removal that is too small, but in the right proportions, is mended in one step.
        """
        packing, removed = self.packing, thresholds[: self.packing.people]
        bits = max(packing.bits, 0)
        stretched = removed / max(float(removed.max(initial=0)), 1e-300)
        packed = np.floor(np.ldexp(columns * packing.column_sizes, bits)).astype(np.int64)
        found = [
            packing.bounds(packed, np.ceil(np.ldexp(parts, bits)).astype(np.int64), bits)
            for parts in (removed, stretched)
        ]
        return min(found, key=lambda bounds: bounds.high)


_OPTIONS: dict[str, Any] = {
    "output_flag": False,
    "threads": 1,
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
    "ipm_iteration_limit": 200,
}
SOLVERS = "simplex", "ipx"
"""They are asked in turn, until one finds the best: with twice the pivots in each turn."""
_PIVOTS, _MOST_PIVOTS = 200_000, (1 << 31) - 1
_MORE = 30  # bits that a round adds
_FLOATS = 52  # bits of a float
_FAR = 2.0**33  # what is further is no solution: it would take many rounds to take it back


class _Refined:
    """A solution in integers over 2^bits, and the program of what is missing.

    What is left to each line is a column too.

    Attributes:
        columns: x.
        spare: what is left to each line.
        thresholds: the threshold of each line.
        scale: the numbers of the next program are multiplied by 2^scale.
        bits: the precision.
    """

    def __init__(self, program: Packing) -> None:
        import highspy

        self._highs: Any = highspy
        self._program = program
        self.columns = np.zeros(len(program.gains), object)
        self.spare, self.thresholds = (np.zeros(len(program.rooms), object) for _ in range(2))
        self.scale, self.bits = 0, _FLOATS
        self._basis: Any = None

    def round(self, solver: str, pivots: int) -> bool:
        """Add a solution of what is missing; return whether HiGHS holds it to be the best."""
        more = self.scale + _FLOATS - self.bits
        self.columns, self.spare, self.thresholds = (
            numbers << more for numbers in (self.columns, self.spare, self.thresholds)
        )
        self.bits += more
        asked = self._highs.Highs()
        options = {**_OPTIONS, "solver": solver, "simplex_iteration_limit": pivots}
        for name, option in options.items():
            asked.setOptionValue(name, option)
        asked.passModel(self._missing())
        if self._basis is not None:
            asked.setBasis(self._basis)
        asked.run()
        found, program, size = asked.getSolution(), self._program, len(self.columns)
        numbers = np.abs(np.append(found.col_value, found.row_dual))
        if found.value_valid and found.dual_valid and bool((numbers <= _FAR).all()):
            columns = _whole(found.col_value)
            self.columns = self.columns + columns[:size] * program.column_sizes
            self.spare = self.spare + columns[size:] * program.line_sizes
            thresholds = _whole(found.row_dual) * program.threshold.numerator
            self.thresholds = self.thresholds - thresholds // program.line_sizes
            self._basis = asked.getBasis()
        return bool(asked.getModelStatus() == self._highs.HighsModelStatus.kOptimal)

    def _missing(self) -> Any:
        """Return the program of what is missing, for HiGHS."""
        asked, size, line_count = self._program, len(self.columns), len(self.thresholds)
        columns, lines = asked.column_sizes.astype(float), asked.line_sizes.astype(float)
        gains = self._seen(asked.gains * (1 << self.bits) - asked.paid(self.thresholds))
        most = np.full(size, np.inf)
        if not asked.blocks:
            most = self._seen(asked.most * (1 << self.bits) - self.columns) / columns
        left = asked.rooms * (1 << self.bits) - asked.needed(self.columns) - self.spare
        sizes = np.append(columns, lines)
        program = self._highs.HighsLp()
        program.num_col_, program.num_row_ = size + line_count, line_count
        costs = np.append(-gains, self._seen(self.thresholds))
        program.col_cost_ = costs * sizes / asked.threshold.numerator
        program.col_lower_ = -self._seen(np.append(self.columns, self.spare)) / sizes
        program.col_upper_ = np.append(most, np.full(line_count, np.inf))
        program.row_lower_ = program.row_upper_ = self._seen(left) / lines
        order = np.argsort(asked.columns, kind="stable")
        counts = np.append(np.bincount(asked.columns, minlength=size), np.ones(line_count, int))
        numbers = asked.numbers.astype(float) * columns[asked.columns] / lines[asked.lines]
        matrix = program.a_matrix_
        matrix.format_ = self._highs.MatrixFormat.kColwise
        matrix.start_ = np.append(0, np.cumsum(counts)).astype(np.int32)
        matrix.index_ = np.append(asked.lines[order], np.arange(line_count)).astype(np.int32)
        matrix.value_ = np.append(numbers[order], np.ones(line_count))
        return program

    def _seen(self, numbers: np.ndarray) -> np.ndarray:
        """Return integers over 2^bits, times the scale, as floats."""
        return np.ldexp(numbers.astype(np.float64), self.scale - self.bits)


def _whole(numbers: Sequence[float]) -> np.ndarray:
    """Return what floats of the scaled program are in integers over 2^bits."""
    scaled = np.rint(np.ldexp(np.array(numbers), _FLOATS))
    return np.array([int(number) for number in scaled.tolist()], object)


def refined(packing: Packing) -> Iterator[PackingBounds]:
    """Yield bounds by HiGHS, as close as one likes.

    The first ones are by "ipx", which is quick where many values are nearly equal.
    """
    found, asked = _Refined(packing.wide), 1
    while True:
        turn, solver = divmod(asked, len(SOLVERS))
        is_best = found.round(SOLVERS[solver], min(_PIVOTS << turn, _MOST_PIVOTS))
        yield packing.bounds(found.columns, found.thresholds[: packing.people], found.bits)
        found.scale += _MORE if is_best else 0
        asked = 0 if is_best else asked + 1


_SMALL = 30_000  # rows of a program that HiGHS is asked for first
_ROWS = 3_000_000  # and of one that it is asked for soon
_FEW, _MANY = 1_000, 20_000  # steps of the first-order method before HiGHS has its turn


def bounds(packing: Packing) -> Iterator[PackingBounds]:
    """Yield bounds: of a flow where rows have one owner, then of HiGHS.

    Large programs of several owners have a first-order method before.
    """
    if packing.is_flow:
        yield packing.bounds(*guess(packing), 0)
    elif len(packing.gains) > _SMALL:
        steps = _FEW if len(packing.gains) <= _ROWS else _MANY
        yield from PackingProposals(packing).bounds(steps)
    yield from refined(packing)


PARTS = 32
EDGE = Fraction(4142, 10_000) + Fraction(int(Noise().words(1)[0]), 10_000 << 64)
"""c."""


def cell(thresholds: Fraction) -> int:
    """Return q of a value that is so many thresholds."""
    return math.ceil(thresholds * PARTS - EDGE)


class CellSearch:
    """Bounds of E / D, which come closer until one cell is left.

    Attributes:
        known: what it began with.
        low: the lowest cell that is left.
        high: the highest.
        least: the highest lower bound that is known.
        best: what is known with the least upper bound.
    """

    def __init__(self, known: PackingBounds, bounds: Iterator[PackingBounds]) -> None:
        """Begin with what is known.

        Args:
            known: bounds of E / D.
            bounds: others, which come as close as one likes.
        """
        self._bounds, self.known, self.best, self.least = bounds, known, known, known.low
        self.low, self.high = cell(known.low), cell(known.high)

    def step(self) -> None:
        """Take the bounds of one guess more."""
        found = next(self._bounds)
        if found.high < self.best.high:
            self.best, self.high = found, cell(found.high)
        self.least = max(self.least, found.low)
        self.low = cell(self.least)

    def decided(self) -> int:
        """Return the only cell."""
        while self.low < self.high:
            self.step()
        return self.high
