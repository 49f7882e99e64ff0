"""Where the parts of a program find their data: columns, fields, units and outputs by place.

Behind the value columns stand those whose values are only compared (that of a second owner first),
then those that are compared with a given value, then those that say which row is the last, and at
the end that of people's own epsilons.
"""

from fractions import Fraction
from typing import Any

from beam_dp.mechanisms.bounding.table import Field
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.defaults import default_candidates
from beam_dp.mechanisms.planning.parts import Part
from beam_dp.mechanisms.summaries.histograms import PEOPLE, ROWS

OF_ITEMS = ("distinct", "frequency", "squares", "pairs")
"""Kinds of parts whose values are only compared."""
_OPERATIONS = {"valid": "count"}


class Places:
    """The places of all columns, and the fields that the parts have asked for so far.

    Args:
        units: the value columns, each with its grid.
        items: the columns whose values are only compared; that of a second owner is the first.
        flags: the columns that are compared with a given value, and that value.
        orders: the columns that say which of a person's rows is the last.
        two_owners: whether rows have two owners.
    """

    def __init__(
        self,
        units: dict[str, Fraction],
        items: tuple[str, ...] = (),
        flags: tuple[tuple[str, Any], ...] = (),
        orders: tuple[str, ...] = (),
        two_owners: bool = False,
    ) -> None:
        self.units, self.items, self.flags, self.orders = units, items, flags, orders
        self.second = len(units) if two_owners else -1
        self.fields: list[Field] = []

    def source(self, part: Part) -> int:
        """Return where the part's number per person and partition is found."""
        if part.kind in ("people", "rows"):
            return PEOPLE if part.kind == "people" else ROWS
        return self.field(self.column(part), _OPERATIONS.get(part.kind, part.kind))

    def field(self, column: int, operation: str) -> int:
        """Return the place of a field, which is collected from now on."""
        field = Field(column, operation)
        if field not in self.fields:
            self.fields.append(field)
        return self.fields.index(field)

    def column(self, part: Part) -> int:
        """Return the place of the part's column among values and items."""
        if part.kind not in OF_ITEMS:
            return list(self.units).index(part.column)
        items = self.items[self.second >= 0 :]
        return len(self.units) + len(self.items) - len(items) + items.index(part.column)

    def flag(self, part: Part, equals: object) -> int:
        """Return the place of the part's column where it is compared with this value."""
        known = [(name, type(value), value) for name, value in self.flags]
        place = known.index((part.column, type(equals), equals))
        return len(self.units) + len(self.items) + place

    def order(self, last_by: str | None) -> int:
        """Return the place of the column that says which row is the last; -1: none."""
        return -1 if last_by is None else self._behind + self.orders.index(last_by)

    @property
    def tier(self) -> int:
        """The place of people's own epsilons."""
        return self._behind + len(self.orders)

    @property
    def _behind(self) -> int:
        return len(self.units) + len(self.items) + len(self.flags)

    def unit(self, part: Part) -> Fraction:
        """Return what one unit of the part is worth."""
        counts = part.kind in ("people", "rows", "valid", *OF_ITEMS)
        return Fraction(1) if counts else self.units[part.column]

    def candidates(self, part: Part) -> Candidates:
        """Return the outputs of a search, in the order of the profile: mirrored for a minimum."""
        given = part.options.candidates
        found = default_candidates(part.kind, self.unit(part)) if given is None else given
        return found.mirrored() if part.kind == "min" else found
