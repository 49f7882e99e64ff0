"""What people above a clip lose, estimated from the noisy histogram; and the share of a partition.

The histogram is released, so all of this costs nothing. It is an estimate, not a bound: *what is
beyond the highest bucket that shows people goes on falling as the released counts do*. A handful of
people with enormous numbers can be beyond it, and are protected for exactly that reason.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SINGLE_PARTITION, SHARED_CLIP = 1.5, 1.0
"""How many scales of the noise are added to what is seen beyond the top: for the interval of one
number, and for those of several, which share the loss out generously (`ClippingLoss`)."""
_NOBODY = 0.1
"""A bucket beyond the top with fewer people than that, as expected, is taken for empty."""
_TAIL = 19.0
"""What people beyond the top lose is off by at most the root of this times its variance (95%)."""
_FALL = (0.05, 0.45)
"""Between which quotients people fall from one octave to the next, beyond the top."""
_UNSEEN = 9
"""So many buckets beyond the top are looked at."""
SUMS = 4
"""How many sums over all partitions the loss is shared out by (`ClippingLoss.sums`)."""
SPREAD = 2.0
"""How much more than its share of what is lost a partition may have lost."""


def bucket_means(clips: Sequence[int]) -> np.ndarray:
    """Return the mean number in each bucket, in units; beyond the last clip of `_UNSEEN` more.

    Numbers are taken to be spread evenly over the logarithms between two edges a < b of a bucket:
    their mean is (b - a) / ln(b / a), for an octave 0.72 b (with a + 1/2, b + 1/2 in the logarithm,
    as units are whole). Beyond the last clip the edges go on by octaves.

    Args:
        clips: the public clips, which are the upper edges of all buckets but the last.
    """
    uppers = np.array([float(clip) for clip in clips])
    more = uppers[-1] * 2.0 ** np.arange(1, _UNSEEN + 2)
    uppers = np.concatenate([uppers, more])
    lowers = np.concatenate([[uppers[0] / 2.0], uppers[:-1]])
    # Numbers are whole: those of a bucket are a + 1 to b, each from 1/2 below to 1/2 above.
    # Edges beyond 2^53 can be 1 apart and the same float.
    widths = np.maximum(uppers - lowers, 1.0)
    return np.asarray(widths / np.log1p(widths / (lowers + 0.5)))


@dataclass(frozen=True)
class Losses:
    """What people lose at a clip, per row of a list.

    Attributes:
        total: what they lose together.
        squares: the sum of squares of what each of them loses.
        beyond: that of people beyond the top alone.
        shown: what the people lose together who are shown, without any doubt.
        kept: what all people who are shown have below the clip.
        seen_squares: the sum of squares of what each of those loses who are shown.
    """

    total: np.ndarray
    squares: np.ndarray
    beyond: np.ndarray
    shown: np.ndarray
    kept: np.ndarray
    seen_squares: np.ndarray

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
    edges: Sequence[int],
    means: np.ndarray,
    scale: float,
    deviations: float = SINGLE_PARTITION,
    squared: bool = False,
) -> Losses:
    """Return what the people above the clip lose, by the histogram of one side.

    *Seen*: x_m people between the clip and the top lose mean_m - C each; the noise of these counts
    is added at one standard deviation, sqrt(2) scale sqrt(sum of (mean_m - C)^2).

    *Beyond the top* t: with q = 1.5 scale (or 1, see `SHARED_CLIP`), counts n_d of the buckets t +
    d, and the fall r = min((n_0 + q) / max(n_0, n_-1 - q), (n_1 + q) / (n_0 - q)), kept within
    `_FALL`, there are at most u_1 = min(n_1, n_0) + q people, u_2 = min(n_2 + q, u_1 r),
    u_3 = min(n_3 + q, u_2 r), and beyond these they fall by r, down to `_NOBODY`: people to be
    expected. How many more there may be is `Losses.beside`.

    Where nobody is shown on this side, nobody is taken to lose anything.

    Args:
        noisy: (rows, buckets).
        tops: the highest bucket that shows people, per row; -1: none does.
        clips: the index of the clip, per row.
        edges: the upper edges of all buckets but the last, which are the clips.
        means: the mean number in each bucket, and beyond (`bucket_means`).
        scale: that of the noise (`HistogramNoise.scale`).
        deviations: q, in scales of the noise.
        squared: whether the numbers are sums of squares. An octave of these is half an octave of
            what is squared, so people fall by at most the root of `_FALL`.
    """
    rows = np.arange(len(noisy))
    clip = np.array([float(each) for each in edges])[clips]
    indexes = np.arange(noisy.shape[1])[None, :]
    seen = (indexes > clips[:, None]) & (indexes <= tops[:, None])
    excess = np.where(seen, np.maximum(means[None, : noisy.shape[1]] - clip[:, None], 0.0), 0.0)
    people = np.where(seen, np.maximum(noisy, 0), 0)
    doubt = math.sqrt(2) * scale * np.sqrt((excess**2 * (people > 0)).sum(axis=1))
    shown, squares = (people * excess).sum(axis=1), (people * excess**2).sum(axis=1)
    total = shown + doubt
    everybody = np.where(indexes <= tops[:, None], np.maximum(noisy, 0), 0)
    kept = (everybody * np.minimum(means[None, : noisy.shape[1]], clip[:, None])).sum(axis=1)
    beyond = np.zeros(len(noisy))
    for distance, unseen in enumerate(_unseen(noisy, tops, deviations * scale, squared), 1):
        bucket = np.minimum(tops + distance, len(means) - 1)
        counted = (tops >= 0) & (bucket > clips)
        each = np.where(counted, np.maximum(means[bucket] - clip, 0.0), 0.0)
        total, beyond = total + unseen[rows] * each, beyond + unseen[rows] * each**2
    return Losses(total, squares + beyond, beyond, shown, kept, squares)


def _unseen(noisy: np.ndarray, tops: np.ndarray, q: float, squared: bool) -> list[np.ndarray]:
    """Return how many people there may be in the buckets above the top: u_1, u_2, ..."""
    rows = np.arange(len(noisy))

    def count(distance: int) -> np.ndarray:
        index = tops + distance
        there = (tops >= 0) & (index >= 0) & (index < noisy.shape[1])
        return np.where(there, noisy[rows, np.clip(index, 0, noisy.shape[1] - 1)], 0).astype(float)

    last = count(0)
    back = (last + q) / np.maximum(np.maximum(last, count(-1) - q), 1e-9)
    forth = (np.maximum(count(1), 0.0) + q) / np.maximum(last - q, 1.0)
    least, most = _FALL
    fall = np.clip(np.minimum(back, forth), least, math.sqrt(most) if squared else most)
    people = [np.maximum(np.minimum(count(1), last) + q, 0.0)]
    for distance in range(2, _UNSEEN + 1):
        further = people[-1] * fall
        if distance <= 3:
            further = np.maximum(np.minimum(count(distance) + q, further), 0.0)
        people.append(np.where(further < _NOBODY, 0.0, further))
    return people


@dataclass(frozen=True)
class ClippingLoss:
    """What is known of the people above a clip that partitions share, in the user's scale.

    *The loss is given back.* `lost` is shared out over the partitions in proportion to their
    numbers y: to those above 0 where a person adds from 0 on, to all where numbers have both signs.
    Each is multiplied by 1 + lost / max(kept, sum of them): for numbers of both signs cancel in a
    partition, and then have a smaller sum than what people have kept. An L2 norm is no sum: its
    part lost / kept is taken of the sum of all numbers, below 0 too, so that what noise alone adds
    to those above 0 gets nothing. It is a function of what was released, and assumes that people
    above the clip are spread as those below.

    Attributes:
        noise: the tail bound of the noise of one number (95%).
        clip: the clip.
        scale: the scale of the noise; partitions with smaller numbers are taken to be alike.
        below: what people whose numbers are below 0 lose: total, and root of the sum of squares.
        above: the same for people whose numbers are above 0.
        lost: what is given back to all partitions together.
        kept: what people keep below the clip, by the same histogram.
        norm: which norm was clipped; 0: what people add to each partition was.
    """

    noise: float
    clip: float
    scale: float
    below: tuple[float, float]
    above: tuple[float, float]
    lost: float = 0.0
    kept: float = 0.0
    norm: int = 0

    def sizes(self, values: np.ndarray) -> np.ndarray:
        """Return the sizes of numbers, by which losses are shared out, in scales of the noise."""
        return np.asarray(np.maximum(np.abs(values.astype(float)) / self.scale, 1.0))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of sizes, of their squares, of what losses are given back by, of numbers.

        They are in scales, as squares overflow.
        """
        sizes = self.sizes(values)
        others = (each.sum() / self.scale for each in (self._weights(values), values.astype(float)))
        return np.array([sizes.sum(), (sizes**2).sum(), *others])

    def _weights(self, values: np.ndarray) -> np.ndarray:
        signed = self.below[0] > 0
        numbers = values.astype(float)
        return np.asarray(np.abs(numbers) if signed else np.maximum(numbers, 0.0))

    def given_back(self, values: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Return what each number gets of the loss.

        Args:
            values: released numbers.
            sums: `sums` of the released numbers of all partitions.
        """
        if not self.lost:
            return np.zeros(values.shape)
        whole, net = sums[2] * self.scale, sums[3] * self.scale
        part = self.lost / max(self.kept, whole)
        if self.norm == 2:
            # Of numbers of both signs the sum says nothing.
            real = 1.0 if self.below[0] > 0 else max(net, 0.0) / max(whole, self.scale)
            part = self.lost / self.kept * min(real, 1.0)
        return np.asarray(part * np.sign(values.astype(float)) * self._weights(values))

    def widths(self, values: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how far below and above each number, as it was drawn, the truth may be.

        A partition's share w of what is lost is that of its size; without a norm, where people lose
        in each partition by itself, or of its squared size, whichever is larger. With f = `SPREAD`, loss L and sum of squares Q, it loses at most the smaller of
        L and f w L + sqrt(noise^2 + f w Q) - noise beside the noise. What is lost of an L2 norm is
        more in the sum of numbers: by as much as the released numbers add up to more than people
        have kept of the norm.

        Args:
            values: released numbers.
            sums: `sums` of the released numbers of all partitions.
        """
        sizes, more = self.sizes(values), 1.0
        if self.norm == 2 and self.kept:
            more = max(1.0, sums[2 if self.below[0] > 0 else 3] * self.scale / self.kept)
        share = SPREAD * sizes / sums[0]
        if not self.norm:
            share = np.maximum(share, SPREAD * sizes**2 / sums[1])
        below, above = (
            self.noise
            + np.minimum(
                total, share * total + np.hypot(self.noise, np.sqrt(share) * root) - self.noise
            )
            for total, root in (np.multiply(side, more) for side in (self.below, self.above))
        )
        return below, above
