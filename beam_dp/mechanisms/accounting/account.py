"""The account: what was spent on what, in exact rationals, and never more than the budget.

The module `budget` says what the numbers mean, and why they add up.
"""

from fractions import Fraction

from beam_dp.mechanisms.accounting.budget import Budget, readable
from beam_dp.mechanisms.numerics import checks

Entry = tuple[str, Budget, int]
"""What was spent: on what, the cost of one release, and of how many."""


class Account:
    """Record what is spent of one budget, and refuse what would exceed it.

    Whatever was spent through one account is, together, within its budget: sums are exact
    rationals, so ten costs of Fraction(1, 10) fit into an epsilon of 1 and an eleventh does
    not. Ten costs of the float 0.1 do not fit: that float is a little more than 1/10, and
    its exact value counts.

    What it does not count: that two texts, as ids of people, share a hash, at most n 2^-127 for one
    person among n (see `numerics.hashing`).

    Edge cases: nothing is ever given back, for a failed job may have released something.

    Args:
        budget: the most that may be spent.

    Attributes:
        entries: what was spent, in order.
        amount: what was spent so far, in the measure of the budget; it may be 0.
        delta: the delta that was spent so far.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.entries: tuple[Entry, ...] = ()
        self.amount = self.delta = Fraction(0)

    def spend(self, label: str, cost: Budget, times: int = 1) -> Budget:
        """Check and record `times` releases of `cost` each; return `cost`.

        An account of rho counts a cost of (epsilon, delta) as epsilon^2 / 2, and its delta.
        An account of epsilon refuses a cost of rho.

        Args:
            label: what it is spent on: public text, shown in messages.
            cost: what each release costs.
            times: how many releases.

        Raises:
            ValueError: if the total would exceed the budget; then nothing is recorded.
        """
        times = checks.positive_integer("Account.spend", "times", times)
        self._record((label, cost, times), counted(self._budget, cost) * times, cost.delta * times)
        return cost

    def _record(self, entry: Entry, amount: Fraction, delta: Fraction) -> None:
        """Check, then record: an exception leaves the account as it was."""
        amount, delta = self.amount + amount, self.delta + delta
        checks.require(
            amount <= self._budget.amount and delta <= self._budget.delta,
            "Account.spend",
            "the total",
            f"be at most {self._budget}, not {readable(amount)} with delta {readable(delta)} "
            f"after {entry[0]!r}",
            "Take shares with budget.split(weights): they sum exactly to the whole (ten times the "
            "float 0.1 is more than 1).",
        )
        self.amount, self.delta = amount, delta
        self.entries = (*self.entries, entry)


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
        "Account.spend",
        "cost",
        f"be an (epsilon, delta) as the budget {whole} is, not {cost}",
        "Convert the whole first: Account(budget.to_zcdp()).",
    )
    return cost.amount**2 / 2
