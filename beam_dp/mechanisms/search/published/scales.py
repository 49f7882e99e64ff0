"""The parameters of ScaleThenChoose: its shares of epsilon, its thresholds and its shift T.

Let beta' = beta / 4, one for each way to fail. For rho ~ Geo(a1) and nu ~ Geo(a2)
(P(Geo(e) = k) = (1 - e^-e) e^(-e k)), summed over the other variable,

    P(nu - rho >= g) = e^(-a2 g) (1 - e^-a1) / (1 - e^-(a1 + a2)),
    P(rho - nu >= g) = e^(-a1 g) (1 - e^-a2) / (1 - e^-(a1 + a2)).

With W = ceil(k / delta) e^(e3 / 2) (see `scale_then_choose`) the integers below are the smallest
for which each way to fail has a chance of at most beta':

* crowd C: e^(e3 C / 2) beta' >= W, so that "no cell" is drawn with W / (W + e^(e3 C / 2)) at most;
* alarm = C + g1 - 1, m P(nu - rho >= g1) <= beta': a stop at any of the m scales asked has S >= C;
* k = alarm + g2 - 1, P(rho - nu >= g2) <= beta': the first scale with S >= k is not passed over,
  as that needs k + nu < alarm + rho, or rho - nu >= g2;
* margin I0: 2 e^(-e4 (I0 + 1) / 2) <= beta', for the choice among three.

C depends on k by its logarithm only: k is raised until all of them hold. T = 2 I0 + k - 1.
"""

import itertools
import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import lru_cache

_SLACK = 1 + 1e-12  # above the rounding of the logarithms
_STEPS = 100  # every share is a multiple of 1/100 of epsilon


@dataclass(frozen=True)
class Scales:
    """The exact parameters of one `ScaleThenChoose`.

    Attributes:
        first: a1, the rate of the noise on the threshold of the scales.
        second: a2, the rate of the noise on each scale.
        third: e3, for the choice of a cell.
        fourth: e4, for the choice inside of a cell.
        delta: for the choice of a cell, at most e3 / 2.
        alarm: the threshold of the scales.
        inner: k, the number of values of the profile that are counted.
        margin: I0, the number of values left out at either end.
    """

    first: Fraction
    second: Fraction
    third: Fraction
    fourth: Fraction
    _: KW_ONLY
    delta: Fraction
    alarm: int
    inner: int
    margin: int

    @property
    def shift(self) -> int:
        """The T that is guaranteed: the counted values are B[I0] to B[T - I0]."""
        return 2 * self.margin + self.inner - 1

    @property
    def nothing(self) -> int:
        """The weight of "no cell" in units of e^(e3 / 2)."""
        return math.ceil(self.inner / self.delta)


@lru_cache(maxsize=1024)
def scales(epsilon: Fraction, delta: Fraction, scale_count: int, beta: float) -> Scales:
    """Return the parameters with the smallest T that a descent over the shares finds.

    a1 + 2 a2 + e3 + e4 = epsilon exactly, whatever the shares are.

    Args:
        epsilon: above 0.
        delta: above 0.
        scale_count: m, how many scales are asked at most.
        beta: the failure probability of the shift.
    """
    shares = (14, 14, 38)  # a1, a2 and e3; e4 is the rest
    best = _with_shares(epsilon, delta, scale_count, beta, shares)
    for width in (8, 4, 2, 1):
        improved = True
        while improved:
            improved = False
            for moves in itertools.product((-width, 0, width), repeat=3):
                tried = shares[0] + moves[0], shares[1] + moves[1], shares[2] + moves[2]
                if min(tried) >= 1 and tried[0] + 2 * tried[1] + tried[2] < _STEPS:
                    attempt = _with_shares(epsilon, delta, scale_count, beta, tried)
                    if attempt.shift < best.shift:
                        best, shares, improved = attempt, tried, True
    return best


def _with_shares(
    epsilon: Fraction, delta: Fraction, scale_count: int, beta: float, shares: tuple[int, int, int]
) -> Scales:
    """Return the smallest integers for these shares (see the module's docstring)."""
    first, second, third = (epsilon * Fraction(share, _STEPS) for share in shares)
    fourth = epsilon - first - 2 * second - third
    log_failure = math.log(beta / 4)
    before, after = _gaps(float(first), float(second), scale_count, log_failure)
    margin = _up(2 * (math.log(2) - log_failure) / float(fourth)) - 1
    half = float(third) / 2
    crowd, inner = 1, max(1, before + after - 1)
    delta = min(delta, third / 2)  # the proof asks for delta <= e^(e3 / 2) - 1
    while True:
        chosen = Scales(
            first,
            second,
            third,
            fourth,
            delta=delta,
            alarm=crowd + before - 1,
            inner=inner,
            margin=max(0, margin),
        )
        needed = 1 + _up((math.log(chosen.nothing) - log_failure) / half)
        if needed <= crowd:
            return chosen
        crowd, inner = needed, max(1, needed + before + after - 2)


def _gaps(first: float, second: float, scale_count: int, log_failure: float) -> tuple[int, int]:
    """Return g1 and g2, at least 1."""
    log_both = math.log(-math.expm1(-first - second))
    alarm = math.log(scale_count) + math.log(-math.expm1(-first)) - log_both - log_failure
    miss = math.log(-math.expm1(-second)) - log_both - log_failure
    return max(1, _up(alarm / second)), max(1, _up(miss / first))


def _up(value: float) -> int:
    return math.ceil(value * _SLACK) if value > 0 else math.ceil(value / _SLACK)
