"""What the pipeline fixes for every release: columns by index, fields once, shares by partition."""

from fractions import Fraction

import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.columns import Column, Role
from beam_dp.mechanisms.bounding.table import Field
from beam_dp.mechanisms.metrics.base import Context
from beam_dp.mechanisms.metrics.mean import Distances, RowsWithValue
from beam_dp.mechanisms.metrics.totals import PeopleCount
from beam_dp.mechanisms.summaries.worker_limits import REMOVALS

X, Y = Column("x", Role.VALUE, Fraction(1, 4)), Column("y", Role.VALUE, Fraction(2))
TO, BY, ITEM = Column("to", Role.OWNER), Column("by", Role.OWNER), Column("x", Role.ITEM)


def test_columns_have_their_index_and_none_has_none() -> None:
    context = Context((X, Y, TO, BY, ITEM))
    assert [context.index(column) for column in (X, Y, TO, BY, ITEM, None)] == [0, 1, 2, 3, 4, -1]
    assert (context.others, context.several_owners) == ((2, 3), True)
    alone = Context((X, ITEM))
    assert (alone.others, alone.several_owners) == ((), False)
    with pytest.raises(ValueError):
        alone.index(Y)


def test_a_field_is_aggregated_once() -> None:
    context = Context((X, Y))
    asked = [(Y, "sum"), (X, "sum"), (Y, "sum"), (Y, "max")]
    assert [context.field(*one) for one in asked] == [0, 1, 0, 2]
    assert context.fields == [Field(1, "sum"), Field(0, "sum"), Field(1, "max")]


@pytest.mark.parametrize("share", [Budget(1.0, 1e-6), Budget.zcdp(0.5)], ids=str)
def test_all_partitions_of_a_person_cost_the_share(share: Budget) -> None:
    each = Context((), reach=3).each(share)
    assert each.amount * 3 == share.amount and each.delta * 3 == share.delta
    assert each.is_zcdp == share.is_zcdp


def test_removals_beyond_a_worker_are_refused_with_who_asks() -> None:
    context = Context((), asker="Max", output="most")
    assert context.check_removals(REMOVALS) == REMOVALS
    rule = rf"^Max: budget must be larger: .* column most would look at the {REMOVALS + 1} most"
    with pytest.raises(ValueError, match=rule):
        context.check_removals(REMOVALS + 1)


def test_a_part_is_counted_in_the_unit_of_its_column_or_in_ones() -> None:
    total, rows = Distances(X, (None, None), False), RowsWithValue(X)
    assert (total.exact_unit, rows.exact_unit) == (Fraction(1, 4), 1)
    assert (total.column_name, PeopleCount().column_name) == ("x", "")
    assert not total.wants_delta and total.pooled and not total.borrows
