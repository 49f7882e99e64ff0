"""Tables agree: least squares upwards, then whole numbers from the top down.

Each table is a part of a coarser one (a chain), but the finest may be one of two (crossed tables:
cells with both margins). One computation serves both.

*What errs.* A number y of a table errs by its noise, of variance N, and by what clipping took from
it, which the intervals bound: R is the deviation of that. People above the clip are missing in all
rows at once, so the losses of rows are taken to be one, times R: a sum has the variance
(sum of N) + (sum of R)^2. With independent losses the sum of many rows would seem too sure, and
would spoil a total that is measured well.

*Up.* From the finest table, z_p is the best estimate of p from itself and what is below it. z, N
and R of the children of p add up to Z, N' and R':

    z_p = y_p + g (Z_p - y_p),    g = v / (v + S),    v = N + R^2,    S = N' + R'^2,

with N = (1 - g)^2 N + g^2 N' and R = (1 - g) R + g R' from then on.

*Down.* The total is z, made whole. Then the estimates z_c below a parent whose number n is whole by
now are replaced by the nearest ones, in squares over w_c = N_c + R_c R' (the covariance with their
sum), that add up to n. Without losses and rounding, and where nothing is below 0, that is the
best linear estimate without bias of a chain (Gauss and Markov; Hay, Rastogi, Miklau, Suciu,
"Boosting the accuracy of differentially private histograms through consistency", 2010, Theorems 3
and 4, here with unequal variances). With losses, and of crossed tables, whose total hears of each
margin as if the other had no cell in common, it is a linear estimate without bias; of crossed
tables its variance is at most a tenth larger, in the cases of the tests.

*Not negative.* By Karush, Kuhn and Tucker the nearest ones that are at least 0 are
max(0, z_c - a w_c), with one a per parent. With A the children that stay above 0,
a = (sum of z_c over A - n) / (sum of w_c over A). Begin with all; whoever is not above a w_c
leaves, and a does not fall by that, so that nobody has to come back (Michelot 1986). Of crossed
tables the nearest ones are max(0, z - (a_i + b_j) w); the a of given b, and the b of given a, are
those of a chain; in turns they ascend the dual problem to its maximum (coordinate ascent: Tseng
1993; the same as Dykstra's projections).

*Whole.* All are rounded down, and the missing units go to the largest remainders. Of crossed tables
they flow from rows to columns over fractions, one each: a flow that misses nothing exists, so one
of whole units does (Ford and Fulkerson 1956). If the ascent has not ended, more may be missing: it
is put where its row meets its column, when both are laid out one after the other (the north-west
corner rule).

*What is not listed.* Where a parent has parts that are not listed, nothing ties it to those that
are but that these are not more: a is at least 0, and nothing goes up.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.numerics.flows import largest_flow

UNKNOWN = 1e200
"""The variance of what is not known."""
MOST = 2.0**60
"""Numbers beyond this, over the rows of their table, are cut there, so that all sums fit int64."""
_STEPS, _NEAR = 100, 0.01  # of the ascent: margins are off by less than that when it ends
_LOWERED = 2.0**-30
"""Numbers are lowered by this part more before they are rounded down: floats err far less."""


class Link(NamedTuple):
    """How the rows of a table are parts of those of a coarser one.

    Attributes:
        coarse: the index of the coarser table.
        fine: that of the finer one.
        parents: the coarser row of each finer row.
        is_open: whether parts may not be listed; then each coarser row has a part (other).
    """

    coarse: int
    fine: int
    parents: np.ndarray
    is_open: bool


class Level(NamedTuple):
    """The numbers of a table, in units.

    The order of the rows must be public, as that of their keys: ties are broken by it.

    Attributes:
        values: one per row, finite.
        variance: that of the noise of each; `UNKNOWN` where no number is known.
        losses: the deviation of what clipping took from each.
    """

    values: np.ndarray
    variance: float
    losses: np.ndarray


def agree(
    levels: Sequence[Level], links: Sequence[Link], nonnegative: bool = True
) -> list[np.ndarray]:
    """Return whole numbers of each table, of which each is the sum of its parts, exactly.

    Where parts may not be listed, it is that or more. Of a chain the work is linear in the rows,
    but for sorting.

    Args:
        levels: from coarse to fine.
        links: between them, the coarser ones first; two lead to the finest of crossed tables.
        nonnegative: whether the truth is at least 0, as of counts.
    """
    parts = {link.fine for link in links}
    tops = [at for at in range(len(levels)) if at not in parts]
    if len(tops) > 1 and not links[-1].is_open:  # both margins have one total, which nobody drew
        zeros = [np.zeros(len(levels[at].values), np.int64) for at in tops]
        above = [Link(0, at + 1, parents, False) for at, parents in zip(tops, zeros, strict=True)]
        moved = [k._replace(coarse=k.coarse + 1, fine=k.fine + 1) for k in links]
        total = Level(np.zeros(1), UNKNOWN, np.zeros(1))
        return agree([total, *levels], [*above, *moved], nonnegative)[1:]
    whole: list[np.ndarray] = []
    for at, (values, weights) in enumerate(estimates(levels, links)):
        sides = [link for link in links if link.fine == at]
        totals = [whole[link.coarse] for link in sides]
        fitted = _nearest(values, weights, sides, totals, nonnegative)
        whole.append(_whole(fitted, sides, totals, nonnegative))
    return whole


def estimates(
    levels: Sequence[Level], links: Sequence[Link]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return z of each table, and w, in proportion to which parts give way."""
    mosts = [MOST / max(len(level.values), 1) for level in levels]
    means = [np.clip(each.values, -most, most) for each, most in zip(levels, mosts, strict=True)]
    noises = [np.full(len(level.values), level.variance) for level in levels]
    losses, weights = [level.losses for level in levels], list(noises)
    for coarse, fine, parents, is_open in reversed(links):
        total, noise, loss = (
            sums(parents, column[fine], len(means[coarse])) for column in (means, noises, losses)
        )
        weights[fine] = noises[fine] + losses[fine] * loss[parents]
        if is_open:
            continue
        spread, variance = noise + loss**2, noises[coarse] + losses[coarse] ** 2
        own = 1 / (1 + _quotient(variance, spread))  # 1 - g; 1 for a row without parts
        means[coarse] = own * means[coarse] + (1 - own) * total
        noises[coarse] = own**2 * noises[coarse] + (1 - own) ** 2 * noise
        losses[coarse] = own * losses[coarse] + (1 - own) * loss
    return list(zip(means, weights, strict=True))


