"""The privacy budget, in exact rationals: what may be spent; and the account of what was spent.

Two measures are kept apart. (epsilon, delta)-DP: P[M(x) in S] <= e^epsilon P[M(x') in S] +
delta for neighbours x, x' (one person added or removed). And delta-approximate rho-zCDP
(Bun and Steinke 2016, arXiv 1605.02065, Definition 8.1): there are events E, E', each of
probability at least 1 - delta, such that the Renyi divergence of order alpha between
M(x) given E and M(x') given E' is at most alpha rho, both ways, for every alpha > 1.

Both measures compose by addition of all parameters, so shares are exact parts of a whole and sums
are compared without rounding.
"""

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple, Self

from beam_dp.mechanisms.accounting import zcdp
from beam_dp.mechanisms.numerics import checks

_LEAST_EPSILON = Fraction(1, 2**50)
# Low enough for Budget(2^-50, 1e-300).to_zcdp(), which is 2^-111.
_LEAST_RHO = Fraction(1, 2**128)


@dataclasses.dataclass(frozen=True, init=False, repr=False, slots=True)
class Budget:
    """Say how much privacy may be spent: (epsilon, delta), or rho-zCDP by `Budget.zcdp`.

    Every number is kept as the exact rational that was given: 0.1 is the float nearest to
    1/10 (a little more than 1/10), Fraction(1, 10) is 1/10. Nothing is rounded.

    Edge cases: epsilon below 2^-50 and rho below 2^-128 are refused, also as shares of a
    larger budget.

    Args:
        epsilon: above 0; larger means more accurate and less private.
        delta: at least 0, below 1; 0 means pure differential privacy.

    Raises:
        TypeError: for a parameter that is no int, float or Fraction (True is refused).
        ValueError: for one out of range, NaN or infinite.
    """

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None

    def __init__(self, epsilon: checks.Real, delta: checks.Real = 0) -> None:
        hint = "Write Budget(epsilon=1.0)."
        exact = _at_least("Budget", "epsilon", epsilon, _LEAST_EPSILON, "2^-50", hint)
        _fill(self, exact, _checked_delta("Budget", delta), None)

    @classmethod
    def zcdp(cls, rho: checks.Real, delta: checks.Real = 0) -> Self:
        """Make a budget of `delta`-approximate `rho`-zCDP (see the module's docstring).

        Whatever spends this budget is (e, delta + d)-DP for every e and d whose rho by the
        conversion in `zcdp` is at least this one (Bun and Steinke 2016, Lemma 8.8).

        Args:
            rho: above 0; larger means more accurate and less private.
            delta: at least 0, below 1; 0 means (not approximate) zCDP.
        """
        hint = "Write Budget.zcdp(rho=0.5)."
        exact = _at_least("Budget.zcdp", "rho", rho, _LEAST_RHO, "2^-128", hint)
        budget = cls.__new__(cls)
        _fill(budget, None, _checked_delta("Budget.zcdp", delta), exact)
        return budget

    @property
    def is_zcdp(self) -> bool:
        """Say whether the budget is counted in rho."""
        return self.rho is not None

    @property
    def amount(self) -> Fraction:
        """The epsilon or the rho, whichever is counted."""
        return next(amount for amount in (self.epsilon, self.rho) if amount is not None)

    def split(self, weights: Sequence[checks.Real]) -> tuple["Budget", ...]:
        """Return one share per weight; the shares sum exactly to the whole, delta too.

        Args:
            weights: positive numbers; [1, 1, 2] gives a quarter, a quarter and a half.
        """
        subject, hint = "Budget.split", "Write budget.split([1, 1])."
        given = checks.sequence(subject, "weights", weights, "numbers", hint)
        checks.require(len(given) > 0, subject, "weights", "have at least one number", hint)
        name = "each weight"
        exact = [checks.fraction_between(subject, name, weight, 0, math.inf) for weight in given]
        whole = sum(exact)
        return tuple(self.scaled(weight / whole) for weight in exact)

    def scaled(self, factor: checks.Real) -> "Budget":
        """Return the share `factor`, above 0 and at most 1, of amount and delta."""
        exact = checks.number("Budget.scaled", "factor", factor)
        checks.require(
            0 < exact <= 1,
            "Budget.scaled",
            "factor",
            f"be above 0 and at most 1, not {checks.shown(factor)}",
        )
        return self.like(self.amount * exact, self.delta * exact)

    def without_delta(self) -> "Budget":
        """Return the same epsilon or rho with delta 0."""
        return self.like(self.amount)

    def to_zcdp(self) -> "Budget":
        """Return the largest zCDP budget that is proved to cost at most this budget.

        Every rho-zCDP release with the returned rho is (epsilon, delta)-DP.

        Edge cases: a zCDP budget is returned as it is.

        Raises:
            ValueError: if delta is 0: zCDP gives no pure differential privacy.

        Source: Canonne, Kamath, Steinke 2020, arXiv 2004.00010, Proposition 12.
        """
        if self.epsilon is None:
            return self
        checks.require(
            self.delta > 0,
            "Budget.to_zcdp",
            "delta",
            "be above 0, not 0: zCDP gives no pure differential privacy",
            "Write Budget(epsilon=1.0, delta=1e-6).",
        )
        return Budget.zcdp(zcdp.zcdp_rho(self.epsilon, self.delta))

    def like(self, amount: Fraction, delta: Fraction = Fraction(0)) -> "Budget":
        """Return another budget of the same measure."""
        return Budget.zcdp(amount, delta) if self.is_zcdp else Budget(amount, delta)

    def __repr__(self) -> str:
        name = "Budget.zcdp(rho" if self.is_zcdp else "Budget(epsilon"
        delta = f", delta={checks.readable(self.delta)}" if self.delta else ""
        return f"{name}={checks.readable(self.amount)}{delta})"


