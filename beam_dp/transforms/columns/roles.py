"""Read the values of a column by its role: as units, codes, flags, orders or tiers."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa

from beam_dp.mechanisms.bounding.columns import Column, Role
from beam_dp.transforms.columns import (
    compared_values,
    fixed_point,
    ids,
    row_order,
)

_EPSILON = Fraction(1, 1_000_000)  # people's epsilons are compared to a millionth
_RULES = {
    Role.VALUE: (fixed_point.supported, "numbers"),
    Role.OWNER: (
        ids.supported,
        "integers, text, dates or booleans to identify people or partitions",
    ),
    Role.ITEM: (compared_values.supported, "numbers, text, dates or booleans to be compared"),
    Role.FLAG: (compared_values.supported, "numbers, text, dates or booleans to be compared"),
    Role.ORDER: (
        row_order.supported,
        "numbers, dates or timestamps to say which row is the last",
    ),
    Role.EPSILON: (fixed_point.supported, "numbers"),
}
"""For each role, which Arrow types a column may have, and this rule in words."""


def check_type(name: str, role: Role, kind: pa.DataType) -> None:
    """Refuse an Arrow type that does not fit a column of this role.

    Raises:
        TypeError: names the column and its type, which are not data.
    """
    fits, rule = _RULES[role]
    if not fits(kind):
        raise TypeError(
            f"column {name!r} must hold {rule}, not {kind}. Cast it before this transform."
        )


def from_arrow(column: Column, values: pa.Array, key: bytes) -> np.ndarray:
    """Return an Arrow column as exact numbers, codes, or flags.

    Args:
        column: its role.
        values: of a type that `check_type` allows.
        key: the run's key.
    """
    match column.role:
        case Role.VALUE:
            return fixed_point.to_units(values, column.detail)
        case Role.ORDER:
            return row_order.ranks(values)
        case Role.EPSILON:
            return _tiers(fixed_point.to_units(values, _EPSILON), column.detail)
        case Role.FLAG if callable(column.detail):
            return compared_values.judged_column(values, column.detail)
        case Role.OWNER:
            return compared_values.coded(*ids.identify(values, key), key)
    codes = compared_values.codes(values, key)
    return compared_values.equal(codes, column.detail, key) if _is_flag(column) else codes


def from_values(column: Column, values: list[object], key: bytes) -> np.ndarray:
    """Return Python values as exact numbers, codes, or flags; arguments as in `from_arrow`."""
    match column.role:
        case Role.VALUE:
            return fixed_point.values_to_units(values, column.detail)
        case Role.ORDER:
            return row_order.ranks_of_values(values)
        case Role.EPSILON:
            return _tiers(fixed_point.values_to_units(values, _EPSILON), column.detail)
        case Role.FLAG if callable(column.detail):
            return compared_values.judged(values, column.detail)
        case Role.OWNER:
            return compared_values.coded(*ids.identify_values(values, key), key)
    codes = compared_values.codes_of_values(values, key)
    return compared_values.equal(codes, column.detail, key) if _is_flag(column) else codes


def _tiers(units: np.ndarray, epsilons: Sequence[Fraction]) -> np.ndarray:
    """Return the index of each epsilon among the public ones, in rising order; -1 for others."""
    known = np.array([int(epsilon / _EPSILON) for epsilon in epsilons], object)
    nearest = np.minimum(np.searchsorted(known, units), len(known) - 1)
    return np.where(np.asarray(known[nearest] == units, bool), nearest, -1)


def _is_flag(column: Column) -> bool:
    return column.role is Role.FLAG
