"""Tables that nest agree: least squares up and down, then whole numbers from the top down.

*What errs.* A number y of a table errs by its noise, of variance N, and by what clipping took from
it, which the intervals bound: R is the deviation of that. People above the clip are missing in all
rows at once, so the losses of rows are taken to be one, times R: a sum has the variance
(sum of N) + (sum of R)^2. With independent losses the sum of many rows would seem too sure, and
would spoil a total that is measured well.

*Least squares.* Up, from the finest table: z_p is the best estimate of p from itself and what is
below it, x_p that from all. z, N and R of the children of p add up to Z, N' and R':

    z_p = y_p + g (Z_p - y_p),    g = v / (v + S),    v = N + R^2,    S = N' + R'^2,

with N = (1 - g)^2 N + g^2 N' and R = (1 - g) R + g R' from then on. Down: the children of p have the
covariance k_c S with their sum, for k_c = (N_c + R_c R') / S, and what they differ from k_c Z by
has none with it, so

    x_c = z_c + k_c (x_p - Z_p).

The k_c add up to 1, so the x_c add up to x_p. Without losses, and with them for one parent alone,
x is the best linear estimate without bias (Gauss and Markov; Hay, Rastogi, Miklau, Suciu, "Boosting
the accuracy of differentially private histograms through consistency", 2010, Theorems 3 and 4, here
with unequal variances). With losses and several parents it is a linear estimate without bias.

*What is not listed.* Where a parent has parts that are not listed, and whose number is not
measured, nothing ties it to those that are listed but that these are not more. So the tables above
and below are estimated apart. (other) is what is left of the parent.

*Whole numbers that are not negative.* From the top down, the estimates x_c of the children of p,
whose number n is whole by now, are replaced by the nearest ones, in squares over w_c = N_c + R_c R',
that are at least 0 and add up to n, or to n at most where there is (other). By Karush, Kuhn and
Tucker these are max(0, x_c - a w_c), with one a per parent. With A the children that stay above 0,
a = (sum of x_c over A - n) / (sum of w_c over A). Begin with all; whoever is not above a w_c
leaves, and a does not fall by that, so that nobody has to come back (Michelot 1986). With (other),
a is at least 0. Then all are rounded down, and the missing units go to the largest remainders.
"""

from collections.abc import Sequence

import numpy as np

from beam_dp.mechanisms.consistency.tables import Agreed, ReleasedTable, noise_of_sum
from beam_dp.mechanisms.numerics import integers

_LOWERED = 2.0**-30
"""Numbers are lowered by this part more before they are rounded down: floats err far less."""


def agree(tables: Sequence[ReleasedTable]) -> list[Agreed]:
    """Return what tables agree on, each the parts of the one before.

    Every row that has children is their sum, with its (other), exactly. The work is linear in the
    rows, but for sorting. Nothing is used but released numbers.

    Args:
        tables: from coarse to fine; the first may have several rows.
    """
    (first, *further), ((values, _), *found) = tables, estimates(tables)
    agreed = [Agreed.of(first, nearest(first, values))]
    for parent, table, of_table in zip(tables, further, found, strict=False):
        agreed.append(below(parent, agreed[-1].whole, table, *of_table))
    return agreed


