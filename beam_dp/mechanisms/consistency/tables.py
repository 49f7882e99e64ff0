"""Released tables, what they agree on, and which tables can agree.

All of it is computed from released numbers and public parameters: it costs nothing (Dwork, Roth,
2014, Proposition 2.1).
"""

import itertools
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.numerics import checks

LAPLACE, GAUSS = 2.17, 1.96
"""How many deviations hold a sum of noises (95%), of numbers drawn under pure epsilon and zCDP."""
MOST = 2.0**60
"""Numbers beyond this, over the rows of their table, are cut there, so that all sums fit int64."""


class Table(NamedTuple):
    """The released numbers of a table, one per row, in units of their grid.

    The order of the rows must be public, as that of their keys: ties are broken by it.

    Attributes:
        values: the numbers, finite.
        variances: above 0; of the noise, and of the loss that was given back. Infinite: the number
            is not known; its parts must be listed then.
        parents: the row of the coarser table that each row is a part of; of the coarsest nothing.
        is_open: whether a parent may have parts that are not listed: it has a row (other) then.
    """

    values: np.ndarray
    variances: np.ndarray
    parents: np.ndarray = np.zeros(0, np.int64)
    is_open: bool = False

    @property
    def within(self) -> np.ndarray:
        """The numbers, cut where their sums would not fit."""
        most = MOST / max(len(self.values), 1)
        return np.asarray(np.clip(self.values, -most, most))


class Agreed(NamedTuple):
    """What the rows of a table agree on with those of other tables.

    Attributes:
        whole: whole numbers, each of which is the sum of its parts.
        estimates: the estimates by least squares, which are without bias.
        variances: at least those of the estimates.
        other: what is not listed, one row per row of the coarser table; None: all is listed.
    """

    whole: np.ndarray
    estimates: np.ndarray
    variances: np.ndarray
    other: "Agreed | None" = None

    @classmethod
    def of(cls, values: np.ndarray, variances: np.ndarray, nonnegative: bool) -> "Agreed":
        """Return estimates with the nearest whole numbers."""
        whole = np.rint(np.maximum(values, 0.0) if nonnegative else values).astype(np.int64)
        return cls(whole, values, variances)

    def interval(self, deviations: float, nonnegative: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the intervals of the truth (95%), which hold the whole numbers too.

        An estimate is a sum of independent noises, each with a factor. All noise here is nearly
        continuous, symmetric and log-concave: Laplace, Gaussian, and `noise_on_several_sums`. So
        are such sums X (Prekopa 1973). Gaussian ones have 1.96 deviations.

        Theorem. Let |X| have a density f that is log-concave and falls, and P(|X| > t) = p. Then
        t is at most sqrt(E X^2) times the largest value over B > 0 of

            s / sqrt(m),  s = -ln(p + (1 - p) e^-B),
            m = (2 - e^-B (B^2 + 2 B + 2)) / (1 - e^-B),

        which for p = 5% is 2.1691 (at B = 4.48; a single Laplace has 2.118, B infinite). Proof. Let
        g(x) = f(t) e^(-b (x - t)) have the same integral over [0, t]; b >= 0, as f falls. ln(f / g)
        is concave and 0 at t, so f - g is first negative, then positive before t, and negative
        behind it. So x^2 has a smaller integral over [0, t] by g than by f. Behind t, g is above f,
        so the integral of x^2 falls again where the weight p is put as near to t as g allows, which
        ends g at some B / b. What is left is the exponential law that ends at B, where m is the
        second moment, and s is t, for b = 1. QED.

        Half a unit is for noise being whole: P(|z| > 2.17 deviations + 1/2) <= 5% holds for each
        single z, and discrete sums are compared in the tests.

        Args:
            deviations: `LAPLACE` or `GAUSS`.
            nonnegative: whether the truth is known to be at least 0.
        """
        width = deviations * np.sqrt(self.variances) + 0.5
        least = 0.0 if nonnegative else -np.inf
        low = np.minimum(np.maximum(self.estimates - width, least), self.whole)
        return low, np.maximum(self.estimates + width, self.whole)


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
