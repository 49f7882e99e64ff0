"""Decide which partitions may be named: by their numbers of people, exactly.

**Of (epsilon, delta): truncated geometric selection, which is optimal.** A partition with n people
is kept with probability pi(n), pi(0) = 0 and

    pi(n) = min(e^epsilon pi(n-1) + delta, 1 - e^-epsilon (1 - pi(n-1) - delta), 1),

the largest that (epsilon, delta)-DP allows for every n at once (Desfontaines, Voss, Gipson,
Mandayam 2020, arXiv 2006.03684, Theorem 1). The keep-or-drop bit is (epsilon, delta)-DP
between n-1 and n people if and only if, writing p = pi(n-1) and q = pi(n),

    (a) q <= e^epsilon p + delta             (b) p <= e^epsilon q + delta
    (c) 1-p <= e^epsilon (1-q) + delta       (d) 1-q <= e^epsilon (1-p) + delta.

No float takes part. With E rational, 1 <= E <= e^epsilon, and d <= delta a multiple of
u = 2^-bits, the table holds, in units of u,

    q = min(floor(E p) + d, 1 - ceil((1 - p - d) / E), 1).

The four inequalities hold for it, exactly:
    (a) q <= E p + d <= e^epsilon p + delta.
    (c) 1 - q >= (1 - p - d) / E, hence 1 - p <= E (1-q) + d <= e^epsilon (1-q) + delta;
        where 1 - p - d < 0 this is plain, for q <= 1.
    (b), (d) q >= p is enough. floor(E p) + d >= p + d as E >= 1 and p is a multiple of u;
        the ceiling of (1-p-d)/E is at most 1 - p - d (a multiple of u) if that is >= 0, so
        1 - ceil(...) >= p + d; else 1 - p - d < 0, and 1 - ceil(...) >= 1 >= p.
So rounding down costs no privacy, and each step gains at least d > 0: the table ends.

What rounding costs in accuracy: on the first branch a step adds at most two units to the
shortfall and otherwise stretches it as it stretches pi, so it stays below 2 u / delta pi; on
the second it shrinks, and adds two units for each of at most 1 / delta steps. As u <= 2^-104
delta, the table is within 2^-100 of the recurrence in real numbers (for epsilon <= 1024).

**Of rho: a noisy number of people above a threshold.** `TruncatedGeometric` is optimal for
(epsilon, delta), and what is (epsilon, delta)-DP is also delta-approximate epsilon^2/2-zCDP. But
that is a poor use of rho: the threshold is then about ln(1 / delta) over the root of 2 rho. With
Gaussian noise the root of ln(1 / delta) stands in its place. For somebody in 16 partitions (epsilon
1, half of it for one metric, delta 10^-6) a partition is kept half of the time with 144 people in
place of 353.
"""

import dataclasses
import functools
import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.interval_widths import gaussian_bound
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.numerics.enclosures import exp_interval, root_below

_MOST_ENTRIES = 2**20
_MOST_PRE_THRESHOLD = 2**62
# Any E below e^epsilon serves the proof; past e^1024 more would gain nothing.
_MOST_EPSILON = Fraction(1024)
_GROWTH_BITS = 192
_WORD = 64
_SELDOM = Fraction(1, 1000)
_MOST_DELTA = Fraction(1, 4)


