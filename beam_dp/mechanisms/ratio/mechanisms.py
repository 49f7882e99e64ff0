"""Releases of a / b: from two noisy counts, or with noise scaled to its local sensitivity.

Every row adds 1 to b, or 1 to a and to b; a person owns at most `rows` of them. With the parts a
and z = b - a, every row adds 1 to one of the two.

A neighbour x' has one person more, or fewer. With L = rows, a and b move by at most L each, and the
parts by at most L *together*. Where one person's rows become other ones, that is one person fewer
and then one more: it costs twice the budget.

With noise X, Y on two counts and small relative errors, a first-order expansion at p = a / b gives

    naive  (a + X) / (b + Y) - p               ~  (X - p Y) / b,
    parts  (a + X) / (a + X + z + Y) - p       ~  ((1 - p) X - p Y) / b.

For independent Laplace noise of scale s, E|c X + d Y| = s (c^2 + c d + d^2) / (c + d); for Gaussian
noise it is s sqrt(2 / pi) sqrt(c^2 + d^2).

*Noise scaled to a private upper bound of the local sensitivity.* The local sensitivity
LS(x) = max |f(x) - f(x')| over the neighbours x' of x is data: noise of scale LS(x) / epsilon is
not private. Noise scaled to a *private* upper bound of it is.

Theorem. Let g be epsilon_1-DP with P[g(x) >= LS(x)] >= 1 - delta for every x. Draw b = g(x), then
release (b, K_b(x)), where K_b is epsilon_2-DP between all x, x' with |f(x) - f(x')| <= b. That is
(epsilon_1 + epsilon_2, delta)-DP.

Proof. Let x, x' be neighbours. For every set S of pairs, with S_b = {k : (b, k) in S},

    P[(g(x), K(x)) in S] <= P[g(x) < LS(x)] + sum_{b >= LS(x)} P[g(x) = b] P[K_b(x) in S_b]
                         <= delta + sum_b e^epsilon_1 P[g(x') = b] e^epsilon_2 P[K_b(x') in S_b],

since |f(x) - f(x')| <= LS(x) <= b in every term of the sum. LS(x') never enters, and x, x' may be
exchanged. At some b, K_b may be a constant, or a mechanism that is epsilon_2-DP without any
condition (a fallback).

Source: Harrison, "Privately bounding local sensitivity" (2024), Theorem 1, corrected: its printed
hypothesis is P[g <= LS] >= 1 - delta, the wrong way round, and its proof bounds an event of x,
conditioned on g(x), by probabilities of x'.

*The local sensitivity of a / b, and its maximum over the counts that noisy counts leave possible.*
With L rows per person, z = b - a and b > L:

Removing i of the ones and j - i of the zeros, j <= L, moves a / b most where all L
rows are of one kind: to (a - L) / (b - L), by L z / (b (b - L)), or to a / (b - L), by
L a / (b (b - L)); adding moves it less (b + L below). Hence

    LS <= L max(a, z) / (b (b - L)),

with equality where the person may have these rows (the article forgets a = 0 and a = b, for which
there is nobody to remove; an upper bound it stays).

*The maximum over a box.* g(b) = (b - c) / (b (b - L)) for b > L: g' has the sign of
-(b^2 - 2 c b + c L), so g rises between c - s and c + s, s = sqrt(c^2 - c L), and falls elsewhere
(everywhere if c < L); below c - s g is negative. Over the integers of [low, high] its maximum, if
positive, is at low, high, or next to c + s: at floor(c + s) or floor(c + s) + 1.

Source: Harrison, "Privately bounding local sensitivity" (2024), whose code exchanges the lower and
the upper bounds of a, and so bounds nothing: at (a, b) = (500, 2000), epsilon 1, delta 10^-6 it is
below the local sensitivity with probability 0.9999.
"""

import abc
import dataclasses
import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.interval_widths import laplace_bound
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import SYSTEM_NOISE, Noise
from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.numerics.enclosures import root_below

Rational = tuple[int, int]
"""top / bottom, bottom > 0; not reduced, for speed."""
Span = tuple[int, int]
"""low <= count <= high."""


def largest_bound(ones: Span, zeros: Span, rows: int) -> Rational:
    """Return the largest add-remove bound over a in `ones` and z in `zeros`.

    ones[0] >= 0, zeros[0] >= 0 and ones[0] + zeros[0] > rows. a / (b (b - L)) with b = a + z falls
    with z; at z = c it is g(b), b from c + ones[0] to c + ones[1]. The other term is its mirror.
    L / (least b) bounds both.
    """
    a, z = ones[0], zeros[0]
    largest = _larger(_peak(z, a + z, z + ones[1], rows), _peak(a, a + z, a + zeros[1], rows))
    top, bottom = rows * largest[0], largest[1]
    return (top, bottom) if top * (a + z) <= rows * bottom else (rows, a + z)


