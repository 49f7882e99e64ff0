"""Maximum flows from people to what they own, on as few of the pairs as show that they are maximal.

A person i sends at most `room[i]`, an item takes at most `weights[j]`, a pair carries any amount. A
flow on some of the pairs is one on all of them. It is maximal there if no left-out pair leads from
a person whom the source reaches in the residual graph to an item that it does not: then the reached
nodes are a cut of the whole graph that the flow fills (Ford and Fulkerson, 1956). Otherwise the
pairs that lead across are added, and the flow goes on from where it is, with all pairs in the end.
Where items have dozens of owners a few of them mostly do: two or three rounds, with a fifth of the
pairs.
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
        items: its item, 0..len(weights)-1.
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
        one, other = people[chosen], items[chosen]
        carried = np.concatenate([carried, np.zeros(nodes - 2 + len(chosen) - len(carried), int)])
        found = maximum_flow.maximum(
            np.concatenate([tails, one]),
            np.concatenate([heads, count + other]),
            np.concatenate([limits, np.minimum(room[one], weights[other])]),
            nodes,
            nodes - 2,
            nodes - 1,
            carried,
        )
        across = found.reached[people] & ~found.reached[count + items] & ~used
        if not across.any():
            break
        added = np.flatnonzero(across if turn < _PATIENCE else ~used)
        used[added] = True
        chosen, carried = np.concatenate([chosen, added]), found.carried
    return Flow(found.value, found.reached[:count], found.carried)


def _first(room: Integers, weights: Integers, people: Integers, items: Integers) -> Flags:
    """Return which pairs to begin with: about `_EACH` per item, and per unit of a person's room.

    Any choice gives the same result.
    """
    place = (np.arange(len(people), dtype=np.uint64) * np.uint64(_GOLDEN)) & np.uint64(0xFFFFFFFF)
    coin = place.astype(np.float64) / 2.0**32
    unit = float(weights.mean())
    owned = np.bincount(people, minlength=len(room))
    owners = np.bincount(items, minlength=len(weights))
    per_person = _EACH * (1 + room / unit) / np.maximum(owned, 1)
    per_item = _EACH / np.maximum(owners, 1)
    return np.asarray(coin < np.maximum(per_person[people], per_item[items]))
