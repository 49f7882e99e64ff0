"""Metrics that choose a clip: what a person adds is cut at it, then noise of that size is added."""

import abc
import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.defaults import VALUE_CLIPS
from beam_dp.mechanisms.histogram_choice.clip import beside_others, shares
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.metrics.part import Context
from beam_dp.mechanisms.metrics.profiled import Profiled
from beam_dp.mechanisms.numerics import checks, integers, options
from beam_dp.mechanisms.releases.clipped import ClippedSum
from beam_dp.mechanisms.releases.released import Release
from beam_dp.mechanisms.search import AboveThreshold
from beam_dp.mechanisms.search.choose import TWO_PHASE, SearchKind

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

    def thresholds(self, unit: Fraction, default: Sequence[int], owner: str) -> tuple[int, ...]:
        """Return the public clips in units: the user's, or the default ones."""
        if not isinstance(self.clip, str):
            return (max(1, math.ceil(self.clip / unit)),)
        if self.candidates is None:
            return tuple(default)
        checks.require(
            self.candidates.size <= _MOST_CLIPS,
            owner,
            "candidates for a clip",
            f"be at most {_MOST_CLIPS}, not {self.candidates.size}",
            "Write Candidates.geometric(1, 1e6, 2).",
        )
        units = (math.ceil(Fraction(y) / unit) for y in self.candidates)
        return apart(min(max(1, y), integers.WIDEST) for y in units)

    def looks(self, context: Context, share: Budget) -> tuple[Fraction, ...]:
        """Return the shares of the budget for the looks at who has how much."""
        if self.share is not None:
            return (self.share,)
        pure = not share.is_zcdp
        if self.shared:
            # One draw for P partitions has about the noise of a bound of the root of P.
            reach = math.isqrt(context.reach) if context.jointly else context.reach
            looks = shares(context.partitions, reach, pure, context.about)
        else:
            looks = shares(1, 1, pure and context.partitions == 1)
        return tuple(beside_others(look, context.together) for look in looks)


def clipped_sum(
    context: Context,
    share: Budget,
    source: int,
    clips: Sequence[int],
    unit: Fraction = Fraction(1),
    clipping: Clipping = Clipping(),
    *,
    signed: bool = False,
    anchored: bool = True,
    early: bool = False,
) -> ClippedSum:
    """Return the release of a number that adds up over people, by a clip and noise.

    Args:
        context: the parameters of the pipeline.
        share: what it may cost, over all partitions of a person.
        source: the field that holds what one person adds, or ROWS.
        clips: the public clips in units, where the user gave none.
        unit: what one unit is worth.
        clipping: how the clip is chosen.
        signed: whether numbers below 0 count.
        anchored: whether it is a number of rows or values, of which most people have few.
        early: whether a first look is enough as soon as it shows that many people are there.
    """
    thresholds = clipping.thresholds(unit, clips, context.asker)
    looks = clipping.looks(context, share) if len(thresholds) > 1 else ()
    searches, noises = _costs(context, share, looks, clipping.shared)
    numbers = context.partitions or context.about or _UNKNOWN
    return ClippedSum(
        source=source,
        signed=signed,
        thresholds=thresholds,
        unit=unit,
        looks=searches,
        noise_costs=noises,
        jointly=context.jointly,
        shared=clipping.shared,
        anchored=anchored and clipping.candidates is None,
        bounded=context.depth is not None,
        numbers=numbers if clipping.shared else 1,
        alpha=context.alpha,
        early=early,
    )


def _costs(
    context: Context, share: Budget, looks: Sequence[Fraction], shared: bool
) -> tuple[tuple[Budget, ...], tuple[Budget, ...]]:
    """Return what each look at a histogram costs, and what the noise after it may cost."""
    spent = [share.split((look, 1 - look)) for look in looks]
    searches = tuple(search if shared else context.each(search) for search, _ in spent)
    noises = [noise for _, noise in spent] or [share]
    return searches, tuple(map(context.noise, noises))


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
class Sided(Profiled):
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

    several_owners: ClassVar[bool] = True

    one_sided: bool = False
    clip: str | checks.Real = "shared"
    clip_share: checks.Real | None = None
    search: SearchKind = AboveThreshold

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = type(self).__name__
        mend = 'Write clip=100, or clip="shared" to have it chosen privately.'
        if isinstance(self.clip, str):
            rule = f'be a number above 0, "shared" or "partition", not {checks.shown(self.clip)}'
            checks.require(self.clip in _CLIPS, owner, "clip", rule, mend)
        else:
            checks.fraction_between(owner, "clip", self.clip, 0, _LARGEST_CLIP, mend)
        if self.clip_share is not None:
            checks.fraction_between(owner, "clip_share", self.clip_share, 0, 1)
        checks.boolean(owner, "one_sided", self.one_sided)
        self._check_side()

    def _check_side(self) -> None:
        """Refuse options of the clip in a one-sided release, and those of the search in others."""
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
    def pooled(self) -> bool:
        """Whether its noise is drawn together with that of others: by clip and noise."""
        return not self.one_sided

    @property
    def clipping(self) -> Clipping:
        """How its clip is chosen, or which it is."""
        owner, clip, share = type(self).__name__, self.clip, self.clip_share
        if not isinstance(clip, str):
            clip = checks.decimal(owner, "clip", clip)
        share = None if share is None else checks.number(owner, "clip_share", share)
        return Clipping(clip, share, self.candidates)

    @abc.abstractmethod
    def clipped(self, context: Context, share: Budget) -> Release:
        """Return the release by clip and noise."""

    def build(self, context: Context, share: Budget) -> Release:
        """Return the release by clip and noise, or one-sided; of several owners by its profile."""
        if not self.one_sided:
            return self.clipped(context, share)
        checks.require(
            self.search != TWO_PHASE or context.several_owners,
            type(self).__name__,
            "search",
            'not be "two_phase" with one_sided=True where rows have one owner: two '
            "phases err to both sides",
            "Leave both out: two phases are the default there.",
        )
        return super().build(context, share)

    def from_below(self, owner: str, chosen: Mapping[str, Any]) -> Metric:
        """Return it one-sided, as `Profiled` says."""
        because = f"in {owner}, which searches for the output and clips nobody"
        options.refuse(self, options.CLIP, because, "Leave it out.")
        return super().from_below(owner, {**chosen, "one_sided": True})

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
        search = self.search if self.one_sided else TWO_PHASE
        return dataclasses.replace(self, one_sided=True, search=search)
