"""Release any number with noise scaled to a private upper bound of its local sensitivity.

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
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.noise.tails import laplace_bound
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.numerics.user_functions import check_callable, is_infinite, plain_number

SHARE = Fraction(1, 10)
"""The part of epsilon that the upper bound costs, unless told otherwise."""

_FINEST = 1 << 10
_ROOT_BITS = 128


@dataclass(frozen=True)
class Bounded:
    """What was released; the guarantee covers both fields together.

    Attributes:
        value: the number with its noise; None where there was no bound and no fallback.
        bound: the upper bound of the local sensitivity; None where there was none.
    """

    value: Fraction | None
    bound: Fraction | None


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

    def release(self, value: Fraction, bound: Fraction, noise: Noise) -> Fraction:
        """Return the value with noise; without any where the bound is 0."""
        if not bound:
            return value
        steps = self.steps(value.as_integer_ratio(), bound.as_integer_ratio())
        noisy = steps + int(noise.discrete_laplace(self.rate, 1)[0])
        return noisy * bound / self.resolution


def bounded_local_sensitivity(
    f: Callable[[Any], Number],
    upper_bound: Callable[[Any, Budget, Noise], Number | None],
    data: Any,
    budget: Budget,
    *,
    share: checks.Real = SHARE,
    fallback: Callable[[Any, Budget, Noise], Number | None] | None = None,
    noise: Noise | None = None,
) -> Bounded:
    """Return f(data) with noise scaled to a private upper bound of its local sensitivity.

    The release is (epsilon, delta)-DP by the module's theorem if `upper_bound` and `fallback` do
    what is required below; its neighbours are those for which they do. The data decide how good the
    bound is: the error of one release is at most ln(1 / alpha) bound / ((1 - share) epsilon), but
    for rounding and except with probability alpha.

    With a budget of rho, epsilon = sqrt(2 rho) is spent: delta-approximate rho-zCDP.
    A bound of 0 releases f(data) as it is.

    Args:
        f: data -> a finite int, float or Fraction. It must not raise: an error shows data.
        upper_bound: (data, cost, noise) -> a bound of the local sensitivity of f. For all data it
            must be epsilon-DP for the epsilon of `cost` alone, and below the local sensitivity with
            probability at most the delta of `cost`, which is epsilon share and all of delta. None
            or infinity say that there is no useful bound.
        data: what the two functions take.
        budget: what may be spent; delta must be above 0.
        share: which part of epsilon the bound gets, above 0 and below 1.
        fallback: (data, cost, noise) -> the value that is released where there is no bound:
            epsilon-DP for the epsilon of its cost, for all data. Without a fallback None.
        noise: the randomness.

    Raises:
        TypeError: for other types, also of what the functions return.
        ValueError: if delta is 0, or the share is out of range, or a function returns NaN or a
            negative bound.

    Source: Harrison (2024), Theorem 1, corrected in this module.
    """
    owner, noise = "bounded_local_sensitivity", noise or Noise()
    for name, function in (("f", f), ("upper_bound", upper_bound), ("fallback", fallback or f)):
        check_callable(owner, name, function)
    first, second = shares(owner, budget, share)
    value = _finite(f"{owner}: f", f(data))
    bound = upper_bound(data, first, noise)
    if bound is not None and plain_number(f"{owner}: upper_bound", bound) != math.inf:
        exact = _finite(f"{owner}: upper_bound", bound)
        checks.require(exact >= 0, owner, "upper_bound", "return numbers of at least 0")
        return Bounded(GridLaplace(second.amount).release(value, exact, noise), exact)
    instead = None if fallback is None else fallback(data, second, noise)
    return Bounded(None if instead is None else _finite(f"{owner}: fallback", instead), None)


def shares(owner: str, budget: Budget, share: checks.Real) -> tuple[Budget, Budget]:
    """Return the cost of the bound (with all of delta), and the cost of the value.

    A budget of rho is spent as epsilon = sqrt(2 rho), rounded down: (epsilon, delta)-DP is
    delta-approximate epsilon^2 / 2-zCDP (see `Account`). The theorem itself does not hold for zCDP:
    the Renyi divergence of conditioned distributions is not bounded by that of the whole.
    """
    if type(budget) is not Budget:
        raise checks.ParameterTypeError(owner, "budget", f"be a Budget, not {checks.shown(budget)}")
    part = checks.fraction_between(owner, "share", share, 0, 1)
    checks.require(
        budget.delta > 0,
        owner,
        "delta",
        "be above 0, not 0: the bound fails with probability delta",
        "Write Budget(epsilon=1.0, delta=1e-6).",
    )
    epsilon = budget.amount
    if budget.is_zcdp:
        scaled = math.floor(2 * budget.amount * (1 << 2 * _ROOT_BITS))
        epsilon = Fraction(math.isqrt(scaled), 1 << _ROOT_BITS)
    return Budget(epsilon * part, budget.delta), Budget(epsilon * (1 - part))


def _finite(owner: str, value: object) -> Fraction:
    """Return the finite number that a function returned as a Fraction; no error shows it."""
    number = plain_number(owner, value)
    if is_infinite(number):
        raise ValueError(f"{owner} must return finite numbers.")
    return Fraction(number)
