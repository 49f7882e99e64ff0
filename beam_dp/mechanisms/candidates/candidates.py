"""The finite public set Y of values that a release may have, and rounding up onto it.

The candidates *are* the values that they emit: comparisons with data are exact (Python compares
int, float and Fraction without rounding), so no rounding can move a person's loss. They are
computed, or listed in rising order: a class for each way.
"""

import abc
import bisect
import dataclasses
import decimal
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.integers import EXACT, WIDE, Number, is_nan

Floats = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.int64]
MATERIALISED = 2**22  # most values of a geometric grid, which is held in memory


def _plain(subject: str, name: str, value: object) -> Number:
    """Return a finite real number as a Python int, float or Fraction of the same value."""
    exact = checks.number(subject, name, value)
    if isinstance(value, (float, np.floating)):
        return float(value) + 0.0  # -0.0 becomes 0.0
    return exact.numerator if exact.denominator == 1 and type(value) is not Fraction else exact


def _are_ints(values: Iterable[object]) -> bool:
    return all(isinstance(value, (int, np.integer)) for value in values)


def _logarithm(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


class Candidates(abc.ABC):
    """The sorted, public, finite set of values that a release may have.

    They must not be chosen by looking at the data: the privacy proofs hold for a fixed set.
    A statistic is always rounded up onto them; what lies above the top becomes the top.
    Build them by `Candidates.linear`, `Candidates.geometric` or `Candidates.of`. `len` works up to
    `sys.maxsize`; `size` always does.
    """

    slots: ClassVar[int] = 1

    def __new__(cls, *given: object, **named: object) -> Self:
        """Refuse values: there is a class for each kind of them."""
        if cls is not Candidates:
            return super().__new__(cls)
        raise checks.ParameterTypeError(
            "Candidates",
            "points",
            "be made by Candidates.of(values), Candidates.linear(low, high, step) or "
            f"Candidates.geometric(low, high, ratio), not {', '.join(map(checks.shown, given))}",
        )

    @staticmethod
    def linear(low: object, high: object, step: object) -> "Candidates":
        """Return low, low + step, low + 2 step, ... up to `high`.

        Floats are read as the decimals that they print as, so that 0.3 comes out as 0.3 and
        `linear(0, 1, 0.1)` has 11 values. Three ints give ints of any size; else floats come out.
        `high` is the last value if it is on the grid; otherwise the last one is below it.

        Args:
            low: the smallest candidate.
            high: no candidate is larger.
            step: the distance of neighbours. A small one costs no time and little accuracy (the
                shift of a search grows like the logarithm of the size).

        Raises:
            ValueError: if step <= 0, high < low, or neighbours would round to the same float.
        """
        subject = "Candidates.linear"
        named = {"low": low, "high": high, "step": step}
        first, last, distance = (checks.decimal(subject, *each) for each in named.items())
        whole = _are_ints(named.values())
        checks.require(distance > 0, subject, "step", f"be above 0, not {checks.shown(step)}")
        rule = f"be at least low={checks.shown(low)}, not {checks.shown(high)}"
        checks.require(last >= first, subject, "high", rule)
        size = (last - first) // distance + 1
        if not whole:
            _require_floats(subject, max(abs(first), abs(last)), distance if size > 1 else None)
        divisor = math.lcm(first.denominator, distance.denominator)
        return LinearGrid(int(first * divisor), int(distance * divisor), divisor, size, whole)

    @staticmethod
    def geometric(low: object, high: object, ratio: object) -> "Candidates":
        """Return low, low ratio, low ratio^2, ... below `high`, and `high` itself as the last.

        Three ints give exact ints; otherwise products of 50 decimal digits are rounded to floats
        (values that round to the same float are one candidate), the same on every machine.

        Args:
            low: the smallest candidate, above 0.
            high: the largest candidate.
            ratio: of neighbours; rounding onto the grid adds up to ratio - 1 of the value.

        Raises:
            ValueError: if low <= 0, ratio <= 1, high < low, or there were more than 2^22 values.
        """
        subject = "Candidates.geometric"
        named = {"low": low, "high": high, "ratio": ratio}
        first, last, factor = (checks.decimal(subject, *each) for each in named.items())
        checks.require(first > 0, subject, "low", f"be above 0, not {checks.shown(low)}")
        rule = f"be at least low={checks.shown(low)}, not {checks.shown(high)}"
        checks.require(last >= first, subject, "high", rule)
        checks.require(factor > 1, subject, "ratio", f"be above 1, not {checks.shown(ratio)}")
        spread = _logarithm(last) - _logarithm(first)
        finest = spread / MATERIALISED
        least = f"{1 + 1.01 * finest} for at most {MATERIALISED} values"
        checks.require(
            math.log1p(float(min(factor - 1, Fraction(10**300)))) >= finest,
            subject,
            "ratio",
            f"be at least {least}, not {checks.shown(ratio)}",
        )
        if _are_ints(named.values()):
            return GivenGrid(_whole_powers(int(first), int(last), int(factor)))
        _require_floats(subject, last, None)
        return GivenGrid(_float_powers(first, last, factor))

    @staticmethod
    def of(values: Iterable[object]) -> "Candidates":
        """Return the given finite numbers, sorted, each once.

        Raises:
            ValueError: if there is none, or one is NaN or infinite.
            TypeError: if one is not an int, a float or a Fraction (bool and str are refused).
        """
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise checks.ParameterTypeError(
                "Candidates.of", "values", f"be a list of numbers, not {checks.shown(values)}"
            )
        points = {_plain("Candidates.of", "values", value) for value in values}
        checks.require(bool(points), "Candidates.of", "values", "have at least one number")
        return GivenGrid(tuple(sorted(points)))

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """The number of candidates, which may exceed 2^63."""

    @property
    def gap(self) -> Fraction:
        """The least distance of two neighbours, about; 0 for a single one, and on default grids."""
        return Fraction(0)

    @abc.abstractmethod
    def mirrored(self) -> "Candidates":
        """Return the candidates with the opposite sign, in rising order."""

    @abc.abstractmethod
    def _value(self, i: int) -> Number:
        """Return the candidate of an index from 0 on."""

    @abc.abstractmethod
    def _index(self, value: Number) -> int:
        """Return `index` of a value from the lowest to the highest candidate."""

    def _indexes(self, values: Floats | Indexes) -> Indexes | None:
        """Return `index` of each value; None where that takes one by one."""
        return None

    def weight_before(self, indexes: Indexes) -> Indexes:
        """Return the weight of all candidates before each index, from 0 to `size`.

        It is public: how likely each one is where data say nothing (see `CentralSearch`). Decimals
        weigh by the logarithm; all others weigh 1.
        """
        return indexes

    def index_at(self, weight: int) -> int:
        """Return the index of the candidate that a weight from 0 on falls on."""
        return weight

    def slots_before(self, indexes: Indexes) -> Indexes:
        """Return how many slots are before each index: `slots` count as one candidate of a scan."""
        return indexes

    def index_of_slot(self, slot: int) -> int:
        """Return the index of the candidate that a slot from 0 on belongs to."""
        return slot

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Number]:
        return (self._value(i) for i in range(self.size))

    def __getitem__(self, i: int) -> Number:
        if not -self.size <= i < self.size:
            raise IndexError(f"Candidates: index must be below {self.size}, not {i}.")
        return self._value(i % self.size)

    def __repr__(self) -> str:
        return f"Candidates({self.size} values from {self[0]} to {self[-1]})"

    def index(self, value: Number) -> int:
        """Return the first i with candidate i >= `value`; `size` above the top (or for NaN)."""
        plain = value.item() if isinstance(value, np.generic) else value
        if is_nan(plain):
            return self.size
        if not plain > self[0]:
            return 0
        return self.size if plain > self[-1] else self._index(plain)

    def indexes(self, values: npt.ArrayLike) -> Indexes:
        """Return `index` of each value; exact for ints and floats of any size.

        Edge cases: NaN counts as above the top.

        Raises:
            ValueError: if there are 2^62 candidates or more (their indexes do not fit).
        """
        checks.require(self.size < WIDE, "Candidates.indexes", "size", "be below 2**62")
        array = np.asarray(values)
        if array.dtype in (np.float16, np.float32):
            array = array.astype(np.float64)
        elif array.dtype.kind in "iu" and array.dtype != np.uint64:
            array = array.astype(np.int64)
        indexes = self._indexes(array) if array.dtype in (np.float64, np.int64) else None
        if indexes is not None:
            return indexes
        return np.array([self.index(v) for v in array.ravel()], np.int64).reshape(array.shape)

    def nearest(self, value: Number) -> Number:
        """Return the candidate nearest to a finite value; of two equally near ones the higher."""
        above = min(self.index(value), self.size - 1)
        below = max(0, above - 1)
        closer = Fraction(value) - Fraction(self[below]) < Fraction(self[above]) - Fraction(value)
        return self[below] if closer else self[above]


