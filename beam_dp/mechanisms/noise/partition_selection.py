"""Decide which partitions may be named: by their people, exactly.

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

**For people in several partitions: a noisy sum of weights above a threshold.** The table above costs
once per partition of a person, so it asks for a bound on these. `WeightedThreshold` costs once for
all: a person with k partitions adds 1 / sqrt(k) to each, so that everybody moves all sums together
by at most 1 in L2, and whoever has few partitions adds much to each. At epsilon 1 and delta 10^-6
a partition with 26 people, each in no other, is released with probability 1/2, and so is one with
74 people, each in 8; with the table 14 or 105 are needed, and a bound of 1 or of 8 must be known.
"""

import dataclasses
import functools
import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.accounting.zcdp import zcdp_rho
from beam_dp.mechanisms.noise.interval_widths import gaussian_bound
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.numerics.enclosures import exp_interval, root_below

MOST = 64
"""So many partitions of a person count at most where no bound is given."""
_ONE = 1 << 20  # the weight of a person who is in one partition
_SHOWN = 8
_MOST_ENTRIES = 2**20
_MOST_PRE_THRESHOLD = 2**62
# Any E below e^epsilon serves the proof; past e^1024 more would gain nothing.
_MOST_EPSILON = Fraction(1024)
_GROWTH_BITS = 192
_WORD = 64
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

    name: ClassVar[str] = "truncated geometric selection"
    """The mechanism, for the plan."""

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

    def middle(self, partitions: int) -> float:
        """Return about how many people, in however many partitions each, are seen half the time."""
        return self.pre_threshold + halfway(self.epsilon, self.delta)

    @property
    def certainty(self) -> str:
        """With how many people a partition is always released."""
        return f"a partition with at least {self.threshold} people is always released"

    def probability(self, people: int) -> Fraction:
        """Return the exact probability that a partition of `people` people is kept."""
        table, words = _table(self.epsilon, self.delta)
        index = max(0, people - self.pre_threshold + 1)
        return Fraction(table[index], 1 << _WORD * words) if index < len(table) else Fraction(1)

    def keep(
        self,
        people: npt.NDArray[np.int64],
        noise: Noise,
        weights: npt.NDArray[Any] | None = None,
    ) -> npt.NDArray[np.bool_]:
        """Decide on many partitions at once: True with exactly `probability(people[i])`.

        Args:
            people: how many people each partition has; one dimension.
            noise: where the randomness comes from, `Noise()`.
            weights: unused: all people count alike.
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


def weights_of(partitions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return what a person adds to each of their k partitions: at most 2^20 / sqrt(k)."""
    found = np.floor(_ONE / np.sqrt(partitions)).astype(np.int64)
    return np.asarray(found - (found * found * partitions > _ONE**2))


