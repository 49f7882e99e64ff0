"""Metrics that choose a clip: what a person adds is cut at it, then noise of that size is added."""

import abc
import dataclasses
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import ClassVar

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.defaults import VALUE_CLIPS
from beam_dp.mechanisms.histogram_choice.clip import beside_others, shares
from beam_dp.mechanisms.metrics.base import Metric, check_candidates
from beam_dp.mechanisms.metrics.profiled import ProfileRequest
from beam_dp.mechanisms.numerics import checks, integers, options
from beam_dp.mechanisms.releases.clipped import ClippedSum
from beam_dp.mechanisms.releases.released import Release
from beam_dp.mechanisms.releases.request import ColumnRequest, Context
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.search.choose import TWO_PHASE, SearchKind, check_search

_CLIPS = ("shared", "partition")
_ROW_CLIPS = 41
_MOST_CLIPS = 4096
_LARGEST_CLIP = 1 << 200
_UNKNOWN = 10
"""For how many partitions a shared clip is chosen where their number is not public."""


@dataclasses.dataclass(frozen=True)
class Clipping:
    """How a clip is chosen.

    Attributes:
        clip: "shared" by all partitions, or one for each "partition"; or the clip itself.
        share: the part of the budget that chooses it; None: the default.
        candidates: the public clips; None: the default ones.
    """

    clip: str | Fraction = "shared"
    share: Fraction | None = None
    candidates: Candidates | None = None

    @property
    def shared(self) -> bool:
        """Whether there is one clip for all partitions."""
        return self.clip == "shared"

    @classmethod
    def of(cls, metric: Metric) -> "Clipping":
        """Return how the clip of a metric is chosen, or which it is."""
        owner, given = type(metric).__name__, vars(metric)
        clip, share = given["clip"], given["clip_share"]
        if not isinstance(clip, str):
            clip = checks.decimal(owner, "clip", clip)
        share = None if share is None else checks.number(owner, "clip_share", share)
        return cls(clip, share, given.get("candidates"))


@dataclasses.dataclass(frozen=True)
class ClippedRequest(ColumnRequest):
    """A number that adds up over people.

    Attributes:
        signed: whether numbers below 0 count.
        anchored: whether it is a number of rows or values, of which most people have few.
        early: whether a first look is enough as soon as it shows that many people are there.
        clipping: how its clip is chosen.
    """

    clipping: Clipping

    signed: ClassVar[bool] = False
    anchored: ClassVar[bool] = True
    early: ClassVar[bool] = False
    pooled: ClassVar[bool] = True
    owner: ClassVar[str] = ""

    @abc.abstractmethod
    def source(self, context: Context) -> int:
        """Return the field that holds what one person adds."""

    def default_clips(self, context: Context) -> tuple[int, ...]:
        """Return the public clips in units where the user gave none: powers of two."""
        return row_clips(None)

    def build(self, context: Context, share: Budget) -> Release:
        """Return the release by clip and noise."""
        return self.clipped(context, share)

    def clipped(self, context: Context, share: Budget) -> ClippedSum:
        """Return the release, whose costs are public parameters."""
        thresholds = self._thresholds(context)
        lender = context.lenders.get(self.borrows) if self.borrows is not None else None
        if lender is not None:
            return self.release(context, self._beside(lender, context, share))
        looks = self._looks(context, share) if len(thresholds) > 1 else ()
        if self.clipping.share is None:
            looks = tuple(beside_others(look, context.together) for look in looks)
        spent = [share.split((look, 1 - look)) for look in looks]
        searches = tuple(search for search, _ in spent)
        if not self.clipping.shared:
            searches = tuple(map(context.each, searches))
        noises = [noise for _, noise in spent] or [share]
        return self.release(
            context,
            ClippedSum(
                source=self.source(context),
                signed=self.signed,
                thresholds=thresholds,
                unit=self.unit,
                looks=searches,
                noise_costs=tuple(map(context.noise, noises)),
                jointly=context.jointly,
                shared=self.clipping.shared,
                anchored=self.anchored and self.clipping.candidates is None,
                bounded=context.depth is not None,
                numbers=(context.partitions or context.about or _UNKNOWN)
                if self.clipping.shared
                else 1,
                alpha=context.alpha,
                early=self.early,
            ),
        )

    def _beside(self, lender: ClippedSum, context: Context, share: Budget) -> ClippedSum:
        """Return the release by the clip of another, whose whole share pays noise."""
        noises = (context.noise(share),) * len(lender.noise_costs)
        return dataclasses.replace(lender, borrowed=True, noise_costs=noises)

    def _looks(self, context: Context, share: Budget) -> tuple[Fraction, ...]:
        """Return the shares of the budget for the looks at who has how much."""
        if self.clipping.share is not None:
            return (self.clipping.share,)
        pure = not share.is_zcdp
        if self.clipping.shared:
            # One draw for P partitions has about the noise of a bound of the root of P.
            reach = math.isqrt(context.reach) if context.jointly else context.reach
            return shares(context.partitions, reach, pure, context.about)
        return shares(1, 1, pure and context.partitions == 1)

    def release(self, context: Context, made: ClippedSum) -> ClippedSum:
        """Return the release as it is drawn, with what else it needs."""
        return made

    def _thresholds(self, context: Context) -> tuple[int, ...]:
        """Return the public clips in units: the user's, or the default ones."""
        candidates, clip = self.clipping.candidates, self.clipping.clip
        if not isinstance(clip, str):
            return (max(1, math.ceil(clip / self.unit)),)
        if candidates is None:
            return self.default_clips(context)
        checks.require(
            candidates.size <= _MOST_CLIPS,
            self.owner,
            "candidates for a clip",
            f"be at most {_MOST_CLIPS}, not {candidates.size}",
            "Write Candidates.geometric(1, 1e6, 2).",
        )
        units = (math.ceil(Fraction(y) / self.unit) for y in candidates)
        return apart(min(max(1, y), integers.WIDEST) for y in units)


