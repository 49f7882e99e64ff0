"""Build the releases of a program, part by part, and enter what each of them spends."""

import dataclasses
import functools
import math
from fractions import Fraction
from typing import Any

from beam_dp.mechanisms import black_box, checks, preprocessed, tiered
from beam_dp.mechanisms.black_box import BlackBoxRelease
from beam_dp.mechanisms.budget import Budget, Ledger
from beam_dp.mechanisms.candidates import Candidates
from beam_dp.mechanisms.contributions import Field
from beam_dp.mechanisms.defaults import EXTREMES, VALUE_CLIPS, default_candidates
from beam_dp.mechanisms.direct import DirectRelease, Profiler, RankRelease, RowQuantile
from beam_dp.mechanisms.monotone import GuardedProfile
from beam_dp.mechanisms.owned import Relation
from beam_dp.mechanisms.parts import Options, Part
from beam_dp.mechanisms.preprocessed import PreprocessedRelease
from beam_dp.mechanisms.profilers import KthRow, Owners, Profiled, UserProfile
from beam_dp.mechanisms.ratios import RatioRelease, mechanism_of
from beam_dp.mechanisms.releases import ALPHA, OVERSHOOT, ClippedDistinct, ClippedSum, PeopleRelease
from beam_dp.mechanisms.search import AboveThreshold, RankSearch
from beam_dp.mechanisms.searching import TWO_PHASE, SearchKind, build_search
from beam_dp.mechanisms.statistics import PEOPLE, ROWS, Measure
from beam_dp.mechanisms.tiers import TierRelation
from beam_dp.mechanisms.two_phase import (
    TwoPhase,
    TwoPhaseDistinct,
    floor_removals,
    floor_search,
    split,
)
from beam_dp.mechanisms.weighted import WeightedMedian

Release = (
    PeopleRelease
    | ClippedSum
    | DirectRelease
    | TwoPhase
    | TwoPhaseDistinct
    | RankRelease
    | RowQuantile
    | RatioRelease
    | PreprocessedRelease
    | BlackBoxRelease
    | WeightedMedian
)

_ROW_CLIPS = 41
_MOST_CLIPS = 4096
_OWNERS = {"rows": "Count", "sum": "Sum", "distinct": "DistinctCount"}  # candidates for clips
_OPERATIONS = {"valid": "count"}
_OF_ITEMS = ("distinct", "frequency", "squares", "pairs")
_COARSE = Fraction(1, 1000)
_COUNT_CLIP = Fraction(1, 2)  # of the number of rows: cutting everybody costs more than noise
_COUNT_SHARE = Fraction(1, 5)  # of a row quantile's budget, for the number of rows
_THINNED = 1 << 22  # rows that a k-th largest may be thinned to; sorting for more saves nothing


@dataclasses.dataclass(frozen=True)
class Step:
    """A part with its release, the name of its costs, where its measures begin, and its share."""

    part: Part
    label: str
    release: Release
    first: int
    shared: int | None
    share: Budget


