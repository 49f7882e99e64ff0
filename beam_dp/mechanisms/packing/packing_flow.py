"""A guess for a program in which each row has one owner: a maximum flow.

A unit flows from its person, who has room for the price, over a row to its value, which has room
for its weight. What flows is packed, and the people whom the residual graph does not reach are
removed: the others are the source's side of a minimum cut (Ford and Fulkerson, 1956). Nobody has to
trust the solver: the bounds are those of any guess, and meet where the flow is a maximum.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from beam_dp.mechanisms.packing.packing_program import Packing

_MOST = 1 << 30  # the solver has integers of 32 bits, and adds those of opposite arcs


@functools.cache
def _sparse() -> Any:
    """Return `scipy.sparse`, which takes a third of a second to load, and is not always needed."""
    import scipy.sparse.csgraph

    return scipy.sparse


def guess(packing: Packing) -> tuple[np.ndarray, np.ndarray] | None:
    """Return x and r, whole numbers; None where numbers are too large for the solver.

    Args:
        packing: a flow, whose columns are different.
    """
    if max(packing.rooms.tolist()) > _MOST:
        return None
    size, people, rows = len(packing.rooms), packing.people, len(packing.most)
    source, sink = size, size + 1
    ends = np.empty((2, rows), np.int64)
    of_value = packing.lines >= people
    ends[of_value.astype(int), packing.columns] = packing.lines
    owner, value = ends
    tails = np.concatenate([np.full(people, source), owner, np.arange(people, size)])
    heads = np.concatenate([np.arange(people), value, np.full(size - people, sink)])
    rooms = packing.rooms
    limits = np.concatenate([rooms[:people], packing.most, rooms[people:]]).astype(np.int32)
    graph = _sparse().csr_matrix((limits, (tails, heads)), (size + 2, size + 2))
    flow = _sparse().csgraph.maximum_flow(graph, source, sink, method="dinic").flow
    left = graph - flow
    left.eliminate_zeros()
    reached = _sparse().csgraph.breadth_first_order(left, source, return_predecessors=False)
    removed = np.ones(size + 2, np.int64)
    removed[reached] = 0
    return np.asarray(flow[owner, value], np.int64).ravel(), removed[:people]
