"""Tables of a x b cells agree with both margins and the total.

*Least squares.* The cells x minimise the sum of (y - sum of its cells)^2 / v over the numbers of
all tables, where a number of the finest table has one cell. It is sparse, and solved by LSMR (Fong
and Saunders 2011). Where the numbers of a table are equally uncertain, there are four singular
values, so four steps are enough. By Gauss and Markov no estimate has a larger variance than that
by least squares on fewer tables: the smaller one of the two chains (total, rows, cells) and (total,
columns, cells), in closed form, is beside each estimate.

*Not negative.* The total becomes whole, then both margins (`tree`). The nearest cells that are at
least 0 and have these margins are max(0, x - (a_i + b_j) w), by Karush, Kuhn and Tucker. The a of
given b, and the b of given a, are those of a tree; in turns they ascend the dual problem to its
maximum (coordinate ascent: Tseng 1993; the same as Dykstra's projections).

*Whole.* Cells are rounded down, and what a row and a column miss flows from rows to columns over
cells, one unit each: a flow over fractions that misses nothing exists, so a flow of whole units
does (Ford and Fulkerson 1956). It is sought over fractions of at least 1/2 first, then augmented.
If the ascent has not ended, more units may be missing; any cell takes them.

*What is not listed.* Where cells are not listed, each table is estimated apart, and each row of a
margin, and the total on each side, has a row (other). The cells are at most the margins.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.consistency import tree
from beam_dp.mechanisms.consistency.tables import Agreed, Table
from beam_dp.mechanisms.numerics import integers

_STEPS, _NEAR = 100, 0.01  # of the ascent: margins are off by less than that when it ends
_CLOSE = 1e-10  # of least squares
_LARGEST = (1 << 30) - 1  # the solver of flows has integers of 32 bits
_STAGES = (0.5, 1), (0.0, 1), (-1.0, _LARGEST)
"""Which fractions may be rounded up, and by how much: more only where the ascent has not ended."""


class CrossedAgreed(NamedTuple):
    """What the tables agree on.

    Attributes:
        total: one row, of all rows; None: it was not released, and not everything is listed.
        margins: rows, and columns; their (other) is that of the total.
        cells: the cells.
        others: what is not listed of each row, and of each column; none where all is listed.
    """

    total: Agreed | None
    margins: list[Agreed]
    cells: Agreed
    others: list[Agreed]


def agree(
    total: Table | None, margins: Sequence[Table], cells: Sequence[Table], nonnegative: bool
) -> CrossedAgreed:
    """Return what crossed tables agree on.

    Every margin is the sum of its cells, with its (other), and the total that of each margin.

    Args:
        total: one row; None where it was not released.
        margins: rows, and columns: the parts of the total, all of them open or none.
        cells: the same numbers twice: as parts of rows, and of columns. If they are not open, there
            is one for each pair, and everything is listed.
        nonnegative: whether the numbers are at least 0, as counts are; else only rounding is left.
    """
    if is_open := cells[0].is_open:
        top = [] if total is None else [total]
        chains = [tree.agree([*top, margin], nonnegative) for margin in margins]
        values, variances = cells[0].within, cells[0].variances
    else:
        top = [Table(np.zeros(1), np.full(1, np.inf)) if total is None else total]
        pairs = zip(margins, cells, strict=True)
        found = [[each[1] for each in tree.estimates([*top, *pair])] for pair in pairs]
        certainty, variances = (np.minimum(*(each[at] for each in found)) for at in (0, 2))
        values = _cells([cells[0], *margins, *top], [cell.parents for cell in cells])
        whole = Agreed.of(values.sum(keepdims=True), certainty, nonnegative)
        chains = []
        for margin, cell, (_, spread, _) in zip(margins, cells, found, strict=True):
            sums = tree.sums(cell.parents, values, len(spread))
            chains.append([whole, tree.divided(whole, margin, sums, spread, nonnegative)])
    sides = [chain[-1] for chain in chains]
    totals = [side.whole for side in sides]
    agreed = Agreed(_whole(values, variances, cells, totals, nonnegative), values, variances)
    parts = zip(sides, cells, strict=True)
    others = [tree.rest(side, cell.parents, agreed) for side, cell in parts if is_open]
    return CrossedAgreed(chains[0][0] if top else None, sides, agreed, others)


def _cells(tables: Sequence[Table], sides: Sequence[np.ndarray]) -> np.ndarray:
    """Return the cells, the first of the tables, by least squares."""
    from scipy import sparse
    from scipy.sparse.linalg import lsmr

    size, cells = len(tables[0].values), tables[0]
    parents = [np.arange(size), *sides, np.zeros(size, np.int64)]
    weights = [1 / np.sqrt(table.variances) for table in tables]
    scale = np.sqrt(cells.variances)  # of the unknowns: the finest table is the identity then
    entries = [w[rows] * scale for w, rows in zip(weights, parents, strict=True)]
    ends = np.cumsum([0, *(len(table.values) for table in tables)])
    lines = np.concatenate([rows + end for rows, end in zip(parents, ends[:-1], strict=True)])
    shape = int(ends[-1]), size
    places = lines, np.tile(np.arange(size), len(tables))
    matrix = sparse.csr_matrix((np.concatenate(entries), places), shape)
    given = np.concatenate([w * table.within for w, table in zip(weights, tables, strict=True)])
    start = cells.within
    more = lsmr(matrix, given - matrix @ (start / scale), atol=_CLOSE, btol=_CLOSE)[0]
    return np.asarray(start + scale * more)


def _whole(
    values: np.ndarray,
    weights: np.ndarray,
    cells: Sequence[Table],
    totals: Sequence[np.ndarray],
    nonnegative: bool,
) -> np.ndarray:
    """Return whole cells with these margins; with at most these where they are open."""
    is_open = cells[0].is_open
    if is_open and not nonnegative:
        return np.asarray(np.rint(values), np.int64)
    parents = cells[0].parents, cells[1].parents
    prices = [np.zeros(len(total)) for total in totals]
    for _ in range(_STEPS):
        for side, other in ((0, 1), (1, 0)):
            left = values - prices[other][parents[other]] * weights
            found = tree.thresholds(left, weights, parents[side], totals[side], nonnegative)
            prices[side] = np.maximum(found, 0.0) if is_open else found
        fitted = values - (prices[0][parents[0]] + prices[1][parents[1]]) * weights
        fitted = np.maximum(fitted, 0.0) if nonnegative else fitted
        off = tree.sums(parents[0], fitted, len(totals[0])) - totals[0]
        if np.max(off if is_open else np.abs(off), initial=0.0) < _NEAR:
            break
    for parent, total in zip(parents, totals, strict=True):  # no margin is passed then
        size = np.abs(fitted)
        over = np.maximum(tree.sums(parent, fitted, len(total)) - total, 0.0)
        share = over / np.maximum(tree.sums(parent, size, len(total)), _NEAR)
        fitted = fitted - size * np.minimum(share, 1.0)[parent]
    whole = tree.floors(fitted)
    missing = _missing(totals, parents, whole)
    return np.asarray(whole + _units(fitted - whole, parents, missing, is_open))


def _missing(
    totals: Sequence[np.ndarray], parents: Sequence[np.ndarray], whole: np.ndarray
) -> list[np.ndarray]:
    """Return what rows and columns lack."""
    pairs = zip(totals, parents, strict=True)
    return [total - integers.sums_at(parent, whole, len(total)) for total, parent in pairs]


def _units(
    fractions: np.ndarray,
    parents: Sequence[np.ndarray],
    missing: Sequence[np.ndarray],
    is_open: bool,
) -> np.ndarray:
    """Return what to add to cells: as much as is missing; of open tables, what halves may get."""
    from scipy.sparse import csgraph, csr_matrix

    height, width = map(len, missing)
    rows, columns = parents[0], parents[1] + height
    source, sink = height + width, height + width + 1
    sides = np.arange(height), np.arange(height, source)
    tails = np.concatenate([np.full(height, source), rows, columns, sides[1]])
    heads = np.concatenate([sides[0], columns, rows, np.full(width, sink)])
    units = np.zeros(len(fractions), np.int64)
    for least, most in _STAGES[:1] if is_open else _STAGES:
        left = _missing(missing, parents, units)
        room = np.where(fractions >= least, np.maximum(most - units, 0), 0)
        limits = np.concatenate([left[0], room, units, left[1]])
        limits = np.clip(limits, 0, _LARGEST).astype(np.int32)
        graph = csr_matrix((limits, (tails, heads)), (sink + 1, sink + 1))
        flow = csgraph.maximum_flow(graph, source, sink, method="dinic").flow
        units = units + np.asarray(flow[rows, columns], np.int64).ravel()
    return units
