"""Maximum flows, exact in integers of any size, with the source's side of a minimum cut.

The statistics of this package are values of maximum flows. Their sensitivity is exactly 1 because
the flow is exactly a minimum cut (Ford and Fulkerson, 1956): a floating-point linear program, right
to nine digits, would have no such bound.

Nobody has to trust the solver for that. No flow is larger than the capacity of any cut, so a flow
that keeps its capacities, arrives whole, and is as large as one cut is a maximum, and the cut a
minimum. `maximum` checks this of every flow that it returns, in integers. If the check fails, the
solver is at fault: an error is raised then, instead of a wrong number without a bound. The error
says nothing of the data. Without such faults it is never raised, for any data.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.optimization import scipy_loader

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_BITS = 30  # the solver has 32-bit integers, and adds the capacities of opposite arcs
_LOW = (1 << _BITS) - 1


class Flow(NamedTuple):
    """The value of a maximum flow, the nodes that the source reaches beside it, and the flow.

    The reached nodes are the source's side of a minimum cut; `carried` is the flow of every arc.
    """

    value: int
    reached: Flags
    carried: Integers


class _Arcs:
    """Arcs in compressed rows, every arc together with its opposite."""

    def __init__(self, tails: Integers, heads: Integers, nodes: int) -> None:
        both = np.concatenate([tails * nodes + heads, heads * nodes + tails])
        order = np.argsort(both)
        positions = np.empty_like(order)
        positions[order] = np.arange(len(order))
        self.along, self.against = np.split(positions, 2)
        rows, columns = np.divmod(both[order], nodes)
        self.starts = np.searchsorted(rows, np.arange(nodes + 1)).astype(np.int32)
        self.columns = columns.astype(np.int32)
        self.nodes = nodes

    def graph(self, forward: Integers, backward: Integers) -> Any:
        """Return the graph of the residual capacities, those that are 0 included."""
        residual = np.empty(2 * len(forward), np.int64)
        residual[self.along], residual[self.against] = forward, backward
        shape = (self.nodes, self.nodes)
        # No more than 2^30 - 1 is ever missing (see `maximum`), so that is as good as more.
        small = np.minimum(residual, _LOW).astype(np.int32)
        return scipy_loader.matrix((small, self.columns, self.starts), shape)

    def augment(self, forward: Integers, backward: Integers, source: int, sink: int) -> Integers:
        """Return the flow along every arc that fills the residual graph."""
        graph = self.graph(forward, backward)
        flow = scipy_loader.solvers().maximum_flow(graph, source, sink, method="dinic").flow
        return np.asarray(flow.data[self.along], np.int64)


def maximum(
    tails: Integers,
    heads: Integers,
    capacities: Integers,
    nodes: int,
    source: int,
    sink: int,
    *,
    carried: Integers | None = None,
) -> Flow:
    """Return a maximum flow from `source` to `sink`, exactly.

    Capacities beyond 2^30 are halved until they fit; every flow is then doubled again and filled
    up (capacity scaling: Ahuja, Magnanti, Orlin, "Network Flows", 1993, 7.3). After a step of b
    bits at most (number of arcs) * 2^b is missing, because the cut that was full lacks less than
    2^b on each of its arcs: b is chosen so that this stays below 2^30.

    Args:
        tails: the node from 0 to nodes - 1 where each arc starts.
        heads: the node where it ends; no arc may be given twice, or beside its opposite.
        capacities: integers from 0 to 2^62; the value of the flow may be larger.
        nodes: how many nodes there are.
        source: the node that the flow leaves.
        sink: the node that it enters.
        carried: a flow to start from; None: no flow. It helps where no capacity is above 2^30.

    Raises:
        ArithmeticError: for a fault of the solver, see the module.
    """
    arcs = _Arcs(tails, heads, nodes)
    most = int(capacities.max(initial=0))
    shift = max(0, most.bit_length() - _BITS)
    step = max(1, _BITS - 1 - len(tails).bit_length())
    flow = np.zeros(len(tails), np.int64) if shift or carried is None else carried
    flow = flow + arcs.augment((capacities >> shift) - flow, flow, source, sink)
    while shift:
        bits = min(step, shift)
        shift -= bits
        flow <<= bits
        flow += arcs.augment((capacities >> shift) - flow, flow, source, sink)
    graph = arcs.graph(capacities - flow, flow)
    graph.eliminate_zeros()
    reached = np.zeros(nodes, np.bool_)
    order = scipy_loader.solvers().breadth_first_order(graph, source, return_predecessors=False)
    reached[order] = True
    value = _sum(flow[tails == source]) - _sum(flow[heads == source])
    fills = value == _sum(capacities[reached[tails] & ~reached[heads]]) and not reached[sink]
    if not (fills and _is_flow(tails, heads, capacities, flow, (source, sink))):
        raise ArithmeticError(
            "flow.maximum: a flow does not fill its cut: a fault of the graph solver (scipy). "
            "Nothing is released. Install another version of scipy."
        )
    return Flow(value, reached, flow)


def _is_flow(
    tails: Integers, heads: Integers, capacities: Integers, flow: Integers, ends: tuple[int, int]
) -> bool:
    """Return whether a flow keeps the capacities, and is conserved in every node but `ends`."""
    kept = bool(((flow >= 0) & (flow <= capacities)).all())
    nodes = max(int(tails.max(initial=0)), int(heads.max(initial=0)), *ends) + 1
    high, low = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    for ends_of_arcs, sign in ((tails, 1), (heads, -1)):
        np.add.at(high, ends_of_arcs, sign * (flow >> _BITS))
        np.add.at(low, ends_of_arcs, sign * (flow & _LOW))
    # High and low parts are summed apart: sums of whole flows may not fit in 64 bits.
    stays = (high + (low >> _BITS) != 0) | (low & _LOW != 0)
    stays[[*ends]] = False
    return kept and not stays.any()


def _sum(numbers: Integers) -> int:
    """Return the exact sum, also beyond 64 bits."""
    high, low = numbers >> _BITS, numbers & _LOW
    return (int(high.sum()) << _BITS) + int(low.sum())