def cost_of_all(costs: Sequence[Budget]) -> Budget:
    """Return what several things cost together: pure ones, or zCDP ones, without any delta."""
    amount = sum((cost.amount for cost in costs), Fraction(0))
    return costs[0].like(amount)


def _fill(budget: Budget, epsilon: Fraction | None, delta: Fraction, rho: Fraction | None) -> None:
    for name, value in (("epsilon", epsilon), ("delta", delta), ("rho", rho)):
        object.__setattr__(budget, name, value)


def _at_least(
    subject: str, name: str, value: object, least: Fraction, shown: str, hint: str
) -> Fraction:
    exact = checks.number(subject, name, value)
    if exact < least:
        rule = f"be above 0 (at least {shown}), not {checks.shown(value)}"
        raise checks.ParameterError(subject, name, rule, hint)
    return exact


def _checked_delta(subject: str, value: object) -> Fraction:
    exact = checks.number(subject, "delta", value)
    checks.require(
        0 <= exact < 1,
        subject,
        "delta",
        f"be at least 0 and below 1, not {checks.shown(value)}",
        "Write delta=1e-6.",
    )
    return exact


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
    if amount > budget.amount or delta > budget.delta:
        rule = f"be at most {budget}, not {checks.readable(amount)} with delta {checks.readable(delta)}"
        raise checks.ParameterError("account", "the total", rule)


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


MOST_EPSILON = 10
"""A larger epsilon promises next to nothing: somebody may be recognised almost with certainty."""
_MOST_RHO = Fraction(MOST_EPSILON**2, 2)
_MOST_DELTA = Fraction(1, 1000)


def cautions(budget: Budget) -> tuple[str, ...]:
    """Return a line for each unusual parameter.

    Epsilon 10 allows odds of e^10, 22,026 to 1, on whether somebody is in the data. A rho of
    epsilon^2 / 2 is what epsilon implies at most (Bun and Steinke 2016, Proposition 1.4). A
    mechanism that publishes one random person of n is (0, 1/n)-DP, so that delta must be well below
    1 / people, which are taken to be a thousand or more.
    """
    lines = []
    word, most = ("rho", _MOST_RHO) if budget.is_zcdp else ("epsilon", Fraction(MOST_EPSILON))
    if budget.amount > most:
        lines.append(
            f"{word} {checks.readable(budget.amount)} is above {most}: it hardly protects anybody; common "
            "values of epsilon are 0.1 to 3"
        )
    if float(budget.delta) > float(_MOST_DELTA):
        lines.append(
            f"delta {checks.readable(budget.delta)} is above {_MOST_DELTA}: so large a delta allows "
            "somebody's rows to be published; take one well below 1 / people, for example 1e-6"
        )
    return tuple(lines)
