"""Nodes: what people weigh at each candidate, in integers."""

import numpy as np

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.search.quantiles.node import RESOLUTION, Node, increments


def whole(buckets, candidates: Candidates, resolution: int = 1) -> Node:
    """Return people with one row each."""
    amounts = np.full(len(buckets), resolution)
    return Node.of(np.array(buckets, np.int64), amounts, candidates.size)


def chosen(search, node: Node, candidates: Candidates):
    """Return one candidate, NaN for none."""
    return search.choose_at(node, candidates, Noise()).value(candidates)


def brute(people, buckets, counts, resolution: int, clip: int, n: int) -> list[int]:
    """Return the sum of the rounded weights at every candidate."""
    sums = [0] * n
    for person in set(people.tolist()):
        mine = people == person
        total = max(int(counts[mine].sum()), clip)
        for y in range(n):
            sums[y] += resolution * int(counts[mine & (buckets <= y)].sum()) // total
    return sums


def test_increments_add_up_to_the_weights_of_all_people():
    random = np.random.default_rng(5)
    for _ in range(100):
        size = int(random.integers(1, 30))
        people, buckets = random.integers(0, 6, size), random.integers(0, 9, size)
        counts = random.integers(1, 40, size)
        resolution = int(random.choice([1, 7, RESOLUTION, 2**61]))
        clip = int(random.choice([1, 1, 2, 8, 64]))
        shard = random.integers(0, 3, 6)[people]  # every person in one shard
        parts = [
            increments(
                *(column[shard == s] for column in (people, buckets, counts)), resolution, clip
            )
            for s in range(3)
        ]
        joined = [np.concatenate([part[i] for part in parts]) for i in (0, 1)]
        order = random.permutation(len(joined[0]))
        node = Node.of(joined[0][order], joined[1][order], 9)
        found = [int(sum(node.amounts[node.buckets <= y].tolist())) for y in range(9)]
        assert found == brute(people, buckets, counts, resolution, clip, 9)
        assert clip > 1 or found[-1] == resolution * len(set(people.tolist()))


def test_nobody_and_several_amounts_at_a_place():
    empty = np.empty(0, np.int64)
    assert Node.of(*increments(empty, empty, empty), 5).sums.tolist() == [0]
    node = Node.of(np.array([3, 1, 3, 9]), np.array([1, 2, 4, 8]), 7)
    # What is above the last candidate counts there.
    assert node.buckets.tolist() == [1, 3, 6] and node.amounts.tolist() == [2, 5, 8]


def test_a_node_is_split_at_a_candidate_without_the_people_there():
    node = Node.of(np.array([2, 4, 9]), np.array([3, 2, 5]), 8)
    assert node.around(4) == (3, 2, 5) and node.around(3) == (3, 0, 7)
    below, above = node.split(4, 6, 1)
    assert (below.buckets.tolist(), below.amounts.tolist()) == ([2, 4], [3, 6])
    assert (below.first, below.stop, above.first, above.stop) == (0, 5, 4, 8)
    assert (above.buckets.tolist(), above.sums.tolist()) == ([4, 7], [0, 1, 6])
    below, above = node.split(3)
    assert (below.buckets.tolist(), below.amounts.tolist()) == ([2, 3], [3, 0])
    assert (above.buckets.tolist(), above.sums.tolist()) == ([3, 4, 7], [0, 0, 2, 7])
