"""Released tables, intervals of sums of their numbers, and which tables can agree.

All of it is computed from released numbers and public parameters: it costs nothing (Dwork, Roth,
2014, Proposition 2.1).
"""

import itertools
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.consistency.agreement import UNKNOWN, Level
from beam_dp.mechanisms.metrics.released import Released
from beam_dp.mechanisms.numerics import checks

LAPLACE, GAUSS = 2.17, 1.96
"""How many deviations hold a sum of noises (95%), of numbers drawn under pure epsilon and zCDP."""


class NoiseSize(NamedTuple):
    """The noise of a number.

    Attributes:
        tail_bound: its tail bound (95%).
        deviation: its standard deviation, above 0.
        deviations: how many of them hold a sum of noises: `LAPLACE` or `GAUSS`.
    """

    tail_bound: float
    deviation: float
    deviations: float


class ReleasedTable(NamedTuple):
    """The released numbers of a table, one per row; NaN, or an open interval, where one is unknown."""

    numbers: Released
    noise: NoiseSize

    @property
    def losses(self) -> tuple[np.ndarray, np.ndarray]:
        """How far below and above the truth may be by clipping alone."""
        sides = self.numbers.below, self.numbers.above
        below, above = (np.maximum(side - self.noise.tail_bound, 0.0) for side in sides)
        return below, above

    @property
    def is_known(self) -> bool:
        """Whether an interval has an end, or there is no row."""
        return not len(self.numbers.values) or bool(np.isfinite(self.losses).any())

    def level(self, unit: float) -> Level:
        """Return the numbers in units, with what they err.

        The standard deviation of what clipping errs is a quarter of how far its ends are apart. An
        eighth draws totals to their parts where few people own much; with a half, groups of people
        with one row each err by a tenth more than apart. Of one number it is at most half of that
        of its noise: its clip is chosen where both are alike, and its ends are by a bound (Cantelli)
        that is far wider. All this is measured, and only weighs numbers: intervals do not depend on
        it.
        """
        values, (below, above) = self.numbers.values.astype(float), self.losses
        known = np.isfinite(below), np.isfinite(above)
        loss = np.where(known[0], below, 0.0) / 4 + np.where(known[1], above, 0.0) / 4
        loss = np.minimum(loss, self.noise.deviation / 2) if len(values) == 1 else loss
        variance = (self.noise.deviation / unit) ** 2 if self.is_known else UNKNOWN
        return Level(np.nan_to_num(values) / unit, min(variance, UNKNOWN), loss / unit)


def noise_of_sum(
    deviations: float, variance: float | np.ndarray, unit: float = 1.0
) -> float | np.ndarray:
    """Return the tail bound of a sum of independent noises of that variance (95%).

    All noise here is nearly continuous, symmetric and log-concave: Laplace, Gaussian, and
    `noise_on_several_sums`. So are sums X of it (Prekopa 1973). Gaussian ones have 1.96 deviations.

    Theorem. Let |X| have a density f that is log-concave and falls, and P(|X| > t) = p. Then t is
    at most sqrt(E X^2) times the largest value over B > 0 of

        s / sqrt(m),  s = -ln(p + (1 - p) e^-B),  m = (2 - e^-B (B^2 + 2 B + 2)) / (1 - e^-B),

    which for p = 5% is 2.1691 (at B = 4.48; a single Laplace has 2.118, B infinite). Proof. Let
    g(x) = f(t) e^(-b (x - t)) have the same integral over [0, t]; b >= 0, as f falls. ln(f / g) is
    concave and 0 at t, so f - g is first negative, then positive before t, and negative behind it.
    So x^2 has a smaller integral over [0, t] by g than by f. Behind t, g is above f, so the integral
    of x^2 falls again where the weight p is put as near to t as g allows, which ends g at some
    B / b. What is left is the exponential law that ends at B, where m is the second moment, and s
    is t, for b = 1. QED.

    Half a unit is for noise being whole: so much holds for each single noise, and for the sums whose
    exact laws are computed in the tests.

    Args:
        deviations: `LAPLACE` or `GAUSS`.
        variance: the sum of the variances.
        unit: that of the numbers.
    """
    return deviations * np.sqrt(variance) + unit / 2


def interval_of_sum(
    lows: npt.ArrayLike, highs: npt.ArrayLike, noise: float, deviation: float, deviations: float
) -> tuple[float, float]:
    """Return an interval of the sum of rows of one table (95%), from their own intervals.

    What is beyond the noise of a row adds up; the noises of rows are independent. A row whose
    lower end was cut at 0 adds 0 to the lower end, as nothing more is known of it.

    Args:
        lows: the lower ends of these rows.
        highs: the upper ends.
        noise: the tail bound of the noise of one number (95%).
        deviation: its standard deviation.
        deviations: `LAPLACE` or `GAUSS`.
    """
    low, high = np.asarray(lows, float), np.asarray(highs, float)
    known = low[low != 0]
    least, most = known.sum() + len(known) * noise, high.sum() - len(high) * noise
    far = [float(noise_of_sum(deviations, len(rows) * deviation**2)) for rows in (known, high)]
    return float(least - far[0]), float(most + far[1])


def nested(
    subject: str, name: str, columns: Sequence[Collection[str]]
) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the order of tables from coarse to fine, and which ones of these are next to which.

    Tables agree where the columns of each are among those of the next finer one. Or where the
    finest has the columns of two others, without a column in common, and nothing is beside these
    three but the total.

    Args:
        subject: who asks, for the message.
        name: its parameter.
        columns: those of each table, the first one's first.

    Raises:
        ParameterError: where they cannot agree.
    """
    sets = [frozenset(each) for each in columns]
    order = sorted(range(len(sets)), key=lambda index: len(sets[index]))
    ranked = [sets[index] for index in order]
    pairs = [
        (at, further)
        for at, further in itertools.combinations(range(len(ranked)), 2)
        if ranked[at] < ranked[further]
        and not any(ranked[at] < between < ranked[further] for between in ranked)
    ]
    last = len(order) - 1
    is_chain = pairs == list(itertools.pairwise(range(last + 1)))
    of_last = [ranked[at] for at, further in pairs if further == last]
    is_crossed = len(of_last) == 2 and last <= 3 and len(pairs) == 2 * last - 2
    is_crossed = is_crossed and of_last[0] ^ of_last[1] == ranked[last]
    rule = "be tables that nest, or one by two groups of columns, by each group, and of all rows"
    first, *others = columns
    near = (checks.near(each, first) for by in others for each in by if each not in first)
    hint = "Three and more crossed tables (CUBE) cannot agree: leave some out, or write totals='apart'."
    hint = " ".join([*filter(None, near), hint])
    checks.require(is_chain or is_crossed, subject, name, rule, hint)
    return order, pairs
