"""How a metric asks for a search: by its class or a word, checked early and built with a budget."""

from typing import Literal

from beam_dp.mechanisms import checks
from beam_dp.mechanisms.budget import Budget
from beam_dp.mechanisms.search import (
    AboveThreshold,
    ExponentialMechanism,
    NoisyBinarySearch,
    ScaleThenChoose,
    Search,
    auto,
)

SearchKind = (
    type[AboveThreshold]
    | type[ExponentialMechanism]
    | type[NoisyBinarySearch]
    | type[ScaleThenChoose]
    | Literal["auto", "two-phase"]
)
"""How a search is asked for: by its class, or "auto" for the smallest proved shift. Its budget
comes from the plan; "auto" gets no delta, as for delta <= 1e-6 and up to 2^256 candidates no search
that spends one has a smaller shift than the others. "two-phase" is no search: what one person
counts is chosen, then noise is added."""

TWO_PHASE: Literal["two-phase"] = "two-phase"

_SEARCHES = (AboveThreshold, ExponentialMechanism, NoisyBinarySearch, ScaleThenChoose)


def check_search(owner: str, search: object) -> None:
    """Refuse what is neither "auto", "two-phase" nor a search class."""
    if type(search) is str and search in ("auto", TWO_PHASE):
        return
    if search not in _SEARCHES:
        names = ", ".join(kind.__name__ for kind in _SEARCHES)
        raise TypeError(
            f'{owner}: search must be "auto", "two-phase" or one of the classes {names}, '
            f"not {checks.shown(search)}."
        )


def build_search(search: SearchKind, budget: Budget, beta: float, size: int) -> Search:
    """Return the search with its budget; binary search takes the noise that suits it.

    Args:
        search: what was asked for.
        budget: what one choice may spend.
        beta: how often it may fail.
        size: the number of candidates.
    """
    if isinstance(search, str):
        return auto(budget, size, beta)
    if search is NoisyBinarySearch:
        if budget.is_zcdp and (bits := NoisyBinarySearch(budget, beta, noise="bit")).fits(size):
            return bits
        gaussian = budget.is_zcdp or budget.delta > 0
        return NoisyBinarySearch(budget, beta, noise="gaussian" if gaussian else "laplace")
    return search(budget, beta)