class Builder:
    """Collect the fields, measures and costs of the parts, one after the other."""

    def __init__(
        self,
        units: dict[str, Fraction],
        reach: int,
        depth: int | None,
        quotients: frozenset[Part],
        single: bool = False,
        items: tuple[str, ...] = (),
        flags: tuple[tuple[str, Any], ...] = (),
        two_owners: bool = False,
        partitions: int | None = None,
        orders: tuple[str, ...] = (),
    ) -> None:
        self.units, self.items, self.flags, self.orders = units, items, flags, orders
        self._second = len(units) if two_owners else -1
        self.fields: list[Field] = []
        self.steps: list[Step] = []
        self._reach, self._depth, self._quotients = reach, depth, quotients
        self._single, self._partitions = single, 1 if single else partitions
        self._measures, self._shared = 1, 0

    def add(self, part: Part, share: Budget, ledger: Ledger) -> None:
        """Append the part with its share of the budget, and enter what it spends."""
        release = self._release(part, share)
        shared = None
        words = str(len(self.steps)), part.kind, part.column
        label = " ".join(word for word in words if word)
        if isinstance(release, (PeopleRelease, ClippedSum)):
            ledger.spend(f"{label}: noise", release.noise_cost, self._reach)
        else:
            ledger.spend(label, release.cost, self._reach)
        chooser = None
        if isinstance(release, (ClippedSum, PreprocessedRelease)):
            chooser = release.chooser
        if chooser is not None and chooser.search_cost is not None:
            ledger.spend(
                f"{label}: clip", chooser.search_cost, 1 if chooser.shared else self._reach
            )
            if chooser.shared:
                shared, self._shared = self._shared, self._shared + 1
        each = share.scaled(Fraction(1, self._reach))
        self.steps.append(Step(part, label, release, self._measures, shared, each))
        self._measures += len(release.measures)

    def _release(self, part: Part, share: Budget) -> Release:
        alpha = ALPHA / 2 if part in self._quotients else ALPHA
        each = share.scaled(Fraction(1, self._reach))
        if part.kind == "people":
            return PeopleRelease(each, PEOPLE, alpha)
        if part.kind == "preprocessed":
            return self._preprocessed(part, share, alpha)
        if part.kind == "ratio":
            return self._ratio(part, share, alpha)
        if part.kind == "black_box":
            return self._black_box(part, each)
        if part.people:
            return PeopleRelease(each, self._source(part), alpha)
        if part.kind == "rank":
            return self._ranks(part, each)
        if part.kind == "quantile":
            return self._row_quantile(part, share, alpha)
        if part.options.search is not None:
            if part.options.search == TWO_PHASE:
                return self._two_phase(part, each)
            return self._direct(part, part.options.search, each)
        if part.kind == "distinct" and self._is_alone(part):
            relation, clip = Relation(self._column(part)), part.options.clip_share
            return TwoPhaseDistinct.of(relation, each, clip, alpha)
        return self._clipped(part, share, alpha)

    def _source(self, part: Part) -> int:
        """Return where the part's number per person and partition is found."""
        if part.kind in ("people", "rows"):
            return PEOPLE if part.kind == "people" else ROWS
        return self._field(self._column(part), _OPERATIONS.get(part.kind, part.kind))

    def _field(self, column: int, operation: str) -> int:
        field = Field(column, operation)
        if field not in self.fields:
            self.fields.append(field)
        return self.fields.index(field)

    def _column(self, part: Part) -> int:
        """Return the place of the part's column among values and items."""
        if part.kind not in _OF_ITEMS:
            return list(self.units).index(part.column)
        items = self.items[self._second >= 0 :]
        return len(self.units) + len(self.items) - len(items) + items.index(part.column)

    def _order(self, last_by: str | None, place: int = -1) -> int:
        """Return the place of the column that says which row is the last, or behind; -1: none."""
        place = place if last_by is None else self.orders.index(last_by)
        return -1 if place < 0 else len(self.units) + len(self.items) + len(self.flags) + place

    def _unit(self, part: Part) -> Fraction:
        counts = part.kind in ("people", "rows", "valid", *_OF_ITEMS)
        return Fraction(1) if counts else self.units[part.column]

    def _clipped(self, part: Part, share: Budget, alpha: Fraction) -> ClippedSum:
        unit, shared = self._unit(part), part.options.clip == "shared"
        thresholds = self._thresholds(part, unit)
        search, noise = None, share
        if len(thresholds) > 1:
            search, noise = share.split(self._clip_weights(part))
            search = search if shared else search.scaled(Fraction(1, self._reach))
        given = (
            self._source(part),
            part.kind == "sum",
            thresholds,
            unit,
            search,
            noise.scaled(Fraction(1, self._reach)),
            shared,
            alpha,
        )
        if part.kind == "distinct":
            return ClippedDistinct(*given, Relation(self._column(part)))
        return ClippedSum(*given)

    def _clip_weights(self, part: Part) -> tuple[Fraction, Fraction]:
        """Return the weights of the clip's choice and of the noise.

        The shift of the choice falls like 1 / share, the noise grows like 1 / (1 - share). What
        many partitions share must suffice for few people in each; one partition has them all.
        """
        default = Fraction(1, 8) if self._single else Fraction(1, 3)
        share = default if part.options.clip_share is None else part.options.clip_share
        return share, 1 - share

    def _thresholds(self, part: Part, unit: Fraction) -> tuple[int, ...]:
        """Return the public clips in units: the user's, or powers of two up to the row bound."""
        candidates = part.options.candidates
        if candidates is not None:
            checks.require(
                candidates.size <= _MOST_CLIPS,
                f"{_OWNERS[part.kind]}: candidates for a clip must be at most {_MOST_CLIPS}, "
                f"not {candidates.size}. Write Candidates.geometric(1, 1e6, 2).",
            )
            return tuple(sorted({max(1, math.ceil(Fraction(y) / unit)) for y in candidates}))
        if part.kind == "sum":
            return tuple(1 << power for power in range(VALUE_CLIPS))
        powers = [1 << power for power in range(_ROW_CLIPS)]
        if self._depth is None or part.kind == "distinct":
            return tuple(powers)
        return (*(power for power in powers if power < self._depth), self._depth)

    def _direct(self, part: Part, kind: SearchKind, each: Budget) -> DirectRelease:
        candidates = self._candidates(part)
        search = build_search(kind, each, float(part.options.beta), candidates.size)
        if isinstance(search, AboveThreshold):
            search = dataclasses.replace(search, gate=_is_blank(part))
        profiler = self.profiler(part, search.cap(candidates.size))
        return DirectRelease(profiler, search, candidates, _is_blank(part))

    def _two_phase(self, part: Part, each: Budget) -> TwoPhase:
        checks.require(
            part.kind not in _OWNERS or self._second >= 0,
            f'{_OWNERS.get(part.kind)}: search must not be "two-phase" with one_sided=True where '
            "rows have one owner: two phases err to both sides. Leave both out: two phases are the "
            "default there.",
        )
        floor, prices, noise = split(each)
        candidates, unit = self._candidates(part), self._unit(part)
        search = floor_search(floor, float(part.options.beta))
        profiler = self.profiler(part, floor_removals(search, candidates))
        listed = part.options.candidates is not None
        rest = listed, _is_blank(part), float(part.options.beta)
        return TwoPhase(profiler, unit, search, prices, noise, candidates, *rest)

    def _is_alone(self, part: Part) -> bool:
        """Return whether a clip is chosen in each partition, and nobody gave the clips."""
        given = part.options
        return given.candidates is None and (self._single or given.clip == "partition")

    def _candidates(self, part: Part) -> Candidates:
        """Return the outputs of a search, in the order of the profile: mirrored for a minimum."""
        given = part.options.candidates
        found = default_candidates(part.kind, self._unit(part)) if given is None else given
        return found.mirrored() if part.kind == "min" else found

    def _ranks(self, part: Part, each: Budget) -> RankRelease:
        search = RankSearch(each, part.detail[0], float(part.options.beta))
        relation = Relation(self._column(part))
        return RankRelease(relation, self._unit(part), search, self._candidates(part))

    def _row_quantile(self, part: Part, share: Budget, alpha: Fraction) -> RowQuantile:
        counting, searching = share.split((_COUNT_SHARE, 1 - _COUNT_SHARE))
        rows = Part("valid", part.column, options=Options("partition", _COUNT_CLIP))
        count = self._clipped(rows, counting, alpha)
        candidates, each = self._candidates(part), Fraction(1, self._reach)
        beta = float(part.options.beta)
        search = AboveThreshold(searching.scaled(each), beta, min(OVERSHOOT, beta / 2))
        relation, removals = Relation(self._column(part)), search.cap(candidates.size)
        levels = KthRow(relation, self._unit(part), 1, removals)
        return RowQuantile(
            count,
            levels,
            part.detail[0],
            search,
            candidates,
            share.scaled(each),
            part.options.candidates is None,
        )

    def _preprocessed(
        self, part: Part, share: Budget, alpha: Fraction
    ) -> PreprocessedRelease | WeightedMedian:
        asked, epsilons = part.detail
        column, unit, order = self._column(part), self._unit(part), self._order(asked.last_by)
        field = functools.partial(self._field, column)
        if epsilons:
            tier = self._order(None, len(self.orders))
            lines = TierRelation(column, order=order, tier=tier, person_value=asked.person_value)
            if asked.statistic == "median":
                search = RankSearch(share.scaled(Fraction(1, self._reach)), beta=part.options.beta)
                candidates = part.options.candidates or default_candidates("rank", unit)
                return WeightedMedian(lines, unit, epsilons, search, candidates)
            return tiered.build(asked, lines, unit, epsilons, share, self._reach, alpha, field)
        relation = Relation(column, order=order)
        return preprocessed.build(asked, relation, unit, share, self._reach, alpha, field)

    def _black_box(self, part: Part, each: Budget) -> BlackBoxRelease:
        place = self._column(part), self._order(part.detail[3]), self._unit(part)
        candidates, beta = self._candidates(part), float(part.options.beta)
        return black_box.build(part.detail, *place, candidates, beta, each)

    def _ratio(self, part: Part, share: Budget, alpha: Fraction) -> RatioRelease:
        equals, method, neighbours = part.detail
        depth = 1 if part.people else self._depth
        checks.require(
            depth is not None,
            "Ratio: bounds must limit the rows of one person in a partition, as each row counts. "
            'Write bounds=dp.ContributionBounds(..., rows_per_partition=10), or per="person".',
        )
        flag = next(
            place
            for place, (name, value) in enumerate(self.flags)
            if (name, type(value), value) == (part.column, type(equals), equals)
        )
        column = len(self.units) + len(self.items) + flag
        ones, everything = ("max", "count") if part.people else ("sum", "count")
        some, most = Measure(self._field(column, ones)), Measure(self._field(column, everything))
        reach, changed = self._reach, min(2 * self._reach, self._partitions or 2 * self._reach)
        mechanism = mechanism_of(method, neighbours, share, depth or 1, reach, changed)
        each = share.scaled(Fraction(1, reach))
        return RatioRelease(mechanism, some, most, part.people, alpha, each)

    def profiler(self, part: Part, removals: int) -> Profiler:
        """Return what makes the removal profile B[0..removals] of a part."""
        unit, sign = self._unit(part), -1 if part.kind == "min" else 1
        if part.kind in EXTREMES[:2] and self._second >= 0:
            relation = Relation(self._column(part), self._second)
            return Owners("largest", relation, removals, unit, sign)
        if part.kind in ("rows", "sum") and self._second >= 0:
            weight = -1 if part.kind == "rows" else self._column(part)
            relation, coarse = Relation(-1, self._second, weight), _coarse(part.kind, unit)
            return Owners("rows", relation, removals, unit, coarse=coarse)
        if part.kind in _OF_ITEMS:
            most = removals + 1 if part.kind == "distinct" and self._second < 0 else 0
            relation = Relation(self._column(part), self._second, most=most)
            return Owners(part.kind, relation, removals)
        if part.kind == "kth":
            rank = part.detail[0]
            most = removals + 1 if rank * (removals + 1) <= _THINNED else 0
            relation = Relation(self._column(part), most=most, rank=rank)
            return KthRow(relation, unit, rank, removals)
        if part.kind == "custom":
            function = GuardedProfile(part.detail[0], removals, part.detail[1])
            return UserProfile(Relation(self._column(part)), unit, function)
        additive = part.kind not in EXTREMES
        return Profiled(Measure(self._source(part), sign, (), removals + 1, additive), unit)


def _is_blank(part: Part) -> bool:
    """Return whether the lowest candidate stands for nobody: on the default grid of extremes."""
    return part.kind in EXTREMES and part.options.candidates is None


def _coarse(kind: str, unit: Fraction) -> int:
    """Return how many units of a sum of two owners are one: up to a thousandth, a power of ten."""
    factor = 1
    while kind == "sum" and unit * factor * 10 <= _COARSE:
        factor *= 10
    return factor
