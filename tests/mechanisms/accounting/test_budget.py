"""A budget is exact, frozen and checked; an account never lets more through than the whole."""

import decimal
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_dp.mechanisms.accounting.account import Account
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.accounting.zcdp import zcdp_rho

TENTH = Fraction(1, 10)
AMOUNTS = st.one_of(st.floats(1e-6, 1e9), st.fractions(Fraction(1, 10**6), 10**9))
DELTAS = st.one_of(st.floats(0, 0.999), st.fractions(0, Fraction(999, 1000)))
WEIGHTS = st.lists(st.one_of(st.floats(1e-3, 1e3), st.integers(1, 1000)), min_size=1, max_size=20)

NOT_NUMBERS = [True, "1", None, np.array([1]), np.array(1.0), decimal.Decimal(1), 1j, [1]]


@pytest.mark.parametrize("make", [Budget, Budget.zcdp])
@pytest.mark.parametrize(
    ("amount", "exact"),
    [
        (1, Fraction(1)),
        (1.5, Fraction(3, 2)),
        (Fraction(1, 3), Fraction(1, 3)),
        (0.1, Fraction(0.1)),
        (np.float32(0.1), Fraction(13421773, 134217728)),
        (2.0**-50, Fraction(1, 2**50)),
        (10**400, Fraction(10**400)),
    ],
)
def test_amounts_are_kept_exactly(make: type[Budget], amount: float, exact: Fraction) -> None:
    assert make(amount).amount == exact
    assert make(amount, 1e-6).delta == Fraction(1e-6)
    assert make(amount).delta == 0


@pytest.mark.parametrize("amount", [0, -0.0, -1, 1e-300, Fraction(-1, 3)])
def test_what_is_not_above_zero_is_refused(amount: float) -> None:
    with pytest.raises(ValueError, match=r"^Budget: epsilon must be above 0 .* Write Budget\(eps"):
        Budget(amount)
    with pytest.raises(ValueError, match=r"^Budget.zcdp: rho must be above 0 .* Write Budget.zcd"):
        Budget.zcdp(amount)


@pytest.mark.parametrize("amount", [math.nan, math.inf, -math.inf, np.float32("nan")])
def test_nan_and_infinities_are_refused(amount: float) -> None:
    for make, name in ((Budget, "epsilon"), (Budget.zcdp, "rho")):
        with pytest.raises(ValueError, match=f"^Budget.*: {name} must be finite, not"):
            make(amount)
        with pytest.raises(ValueError, match="^Budget.*: delta must be finite, not"):
            make(1, amount)


@pytest.mark.parametrize("bad", NOT_NUMBERS)
def test_other_types_are_refused_by_name(bad: float) -> None:
    for make, name in ((Budget, "epsilon"), (Budget.zcdp, "rho")):
        with pytest.raises(TypeError, match=f"^Budget.*: {name} must .* not {type(bad).__name__}"):
            make(bad)
        with pytest.raises(TypeError, match=f"^Budget.*: delta must .* not {type(bad).__name__}"):
            make(1, bad)


@pytest.mark.parametrize("delta", [-1e-300, -1, 1, 1.0, 2])
def test_delta_out_of_range_is_refused(delta: float) -> None:
    for make in (Budget, Budget.zcdp):
        with pytest.raises(ValueError, match="delta must be at least 0 and below 1, not .* Write"):
            make(1, delta)


def test_equality_and_hash_go_by_value_and_measure() -> None:
    assert Budget(1) == Budget(1.0) == Budget(Fraction(1), 0.0)
    assert len({Budget(1), Budget(1.0, -0.0), Budget.zcdp(1), Budget(1, 0.5)}) == 3
    assert Budget(1) != Budget.zcdp(1)
    assert Budget(0.1) != Budget(TENTH)


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        (Budget(1, 1e-6), "Budget(epsilon=1.0, delta=1e-06)"),
        (Budget(TENTH), "Budget(epsilon=0.1)"),
        (Budget.zcdp(Fraction(1, 3)), "Budget.zcdp(rho=0.3333333333333333)"),
        (
            Budget(10**400, Fraction(1, 2**2000)),
            "Budget(epsilon=about 2^1328, delta=about 2^-2000)",
        ),
    ],
)
def test_repr_is_readable(budget: Budget, text: str) -> None:
    assert repr(budget) == str(budget) == text


@given(amount=AMOUNTS, delta=DELTAS, weights=WEIGHTS)
def test_shares_sum_exactly_to_the_whole(amount: float, delta: float, weights: list[float]) -> None:
    for whole in (Budget(amount, delta), Budget.zcdp(amount, delta)):
        shares = whole.split(weights)
        assert len(shares) == len(weights)
        assert sum(share.amount for share in shares) == whole.amount
        assert sum(share.delta for share in shares) == whole.delta
        assert {share.is_zcdp for share in shares} == {whole.is_zcdp}
        account = Account(whole)
        for share, weight in zip(shares, weights, strict=True):
            assert share.amount * Fraction(weights[0]) == shares[0].amount * Fraction(weight)
            account.spend("share", share)
        assert (account.amount, account.delta) == (whole.amount, whole.delta)


