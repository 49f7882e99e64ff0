"""A largest flow of whole numbers, from sources over edges to sinks (Ford and Fulkerson, 1956)."""

import numpy as np

_MOST = (1 << 30) - 1  # the solver has integers of 32 bits, and adds those of opposite arcs


def largest_flow(
    edges: tuple[np.ndarray, np.ndarray], room: np.ndarray, sources: np.ndarray, sinks: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return what flows over each edge, and which sources the residual graph does not reach.

    It is a largest flow where no number is too large for the solver; larger ones are cut.

    Args:
        edges: the source and the sink of each, by their indexes; each pair once.
        room: how much may flow over each edge, whole numbers.
        sources: how much each source has.
        sinks: how much each sink takes.
    """
    from scipy.sparse import csgraph, csr_matrix

    start = len(sources) + len(sinks)
    tails, heads = edges[0], edges[1] + len(sources)
    every = np.arange(start)
    starts = np.concatenate([np.full(len(sources), start), tails, every[len(sources) :]])
    ends = np.concatenate([every[: len(sources)], heads, np.full(len(sinks), start + 1)])
    limits = np.clip(np.concatenate([sources, room, sinks]), 0, _MOST).astype(np.int32)
    graph = csr_matrix((limits, (starts, ends)), (start + 2, start + 2))
    flow = csgraph.maximum_flow(graph, start, start + 1, method="dinic").flow
    left = graph - flow
    left.eliminate_zeros()
    reached = csgraph.breadth_first_order(left, start, return_predecessors=False)
    missed = np.ones(start + 2, bool)
    missed[reached] = False
    return np.asarray(flow[tails, heads], np.int64).ravel(), missed[: len(sources)]
