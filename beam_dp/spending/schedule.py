"""What each of n equal runs may spend, so that together they stay within an epsilon and a delta.

* **pure**: epsilons add up. Costs may depend on what earlier runs released.
* **zCDP**: rhos add up, of which an (epsilon, 0) counts epsilon^2 / 2 (see `accounting.budget`).
  So may these.
* **PLD**: the exact distribution of the privacy loss of n runs that are epsilon-DP, and no better.
  The worst of these is randomized response, with a loss of epsilon or -epsilon at odds of
  e^epsilon to 1 (Kairouz, Oh, Viswanath 2015, arXiv 1311.0776, Theorem 3.3). It dominates each run,
  and what dominates composes, also where a run asks what earlier ones suggest (Zhu, Dong, Wang 2022,
  arXiv 2106.08567, Theorem 10). The epsilons must be settled before the first run.

With odds r and W <= e^total, n runs are (total, delta)-DP for

    delta = sum over j of binom(n, j) max(0, r^j - W r^(n - j)) / (1 + r)^n,

for the loss is (2 j - n) ln r with j of n at odds r. It rises with r, and falls with W. So r is
searched on a grid of rationals, delta is computed in integers, and W and ln r are rounded down.
"""

import decimal
import math
from fractions import Fraction

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.numerics import checks, enclosures
from beam_dp.text.text_tables import text_table

MOST_RUNS, MOST_EPSILON = 500, 100
_BITS = 24  # of the odds behind the point
_DIGITS = decimal.Context(prec=4, rounding=decimal.ROUND_DOWN)
_HEADINGS = ("accounting", "epsilon of a run", "or rho", "limit of the ledger")

_NO_DELTA = "a delta, as 1e-6, would allow each run more: by zCDP and PLD"
_BELOW = (
    "each run spends the epsilon, or the rho, and no delta: take the sum of their deltas off first",
    "pure, zCDP: what a run spends may depend on earlier results, up to the limit",
    "PLD: no run spends more than this epsilon, which is settled before the first run",
)


def schedule(runs: int, total: Budget) -> str:
    """Return a table of what each run may spend, rounded down, with what to know of it.

    Args:
        runs: how many there are, at most `MOST_RUNS`.
        total: what all of them may cost a person, an epsilon of at most `MOST_EPSILON` and a delta.

    Raises:
        TypeError, ValueError: for another number of runs, or a larger epsilon.
    """
    count = checks.positive_integer("schedule", "runs", runs)
    checks.require(count <= MOST_RUNS, "schedule", "runs", f"be at most {MOST_RUNS}, not {count}")
    most, rule = total.amount <= MOST_EPSILON, f"be at most {MOST_EPSILON}"
    checks.require(most, "schedule", "total_epsilon", rule)
    rows = [("pure", _down(total.amount / count), "-", f"epsilon {checks.readable(total.amount)}")]
    if not total.delta:
        return "\n".join([*text_table(_HEADINGS, rows), _NO_DELTA])
    rho, settled = _down(total.to_zcdp().amount / count), _down(_by_losses(count, total))
    each = _down(enclosures.root_below(2 * Fraction(rho)))
    rows.append(("zCDP", each, rho, f"rho {_times(rho, count)}"))
    rows.append(("PLD", settled, "-", f"epsilon {_times(settled, count)}"))
    return "\n".join([*text_table(_HEADINGS, rows), *_BELOW])


def _by_losses(runs: int, total: Budget) -> Fraction:
    """Return an epsilon of each run, by the distribution of losses; at least that of the sum."""
    one, (lowest, _) = 1 << _BITS, enclosures.exp_interval(total.amount, _BITS)
    low = high = one
    while _delta(high, runs, lowest) <= total.delta:
        high *= 2
    while high - low > 1:  # the odds `low` are allowed
        odds = (low + high) // 2
        low, high = (odds, high) if _delta(odds, runs, lowest) <= total.delta else (low, odds)
    return max(total.amount / runs, enclosures.log_interval(Fraction(low, one), 2 * _BITS)[0])


def _delta(odds: int, runs: int, lowest: Fraction) -> Fraction:
    """Return delta for the odds `odds` / 2^_BITS, with `lowest` for W."""
    ups, downs = [1], [1]
    for _ in range(runs):
        ups.append(ups[-1] * odds)
        downs.append(downs[-1] << _BITS)
    over, under = lowest.numerator, lowest.denominator
    above = 0
    for j in range(runs, -1, -1):
        excess = under * ups[j] * downs[runs - j] - over * ups[runs - j] * downs[j]
        if excess <= 0:  # so it is for all smaller j
            break
        above += math.comb(runs, j) * excess
    return Fraction(above, under * (odds + (1 << _BITS)) ** runs)


def _times(number: str, count: int) -> str:
    return f"{(decimal.Decimal(number) * count).normalize():f}"


def _down(number: Fraction) -> str:
    """Return a number with four digits, rounded down."""
    parts = map(decimal.Decimal, number.as_integer_ratio())
    return f"{_DIGITS.divide(*parts).normalize():f}"