def apart(clips: Iterable[int]) -> tuple[int, ...]:
    """Return clips of which each is at least twice the one before; the largest is kept.

    Between clips that are closer there are too few people to be told from noise, and what goes
    unseen above them is estimated by octaves (`histogram_choice.loss`).
    """
    kept: list[int] = []
    for clip in sorted(clips, reverse=True):
        if not kept or 2 * clip <= kept[-1]:
            kept.append(clip)
    return tuple(reversed(kept))


def row_clips(depth: int | None) -> tuple[int, ...]:
    """Return the clips of a number of rows: powers of two, up to the bound on rows if there is one.

    Args:
        depth: the most rows per person and partition; None: unknown.
    """
    powers = [1 << power for power in range(_ROW_CLIPS)]
    if depth is None:
        return tuple(powers)
    return (*(power for power in powers if power < depth), depth)


def value_clips() -> tuple[int, ...]:
    """Return the clips of a sum: powers of two."""
    return tuple(1 << power for power in range(VALUE_CLIPS))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sided(Metric):
    """A metric that has two sides: by a privately chosen clip and noise, or one-sided.

    Attributes:
        one_sided: release by the shifted inverse mechanism: never above the true value but for
            5%, and below it by the contributions of about `shift` people. Else clip and noise.
        clip: choose the clip once for all partitions ("shared"), or "partition": in each, which
            suits partitions of thousands of people whose contributions differ by magnitudes. Or a
            number, if you know without the data that nobody counts for more in a partition: then
            nothing is spent on a choice, and whoever has more counts for that much. The interval
            holds the truth if nobody has.
        candidates: the public clips, of which such are used as are at least a factor of 2 apart,
            the largest among them; or the public outputs if one-sided; None: a geometric
            grid that is wide enough for anything.
        clip_share: the part of the metric's budget that chooses the clip; None: two fifths for
            one partition, or a fourth where that shows enough; an eighth where partitions are
            selected privately; and 0.8 / sqrt(partitions x those of a person), from 1/32 to two
            fifths, where they are public (`histogram_choice.clip`).
        search: how a one-sided release searches.
        beta: how often a one-sided release may be above the true value, or too far below it.

    Options that have no effect are refused: of the clip with `one_sided=True`, and of the search
    without.
    """

    one_sided: bool = False
    clip: str | checks.Real = "shared"
    candidates: Candidates | None = None
    clip_share: checks.Real | None = None
    search: SearchKind = AboveThreshold
    beta: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = type(self).__name__
        check_clip(owner, self.clip, self.clip_share)
        checks.fraction_between(owner, "beta", self.beta, 0, 1)
        object.__setattr__(self, "search", check_search(owner, self.search))
        check_candidates(owner, self.candidates)
        self._check_side()

    def _check_side(self) -> None:
        """Refuse options of the clip in a one-sided release, and those of the search in others."""
        owner = type(self).__name__
        if type(self.one_sided) is not bool:
            raise checks.ParameterTypeError(
                owner, "one_sided", f"be True or False, not {checks.shown(self.one_sided)}"
            )
        if self.one_sided:
            because = "with one_sided=True, which searches for the output and clips nobody"
            options.refuse(self, options.CLIP, because, "Leave one of the two out.")
            return
        because = "with one_sided=False, which chooses a clip and does not search for the output"
        # Two phases are what is meant: with one owner by default, with several if asked for.
        searched = options.SEARCH[1:] if self.search == TWO_PHASE else options.SEARCH
        options.refuse(self, searched, because, "Write one_sided=True beside it, or leave it out.")
        if not isinstance(self.clip, str):
            because = "with a clip, which leaves none to choose"
            refuse = ("candidates", "clip_share")
            options.refuse(self, refuse, because, 'Write clip="shared", or leave it out.')
        if self.candidates is not None and self.candidates.size == 1:
            because = "with candidates of one value, which leave no clip to choose"
            options.refuse(self, options.CLIP, because, "Give several candidates, or leave it out.")

    @property
    def given(self) -> Candidates | None:
        """The public clips or outputs that the user gave; None: none."""
        return self.candidates

    @property
    def _clipping(self) -> Clipping:
        return Clipping.of(self)

    def for_several_owners(self, owner: str) -> Metric:
        """Return it as it is released where rows have several owners: by its removal profile.

        In two phases, if no search is asked for.
        """
        because = "where rows have several owners, which are released by their removal profile"
        options.refuse(self, options.CLIP, because, "Leave it out.")
        checks.require(
            not (self.one_sided and self.search == TWO_PHASE),
            type(self).__name__,
            "search",
            'not be "two_phase" with one_sided=True: two phases err to both sides',
            "Leave one of the two out.",
        )
        search = self.search if self.one_sided else self._search_of_several_owners()
        return dataclasses.replace(self, one_sided=True, search=search)

    def _search_of_several_owners(self) -> SearchKind:
        return TWO_PHASE


class SidedRequest(ProfileRequest):
    """The same number by its removal profile."""

    owner: ClassVar[str] = ""

    def build(self, context: Context, share: Budget) -> Release:
        """Return the release; with one owner, in two phases it is a `ClippedRequest`."""
        checks.require(
            self.searching.search != TWO_PHASE or context.several_owners,
            self.owner,
            "search",
            'not be "two_phase" with one_sided=True where rows have one owner: two '
            "phases err to both sides",
            "Leave both out: two phases are the default there.",
        )
        return super().build(context, share)


def check_clip(owner: str, clip: object, share: checks.Real | None) -> None:
    """Refuse what is neither a clip nor a way to choose one, and shares outside of (0, 1)."""
    if isinstance(clip, str):
        checks.one_of(owner, "clip", clip, _CLIPS)
    else:
        mend = 'Write clip=100, or clip="shared" to have it chosen privately.'
        checks.fraction_between(owner, "clip", clip, 0, _LARGEST_CLIP, mend)
    if share is not None:
        checks.fraction_between(owner, "clip_share", share, 0, 1)
