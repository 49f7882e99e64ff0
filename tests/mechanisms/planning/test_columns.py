"""Which columns a program reads: those of all metrics, once, and further owners'."""

from fractions import Fraction

import pytest

import beam_dp as dp
from beam_dp.mechanisms.bounding.columns import Column, Role
from beam_dp.mechanisms.planning.builder import columns_of

UNIT = Fraction(1, 10**6)


def test_each_column_is_read_once_in_each_of_its_roles() -> None:
    asked = [
        dp.Ratio("x", per="person"),
        dp.DistinctCount("x"),
        dp.TrimmedMean("y", person_value="last", last_by="when"),
        dp.Sum("x"),
        dp.Max("x"),
        dp.Count(),
        dp.Ratio("x", equals=1.0, per="person", name="of_floats"),
    ]
    assert columns_of(asked) == (
        Column("y", Role.VALUE, UNIT),
        Column("x", Role.VALUE, UNIT),
        Column("x", Role.ITEM),
        Column("x", Role.FLAG, 1),
        Column("x", Role.FLAG, 1.0),
        Column("when", Role.ORDER),
    )


def test_an_owner_stands_apart_even_where_it_is_compared_too() -> None:
    asked = [dp.DistinctCount("to", one_sided=True), dp.Sum("x")]
    assert columns_of(asked, ["to", "by"]) == (
        Column("x", Role.VALUE, UNIT),
        Column("to", Role.OWNER),
        Column("by", Role.OWNER),
        Column("to", Role.ITEM),
    )
    assert columns_of([dp.Count()], ["to"]) == (Column("to", Role.OWNER),)


def test_two_units_of_one_column_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^Min: unit must be the same .* not both 1e-06 and 0\.5"):
        columns_of([dp.Sum("x"), dp.Sum("y", unit=1), dp.Min("x", unit=0.5)])
    same = [dp.Sum("x", unit=0.5), dp.Max("x", unit=Fraction(1, 2))]
    assert columns_of(same) == (Column("x", Role.VALUE, Fraction(1, 2)),)
