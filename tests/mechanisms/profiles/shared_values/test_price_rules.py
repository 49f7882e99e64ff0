"""What the rules leave has the same least cost, at every price."""

from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.optimization.packing.packing_program import Packing
from beam_dp.mechanisms.profiles.shared_values.price_rules import ValueRows
from tests.mechanisms.optimization.packing.test_packing_program import some_packing


def cost(rows, price):
    """Return what is left plus the price of each removal, at least."""
    left = rows.packing(price).solved()[0] if len(rows.values) else 0
    return rows.whole + price * rows.removed + left


def test_the_rules_change_no_cost():
    generator = np.random.default_rng(6)
    fewer = 0
    for _ in range(150):
        given = some_packing(generator, int(generator.integers(1, 5)), people=5, most=12)
        rows = ValueRows(given.owners, given.values, given.people)
        for price in (Fraction(3, 4), Fraction(3, 2), Fraction(2)):
            left = ValueRows(given.owners, given.values, given.people)
            left.reduce(price, left.degrees())
            assert cost(left, price) == cost(rows, price)
            fewer += len(left.values) < len(rows.values)
    assert fewer > 100


def test_people_of_few_values_are_not_removed_and_those_who_own_many_alone_are():
    """Person 0 owns three values alone, and one more with person 1."""
    owners = np.array([[0, -1], [0, -1], [0, 2], [0, -1], [0, 1]])
    rows = ValueRows(owners, np.array([0, 1, 1, 2, 3]), 3)
    assert rows.degrees().tolist() == [4, 1, 1]
    rows.reduce(Fraction(3), rows.degrees())
    assert (rows.whole, rows.removed, len(rows.values)) == (0, 1, 0)
    rows = ValueRows(owners, np.array([0, 1, 1, 2, 3]), 3)
    rows.reduce(Fraction(4), rows.degrees())
    assert (rows.whole, rows.removed, len(rows.values)) == (4, 0, 0)


def test_even_shares_pay_for_all_values():
    generator = np.random.default_rng(7)
    for _ in range(40):
        given = some_packing(generator)
        rows = ValueRows(given.owners, given.values, given.people)
        assert cost(rows, rows.heaviest()) == given.size


def test_a_program_has_the_rows_that_are_left():
    owners = np.array([[3, -1], [5, 7]])
    packing = ValueRows(owners, np.array([2, 9]), 8).packing(Fraction(1))
    assert isinstance(packing, Packing)
    assert packing.owners.tolist() == [[0, -1], [2, 1]]
    assert packing.values.tolist() == [0, 1]
