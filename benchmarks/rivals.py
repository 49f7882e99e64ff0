"""What others would release as a mean, a median or a maximum: with a range that the user must give.

Noise here is drawn in floating point, by numpy: good for measuring errors, not for a release. All
of it is epsilon-DP when one person is added or removed, whatever the range is, unless the range was
taken from the data; the true range is, and that is not private.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

EPSILON = 1.0
CANDIDATES = 10_001
Range = tuple[float, float]
Draw = Callable[[np.ndarray, Range, int, np.random.Generator], np.ndarray]
"""Takes values, a range, and a number of draws."""


def clipped_mean(
    values: np.ndarray, span: Range, runs: int, drawn: np.random.Generator
) -> np.ndarray:
    """Return noisy sums over noisy counts, half of epsilon each.

    What is summed are distances to the middle of the range, at most half its width each.
    """
    middle, half = (span[0] + span[1]) / 2, (span[1] - span[0]) / 2
    total = float((np.clip(values, *span) - middle).sum())
    sums = total + drawn.laplace(0.0, half / (EPSILON / 2), runs)
    counts = len(values) + drawn.laplace(0.0, 1 / (EPSILON / 2), runs)
    return middle + np.clip(sums / np.maximum(counts, 1.0), -half, half)


def clipped_median(
    values: np.ndarray, span: Range, runs: int, drawn: np.random.Generator
) -> np.ndarray:
    """Return the median with noise for half the width of the range, which one person moves it by.

    One person more moves the median by half the gap between two neighbours, or, where nobody was
    (f(empty) is the middle of the range), by half the width.
    """
    scale = (span[1] - span[0]) / 2 / EPSILON
    return np.median(np.clip(values, *span)) + drawn.laplace(0.0, scale, runs)


def clipped_maximum(
    values: np.ndarray, span: Range, runs: int, drawn: np.random.Generator
) -> np.ndarray:
    """Return the maximum with noise for the width of the range, within the range."""
    scale = (span[1] - span[0]) / EPSILON
    return np.clip(np.max(np.clip(values, *span)) + drawn.laplace(0.0, scale, runs), *span)


def exponential_median(
    values: np.ndarray, span: Range, runs: int, drawn: np.random.Generator
) -> np.ndarray:
    """Return choices of the exponential mechanism among equally spaced candidates of a range.

    The score of a candidate is minus the difference of the numbers of people above and below it;
    one person moves it by 1 (Smith 2011). This is the algorithm of OpenDP's private quantile.
    """
    candidates = np.linspace(*span, CANDIDATES)
    ordered = np.sort(np.clip(values, *span))
    below = np.searchsorted(ordered, candidates, "left")
    above = len(ordered) - np.searchsorted(ordered, candidates, "right")
    scores = -np.abs(above - below) * (EPSILON / 2)
    weights = np.exp(scores - scores.max())
    return drawn.choice(candidates, runs, p=weights / weights.sum())


@dataclasses.dataclass(frozen=True)
class SmoothMedian:
    """The median with noise for its smooth sensitivity (Nissim, Raskhodnikova, Smith 2007).

    The noise has the density h(z), proportional to 1 / (1 + z^4), scaled to S / alpha, where S(x)
    is at least the local sensitivity and S(x) <= e^beta S(x') for neighbours. From x to x' its
    centre moves by at most alpha, in that scale, and the scale by at most e^beta. With

        |d ln h(z) / dz| = 4 |z|^3 / (1 + z^4) <= 3^(3/4)   and
        |d (l + ln h(e^l z)) / dl| = |1 - 4 z^4 / (1 + z^4)| <= 3,

    the release is epsilon-DP for epsilon = 3^(3/4) alpha + 3 beta; half for each.
    """

    epsilon: float = EPSILON

    @property
    def alpha(self) -> float:
        """The local sensitivity's part: the noise has the scale S / alpha."""
        return self.epsilon / 2 / 3**0.75

    @property
    def beta(self) -> float:
        """How fast S may fall per person."""
        return self.epsilon / 6

    def sensitivity(self, values: np.ndarray, span: Range) -> float:
        """Return S(x) = max_k e^(-beta k) (the largest local sensitivity within k people of x).

        With x_0 and x_{n+1} the ends of the range, one person more or less moves a median by half
        the gap between two neighbours at the middle, at most. To make x_i and x_j such neighbours,
        j - i - 1 people must go, and if |i + j - n - 1| > 1 others must go or come until as many
        are above as below, but for one. Where they go from inside of a wider gap, the same number
        of people gains more: so the widest gap for k is that of j - i = k + 1 with i + j within 1
        of n + 1.
        """
        size = len(values)
        low, high = (np.full(size + 2, end) for end in span)
        padded = np.concatenate([low, np.sort(np.clip(values, *span)), high])
        distance = np.arange(size + 2)
        gaps = np.zeros(size + 2)
        for off in (-1, 0, 1):
            twice = size + 1 + off - distance - 1  # 2 i
            ends = padded[twice // 2 + distance + 1 + size + 1] - padded[twice // 2 + size + 1]
            gaps = np.maximum(gaps, np.where(twice % 2, 0.0, ends))
        return float((np.exp(-self.beta * distance) * gaps).max() / 2)

    def draw(
        self, values: np.ndarray, span: Range, runs: int, drawn: np.random.Generator
    ) -> np.ndarray:
        """Return noisy medians within the range."""
        scale = self.sensitivity(values, span) / self.alpha
        noisy = np.median(np.clip(values, *span)) + scale * quartic(runs, drawn)
        return np.clip(noisy, *span)


def quartic(runs: int, drawn: np.random.Generator) -> np.ndarray:
    """Return draws of the density proportional to 1 / (1 + z^4), by rejection from Cauchy's."""
    found = np.empty(0)
    most = (1 + 2**0.5) / 2  # of (1 + z^2) / (1 + z^4)
    while len(found) < runs:
        tried = drawn.standard_cauchy(2 * runs)
        kept = drawn.random(2 * runs) * most < (1 + tried**2) / (1 + tried**4)
        found = np.concatenate([found, tried[kept]])
    return found[:runs]
