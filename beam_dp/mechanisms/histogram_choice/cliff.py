"""Choose a clip by two noisy histograms, where people's contributions may end sharply.

Ratings, ages, flags and lines of an order end at a round number. There a clip of 8 for 5, and all
that an exact choice costs, are more than a choice is worth: a rough histogram shows the octave in
which people end, a second one which round number in it, and the noise gets what is left.

*Cost.* A first histogram has half of the cost. Where it shows no cliff, all of the cost buys a
second histogram of the same octaves. The first histogram is made of that by blurring it
(`HistogramNoise.blurred`), so that both cost what the second does: no more than one histogram.
Where the first histogram shows a cliff, a second one for a quarter of the cost counts people by
round numbers within the octave, and a quarter is left, for the noise of the number. An octave that
has no round number, as that of 1, needs none: there the second is of the same octaves again, for
three quarters of the cost, and the first is made of it.

*Privacy.* Let x be both histograms. Where the second is of octaves, x is a function of it and of
coins that know nothing of the people: P(x) is moved by at most a factor of e^(what the second
costs). Where it is of round numbers, P(x) is the chance of the first histogram times that of the
second, in which each person is counted once: it is moved by at most a factor of e^(1/2 cost + 1/4
cost). Which of the three cases holds is seen in x. With noise for what each leaves of the whole
budget, every outcome costs the whole: pure differential privacy composes adaptively, as the ratio
of chances of each outcome is a product (Dwork, Rothblum, Vadhan 2010). Where noise that follows has
a delta, that holds for each x, so its mean over x is no larger. Under zCDP there is one histogram
(`ClipChoice`): the blur is one of Laplace noise.
"""

import dataclasses
import functools
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.histogram_choice.clip_choice import ClipChoice
from beam_dp.mechanisms.histogram_choice.clipping_loss import Losses
from beam_dp.mechanisms.histogram_choice.noisy_histogram import HistogramNoise
from beam_dp.mechanisms.noise.sampling import Noise

_FIRST, _SECOND, _LEFT = Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)
_TENTHS = (10, 12, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90)
_ENOUGH = 50.0
"""The highest octave of a cliff has so many people, in scales of the first histogram, ..."""
_FALL = 25
"""... and at least this part of those one octave below: else its people are a thin tail."""
_DOUBT = 0.07
"""Chance of noise that is taken for people above a cliff, one octave above it."""
_MANY, _FEW = 8.0, 3.5
"""The clip is the last round number with many people, in scales of the second histogram, if none
above has more than few."""