def _peak(c: int, low: int, high: int, rows: int) -> Rational:
    """Return max of (b - c) / (b (b - rows)) over the integers low <= b <= high, low > rows.

    Where no value there is positive, the result may be any of them.
    """
    best = _larger(_slope(c, low, rows), _slope(c, high, rows))
    if c >= rows:
        top = c + math.isqrt(c * (c - rows))
        for b in (top, top + 1):
            if low < b < high:
                best = _larger(best, _slope(c, b, rows))
    return best


def _slope(c: int, b: int, rows: int) -> Rational:
    return b - c, b * (b - rows)


def _larger(one: Rational, other: Rational) -> Rational:
    return one if one[0] * other[1] >= other[0] * one[1] else other


SHARE = Fraction(1, 10)
"""The part of epsilon that the upper bound costs, unless told otherwise."""

_FINEST = 1 << 10


@dataclass(frozen=True)
class GridLaplace:
    """K_b of the theorem: the number on a grid of step b / resolution, with integer noise.

    |u - v| <= b gives |floor(u / step) - floor(v / step)| <= resolution, for the floors of two
    reals at most n apart (n an integer) are at most n apart. Discrete Laplace noise of rate
    epsilon / resolution on this integer is epsilon-DP, and rounding costs no sensitivity.

    Attributes:
        epsilon: what one release costs.
    """

    epsilon: Fraction

    @property
    def resolution(self) -> int:
        """Steps per bound: the rounding is below a thousandth of the noise's scale."""
        return _FINEST << max(0, math.ceil(self.epsilon) - 1).bit_length()

    @property
    def rate(self) -> Fraction:
        """The rate of the integer noise."""
        return self.epsilon / self.resolution

    def steps(self, value: tuple[int, int], bound: tuple[int, int]) -> int:
        """Return the nearest step of value = v0 / v1 on the grid of bound = b0 / b1 > 0."""
        top = 2 * value[0] * self.resolution * bound[1] + value[1] * bound[0]
        return top // (2 * value[1] * bound[0])

    def tail_bound(self, alpha: Fraction) -> Fraction:
        """Return how far from f(x) a release is, in bounds, except with probability alpha."""
        return Fraction(2 * laplace_bound(self.rate, alpha) + 1, 2 * self.resolution)


def shares(subject: str, budget: Budget, share: checks.Real) -> tuple[Budget, Budget]:
    """Return the cost of the bound (with all of delta), and the cost of the value.

    A budget of rho is spent as epsilon = sqrt(2 rho), rounded down: (epsilon, delta)-DP is
    delta-approximate epsilon^2 / 2-zCDP (see `account`). The theorem itself does not hold for zCDP:
    the Renyi divergence of conditioned distributions is not bounded by that of the whole.
    """
    part = checks.fraction_between(subject, "share", share, 0, 1)
    checks.require(
        budget.delta > 0,
        subject,
        "delta",
        "be above 0, not 0: the bound fails with probability delta",
        "Write Budget(epsilon=1.0, delta=1e-6).",
    )
    epsilon = root_below(2 * budget.amount) if budget.is_zcdp else budget.amount
    return Budget(epsilon * part, budget.delta), Budget(epsilon * (1 - part))


EMPTY = 0.5
"""The value of 0 / 0: the middle of the range, a constant. An empty partition raises no error."""
ALPHA = Fraction(1, 20)
"""The released error bounds fail with at most this probability."""

_HALF = Fraction(1, 2)
_LARGEST_RATE = 512  # no noise is left; beyond, floats end
Counts = npt.NDArray[Any]  # int64, or Python integers where they need more
Floats = npt.NDArray[np.float64]


class Estimates(NamedTuple):
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
    """A release of ratios, and its budget.

    Attributes:
        budget: what one release costs, per ratio.
        rows: the most rows of one person, at least 1.
    """

    budget: Budget
    rows: int = 1

    def __post_init__(self) -> None:
        _ = self._adder  # refuses a part of the budget that is too small, before there is data

    @property
    @abc.abstractmethod
    def _adder(self) -> AdditiveNoise:
        """The noise of each count."""

    @abc.abstractmethod
    def release(
        self, ones: Counts, totals: Counts, noise: Noise = SYSTEM_NOISE, alpha: Fraction = ALPHA
    ) -> Estimates:
        """Draw one private ratio per pair a <= b.

        Args:
            ones: a, one per ratio (a column of integers as in `numerics.integers`).
            totals: b.
            noise: the randomness.
            alpha: how often an error bound may fail.
        """

    def _noisy(self, counts: Counts, noise: Noise) -> Counts:
        return self._adder.add(counts, self.rows, noise)


