"""The decimal numbers of few digits, of both signs: what people write is among them.

And the default candidates: the public outputs of a release whose user named none.
"""

import bisect
import dataclasses
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.candidates.candidates import (
    Candidates,
    Floats,
    Indexes,
    ListedGrid,
    RoundedGrid,
)
from beam_dp.mechanisms.numerics.integers import Number

_EXACT_POWER = 22  # 10^22 is a float; a product or quotient with it is rounded once
_ONE = 1 << 32  # the weight of an e-fold
_USUAL = 9  # values are mostly from 1 to 10^9
_STEPS = 1000


@dataclass(frozen=True, repr=False)
class DecimalGrid(ListedGrid):
    """0 and all +-m 10^e of at most `digits` digits, multiples of 10^low up to 10^(low + decades).

    Every value is the float nearest to its decimal, so a number that prints with so few digits
    comes out as itself. The grid is pickled as three numbers.

    *Weights.* Among the numbers of at most d digits, each weighs its distance to the next one over
    its own size; numbers of more digits weigh 0. The weight of a number is the mean of that over
    all d from 1 to `digits`. So every octave weighs about 2^32 ln 2, and round numbers much more
    than others: data of whole numbers have a median that is one. 0 weighs 2^32. Below 1 and from
    10^9 on, every decade has 10^(-1/3) of the weight of its neighbour nearer to these numbers: all
    that is near 0 weighs less than a usual decade, which matters for data on both sides of 0.
    Weights are integers, and sum up exactly.

    *Bounds.* Where they are known, the values are those between them, with the bounds. A user who
    knows bounds may mean magnitudes (0 to 10^6) or a narrow band (1,000,000 to 1,000,100): where
    both are known, from 1,000 to 10,000 even steps of a power of ten are added, and half of all
    weight is that of the logarithm, half that of the distance. Where one is known, all weight is
    that of the logarithm.

    Attributes:
        low: the power of ten of the least step.
        digits: how many digits a value has at most.
        decades: the largest value is 10^(low + decades).
        lower: no value is below; None: none is known.
        upper: no value is above; None: none is known.
    """

    low: int
    digits: int
    decades: int
    lower: Fraction | None = None
    upper: Fraction | None = None

    def mirrored(self) -> "DecimalGrid":
        """Return the values with the opposite sign, in rising order."""
        lower = None if self.upper is None else -self.upper
        upper = None if self.lower is None else -self.lower
        return dataclasses.replace(self, lower=lower, upper=upper)

    @property
    def floors(self) -> Floats:
        """The values."""
        return _grid(self)[0]

    @property
    def sums(self) -> Indexes:
        """The weight before each value, and that of all."""
        return _grid(self)[1]

    def weight_before(self, indexes: Indexes) -> Indexes:
        """Return the weight of all values before each index, from 0 to `size`."""
        return np.asarray(self.sums[indexes], np.int64)

    def index_at(self, weight: int) -> int:
        """Return the last index with at most this weight before it."""
        return int(np.searchsorted(self.sums, weight, side="right")) - 1


def _steps(bounded: DecimalGrid) -> tuple[Floats, Indexes]:
    """Return the even steps between two bounds, and how round each is; nothing without both."""
    lower, upper, power = bounded.lower, bounded.upper, bounded.low
    if lower is None or upper is None:
        return np.empty(0), np.empty(0, np.int64)
    while Fraction(10) ** (power + 1) * _STEPS <= upper - lower:
        power += 1
    step = Fraction(10) ** power
    counts = range(math.ceil(lower / step), math.floor(upper / step) + 1)
    counts = counts if len(counts) <= 10 * _STEPS else range(0)
    rounder = [sum(10**j for j in range(4) if count % 10**j == 0) for count in counts]
    return _scaled(np.array(counts, object), power), np.array(rounder, np.int64)


