"""The finite public set Y of values that a release may have, and rounding up onto it.

The candidates *are* the values that they emit: comparisons with data are exact (Python compares
int, float and Fraction without rounding), so no rounding can move a person's loss.
"""

import decimal
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.candidates.grids import (
    GivenGrid,
    Indexes,
    LinearGrid,
    RoundedGrid,
    ValueGrid,
)
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.numbers import WIDE, Number, is_nan

MATERIALISED = 2**22  # most values of a geometric grid, which is held in memory


def _plain(owner: str, name: str, value: object) -> Number:
    """Return a finite real number as a Python int, float or Fraction of the same value."""
    exact = checks.number(owner, name, value)
    if isinstance(value, (float, np.floating)):
        return float(value) + 0.0  # -0.0 becomes 0.0
    return exact.numerator if exact.denominator == 1 and type(value) is not Fraction else exact


def _decimal(value: Number) -> Fraction:
    """Return the rational that was meant: 3/10 for 0.3, not the nearest binary fraction."""
    return Fraction(repr(value)) if type(value) is float else Fraction(value)


def _logarithm(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


@dataclass(frozen=True, repr=False)
class Candidates:
    """The sorted, public, finite set of values that a release may have.

    They must not be chosen by looking at the data: the privacy proofs hold for a fixed set.
    A statistic is always rounded up onto them; what lies above the top becomes the top.
    Build them by `Candidates.linear`, `Candidates.geometric` or `Candidates.of`. `len` works up to
    `sys.maxsize`; `size` always does.
    """

    points: ValueGrid

    def __post_init__(self) -> None:
        if not isinstance(self.points, ValueGrid):
            raise checks.ParameterTypeError(
                "Candidates",
                "points",
                "be made by Candidates.of(values), Candidates.linear(low, high, step) or "
                f"Candidates.geometric(low, high, ratio), not {checks.shown(self.points)}",
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
        owner = "Candidates.linear"
        plain = [_plain(owner, *pair) for pair in (("low", low), ("high", high), ("step", step))]
        whole = all(type(value) is int for value in plain)
        first, last, distance = map(_decimal, plain)
        checks.require(distance > 0, owner, "step", f"be above 0, not {step!r}")
        checks.require(last >= first, owner, "high", f"be at least low={low!r}, not {high!r}")
        size = (last - first) // distance + 1
        if not whole:
            _require_floats(owner, max(abs(first), abs(last)), distance if size > 1 else None)
        divisor = math.lcm(first.denominator, distance.denominator)
        return Candidates(
            LinearGrid(int(first * divisor), int(distance * divisor), divisor, size, whole)
        )

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
        owner = "Candidates.geometric"
        plain = [_plain(owner, *pair) for pair in (("low", low), ("high", high), ("ratio", ratio))]
        first, last, factor = map(_decimal, plain)
        checks.require(first > 0, owner, "low", f"be above 0, not {low!r}")
        checks.require(last >= first, owner, "high", f"be at least low={low!r}, not {high!r}")
        checks.require(factor > 1, owner, "ratio", f"be above 1, not {ratio!r}")
        spread = _logarithm(last) - _logarithm(first)
        finest = spread / MATERIALISED
        checks.require(
            math.log1p(float(min(factor - 1, Fraction(10**300)))) >= finest,
            owner,
            "ratio",
            f"be at least {1 + 1.01 * finest} for at most {MATERIALISED} values, not {ratio!r}",
        )
        if all(type(value) is int for value in plain):
            return Candidates(GivenGrid(_whole_powers(int(first), int(last), int(factor))))
        _require_floats(owner, last, None)
        return Candidates(GivenGrid(_float_powers(first, last, factor)))

    @staticmethod
    def rounded(high: object, bits: object, divisor: object = 1) -> "Candidates":
        """Return all multiples of 1/divisor from 0 to `high` of at most `bits` significant bits.

        Neighbours differ by 1/divisor at first, then by 2^(1 - bits) of their size at most: a grid
        for numbers of any magnitude that takes no memory. `rounded(2**64, 8)` has 7,425 values, all
        ints below 256 and others at most 0.8% apart: AboveThreshold has the shift 26 on it and 74
        on all ints up to 2^64 (epsilon 1), so the grid is better unless f loses less than 0.8% with
        74 people. To search such a grid first and then inside of one of its steps gains nothing in
        the worst case: ln N1 + ln N2 = ln N, and what a search costs beside ln N is paid twice.

        Args:
            high: an int; the largest candidate is the first such multiple of at least `high`.
            bits: of the mantissa, from 2 to 52.
            divisor: an int; 1 gives ints, every other divisor floats.

        Raises:
            TypeError, ValueError: for other types, or values out of range.
        """
        owner = "Candidates.rounded"
        top = checks.positive_integer(owner, "high", high)
        digits = checks.positive_integer(owner, "bits", bits)
        parts = checks.positive_integer(owner, "divisor", divisor)
        checks.require(2 <= digits <= 52, owner, "bits", f"be from 2 to 52, not {digits}")
        _require_floats(owner, Fraction(top), None)
        return Candidates(RoundedGrid(parts, top * parts, digits))

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
        return Candidates(GivenGrid(tuple(sorted(points))))

    @property
    def size(self) -> int:
        """The number of candidates, which may exceed 2^63."""
        return self.points.size

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Number]:
        return iter(self.points)

    def __getitem__(self, i: int) -> Number:
        if not -self.size <= i < self.size:
            raise IndexError(f"Candidates: index must be below {self.size}, not {i}.")
        return self.points[i % self.size]

    def __repr__(self) -> str:
        return f"Candidates({self.size} values from {self[0]} to {self[-1]})"

    def mirrored(self) -> "Candidates":
        """Return the candidates with the opposite sign, in rising order."""
        grid = self.points.mirrored()
        return self if grid is self.points else Candidates(grid)

    def weight_before(self, indexes: Indexes) -> Indexes:
        """Return the weight of all candidates before each index, from 0 to `size`.

        It is public: how likely each one is where data say nothing (see `CentralSearch`). Decimals
        weigh by the logarithm; all others weigh 1.
        """
        return self.points.weight_before(indexes)

    def index_at(self, weight: int) -> int:
        """Return the index of the candidate that a weight from 0 on falls on."""
        return self.points.index_at(weight)

    def index(self, value: Number) -> int:
        """Return the first i with candidate i >= `value`; `size` above the top (or for NaN)."""
        plain = value.item() if isinstance(value, np.generic) else value
        if is_nan(plain):
            return self.size
        if not plain > self[0]:
            return 0
        return self.size if plain > self[-1] else self.points.index(plain)

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
        indexes = self.points.indexes(array) if array.dtype in (np.float64, np.int64) else None
        if indexes is not None:
            return indexes
        return np.array([self.index(v) for v in array.ravel()], np.int64).reshape(array.shape)

    def round_up(self, values: Iterable[Number]) -> list[Number]:
        """Return the smallest candidate >= each value; values above the top become the top."""
        top = self.size - 1
        return [self[min(self.index(value), top)] for value in values]

    @property
    def gap(self) -> Fraction:
        """The least distance of two neighbours, about; 0 for a single candidate."""
        return self.points.gap

    def nearest(self, value: Number) -> Number:
        """Return the candidate nearest to a finite value; of two equally near ones the higher."""
        above = min(self.index(value), self.size - 1)
        below = max(0, above - 1)
        closer = Fraction(value) - Fraction(self[below]) < Fraction(self[above]) - Fraction(value)
        return self[below] if closer else self[above]


def _require_floats(owner: str, largest: Fraction, step: Fraction | None) -> None:
    """Refuse a grid whose values overflow floats, or whose neighbours may be the same float."""
    checks.require(
        largest <= Fraction(sys.float_info.max),
        owner,
        "high and low",
        "be within the range of floats; three ints have no such limit",
    )
    # Two reals further apart than the spacing of floats never round to the same float.
    spacing = Fraction(math.ulp(float(largest)))
    checks.require(
        step is None or step > spacing,
        owner,
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
