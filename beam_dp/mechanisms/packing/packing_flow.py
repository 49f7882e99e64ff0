"""A solution of the program of `packing_program` where every row has one owner: a maximum flow.

A unit flows from its person, who has room for D, over a row to its value, which has room for w_v.
What flows is packed, and the people whom the residual graph does not reach are removed: the others
are the source's side of a minimum cut (Ford and Fulkerson, 1956). Both are whole numbers of 1 / q,
for a price D of denominator q. Nobody has to trust the solver: the bounds are those of any guess,
and meet where the flow is a maximum.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any

import numpy as np

from beam_dp.mechanisms.packing.packing_program import Packing, PackingBounds

_MOST = 1 << 30  # the solver has integers of 32 bits, and adds those of opposite arcs


@functools.cache
def _sparse() -> Any:
    """Return `scipy.sparse`, which takes a third of a second to load, and is not always needed."""
    import scipy.sparse.csgraph

    return scipy.sparse


def bounds(packing: Packing) -> PackingBounds | None:
    """Return what a flow proves; None where its numbers are too large for the solver.

    Args:
        packing: of one owner per row, who has no other row of the same value.
    """
    price, parts = packing.price.as_integer_ratio()
    people, values, owner = packing.people, len(packing.weights), packing.owners[:, 0]
    if max(price, int(packing.weights.max()) * parts) > _MOST:
        return None
    rooms, value = packing.weights * parts, people + packing.values
    source, sink = people + values, people + values + 1
    persons, ends = np.arange(people), people + np.arange(values)
    tails = np.concatenate([np.full(people, source), owner, ends])
    heads = np.concatenate([persons, value, np.full(values, sink)])
    most = np.minimum(rooms, price)[packing.values]
    limits = np.concatenate([np.full(people, price), most, rooms]).astype(np.int32)
    graph = _sparse().csr_matrix((limits, (tails, heads)), (sink + 1, sink + 1))
    flow = _sparse().csgraph.maximum_flow(graph, source, sink, method="dinic").flow
    packed = np.asarray(flow[owner, value], np.int64).ravel()
    left = graph - flow
    left.eliminate_zeros()
    reached = _sparse().csgraph.breadth_first_order(left, source, return_predecessors=False)
    removed = np.ones(sink + 1, bool)
    removed[reached] = False
    return _proved(packing, packed, removed[:people], rooms)


def _proved(
    packing: Packing, packed: np.ndarray, removed: np.ndarray, rooms: np.ndarray
) -> PackingBounds | None:
    """Return the bounds of a flow and a removal; None if it is no flow, by a fault of the solver.

    Args:
        packing: the program.
        packed: u of each row, times q.
        removed: whether each person is removed.
        rooms: w_v times q.
    """
    price, owner = packing.price.numerator, packing.owners[:, 0]
    loads, sums = packing.loads(packed), packing.sums(packed)
    if (packed < 0).any() or (loads > price).any() or (sums > rooms).any():
        return None
    stays = packing.stays(removed[owner]) == 0
    kept = np.minimum(rooms, packing.lengths * price)[stays]
    gone = int(np.count_nonzero(removed))
    return PackingBounds(
        Fraction(int(packed.sum()), price),
        Fraction(int(kept.sum()), price) + gone,
        Fraction(int(packing.weights[stays].sum())),
        Fraction(gone),
    )