def _nearest(
    values: np.ndarray,
    weights: np.ndarray,
    sides: Sequence[Link],
    totals: Sequence[np.ndarray],
    nonnegative: bool,
) -> np.ndarray:
    """Return the nearest numbers that add up to the totals of each side, or to less if open."""
    shifts = [np.zeros(len(values)) for _ in sides]
    for _ in range(_STEPS):
        for at, (side, total) in enumerate(zip(sides, totals, strict=True)):
            left = values - sum(shifts) + shifts[at]
            shifts_of = _shift_of_parents(left, weights, side, total, nonnegative)
            shifts[at] = shifts_of[side.parents] * weights
        values_now = values - sum(shifts)
        fitted = np.asarray(np.maximum(values_now, 0.0) if nonnegative else values_now)
        if len(sides) < 2:
            break
        off = sums(sides[0].parents, fitted, len(totals[0])) - totals[0]
        if np.max(off if sides[0].is_open else np.abs(off), initial=0.0) < _NEAR:
            break
    return fitted


def _shift_of_parents(
    values: np.ndarray, weights: np.ndarray, side: Link, totals: np.ndarray, nonnegative: bool
) -> np.ndarray:
    """Return a per parent, by which its rows add up to its total, or to that at most if open."""
    shifts_of, stays = np.zeros(len(totals)), np.ones(len(values), bool)
    while nonnegative or not side.is_open:
        shares = sums(side.parents, weights * stays, len(totals))
        excess = sums(side.parents, values * stays, len(totals)) - totals
        shifts_of = np.where(shares > 0, _quotient(excess, shares), shifts_of)
        stay = stays & (values > shifts_of[side.parents] * weights)
        if not nonnegative or stay.sum() == stays.sum():
            break
        stays = stay
    return np.maximum(shifts_of, 0.0) if side.is_open else shifts_of