def estimates(tables: Sequence[ReleasedTable]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return, per table, the estimates x, and w, in proportion to which children give way."""
    means = [table.known for table in tables]
    noises = [np.full(len(table.values), table.deviation**2) for table in tables]
    losses, weights, totals = [table.loss for table in tables], list(noises), list(means)
    for level in range(len(tables) - 1, 0, -1):
        parents, above = tables[level].parents, level - 1
        total, noise, loss = (
            sums(parents, column[level], len(means[above])) for column in (means, noises, losses)
        )
        weights[level] = noises[level] + losses[level] * loss[parents]
        if tables[level].is_open:
            continue
        spread, variance = noise + loss**2, noises[above] + losses[above] ** 2
        ratio = np.divide(variance, spread, where=spread > 0, out=np.zeros(len(total)))
        own, totals[level] = 1 / (1 + ratio), total  # 1 - g; 1 for a row without children
        means[above] = own * means[above] + (1 - own) * total
        noises[above] = own**2 * noises[above] + (1 - own) ** 2 * noise
        losses[above] = own * losses[above] + (1 - own) * loss
    for level, table in enumerate(tables[1:], 1):
        if not table.is_open:
            shares = (
                weights[level]
                / sums(table.parents, weights[level], len(totals[level]))[table.parents]
            )
            means[level] = means[level] + shares * (means[level - 1] - totals[level])[table.parents]
    return list(zip(means, weights, strict=True))


def nearest(table: ReleasedTable, values: np.ndarray) -> np.ndarray:
    """Return the nearest whole numbers that the table may have."""
    return np.asarray(np.rint(np.maximum(values, 0) if table.nonnegative else values), np.int64)


def below(
    parent: ReleasedTable,
    totals: np.ndarray,
    table: ReleasedTable,
    values: np.ndarray,
    weights: np.ndarray,
) -> Agreed:
    """Return the rows of a table whose parents are whole by now.

    Args:
        parent: the parents, as released.
        totals: as agreed.
        table: the rows, as released.
        values: the estimates.
        weights: in proportion to which they give way.
    """
    fitted = values - thresholds(table, values, weights, totals)[table.parents] * weights
    fitted = np.maximum(fitted, 0.0) if table.nonnegative else fitted
    if not table.is_open:
        return Agreed.of(table, whole_parts(fitted, table.parents, totals))
    listed = nearest(table, sums(table.parents, fitted, len(totals)))
    listed = np.minimum(listed, totals) if table.nonnegative else listed
    agreed = Agreed.of(table, whole_parts(fitted, table.parents, listed))
    return agreed._replace(other=rest(parent, totals, table, agreed.whole))


def rest(
    parent: ReleasedTable, totals: np.ndarray, table: ReleasedTable, listed: np.ndarray
) -> Agreed:
    """Return what is not listed: the parent less its listed parts, as released and as agreed."""
    columns = np.ones(len(listed)), table.values, *table.losses
    count, values, less, more = (sums(table.parents, each, len(totals)) for each in columns)
    variance = parent.deviation**2 + count * table.deviation**2
    noise = noise_of_sum(table.deviations, variance)
    ends = parent.losses[0] + noise + more, parent.losses[1] + noise + less
    whole = totals - integers.sums_at(table.parents, listed, len(totals))
    left = parent._replace(values=parent.values - values, below=ends[0], above=ends[1])
    return Agreed.of(left, whole)


def thresholds(
    table: ReleasedTable, values: np.ndarray, weights: np.ndarray, totals: np.ndarray
) -> np.ndarray:
    """Return a per parent, by which its rows add up to its total, or to that at most if open."""
    prices, stays = np.zeros(len(totals)), np.ones(len(values), bool)
    while table.nonnegative or not table.is_open:
        shares = sums(table.parents, weights * stays, len(totals))
        excess = sums(table.parents, values * stays, len(totals)) - totals
        np.divide(excess, shares, where=shares > 0, out=prices)
        stay = stays & (values > prices[table.parents] * weights)
        if not table.nonnegative or stay.sum() == stays.sum():
            break
        stays = stay
    return np.maximum(prices, 0.0) if table.is_open else prices


def whole_parts(values: np.ndarray, parents: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Return whole numbers that add up to the totals, by largest remainders.

    Where the values add up to their total, each is less than 1 from its value. Of equal remainders
    the first ones are rounded up. Values of at least 0 give numbers of at least 0.
    """
    whole = np.floor(lowered(values, parents, totals)).astype(np.int64)
    missing = integers.add(totals, -integers.sums_at(parents, whole, len(totals)))
    counts = np.bincount(parents, minlength=len(totals))
    each, more = np.divmod(missing, np.maximum(counts, 1))
    order = np.lexsort((whole - values, parents))
    owners = parents[order]
    rank = np.arange(len(order)) - (np.cumsum(counts) - counts)[owners]
    whole[order] += each[owners] + (rank < more[owners])
    return np.asarray(whole)


def lowered(values: np.ndarray, parents: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Return values lowered, in proportion to their sizes, until no sum is above its total."""
    size = np.abs(values)
    over = np.maximum(sums(parents, values, len(totals)) - totals, 0.0)
    all_sizes = sums(parents, size, len(totals))
    share = np.divide(over, all_sizes, where=all_sizes > 0, out=np.zeros(len(totals)))
    return np.asarray(values - size * np.minimum(share + _LOWERED, 1.0)[parents])


def sums(indexes: np.ndarray, column: np.ndarray, size: int) -> np.ndarray:
    """Return sums of floats by index."""
    return np.asarray(np.bincount(indexes, column, size))