@dataclasses.dataclass(frozen=True)
class TruncatedGeometric:
    """Decide by the number of its people whether a partition is kept; optimal for (epsilon, delta).

    The decision on one partition is (epsilon, delta)-DP when one person is added or removed;
    a person in k partitions costs k times as much. A partition is never kept with fewer than
    `pre_threshold` people, is kept with probability at most delta with exactly that many,
    and always from `threshold` people on.

    Edge cases: a partition without people is never kept. An epsilon above 1024 is used as
    1024. The table is made once per (epsilon, delta) and process and is not pickled.

    Args:
        epsilon: above 0; larger lowers the threshold.
        delta: above 0 and below 1; larger lowers the threshold.
        pre_threshold: the fewest people a named partition may have; it shifts the threshold
            by pre_threshold - 1 and costs no privacy.

    Raises:
        ValueError: for a `pre_threshold` above 2^62, or if more than 2^20 probabilities would lie
            between never and always.

    Source: Desfontaines, Voss, Gipson, Mandayam 2020, arXiv 2006.03684, Theorem 1;
    pre_threshold: n is replaced by max(0, n - pre_threshold + 1), which moves by at most one.
    """

    epsilon: Fraction
    delta: Fraction
    pre_threshold: int = 1

    def __post_init__(self) -> None:
        _check_pre_threshold(self.pre_threshold)
        _check_size(self.epsilon, self.delta)

    @property
    def threshold(self) -> int:
        """The fewest people with which a partition is always kept."""
        return self.pre_threshold - 1 + len(_table(self.epsilon, self.delta)[0])

    @property
    def name(self) -> str:
        """The mechanism, for the plan."""
        return "truncated geometric selection"

    @property
    def certainty(self) -> str:
        """From how many people on a partition is kept, and how surely."""
        return f"kept for sure from {self.threshold} people on"

    def probability(self, people: int) -> Fraction:
        """Return the exact probability that a partition of `people` people is kept."""
        table, words = _table(self.epsilon, self.delta)
        index = max(0, people - self.pre_threshold + 1)
        return Fraction(table[index], 1 << _WORD * words) if index < len(table) else Fraction(1)

    def keep(self, people: npt.NDArray[np.int64], noise: Noise) -> npt.NDArray[np.bool_]:
        """Decide on many partitions at once: True with exactly `probability(people[i])`.

        Args:
            people: how many people each partition has; one dimension.
            noise: where the randomness comes from, `Noise()`.
        """
        table, words = _table(self.epsilon, self.delta)
        # Clipped before the shift, so that no count can wrap.
        shift, top = self.pre_threshold - 1, self.threshold
        index = np.clip(np.asarray(people, dtype=np.int64), shift, top) - shift
        kept: npt.NDArray[np.bool_] = index == len(table)
        unsure = np.flatnonzero((index > 0) & ~kept)
        drawn = noise.words(words * len(unsure)).reshape(words, -1).astype(object)
        uniform = functools.reduce(lambda high, low: high << _WORD | low, drawn)
        kept[unsure] = uniform < table[index[unsure]]
        return kept


