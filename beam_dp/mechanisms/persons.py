"""One number per person: what the values of a person's rows become."""

import numpy as np

from beam_dp.mechanisms import exact

PERSON_VALUES = ("mean", "sum", "max", "min")


def of_people(kind: str, items: np.ndarray, counts: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return one integer per person, from the values of their rows.

    Each is a function of that person's rows alone; a mean is rounded down.

    Args:
        kind: one of `PERSON_VALUES`.
        items: the values, person after person.
        counts: how many rows have each.
        starts: where each person begins.
    """
    if not len(starts):
        return items
    if kind == "max":
        return np.asarray(np.maximum.reduceat(items, starts))
    if kind == "min":
        return np.asarray(np.minimum.reduceat(items, starts))
    sums = exact.segment_sums(exact.product(items, counts), starts)
    if kind == "sum":
        return sums
    return exact.narrow(sums // np.add.reduceat(counts, starts))
