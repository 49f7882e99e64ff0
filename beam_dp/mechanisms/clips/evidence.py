"""Evidence: which buckets of a noisy histogram show people, and not only noise."""

from dataclasses import dataclass

import numpy as np

from beam_dp.mechanisms.clips.histogram_noise import HistogramNoise

WINDOWS = (1, 2, 4)
"""How many neighbouring buckets are taken together."""
NOBODY = (1e-6, 3e-3)
"""Chances that an anchor is anywhere where nobody is: the first, and the second without an anchor
of the first."""
BEYOND = 3e-2
"""Chance that people are shown above the anchor where nobody is, at most."""
_RARER = 2**-1.5
"""How much rarer a false alarm is in each bucket further up."""
_LEAST = 1e-300  # no chance is 0


@dataclass(frozen=True)
class Evidence:
    """Decide how far up a noisy histogram shows people. A function of released numbers: no cost.

    A window of 1, 2 or 4 neighbouring buckets shows people, in its lowest bucket, where its sum
    exceeds what noise alone reaches with a small chance.

    *Anchor.* The highest bucket with a window that noise alone exceeds, in any bucket, with a
    chance of at most 1e-6; where there is none, 3e-3 (`NOBODY`). Noise that is taken for people may
    be anywhere, and makes the clip useless.

    *Above the anchor* more is to be lost the higher a false alarm is: noise of the size of the clip
    doubles with each octave. So the d-th bucket above has a chance of `BEYOND` 2^(-3 d / 2). The
    sum over all d is 0.55 `BEYOND`; the expected noise grows by less than the sum of 2^d times
    that, 2.4 `BEYOND` or 7%, however many buckets there are. With 2^-d it would grow by as much for
    each bucket; with 4^-d groups of people a few octaves above the others are seen too late. Near
    the anchor, where people are likely to be, less evidence is asked for than for all buckets
    alike.

    Attributes:
        noise: that of every bucket.
        buckets: how many there are on one side.
        sides: 2 where there is a histogram of its own for numbers below 0.
        anchored: whether the first bucket is where most people are, as with numbers of rows: it is
            then taken for the anchor, so that little evidence is enough near it.
        numbers: how many numbers a false alarm would ruin together: it has that part of `BEYOND`.
    """

    noise: HistogramNoise
    buckets: int
    sides: int = 1
    anchored: bool = False
    numbers: int = 1

    def highest(self, noisy: np.ndarray) -> np.ndarray:
        """Return the highest bucket that shows people, per row and side; -1 where none does.

        Args:
            noisy: (rows, sides, buckets).
        """
        first, second = (self._shown(noisy, np.full((1, self.buckets), c)) for c in self._alike)
        sure = np.where(first.any(axis=(1, 2), keepdims=True), first, second)
        anchor = _last(sure).max(axis=1)
        if self.anchored:
            anchor = np.maximum(anchor, 0)
        distance = np.arange(self.buckets)[None, :] - anchor[:, None]
        near = self._shown(
            noisy, np.maximum(self._alarm * _RARER ** np.clip(distance, 1, None), _LEAST)
        )
        return np.where((anchor >= 0)[:, None], _last(sure | near), -1)

    @property
    def _alike(self) -> tuple[float, ...]:
        """The chances of `NOBODY` for each bucket."""
        return tuple(chance / self.buckets for chance in NOBODY)

    def _shown(self, noisy: np.ndarray, chances: np.ndarray) -> np.ndarray:
        """Return which buckets show people, with these chances where nobody is: (rows, buckets)."""
        known, which = np.unique(chances, return_inverse=True)
        shown = np.zeros(noisy.shape, bool)
        for width in WINDOWS:
            each = [self.noise.beyond(width, float(chance) / self._tests) for chance in known]
            levels = np.array(each)[which].reshape(chances.shape)
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
        return self.noise.beyond(1, self._alarm * _RARER / self._tests)


def _windows(noisy: np.ndarray, width: int) -> np.ndarray:
    """Return the sums of each bucket and those above it; at the end of the grid of fewer."""
    padded = np.concatenate([noisy, np.zeros((*noisy.shape[:-1], width - 1), noisy.dtype)], axis=-1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, width, axis=-1)
    return np.asarray(windows.sum(axis=-1))


def _last(flags: np.ndarray) -> np.ndarray:
    """Return the index of the last flag along the last axis; -1 for none."""
    last = flags.shape[-1] - 1 - flags[..., ::-1].argmax(axis=-1)
    return np.asarray(np.where(flags.any(axis=-1), last, -1))