@dataclasses.dataclass(frozen=True)
class WeightedThreshold:
    """Keep a partition whose weights add up, with discrete Gaussian noise, to above a threshold.

    Everything is in units of 2^-20. A person who is in k <= `most` partitions adds `weights_of(k)`,
    an integer w_k <= 2^20 / sqrt(k), to the sum W of each of them. With s = pre_threshold - 1, a
    partition with at most s people is never kept; another is kept where W - 2^20 s + X > t, with X
    discrete Gaussian of variance 2^40 / (2 rho), drawn anew for each, and

        t = max over 1 <= j <= most of floor(2^20 / sqrt(j)) + b_j,   P(X > b_j) <= delta / j,

    with whole b_j that are rounded up (`gaussian_bound`).

    *Privacy.* The set of kept partitions is delta-approximate rho-zCDP when a person is added to x,
    which gives x'. For a fixed key, which of their partitions a person keeps, and so k and w_k,
    follows from that person's rows alone: the weights of all others are the same in x and x'. Call
    a partition open with more than s people, and new if it is open in x' only.
    (1) Partitions open in x: the sums move by w_k in at most k of them, sqrt(k w_k^2) <= 2^20 in
    L2. So the noisy sums, and the decisions on them, are rho-zCDP (Canonne, Kamath, Steinke 2020,
    Theorem 14).
    (2) New partitions are j <= k of the person's. Each has s + 1 people in x', s of whom add at
    most 2^20 each: W - 2^20 s <= w_k <= floor(2^20 / sqrt(j)) <= t - b_j. So it is kept only where
    X > b_j, and with a chance of at least 1 - j delta / j = 1 - delta none of them is.
    Let E' be the event that none is kept. Its noise is independent of that in (1): given E' the
    output on x' is that of the decisions in (1), and x needs no event. That is the claim (Bun and
    Steinke 2016, Definition 8.1). (Beyond j = 64 one bound stands for all: floor(2^20 / 8) for
    the weights, and b_most for b_j.)

    *For (epsilon, delta)* take rho whose zCDP implies (epsilon, delta / 2)-DP, and delta / 2 for
    delta here. Let p, p' be the chances of a set of outputs on x and x', and q' that on x' given E'.
    By (1) p <= e^epsilon q' + delta/2 and q' <= e^epsilon p + delta/2, by (2)
    (1 - delta/2) q' <= p' <= q' + delta/2. Hence p' <= e^epsilon p + delta. And
    e^epsilon p' + delta >= e^epsilon q' (1 - delta/2) + delta, which is at least
    e^epsilon q' + delta/2 >= p where e^epsilon q' <= 1, and at least 1 + delta/2 >= p elsewhere.

    Args:
        rho: above 0; larger lowers the threshold.
        delta: above 0 and at most 1/4; larger lowers the threshold.
        most: the most partitions of one person that count.
        pre_threshold: the fewest people a named partition may have.

    Raises:
        ValueError: for a `pre_threshold` above 2^62.

    Source: weights and threshold as in Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin 2020,
    arXiv 2002.09745, and Carvalho, Wang, Gondara, Miao 2022.
    """

    name: ClassVar[str] = "weighted selection by Gaussian noise"
    """The mechanism, for the plan."""

    rho: Fraction
    delta: Fraction
    most: int = 1
    pre_threshold: int = 1

    def __post_init__(self) -> None:
        _check_pre_threshold(self.pre_threshold)

    @property
    def variance(self) -> Fraction:
        """The variance of the noise."""
        return _ONE**2 / (2 * self.rho)

    @functools.cached_property
    def threshold(self) -> int:
        """What the noisy sum must exceed: t, and 2^20 for each person below the pre_threshold."""
        pairs = [(number, number) for number in range(1, min(self.most, MOST) + 1)]
        pairs += [(MOST, self.most)] * (self.most > MOST)
        bounds = (
            math.isqrt(_ONE**2 // least) + gaussian_bound(self.variance, 2 * self.delta / number)
            for least, number in pairs
        )
        return max(bounds) + _ONE * (self.pre_threshold - 1)

    def middle(self, partitions: int) -> int:
        """Return with how many people, each in so many, a partition is released half of the time."""
        return self.threshold // math.isqrt(_ONE**2 // min(partitions, self.most)) + 1

    @property
    def certainty(self) -> str:
        """With how many people a partition is released with probability 1/2."""
        alone, many = self.middle(1), min(self.most, _SHOWN)
        others = f"; so is one with {self.middle(many)}, each in {many}" * (many > 1)
        people = f"a partition with {alone} people, each in no other"
        return f"{people}, is released with probability 1/2{others}"

    def keep(
        self, people: npt.NDArray[np.int64], noise: Noise, weights: npt.NDArray[Any]
    ) -> npt.NDArray[np.bool_]:
        """Decide on many partitions at once.

        Args:
            people: how many people each partition has; one dimension.
            noise: where the randomness comes from, `Noise()`.
            weights: what their weights add up to.
        """
        present = np.flatnonzero(people >= self.pre_threshold)
        drawn = noise.discrete_gaussian(self.variance, len(present))
        kept = np.zeros(len(people), np.bool_)
        kept[present] = integers.add(weights[present], drawn) > self.threshold
        return kept


Selection = TruncatedGeometric | WeightedThreshold
"""A private decision for each partition, by its people."""


@dataclasses.dataclass(frozen=True)
class CapChoice:
    """Choose privately whether one partition of each person counts, or up to `MOST`.

    A selection that needs n people, who are in k partitions each, gets k / n of a partition from
    each person. So one person says by how much `one` is better than `several`:

        lead(k) = 2^20 (1 / one.middle(1) - k / several.middle(k)) / m, rounded down,

    with m so that no |lead| is above 2^20. Leads are summed over people, with noise for a
    sensitivity of 2^20 (`AdditiveNoise`); `one` is taken where the sum is above 0.

    Attributes:
        budget: what the choice costs.
        one: the selection with one partition of each person.
        several: the selection with up to `MOST`.
    """

    budget: Budget
    one: Selection
    several: Selection

    @property
    def leads(self) -> np.ndarray:
        """By how much `one` leads for a person in 1, 2, ..., `MOST` partitions."""
        several = [k / self.several.middle(k) for k in range(1, MOST + 1)]
        leads = 1 / self.one.middle(1) - np.array(several)
        scaled = np.floor(leads * ((_ONE - 1) / np.abs(leads).max()))
        return np.asarray(scaled, np.int64)

    def choose(self, partitions: np.ndarray, people: np.ndarray, noise: Noise) -> int:
        """Return how many partitions of a person count, 1 or `MOST`.

        Args:
            partitions: numbers of partitions, at most `MOST`, that people have.
            people: how many people have each.
            noise: where the randomness comes from, `Noise()`.
        """
        total = integers.product(self.leads[partitions - 1], people).sum(keepdims=True)
        return 1 if AdditiveNoise(self.budget).add(total, _ONE, noise)[0] > 0 else MOST


@functools.lru_cache(maxsize=64)
def best_selection(share: Budget, max_partitions: int, pre_threshold: int) -> Selection:
    """Return the selection that a share of the budget pays for, by public parameters.

    That is taken which keeps a partition half of the time with fewer people, if all of them are in
    as many partitions as may count.

    Args:
        share: what all decisions may cost together; its delta is above 0.
        max_partitions: the most partitions of one person that count.
        pre_threshold: the fewest people a named partition may have.
    """
    each = share.scaled(Fraction(1, max_partitions))
    rho, epsilon, delta = share.amount, each.amount, share.delta
    if share.is_zcdp:
        epsilon = root_below(2 * epsilon)
    else:
        delta /= 2
        rho = zcdp_rho(rho, delta)
    if delta <= _MOST_DELTA:
        weighted = WeightedThreshold(rho, delta, max_partitions, pre_threshold)
        if weighted.middle(max_partitions) - pre_threshold <= halfway(epsilon, each.delta):
            return weighted
    return TruncatedGeometric(epsilon, each.delta, pre_threshold)