@functools.lru_cache(maxsize=8)
def _table(epsilon: Fraction, delta: Fraction) -> tuple[np.ndarray, int]:
    """Return pi(0), pi(1), ... while below 1, in units of 2^(-64 words), and the words."""
    words = _word_count(delta)
    one = 1 << (_WORD * words)
    step = math.floor(delta * one)
    growth = _growth(epsilon)
    table, value = [], 0
    while value < one:
        table.append(value)
        rise = (growth * value >> _GROWTH_BITS) + step
        fall = -(-((one - value - step) << _GROWTH_BITS) // growth)
        value = min(rise, one - fall, one)
    return np.array(table, object), words


def _word_count(delta: Fraction) -> int:
    """Return how many 64-bit words make u <= 2^-104 delta."""
    bits = delta.denominator.bit_length() - delta.numerator.bit_length() + 1
    return math.ceil((104 + bits) / _WORD)


def _growth(epsilon: Fraction) -> int:
    """Return E in units of 2^-192: at least 1, at most e^epsilon."""
    below, _ = exp_interval(min(epsilon, _MOST_EPSILON), _GROWTH_BITS)
    return max(1 << _GROWTH_BITS, math.floor(below * (1 << _GROWTH_BITS)))


def halfway(epsilon: Fraction, delta: Fraction) -> float:
    """Return about how many people more than one keep a partition half of the time.

    By the closed form of the paper's Theorem 1 the first branch is left after about
    ln(1 + tanh(epsilon/2) (1 - delta) / delta) / epsilon steps.
    """
    rate = float(min(epsilon, _MOST_EPSILON))
    odds = Fraction(math.tanh(rate / 2)) * (1 - delta) / delta
    if not rate:  # below all floats
        return math.inf
    if odds < 1:
        return math.log1p(odds) / rate
    return (math.log(odds.numerator + odds.denominator) - math.log(odds.denominator)) / rate


def _check_pre_threshold(people: int) -> None:
    rule = f"be from 1 to 2^62, not {people}"
    checks.require(1 <= people <= _MOST_PRE_THRESHOLD, "PrivatePartitions", "pre_threshold", rule)


def _check_size(epsilon: Fraction, delta: Fraction) -> None:
    """Refuse parameters whose table would be too long.

    The second branch of the recurrence, the mirror image of the first, takes as many steps.
    """
    people = halfway(epsilon, delta)
    checks.require(
        2 * people < _MOST_ENTRIES,
        "TruncatedGeometric",
        "the probabilities",
        f"settle within 2^20 people, not {2 * people:.3g}",
        "Raise epsilon or delta, or let each person into fewer partitions.",
    )


@dataclasses.dataclass(frozen=True)
class GaussianThreshold:
    """Keep a partition whose number of people, plus discrete Gaussian noise, is above a threshold.

    With n people let m = max(0, n - pre_threshold + 1). A partition with m = 0 is never kept; else
    it is kept where m + X > 1 + t, X discrete Gaussian of variance 1 / (2 rho), and t so large that
    P(X > t) <= delta.

    *Privacy.* The decision is delta-approximate rho-zCDP when one person is added or removed, who
    moves m by 0 or 1. From m >= 1 to m + 1: the noisy number is rho-zCDP for sensitivity 1
    (Canonne, Kamath, Steinke 2020, Theorem 4), and the decision a function of it. From m = 0 to 1:
    let E be the event that the partition is not kept. Its chance is 1 for m = 0 and at least
    1 - delta for m = 1, and given E the outcomes are alike (Bun and Steinke 2016, Definition 8.1).
    A person in k partitions costs k times as much rho and delta (their Lemma 8.2).

    Args:
        rho: above 0; larger lowers the threshold.
        delta: above 0 and at most 1/4; larger lowers the threshold.
        pre_threshold: the fewest people a named partition may have.

    Raises:
        ValueError: for a `pre_threshold` above 2^62.

    Source: the threshold for Gaussian noise as in Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin
    2020, arXiv 2002.09745, for one partition at a time.
    """

    rho: Fraction
    delta: Fraction
    pre_threshold: int = 1

    def __post_init__(self) -> None:
        _check_pre_threshold(self.pre_threshold)

    @property
    def variance(self) -> Fraction:
        """The variance of the noise."""
        return 1 / (2 * self.rho)

    @property
    def slack(self) -> int:
        """How far above one person the noisy number must be: t, by symmetry of the noise."""
        return gaussian_bound(self.variance, 2 * self.delta)

    @property
    def threshold(self) -> int:
        """The fewest people with which a partition is kept in 999 of 1,000 draws."""
        return self.pre_threshold + 1 + self.slack + gaussian_bound(self.variance, 2 * _SELDOM)

    @property
    def name(self) -> str:
        """The mechanism, for the plan."""
        return "selection by Gaussian noise"

    @property
    def certainty(self) -> str:
        """From how many people on a partition is kept, and how surely."""
        half = self.pre_threshold + self.slack
        return f"kept nearly always from {self.threshold} people on, half of the time with {half}"

    def keep(self, people: npt.NDArray[np.int64], noise: Noise) -> npt.NDArray[np.bool_]:
        """Decide on many partitions at once.

        Args:
            people: how many people each partition has; one dimension.
            noise: where the randomness comes from, `Noise()`.
        """
        # Raised before the shift, so that no number can wrap.
        shift = self.pre_threshold - 1
        counted = np.maximum(np.asarray(people, np.int64), shift) - shift
        present = np.flatnonzero(counted)
        drawn = noise.discrete_gaussian(self.variance, len(present))
        kept = np.zeros(len(counted), np.bool_)
        kept[present] = integers.add(counted[present], drawn) > 1 + self.slack
        return kept


Selection = TruncatedGeometric | GaussianThreshold
"""A private decision for each partition, by the number of its people."""


@functools.lru_cache(maxsize=64)
def best_selection(cost: Budget, pre_threshold: int) -> Selection:
    """Return the selection that a cost per partition pays for, by public parameters.

    An (epsilon, delta) pays for the truncated geometric one. A rho with a delta pays for either:
    the geometric one with epsilon = root of 2 rho, or Gaussian noise. The one is taken that keeps a
    partition half of the time with fewer people.

    Args:
        cost: what a decision on one partition may cost; its delta is above 0.
        pre_threshold: the fewest people a named partition may have.
    """
    if not cost.is_zcdp:
        return TruncatedGeometric(cost.amount, cost.delta, pre_threshold)
    epsilon = root_below(2 * cost.amount)
    if cost.delta <= _MOST_DELTA:
        gaussian = GaussianThreshold(cost.amount, cost.delta, pre_threshold)
        if gaussian.slack <= halfway(epsilon, cost.delta):
            return gaussian
    return TruncatedGeometric(epsilon, cost.delta, pre_threshold)
