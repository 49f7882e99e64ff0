"""NoisyBinarySearch: find a candidate of small loss by halving, with noisy comparisons.

Left out is the search that tolerates wrong answers (Steinke, "Beyond Local Sensitivity via Down
Sensitivity", 2023, footnote 7; Karp and Kleinberg 2007, Gretta and Price 2023). Its privacy is
that of its comparisons, but no shift T is proved for a finite N: losses from 1 to T may be answered
in any way, which no finite bound allows for.

*The coin of zCDP.* Here a comparison needs no noise, only a chance of "down" for every loss l. Away
from the threshold the less likely bit has the chances q_0 > q_1 > ..., and losses that differ by 1
have neighbours in that list. Each q is as small as rho allows, for all orders alpha > 1 and both
ways: D_alpha(q_k || q_{k+1}) <= alpha rho, proved as follows, without a search over alpha.

Let a coin P have the rare chance p and Q have q, with the logits a = ln((1 - p) / p) and b of q,
and the gap g = b - a. With t = alpha - 1 > 0, (alpha - 1) D_alpha(P || Q) is the cumulant function

    K(t) = ln(p e^(t x) + (1 - p) e^(t (x - g))),   x = ln(p / q),   and  K(t) <= rho t (t + 1)

is to be shown for all t > 0. K'(0) = KL(P || Q).

By the inequality of Kearns and Saul for the centred coin (1998, "Large Deviation Methods for
Approximate Probabilistic Inference", proved by Berend and Kontorovich 2013, "On the concentration
of the missing mass", section 3), K(t) <= t KL + t^2 g^2 kappa(a), kappa(a) = tanh(|a| / 2) /
(4 |a|), kappa(0) = 1/8. It holds for t = -1 too, where K = 0: so KL <= c = g^2 kappa(a), and
c <= rho is enough for every t. kappa falls with |a|, so that this is hardest for the coin nearer to
1/2: g = sqrt(rho / kappa(a)), a its logit.

Where the threshold is between two losses, these have the chances 1 - q and q of "down": the gap is
2 b, with kappa(b), so that b tanh(b / 2) <= rho is enough. As KL = b tanh(b / 2), no larger b is
private. (A finer bound for coins far from 1/2 would lower shifts by 1%, and those of a large rho by
one.)
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics.enclosures import last_where, root_below
from beam_dp.mechanisms.profiles.profile import Profile, loss_at
from beam_dp.mechanisms.search.common import ENOUGH, LOG_COUPLING, Search

# The part of rho that is left unused. Gaps are above 1e-3 (see LONGEST), and logits, with the
# rounding of each q, are known to 1e-15: so gaps are right to 1e-10 of themselves.
_UNUSED = 1e-9
LONGEST = 4096
"""The most losses that a table of coins may have on one side of its threshold."""
REST = 1e-13
"""The chance, over all comparisons, below which coins are not told apart."""


@dataclass(frozen=True)
class NoisyBinarySearch(Search):
    """Search the first candidate of small loss by m = ceil(log2 N) noisy comparisons.

    The release is epsilon-DP (rho-zCDP for `Budget.zcdp(rho)`) when one person is added or removed,
    and with probability at least 1 - beta it lies between f without its `shift(n)` most important
    people and f itself, both rounded up onto the candidates.

        lo = -1; hi = N - 1                    # so that y_0 can be returned
        while hi - lo > 1:
            k = (lo + hi) // 2
            if "l(y_k) is small": hi = k, else lo = k
        return y_hi                            # after at most ceil(log2 N) comparisons

    Privacy: each answer is private, and answers compose adaptively.

    * epsilon: "small" is l + X <= T / 2 with discrete Laplace noise X of the rate epsilon / m. The
      loss moves by at most 1, so each answer is epsilon / m-DP.
    * rho: the answer is a coin of exact rational chances that fall off as fast as rho / m-zCDP is
      proved to allow (see the module). Of all answers for this rho it is nearly the best, with a
      shift 12 to 20% below that of gaussian noise. Where its table would exceed `LONGEST` (rho / m
      below some 1e-6) the noise is Laplace of the rate eps0 with m eps0^2 / 2 <= rho, as eps0-DP
      implies eps0^2 / 2-zCDP (Bun and Steinke 2016, Prop. 1.4).

    Guarantee: an answer is wrong only where it goes up at l = 0 or down at l >= T + 1. Either has
    a probability of at most err = 1 - (1 - beta)^(1/m), and answers are independent.

    Edge cases: one candidate is returned as it is, with shift 0. `Budget(epsilon, delta)` spends
    epsilon only. A profile above the top counts as the top.

    Args:
        budget: what one choice may spend.
        beta: the failure probability of the shift.

    Raises:
        TypeError: if budget is no Budget.
        ValueError: unless 0 < beta < 1.
    """

    def _shift(self, n: int) -> int:
        return self._answer(n).shift

    def _cap(self, n: int) -> int:
        # Only an answer "down" at a loss above it could differ: a chance of 1e-12 / m per answer.
        return self._answer(n).tail_bound(LOG_COUPLING + math.log(_comparisons(n)))

    def _choose(self, profile: Profile, candidates: Candidates, noise: Noise) -> int:
        steps = profile.steps(candidates)
        goes_down = self._answer(candidates.size).drawn(_comparisons(candidates.size), noise)
        low, high = -1, candidates.size - 1
        while high - low > 1:
            middle = (low + high) // 2
            if goes_down(loss_at(steps, middle)):
                high = middle
            else:
                low = middle
        return high

    def _answer(self, n: int) -> "_Laplace | BitAnswer":
        m = _comparisons(n)
        error = -math.expm1(math.log1p(-float(self.beta)) / m)  # 1 - (1 - beta)^(1 / m)
        each = min(self.budget.amount, ENOUGH) / m
        if not self.budget.is_zcdp:
            return _laplace(each, error)
        return bit_answer(each, error, REST / m) or _laplace(root_below(2 * each), error)


@dataclass(frozen=True)
class _Laplace:
    """The answer to l + X <= theta, P(X = k) proportional to e^(-rate |k|)."""

    rate: Fraction
    theta: int

    @property
    def shift(self) -> int:
        """The T that these answers guarantee."""
        return 2 * self.theta

    def tail_bound(self, log_chance: float) -> int:
        """Return a loss whose answer is "down" with a chance of at most e^-log_chance."""
        return self.theta + math.ceil(log_chance / float(self.rate))

    def drawn(self, m: int, noise: Noise) -> Callable[[int], bool]:
        """Return a function of the loss that gives a fresh answer (True: down), for m calls."""
        noises = iter(noise.discrete_laplace(self.rate, m).tolist())
        return lambda loss: loss + next(noises) <= self.theta


def _laplace(rate: Fraction, error: float) -> _Laplace:
    """Return the smallest theta >= 0 with e^(-rate (theta + 1)) / (1 + e^-rate) <= error.

    That is P(X > theta), of going up at l = 0, and P(X < -theta), of going down at 2 theta + 1.
    """
    per_step = float(rate)
    needed = -(math.log(error) + math.log1p(math.exp(-per_step))) / per_step - 1
    return _Laplace(rate, max(0, math.ceil(needed * (1 + 1e-12))))  # above the rounding


def _comparisons(n: int) -> int:
    """Return ceil(log2 n), for n >= 2: hi - lo starts at n and each comparison halves it."""
    return (n - 1).bit_length()


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

    def tail_bound(self, _: float) -> int:
        """Return a loss from which on every answer is the same coin."""
        return (self.shift + 1) // 2 + len(self.tails)

    def drawn(self, _: int, noise: Noise) -> Callable[[int], bool]:
        """Return a function of the loss that gives a fresh answer (True: down)."""

        def answer(loss: int) -> bool:
            tail, is_down = self._coin(loss)
            exact = Fraction(tail)
            return noise.bernoulli_below(lambda _: (exact, exact)) != is_down

        return answer

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
        None where the table would be longer than `LONGEST`.
    """
    allowed = float(rho) * (1 - _UNUSED)
    last = _logit(min(rest, error / 2))
    if last > allowed * LONGEST**2:  # roots of logits grow by sqrt(rho) a step, and faster at first
        return None
    symmetric = last_where(lambda b: b * math.tanh(b / 2) <= allowed, 0.0, last)
    starts = 0.0, symmetric
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
        gap = math.sqrt(rho / _curvature(logit))
        logit = min(last, logit + gap)  # a smaller gap is no less private
        yield _chance(logit)


def _curvature(logit: float) -> float:
    """Return kappa of a coin with this logit >= 0."""
    return math.tanh(logit / 2) / (4 * logit) if logit > 1e-6 else 0.125


def _chance(logit: float) -> float:
    return math.exp(-logit) / (1 + math.exp(-logit))


def _logit(chance: float) -> float:
    return math.log1p(-chance) - math.log(chance)