@functools.lru_cache(maxsize=32)
def _grid(grid: DecimalGrid) -> tuple[Floats, Indexes]:
    """Return the values in rising order, and the weight before each and that of all."""
    if grid.lower is None and grid.upper is None:
        return _whole(grid)
    every, sums = _grid(dataclasses.replace(grid, lower=None, upper=None))
    steps, rounder = _steps(grid)
    ends = [float(end) for end in (grid.lower, grid.upper) if end is not None]
    first = -math.inf if grid.lower is None else ends[0]
    last = math.inf if grid.upper is None else ends[-1]
    inside = every[(every >= first) & (every <= last)]
    values = np.asarray(np.unique(np.concatenate([inside, ends, steps])), np.float64)
    weights = np.ones(len(values), np.int64)  # every value has at least 1
    indexes = np.minimum(np.searchsorted(every, values), len(every) - 1)
    shared = every[indexes] == values
    parts = [(np.flatnonzero(shared), np.diff(sums)[indexes[shared]])]
    if len(steps):
        parts.append((np.searchsorted(values, steps), rounder))
    for where, amounts in parts:
        share = amounts / max(1.0, float(amounts.sum()))
        np.add.at(weights, where, np.floor(share * float(1 << 46)).astype(np.int64))
    return values, np.append(0, np.cumsum(weights))