@functools.cache
def with_round_numbers(octaves: tuple[int, ...]) -> tuple[int, ...]:
    """Return clips with the round numbers among them: 1, 1.2, 1.5, 2, 2.5, 3, 4, ..., 9, 10, ...

    Args:
        octaves: the first one times powers of two, and perhaps a last one that is none.
    """
    step, most, found, power = octaves[0], octaves[-1], set(octaves), 1
    while step * power <= most:
        found |= {step * power * tenths // 10 for tenths in _TENTHS if power * tenths % 10 == 0}
        power *= 10
    return tuple(sorted(clip for clip in found if clip <= most))


class CliffChoice(ClipChoice):
    """Choose a clip by two histograms: as `ClipChoice`, whose `edges` are octaves."""

    @functools.cached_property
    def _whole(self) -> ClipChoice:
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return ClipChoice(**fields)

    @functools.cached_property
    def _first(self) -> ClipChoice:
        return dataclasses.replace(self._whole, cost=self.cost.scaled(_FIRST))

    @functools.cached_property
    def _both(self) -> ClipChoice:
        return dataclasses.replace(self._whole, cost=self.cost.scaled(_FIRST + _SECOND))

    @property
    def _second(self) -> HistogramNoise:
        return HistogramNoise(self.cost.scaled(_SECOND))

    def draw(self, people: np.ndarray, noise: Noise) -> np.ndarray:
        """Draw the first histogram and the second one, of one row: one after the other.

        Args:
            people: (1, sides, buckets), each person in one bucket.
            noise: the randomness.
        """
        whole = super().draw(people, noise)
        both = HistogramNoise(self.cost).blurred(whole, self._both.cost, noise)
        first = HistogramNoise(self._both.cost).blurred(both, self._first.cost, noise)
        octaves, cells = self._next(first)
        if octaves is None:
            second = self._second.add(people[..., cells], noise)
        else:
            second = whole if octaves is self._whole else both
        return np.concatenate([first, second], axis=-1)

    def _split(self, noisy: np.ndarray) -> tuple[np.ndarray, np.ndarray, ClipChoice | None, slice]:
        """Return both histograms, and what `_next` says of the second one."""
        first = noisy[..., : len(self.starts)]
        return first, noisy[..., len(self.starts) :], *self._next(first)

    def _next(self, first: np.ndarray) -> tuple[ClipChoice | None, slice]:
        """Return which choice reads the second histogram, of octaves; or None, and its clips."""
        octaves = self._first
        top = int(octaves.highest(first).max())
        if not 0 <= top < len(self.places):
            return self._whole, slice(0)
        seen = first[0].max(axis=0)
        distance = np.arange(len(seen)) - top
        chances = _DOUBT * np.maximum(0.5 ** np.maximum(distance, 1), 1 / len(seen))
        above = octaves.shown(first, chances[None])[..., top + 1 :].any()
        thin = seen[top] < _ENOUGH * HistogramNoise(octaves.cost).scale or (
            top > 0 and seen[top] < seen[top - 1] / _FALL
        )
        if above or thin:
            return self._whole, slice(0)
        cells = slice(self.starts[top], self.starts[top + 1])
        return (self._both if cells.stop - cells.start == 1 else None), cells

    def left(self, noisy: np.ndarray) -> Budget | None:
        """Return what the two histograms left of their cost; None: nothing."""
        return None if self._split(noisy)[2] is self._whole else self.cost.scaled(_LEFT)

    def histograms(self, noisy: np.ndarray) -> list[tuple[Budget, tuple[int, ...], np.ndarray]]:
        """Return what each histogram cost, where its buckets end, and what was drawn."""
        first, second, octaves, cells = self._split(noisy)
        before = self._first.histograms(first)
        if octaves is not None:
            return [*before, *octaves.histograms(second)]
        return [*before, (self._second.budget, self.thresholds[cells], second)]

    def _end(self, second: np.ndarray, cells: slice) -> tuple[int, bool]:
        """Return the index of the clip at which people end, and whether that is seen."""
        seen = second[0].max(axis=0) / self._second.scale
        last = max(np.flatnonzero(seen >= _MANY), default=None)
        if last is None or (seen[last + 1 :] > _FEW).any():
            return cells.stop - 1, False
        return cells.start + int(last), True

    def _ended(self, end: int, cells: slice) -> ClipChoice:
        """Return the first choice, whose highest octave that shows people ends there."""
        octave, clip = self.thresholds[cells.stop - 1], self.thresholds[end]
        edges = tuple(clip if edge == octave else edge for edge in self.ends)
        return dataclasses.replace(self._first, edges=edges)

    def clips(self, noisy: np.ndarray, scale: float, partitions: float = 1.0) -> np.ndarray:
        """Return the index of the clip in `thresholds`; -1 where nobody is shown."""
        _, second, octaves, cells = self._split(noisy)
        if octaves is not None:
            return octaves.clips(second, scale, partitions)
        return np.array([self._end(second, cells)[0]])

    def best_clip(
        self, noisy: np.ndarray, noise: np.ndarray, partitions: float, weight: float = 1.0
    ) -> tuple[int, float]:
        """Return the index of the clip of several partitions, and how it errs.

        Where people are seen to end at C, many may have just that number: then it is C, or the end
        of an octave below. It is not C if the people whom the second histogram shows above it, be
        they noise, would lose more than the noise of the octave's end is above that of C.
        """
        first, second, octaves, cells = self._split(noisy)
        if octaves is not None:
            return octaves.best_clip(second, noise, partitions, weight)
        end, is_seen = self._end(second, cells)
        if not is_seen:
            return self._first.best_clip(first, noise, partitions, weight)
        clips = np.array([float(clip) for clip in self.thresholds[end : cells.stop]])
        people = np.maximum(second[0], 0).sum(axis=0)[end - cells.start :]
        hidden = weight * float(people @ (clips - clips[0])) / partitions
        if hidden > noise[cells.stop - 1] - noise[end]:
            ended, others = self._first, np.arange(len(noise)) == end  # all but C
        else:
            ended = self._ended(end, cells)
            others = np.isin(np.arange(len(noise)), ended.places, invert=True)
        return ended.best_clip(first, np.where(others, np.inf, noise), partitions, weight)

    def losses(
        self,
        noisy: np.ndarray,
        clips: np.ndarray,
        partitions: float = 1,
        squared: bool = False,
    ) -> list[Losses]:
        """Return what people lose at the clip, for each side.

        Where the clip is the number at which they end, the first histogram shows those in the
        octaves above. Those between it and the end of its octave are hidden by the noise of the
        second histogram, and taken to be nobody.
        """
        first, second, octaves, cells = self._split(noisy)
        if octaves is not None:
            return octaves.losses(second, clips, partitions, squared)
        end, _ = self._end(second, cells)
        ended = self._ended(end, cells) if clips[0] == end else self._first
        return ended.losses(first, clips, partitions, squared)
