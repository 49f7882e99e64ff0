"""Choose a clip by a noisy histogram of how large people's contributions are."""

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.histogram_choice.clipping_loss import (
    Losses,
    WithinBuckets,
    even_spread,
    falling_spread,
    lost,
    tail_of,
)
from beam_dp.mechanisms.histogram_choice.noisy_histogram import HistogramNoise, all_beyond, beyond
from beam_dp.mechanisms.noise.sampling import Noise

_MOST, _LEAST = Fraction(2, 5), Fraction(1, 32)
_SIXTH, _TENTH = Fraction(1, 6), Fraction(1, 10)
_SHARE_POWER = 0.3
"""The share of a norm's clip falls with this power of the number of partitions."""
NOT_GIVEN_BACK = 0.5
"""What a lost unit counts for in the choice of a norm's clip: about half of it is given back."""
WINDOWS = (1, 2, 4)
"""How many neighbouring buckets are taken together."""
NOBODY = (1e-6, 3e-3)
"""Chances that noise alone makes an anchor in any bucket: the second is taken where the
first shows none."""
BEYOND = 4e-2
"""Chance that people are shown above the anchor where nobody is, at most."""
_RARER = 2**-1.25
"""How much rarer a false alarm is in each bucket further up."""
_LEAST_CHANCE = 1e-300  # no chance is 0


def clip_share_of_partition(partitions: int | None, max_partitions: int) -> Fraction:
    """Return the share of a number's budget that chooses its clip, by public parameters.

    The clip of one partition decides about its number alone, and gets two fifths. Where P
    partitions each have the noise of a part 1 / max_partitions, it is 0.8 / sqrt(P max_partitions),
    between 1/32 and 2/5, measured best; where P is not known, an eighth errs by little for 10 to
    1,000 of them.

    Args:
        partitions: P, or a guess of it; None: unknown.
        max_partitions: how many of them one person can reach.
    """
    if partitions is None:
        return Fraction(1, 8)
    share = Fraction(0.8 / (partitions * max_partitions) ** 0.5).limit_denominator(1000)
    return min(_MOST, max(_LEAST, share))


def clip_share_of_norm(budget: Budget, partitions: int | None = None) -> Fraction:
    """Return the share of a number's budget that chooses the clip of a norm over partitions.

    *Many partitions.* Of rho it is a tenth: from 3/100 to a fifth it errs by 5% at most. Of a small
    epsilon the histogram needs more, to show people at all: a sixth of epsilon 1, two fifths of
    1/30, between by the fourth root of epsilon. That is best or within 2% of it, in the geometric
    mean over 27 kinds of data of 300 to 100,000 people (1.15, 1.19, 1.25 and 1.29 times the error
    of the best clip at epsilon 1, 0.3, 0.1 and 0.03; a tenth: 1.14, 1.25, 1.34 and 1.61), all with
    one histogram of octaves.

    *Few partitions* get at least 2/5 P^(-3/10), as one gets 2/5. Where a few people have much,
    numbers of two partitions then err by a fifth less than with a tenth. Where people end sharply,
    those of five err by at most 8% more.

    Args:
        budget: that of the number.
        partitions: P; None: unknown.
    """
    share = _TENTH
    if not budget.is_zcdp:
        share = _SIXTH * Fraction(float(budget.amount) ** -0.25).limit_denominator(100)
    return min(_MOST, max(_TENTH, share, share_of_few(partitions)))


def share_of_few(partitions: int | None) -> Fraction:
    """Return the least share of a choice for few partitions: 2/5 P^(-3/10)."""
    return _MOST * Fraction((partitions or math.inf) ** -_SHARE_POWER).limit_denominator(100)


