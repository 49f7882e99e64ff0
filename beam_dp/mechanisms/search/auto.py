"""Take the search with the smallest proved shift, and say why."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from beam_dp.mechanisms import checks
from beam_dp.mechanisms.budget import Budget
from beam_dp.mechanisms.search.above_threshold import AboveThreshold
from beam_dp.mechanisms.search.binary import NoisyBinarySearch
from beam_dp.mechanisms.search.exponential import ExponentialMechanism
from beam_dp.mechanisms.search.parameters import check
from beam_dp.mechanisms.search.scale_then_choose import ScaleThenChoose

Known = AboveThreshold | ExponentialMechanism | NoisyBinarySearch | ScaleThenChoose
_OWNER = "auto"


@dataclass(frozen=True)
class Alternative:
    """One search with the shift that is proved for it.

    Attributes:
        name: its class, and the noise of a binary search.
        search: with the whole budget.
        shift: T, for the number of candidates that was asked about.
    """

    name: str
    search: Known
    shift: int


def auto(budget: Budget, n: int, beta: float = 0.05) -> Known:
    """Return the search with the smallest proved shift T for n candidates.

    What it costs is the `cost` of what it returns: within the budget, and without delta unless the
    search needs one. The choice depends on these public parameters only, and is always the same:
    of equal shifts the first of the order in `alternatives` wins.

    Args:
        budget: what one choice may spend.
        n: the number of candidates.
        beta: the failure probability of the shift.

    Raises:
        TypeError: if budget is no Budget, or n no int.
        ValueError: unless n >= 1 and 0 < beta < 1.
    """
    return alternatives(budget, n, beta)[0].search


def why(budget: Budget, n: int, beta: float = 0.05) -> str:
    """Return one line that says which search `auto` takes and what the others would guarantee."""
    best, *others = alternatives(budget, n, beta)
    rest = ", ".join(f"{other.name} {other.shift}" for other in others)
    return f"{best.name}, of the smallest proved shift T = {best.shift} ({rest})"


def alternatives(budget: Budget, n: int, beta: float = 0.05) -> tuple[Alternative, ...]:
    """Return all searches that the budget can pay, the one with the smallest shift first.

    Equal shifts are in the order AboveThreshold, ExponentialMechanism, NoisyBinarySearch with
    "laplace", "gaussian" and "bit", ScaleThenChoose. Gaussian noise is for budgets of zCDP or with
    a delta, "bit" for zCDP where its table is not too long, ScaleThenChoose for a delta.

    Raises:
        TypeError: if budget is no Budget, or n no int.
        ValueError: unless n >= 1 and 0 < beta < 1.
    """
    check(_OWNER, budget, beta)
    checks.positive_integer(_OWNER, "n", n, "Write candidates.size.")
    return _alternatives(budget, n, float(beta))


@lru_cache(maxsize=256)
def _alternatives(budget: Budget, n: int, beta: float) -> tuple[Alternative, ...]:
    found = [_named(search, n) for search in _affordable(budget, n, beta)]
    return tuple(sorted(found, key=lambda alternative: alternative.shift))  # stable


def _affordable(budget: Budget, n: int, beta: float) -> list[Known]:
    makers: list[Callable[[Budget, float], Known]]
    makers = [AboveThreshold, ExponentialMechanism, NoisyBinarySearch]
    found = [make(budget, beta) for make in makers]
    if not budget.is_zcdp and budget.delta == 0:
        return found
    found.append(NoisyBinarySearch(budget, beta, "gaussian"))
    if not budget.is_zcdp:
        return [*found, ScaleThenChoose(budget, beta)]
    bit = NoisyBinarySearch(budget, beta, "bit")
    return [*found, bit] if bit.fits(n) else found


def _named(search: Known, n: int) -> Alternative:
    noise = f" ({search.noise})" if isinstance(search, NoisyBinarySearch) else ""
    return Alternative(type(search).__name__ + noise, search, search.shift(n))
