"""What the rules leave has the same least cost, at every price."""

from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.packing.packing_program import Packing
from beam_dp.mechanisms.profiles.packed.value_rows import ValueRows
from tests.mechanisms.packing.test_packing_program import some_packing, value_of


def cost(rows, price):
    """Return what is left plus the price of each removal, at least."""
    left = value_of(rows.packing(price)) if len(rows.values) else 0
    return float(rows.counted + price * rows.removed) + left * float(price)


def of_packing(given, single):
    weights = given.weights if single else np.ones_like(given.weights)
    return ValueRows(given.owners, given.values, weights, given.people)


@pytest.mark.parametrize("single", [False, True])
def test_the_rules_change_no_cost(single):
    generator = np.random.default_rng(6)
    fewer = 0
    for _ in range(100):
        roles = int(generator.integers(1, 5))
        given = some_packing(generator, roles, people=5, most=12, single=single)
        rows = of_packing(given, single)
        for price in (Fraction(3, 4), Fraction(3, 2), Fraction(2), Fraction(9)):
            left = of_packing(given, single)
            left.reduce(price, left.degrees(-int(-price // 1)))
            assert cost(left, price) == pytest.approx(cost(rows, price), abs=1e-7)
            fewer += len(left.values) < len(rows.values)
    assert fewer > 100


def test_people_of_few_values_are_not_removed_and_those_who_own_many_alone_are():
    """Person 0 owns three values alone, and one more with person 1."""
    owners = np.array([[0, -1], [0, -1], [0, 2], [0, -1], [0, 1]])
    values, ones = np.array([0, 1, 1, 2, 3]), np.ones(4, np.int64)
    rows = ValueRows(owners, values, ones, 3)
    assert rows.degrees(1).tolist() == [4, 1, 1]
    rows.reduce(Fraction(3), rows.degrees(1))
    assert (rows.whole, rows.removed, len(rows.values)) == (0, 1, 0)
    rows = ValueRows(owners, values, ones, 3)
    rows.reduce(Fraction(4), rows.degrees(1))
    assert (rows.whole, rows.removed, len(rows.values)) == (4, 0, 0)


def test_a_weight_above_the_price_counts_as_the_price_and_stays_whole_for_others():
    """Person 0 has one row of 100: at a price of 5 nothing of it is in anybody's way."""
    rows = ValueRows(np.array([[0, 1]]), np.arange(1), np.array([100]), 2)
    rows.reduce(Fraction(5), rows.degrees(5))
    assert (rows.whole, rows.counted, rows.removed) == (100, 5, 0)


def test_even_shares_pay_for_all_values():
    generator = np.random.default_rng(7)
    for single in (False, True):
        for _ in range(40):
            given = some_packing(generator, single=single)
            rows = ValueRows(given.owners, given.values, given.weights, given.people)
            assert cost(rows, rows.heaviest()) == pytest.approx(int(given.weights.sum()))


def test_a_program_has_the_rows_that_are_left():
    owners, weights = np.array([[3, -1], [5, 7]]), np.arange(10) + 1
    packing = ValueRows(owners, np.array([2, 9]), weights, 8).packing(Fraction(1))
    assert isinstance(packing, Packing)
    assert packing.owners.tolist() == [[0, -1], [2, 1]]
    assert packing.values.tolist() == [0, 1] and packing.weights.tolist() == [3, 10]


def test_a_person_has_one_row_of_a_value_where_rows_have_one_owner():
    owners = np.array([[3, -1], [3, -1], [0, -1], [3, -1]])
    packing = ValueRows(owners, np.array([2, 2, 2, 5]), np.ones(6, int), 4).packing(Fraction(1))
    assert packing.owners.tolist() == [[0], [1], [1]] and packing.values.tolist() == [0, 0, 1]


def test_sums_beyond_what_floats_hold_are_exact():
    """2^53 + 1 is no float."""
    owners = np.zeros((2, 1), np.int64)
    rows = ValueRows(owners, np.arange(2), np.array([1 << 53, 1]), 1)
    assert rows.degrees(1 << 60).tolist() == [(1 << 53) + 1]
