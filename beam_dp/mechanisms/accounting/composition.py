"""What several runs cost together, by the tightest of three proved compositions.

Runs are composed one after the other: what a run asks may depend on what earlier ones released.
Whether also its *cost* may depend on that makes the difference:

* **the sum**, of all epsilons and deltas, or of all rhos and deltas where the limit is one of rho,
  holds whatever decides the costs. Of epsilons: an (epsilon, delta)-DP release leaks with
  probability delta, and else moves the loss by at most epsilon (Kairouz, Oh, Viswanath 2015,
  Theorem 3.1). Whatever is asked next, the loss is at most the sum of the epsilons, but where
  something leaked, which happens with at most the expected sum of the deltas. Of rhos: with the
  loss L and the sum rho so far, e^((alpha - 1) L - alpha (alpha - 1) rho) is a supermartingale
  (Feldman, Zrnic 2021, arXiv 2008.11193; Whitehouse, Ramdas, Rogers, Wu 2023, arXiv 2203.05481).
* **zCDP**: every release counts rho, an (epsilon, delta) counts epsilon^2 / 2 (see `account`). The
  sum is turned into one epsilon (`zcdp`) at what the deltas leave of the limit's delta.
* **PLD**: the exact distribution of the privacy loss where every release is the worst one of its
  (epsilon, delta), randomized response with a leak (Kairouz, Oh, Viswanath 2015, Theorem 3.1). That
  pair dominates every such release, and pairs that dominate compose (Zhu, Dong, Wang 2022, arXiv
  2106.08567, Theorem 10). Computed by `dp-accounting`, with every loss rounded up.

The last two, and the least of several, count for costs that are **planned**: decided without
looking at what earlier runs released. Of others nothing is proved here: a person could steer to the
way of composing that suits what was released so far.

*The rounding of the PLD.* A loss is rounded up to a multiple of the interval, which errs to the
safe side. The floats do not: the distribution has n <= 2^19 cells and mass at most 1. A Fourier
transform of n numbers errs by at most eta log2(n) times their 2-norm, in 2-norm, with eta below
2^-49 (Higham 2002, Theorem 24.2); coefficients of a distribution are at most 1, so k factors add
k of these errors, and a sum of n cells is at most sqrt(n) times the 2-norm. So delta errs by at
most (k + 2) sqrt(n) log2(n) 2^-49, which is taken from the delta that may be spent.
"""

import dataclasses
import importlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from beam_dp.mechanisms.accounting import zcdp
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.numerics import checks

SUM, ZCDP, PLD = "sum", "zCDP", "PLD"
_CELLS = 1 << 18
_ROUNDING = 2.0**-49
_MOST_PIECES = 1 << 20
_LARGEST, _LARGEST_DELTA = 100, Fraction(1, 2)  # beyond these a loss distribution says nothing


@dataclasses.dataclass(frozen=True)
class Cost:
    """What one run costs.

    Attributes:
        budget: the whole.
        pieces: the releases that it is made of, each with how often it is made.
    """

    budget: Budget
    pieces: tuple[tuple[Budget, int], ...]


@dataclasses.dataclass(frozen=True)
class Composition:
    """What runs cost together, in the measure of a limit.

    Attributes:
        deltas: the sum of all deltas.
        at: the delta at which ways other than the sum hold.
        ways: the epsilon or rho by each way of composing them; infinite where it does not hold.
    """

    deltas: Fraction
    at: Fraction
    ways: dict[str, Fraction | float]

    @property
    def way(self) -> str:
        """The name of the tightest way."""
        return min(self.ways, key=lambda name: self.ways[name])

    @property
    def amount(self) -> Fraction | float:
        """The epsilon or rho by the tightest way."""
        return self.ways[self.way]

    @property
    def delta(self) -> Fraction:
        """The delta beside that amount."""
        return self.deltas if self.way == SUM else self.at


def composed(costs: Sequence[Cost], limit: Budget, planned: bool) -> Composition:
    """Return what runs cost together.

    Args:
        costs: those of the runs.
        limit: says in which measure, and at which delta.
        planned: whether the costs do not depend on what was released: see the module's docstring.

    Raises:
        ValueError: for planned costs without the library `dp-accounting`.
    """
    rho, delta_of_pieces = rho_of(costs)
    if limit.is_zcdp:
        return Composition(delta_of_pieces, limit.delta, {SUM: rho})
    delta = sum((cost.budget.delta for cost in costs), Fraction(0))
    amounts = [math.inf if cost.budget.is_zcdp else cost.budget.amount for cost in costs]
    ways: dict[str, Fraction | float] = {SUM: sum(amounts) if delta <= limit.delta else math.inf}
    if planned:
        left = limit.delta - delta_of_pieces
        ways[ZCDP] = zcdp.zcdp_epsilon(rho, left) if rho and left > 0 else math.inf
        ways[PLD] = _by_pld(costs, limit.delta)
    return Composition(delta, limit.delta, ways)


def rho_of(costs: Iterable[Cost]) -> tuple[Fraction, Fraction]:
    """Return the sums of rho and of delta over all releases of all runs."""
    rho = delta = Fraction(0)
    for cost in costs:
        for piece, times in cost.pieces:
            amount = piece.amount if piece.is_zcdp else piece.amount**2 / 2
            rho, delta = rho + amount * times, delta + piece.delta * times
    return rho, delta


def _by_pld(costs: Iterable[Cost], delta: Fraction) -> float:
    """Return the epsilon at `delta` by the privacy loss distribution; infinite where it is none."""
    counted: Counter[Budget] = Counter()
    for cost in costs:
        for piece, times in cost.pieces:
            counted[piece] += times
    pieces = sum(counted.values())
    if not pieces or pieces > _MOST_PIECES or any(piece.is_zcdp for piece in counted):
        return math.inf
    if any(piece.amount > _LARGEST or piece.delta > _LARGEST_DELTA for piece in counted):
        return math.inf
    total = float(sum(piece.amount * times for piece, times in counted.items()))
    interval = 2 * total / _CELLS
    # Every loss is rounded up by less than an interval, so there are at most so many cells.
    cells = _CELLS + 2 * pieces + 2
    usable = float(delta) - (pieces + 2) * math.sqrt(cells) * math.log2(cells) * _ROUNDING
    if usable <= 0:
        return math.inf
    whole: Any = None
    for piece, times in sorted(counted.items(), key=lambda each: str(each[0])):
        each = _worst(piece, interval).self_compose(times)
        whole = each if whole is None else whole.compose(each)
    return math.nextafter(float(whole.get_epsilon_for_delta(usable)) + interval, math.inf)


def _worst(piece: Budget, interval: float) -> Any:
    """Return the privacy loss distribution of the worst release of an (epsilon, delta)."""
    try:
        pld = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
        common = importlib.import_module("dp_accounting.pld.common")
    except ImportError:
        raise checks.ParameterError(
            "Ledger",
            "planned",
            "be left out where dp-accounting is not installed",
            "Install it: pip install dp-accounting.",
        ) from None
    epsilon, delta = (_above(number) for number in (piece.amount, piece.delta))
    made = common.DifferentialPrivacyParameters(epsilon, delta)
    return pld.from_privacy_parameters(made, value_discretization_interval=interval)


def _above(number: Fraction) -> float:
    """Return the smallest float that is not below a number."""
    near = float(number)
    return near if Fraction(near) >= number else math.nextafter(near, math.inf)