def _whole(grid: DecimalGrid) -> tuple[Floats, Indexes]:
    """Return the values of a grid without bounds, and their weights."""
    values, weights, digits = [], [], grid.digits
    for mantissas, power in _positive(grid):
        values.append(_scaled(mantissas, grid.low + power))
        decade = grid.low + power + np.floor(np.log10(mantissas) + 1e-9)
        beyond = np.maximum(np.maximum(-decade, decade - _USUAL), 0)
        scale = (_ONE * 10.0 ** (-beyond / 3)).astype(np.int64)
        weights.append(np.maximum(scale * _roundness(mantissas, digits) // (digits * mantissas), 1))
    positive, each = np.concatenate(values), np.concatenate(weights)
    every = np.concatenate([-positive[::-1], [0.0], positive])
    return every, np.append(0, np.cumsum(np.concatenate([each[::-1], [_ONE], each])))


def _roundness(numbers: Indexes, digits: int) -> Indexes:
    """Return the sum of the steps of d digits that each number is on, for all d up to `digits`."""
    length = np.floor(np.log10(numbers) + 1e-9).astype(np.int64) + 1
    steps = [10 ** np.maximum(length - d, 0) for d in range(1, digits + 1)]
    parts = [np.where(numbers % step, 0, step) for step in steps]
    return np.asarray(np.sum(parts, axis=0), np.int64)


def _positive(grid: DecimalGrid) -> list[tuple[Indexes, int]]:
    """Return mantissas and powers of ten in rising order of their products."""
    digits, decades = grid.digits, grid.decades
    least, most = 10 ** (digits - 1), 10**digits
    full = np.arange(least, most, dtype=np.int64)
    begin = np.arange(1, most, dtype=np.int64)
    rest = [(full, power) for power in range(1, decades - digits + 1)]
    return [(begin, 0), *rest, (np.array([least]), decades - digits + 1)]


def _scaled(mantissas: npt.NDArray[Any], power: int) -> Floats:
    """Return the float nearest to each m 10^power."""
    small = mantissas.dtype == np.int64
    if small and abs(power) <= _EXACT_POWER:  # one operation on two floats, which is rounded once
        scale = 10.0 ** abs(power)
        return np.asarray(mantissas * scale if power >= 0 else mantissas / scale, np.float64)
    exact = (Fraction(mantissa) * Fraction(10) ** power for mantissa in mantissas.tolist())
    return np.array([float(value) for value in exact], np.float64)


_FINER = 4
_PARTS = 10_000
"""A candidate of a finer grid has so many indexes at most, with those before it."""
_FINE_WEIGHT = 1 << 14  # above `_PARTS`: a part of the least weight is an integer


@dataclass(frozen=True, repr=False)
class FinerGrid(Candidates):
    """A decimal grid, and between its neighbours all numbers of up to four digits more.

    They count where so many people share the digits of the grid that ranks would be off by them.
    Each candidate of the grid and the numbers before it, since the candidate before, are a *cell*.
    A cell weighs what its candidate weighs in the grid: three quarters are the candidate's own, or
    all where there are no others, which share one quarter. So few people are searched as on the
    grid itself.

    No number is finer than 10^low. A cell has 10^4 indexes; where it has fewer numbers, the last
    ones have no weight. Between neighbours that are no power of ten apart there is nothing.

    Attributes:
        grid: the candidates that weigh most.
    """

    grid: DecimalGrid

    slots: ClassVar[int] = 4 * _PARTS

    @property
    def size(self) -> int:
        """The number of indexes."""
        return _PARTS * len(self.grid.floors)

    def mirrored(self) -> "FinerGrid":
        """Return the values with the opposite sign, in rising order."""
        return FinerGrid(self.grid.mirrored())

    def weight_before(self, indexes: Indexes) -> Indexes:
        """Return the weight of all values before each index, from 0 to `size`."""
        return self._before(indexes, self.grid.sums * _FINE_WEIGHT)

    def index_at(self, weight: int) -> int:
        """Return the index of the value that a weight falls on."""
        return self._at(weight, self.grid.index_at(weight // _FINE_WEIGHT), self.weight_before)

    def slots_before(self, indexes: Indexes) -> Indexes:
        """Return how many slots are before each index, from 0 to `size`: all cells have as many."""
        return self._before(indexes, np.arange(self.grid.size + 1) * self.slots)

    def index_of_slot(self, slot: int) -> int:
        """Return the index of a slot."""
        return self._at(slot, slot // self.slots, self.slots_before)

    def _before(self, indexes: Indexes, sums: Indexes) -> Indexes:
        """Return what is before each index, where so much is before each cell, and in all."""
        cells, places = np.divmod(indexes, _PARTS)
        inside = np.minimum(cells, self.grid.size - 1)
        parts = _cells(self.grid).parts[inside]
        last, whole = parts - 1, sums[inside + 1] - sums[inside]
        part = np.maximum(whole // (4 * parts), 1)
        own = np.where(places > last, whole - last * part, 0)
        return np.asarray(sums[cells] + np.minimum(places, last) * part + own, np.int64)

    def _at(self, amount: int, cell: int, before: Callable[[Indexes], Indexes]) -> int:
        """Return the index with the last beginning at or before an amount, of those in a cell."""
        first = cell * _PARTS
        indexes = np.arange(first, first + int(_cells(self.grid).parts[cell]))
        return int(indexes[0] + np.searchsorted(before(indexes), amount, side="right") - 1)

    def _value(self, i: int) -> Number:
        return float(self._values(np.array([i]))[0])

    def _values(self, indexes: Indexes) -> Floats:
        """Return the value of each index: the float nearest to its decimal."""
        cells, places = np.divmod(indexes, _PARTS)
        table = _cells(self.grid)
        parts, powers = table.parts[cells], table.powers[cells]
        mantissas = table.before[cells] * parts + np.minimum(places + 1, parts)
        up, down = (10.0 ** np.maximum(each, 0) for each in (powers, -powers))
        values = np.where(powers >= 0, mantissas * up, mantissas / down)
        return np.where(places + 1 >= parts, self.grid.floors[cells], values)

    def _index(self, value: Number) -> int:
        cell = self.grid.index(value)
        indexes = range(cell * _PARTS, cell * _PARTS + int(_cells(self.grid).parts[cell]))
        return indexes[bisect.bisect_left(indexes, value, key=self._value)]

    def _indexes(self, values: Floats | Indexes) -> Indexes | None:
        cells = self.grid._indexes(values)
        if cells is None:
            return None
        top = float(self.grid.floors[-1])
        inside = np.fmin(values.astype(np.float64), top)
        table, cell = _cells(self.grid), np.minimum(cells, self.grid.size - 1)
        parts, powers = table.parts[cell], table.powers[cell]
        up, down = (10.0 ** np.maximum(each, 0) for each in (powers, -powers))
        guess = np.ceil(inside / up * down - table.before[cell] * parts) - 2
        # The guess is at most 2 off.
        first = cell * _PARTS + np.clip(guess, 0, parts - 1).astype(np.int64)
        while (low := self._values(first) < inside).any():
            first += low
        return np.where(cells == self.grid.size, self.size, first)


def finer(candidates: Candidates) -> Candidates:
    """Return decimals with more digits, so that people of few values are not one; others as given."""
    return FinerGrid(candidates) if isinstance(candidates, DecimalGrid) else candidates


class _Cells(NamedTuple):
    """Of each cell: how many numbers it has, of which power of ten, and the mantissa before it.

    The j-th number, from 1 on, is (before * parts + j) 10^power.
    """

    parts: Indexes
    powers: Indexes
    before: Indexes


@functools.lru_cache(maxsize=16)
def _cells(grid: DecimalGrid) -> _Cells:
    gaps = np.diff(grid.floors, prepend=np.nan)
    steps = np.nan_to_num(np.rint(np.log10(gaps))).astype(np.int64)
    unit = 10.0**steps
    before = np.append(0.0, grid.floors[:-1]) / unit
    usual = np.abs(gaps / unit - 1) + np.abs(before - np.rint(before)) < 1e-6  # NaN: the first
    digits = np.where(usual, np.clip(steps - grid.low, 0, _FINER), 0)
    before = np.where(usual, np.rint(before), 0)
    return _Cells(10**digits, steps - digits, before.astype(np.int64))


VALUE_CLIPS = tuple(1 << power for power in range(84))
"""What a value, or a sum of a person's values, may be clipped at, in units: powers of two."""
_TOTAL_BITS = 17
_DIGITS, _DECADES = 4, 24


@functools.lru_cache(maxsize=16)
def default_totals(unit: Fraction) -> Candidates:
    """Return the outputs of a count or a sum: multiples of 1/d of at most 17 significant bits.

    They end at 2^63; neighbours differ by 1/d at first, then by at most 2^-16 of their size. d is
    the least whole number with 1/d at most the unit: a unit of 0.01 has multiples of itself, one of
    0.3 those of 1/4, and one of 5 those of 1.
    """
    divisor = max(1, math.ceil(1 / unit))
    return RoundedGrid(divisor, divisor << 63, _TOTAL_BITS)


@functools.lru_cache(maxsize=16)
def default_values(unit: Fraction) -> DecimalGrid:
    """Return the outputs of a statistic that is one of the values: decimals of 4 digits.

    They have both signs, and go from the largest power of ten that is at most the unit over 24
    decades: at the default unit of one millionth, from 0.000001 to 10^18. So 5, 7, 0.25 and years
    are among them, and come out as themselves; binary fractions of a decimal unit would pass over
    everybody who has such a number. Neighbours differ by 0.1% of their size at most. One digit more
    costs a search ln 10 / eps2, two people at epsilon 1; one digit less puts up to a fifth of all
    released maxima above all data.
    """
    low = 0
    while Fraction(10) ** low > unit:
        low -= 1
    while Fraction(10) ** (low + 1) <= unit:
        low += 1
    # Thirds of a unit need the digits behind it too; of 0.01, there is nothing behind.
    finer = 0 if Fraction(10) ** low == unit else _DIGITS - 1
    return DecimalGrid(low - finer, _DIGITS, _DECADES + finer)


@functools.lru_cache(maxsize=16)
def values_between(unit: Fraction, low: Fraction | None, high: Fraction | None) -> Candidates:
    """Return the outputs where bounds are known: see `DecimalGrid`.

    Args:
        unit: the grid of values.
        low: no value is below; None: none is known.
        high: no value is above, but above `low`; None: none is known.
    """
    return dataclasses.replace(default_values(unit), lower=low, upper=high)