class Naive(Mechanism):
    """Add noise to a and to b, each for half of the budget, and divide.

    One person moves a and b by at most `rows` each, so epsilon / 2 for each is epsilon in all (and
    rho / 2 each is rho). It is there to compare with.
    """

    @functools.cached_property
    def _adder(self) -> AdditiveNoise:
        return AdditiveNoise(self.budget.scaled(_HALF))

    def release(
        self, ones: Counts, totals: Counts, noise: Noise = SYSTEM_NOISE, alpha: Fraction = ALPHA
    ) -> Estimates:
        """Draw one private ratio per pair; see `Mechanism`."""
        noisy_ones, noisy_totals = self._noisy(ones, noise), self._noisy(totals, noise)
        # The corners of [a - t, a + t] x [b - t, b + t] are (a -+ t, b +- t), and z = b - a there.
        far = self._adder.bound(self.rows, alpha / 2)
        return _estimates(noisy_ones, integers.add(noisy_totals, -noisy_ones), far, 2 * far)


class KuleszaSureshWang(Mechanism):
    """Add noise to a and to z = b - a, and release a / (a + z): the default, pure epsilon-DP.

    A person moves the parts by at most `rows` together (L1, and so L2): noise for the *whole*
    budget on each part is private, which is half of the naive noise.

    With p = a / b the mean absolute error is about rows (1 - p (1 - p)) / (epsilon b), and less for
    epsilon / rows above 1, where the noise is mostly 0.

    Source: Kulesza, Suresh, Wang, "Mean Estimation in the Add-Remove Model of Differential Privacy"
    (ICML 2024, arXiv 2312.06658), the transformed noise: for values in [0, 1], noise on the sum of
    x_i and on that of 1 - x_i. Here the noise is discrete; their hourglass noise is not used.
    """

    @functools.cached_property
    def _adder(self) -> AdditiveNoise:
        return AdditiveNoise(self.budget)

    def release(
        self, ones: Counts, totals: Counts, noise: Noise = SYSTEM_NOISE, alpha: Fraction = ALPHA
    ) -> Estimates:
        """Draw one private ratio per pair; see `Mechanism`."""
        noisy_ones = self._noisy(ones, noise)
        noisy_zeros = self._noisy(integers.add(totals, -ones), noise)
        far = self._adder.bound(self.rows, alpha / 2)
        return _estimates(noisy_ones, noisy_zeros, far, far)


