"""A noisy histogram of people, each of whom is in one bucket: it costs the same for all buckets.

Adding a person adds 1 to one bucket. So independent discrete Laplace noise of rate epsilon on every
bucket is epsilon-DP, and discrete Gaussian noise of variance 1 / (2 rho) is rho-zCDP.

*Two looks.* With the shares s_1 < s_2 of a whole budget, the first look costs s_1 of it. Where what
it shows is enough, it is all that is spent, and 1 - s_1 is left for what follows. Else the second
look is taken, which costs s_2 in all, the first included, and 1 - s_2 is left.

**Pure epsilon: coarsening.** The fine counts of a histogram h are x2 = h + DLap(s_2 epsilon), and
`coarser` makes x1 of them, which has the distribution of h + DLap(s_1 epsilon) exactly, by noise
that knows nothing of h.

*Privacy.* Whether x1 is enough is a function of x1. Where it is, x1 is released, at s_1 epsilon,
and what follows spends (1 - s_1) epsilon. Where it is not, x2 is released; x1 is x2 with noise that
knows nothing of h, so both together cost no more than x2, s_2 epsilon, and what follows spends
(1 - s_2) epsilon. For a set S of outcomes, neighbours h, h' and what follows M, (its part of
epsilon, delta)-DP given what was released,

    P[stop, S] <= sum_x1 P(x1) (e^((1 - s_1) epsilon) M'(S | x1) + delta)
               <= e^epsilon P'[stop, S] + delta P[stop],

and in the same way P[go on, S] <= e^epsilon P'[go on, S] + delta P[go on]: together (epsilon,
delta)-DP. So x2 must not be released, nor used, where x1 was enough.

**zCDP: a fresh draw.** x1 = h + N(1 / (2 s_1 rho)); the second look is the mean of x1 and a fresh
draw of (s_2 - s_1) rho, weighted by their shares, with the variance 1 / (2 s_2 rho). *Privacy.*
Given x1, what follows costs (1 - s_1) rho in either case: the rest after one look, or a fresh draw
of (s_2 - s_1) rho and then the rest of (1 - s_2) rho. So it is the composition of two adaptive
mechanisms of s_1 rho and of (1 - s_1) rho: rho in all (Bun and Steinke 2016, Lemma 2.3; with delta,
Lemma 8.2).

Source: the discrete Gaussian is rho-zCDP by Canonne, Kamath, Steinke 2020, Theorem 4.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics.enclosures import Interval, exp_interval


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

    @property
    def scale(self) -> float:
        """1 / epsilon, or the standard deviation over sqrt(2) for Gaussian noise.

        Either way the standard deviation of the noise is sqrt(2) times this.
        """
        scale = AdditiveNoise(self.budget).scale
        return scale / math.sqrt(2) if self.budget.is_zcdp else scale

    def beyond(self, buckets: int, chance: float) -> float:
        """Return a t that the sum of the noise of so many buckets exceeds with at most this chance.

        Laplace, one bucket: P(X > t) = e^(-rate (floor(t) + 1)) / (1 + e^-rate). Else let N be the
        continuous variable of the same rate or variance, and R be N rounded to the nearest integer.
        P(R = k) / P(X = k) grows with |k|: it is proportional to sinh(rate / 2) for k != 0 and to
        1 - e^(-rate / 2), which is less, for k = 0; for Gaussian noise of variance v, to the
        integral of e^(-u^2 / (2 v)) cosh(k u / v) over |u| <= 1/2. So |X| is stochastically at most
        |R|. X and R are symmetric and unimodal: the same holds of sums of b of them (Birnbaum
        1948), and a sum of b R exceeds one of b N by at most b / 2.
        """
        return _beyond(self.budget, buckets, chance)


class Choice(NamedTuple):
    """What is released of histograms to choose by.

    Attributes:
        noisy: the noisy numbers of people, in the form of the histograms.
        look: the index of the look that was used.
    """

    noisy: np.ndarray
    look: int


@dataclass(frozen=True)
class Looks:
    """One look at histograms, or two; see the module's docstring.

    Attributes:
        costs: what each look costs in all; the last one costs most.
    """

    costs: tuple[Budget, ...]

    def draw(
        self, people: np.ndarray, is_enough: Callable[[np.ndarray], bool], noise: Noise
    ) -> Choice:
        """Return the look that is released; nothing else of the draws may be used.

        Args:
            people: the exact histograms.
            is_enough: whether a first look is, by what is released of it.
            noise: the randomness.
        """
        first, last = self.costs[0], self.costs[-1]
        if len(self.costs) == 1:
            return Choice(HistogramNoise(last).add(people, noise), 0)
        if not last.is_zcdp:
            fine = HistogramNoise(last).add(people, noise)
            coarse = coarser(fine, last, first, noise)
            return Choice(coarse, 0) if is_enough(coarse) else Choice(fine, 1)
        coarse = HistogramNoise(first).add(people, noise)
        if is_enough(coarse):
            return Choice(coarse, 0)
        more = Budget.zcdp(last.amount - first.amount)
        again = HistogramNoise(more).add(people, noise)
        weight = float(first.amount / last.amount)
        return Choice(weight * coarse + (1 - weight) * again, 1)


@functools.lru_cache(maxsize=1 << 14)
def _beyond(budget: Budget, buckets: int, chance: float) -> float:
    if budget.is_zcdp:
        deviation = AdditiveNoise(budget).scale * math.sqrt(buckets)
        return deviation * -NormalDist().inv_cdf(chance) + buckets / 2
    rate = float(budget.amount)
    if buckets == 1:
        return -math.log(chance * (1 + math.exp(-rate))) / rate
    return _laplace_sum(buckets, chance) / rate + buckets / 2


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


def coarser(noisy: np.ndarray, fine: Budget, coarse: Budget, noise: Noise) -> np.ndarray:
    """Return a histogram with the noise of a smaller epsilon, made of one with less noise.

    With a1 = e^-coarse > a2 = e^-fine, X2 discrete Laplace of rate `fine` and an independent X1 of
    rate `coarse`, X2 + B X1 has the distribution of X1 exactly, where B is 0 with probability
    w = ((1 - a1) / (1 - a2))^2 a2 / a1, else 1: the characteristic function of rate -ln a is
    (1 - a)^2 / (1 + a^2 - 2 a cos t), and the quotient of two of these is w + (1 - w) times that of
    a1. So a coarse look costs epsilon `coarse` alone; who has seen both has seen `noisy`, and what
    is computed from it: epsilon `fine`.

    Source: Koufogiannis, Han, Pappas, "Gradual Release of Sensitive Data under Differential
    Privacy", arXiv 1504.00429.

    Args:
        noisy: int64, with discrete Laplace noise of rate `fine` on every bucket.
        fine: a pure epsilon.
        coarse: a smaller one.
        noise: the randomness.
    """
    flat = noisy.reshape(-1)
    bound = functools.partial(_stay_interval, fine.amount, coarse.amount)
    stays = noise.bernoullis_below(bound, len(flat))
    more = noise.discrete_laplace(coarse.amount, len(flat))
    return np.asarray(flat + np.where(stays, 0, more)).reshape(noisy.shape)


def _stay_interval(fine: Fraction, coarse: Fraction, bits: int) -> Interval:
    """Enclose w = e^(coarse - fine) ((1 - e^-coarse) / (1 - e^-fine))^2, to 2^-bits."""
    work = bits + 16
    while True:
        shift, first, second = (exp_interval(-x, work) for x in (fine - coarse, coarse, fine))
        if second[1] == 1:  # too few bits for so small an epsilon
            work *= 2
            continue
        low = shift[0] * ((1 - first[1]) / (1 - second[0])) ** 2
        high = shift[1] * ((1 - first[0]) / (1 - second[1])) ** 2
        if high - low <= Fraction(1, 1 << bits):
            return low, high
        work *= 2
