"""Choose a search by its class or word, or the one with the smallest proved shift, and say why.

A metric names its search by a class or a word: `check_search` checks that name early, and
`build_search` makes the search with its budget.
"""

from collections.abc import Sequence
from typing import cast

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.search.above_threshold import AboveThreshold
from beam_dp.mechanisms.search.binary import NoisyBinarySearch
from beam_dp.mechanisms.search.common import Search
from beam_dp.mechanisms.search.exponential import ExponentialMechanism

SearchKind = type[Search] | str
"""How a search is asked for: by its class or its word, or "auto" for the smallest proved shift. Its
budget comes from the plan. "clip", "two_phase" and "sparse_vector" are no searches, and not for all
metrics.
"""

BY_WORD: dict[str, SearchKind] = {
    "auto": "auto",
    "above_threshold": AboveThreshold,
    "exponential_mechanism": ExponentialMechanism,
    "noisy_binary_search": NoisyBinarySearch,
}
"""The searches by their words, as the command line has them."""

NO_SEARCHES = CLIP, TWO_PHASE, SPARSE_VECTOR = "clip", "two_phase", "sparse_vector"
"""The words for releases that search no removal loss."""

_SEARCHES: tuple[type[Search], ...] = (
    AboveThreshold,
    ExponentialMechanism,
    NoisyBinarySearch,
)


def check_search(subject: str, search: object, more: Sequence[str] = (TWO_PHASE,)) -> SearchKind:
    """Return the search, by its class if it has one; refuse what is neither a word nor a class.

    Args:
        subject: the class that errors name.
        search: what was given.
        more: the words beside those of searches.
    """
    words = ("auto", *more)
    if type(search) is str and search in (*words, *BY_WORD):
        return BY_WORD.get(search, search)
    if search not in _SEARCHES:
        names = ", ".join(
            f'{kind.__name__} ("{word}")'
            for word, kind in BY_WORD.items()
            if isinstance(kind, type)
        )
        known = ", ".join(f'"{word}"' for word in words)
        raise checks.ParameterTypeError(
            subject,
            "search",
            f"be {known} or one of the classes {names}, not {checks.shown(search)}",
        )
    return cast(SearchKind, search)


def build_search(search: SearchKind, budget: Budget, beta: float, size: int) -> Search:
    """Return the search with its budget.

    With "auto" public parameters decide; of equal shifts the order is AboveThreshold,
    ExponentialMechanism, NoisyBinarySearch.

    Args:
        search: the class that a metric named, or "auto".
        budget: what one choice may spend.
        beta: the failure probability of the shift.
        size: the number of candidates.
    """
    kinds = _SEARCHES if isinstance(search, str) else (search,)
    return min((kind(budget, beta) for kind in kinds), key=lambda made: made.shift(size))
