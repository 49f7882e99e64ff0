"""A noisy histogram of people, each of whom is in one bucket: it costs the same for all buckets.

Adding a person adds 1 to one bucket. So independent discrete Laplace noise of rate epsilon on every
bucket is epsilon-DP, and discrete Gaussian noise of variance 1 / (2 rho) is rho-zCDP.

Source: the discrete Gaussian is rho-zCDP by Canonne, Kamath, Steinke 2020, Theorem 4.
"""

import functools
import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import integers


@dataclass(frozen=True)
class HistogramNoise:
    """The noise that a budget allows on every bucket of a histogram of people.

    Attributes:
        budget: what all buckets together cost.
    """

    budget: Budget

    def add(self, people: np.ndarray, noise: Noise) -> np.ndarray:
        """Return the numbers of people with independent noise."""
        flat = people.reshape(-1)
        adder = AdditiveNoise(self.budget)
        return np.asarray(adder.add(flat, 1, noise)).reshape(people.shape)

    def blurred(self, noisy: np.ndarray, cost: Budget, noise: Noise) -> np.ndarray:
        """Return what `add` returned as if a lower pure budget had been spent on it.

        Let A and B be independent geometric variables of rates c, the lower epsilon, and
        epsilon - c. Then min(A, B) is geometric of rate epsilon, and max(A - B, 0) is independent
        of it: given min(A, B) = m, A is m with the chance (1 - e^-c) / (1 - e^-epsilon), whatever m
        is, and else A - m is 1 more than a geometric variable of rate c. Their sum is A. Laplace
        noise is the difference of two geometric variables, so adding the difference of two
        max(A - B, 0) turns noise of rate epsilon into exactly that of rate c.
        """
        size, rest = noisy.size, self.budget.amount - cost.amount

        def more() -> np.ndarray:
            drawn = noise.geometric(cost.amount, size), -noise.geometric(rest, size)
            return np.asarray(np.maximum(integers.add(*drawn), 0))

        blur = integers.add(more(), -more())
        return np.asarray(integers.add(noisy.reshape(-1), blur)).reshape(noisy.shape)

    @property
    def scale(self) -> float:
        """1 / epsilon, or the standard deviation over sqrt(2) for Gaussian noise.

        Either way the standard deviation of the noise is sqrt(2) times this.
        """
        scale = AdditiveNoise(self.budget).scale
        return scale / math.sqrt(2) if self.budget.is_zcdp else scale


@functools.lru_cache(maxsize=1 << 14)
def beyond(budget: Budget, buckets: int, chance: float) -> float:
    """Return a t that the sum of the noise of so many buckets exceeds with at most this chance.

    Laplace, one bucket: P(X > t) = e^(-rate (floor(t) + 1)) / (1 + e^-rate). Else let N be the
    continuous variable of the same rate or variance, and R be N rounded to the nearest integer.
    P(R = k) / P(X = k) grows with |k|: it is proportional to sinh(rate / 2) for k != 0 and to
    1 - e^(-rate / 2), which is less, for k = 0; for Gaussian noise of variance v, to the integral
    of e^(-u^2 / (2 v)) cosh(k u / v) over |u| <= 1/2. So |X| is stochastically at most |R|. X and R
    are symmetric and unimodal: the same holds of sums of b of them (Birnbaum 1948), and a sum of b
    R exceeds one of b N by at most b / 2.

    Args:
        budget: that of `HistogramNoise`.
        buckets: how many.
        chance: of more.
    """
    if budget.is_zcdp:
        deviation = AdditiveNoise(budget).scale * math.sqrt(buckets)
        return deviation * -NormalDist().inv_cdf(chance) + buckets / 2
    rate = float(budget.amount)
    if buckets == 1:
        return -math.log(chance * (1 + math.exp(-rate))) / rate
    return _laplace_sum(buckets, chance) / rate + buckets / 2


@functools.lru_cache(maxsize=1 << 10)
def all_beyond(budget: Budget, buckets: int, chances: tuple[float, ...]) -> np.ndarray:
    """Return `beyond` for each of several chances."""
    return np.array([beyond(budget, buckets, chance) for chance in chances])


@functools.lru_cache(maxsize=1 << 14)
def _laplace_sum(buckets: int, chance: float) -> float:
    """Return x that the sum of so many Laplace variables of rate 1 exceeds with at most the chance.

    The sum is the difference of two sums of b exponential variables, two processes that are equally
    fast: k events of the one are left when the other has had its b, with probability
    C(2 b - k - 1, b - 1) / 2^(2 b - k). So P(sum > x) = e^-x p(x), p a polynomial that grows less
    than e^x, and x = ln p(x) - ln chance is approached from above.
    """
    left = [
        math.comb(2 * buckets - k - 1, buckets - 1) / 2 ** (2 * buckets - k)
        for k in range(1, buckets + 1)
    ]
    factors = [sum(left[j:]) / math.factorial(j) for j in range(buckets)]
    x = 2 * (10 - math.log(chance))
    for _ in range(100):
        before = x
        x = math.log(sum(factor * x**j for j, factor in enumerate(factors))) - math.log(chance)
        if x == before:  # so are all that would follow
            break
    return x
