"""The columns that are read from the rows: one record per column, from the metric to the table."""

import dataclasses
import enum
from collections.abc import Iterable
from typing import Any


class Role(enum.Enum):
    """The use of the values of a column. A table holds its columns in this order of roles."""

    VALUE = "numbers, in multiples of a unit"
    OWNER = "ids of a further owner of a row"
    ITEM = "values that are only compared with each other"
    FLAG = "values that are compared with a given one, or judged by a function"
    EPSILON = "a person's own epsilon"


_ORDER = {role: index for index, role in enumerate(Role)}


@dataclasses.dataclass(frozen=True)
class Column:
    """One column of the rows, read in one role. A name may be read in several roles.

    Attributes:
        name: the column's name.
        role: what its values are for.
        detail: for a `VALUE` the unit, for a `FLAG` what it is compared with, for an `EPSILON` the
            public epsilons in rising order; None for the others.
        kind: the type of the detail, so that 1, 1.0 and True are three comparisons.
    """

    name: str
    role: Role
    detail: Any = None
    kind: type = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", type(self.detail))


def table_order(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return each column once, by role, and within a role in the order of the argument."""
    return tuple(sorted(dict.fromkeys(columns), key=lambda column: _ORDER[column.role]))


def with_role(columns: Iterable[Column], *roles: Role) -> tuple[Column, ...]:
    """Return the columns that are read in one of these roles."""
    return tuple(column for column in columns if column.role in roles)
