"""How far one person may move a and b, and what the releases of a / b share.

Every row adds 1 to b, or 1 to a and to b; a person owns at most `rows` of them. With the parts a
and z = b - a, every row adds 1 to one of the two.

*Add-remove*: x' has one person more, or fewer. With L = rows, a and b move by at most L each, and
the parts by at most L *together*.

*Substitution*: one person's rows (from none to L) become other ones (from none to L). So add-remove
is a special case, and b need not stay the same. a and b still move by at most L each, but now so do
both parts: a by L one way and z by L the other.
"""

import abc
import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks, integers

ADD_REMOVE, SUBSTITUTION = "add-remove", "substitution"
EMPTY = 0.5
"""The value of 0 / 0: the middle of the range, a constant. An empty partition raises no error."""
ALPHA = Fraction(1, 20)
"""The released error bounds fail with at most this probability."""

HUGE = 10**300
"""Estimates of errors are floats: they do not tell larger numbers apart."""

Counts = npt.NDArray[Any]  # int64, or Python integers where they need more
Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Estimates:
    """Released ratios with their error bounds; both are differentially private.

    Attributes:
        values: the ratios, in [0, 1].
        errors: how far each is from a / b, but for probability alpha. A function of what was
            released and of parameters.
    """

    values: Floats
    errors: Floats


@dataclasses.dataclass(frozen=True)
class Mechanism(abc.ABC):
    """A release of ratios: its budget, and which databases are neighbours.

    Attributes:
        budget: what one release costs, per ratio.
        rows: the most rows of one person, at least 1.
        neighbours: "add-remove" or "substitution".
    """

    budget: Budget
    rows: int = 1
    neighbours: str = ADD_REMOVE

    def __post_init__(self) -> None:
        if type(self.budget) is not Budget:
            raise checks.ParameterTypeError(
                self._owner, "budget", f"be a Budget, not {checks.shown(self.budget)}"
            )
        checks.positive_integer(self._owner, "rows", self.rows)
        checks.one_of(self._owner, "neighbours", self.neighbours, (ADD_REMOVE, SUBSTITUTION))

    @property
    def _owner(self) -> str:
        return type(self).__name__

    @property
    def substitution(self) -> bool:
        """Whether neighbours differ in one person's rows, not by one person more or fewer."""
        return self.neighbours == SUBSTITUTION

    def release(
        self, ones: Counts, totals: Counts, noise: Noise | None = None, alpha: Fraction = ALPHA
    ) -> Estimates:
        """Draw one private ratio per pair a <= b.

        Args:
            ones: a, one per ratio (a column of integers as in `numerics.integers`).
            totals: b.
            noise: the randomness.
            alpha: how often an error bound may fail.
        """
        return self._draw(ones, totals, noise or Noise(), alpha)

    def expected_error(self, ones: float, total: float) -> float:
        """Return the mean absolute error to be expected at these counts, at most 1/2.

        It takes counts that have been released, never the data.
        """
        if not total > 0:
            return EMPTY
        ratio = min(max(ones, 0.0), total) / total  # integers may be beyond floats
        return min(self._expected(ratio, min(total, HUGE)), EMPTY)

    @abc.abstractmethod
    def _draw(self, ones: Counts, totals: Counts, noise: Noise, alpha: Fraction) -> Estimates:
        """Draw the ratios."""

    @abc.abstractmethod
    def _expected(self, ratio: float, total: float) -> float:
        """Return the mean absolute error where a / b = ratio, to first order."""


def add_noise(adder: AdditiveNoise, rows: int, counts: Counts, noise: Noise) -> Counts:
    """Return counts with noise, for one person who moves each by at most `rows`."""
    return adder.add(counts, np.full(len(counts), rows), noise)


def plus(counts: Counts, number: int) -> Counts:
    """Return counts plus a number of any size, exactly."""
    return integers.add(counts, integers.narrow(np.array([number], object)))


def quotient(ones: Counts, zeros: Counts, empty: float = EMPTY) -> Floats:
    """Return a / (a + z) of noisy parts, negative ones taken for 0; `empty` where both are 0.

    The result rises with a, falls with z, and is in [0, 1]. The ratio of the raw noisy numbers may
    be anything (-5 / (-5 + 3) is above 2), and their sum may be 0.
    """
    ones, zeros = np.maximum(ones, 0), np.maximum(zeros, 0)
    total = integers.add(ones, zeros)
    if object in (
        ones.dtype,
        total.dtype,
    ):  # Python's integers divide without a way by floats, which they exceed
        pairs = zip(ones.tolist(), total.tolist(), strict=True)
        return np.array([one / whole if whole else empty for one, whole in pairs], np.float64)
    ratios = np.full(len(total), empty)
    return np.asarray(np.divide(ones, total, out=ratios, where=total > 0), np.float64)


def estimates(ones: Counts, zeros: Counts, straying: tuple[int, int]) -> Estimates:
    """Return the ratios of noisy parts; the errors hold where neither part strays further.

    The ratio rises with a and falls with z, so it lies between its values at two corners.
    """
    values = quotient(ones, zeros)
    low = quotient(plus(ones, -straying[0]), plus(zeros, straying[1]), empty=0.0)
    high = quotient(plus(ones, straying[0]), plus(zeros, -straying[1]), empty=1.0)
    return Estimates(values, np.maximum(values - low, high - values))
