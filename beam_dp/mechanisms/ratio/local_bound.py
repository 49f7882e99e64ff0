"""Noise scaled to a private upper bound of the local sensitivity of a / b.

The local sensitivity LS(x) = max |f(x) - f(x')| over the neighbours x' of x is data: noise of scale
LS(x) / epsilon is not private. Noise scaled to a *private* upper bound of it is.

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

import math
from dataclasses import dataclass
from fractions import Fraction

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.interval_widths import laplace_bound
from beam_dp.mechanisms.numerics import checks
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

    def reach(self, alpha: Fraction) -> Fraction:
        """Return how far from f(x) a release is, in bounds, except with probability alpha."""
        return Fraction(2 * laplace_bound(self.rate, alpha) + 1, 2 * self.resolution)


def shares(owner: str, budget: Budget, share: checks.Real) -> tuple[Budget, Budget]:
    """Return the cost of the bound (with all of delta), and the cost of the value.

    A budget of rho is spent as epsilon = sqrt(2 rho), rounded down: (epsilon, delta)-DP is
    delta-approximate epsilon^2 / 2-zCDP (see `Account`). The theorem itself does not hold for zCDP:
    the Renyi divergence of conditioned distributions is not bounded by that of the whole.
    """
    part = checks.fraction_between(owner, "share", share, 0, 1)
    checks.require(
        budget.delta > 0,
        owner,
        "delta",
        "be above 0, not 0: the bound fails with probability delta",
        "Write Budget(epsilon=1.0, delta=1e-6).",
    )
    epsilon = root_below(2 * budget.amount) if budget.is_zcdp else budget.amount
    return Budget(epsilon * part, budget.delta), Budget(epsilon * (1 - part))