class ListedGrid(Candidates):
    """Values that are held in memory, and beside each the largest float that it is not below."""

    @property
    @abc.abstractmethod
    def floors(self) -> Floats:
        """Per value c the largest float <= c: for a float v, c >= v iff that float is >= v."""

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.floors)

    @property
    def gap(self) -> Fraction:
        """The least distance of two neighbours, in floats."""
        return Fraction(float(np.diff(self.floors).min())) if self.size > 1 else Fraction(0)

    def _value(self, i: int) -> Number:
        return float(self.floors[i])

    def _index(self, value: Number) -> int:
        return bisect.bisect_left(self.floors, value, key=float)

    def _indexes(self, values: Floats | Indexes) -> Indexes | None:
        """Return `index` of each value, `size` above the top; None for ints that are no floats."""
        whole = values.dtype.kind != "f"
        if whole and values.size and (values.max() > EXACT or values.min() < -EXACT):
            return None
        return np.asarray(np.searchsorted(self.floors, values.astype(np.float64)), np.int64)


@dataclass(frozen=True, repr=False)
class GivenGrid(ListedGrid):
    """Given values, of any type and size."""

    values: tuple[Number, ...]

    def __reduce__(self) -> tuple[object, ...]:
        return GivenGrid, (self.values,)  # without the cached array

    def mirrored(self) -> "GivenGrid":
        """Return the values with the opposite sign, in rising order."""
        return GivenGrid(tuple(0 - value for value in reversed(self.values)))

    def _value(self, i: int) -> Number:
        return self.values[i]

    def _index(self, value: Number) -> int:
        return bisect.bisect_left(self.values, value)

    @cached_property
    def floors(self) -> Floats:
        """Per value c the largest float <= c."""
        return np.array([_float_below(value) for value in self.values], dtype=np.float64)


