"""The ladder 1, 2, 3, 4, 6, 8, ..., 1024, and how many people stand on each of its steps.

A person with rows in k partitions stands on one step: the lowest edge that is at least k; who has
more than the last edge stands on the last. k is counted after rows of partitions that are not
public were dropped, from this person's rows alone. So adding or removing one person changes one
count of the ladder by 1 and no other count: the sensitivity is 1 in L1 and in L2, whatever the
number of steps and however many rows or partitions the person has.
"""

import numpy as np

from beam_dp.mechanisms.bounding.ordering import changes
from beam_dp.mechanisms.bounding.table import Table

LADDER = (1, *(edge for power in range(1, 10) for edge in (2**power, 3 * 2 ** (power - 1))), 1024)
"""1, 2, 3, 4, 6, 8, 12, ..., 768, 1024: two steps per octave."""


def edges_up_to(limit: int | None) -> tuple[int, ...]:
    """Return the steps of the ladder where nobody can have more than `limit` partitions.

    Args:
        limit: a public number, at least 1; it is the last step if it is below 1024. None: unknown.
    """
    last = min(LADDER[-1], limit or LADDER[-1])
    return (*(edge for edge in LADDER if edge < last), last)


def people_per_step(reaches: np.ndarray, edges: tuple[int, ...]) -> np.ndarray:
    """Return how many people stand on each step.

    Args:
        reaches: the number of partitions of each person, at least 1.
        edges: the steps.
    """
    steps = np.searchsorted(edges, np.minimum(reaches, edges[-1]))
    return np.bincount(steps, minlength=len(edges)).astype(np.int64)


def reaches_of(table: Table) -> np.ndarray:
    """Return the number of partitions of each person of a reduced table.

    Args:
        table: holds every pair of its people, the lines of a person and of a pair together, as
            `Bounder.reduce` returns them. Pairs beyond the last step may be missing.
    """
    if not len(table):
        return np.zeros(0, np.int64)
    new_person = changes(table.person)
    pairs = np.cumsum(new_person | changes(table.partition))
    before = pairs[new_person] - 1
    return np.asarray(np.diff(before, append=pairs[-1]), np.int64)
