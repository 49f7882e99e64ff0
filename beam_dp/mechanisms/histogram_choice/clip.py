"""Choose a clip by a noisy histogram of how large people's contributions are."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.histogram_choice.loss import ALONE, ClipEdges, Losses, lost
from beam_dp.mechanisms.histogram_choice.noisy_histogram import Choice, HistogramNoise, Looks
from beam_dp.mechanisms.noise.sampling import Noise

EARLY, FULL = Fraction(1, 4), Fraction(2, 5)
"""The shares of the budget for a first look at the histogram, and for the whole of it."""
_STOP_TOP, _STOP_NEAR, _STOP_FAR, _STOP_WINDOW = 20.0, 2.5, 6.0, 8.0
_STOP_PEOPLE, _STOP_EARLY = 5_000, 40.0
_LEAST = Fraction(1, 32)
WINDOWS = (1, 2, 4)
"""How many neighbouring buckets are taken together."""
NOBODY = (1e-6, 3e-3)
"""Chances that an anchor is anywhere where nobody is: the first, and the second without an anchor
of the first."""
BEYOND = 3e-2
"""Chance that people are shown above the anchor where nobody is, at most."""
_RARER = 2**-1.5
"""How much rarer a false alarm is in each bucket further up."""
_LEAST_CHANCE = 1e-300  # no chance is 0


def beside_others(share: Fraction, together: int) -> Fraction:
    """Return the share for a clip whose number shares its noise with others.

    Noise of one draw falls with the number of numbers, so the choice of clips is worth more: the
    odds of the share grow by m^0.27, the root of what the noise falls by (measured: one draw).

    Args:
        share: that for a number with noise of its own.
        together: m, how many numbers share one draw.
    """
    odds = float(share / (1 - share)) * together**0.15
    return Fraction(odds / (1 + odds)).limit_denominator(1000)


def shares(
    partitions: int | None, reach: int, two_looks: bool, about: int | None = None
) -> tuple[Fraction, ...]:
    """Return the shares of the budget for the looks at the histogram, by public parameters.

    The clip of one partition decides about its number alone, and gets two fifths, or a fourth where
    a first look is enough. That of P partitions is chosen with the same draw for all of them, and
    what is lost by a clip that is a little off is shared out: 0.8 / sqrt(P reach), between 1/32 and
    2/5, measured best. Where P is not known, a guess stands in its place; without one, an eighth
    errs by little for 10 to 1,000 of them.

    Args:
        partitions: P; None: unknown.
        reach: how many of them one person can reach.
        two_looks: whether a first look may be enough.
        about: a guess of P where it is unknown; None: there is none.
    """
    number = partitions or about
    if number is None:
        return (Fraction(1, 8),)
    if partitions == reach == 1:
        return (EARLY, FULL) if two_looks else (FULL,)
    share = Fraction(0.8 / (number * reach) ** 0.5).limit_denominator(1000)
    return (min(FULL, max(_LEAST, share)),)


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
        alike = (np.full((1, self.buckets), chance / self.buckets) for chance in NOBODY)
        first, second = (self._shown(noisy, chances) for chances in alike)
        sure = np.where(first.any(axis=(1, 2), keepdims=True), first, second)
        anchor = _last(sure).max(axis=1)
        if self.anchored:
            anchor = np.maximum(anchor, 0)
        distance = np.arange(self.buckets)[None, :] - anchor[:, None]
        near = self._shown(
            noisy, np.maximum(self._alarm * _RARER ** np.clip(distance, 1, None), _LEAST_CHANCE)
        )
        return np.where((anchor >= 0)[:, None], _last(sure | near), -1)

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


@dataclass(frozen=True)
class ClipChoice:
    """Choose a clip C: the noisy histogram, and what it says. See `noisy_histogram` for its cost.

    *Two looks.* The choice stops at the first look where that shows thousands of people below the
    highest bucket that shows any, clearly there, and nothing above (`_is_enough`); what the second
    would have cost goes to the noise of the number. The number of rows below a mean stops as soon
    as the first look shows 40 scales of its noise: a fourth of its budget is then enough, as most
    people have few rows.

    *The clip.* b is the scale of the noise per unit of the clip. The clip of P partitions is the
    smallest edge that at most P b people are above, up to the highest bucket that shows people: the
    noise of a partition is b C, what it loses about loss(C) / P, and the derivative of loss(C) is
    the number of people above C. How many people are above an edge is a count, of sensitivity 1:
    noise in it costs no more for high edges.

    Attributes:
        looks: what each look costs; the last one costs most.
        thresholds: the public clips, in units.
        sides: 2 where numbers below 0 have a histogram of their own.
        anchored: as in `Evidence`.
        numbers: how many numbers the clip serves, or about so many; as in `Evidence`.
        early: whether a first look is enough as soon as it shows that many people are there.
    """

    looks: tuple[Budget, ...]
    thresholds: tuple[int, ...]
    sides: int = 1
    anchored: bool = False
    numbers: int = 1
    early: bool = False

    @property
    def buckets(self) -> int:
        """How many buckets a side has; the last one is above all clips."""
        return len(self.thresholds) + 1

    def evidence(self, look: int) -> Evidence:
        """Return what decides whether a look shows people."""
        noise = HistogramNoise(self.looks[look])
        return Evidence(noise, self.buckets, self.sides, self.anchored, self.numbers)

    def draw(self, people: np.ndarray, noise: Noise) -> Choice:
        """Draw the noisy histograms of some rows, each with its own people.

        Args:
            people: (rows, sides, buckets), each person in one bucket of a row.
            noise: the randomness.
        """
        return Looks(self.looks).draw(people, self._is_enough, noise)

    def _is_enough(self, noisy: np.ndarray) -> bool:
        """Return whether a first look at one row shows where people end, clearly."""
        evidence = self.evidence(0)
        scale = evidence.noise.scale
        top = int(evidence.highest(noisy).max()) if len(noisy) == 1 else -1
        if top < 0:
            return False
        shown = noisy[noisy > evidence.noise.beyond(1, 1 / (2 * self.buckets))].sum()
        if self.early:
            return bool(shown >= _STOP_EARLY * scale)
        clear = noisy.max(axis=1)[0]
        above = np.concatenate([noisy[0, :, top + 1 :], np.zeros((self.sides, 4))], axis=1)
        windows = np.lib.stride_tricks.sliding_window_view(above, 4, axis=1).sum(axis=-1)
        return bool(
            clear[top] >= _STOP_TOP * scale
            and above[:, :3].max() <= _STOP_NEAR * scale
            and above.max() <= _STOP_FAR * scale
            and windows.max() <= _STOP_WINDOW * scale
            and shown >= _STOP_PEOPLE
        )

    def tops(self, choice: Choice) -> np.ndarray:
        """Return the highest bucket that shows people, per row and side; -1 where none does."""
        return self.evidence(choice.look).highest(choice.noisy)

    def clips(self, choice: Choice, price: float, partitions: float = 1.0) -> np.ndarray:
        """Return the index of the clip in `thresholds` per row; -1 where nobody is shown.

        Args:
            choice: what was drawn.
            price: b, the scale of the noise of a number for a clip of 1.
            partitions: P, how many numbers the clip serves.
        """
        tops = self.tops(choice)
        below = np.arange(self.buckets)[None, None, :] <= tops[..., None]
        people = np.where(below, np.maximum(choice.noisy, 0), 0).sum(axis=1)
        above = people.sum(axis=1, keepdims=True) - people.cumsum(axis=1)
        index = (above > partitions * price).sum(axis=1)
        return np.where(tops.max(axis=1) < 0, -1, np.minimum(index, len(self.thresholds) - 1))

    def losses(self, choice: Choice, clips: np.ndarray, deviations: float = ALONE) -> list[Losses]:
        """Return what people lose at the clips, in units: for each side, and each row."""
        tops, edges = self.tops(choice), ClipEdges(self.thresholds)
        scale = HistogramNoise(self.looks[choice.look]).scale
        return [
            lost(choice.noisy[:, side], tops[:, side], clips, edges, scale, deviations)
            for side in range(self.sides)
        ]


def _windows(noisy: np.ndarray, width: int) -> np.ndarray:
    """Return the sums of each bucket and those above it; at the end of the grid of fewer."""
    padded = np.concatenate([noisy, np.zeros((*noisy.shape[:-1], width - 1), noisy.dtype)], axis=-1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, width, axis=-1)
    return np.asarray(windows.sum(axis=-1))


def _last(flags: np.ndarray) -> np.ndarray:
    """Return the index of the last flag along the last axis; -1 for none."""
    last = flags.shape[-1] - 1 - flags[..., ::-1].argmax(axis=-1)
    return np.asarray(np.where(flags.any(axis=-1), last, -1))
