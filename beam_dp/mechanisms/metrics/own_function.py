"""Metrics with a function of the user's own: `CustomProfile` and `BlackBox`.

*A black box* is released by the median of blocks' votes.

The people are cut into m blocks, each of which has one vote or none (`summaries.block_votes`).
`CentralSearch` searches a median of the votes. Adding or removing one person changes the vote of
one block at most: it takes a vote away (x to x - v) and adds another instead (x - v to x - v + v'),
or does one of the two. By the theorem of `CentralSearch` each step costs epsilon' and has the
bounded range epsilon', sqrt(8 rho') for a rho'. So the release is 2 epsilon'-DP for people, and as
ranges add up to 2 sqrt(8 rho'), 4 rho'-zCDP (`bounded_range`): the search gets half of epsilon,
or a quarter of rho.

The number of votes is private and needs no noise: ranks are counted from the middle.
"""

import dataclasses
import math
from fractions import Fraction
from typing import ClassVar

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.decimal_grid import default_values
from beam_dp.mechanisms.metrics.base import (
    Context,
    OfNumbers,
    OfPersonValues,
    check_candidates,
    check_indexes,
)
from beam_dp.mechanisms.metrics.profiled import Profiled
from beam_dp.mechanisms.metrics.quantiles import MiddleRelease
from beam_dp.mechanisms.metrics.released import Profiler, Release
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.user_functions import ProfileFunction, check_callable
from beam_dp.mechanisms.profiles.from_summaries import UserProfile
from beam_dp.mechanisms.profiles.profile import GuardedProfile
from beam_dp.mechanisms.search.quantiles.middle_quantile import CentralSearch
from beam_dp.mechanisms.summaries.block_votes import BlockFunction, BlockRelation
from beam_dp.mechanisms.summaries.owner_lines import Relation

_BLOCKS = 10  # for each vote that the rank may be off: with fewer an answer may be missing
MOST_BLOCKS = 1 << 20
"""The votes of one partition are held together."""


@dataclasses.dataclass(frozen=True)
class CustomProfile(Profiled, OfNumbers):
    """Release a monotone statistic of your own, by its removal profile.

    The profile is yours to prove: B[k] must be the least value of the statistic when at most k
    people are removed, or a relaxation that interlaces. For people and the same with one more,
    whose profile is B', that is `B'[k + 1] <= B[k] <= B'[k]`, and B' has as many numbers as B or
    one more: below all of them the loss is how many there are. `testing.check_profile` tries to
    refute that. A run checks only what it can see: where the function raises or returns no profile,
    or one that its profile of nobody rules out for so many people, the statistic counts as `lowest`
    (`GuardedProfile`). There is no shorter way for many people: exact search over removals is for
    small sets (`mechanisms.sensitivity.monotone.Monotone`).

    Attributes:
        column: the value column.
        profile: takes a tuple of people, each the tuple of their values in increasing order, and
            returns B[0], B[1], ...; it must be picklable.
        candidates: the public outputs; required.
        lowest: the value of the statistic for nobody.
        search: "two_phase" for a clip and noise (see `TwoPhase`), or a search over the removal
            loss, which errs to one side, and by more.
        unit: the grid of values.
    """

    word: ClassVar[str] = "custom"
    _prefix: ClassVar[str] = "custom"
    functions: ClassVar[tuple[str, ...]] = ("profile",)
    profile: ProfileFunction
    _: dataclasses.KW_ONLY
    lowest: checks.Real = -math.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_function("CustomProfile", "profile", self.profile, "people")
        checks.require(
            self.candidates is not None,
            "CustomProfile",
            "candidates",
            "be given: nothing is known of the statistic",
            "Write candidates=dp.Candidates.linear(0, 1000, 1).",
        )

    def profiler(self, context: Context, removals: int) -> Profiler:
        """Return the function, guarded."""
        function = GuardedProfile(self.profile, removals, self.lowest)
        relation = Relation(context.index(self.source))
        return UserProfile(relation, removals, of_values=self.exact_unit, function=function)


def _check_function(subject: str, name: str, function: object, argument: str) -> None:
    """Refuse what cannot be called, or has no hash: equal parts are released once."""
    check_callable(subject, name, function)
    if type(function).__hash__ is None:
        rule = f"be hashable, as functions are, not {type(function).__name__}"
        raise checks.ParameterTypeError(
            subject, name, rule, f"Write {name}=lambda {argument}: ...."
        )


