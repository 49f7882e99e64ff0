"""A budget is exact, frozen and checked; an account never lets more through than the whole."""

import decimal
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_dp.mechanisms.accounting.budget import Budget, check_total
from beam_dp.mechanisms.accounting.zcdp import zcdp_rho

TENTH = Fraction(1, 10)
AMOUNTS = st.one_of(st.floats(1e-6, 1e9), st.fractions(Fraction(1, 10**6), 10**9))
DELTAS = st.one_of(st.floats(0, 0.999), st.fractions(0, Fraction(999, 1000)))
WEIGHTS = st.lists(st.one_of(st.floats(1e-3, 1e3), st.integers(1, 1000)), min_size=1, max_size=20)

NOT_NUMBERS = [True, "1", None, np.array(1.0), decimal.Decimal(1)]


@pytest.mark.parametrize("make", [Budget, Budget.zcdp])
@pytest.mark.parametrize(
    ("amount", "exact"),
    [
        (1, Fraction(1)),
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


@pytest.mark.parametrize("amount", [0, -1, 1e-300])
def test_what_is_not_above_zero_is_refused(amount: float) -> None:
    with pytest.raises(ValueError, match=r"^Budget: epsilon must be above 0 .* Write Budget\(eps"):
        Budget(amount)
    with pytest.raises(ValueError, match=r"^Budget.zcdp: rho must be above 0 .* Write Budget.zcd"):
        Budget.zcdp(amount)


@pytest.mark.parametrize("amount", [math.nan, -math.inf, np.float32("nan")])
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


@pytest.mark.parametrize("delta", [-1e-300, 1, 2])
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
        (Budget.zcdp(Fraction(1, 3)), "Budget.zcdp(rho=1/3)"),
        (
            Budget(10**400, Fraction(1, 2**2000)),
            "Budget(epsilon=about 2^1328, delta=about 2^-2000)",
        ),
    ],
)
def test_repr_is_readable(budget: Budget, text: str) -> None:
    assert repr(budget) == str(budget) == text


@settings(max_examples=40)
@given(amount=AMOUNTS, delta=DELTAS, weights=WEIGHTS)
def test_shares_sum_exactly_to_the_whole(amount: float, delta: float, weights: list[float]) -> None:
    for whole in (Budget(amount, delta), Budget.zcdp(amount, delta)):
        shares = whole.split(weights)
        assert len(shares) == len(weights)
        assert sum(share.amount for share in shares) == whole.amount
        assert sum(share.delta for share in shares) == whole.delta
        assert {share.is_zcdp for share in shares} == {whole.is_zcdp}
        for share, weight in zip(shares, weights, strict=True):
            assert share.amount * Fraction(weights[0]) == shares[0].amount * Fraction(weight)


def test_weights_and_factors_out_of_range_are_refused() -> None:
    for weights in ([0], [1, -1], [math.nan], [True], [None], [1, math.inf]):
        with pytest.raises((ValueError, TypeError), match="^Budget.split: each weight must be"):
            Budget(1).split(weights)
    for weights in ([], "12", 2, {1: 1}):
        with pytest.raises((ValueError, TypeError), match=r"^Budget.split: .* Write budget.split"):
            Budget(1).split(weights)
    for factor in (0, 1.0000000000000002, math.nan, True, "1"):
        with pytest.raises((ValueError, TypeError), match="^Budget.scaled: factor must be"):
            Budget(1).scaled(factor)


def test_scaled_and_without_delta() -> None:
    assert Budget(1, 0.5).scaled(Fraction(1, 3)) == Budget(Fraction(1, 3), Fraction(1, 6))
    assert Budget.zcdp(1, 0.5).scaled(1) == Budget.zcdp(1, 0.5)
    assert Budget(1, 0.5).without_delta() == Budget(1)
    assert Budget.zcdp(1, 0.5).without_delta() == Budget.zcdp(1)


def test_to_zcdp_stays_within_the_budget() -> None:
    whole = Budget(1, 1e-6).to_zcdp()
    assert whole.rho == zcdp_rho(Fraction(1), Fraction(1e-6)) and whole.delta == 0 and whole.is_zcdp
    assert whole.to_zcdp() == whole
    assert Budget(2.0**-50, 1e-300).to_zcdp().amount > 0
    with pytest.raises(ValueError, match="^Budget.to_zcdp: delta must be above 0, not 0: .* Write"):
        Budget(1).to_zcdp()


def costs(*entries: tuple[Budget, int]) -> list[tuple[str, Budget, int]]:
    return [("a cost", cost, times) for cost, times in entries]


WITHIN = {
    "ten tenths": (Budget(1), [(Budget(TENTH), 10)]),
    "a delta each time": (Budget(10, 1e-6), [(Budget(1, Fraction(1e-6) / 3), 3), (Budget(1), 1)]),
    "half the square of epsilon": (
        Budget.zcdp(1, 0.25),
        [(Budget(Fraction(1, 2), 0.125), 2), (Budget.zcdp(0.75), 1)],
    ),
}
BEYOND = {
    "an eleventh": ("ten tenths", (Budget(2.0**-50), 1)),
    "ten tenths of a float": ("ten tenths", (Budget(0.1), 10)),
    "one more delta": ("a delta each time", (Budget(1, 1e-30), 1)),
    "too many for 64 bits": ("a delta each time", (Budget(1), 2**64)),
    "a little rho": ("half the square of epsilon", (Budget(1e-9), 1)),
    "a delta of rho": ("half the square of epsilon", (Budget(1e-14, 1e-12), 1)),
}


@pytest.mark.parametrize("name", BEYOND)
def test_what_is_within_the_budget_is_exact_and_what_is_beyond_it_refused(name: str) -> None:
    within, more = BEYOND[name]
    budget, entries = WITHIN[within]
    check_total(budget, costs(*entries))
    with pytest.raises(ValueError, match=r"^account: the total must be at most Budget"):
        check_total(budget, costs(*entries, more))


def test_a_cost_of_rho_is_none_of_epsilon() -> None:
    with pytest.raises(ValueError, match=r"^account: cost must be an \(epsilon, delta\)"):
        check_total(Budget(1, 1e-6), costs((Budget.zcdp(1e-6), 1)))
