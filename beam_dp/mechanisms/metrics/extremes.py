"""The metrics `Max` and `Min`: the largest and the smallest value of all rows."""

import dataclasses

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.metrics import options
from beam_dp.mechanisms.metrics.base import UNIT, Metric, check_candidates, check_unit
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.search.choose import TWO_PHASE, SearchKind, check_search


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Extreme(Metric):
    """The largest or smallest number of a column, by its removal profile.

    Attributes:
        candidates: the public outputs; None: anything, and 0 and numbers 0.025% apart, of both
            signs, to 10^19 for a search.
        search: "two-phase" for a clip and noise (see `TwoPhase`), or the search over the removal
            loss, which errs to one side, and by more where people are many.
        beta: how often the guarantee of a search may fail.
        unit: the grid of values.
        method: "search", or "preprocessing": the extreme of one number per person, cut so that
            nobody moves it far, and noise (see `Preprocessing`; the error is a distance then).
    """

    candidates: Candidates | None = None
    search: SearchKind = TWO_PHASE
    beta: float = 0.05
    unit: checks.Real = UNIT
    method: str = "search"

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = type(self).__name__
        check_unit(owner, self.unit)
        checks.fraction_between(owner, "beta", self.beta, 0, 1)
        check_search(owner, self.search)
        check_candidates(owner, self.candidates)
        options.check_method(self, "search", "candidates", "search", "beta")


@dataclasses.dataclass(frozen=True)
class Max(_Extreme):
    """Release the largest value, or one that few people exceed.

    With probability 95% it is within `max_<column>_error` of a number between the maximum and that
    without some people, whose number the plan shows. With `search=dp.AboveThreshold` it is, with
    probability 1 - beta, at most the maximum (rounded up to the candidates), and at most
    `max_<column>_error` people have more. NaN where people are too few for the budget and no
    candidates were given.

    Attributes:
        column: the value column.
    """

    column: str


@dataclasses.dataclass(frozen=True)
class Min(_Extreme):
    """Release a value that nearly nobody is below: the mirror of `Max`.

    Attributes:
        column: the value column.
    """

    column: str
