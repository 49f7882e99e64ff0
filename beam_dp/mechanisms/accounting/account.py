"""The account: what was spent on what, in exact rationals, and never more than the budget.

The module `budget` says what the numbers mean, and why they add up.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from beam_dp.mechanisms.accounting.budget import Budget, readable
from beam_dp.mechanisms.numerics import checks

Entry = tuple[str, Budget, int]
"""What was spent: on what, the cost of one release, and of how many."""


class Spending(NamedTuple):
    """One entry of the account.

    Attributes:
        cost: the cost of one draw.
        purpose: what it is for, where a release spends on several things.
        once: whether one draw serves all partitions; else there is one per partition.
    """

    cost: Budget
    purpose: str = ""
    once: bool = False


def check_total(budget: Budget, entries: Sequence[Entry]) -> None:
    """Refuse entries that together cost more than the budget.

    Sums are exact rationals, so ten costs of Fraction(1, 10) fit into an epsilon of 1 and an
    eleventh does not. Ten costs of the float 0.1 do not fit: that float is a little more than 1/10,
    and its exact value counts. A budget of rho counts a cost of (epsilon, delta) as epsilon^2 / 2,
    and its delta; one of epsilon refuses a cost of rho.

    What it does not count: that two texts, as ids of people, share a hash, at most n 2^-127 for one
    person among n (see `numerics.hashing`).

    Args:
        budget: the most that may be spent.
        entries: what is spent.

    Raises:
        ValueError: if the total would exceed the budget.
    """
    amount = sum((counted(budget, cost) * times for _, cost, times in entries), Fraction(0))
    delta = sum((cost.delta * times for _, cost, times in entries), Fraction(0))
    rule = f"be at most {budget}, not {readable(amount)} with delta {readable(delta)}"
    fits = amount <= budget.amount and delta <= budget.delta
    checks.require(fits, "account", "the total", rule)


def counted(whole: Budget, cost: Budget) -> Fraction:
    """Return what a cost takes of a whole, in the whole's own measure.

    (epsilon, delta)-DP is delta-approximate epsilon^2/2-zCDP. For pure DP this is
    Proposition 1.4 of Bun and Steinke 2016. For delta > 0: by Kairouz, Oh, Viswanath
    2015 (Theorem 3.1 and its proof) the two outputs come by one map from the pair
    P = (delta, (1-delta) q, (1-delta)(1-q), 0), P' = (0, (1-delta)(1-q), (1-delta) q,
    delta), q = e^epsilon / (1 + e^epsilon). Outside of its first and its last outcome,
    hence on events of probability 1 - delta each, that pair is pure epsilon-DP.
    Approximate zCDP adds up, delta too (Bun and Steinke 2016, Lemma 8.2).
    """
    if cost.is_zcdp == whole.is_zcdp:
        return cost.amount
    checks.require(
        whole.is_zcdp,
        "account",
        "cost",
        f"be an (epsilon, delta) as the budget {whole} is, not {cost}",
    )
    return cost.amount**2 / 2
