"""Tables that nest agree: least squares up and down, then whole numbers from the top down.

*Least squares.* y is a noisy number with the variance v, x the estimate. The rows below a row are
measured independently of it. Up, from the finest table: z_p is the best estimate of p from itself
and what is below it. The sum Z of z over the children of p has the variance S, the sum of theirs:

    z_p = V_p (y_p / v_p + Z_p / S_p),    V_p = 1 / (1 / v_p + 1 / S_p).

Down: of Gaussian noise and a flat prior, x is the mean given all numbers. Given the true number of
p, the children of p depend on nothing outside: their means are z_c + k_c (truth - Z_p) with
k_c = V_c / S_p. The truth enters linearly, so x_p takes its place:

    x_c = z_c + k_c (x_p - Z_p),    W_c = V_c (1 - k_c) + k_c^2 W_p,

as z_c - k_c Z_p is not correlated with Z_p, nor with any number outside, hence not with x_p. x
depends on the variances alone, and is the best linear estimate without bias for any noise (Gauss
and Markov). Source: Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy of differentially private
histograms through consistency", 2010, Theorems 3 and 4, here with unequal variances.

*Sums of rows.* Two children of p have the covariance k_c k_d (W_p - S_p) <= 0, and rows of
different parents k_c k_d times that of the parents. By induction no two rows of a table are
positively correlated: the variance of a sum of rows is at most the sum of their variances.

*What is not listed.* Where a parent has parts that are not listed, and whose number is not
measured, nothing ties it to those that are listed but that these are not more. So the tables above
and below are estimated apart. (other) is the estimate of the parent less those of its children; the
two are independent, and their variances add up.

*Whole numbers that are not negative.* From the top down, the estimates x_c of the children of p,
whose number N is whole by now, are replaced by the nearest ones, in squares over their variances,
that are at least 0 and add up to N, or to N at most where there is (other). By Karush, Kuhn and
Tucker these are max(0, x_c - a w_c), with one a per parent. With A the children that stay above 0,
a = (sum of x_c over A - N) / (sum of w_c over A). Begin with all; whoever is not above a w_c
leaves, and a does not fall by that, so that nobody has to come back (Michelot 1986). With (other),
a is at least 0. Then all are rounded down, and the missing units go to the largest remainders.
"""

from collections.abc import Sequence

import numpy as np

from beam_dp.mechanisms.consistency.tables import Agreed, Table
from beam_dp.mechanisms.numerics import integers

_LOWERED = 2.0**-30
"""Numbers are lowered by this part before they are rounded down: far more than floats err."""


def agree(tables: Sequence[Table], nonnegative: bool) -> list[Agreed]:
    """Return what tables agree on, each the parts of the one before.

    Every row that has children is their sum, with its (other), exactly. The work is linear in the
    rows, but for sorting.

    Args:
        tables: from coarse to fine; the first may have several rows.
        nonnegative: whether the numbers are at least 0, as counts are; else only rounding is left.
    """
    found = estimates(tables)
    agreed = [Agreed.of(*found[0], nonnegative)]
    for table, (values, variances) in zip(tables[1:], found[1:], strict=True):
        agreed.append(divided(agreed[-1], table, values, variances, nonnegative))
    return agreed


def estimates(tables: Sequence[Table]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the estimates by least squares and their variances, per table: x and W."""
    found = [(table.within, table.variances) for table in tables]
    below = {}
    for level in range(len(tables) - 1, 0, -1):
        if tables[level].is_open:
            continue
        parents, (mean, variance) = tables[level].parents, found[level - 1]
        below[level] = total, spread = [sums(parents, part, len(mean)) for part in found[level]]
        known = np.divide(1, spread, where=spread > 0, out=np.zeros_like(mean))  # has children
        weight = 1 / (1 / variance + known)
        found[level - 1] = weight * (mean / variance + total * known), weight
    for level, (total, spread) in sorted(below.items()):
        parents, (mean, variance) = tables[level].parents, found[level]
        above, certainty = found[level - 1]
        part = variance / spread[parents]
        mean = mean + part * (above - total)[parents]
        found[level] = mean, variance * (1 - part) + part**2 * certainty[parents]
    return found


def divided(
    above: Agreed, table: Table, values: np.ndarray, variances: np.ndarray, nonnegative: bool
) -> Agreed:
    """Return a table whose parents are whole by now.

    Args:
        above: the parents.
        table: says which parent each row has, and whether all are listed.
        values: the estimates.
        variances: theirs.
        nonnegative: whether no number is below 0.
    """
    parents, totals, size = table.parents, above.whole, len(above.whole)
    fitted = values
    if nonnegative or not table.is_open:
        prices = thresholds(values, variances, parents, totals, nonnegative)
        prices = np.maximum(prices, 0.0) if table.is_open else prices
        fitted = values - prices[parents] * variances
        fitted = np.maximum(fitted, 0.0) if nonnegative else fitted
    if not table.is_open:
        return Agreed(whole_parts(fitted, parents, totals), values, variances)
    listed = np.rint(sums(parents, fitted, size)).astype(np.int64)
    listed = np.minimum(listed, totals) if nonnegative else listed
    agreed = Agreed(whole_parts(fitted, parents, listed), values, variances)
    return agreed._replace(other=rest(above, parents, agreed))


def rest(above: Agreed, parents: np.ndarray, listed: Agreed) -> Agreed:
    """Return what is not listed of each parent; it is estimated apart from what is."""
    size = len(above.whole)
    whole = above.whole - integers.sums_at(parents, listed.whole, size)
    estimates = above.estimates - sums(parents, listed.estimates, size)
    return Agreed(whole, estimates, above.variances + sums(parents, listed.variances, size))


def thresholds(
    values: np.ndarray,
    weights: np.ndarray,
    parents: np.ndarray,
    totals: np.ndarray,
    nonnegative: bool,
) -> np.ndarray:
    """Return a per parent, such that x - a w adds up to its total, cut at 0 if `nonnegative`."""
    prices, stays = np.zeros(len(totals)), np.ones(len(values), bool)
    while True:
        shares = sums(parents, weights * stays, len(totals))
        excess = sums(parents, values * stays, len(totals)) - totals
        np.divide(excess, shares, where=shares > 0, out=prices)
        stay = stays & (values > prices[parents] * weights)
        if not nonnegative or stay.sum() == stays.sum():
            return prices
        stays = stay


def whole_parts(values: np.ndarray, parents: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Return whole numbers that add up to the totals, by largest remainders.

    Where the values add up to their total, each is less than 1 from its value. Of equal remainders
    the first ones are rounded up. Values of at least 0 give numbers of at least 0.
    """
    whole = floors(values)
    missing = integers.add(totals, -integers.sums_at(parents, whole, len(totals)))
    counts = np.bincount(parents, minlength=len(totals))
    each, more = np.divmod(missing, np.maximum(counts, 1))
    order = np.lexsort((whole - values, parents))
    owners = parents[order]
    rank = np.arange(len(order)) - (np.cumsum(counts) - counts)[owners]
    whole[order] += each[owners] + (rank < more[owners])
    return whole


def floors(values: np.ndarray) -> np.ndarray:
    """Return values rounded down, so that their sums are at most those of the values."""
    return np.asarray(np.floor(values - np.abs(values) * _LOWERED), np.int64)


def sums(indexes: np.ndarray, column: np.ndarray, size: int) -> np.ndarray:
    """Return sums of floats by index."""
    return np.asarray(np.bincount(indexes, column, size))
