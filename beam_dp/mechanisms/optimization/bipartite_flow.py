"""Maximum flows from people to their items, computed on as few (person, item) pairs as prove them.

A person i sends at most `room[i]`, an item takes at most `weights[j]`, a pair carries any amount. A
flow on some of the pairs is a flow on all of them. It is maximal there if no left-out pair leads
from a person whom the source reaches in the residual graph to an item that the source does not
reach: then the reached nodes are a cut of the whole graph that the flow fills (Ford and Fulkerson,
1956). Otherwise the pairs that lead across are added, and the next round starts from this flow; the
last round has all pairs. Where items have dozens of owners, a few owners per item mostly suffice:
two or three rounds, with a fifth of the pairs.
"""

import itertools

import numpy as np

from beam_dp.mechanisms.optimization import maximum_flow
from beam_dp.mechanisms.optimization.maximum_flow import Flags, Flow, Integers

_EACH = 4  # pairs per item, and per unit of room of a person, that the first flow may use
_PATIENCE = 12  # rounds; the next one has all pairs
_GOLDEN = 0x9E3779B1  # multiples of it are spread evenly over the numbers of 32 bits


def maximum(room: Integers, weights: Integers, people: Integers, items: Integers) -> Flow:
    """Return the value of a maximum flow, exactly, and which people the source still reaches.

    Args:
        room: the capacity of each person, at least 0.
        weights: the capacity of each item, above 0.
        people: the person of each pair, 0..len(room)-1.
        items: the item of each pair, 0..len(weights)-1.
    """
    used = _first(room, weights, people, items)
    chosen = np.flatnonzero(used)
    count, nodes = len(room), len(room) + len(weights) + 2
    ends = np.arange(nodes - 2)
    tails = np.where(ends < count, nodes - 2, ends)
    heads = np.where(ends < count, ends, nodes - 1)
    limits = np.concatenate([room, weights])
    carried = np.zeros(nodes - 2, np.int64)
    for turn in itertools.count(1):
        owner, item = people[chosen], items[chosen]
        carried = np.concatenate([carried, np.zeros(nodes - 2 + len(chosen) - len(carried), int)])
        flow = maximum_flow.maximum(
            np.concatenate([tails, owner]),
            np.concatenate([heads, count + item]),
            np.concatenate([limits, np.minimum(room[owner], weights[item])]),
            nodes,
            nodes - 2,
            nodes - 1,
            carried=carried,
        )
        across = flow.reached[people] & ~flow.reached[count + items] & ~used
        if not across.any():
            break
        added = np.flatnonzero(across if turn < _PATIENCE else ~used)
        used[added] = True
        chosen, carried = np.concatenate([chosen, added]), flow.carried
    return Flow(flow.value, flow.reached[:count], flow.carried)


def _first(room: Integers, weights: Integers, people: Integers, items: Integers) -> Flags:
    """Return which pairs to begin with: about `_EACH` per item, and per unit of a person's room.

    The result of `maximum` is the same for any choice.
    """
    spread = (np.arange(len(people), dtype=np.uint64) * np.uint64(_GOLDEN)) & np.uint64(0xFFFFFFFF)
    coin = spread.astype(np.float64) / 2.0**32
    unit = float(weights.mean())
    owned = np.bincount(people, minlength=len(room))
    owners = np.bincount(items, minlength=len(weights))
    per_person = _EACH * (1 + room / unit) / np.maximum(owned, 1)
    per_item = _EACH / np.maximum(owners, 1)
    return np.asarray(coin < np.maximum(per_person[people], per_item[items]))