def _whole(
    fitted: np.ndarray, sides: Sequence[Link], totals: Sequence[np.ndarray], nonnegative: bool
) -> np.ndarray:
    """Return whole numbers that add up to the totals; if open, to nearly what they add up to now."""
    if not sides:
        return np.asarray(np.rint(fitted), np.int64)
    limits = []
    for side, total in zip(sides, totals, strict=True):
        listed = np.rint(sums(side.parents, fitted, len(total))).astype(np.int64)
        listed = np.minimum(listed, total) if nonnegative else listed
        limits.append(listed if side.is_open else total)
    for side, limit in zip(sides, limits, strict=True):
        fitted = _lowered(fitted, side.parents, limit)
    whole = np.floor(fitted).astype(np.int64)
    if len(sides) == 1:
        [missing] = _missing(sides, limits, whole)
        return np.asarray(whole + _remainders(fitted - whole, sides[0].parents, missing))
    if len(whole):  # 0 or 1 per cell with room, as many as fit
        cells = sides[0].parents, sides[1].parents
        whole += largest_flow(cells, fitted > whole, *_missing(sides, limits, whole))[0]
    more = 0 if sides[0].is_open else _corners(sides, _missing(sides, limits, whole))
    return np.asarray(whole + more)


def _lowered(values: np.ndarray, parents: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Return values lowered, in proportion to their sizes, until no sum is above its total."""
    size = np.abs(values)
    over = np.maximum(sums(parents, values, len(totals)) - totals, 0.0)
    share = _quotient(over, sums(parents, size, len(totals)))
    return np.asarray(values - size * np.minimum(share + _LOWERED, 1.0)[parents])


def _missing(
    sides: Sequence[Link], totals: Sequence[np.ndarray], whole: np.ndarray
) -> list[np.ndarray]:
    """Return what the parents on each side lack."""
    pairs = zip(sides, totals, strict=True)
    return [total - integers.sums_at(side.parents, whole, len(total)) for side, total in pairs]


def _remainders(fractions: np.ndarray, parents: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return what each row gets of what its parent lacks: one more for the largest fractions."""
    counts = np.bincount(parents, minlength=len(missing))
    each, more = np.divmod(missing, np.maximum(counts, 1))
    order = np.argsort(parents - fractions, kind="stable")
    owners = parents[order]
    rank = np.arange(len(order)) - (np.cumsum(counts) - counts)[owners]
    units = np.zeros(len(fractions), np.int64)
    units[order] = each[owners] + (rank < more[owners])
    return units


def _corners(sides: Sequence[Link], missing: Sequence[np.ndarray]) -> np.ndarray:
    """Return what to add to cells, of which there is one per pair, so that nothing is missing."""
    ends = [np.cumsum(each) for each in missing]
    cuts = np.union1d(*ends)
    row, column = (np.searchsorted(end, cuts) for end in ends)
    cell = np.lexsort((sides[1].parents, sides[0].parents))[row * len(missing[1]) + column]
    return integers.sums_at(cell, np.diff(cuts, prepend=0), len(sides[0].parents))


def sums(indexes: np.ndarray, column: np.ndarray, size: int) -> np.ndarray:
    """Return sums of floats by index."""
    return np.asarray(np.bincount(indexes, column, size))


def _quotient(numbers: np.ndarray, divisors: np.ndarray) -> np.ndarray:
    """Return quotients; 0 where the divisor is 0."""
    out = np.zeros(len(divisors))
    np.divide(numbers, divisors, where=divisors > 0, out=out)
    return out
