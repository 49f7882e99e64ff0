"""One record per column: in the order of roles, each once, and compared by type too."""

import pickle
from fractions import Fraction

from beam_dp.mechanisms.bounding.columns import Column, Role, table_order, with_role

UNIT = Fraction(1, 100)
VALUE, ITEM = Column("x", Role.VALUE, UNIT), Column("x", Role.ITEM)
OWNER, ORDER = Column("to", Role.OWNER), Column("when", Role.ORDER)
FLAG, EPSILON = Column("x", Role.FLAG, 1), Column("e", Role.EPSILON, (Fraction(1),))


def test_a_table_holds_its_columns_by_role_and_each_once() -> None:
    given = [EPSILON, ORDER, FLAG, ITEM, VALUE, OWNER, ITEM, VALUE]
    assert table_order(given) == (VALUE, OWNER, ITEM, FLAG, ORDER, EPSILON)
    assert table_order([]) == ()


def test_within_a_role_they_stay_as_given() -> None:
    names = [Column(name, Role.ITEM) for name in "cabbac"]
    assert [column.name for column in table_order(names)] == ["c", "a", "b"]


def test_equal_numbers_of_other_types_are_other_comparisons() -> None:
    flags = [Column("x", Role.FLAG, given) for given in (1, 1.0, True, "1", 1)]
    assert len(table_order(flags)) == 4
    assert flags[0] == flags[4] != flags[1] and flags[0] != flags[2]
    assert hash(flags[0]) == hash(flags[4])
    assert [pickle.loads(pickle.dumps(flag)) for flag in flags] == flags


def test_columns_are_found_by_their_roles() -> None:
    columns = (VALUE, OWNER, ITEM, FLAG)
    assert with_role(columns, Role.ITEM) == (ITEM,)
    assert with_role(columns, Role.FLAG, Role.VALUE) == (VALUE, FLAG)
    assert with_role(columns, Role.ORDER) == ()
