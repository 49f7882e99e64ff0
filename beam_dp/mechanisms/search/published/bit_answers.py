"""The zCDP answer of binary search: the coin whose chances fall off fastest for a given rho.

A comparison releases one bit, so it needs no noise, only a chance of "down" for every loss l. Away
from the threshold the less likely bit has the chances q_0 > q_1 > ..., and losses that differ by 1
have neighbours in that list. Each q is as small as rho allows, for all orders alpha > 1 and both
ways: D_alpha(q_k || q_{k+1}) <= alpha rho, proved as follows, without a search over alpha.

Let a coin P have the rare chance p and Q have q, with the logits a = ln((1 - p) / p) and b of q,
and the gap g = b - a. With t = alpha - 1 > 0, (alpha - 1) D_alpha(P || Q) is the cumulant function

    K(t) = ln(p e^(t x) + (1 - p) e^(t (x - g))),   x = ln(p / q),   and  K(t) <= rho t (t + 1)

is to be shown for all t > 0. K'(0) = KL(P || Q).

1. K(t) <= t KL + t^2 g^2 kappa(a), kappa(a) = tanh(|a| / 2) / (4 |a|), kappa(0) = 1/8: the
   inequality of Kearns and Saul for the centred coin (1998, "Large Deviation Methods for
   Approximate Probabilistic Inference", proved by Berend and Kontorovich 2013, "On the
   concentration of the missing mass", section 3). It holds for t = -1 too, where K = 0: so
   KL <= c = g^2 kappa(a), and c <= rho is enough for every t.
2. Where c > rho, 1 still covers t <= t1 = (rho - KL) / (c - rho), if that is positive. For t >= t1,
   K(t) = t x + ln p + ln(1 + e^(a - t g)) <= t x - s,  s = -ln p - ln(1 + e^(a - t1 g)),
   and rho t (t + 1) - t x + s >= 0 for all t if (x - rho)^2 <= 4 rho s.

kappa falls with |a|, so 1 is hardest for the coin nearer to 1/2: that coin may use 2, the other
must satisfy 1. The pair 1 - q, q on the two sides of a threshold between two losses has the gap
2 b and kappa(b): 1 asks b tanh(b / 2) <= rho, and KL = b tanh(b / 2) shows that to be the best.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from beam_dp.mechanisms.noise.sampling import Noise

# The part of rho that is left unused. Gaps are above 1e-3 (see LONGEST), and logits, with the
# rounding of each q, are known to 1e-15; KL and x are formed without cancellation of large numbers.
# So both sides of the comparisons below are right to 1e-10 of themselves.
_UNUSED = 1e-9
_HALVINGS = 40
LONGEST = 4096
"""The most losses that a table may have on one side of its threshold."""
REST = 1e-13
"""The chance, over all comparisons, below which coins are not told apart."""


@dataclass(frozen=True)
class BitAnswer:
    """The answer to "is l at most the threshold": a coin that depends on l alone.

    Attributes:
        tails: q_0, q_1, ..., the chances of the less likely answer; the last one stands for all
            later ones. For an odd T the threshold is the loss (T + 1) / 2, whose q_0 is 1/2; for
            an even T it is between T / 2 and T / 2 + 1, which both have q_0.
        shift: the T that these answers guarantee.
    """

    tails: tuple[float, ...]
    shift: int

    def reach(self, _: float) -> int:
        """Return a loss from which on every answer is the same coin."""
        return (self.shift + 1) // 2 + len(self.tails)

    def drawn(self, _: int, noise: Noise) -> Callable[[int], bool]:
        """Return a function of the loss that gives a fresh answer (True: down)."""

        def answer(loss: int) -> bool:
            tail, is_down = self._coin(loss)
            return noise.bernoulli(Fraction(tail)) != is_down

        return answer

    def chances(self, loss: int) -> tuple[float, float]:
        """Return the probabilities of down and up."""
        tail, is_down = self._coin(loss)
        return (1 - tail, tail) if is_down else (tail, 1 - tail)

    def _coin(self, loss: int) -> tuple[float, bool]:
        """Return the chance of the less likely answer, and whether "down" is the likely one."""
        is_down = 2 * loss <= self.shift
        away = self.shift // 2 - loss if is_down else loss - (self.shift + 2) // 2
        steps = away + (1 if self.shift % 2 and is_down else 0)
        return self.tails[min(steps, len(self.tails) - 1)], is_down


@lru_cache(maxsize=256)
def bit_answer(rho: Fraction, error: float, rest: float) -> BitAnswer | None:
    """Return the rho-zCDP answer with the smallest T whose errors at 0 and T + 1 are <= `error`.

    Args:
        rho: what one comparison may spend.
        error: the chance that one comparison may be wrong.
        rest: the chance at which the table ends.

    Returns:
        None where the table would be longer than `LONGEST`: use gaussian noise there.
    """
    allowed = float(rho) * (1 - _UNUSED)
    last = _logit(min(rest, error / 2))
    if last > allowed * LONGEST**2:  # roots of logits grow by sqrt(rho) a step, and faster at first
        return None
    starts = 0.0, _symmetric(allowed, last)
    odd, even = (tuple(_tails(start, allowed, last)) for start in starts)
    to_odd = max(1, next(k for k, tail in enumerate(odd) if tail <= error))
    to_even = next(k for k, tail in enumerate(even) if tail <= error)
    answers = BitAnswer(odd, 2 * to_odd - 1), BitAnswer(even, 2 * to_even)
    return min(answers, key=lambda answer: answer.shift)


def _tails(start: float, rho: float, last: float) -> Iterator[float]:
    """Yield the rare chances from the logit `start` to the logit `last`."""
    yield _chance(start)
    logit = start
    while logit < last:
        logit = min(last, logit + _gap(logit, rho))  # a smaller gap is no less private
        yield _chance(logit)


def _gap(inner: float, rho: float) -> float:
    """Return nearly the largest allowed gap to the next logit; the returned gap is allowed."""
    low = math.sqrt(rho / _curvature(inner)) * (1 - 1e-15)
    high = 2 * low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _is_allowed(inner, middle, rho) else (low, middle)
    return low


def _is_allowed(inner: float, gap: float, rho: float) -> bool:
    """Say whether two coins with the logits inner >= 0 and inner + gap are shown to be private."""
    widest = gap * gap * _curvature(inner)
    if widest <= rho:
        return True
    p = _chance(inner)
    drop = _softplus(-inner) - _softplus(-inner - gap)  # ln((1 - q) / (1 - p))
    x, divergence = gap - drop, p * gap - drop
    if gap * gap * _curvature(inner + gap) > rho or divergence >= rho or x <= rho:
        return False
    first = (rho - divergence) / (widest - rho)
    spare = _softplus(inner) - _softplus(inner - first * gap)
    return (x - rho) ** 2 <= 4 * rho * spare


def _symmetric(rho: float, last: float) -> float:
    """Return nearly the largest b with b tanh(b / 2) <= rho."""
    low, high = 0.0, last
    for _ in range(2 * _HALVINGS):
        middle = (low + high) / 2
        is_allowed = middle * math.tanh(middle / 2) <= rho
        low, high = (middle, high) if is_allowed else (low, middle)
    return low


def _curvature(logit: float) -> float:
    """Return kappa of a coin with this logit >= 0."""
    return math.tanh(logit / 2) / (4 * logit) if logit > 1e-6 else 0.125


def _softplus(x: float) -> float:
    """Return ln(1 + e^x) without overflow."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _chance(logit: float) -> float:
    return math.exp(-logit) / (1 + math.exp(-logit))


def _logit(chance: float) -> float:
    return math.log1p(-chance) - math.log(chance)
