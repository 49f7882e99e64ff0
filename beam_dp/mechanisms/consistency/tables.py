"""Released tables, what they agree on, and which tables can agree.

All of it is computed from released numbers and public parameters: it costs nothing (Dwork, Roth,
2014, Proposition 2.1).
"""

import itertools
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.numerics import checks

LAPLACE, GAUSS = 2.17, 1.96
"""How many deviations hold a sum of noises (95%), of numbers drawn under pure epsilon and zCDP."""
UNKNOWN = 1e100
MOST = 2.0**60
"""Numbers beyond this, over the rows of their table, are cut there, so that all sums fit int64."""


class ReleasedTable(NamedTuple):
    """The released numbers of a table, one per row, in units of their grid.

    The order of the rows must be public, as that of their keys: ties are broken by it.

    Attributes:
        values: the numbers, finite.
        below: how far below each the truth may be (95%), by noise and clipping; may be infinite.
        above: the same above.
        noise: how far the noise of one number strays (95%).
        deviation: its standard deviation, above 0; `UNKNOWN` where no number is known.
        parents: the row of the coarser table that each row is a part of; of the coarsest nothing.
        is_open: whether a parent may have parts that are not listed: it has a row (other) then.
        nonnegative: whether the truth is at least 0, as of counts; else only rounding is left.
        deviations: how many of them hold a sum of noises: `LAPLACE` or `GAUSS`.
    """

    values: np.ndarray
    below: np.ndarray
    above: np.ndarray
    noise: float
    deviation: float
    parents: np.ndarray = np.zeros(0, np.int64)
    is_open: bool = False
    nonnegative: bool = True
    deviations: float = LAPLACE

    @property
    def known(self) -> np.ndarray:
        """The numbers, cut where their sums would not fit."""
        most = MOST / max(len(self.values), 1)
        return np.asarray(np.clip(self.values, -most, most))

    @property
    def losses(self) -> tuple[np.ndarray, np.ndarray]:
        """How far below and above the truth may be by clipping alone."""
        below, above = (np.maximum(side - self.noise, 0.0) for side in (self.below, self.above))
        return below, above

    @property
    def loss(self) -> np.ndarray:
        """The standard deviation of what clipping errs: a quarter of how far its ends are apart.

        Of one number it is at most half of that of its noise: its clip is chosen where both are
        alike, and its ends are by a bound (Cantelli) that is far wider. It is measured, and only
        weighs numbers: intervals do not depend on it.
        """
        ends = (np.where(np.isfinite(side), side, 0.0) for side in self.losses)
        most = self.deviation / 2 if len(self.values) == 1 else np.inf
        return np.asarray(np.minimum(sum(ends) / 4, most))


class Agreed(NamedTuple):
    """What the rows of a table agree on with those of other tables.

    The intervals are those of the table alone: they hold as before, and the whole number too.

    Attributes:
        whole: whole numbers, each of which is the sum of its parts.
        low: the lower ends of the intervals of the truth (95%).
        high: the upper ends.
        other: what is not listed, one row per row of the coarser table; None: all is listed.
    """

    whole: np.ndarray
    low: np.ndarray
    high: np.ndarray
    other: "Agreed | None" = None

    @classmethod
    def of(cls, table: ReleasedTable, whole: np.ndarray) -> "Agreed":
        """Return whole numbers with the intervals of a table, which hold them now."""
        low, high = table.values - table.below, table.values + table.above
        if table.nonnegative:  # an interval below 0 is given as if the number were 0
            low, high = np.maximum(low, 0.0), np.where(high <= 0, table.above, high)
        return cls(whole, np.minimum(low, whole), np.maximum(high, whole))


def noise_of_sum(deviations: float, variance: float | np.ndarray) -> float | np.ndarray:
    """Return how far a sum of independent noises of that variance strays (95%).

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
        variance: the sum of the variances, in units.
    """
    return deviations * np.sqrt(variance) + 0.5


def interval_of_sum(
    lows: npt.ArrayLike, highs: npt.ArrayLike, noise: float, deviation: float, deviations: float
) -> tuple[float, float]:
    """Return an interval of the sum of rows of one table (95%), from their own intervals.

    What is beyond the noise of a row adds up; the noises of rows are independent. A row whose
    lower end was cut at 0 adds 0 to the lower end, as nothing more is known of it.

    Args:
        lows: the lower ends of these rows.
        highs: the upper ends.
        noise: how far the noise of one number strays (95%).
        deviation: its standard deviation.
        deviations: `LAPLACE` or `GAUSS`.
    """
    low, high = np.asarray(lows, float), np.asarray(highs, float)
    known = low[low != 0]
    least, most = known.sum() + len(known) * noise, high.sum() - len(high) * noise
    far = [float(noise_of_sum(deviations, len(rows) * deviation**2)) for rows in (known, high)]
    return float(least - far[0]), float(most + far[1])


def nested(owner: str, name: str, columns: Sequence[Collection[str]]) -> tuple[list[int], bool]:
    """Return the order of tables from coarse to fine, and whether two of them are crossed.

    Tables agree where the columns of each are among those of the next finer one. Or where the
    finest has the columns of two others, without a column in common, and nothing is beside these
    three but the total.

    Args:
        owner: who asks, for the message.
        name: its parameter.
        columns: those of each table.

    Raises:
        ParameterError: where they cannot agree.
    """
    sets = [frozenset(each) for each in columns]
    order = sorted(range(len(sets)), key=lambda index: len(sets[index]))
    ranked = [sets[index] for index in order]
    is_chain = all(a < b for a, b in itertools.pairwise(ranked))
    margins = [each for each in ranked[:-1] if each]
    crossed = len(margins) == 2 and not margins[0] & margins[1] and len(ranked) <= 4
    crossed = crossed and margins[0] | margins[1] == ranked[-1] and len({*ranked}) == len(ranked)
    rule = "be tables that nest, or one by two groups of columns, by each group, and of all rows"
    mend = "Three and more crossed tables cannot agree: leave some out, or leave the totals apart."
    checks.require(is_chain or crossed, owner, name, rule, mend)
    return order, not is_chain