@dataclasses.dataclass(frozen=True)
class BlackBox(OfPersonValues):
    """Release any function of one number per person, with nothing asked of it.

    The people of a partition are cut into `blocks` parts by a keyed hash; the function is called on
    each part alone, on the workers, and a private median of its answers is released. One person
    changes one answer, so the release is private for every function, however wild: no bound, no
    sensitivity, no smoothness is asked for. In 95% of releases at most half of the answers, plus as
    many as the plan shows, lie below the released value, and at most so many above it (answers
    rounded up to the candidates). NaN: too few blocks have an answer. Nothing is known of its
    distance from the function of all people: the interval is open on both sides.

    It is an answer about samples of the data: of n people, each block has about n / blocks. It is
    good for what has nearly the same value on such a sample as on everybody (means, quantiles,
    slopes, fitted parameters), and wrong for what grows with the number of people (sums, counts)
    or needs all of them (the largest value, the number of different ones).

    A block on which the function raises, or returns no finite real number (bool, None, NaN, an
    array), has no vote, and neither has a block without people; nothing of the error is kept.
    Nothing protects what a function prints or writes, or how long it runs. **It must use its
    argument only**: the guarantee rests on one block telling another nothing. A callable object or
    a function of the main program is unpickled anew for each block, and default arguments are new;
    what a function keeps in its module, a class or its attributes is not forgotten.

    Attributes:
        column: the value column.
        function: takes a float64 array, one value per person in increasing order, and returns a
            number. It must be picklable, and must not remember: it may use its argument only.
        blocks: how many; more than twice the plan's shift T. None: ten times that, a public number
            that depends on the budget only.
        person_value: what a person with several rows counts as: "mean", "sum", "max" or "min".
        candidates: the public outputs; None: as for `Median`.
        unit: the grid of values.

    Source: Nissim, Raskhodnikova, Smith, "Smooth Sensitivity and Sampling in Private Data Analysis"
    (STOC 2007), section 4; on black boxes at large, Linder, Raskhodnikova, Smith, Steinke,
    "Privately Evaluating Untrusted Black-Box Functions" (2025).
    """

    word: ClassVar[str] = "black_box"
    functions: ClassVar[tuple[str, ...]] = ("function",)
    takes_auto_bound: ClassVar[bool] = False  # people's blocks are fixed before a choice

    function: BlockFunction
    _: dataclasses.KW_ONLY
    blocks: int | None = None
    candidates: Candidates | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        subject = "BlackBox"
        _check_function(subject, "function", self.function, "values")
        check_candidates(subject, self.candidates)
        check_indexes(subject, self.candidates)
        if self.blocks is not None:
            hint = "Leave it out for a number that suits the budget."
            checks.positive_integer(subject, "blocks", self.blocks, hint)

    def build(self, context: Context, share: Budget) -> Release:
        """Return the median of its answers, with a number of blocks that suits the budget."""
        each, unit = context.each(share).without_delta(), self.exact_unit
        search = search_of(each)
        candidates = default_values(unit) if self.candidates is None else self.candidates
        relation = BlockRelation(
            context.index(self.source),
            blocks=block_count(self.blocks, search.usual_error),
            person_value=self.person_value,
            unit=unit,
            candidates=candidates,
            function=self.function,
        )
        mechanism = f"median of a function of {relation.blocks} blocks of people"
        return MiddleRelease(
            relation, search, each, candidates, mechanism, ranked=("block", "blocks")
        )


def search_of(budget: Budget) -> CentralSearch:
    """Return the search over votes, where a person may exchange one vote for another.

    Args:
        budget: what one release may cost; a delta is not spent.
    """
    part = Fraction(1, 4) if budget.is_zcdp else Fraction(1, 2)
    return CentralSearch(budget.without_delta().scaled(part), resolution=1)


def block_count(given: int | None, shift: int) -> int:
    """Return the public number of blocks.

    Args:
        given: the number that the user asked for; None: the default.
        shift: how many votes the rank may be off.

    Raises:
        ValueError: for so few blocks that a release would say nothing, or too many to hold.
    """
    blocks = max(1, _BLOCKS * shift) if given is None else given
    checks.require(
        2 * shift < blocks <= MOST_BLOCKS,
        "BlackBox",
        "blocks",
        f"be more than {2 * shift} and at most {MOST_BLOCKS} for this budget, not "
        f"{blocks}: the released rank may be off by {shift} votes",
        "Use a larger budget, or leave blocks out.",
    )
    return blocks
