"""The parameters of AboveThreshold: the smallest shift T whose exact failure is at most beta.

The search (see `above_threshold`) passes over candidates in increasing order with
rho ~ Geo(eps1), nu_i ~ Geo(eps2), P(Geo(e) = k) = (1 - e^-e) e^(-e k), and stops at the first with
`loss <= theta + nu_i - rho`. Let tau = T + 1 - theta. Given rho = r the search fails only if

* it stops at one of the candidates of loss >= T + 1, each with chance at most
  P(nu >= tau + r) = e^(-eps2 (tau + r)); there are at most N - 1 (the last one is never asked);
* or it goes on where the loss is 0 for the first time: with chance
  P(nu < r - theta) = 1 - e^(-eps2 max(r - theta, 0)).

    failure <= sum_r (1 - e^-eps1) e^(-eps1 r) [1 - A(r) C(r)],
    A(r) = (1 - e^(-eps2 (tau + r)))^(N-1),   C(r) = e^(-eps2 max(r - theta, 0)).

With N - 2 for N - 1 the step profile attains this bound. A rises and C falls with r: over a block
of values of r the bracket is at most 1 - A(first) C(last), so the sum over blocks that `_failure`
forms is an upper bound, and the guarantee of T does not hang on the number of blocks.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.numerics.intervals import root_below
from beam_dp.mechanisms.search.common import ENOUGH

Floats = npt.NDArray[np.float64]
_COARSE, _FINE = 256, 2048  # blocks
_REST = math.log(1e9)  # rho's tail of chance beta / 1e9 counts as failed
_SLACK = 1e-9  # relative, far above the rounding of the sums (about 1e-13)
_PARTS = 200  # eps1 is a multiple of 1/200 of the scale


@dataclass(frozen=True)
class Thresholds:
    """eps1 for rho, eps2 for each candidate (exact), the threshold theta and the shift T."""

    first: Fraction
    second: Fraction
    theta: int
    shift: int


@dataclass(frozen=True)
class _Problem:
    """Minimise T over the share of eps1: eps1 = scale x, eps2 = scale (1 - x) / weight."""

    scale: Fraction
    weight: int
    log_queries: float  # ln(N - 1)
    beta: float

    def rates(self, part: int) -> tuple[float, float]:
        """Return eps1 and eps2 for eps1 = scale part / 200, as floats."""
        x = part / _PARTS
        return float(self.scale) * x, float(self.scale) * (1 - x) / self.weight


@lru_cache(maxsize=1024)
def thresholds(amount: Fraction, is_zcdp: bool, n: int, beta: float) -> Thresholds:
    """Return the parameters for n >= 2 candidates.

    Pure: eps1 + eps2 <= epsilon. zCDP: the log ratio of two neighbours ranges over an interval of
    length eps1 + 2 eps2 (it is at most eps1 + eps2 one way and eps2 the other), and a mechanism of
    bounded range eta is eta^2 / 8-zCDP (Cesar and Rogers 2021, "Bounding, Concentrating, and
    Truncating"), so eps1 + 2 eps2 <= sqrt(8 rho). This allows every choice of
    eps1 + eps2 <= sqrt(2 rho), and more.
    """
    scale = min(root_below(8 * amount) if is_zcdp else amount, ENOUGH)
    problem = _Problem(scale, 2 if is_zcdp else 1, math.log(n - 1), beta)
    part, theta, shift = _smallest(problem)
    first = scale * Fraction(part, _PARTS)
    return Thresholds(first, (scale - first) / problem.weight, theta, shift)


@lru_cache(maxsize=1024)
def guarded_thresholds(
    amount: Fraction, is_zcdp: bool, n: int, beta: float, overshoot: float
) -> Thresholds:
    """Return parameters with a chance of at most `overshoot`, far below beta, to go beyond f.

    The two kinds of failure are bounded apart: theta is the least integer with

        e^(-eps1 (theta + 1)) (1 - e^-eps2) / (1 - e^-(eps1 + eps2)) <= overshoot

    (the sum of P(r) (1 - C(r)), see `_real_theta`), tau the least with sum_r P(r) (1 - A(r)) <=
    beta, and T = theta + tau - 1 is minimised over the share of eps1.
    """
    scale = min(root_below(8 * amount) if is_zcdp else amount, ENOUGH)
    problem = _Problem(scale, 2 if is_zcdp else 1, math.log(n - 1), beta)
    choices = (_guarded(problem, part, overshoot) for part in range(5, _PARTS, 5))
    shift, part, theta = min(choices)
    first = scale * Fraction(part, _PARTS)
    return Thresholds(first, (scale - first) / problem.weight, theta, shift)


def _guarded(problem: _Problem, part: int, overshoot: float) -> tuple[int, int, int]:
    first, second = problem.rates(part)
    constant = math.expm1(-second) / math.expm1(-first - second)
    theta = max(0, math.ceil(math.log(constant / overshoot * (1 + _SLACK)) / first - 1))
    low, high = 0, 1
    while not _quiet(problem, part, high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _quiet(problem, part, middle) else (middle, high)
    return theta + high - 1, part, theta


def _quiet(problem: _Problem, part: int, tau: int) -> bool:
    alarm = _false_alarm(problem, part, np.array([float(tau)]), _COARSE)
    return bool(alarm[0] * (1 + _SLACK) <= problem.beta)


def _smallest(problem: _Problem) -> tuple[int, int, int]:
    """Return (part, theta, T) with a failure of at most beta and the smallest T of those tried."""
    middle = min(range(5, _PARTS, 5), key=lambda part: _sketch(problem, part)[0])
    near = range(max(1, middle - 6), min(_PARTS, middle + 7))
    choices = sorted(choice for part in near for choice in _choices(problem, part))
    shift, part, tau = _least_allowed(problem, choices[0], choices[:40])
    return part, shift + 1 - tau, shift


def _least_allowed(
    problem: _Problem, allowed: tuple[int, int, int], choices: list[tuple[int, int, int]]
) -> tuple[int, int, int]:
    """Return a choice with the smallest T that the exact sum allows, starting from an allowed one.

    The choices bound A by 1 in the second kind of failure; the exact sum allows a little less, and
    for a beta near 1 far less. The sum falls as theta grows: T is sought by doubling, then halving.
    """
    step = 1
    while better := _first_allowed(problem, allowed[0] - step, choices):
        allowed, step = better, 2 * step
    refused = allowed[0] - step
    while allowed[0] - refused > 1:
        middle = (allowed[0] + refused) // 2
        better = _first_allowed(problem, middle, choices)
        if better is None:
            refused = middle
        else:
            allowed = better
    return allowed


def _first_allowed(
    problem: _Problem, shift: int, choices: list[tuple[int, int, int]]
) -> tuple[int, int, int] | None:
    for _, part, tau in choices:
        if shift + 1 >= tau and _failure(problem, part, tau, shift + 1 - tau) <= problem.beta:
            return shift, part, tau
    return None


def _sketch(problem: _Problem, part: int) -> tuple[float, float]:
    """Return the smallest real T for this part, and its tau, on a coarse scale."""
    first, second = problem.rates(part)
    # Union bound on the first kind of failure: e^(-eps2 tau) (N-1) (1-e^-eps1) / (1-e^-(eps1+eps2))
    # is beta1; tau is tried where beta1 is from 1/50 of beta to 3 beta (the bound is loose).
    ratio = math.log(math.expm1(-first) / math.expm1(-first - second))
    tried = np.linspace(math.log(0.02), math.log(3), 32) + math.log(problem.beta)
    taus = np.maximum((problem.log_queries + ratio - tried) / second, 1.0)
    thetas = _real_theta(problem, part, _false_alarm(problem, part, taus, _COARSE))
    shifts = taus - 1 + np.maximum(thetas, 0)
    best = int(np.argmin(shifts))
    return float(shifts[best]), float(taus[best])


def _choices(problem: _Problem, part: int) -> list[tuple[int, int, int]]:
    """Return allowed (T, part, tau) for integers tau near the best real one."""
    taus = np.maximum(np.round(_sketch(problem, part)[1]) + np.arange(-3.0, 4.0), 1.0)
    thetas = _real_theta(problem, part, _false_alarm(problem, part, taus, _FINE))
    shifts = taus - 1 + np.maximum(np.ceil(thetas), 0)
    pairs = zip(shifts.tolist(), taus.tolist(), strict=True)
    return [(int(shift), part, int(tau)) for shift, tau in pairs if shift < math.inf]


def _blocks(first: float, beta: float, most: int) -> tuple[Floats, int, Floats, float]:
    """Return the starts of blocks of r, their length, their chances, and that of all larger r."""
    reach = math.ceil((_REST - math.log(beta)) / first) + 1
    length = -(-reach // most)
    starts = np.arange(0, reach, length, dtype=np.float64)
    masses = np.exp(-first * starts) * -math.expm1(-first * length)
    return starts, length, masses, math.exp(-first * (float(starts[-1]) + length))


def _log_no_alarm(problem: _Problem, second: float, distance: Floats) -> Floats:
    """Return ln A = (N - 1) ln(1 - e^-z), z = eps2 (tau + r), for any N: by ln of its negative."""
    z = second * distance
    # Each form of ln(1 - e^-z) where it is precise; for z > 40 that is -e^-z up to a part in e^40.
    small = np.log(-np.expm1(-np.minimum(z, 1.0)))
    large = np.log1p(-np.exp(-np.clip(z, 1.0, 40.0)))
    hazard = np.where(z > 40.0, -z, np.log(-np.where(z < 1.0, small, large)))
    return -np.exp(np.minimum(problem.log_queries + hazard, 700.0))


def _false_alarm(problem: _Problem, part: int, taus: Floats, most: int) -> Floats:
    """Bound, for each tau, the chance to stop too early: sum_r P(r) (1 - A(r))."""
    first, second = problem.rates(part)
    starts, _, masses, tail = _blocks(first, problem.beta, most)
    alarms = -np.expm1(_log_no_alarm(problem, second, taus[:, None] + starts))
    return np.asarray(alarms @ masses + tail)


def _real_theta(problem: _Problem, part: int, false_alarm: Floats) -> Floats:
    """Return the theta that leaves a failure of beta (infinite where no theta does).

    sum_{r > theta} P(r) (1 - C(r)) = e^(-eps1 (theta + 1)) (1 - e^-eps2) / (1 - e^-(eps1 + eps2)).
    """
    first, second = problem.rates(part)
    left = problem.beta * (1 - _SLACK) - false_alarm
    constant = math.expm1(-second) / math.expm1(-first - second)
    thetas = np.log(constant / np.where(left > 0, left, 1.0)) / first - 1
    return np.where(left > 0, thetas, math.inf)


def _failure(problem: _Problem, part: int, tau: int, theta: int) -> float:
    """Bound the probability of failure from above (see the module's docstring)."""
    first, second = problem.rates(part)
    starts, length, masses, tail = _blocks(first, problem.beta, _FINE)
    log_right = _log_no_alarm(problem, second, tau + starts)
    log_right -= second * np.maximum(starts + (length - 1 - theta), 0)
    return (float(masses @ -np.expm1(log_right)) + tail) * (1 + _SLACK)
