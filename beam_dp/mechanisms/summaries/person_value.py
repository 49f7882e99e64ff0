"""The person value: one number per person, made of the values of their rows."""

import numpy as np

from beam_dp.mechanisms.numerics import checks, integers

PERSON_VALUES = ("mean", "sum", "max", "min", "last")


def check_person_value(owner: str, kind: object, last_by: object) -> None:
    """Refuse an unknown kind, and "last" without the column that says which row is the last."""
    checks.one_of(owner, "person_value", kind, PERSON_VALUES)
    if last_by is not None:
        checks.column(owner, "last_by", last_by)
    checks.require(
        (kind == "last") == (last_by is not None),
        owner,
        "last_by",
        'be given with person_value="last", and only then',
        'Write person_value="last", last_by="time".',
    )


def of_people(kind: str, items: np.ndarray, counts: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return one integer per person, from the values of their rows.

    Each integer depends on that person's rows alone; a mean is rounded down.

    Args:
        kind: one of `PERSON_VALUES`; for "last", only the items of the last rows are left.
        items: the values, person after person.
        counts: how many rows have each value.
        starts: where the values of each person begin.
    """
    if not len(starts):
        return items
    if kind in ("max", "last"):
        return np.asarray(np.maximum.reduceat(items, starts))
    if kind == "min":
        return np.asarray(np.minimum.reduceat(items, starts))
    sums = integers.segment_sums(integers.product(items, counts), starts)
    if kind == "sum":
        return sums
    return integers.narrow(sums // np.add.reduceat(counts, starts))