@dataclass(frozen=True)
class ClipChoice:
    """Choose a clip C: the noisy histogram, and what it says. See `noisy_histogram` for its cost.

    *How far up people are shown.* A function of released numbers: no cost.

    A window of 1, 2 or 4 neighbouring buckets shows people, in its lowest bucket, where its sum
    exceeds what noise alone reaches with a small chance.

    *Anchor.* The highest bucket with a window so large that noise alone reaches it, in any bucket,
    with a chance of at most 1e-6; where there is none, of at most 3e-3 (`NOBODY`). For noise that
    is taken for people may be in any bucket, and makes the clip useless.

    *Above the anchor* a false alarm costs more the higher it is: the noise is of the size of the
    clip, which doubles with each octave. So the d-th bucket above has a chance of `BEYOND`
    2^(-5 d / 4). The sum over all d is 0.73 `BEYOND`; the expected noise grows by less than the sum
    of 2^d times that, 5.3 `BEYOND` or 21%, however many buckets there are. With 2^-d it would grow
    by as much for each bucket; with 4^-d groups of people a few octaves above the others are seen
    too late. Near the anchor, where people are likely to be, less evidence is asked for than for
    all buckets alike.

    *The clip.* b is the scale of the noise per unit of the clip. The clip of P partitions is the
    smallest edge that at most P b people are above, up to the highest bucket that shows people: the
    noise of a partition is b C, what it loses about loss(C) / P, and the derivative of loss(C) is
    the number of people above C. How many people are above an edge is a count, of sensitivity 1:
    noise in it costs no more for high edges.

    Attributes:
        cost: what the histogram costs.
        thresholds: the public clips, in units.
        sides: 2 where there is a histogram of its own for numbers below 0.
        anchored: whether the first bucket is where most people are, as with numbers of rows: it is
            then taken for the anchor, so that little evidence is enough near it.
        numbers: how many numbers the clip serves, or about so many, which a false alarm would ruin
            together; `BEYOND` is divided by that.
        known: the bucket up to which a single value can be, by public ends: people are taken to
            show there where none are shown. -1: no ends are known.
        edges: the clips at which buckets of the histogram end; empty: all are.
        folded: whether the one side counts magnitudes of numbers of both signs: people are about as
            far on one side as on the other, and each may lose what both lose.
    """

    cost: Budget
    thresholds: tuple[int, ...]
    sides: int = 1
    anchored: bool = False
    numbers: int = 1
    known: int = -1
    edges: tuple[int, ...] = ()
    folded: bool = False

    @property
    def buckets(self) -> int:
        """How many buckets people are counted in, of each side; the last one is above all clips."""
        return len(self.thresholds) + 1

    @functools.cached_property
    def ends(self) -> tuple[int, ...]:
        """Where the buckets of the histogram end, all but the last one."""
        return self.edges or self.thresholds

    @functools.cached_property
    def places(self) -> np.ndarray:
        """The indexes of these in `thresholds`."""
        return np.array([self.thresholds.index(end) for end in self.ends])

    @functools.cached_property
    def starts(self) -> np.ndarray:
        """The first of `thresholds` in each bucket of the histogram."""
        return np.append(0, self.places + 1)

    @property
    def _noise(self) -> HistogramNoise:
        return HistogramNoise(self.cost)

    def highest(self, noisy: np.ndarray) -> np.ndarray:
        """Return the highest bucket that shows people, per row and side; -1 where none does.

        Args:
            noisy: (rows, sides, buckets).
        """
        if len(noisy) == 1:  # many blocks of partitions may share it
            return _highest_of_one(self, tuple(noisy.ravel().tolist()))
        return self._highest(noisy)

    def _highest(self, noisy: np.ndarray) -> np.ndarray:
        buckets = noisy.shape[-1]
        alike = (np.full((1, buckets), chance / buckets) for chance in NOBODY)
        first, second = (self.shown(noisy, chances) for chances in alike)
        sure = np.where(first.any(axis=(1, 2), keepdims=True), first, second)
        anchor = _last(sure).max(axis=1)
        if self.anchored:
            anchor = np.maximum(anchor, 0)
        anchor = np.where(anchor < 0, self.known, anchor)
        distance = np.arange(buckets)[None, :] - anchor[:, None]
        near = self.shown(
            noisy, np.maximum(self._alarm * _RARER ** np.clip(distance, 1, None), _LEAST_CHANCE)
        )
        last = np.where((anchor >= 0)[:, None], _last(sure | near), -1)
        return np.where(last.max(axis=1, keepdims=True) < 0, self.known, last)

    def shown(self, noisy: np.ndarray, chances: np.ndarray) -> np.ndarray:
        """Return which buckets show people, with these chances where nobody is: (rows, buckets)."""
        known, which = np.unique(chances, return_inverse=True)
        shown = np.zeros(noisy.shape, bool)
        for width in WINDOWS:
            each = all_beyond(self.cost, width, tuple((known / self._tests).tolist()))
            levels = each[which].reshape(chances.shape)
            shown |= _windows(noisy, width) > levels[:, None, :]
        return shown

    @property
    def _alarm(self) -> float:
        """The chance that people are shown above the anchor where nobody is, at most."""
        return BEYOND / self.numbers

    @property
    def _tests(self) -> int:
        """How many windows are looked at in each bucket."""
        return len(WINDOWS) * self.sides

    @property
    def unseen(self) -> float:
        """How many people may be in the bucket above a clip, typically, and not be shown."""
        return beyond(self.cost, 1, self._alarm * _RARER / self._tests)

    def draw(self, people: np.ndarray, noise: Noise) -> np.ndarray:
        """Draw the noisy histograms of some rows, each with its own people.

        Args:
            people: (rows, sides, buckets), each person in one bucket of a row.
            noise: the randomness.
        """
        return self._noise.add(np.add.reduceat(people, self.starts, axis=-1), noise)

    def clips(self, noisy: np.ndarray, scale: float, partitions: float = 1.0) -> np.ndarray:
        """Return the index of the clip in `thresholds` per row; -1 where nobody is shown.

        Args:
            noisy: what was drawn.
            scale: b, the scale of the noise of a number for a clip of 1.
            partitions: P, how many numbers the clip serves.
        """
        tops, buckets = self.highest(noisy), noisy.shape[-1]
        below = np.arange(buckets)[None, None, :] <= tops[..., None]
        people = np.where(below, np.maximum(noisy, 0), 0).sum(axis=1)
        above = people.sum(axis=1, keepdims=True) - people.cumsum(axis=1)
        index = np.minimum((above > partitions * scale).sum(axis=1), buckets - 2)
        return np.where(tops.max(axis=1) < 0, -1, self.places[index])

    def best_clip(
        self, noisy: np.ndarray, noise: np.ndarray, partitions: float, weight: float = 1.0
    ) -> tuple[int, float]:
        """Return the index of the clip of several partitions, by one row, and how it errs.

        The index is -1 where nobody is shown.

        It is the clip C, up to the highest bucket that shows people, at which a partition errs
        least: by its noise, and by its part of what people lose, loss(C) / P. Within a bucket that
        is an estimate, by how people are spread there (`WithinBuckets`).

        Args:
            noisy: what was drawn.
            noise: the mean absolute noise of a partition at each clip.
            partitions: P, above 1.
            weight: what a lost unit counts for.
        """
        tops, buckets = self.highest(noisy), np.arange(noisy.shape[-1])
        top = int(tops.max())
        if top < 0:
            return -1, float(noise[0])
        last = self.places[min(top, len(self.places) - 1)] + 1
        clips = np.array([[float(clip) for clip in self.thresholds[:last]]])
        errors = noise[:last]
        for side in range(self.sides):
            excess = self._spread(noisy, tops, side).excess(clips)[0, :, : len(buckets)]
            people = np.where(buckets <= tops[0, side], np.maximum(noisy[0, side], 0), 0)
            errors = errors + weight * (people * excess).sum(axis=1) / partitions
        return int(errors.argmin()), float(errors.min())

    def _spread(self, noisy: np.ndarray, tops: np.ndarray, side: int) -> WithinBuckets:
        return falling_spread(noisy[:, side], tops[:, side], self.ends, self._noise.scale)

    def left(self, noisy: np.ndarray) -> Budget | None:
        """Return what was left of the cost; None: nothing."""
        return None

    def histograms(self, noisy: np.ndarray) -> list[tuple[Budget, tuple[int, ...], np.ndarray]]:
        """Return what each histogram cost, where its buckets end, and what was drawn."""
        return [(self.cost, self.ends, noisy)]

    def losses(
        self,
        noisy: np.ndarray,
        clips: np.ndarray,
        partitions: float = 1,
        squared: bool = False,
    ) -> list[Losses]:
        """Return what people lose at the clips, in units: for each side, and each row.

        Args:
            noisy: what was drawn.
            clips: the index of the clip of each row.
            partitions: how many partitions share it; infinite: very many.
            squared: whether the numbers are sums of squares.
        """
        tops, even, tail = self.highest(noisy), even_spread(self.ends), tail_of(partitions)
        values = np.array([float(self.thresholds[clip]) for clip in clips])
        found = []
        for side in range(self.sides):
            spread = self._spread(noisy, tops, side) if partitions > 1 else even
            rows, top = noisy[:, side], tops[:, side]
            found.append(lost(rows, top, values, spread, self._noise, tail, squared))
        return found


@functools.lru_cache(maxsize=64)
def _highest_of_one(choice: ClipChoice, noisy: tuple[float, ...]) -> np.ndarray:
    found = choice._highest(np.array(noisy).reshape(1, choice.sides, -1))
    found.flags.writeable = False
    return found


def _windows(noisy: np.ndarray, width: int) -> np.ndarray:
    """Return the sums of each bucket and those above it; at the end of the grid of fewer."""
    padded = np.concatenate([noisy, np.zeros((*noisy.shape[:-1], width - 1), noisy.dtype)], axis=-1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, width, axis=-1)
    return np.asarray(windows.sum(axis=-1))


def _last(flags: np.ndarray) -> np.ndarray:
    """Return the index of the last flag along the last axis; -1 for none."""
    last = flags.shape[-1] - 1 - flags[..., ::-1].argmax(axis=-1)
    return np.asarray(np.where(flags.any(axis=-1), last, -1))