@pytest.mark.parametrize(
    "weights", [[0], [1, -1], [math.nan], [True], [None], [1, math.inf], [-0.0]]
)
def test_weights_that_are_not_positive_are_refused(weights: list[float]) -> None:
    with pytest.raises((ValueError, TypeError), match="^Budget.split: each weight must be"):
        Budget(1).split(weights)


@pytest.mark.parametrize("weights", [[], (), "12", 2, None, {1: 1}, np.array([1, 1])])
def test_what_is_no_list_of_weights_is_refused(weights: list[float]) -> None:
    with pytest.raises((ValueError, TypeError), match=r"^Budget.split: .* Write budget.split\("):
        Budget(1).split(weights)


@pytest.mark.parametrize("factor", [0, -1, 1.0000000000000002, math.nan, True, None, "1"])
def test_factor_out_of_range_is_refused(factor: float) -> None:
    with pytest.raises((ValueError, TypeError), match="^Budget.scaled: factor must be"):
        Budget(1).scaled(factor)


def test_scaled_and_without_delta() -> None:
    assert Budget(1, 0.5).scaled(Fraction(1, 3)) == Budget(Fraction(1, 3), Fraction(1, 6))
    assert Budget.zcdp(1, 0.5).scaled(1) == Budget.zcdp(1, 0.5)
    assert Budget(1, 0.5).without_delta() == Budget(1)
    assert Budget.zcdp(1, 0.5).without_delta() == Budget.zcdp(1)


def test_to_zcdp_stays_within_the_budget() -> None:
    whole = Budget(1, 1e-6).to_zcdp()
    assert whole.rho == zcdp_rho(1, 1e-6) and whole.delta == 0 and whole.is_zcdp
    assert whole.to_zcdp() == whole
    assert Budget(2.0**-50, 1e-300).to_zcdp().amount > 0
    with pytest.raises(ValueError, match="^Budget.to_zcdp: delta must be above 0, not 0: .* Write"):
        Budget(1).to_zcdp()


def test_ten_tenths_fit_and_an_eleventh_does_not() -> None:
    account = Account(Budget(1))
    for _ in range(10):
        account.spend("tenth", Budget(TENTH))
    assert account.amount == 1
    with pytest.raises(ValueError, match=r"^Account.spend: the total must be at most Budget\(eps"):
        account.spend("eleventh", Budget(2.0**-50))
    assert len(account.entries) == 10 and account.amount == 1


def test_delta_is_counted_each_time() -> None:
    account = Account(Budget(10, 1e-6))
    account.spend("three", Budget(1, Fraction(1e-6) / 3), times=3)
    with pytest.raises(ValueError):
        account.spend("one more", Budget(1, 1e-30))
    with pytest.raises(ValueError):
        account.spend("too many for 64 bits", Budget(1), times=2**64)
    account.spend("pure", Budget(1))
    assert account.delta == Fraction(1e-6)


def test_pure_cost_on_a_ledger_of_rho_counts_half_its_square() -> None:
    account = Account(Budget.zcdp(1, 0.25))
    assert account.spend("epsilon", Budget(Fraction(1, 2), 0.125), times=2) == Budget(0.5, 0.125)
    assert (account.amount, account.delta) == (Fraction(1, 4), Fraction(1, 4))
    account.spend("rho", Budget.zcdp(0.75))
    assert account.amount == 1
    with pytest.raises(ValueError, match="at most Budget.zcdp"):
        account.spend("more", Budget(1e-9))
    with pytest.raises(ValueError, match="at most"):
        Account(Budget.zcdp(1)).spend("delta", Budget(0.1, 1e-12))


def test_cost_of_rho_on_a_ledger_of_epsilon_is_refused() -> None:
    account = Account(Budget(1, 1e-6))
    with pytest.raises(ValueError, match=r"Convert the whole first: Account\(budget.to_zcdp\(\)\)"):
        account.spend("rho", Budget.zcdp(1e-6))
    assert account.entries == () and account.amount == 0


@pytest.mark.parametrize("times", [0, -1, 1.5, True, None, np.int64(1)])
def test_times_is_a_positive_integer(times: int) -> None:
    with pytest.raises((ValueError, TypeError), match="^Account.spend: times must be an int"):
        Account(Budget(1)).spend("label", Budget(0.5), times)


@settings(max_examples=50, deadline=None)
@given(costs=st.lists(st.tuples(st.floats(1e-3, 0.4), st.floats(0, 0.3), st.booleans())))
def test_total_never_exceeds_the_budget(costs: list[tuple[float, float, bool]]) -> None:
    account, amount, delta = Account(Budget.zcdp(1, 0.5)), Fraction(0), Fraction(0)
    for value, slack, pure in costs:
        cost = Budget(value, slack) if pure else Budget.zcdp(value, slack)
        counted = Fraction(value) ** 2 / 2 if pure else Fraction(value)
        fits = amount + counted <= 1 and delta + Fraction(slack) <= Fraction(1, 2)
        if fits:
            account.spend("cost", cost)
            amount, delta = amount + counted, delta + Fraction(slack)
        else:
            with pytest.raises(ValueError):
                account.spend("cost", cost)
        assert (account.amount, account.delta) == (amount, delta)
