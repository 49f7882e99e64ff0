"""Tables of a x b cells agree with both margins and the total.

*Least squares.* The cells x minimise the sum of (y - sum of its cells)^2 / v over the numbers of
all tables, where a number of the finest table has one cell. It is sparse, and solved by LSMR (Fong
and Saunders 2011). Where the numbers of a table are equally uncertain, there are four singular
values, so four steps are enough. v is N + R R' (see `tree`), R' of the whole table, as a cell has
more than one parent: so the sum of a table has the variance that it has there.

*Not negative.* The total becomes whole, then both margins (`tree`). The nearest cells that are at
least 0 and have these margins are max(0, x - (a_i + b_j) w), by Karush, Kuhn and Tucker. The a of
given b, and the b of given a, are those of a tree; in turns they ascend the dual problem to its
maximum (coordinate ascent: Tseng 1993; the same as Dykstra's projections).

*Whole.* Cells are rounded down, and what a row and a column miss flows from rows to columns over
cells, one unit each: a flow over fractions that misses nothing exists, so a flow of whole units
does (Ford and Fulkerson 1956). It is sought over fractions of at least 1/2 first, then augmented.
If the ascent has not ended, more may be missing: it is put where its row meets its column, when
both are laid out one after the other (the north-west corner rule).

*What is not listed.* Where cells are not listed, each table is estimated apart, and each row of a
margin, and the total on each side, has a row (other). The cells are at most the margins.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.consistency import tree
from beam_dp.mechanisms.consistency.tables import UNKNOWN, Agreed, ReleasedTable
from beam_dp.mechanisms.numerics import integers

_STEPS, _NEAR = 100, 0.01  # of the ascent: margins are off by less than that when it ends
_CLOSE, _MOST_STEPS = 1e-10, 300  # of least squares: 4 to 30 steps where losses are as sizes are
_LARGEST = (1 << 30) - 1  # the solver of flows has integers of 32 bits
_HALF = 0.5


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
    total: ReleasedTable | None, margins: Sequence[ReleasedTable], cells: Sequence[ReleasedTable]
) -> CrossedAgreed:
    """Return what crossed tables agree on.

    Every margin is the sum of its cells, with its (other), and the total that of each margin.

    Args:
        total: one row; None where it was not released.
        margins: rows, and columns: the parts of the total, all of them open or none.
        cells: the same numbers twice: as parts of rows, and of columns. If they are not open, there
            is one for each pair, and everything is listed.
    """
    top = [] if total is None else [total]
    if is_open := cells[0].is_open:
        chains = [tree.agree([*top, margin]) for margin in margins]
        values = cells[0].known
    else:
        zero = np.zeros(1)
        known = total or margins[0]._replace(values=zero, below=zero, above=zero, deviation=UNKNOWN)
        values = _cells([cells[0], *margins, known], [cell.parents for cell in cells])
        whole = tree.nearest(known, values.sum(keepdims=True))
        chains = [[Agreed.of(known, whole)] for _ in margins]
        for chain, margin, cell in zip(chains, margins, cells, strict=True):
            side = tree.sums(cell.parents, values, len(margin.values))
            chain.append(tree.below(known, whole, margin, side, _weights(margin)))
    sides = [chain[-1] for chain in chains]
    totals = [side.whole for side in sides]
    agreed = Agreed.of(cells[0], _whole(values, cells, totals))
    parts = zip(margins, totals, cells, strict=True)
    others = [tree.rest(*each, agreed.whole) for each in parts if is_open]
    return CrossedAgreed(chains[0][0] if top else None, sides, agreed, others)


def _weights(table: ReleasedTable) -> np.ndarray:
    """Return v of each row."""
    return np.asarray(table.deviation**2 + table.loss * table.loss.sum())


def _cells(tables: Sequence[ReleasedTable], sides: Sequence[np.ndarray]) -> np.ndarray:
    """Return the cells, the first of the tables, by least squares."""
    from scipy import sparse
    from scipy.sparse.linalg import lsmr

    size, cells = len(tables[0].values), tables[0]
    parents = [np.arange(size), *sides, np.zeros(size, np.int64)]
    weights = [1 / np.sqrt(_weights(table)) for table in tables]
    scale = 1 / weights[0]  # of the unknowns: the finest table is the identity then
    entries = [w[rows] * scale for w, rows in zip(weights, parents, strict=True)]
    ends = np.cumsum([0, *(len(table.values) for table in tables)])
    lines = np.concatenate([rows + end for rows, end in zip(parents, ends[:-1], strict=True)])
    shape = int(ends[-1]), size
    places = lines, np.tile(np.arange(size), len(tables))
    matrix = sparse.csr_matrix((np.concatenate(entries), places), shape)
    given = np.concatenate([w * table.known for w, table in zip(weights, tables, strict=True)])
    start = cells.known
    more = lsmr(
        matrix, given - matrix @ (start / scale), atol=_CLOSE, btol=_CLOSE, maxiter=_MOST_STEPS
    )[0]
    return np.asarray(start + scale * more)


def _whole(
    values: np.ndarray, cells: Sequence[ReleasedTable], totals: Sequence[np.ndarray]
) -> np.ndarray:
    """Return whole cells with these margins; with at most these where they are open."""
    table, weights = cells[0], _weights(cells[0])
    if table.is_open and not table.nonnegative:
        return tree.nearest(table, values)
    parents = [cell.parents for cell in cells]
    shifts = [np.zeros(len(values))] * 2
    for _ in range(_STEPS):
        for side in (0, 1):
            left = values - shifts[1 - side]
            prices = tree.thresholds(cells[side], left, weights, totals[side])
            shifts[side] = prices[parents[side]] * weights
        fitted = values - shifts[0] - shifts[1]
        fitted = np.maximum(fitted, 0.0) if table.nonnegative else fitted
        off = tree.sums(parents[0], fitted, len(totals[0])) - totals[0]
        if np.max(off if table.is_open else np.abs(off), initial=0.0) < _NEAR:
            break
    for parent, total in zip(parents, totals, strict=True):
        fitted = tree.lowered(fitted, parent, total)
    whole = np.floor(fitted).astype(np.int64)
    missing = _missing(totals, parents, whole)
    whole = whole + _units(fitted - whole, parents, missing, table.is_open)
    if table.is_open:
        return np.asarray(whole)
    return np.asarray(whole + _left(parents, _missing(totals, parents, whole)))


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
    """Return 0 or 1 per cell, as many as fit: a largest flow; of open tables for halves only."""
    from scipy.sparse import csgraph, csr_matrix

    height, width = map(len, missing)
    rows, columns = parents[0], parents[1] + height
    source, sink = height + width, height + width + 1
    sides = np.arange(height), np.arange(height, source)
    tails = np.concatenate([np.full(height, source), rows, columns, sides[1]])
    heads = np.concatenate([sides[0], columns, rows, np.full(width, sink)])
    units = np.zeros(len(fractions), np.int64)
    if not len(units):
        return units
    for least in (_HALF,) if is_open else (_HALF, 0.0):
        left = _missing(missing, parents, units)
        room = (fractions >= least) & (units == 0)
        limits = np.concatenate([left[0], room, units, left[1]])
        limits = np.minimum(limits, _LARGEST).astype(np.int32)
        graph = csr_matrix((limits, (tails, heads)), (sink + 1, sink + 1))
        flow = csgraph.maximum_flow(graph, source, sink, method="dinic").flow
        units = units + np.asarray(flow[rows, columns], np.int64).ravel()
    return units


def _left(parents: Sequence[np.ndarray], missing: Sequence[np.ndarray]) -> np.ndarray:
    """Return what to add to cells, of which there is one per pair, so that nothing is missing."""
    ends = [np.cumsum(each) for each in missing]
    cuts = np.union1d(*ends)
    row, column = (np.searchsorted(end, cuts) for end in ends)
    cell = np.lexsort((parents[1], parents[0]))[row * len(missing[1]) + column]
    more = np.zeros(len(parents[0]), np.int64)
    np.add.at(more, cell, np.diff(cuts, prepend=0))
    return more
