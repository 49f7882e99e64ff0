"""Choose a search by its class, or the one with the smallest proved shift, and say why.

A metric names its search by a class or a word: `check_search` checks that name early, and
`build_search` makes the search with its budget.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, cast, get_args

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.search.above_threshold import AboveThreshold
from beam_dp.mechanisms.search.common import Search, check
from beam_dp.mechanisms.search.published.binary import NoisyBinarySearch
from beam_dp.mechanisms.search.published.exponential import ExponentialMechanism
from beam_dp.mechanisms.search.published.scale_then_choose import ScaleThenChoose

Known = AboveThreshold | ExponentialMechanism | NoisyBinarySearch | ScaleThenChoose
_OWNER = "auto"


@dataclass(frozen=True)
class Alternative:
    """One search with the shift that is proved for it.

    Attributes:
        name: the name of its class, and the noise of a binary search.
        search: the search, with the whole budget.
        shift: T, for the number of candidates that was asked about.
    """

    name: str
    search: Known
    shift: int


def auto(budget: Budget, n: int, beta: float = 0.05) -> Known:
    """Return the search with the smallest proved shift T for n candidates.

    The `cost` of that search is within the budget, and without delta unless the search needs one.
    The choice depends on these public parameters only and is always the same: of equal shifts the
    first in the order of `alternatives` wins.

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
    shifts = ", ".join(f"{alternative.name} {alternative.shift}" for alternative in others)
    return f"{best.name}, of the smallest proved shift T = {best.shift} ({shifts})"


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
    named = [_named(search, n) for search in _affordable(budget, n, beta)]
    return tuple(sorted(named, key=lambda alternative: alternative.shift))  # stable


def _affordable(budget: Budget, n: int, beta: float) -> list[Known]:
    makers: list[Callable[[Budget, float], Known]]
    makers = [AboveThreshold, ExponentialMechanism, NoisyBinarySearch]
    searches = [make(budget, beta) for make in makers]
    if not budget.is_zcdp and budget.delta == 0:
        return searches
    searches.append(NoisyBinarySearch(budget, beta, "gaussian"))
    if not budget.is_zcdp:
        return [*searches, ScaleThenChoose(budget, beta)]
    bit = NoisyBinarySearch(budget, beta, "bit")
    return [*searches, bit] if bit.fits(n) else searches


def _named(search: Known, n: int) -> Alternative:
    noise = f" ({search.noise})" if isinstance(search, NoisyBinarySearch) else ""
    return Alternative(type(search).__name__ + noise, search, search.shift(n))


SearchKind = (
    type[AboveThreshold]
    | type[ExponentialMechanism]
    | type[NoisyBinarySearch]
    | type[ScaleThenChoose]
    | Literal[
        "auto",
        "two_phase",
        "walk",
        "above_threshold",
        "exponential_mechanism",
        "noisy_binary_search",
        "scale_then_choose",
    ]
)
"""How a search is asked for: by its class or its word, or "auto" for the smallest proved shift. Its
budget comes from the plan; "auto" gets no delta, as for delta <= 1e-6 and up to 2^256 candidates no
search that spends delta has a smaller shift than the others. "two_phase" is no search: a clip for
what one person counts is chosen, then noise is added. "walk" is for values alone: see `TailSearch`.
"""

BY_WORD: dict[str, SearchKind] = {
    "auto": "auto",
    "above_threshold": AboveThreshold,
    "exponential_mechanism": ExponentialMechanism,
    "noisy_binary_search": NoisyBinarySearch,
    "scale_then_choose": ScaleThenChoose,
}
"""The searches by their words, as the command line has them."""

TWO_PHASE: Literal["two_phase"] = "two_phase"
WALK: Literal["walk"] = "walk"

_SEARCHES: tuple[type[Known], ...] = get_args(Known)


def named(search: SearchKind) -> SearchKind:
    """Return the class of a search that was asked for by its word; all else as it is."""
    return BY_WORD.get(search, search) if isinstance(search, str) else search


def check_search(owner: str, search: object, walks: bool = False) -> SearchKind:
    """Return the search, by its class if it has one; refuse what is neither a word nor a class.

    Args:
        owner: the class that errors name.
        search: what was given.
        walks: whether "walk" is among the words.
    """
    words = ("auto", TWO_PHASE, *((WALK,) if walks else ()))
    if type(search) is str and search in (*words, *BY_WORD):
        return named(cast(SearchKind, search))
    if search not in _SEARCHES:
        names = ", ".join(kind.__name__ for kind in _SEARCHES)
        known = ", ".join(f'"{word}"' for word in words)
        raise checks.ParameterTypeError(
            owner, "search", f"be {known} or one of the classes {names}, not {checks.shown(search)}"
        )
    return cast(SearchKind, search)


def build_search(search: SearchKind, budget: Budget, beta: float, size: int) -> Search:
    """Return the search with its budget; binary search takes the noise that suits it.

    Args:
        search: the class or the word that a metric named.
        budget: what one choice may spend.
        beta: the failure probability of the shift.
        size: the number of candidates.
    """
    search = named(search)
    if isinstance(search, str):
        return auto(budget, size, beta)
    if search is NoisyBinarySearch:
        if budget.is_zcdp and (bits := NoisyBinarySearch(budget, beta, noise="bit")).fits(size):
            return bits
        gaussian = budget.is_zcdp or budget.delta > 0
        return NoisyBinarySearch(budget, beta, noise="gaussian" if gaussian else "laplace")
    return search(budget, beta)