def _float_below(point: Number) -> float:
    """Return the largest float that is at most `point`."""
    if point > sys.float_info.max:
        return sys.float_info.max
    if point < -sys.float_info.max:
        return -math.inf
    nearest = float(point)
    return nearest if nearest <= point else math.nextafter(nearest, -math.inf)


@dataclass(frozen=True, repr=False)
class LinearGrid(Candidates):
    """The values (start + i stride) / divisor for i = 0..count-1, never materialised."""

    start: int
    stride: int
    divisor: int
    count: int
    whole: bool

    @property
    def size(self) -> int:
        """The number of values."""
        return self.count

    @property
    def gap(self) -> Fraction:
        """The distance of two neighbours."""
        return Fraction(self.stride, self.divisor)

    def mirrored(self) -> "LinearGrid":
        """Return the values with the opposite sign, in rising order."""
        return dataclasses.replace(self, start=-(self.start + (self.size - 1) * self.stride))

    def _value(self, i: int) -> int | float:
        # int / int is correctly rounded in Python, hence monotone in i.
        numerator = self.start + i * self.stride
        return numerator if self.whole else numerator / self.divisor

    def _index(self, value: Number) -> int:
        over, under = value.as_integer_ratio()
        exact = -((self.start * under - over * self.divisor) // (self.stride * under))
        return _first_near(self, exact, value)

    def _indexes(self, values: Floats | Indexes) -> Indexes | None:
        """Return `index` of each value, or None where float64 is too small for it."""
        magnitude = max(abs(self.start), abs(self.start + self.size * self.stride))
        if max(magnitude, self.divisor) >= EXACT:
            return None
        # Numerators and divisor are below 2^53, so numpy's division rounds as __getitem__ does.
        # An int above 2^53 may round, but stays above the top (which is below 2^53).
        beyond = math.nextafter(self[self.size - 1], math.inf)
        inside = np.fmax(np.fmin(values.astype(np.float64), beyond), float(self[0]))
        guess = np.ceil((inside * self.divisor - self.start) / self.stride) - 4
        # The guess is at most 4 off.
        first: Indexes = np.clip(guess, 0, self.size).astype(np.int64)
        while True:
            emitted = (self.start + first * self.stride) / self.divisor
            low = (first < self.size) & (emitted < inside)
            if not low.any():
                return first
            first += low


@dataclass(frozen=True, repr=False)
class RoundedGrid(Candidates):
    """All multiples of 1/divisor up to `top` / divisor that have at most `bits` significant bits.

    Neighbours differ by 1/divisor at first, then by 2^(1 - bits) of their size at most: a grid for
    numbers of any magnitude. The first 2^bits indexes are the integers below 2^bits; every
    2^(bits - 1) further ones are the mantissas from 2^(bits - 1) on, times the next power of two.
    None of them is materialised.
    """

    divisor: int
    top: int
    bits: int
    negative: bool = False  # all with the opposite sign

    @property
    def size(self) -> int:
        """The number of values."""
        return self._place(self.top) + 1

    def mirrored(self) -> "RoundedGrid":
        """Return the values with the opposite sign, in rising order."""
        return dataclasses.replace(self, negative=not self.negative)

    def _value(self, i: int) -> int | float:
        if self.negative:
            return 0 - self.mirrored()[self.size - 1 - i]  # never -0.0
        half = 1 << (self.bits - 1)
        if i < 2 * half:
            numerator = i
        else:
            power, mantissa = divmod(i - 2 * half, half)
            numerator = (half + mantissa) << (power + 1)
        return numerator if self.divisor == 1 else numerator / self.divisor

    def _place(self, numerator: int) -> int:
        """Return the index of the first value of at least numerator / divisor, as a rational."""
        power = max(0, numerator.bit_length() - self.bits)
        mantissa = -(-numerator >> power)
        return mantissa if not power else mantissa + (power << (self.bits - 1))

    def _index(self, value: Number) -> int:
        over, under = value.as_integer_ratio()
        place = self._place(-(-abs(over) * self.divisor // under))
        return _first_near(self, self.size - 1 - place if self.negative else place, value)


def _first_near(grid: Candidates, i: int, value: Number) -> int:
    """Return the first index from which on emitted values are >= `value`, near to i.

    Emitted floats are rounded: a neighbour of the exact crossing may be the first.
    """
    while i > 0 and grid[i - 1] >= value:
        i -= 1
    while grid[i] < value:
        i += 1
    return i


def _require_floats(subject: str, largest: Fraction, step: Fraction | None) -> None:
    """Refuse a grid whose values overflow floats, or whose neighbours may be the same float."""
    checks.require(
        largest <= Fraction(sys.float_info.max),
        subject,
        "high and low",
        "be within the range of floats; three ints have no such limit",
    )
    # Two reals further apart than the spacing of floats never round to the same float.
    spacing = Fraction(math.ulp(float(largest)))
    checks.require(
        step is None or step > spacing,
        subject,
        "step",
        f"be above {float(spacing)}, the spacing of floats at the far end; three ints "
        "have no such limit",
    )


def _whole_powers(low: int, high: int, ratio: int) -> tuple[Number, ...]:
    values = []
    while low < high:
        values.append(low)
        low *= ratio
    return (*values, high)


def _float_powers(low: Fraction, high: Fraction, ratio: Fraction) -> tuple[Number, ...]:
    context = decimal.Context(prec=50, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    value, top, factor = (
        context.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator))
        for x in (low, high, ratio)
    )
    values = {float(high)}
    while value < top:
        values.add(float(value))
        value = context.multiply(value, factor)
    return tuple(sorted(values))
