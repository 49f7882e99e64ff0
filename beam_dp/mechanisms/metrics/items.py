"""The metrics of values that are only compared: distinct count, frequency, sum of squares."""

import dataclasses

from beam_dp.mechanisms.metrics import options
from beam_dp.mechanisms.metrics.base import (
    Searched,
    check_clip,
)
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.profiles.frequency import PAIRS
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.search.choose import TWO_PHASE, SearchKind

_RELAXATIONS = ("items", "pairs")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _OfItems(Searched):
    """A statistic of values that are only compared: numbers, text, dates or booleans.

    Attributes:
        search: as of `Max`.
    """

    search: SearchKind = TWO_PHASE

    @property
    def items(self) -> tuple[str, ...]:
        """The columns whose values are only compared."""
        return self.columns


@dataclasses.dataclass(frozen=True)
class DistinctCount(_OfItems):
    """Count the different values of a column over all people.

    By default in two phases: a number C of values per person is chosen privately, each person pays
    for at most C of theirs, and noise of that size is added; a value that several people have
    needs only one who pays. Where C is for one partition, it is chosen by what it makes of the
    number (`TwoPhaseDistinct`), else by how many values people have. `one_sided=True` searches the
    relaxed removal loss instead, as rows with two owners do: there a value counts that more than T
    people are needed to remove, and `search="two-phase"`, which takes clip and noise of that loss,
    seldom errs by less.

    Attributes:
        column: the column; its values are only compared. Rows without one do not count.
        one_sided: never above the true number but for beta / 2, and below it by about the values
            of `<name>_error` people.
        clip: as in `Count`, and refused with `one_sided=True`.
        clip_share: as in `Count`, and refused with `one_sided=True`. Without, `search` and `beta`
            are refused, as there is nothing that they could change.
        search: how a one-sided release searches.
    """

    column: str
    _: dataclasses.KW_ONLY
    one_sided: bool = False
    clip: str = "shared"
    clip_share: checks.Real | None = None
    search: SearchKind = AboveThreshold

    def __post_init__(self) -> None:
        super().__post_init__()
        check_clip("DistinctCount", self.clip, self.clip_share)
        options.check_side(self)

    @property
    def _prefix(self) -> str:
        return "distinct"


@dataclasses.dataclass(frozen=True)
class MaxFrequency(_OfItems):
    """Release how often the most frequent value of a column occurs, by its removal profile.

    What its numbers mean is as of `KthLargest`, for the profile in which people may be removed in
    parts (a linear program, rounded down by less than half a row): see `profiles.frequency`.

    Attributes:
        column: the column; its values are only compared.
    """

    column: str

    @property
    def _prefix(self) -> str:
        return "max_frequency"


@dataclasses.dataclass(frozen=True)
class SumOfSquares(_OfItems):
    """Release the sum over all values of their squared numbers of rows (the self-join size, F2).

    What its numbers mean is as of `KthLargest`, for a relaxed profile (`relaxation`).

    Attributes:
        column: the column; its values are only compared.
        relaxation: "items" removes people for each value apart: any size, good where few popular
            values make up most of the sum. "pairs" removes them for all values at once: tighter
            where values are evenly frequent, but it needs memory for every pair of people who
            share a value (about 80 bytes).
        people: the most people of one partition, for "pairs" only, which is refused above 6,324
            people (20 million pairs). It must be true, as memory depends on it; privacy does not.
    """

    column: str
    _: dataclasses.KW_ONLY
    relaxation: str = "items"
    people: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("SumOfSquares", "relaxation", self.relaxation, _RELAXATIONS)
        if self.relaxation == "items":
            because = 'with relaxation="items", which takes any number of people'
            options.refuse(self, ("people",), because, 'Write relaxation="pairs" beside it.')
        if self.relaxation == "pairs":
            mend = 'Write people=1000, or leave relaxation="pairs" out.'
            people = checks.positive_integer("SumOfSquares", "people", self.people, mend)
            checks.require(
                people * (people + 1) // 2 <= PAIRS,
                f'SumOfSquares: people must be at most 6324 for relaxation="pairs", not {people}. '
                "Leave it out: by items there is no limit.",
            )

    @property
    def _prefix(self) -> str:
        return "sum_of_squares"