@dataclasses.dataclass(frozen=True)
class BoundedLocalSensitivity(Mechanism):
    """Draw noisy counts, bound the local sensitivity by them, release a / b with noise to match.

    (epsilon, delta)-DP by the theorem above: the counts cost epsilon_1 =
    share epsilon, and all lie within t of the truth but for probability delta, t from the exact
    tail of the discrete Laplace distribution; `largest_bound` is then an upper bound of the
    local sensitivity.

    The counts are the parts a and b - a with noise for epsilon_1 each: a person moves both by at
    most `rows` together. (The article's are a and b, with twice the noise, and so a higher bound.)

    *The bail-out*: the bound is useless where the counts leave it possible that b <= rows (the
    article's rule), and where its noise is expected to be larger than that of the ratio of Kulesza,
    Suresh and Wang for the rest of the budget, epsilon_2 = epsilon - epsilon_1. Then that is
    released. The noisy counts decide both: they have been paid for, so the choice costs nothing,
    and the theorem allows for it.

    Attributes:
        share: the part of epsilon for the counts.
    """

    share: checks.Real = SHARE

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.fallback  # refuses a part of the budget that is too small

    @functools.cached_property
    def costs(self) -> tuple[Budget, Budget]:
        """What the counts cost (delta is spent here), and what the ratio costs."""
        return shares("LocalSensitivity", self.budget, self.share)

    @functools.cached_property
    def fallback(self) -> KuleszaSureshWang:
        """The mechanism that releases where the bound is useless."""
        return KuleszaSureshWang(self.costs[1], self.rows)

    @functools.cached_property
    def _adder(self) -> AdditiveNoise:
        return AdditiveNoise(self.costs[0].without_delta())

    @functools.cached_property
    def tail_bound(self) -> int:
        """The tail bound of a count, but for its half of delta."""
        return laplace_bound(self._adder.budget.amount / self.rows, self.budget.delta / 2)

    def bound(self, first: int, second: int) -> Rational | None:
        """Return an upper bound of the local sensitivity; None where the counts are too small.

        Args:
            first: the noisy a.
            second: the noisy b - a.
        """
        far = self.tail_bound
        ones, zeros = ((max(0, noisy - far), max(0, noisy + far)) for noisy in (first, second))
        return largest_bound(ones, zeros, self.rows) if ones[0] + zeros[0] > self.rows else None

    def release(
        self, ones: Counts, totals: Counts, noise: Noise = SYSTEM_NOISE, alpha: Fraction = ALPHA
    ) -> Estimates:
        """Draw one private ratio per pair; see `Mechanism`."""
        limits = self._bounds(ones, totals, noise)
        local = np.array([limit is not None for limit in limits], bool)
        values, errors = np.empty(len(limits)), np.empty(len(limits))
        values[~local], errors[~local] = self.fallback.release(
            ones[~local], totals[~local], noise, alpha
        )
        pairs = zip(ones[local].tolist(), totals[local].tolist(), strict=True)
        found = [limit for limit in limits if limit]
        values[local], errors[local] = self._around(list(pairs), found, noise, alpha)
        return Estimates(values, errors)

    def _bounds(self, ones: Counts, totals: Counts, noise: Noise) -> list[Rational | None]:
        """Draw the noisy counts and return the bound of each pair; None: use the fallback."""
        noisy_second = self._noisy(integers.add(totals, -ones), noise).tolist()
        noisy_first = self._noisy(ones, noise).tolist()
        bounds = []
        for pair in zip(noisy_first, noisy_second, strict=True):
            bound = self.bound(*pair)
            bounds.append(bound if bound and self._is_better(bound, *pair) else None)
        return bounds

    def _is_better(self, bound: Rational, first: int, second: int) -> bool:
        """Return whether the noise of a bound is expected to be smaller than the fallback's.

        The first is bound / epsilon_2, the second E|X| (1 - p (1 - p)) / b with the mean of
        discrete Laplace noise, E|X| = 1 / sinh(rate). That is exact for p = 0 and p = 1, within 6%
        for rates below 1, and too small by up to a quarter for large rates.
        """
        total = first + second
        share = min(max(first, 0), total) / total
        rate = float(min(self.costs[1].amount / self.rows, Fraction(_LARGEST_RATE)))
        mean = rate / math.sinh(rate) if rate else 1.0  # times epsilon_2 / rows
        return bound[0] * total / (bound[1] * self.rows) <= mean * (1 - share * (1 - share))

    def _around(
        self,
        pairs: list[tuple[int, int]],
        bounds: list[Rational],
        noise: Noise,
        alpha: Fraction,
    ) -> tuple[list[float], list[float]]:
        """Return a / b with the noise of each bound, and the tail bound of the noise."""
        grid = GridLaplace(self.costs[1].amount)
        drawn = noise.discrete_laplace(grid.rate, len(bounds)).tolist()
        tail_bound, values, errors = grid.tail_bound(alpha), [], []
        for (a, b), bound, added in zip(pairs, bounds, drawn, strict=True):
            # 0 / 0 is 1/2 here too: a noisy b may pass the test where nobody is there.
            steps = grid.steps((a, b) if b else (1, 2), bound) + added
            top, bottom = steps * bound[0], grid.resolution * bound[1]
            values.append(min(max(0, top), bottom) / bottom)
            errors.append(min(float(tail_bound * bound[0] / bound[1]), 1.0))
        return values, errors


def quotient(ones: Counts, zeros: Counts, empty: float = EMPTY) -> Floats:
    """Return a / (a + z) of noisy parts, negative ones taken for 0; `empty` where both are 0.

    The result rises with a, falls with z, and is in [0, 1]. The ratio of the raw noisy numbers may
    be anything (-5 / (-5 + 3) is above 2), and their sum may be 0.
    """
    ones, zeros = np.maximum(ones, 0), np.maximum(zeros, 0)
    total = integers.add(ones, zeros)
    if object in (ones.dtype, total.dtype):  # Python divides integers that exceed all floats
        pairs = zip(ones.tolist(), total.tolist(), strict=True)
        return np.array([one / whole if whole else empty for one, whole in pairs], np.float64)
    ratios = np.full(len(total), empty)
    return np.asarray(np.divide(ones, total, out=ratios, where=total > 0), np.float64)


def _estimates(ones: Counts, zeros: Counts, far: int, farther: int) -> Estimates:
    """Return the ratios of noisy parts; the errors hold where the noise of a is at most `far`, that
    of z `farther`.

    The ratio rises with a and falls with z, so it lies between its values at two corners.
    """
    values = quotient(ones, zeros)
    low = quotient(_plus(ones, -far), _plus(zeros, farther), empty=0.0)
    high = quotient(_plus(ones, far), _plus(zeros, -farther), empty=1.0)
    return Estimates(values, np.maximum(values - low, high - values))


def _plus(counts: Counts, number: int) -> Counts:
    return integers.add(counts, integers.alone(number))
