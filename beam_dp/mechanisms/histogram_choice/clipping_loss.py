"""What people above a clip lose, estimated from the noisy histogram; and the share of a partition.

The histogram is released, so all of this costs nothing. It is an estimate, not a bound: *what is
beyond the highest bucket that shows people goes on falling as the released counts do*. A handful of
people with enormous numbers can be beyond it, and are protected like everybody else.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.histogram_choice.noisy_histogram import HistogramNoise, all_beyond


class Tail(NamedTuple):
    """How many people there may be beyond the top, where the histogram does not show them.

    From octave to octave they fall by a quotient (`_FALL`).

    Attributes:
        deviations: so many scales of the noise are added to what is seen there.
        bend: from octave to octave that quotient is multiplied by this; 1: Pareto's law.
    """

    deviations: float
    bend: float


SINGLE_PARTITION, SHARED_CLIP = Tail(1.5, 1.0), Tail(1.0, 0.9)
"""For the interval of one number, and for those of many, which share the loss out generously
(`ClippingLoss`)."""


def tail_of(partitions: float) -> Tail:
    """Return that for the intervals of P numbers, by 1 / P between that of one and of many."""
    pairs = zip(SINGLE_PARTITION, SHARED_CLIP, strict=True)
    return Tail(*(many + (one - many) / max(partitions, 1) for one, many in pairs))


_NOBODY = 0.1
"""A bucket beyond the top with fewer people than that, as expected, is taken for empty."""
_TAIL = 19.0
"""What people beyond the top lose is off by at most the root of this times its variance (95%)."""
_FALL = (0.05, 0.45)
"""Between which quotients people fall from octave to octave beyond the top."""
_STEEPEST = 8.0
"""Within a bucket people get fewer at most by this power of a number."""
_UNSEEN = 9
"""So many buckets beyond the top are looked at."""
_WEAK = 0.025
"""Chance that noise alone is counted as people two buckets beyond the top, for the interval. It falls
by a factor of 2^(5/4) with each bucket further up, as those above an anchor do (`ClipChoice`)."""
SUMS = 4
"""How many sums over all partitions the loss is shared out by (`ClippingLoss.sums`)."""
SPREAD = 1.75
"""How much more than its share of what is lost a partition may have lost."""
NET = 0.75
"""So much of what is lost of distances, in proportion to rows, may be on one side of the centre."""
_FEWEST = 0.02
"""People of the least norms are this part of all: they are taken to be in one partition each."""
_KNOWN = 4.0
"""Sums are taken to grow with the norm up to so many clips: people further up may be in few
partitions."""
_GIVEN = 0.7
"""So much of the power of the norm by which sums grow goes into the numbers (`ClippingLoss`)."""


class WithinBuckets(NamedTuple):
    """How the people of each bucket are spread over the numbers from a to b that it holds.

    Their density over the logarithm is even, or falls: with w = ln(b / a), and u from 0 to 1 over
    the bucket, it is e^(-s u). A person in it has more than a clip c by, on average,

        integral from v to 1 of (a e^(w u) - c) e^(-s u) du / integral from 0 to 1 of e^(-s u) du,

    with v = ln(c / a) / w, kept from 0 to 1. Numbers are whole: those of a bucket from one edge to
    the next one are spread from 1/2 above the first to 1/2 above the second, which nobody exceeds.
    Behind the buckets come `_UNSEEN` octaves.

    Attributes:
        lowers: a, per bucket.
        uppers: b, per bucket.
        slopes: s, of all rows or (rows, buckets).
    """

    lowers: np.ndarray
    uppers: np.ndarray
    slopes: np.ndarray

    def excess(self, clips: np.ndarray) -> np.ndarray:
        """Return by how much people have more than clips, which are not above 2^1000.

        Args:
            clips: of all rows or (rows, clips); the result is (rows, clips, buckets).
        """
        clip, slopes = clips[..., None], self.slopes[..., None, :]
        widths = np.log(self.uppers / self.lowers)
        below = np.clip(np.log(np.maximum(clip / self.lowers, 1e-300)) / widths, 0.0, 1.0)
        above = 1.0 - below
        sums = self.lowers * np.exp((widths - slopes) * below)
        sums = sums * _mean_power((widths - slopes) * above)
        people = np.exp(-slopes * below) * _mean_power(-slopes * above)
        found = above * (sums - clip * people) / _mean_power(-slopes)
        most = np.maximum(self.uppers - 0.5 - clip, 0.0)
        return np.asarray(np.clip(found, 0.0, most))

    @property
    def means(self) -> np.ndarray:
        """What people have on average, by bucket: (rows, buckets)."""
        return self.excess(np.zeros((len(self.slopes), 1)))[:, 0]


def even_spread(edges: Sequence[int]) -> WithinBuckets:
    """Return that of people who are spread evenly over logarithms.

    Args:
        edges: the upper edges of all buckets but the last.
    """
    uppers = np.array([float(edge) for edge in edges])
    uppers = np.concatenate([uppers, uppers[-1] * 2.0 ** np.arange(1, _UNSEEN + 2)])
    lowers = np.concatenate([[uppers[0] / 2.0], uppers[:-1]])
    # Edges beyond 2^53 can be 1 apart and the same float.
    uppers = np.maximum(uppers + 0.5, (lowers + 0.5) * (1 + 1e-9))
    return WithinBuckets(lowers + 0.5, uppers, np.zeros((1, len(uppers))))


def falling_spread(
    noisy: np.ndarray, tops: np.ndarray, edges: Sequence[int], scale: float
) -> WithinBuckets:
    """Return that of people who get fewer within a bucket as they do from the one below.

    Their density falls by at most the power `_STEEPEST` of a number. Two scales of the noise are
    added to what is counted, so that noise makes no slope.

    Args:
        noisy: (rows, buckets).
        tops: the highest bucket that shows people, per row.
        edges: the upper edges of all buckets but the last.
        scale: that of the noise.
    """
    even, buckets = even_spread(edges), noisy.shape[1]
    widths = np.log(even.uppers / even.lowers)[:buckets]
    shown = np.where(np.arange(buckets) <= tops[:, None], np.maximum(noisy, 0), 0)
    density = np.log((shown + 2 * scale) / widths)
    slopes = np.zeros((len(noisy), len(even.uppers)))
    slopes[:, 1:buckets] = -2 * np.diff(density) / (widths[1:] + widths[:-1])
    slopes[:, :buckets] = np.clip(slopes[:, :buckets], 0.0, _STEEPEST) * widths
    return even._replace(slopes=slopes)


def _mean_power(t: np.ndarray) -> np.ndarray:
    """Return (e^t - 1) / t, the mean of e^(t x) for x from 0 to 1."""
    t = np.where(t == 0, 1e-12, t)
    return np.asarray(np.expm1(t) / t)


@dataclass(frozen=True)
class Losses:
    """What people lose at a clip, per row of a list.

    Attributes:
        total: what they lose together.
        squares: the sum of squares of what each of them loses.
        beyond: that of people beyond the top alone.
        people: how many people each bucket shows, up to the top: (rows, buckets).
        means: what they have each: (rows, buckets).
        excess: what each of them loses: (rows, buckets).
    """

    total: np.ndarray
    squares: np.ndarray
    beyond: np.ndarray
    people: np.ndarray
    means: np.ndarray
    excess: np.ndarray

    @property
    def shown(self) -> np.ndarray:
        """What the people lose together who are shown, without any doubt."""
        return np.asarray((self.people * self.excess).sum(axis=1))

    @property
    def shown_squares(self) -> np.ndarray:
        """The sum of squares of what each of those loses who are shown."""
        return np.asarray((self.people * self.excess**2).sum(axis=1))

    @property
    def kept(self) -> np.ndarray:
        """What all people who are shown have below the clip."""
        return np.asarray((self.people * (self.means - self.excess)).sum(axis=1))

    def by_norm(self) -> tuple[tuple[float, float, float], ...]:
        """Return the norm of each bucket of the first row, and its part of what is kept, and lost.

        Norms are in multiples of one that few people are below (`_FEWEST`), at least 1, and those
        above `_KNOWN` clips count as that. Where nobody is shown to lose anything, people beyond
        are taken to be as the highest that are.
        """
        people, means, excess = self.people[0], self.means[0], self.excess[0]
        counted, below = people.cumsum(), means - excess
        least = means[np.searchsorted(counted, _FEWEST * counted[-1])]
        norms = np.maximum(np.minimum(means, _KNOWN * below.max()) / least, 1.0)
        kept, lost = people * below, people * excess
        if not lost.any():
            lost[people.nonzero()[0][-1]] = 1.0
        parts = norms, kept / kept.sum(), lost / lost.sum()
        return tuple(zip(*(part.tolist() for part in parts), strict=True))

    def beside(self, noise: np.ndarray | float) -> np.ndarray:
        """Return how much further than by noise alone the truth may be above a single number.

        The people beyond the top are a sample. With u_d of them expected in the bucket where each
        loses k_d, their numbers independent and Poisson, they are expected to lose the sum of
        u_d k_d, with the variance v, the sum of u_d k_d^2 (compound Poisson). Of its distribution
        nothing else is used, as a single person far up decides about it: a variable exceeds its
        mean by the root of 19 v with a chance of at most 1 / (1 + 19) (Cantelli 1928). Noise and
        sample are independent, so the two distances are added by squares, as in
        `ClippingLoss.widths`.

        Args:
            noise: the tail bound of the noise of the number (95%).
        """
        return self.total + (np.hypot(noise, np.sqrt(_TAIL * self.beyond)) - noise)


def lost(
    noisy: np.ndarray,
    tops: np.ndarray,
    clips: np.ndarray,
    spread: WithinBuckets,
    noise: HistogramNoise,
    tail: Tail,
    squared: bool = False,
) -> Losses:
    """Return what the people above the clip lose, by the histogram of one side.

    *Seen*: x_m people of a bucket up to the top lose k_m each (`WithinBuckets.excess`); the noise
    of these counts is added at one standard deviation, sqrt(2) scale sqrt(sum of k_m^2).

    *Beyond the top* t: `tail` has q, in scales of the noise, and the bend b. With counts n_d of the
    buckets t + d, and r = min((n_0 + q) / max(n_0, n_-1 - q), (n_1 + q) / (n_0 - q)), kept within
    `_FALL`, there are at most u_1 = min(n_1, n_0) + q people, u_2 = min(n_2 + q, u_1 r b),
    u_3 = min(n_3 + q, u_2 r b^2), and then u_d = u_(d-1) r b^(d-1), down to `_NOBODY`: people to be
    expected. How many more there may be is `Losses.beside`. Where noise alone is seldom as large as
    n_d (`_WEAK`), u_d is n_d at least: evidence too weak for a clip, strong enough for an interval.
    The n_d people who are seen there have the most that their bucket holds: where most people end
    at 1, others have just 2, and lose 1 each, not the 0.45 of numbers from 1 to 2.

    Where nobody is shown on this side, nobody is taken to lose anything.

    Args:
        noisy: (rows, buckets).
        tops: the highest bucket that shows people, per row; -1: none does.
        clips: the clip, per row.
        spread: how people are spread within buckets.
        noise: that of the histogram.
        tail: how many people may be beyond the top.
        squared: whether the numbers are sums of squares. An octave of these is half an octave of
            what is squared: people fall by at most the root of `_FALL`. The bends multiply to about
            b^(d^2 / 2) after d octaves, so to b^(d^2 / 8) after d half ones: each is b^(1 / 4).
    """
    rows, buckets = np.arange(len(noisy)), noisy.shape[1]
    means, each = spread.means, spread.excess(clips[:, None])[:, 0]
    excess = each[:, :buckets]
    people = np.where(np.arange(buckets) <= tops[:, None], np.maximum(noisy, 0), 0)
    doubt = math.sqrt(2) * noise.scale * np.sqrt((excess**2 * (people > 0)).sum(axis=1))
    total, beyond = (people * excess).sum(axis=1) + doubt, np.zeros(len(noisy))
    for distance, unseen in enumerate(_unseen(noisy, tops, tail, noise, squared), 1):
        bucket = np.minimum(tops + distance, each.shape[1] - 1)
        loses = np.where(tops >= 0, each[rows, bucket], 0.0)
        seen = np.clip(_counts(noisy, tops, distance), 0.0, unseen)
        total += unseen * loses + seen * np.maximum(
            spread.uppers[bucket] - 0.5 - clips - loses, 0.0
        )
        beyond += unseen * loses**2
    squares = (people * excess**2).sum(axis=1) + beyond
    return Losses(total, squares, beyond, people, means[:, :buckets], excess)


def _unseen(
    noisy: np.ndarray, tops: np.ndarray, tail: Tail, noise: HistogramNoise, squared: bool
) -> list[np.ndarray]:
    """Return how many people there may be in the buckets above the top: u_1, u_2, ..."""
    q, count = tail.deviations * noise.scale, functools.partial(_counts, noisy, tops)
    last = count(0)
    back = (last + q) / np.maximum(np.maximum(last, count(-1) - q), 1e-9)
    forth = (np.maximum(count(1), 0.0) + q) / np.maximum(last - q, 1.0)
    (least, most), bend = _FALL, tail.bend
    if squared:
        most, bend = math.sqrt(most), bend**0.25
    fall = np.clip(np.minimum(back, forth), least, most)
    people = [np.maximum(np.minimum(count(1), last) + q, 0.0)]
    for distance in range(2, _UNSEEN + 1):
        fall = fall * bend
        further = people[-1] * fall
        if distance <= 3:
            further = np.maximum(np.minimum(count(distance) + q, further), 0.0)
        people.append(np.where(further < _NOBODY, 0.0, further))
    chances = tuple(_WEAK * 2 ** (-1.25 * further) for further in range(_UNSEEN - 1))
    for distance, level in enumerate(all_beyond(noise.budget, 1, chances), 2):
        seen = count(distance)
        people[distance - 1] = np.maximum(people[distance - 1], np.where(seen > level, seen, 0.0))
    return people


def _counts(noisy: np.ndarray, tops: np.ndarray, distance: int) -> np.ndarray:
    """Return what was counted so far above the top of each row; 0 where there is no such bucket."""
    index = tops + distance
    there = (tops >= 0) & (index >= 0) & (index < noisy.shape[1])
    held = noisy[np.arange(len(noisy)), np.clip(index, 0, noisy.shape[1] - 1)]
    return np.where(there, held, 0).astype(float)


@dataclass(frozen=True)
class ClippingLoss:
    """What is known of the people above a clip that partitions share, in the user's scale.

    *The loss is given back.* `lost` is shared out over the partitions in proportion to their
    numbers y: to all where people below 0 lose something too, else to those above 0. With S the sum
    of all y, or of their sizes where it is given back to all, and K = max(kept, S), each is
    multiplied by 1 + min(1, S / sum of those above 0) lost / K, so that what noise alone adds to
    those above 0 gets nothing. It is a function of what was released, and assumes that people above
    the clip are spread as those below.

    *An L2 norm is no sum.* A person in k partitions adds up to sqrt(k) times their norm to the sum
    of numbers, and who has a larger norm is taken to be in more of them: that ratio is n^p, with n
    the norm (up to `_KNOWN` clips) over one that few people are below, and p the power from 0 to 1
    with which what people keep adds up to S. It is the largest p if those few are in one partition
    each, so intervals are made with it, and numbers are given back with `_GIVEN` p and a factor
    for all people alike, which makes the sum S again. Where no p up to 1 adds up to S, all people
    are in several partitions: numbers are given back with p = 0. That was measured best. Where
    numbers have both signs, p is 0.

    *Different values* (`covers`). People keep K values, which are S different ones: of what is
    lost, the part min(1, S / K) is given back. Those above the clip may own rarer values than
    others: an interval has all of the loss, with p = 1, and `uncovered`.

    Attributes:
        noise: the tail bound of the noise of one number (95%).
        clip: the clip; infinite: nobody is clipped.
        scale: the scale of the noise; partitions with smaller numbers are taken to be alike.
        below: what people whose numbers are below 0 lose: total, root of the sum of squares, and
            that of the people beyond the top alone.
        above: the same for people whose numbers are above 0.
        lost: what is given back to all partitions together, of the norm.
        kept: what people keep below the clip, by the same histogram.
        norm: which norm was clipped; 0: what people add to each partition was.
        by_norm: of people with numbers from 0 on, by bucket, for an L2 norm (`Losses.by_norm`).
        folded: whether both sides have one histogram, of sizes.
        covers: whether numbers are of different values, which people may share.
        uncovered: how many values may be uncovered because the clip is smaller than that of the
            histogram.
        spread: how much more than its share of what is lost a number may have lost.
    """

    noise: float
    clip: float
    scale: float
    below: tuple[float, float, float]
    above: tuple[float, float, float]
    lost: float = 0.0
    kept: float = 0.0
    norm: int = 0
    by_norm: tuple[tuple[float, float, float], ...] = ()
    folded: bool = False
    covers: bool = False
    uncovered: float = 0.0
    spread: float = SPREAD

    def sizes(self, values: np.ndarray) -> np.ndarray:
        """Return the sizes of numbers, by which losses are shared out, in scales of the noise."""
        return np.asarray(np.maximum(np.abs(values.astype(float)) / self.scale, 1.0))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return four sums over partitions: of sizes, their squares, weights, and numbers.

        By weights losses are given back. All are in scales, as squares overflow. Where numbers have
        both signs, the last is that of weights again.
        """
        sizes, weights = self.sizes(values), self._weights(values)
        numbers = weights if self._signed else values.astype(float)
        others = (each.sum() / self.scale for each in (weights, numbers))
        return np.array([sizes.sum(), (sizes**2).sum(), *others])

    @property
    def _signed(self) -> bool:
        return self.below[0] > 0

    def _weights(self, values: np.ndarray) -> np.ndarray:
        numbers = values.astype(float)
        return np.asarray(np.abs(numbers) if self._signed else np.maximum(numbers, 0.0))

    def _sum_of_norm(self, total: float) -> tuple[float, float]:
        """Return what a loss of 1 in norms is in sums: of what is given back, and of intervals."""
        if self.norm != 2 or not self.kept:
            return 1.0, 1.0
        whole = max(total / self.kept, 1.0)
        if not self.by_norm:
            return whole, whole
        norms, kept, lost = np.array(self.by_norm).T
        powers = np.linspace(0, 1, 101)
        power = np.interp(whole, kept @ norms[:, None] ** powers, powers)
        given = _GIVEN * power if power < 1 else 0.0
        sums = (norms**each for each in (given, 1.0 if self.covers else power))
        given, most = (whole * (lost @ each) / (kept @ each) for each in sums)
        return float(given), float(most)

    def given_back(self, values: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Return what each number gets of the loss.

        Args:
            values: released numbers.
            sums: `sums` of the released numbers of all partitions.
        """
        if not self.lost:
            return np.zeros(values.shape)
        net = max(sums[3], 0.0) * self.scale
        part = self.lost * self._sum_of_norm(net)[0] / max(self.kept, net)
        part *= net / max(sums[2] * self.scale, self.scale)
        part *= self._counted(net)
        return np.asarray(part * np.sign(values.astype(float)) * self._weights(values))

    def _counted(self, total: float) -> float:
        """Return which part of the values that people keep is counted, by the sum of all numbers."""
        return min(1.0, total / self.kept) if self.covers and self.kept else 1.0

    def share(self, values: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Return which share each number is of the sum of all of them.

        Args:
            values: released numbers, from 0 on but for their noise.
            sums: `sums` of the released numbers of all partitions.
        """
        return np.asarray(np.maximum(values.astype(float) / self.scale, 0.0) / max(sums[3], 1.0))

    def widths(
        self, values: np.ndarray, sums: np.ndarray, rows: np.ndarray | float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return how far below and above each number, as it was drawn, the truth may be.

        A partition's share w of what is lost is that of its size in the sum of sizes, or a larger
        one. Under a norm that is the share of what stands out of the noise in the sum of all
        numbers: where most partitions are empty, sizes are those of noise. Without a norm people
        lose in each partition by itself, and it is the share of its squared size.

        Let L be the loss, Q the sum of squares, B that of the people beyond the top alone, and f
        the `spread`. The truth is off by at most the smaller of L + sqrt(noise^2 + 19 B) and
        f w L + sqrt(noise^2 + f w Q + 19 min(f w, 1)^2 B). People beyond the top are a sample
        (`Losses.beside`), of which the partition has its share; of one partition it is the first.
        Of distances, on which side they are shows in the number: on the one on which it is beyond
        its noise, and on none where it is not. Distances cancel out, so their sums may be small in
        partitions where people lose much: f w is at least `NET` times the share of the rows.

        Args:
            values: released numbers.
            sums: `sums` of the released numbers of all partitions.
            rows: of distances, the share of the rows that each partition has, where it is known.
        """
        sizes = self.sizes(values)
        if self.norm:
            other = (sizes - self.noise / self.scale) / max(sums[3], 1.0)
        else:
            other = sizes**2 / sums[1]
        share = np.maximum(self.spread * np.maximum(sizes / sums[0], other), NET * rows)
        more = self._sum_of_norm(sums[3] * self.scale)[1]
        distances = []
        for sign, side, uncovered in ((-1, self.below, 0.0), (1, self.above, self.uncovered)):
            total, root, beyond = np.multiply(side, (more, more, more * math.sqrt(_TAIL)))
            total += uncovered
            if self.folded:
                beyond = beyond * (sign * values.astype(float) > self.noise)
            doubt = np.hypot(np.sqrt(share) * root, np.minimum(share, 1.0) * beyond)
            part = share * total + np.hypot(self.noise, doubt)
            distances.append(np.minimum(total + np.hypot(self.noise, beyond), part))
        below, above = distances
        return below, above
