"""Noise scaled to a private upper bound of the local sensitivity.

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
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.tails import laplace_bound
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.intervals import root_below

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
