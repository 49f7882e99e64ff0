"""Build the releases of a program, part by part, and enter what each of them spends."""

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.accounting.ledger import Ledger
from beam_dp.mechanisms.candidates.defaults import EXTREMES, VALUE_CLIPS
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning import per_person, worker_limits
from beam_dp.mechanisms.planning.column_places import OF_ITEMS, Places
from beam_dp.mechanisms.planning.parts import Options, Part, parts_of, quotients
from beam_dp.mechanisms.profiles.from_summaries import KthRow, Owners, Profiled, UserProfile
from beam_dp.mechanisms.profiles.user_profile import GuardedProfile
from beam_dp.mechanisms.releases.clipped import ClippedDistinct, ClippedSum
from beam_dp.mechanisms.releases.preprocessed import PreprocessedRelease
from beam_dp.mechanisms.releases.quantiles import RankRelease, RowQuantile
from beam_dp.mechanisms.releases.ratio import RatioRelease
from beam_dp.mechanisms.releases.released import ALPHA, OVERSHOOT, PeopleRelease
from beam_dp.mechanisms.releases.shifted_inverse import DirectRelease, Profiler
from beam_dp.mechanisms.releases.subsample import BlackBoxRelease
from beam_dp.mechanisms.releases.two_phase import (
    TwoPhase,
    TwoPhaseDistinct,
    floor_removals,
    floor_search,
    split,
    unit_of,
)
from beam_dp.mechanisms.releases.weighted_median import WeightedMedian
from beam_dp.mechanisms.search import AboveThreshold, RankSearch
from beam_dp.mechanisms.search.choose import TWO_PHASE, SearchKind, build_search
from beam_dp.mechanisms.summaries.histograms import PEOPLE, Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation

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
_NAMES = {"rows": "Count", "sum": "Sum", "distinct": "DistinctCount"}  # candidates for clips
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
    """Collect the fields, measures and costs of the parts, one after the other.

    Args:
        places: where the parts find their data.
        asked: the metrics that the parts are of.
        reach: the most partitions that a person can have rows in.
        depth: the most rows per person and partition; None: unknown.
        single: whether there is one partition for all.
        partitions: how many there are; None: unknown.
    """

    def __init__(
        self,
        places: Places,
        asked: Sequence[Metric],
        reach: int,
        depth: int | None = None,
        single: bool = False,
        partitions: int | None = None,
    ) -> None:
        self.places = places
        self.steps: list[Step] = []
        self._asked, self._quotients = asked, quotients(asked)
        self._reach, self._depth = reach, depth
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
            return per_person.preprocessed_release(part, self.places, share, self._reach, alpha)
        if part.kind == "ratio":
            given = self.places, share, self._reach, alpha, self._depth, self._partitions
            return per_person.ratio_release(part, *given)
        if part.kind == "black_box":
            return per_person.black_box_release(part, self.places, each)
        if part.people:
            return PeopleRelease(each, self.places.source(part), alpha)
        if part.kind == "rank":
            return self._ranks(part, each)
        if part.kind == "quantile":
            return self._row_quantile(part, share, alpha)
        if part.options.search is not None:
            if part.options.search == TWO_PHASE:
                return self._two_phase(part, each)
            return self._direct(part, part.options.search, each)
        if part.kind == "distinct" and self._is_alone(part):
            relation, clip = Relation(self.places.column(part)), part.options.clip_share
            return TwoPhaseDistinct.of(relation, each, clip, alpha)
        return self._clipped(part, share, alpha)

    def _clipped(self, part: Part, share: Budget, alpha: Fraction) -> ClippedSum:
        unit, shared = self.places.unit(part), part.options.clip == "shared"
        thresholds = self._thresholds(part, unit)
        search, noise = None, share
        if len(thresholds) > 1:
            search, noise = share.split(self._clip_weights(part))
            search = search if shared else search.scaled(Fraction(1, self._reach))
        given = (
            self.places.source(part),
            part.kind == "sum",
            thresholds,
            unit,
            search,
            noise.scaled(Fraction(1, self._reach)),
            shared,
            alpha,
        )
        if part.kind == "distinct":
            return ClippedDistinct(*given, Relation(self.places.column(part)))
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
                f"{_NAMES[part.kind]}: candidates for a clip must be at most {_MOST_CLIPS}, "
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
        candidates = self.places.candidates(part)
        search = build_search(kind, each, float(part.options.beta), candidates.size)
        if isinstance(search, AboveThreshold):
            search = dataclasses.replace(search, gate=_is_blank(part))
        profiler = self.profiler(part, search.cap(candidates.size))
        return DirectRelease(profiler, search, candidates, _is_blank(part))

    def _two_phase(self, part: Part, each: Budget) -> TwoPhase:
        checks.require(
            part.kind not in _NAMES or self.places.second >= 0,
            f'{_NAMES.get(part.kind)}: search must not be "two-phase" with one_sided=True where '
            "rows have one owner: two phases err to both sides. Leave both out: two phases are the "
            "default there.",
        )
        floor, prices, noise = split(each)
        given, candidates = part.options.candidates, self.places.candidates(part)
        unit = unit_of(self.places.unit(part), given)
        search = floor_search(floor, float(part.options.beta))
        profiler = self.profiler(part, floor_removals(search, candidates))
        rest = given is not None, _is_blank(part), float(part.options.beta)
        return TwoPhase(profiler, unit, search, prices, noise, candidates, *rest)

    def _is_alone(self, part: Part) -> bool:
        """Return whether a clip is chosen in each partition, and nobody gave the clips."""
        given = part.options
        return given.candidates is None and (self._single or given.clip == "partition")

    def _ranks(self, part: Part, each: Budget) -> RankRelease:
        search = RankSearch(each, part.detail[0], float(part.options.beta))
        relation = Relation(self.places.column(part))
        return RankRelease(relation, self.places.unit(part), search, self.places.candidates(part))

    def _row_quantile(self, part: Part, share: Budget, alpha: Fraction) -> RowQuantile:
        counting, searching = share.split((_COUNT_SHARE, 1 - _COUNT_SHARE))
        rows = Part("valid", part.column, options=Options("partition", _COUNT_CLIP))
        count = self._clipped(rows, counting, alpha)
        candidates, each = self.places.candidates(part), Fraction(1, self._reach)
        beta = float(part.options.beta)
        search = AboveThreshold(searching.scaled(each), beta, min(OVERSHOOT, beta / 2))
        search = dataclasses.replace(search, gate=_is_blank(part))
        relation, removals = Relation(self.places.column(part)), search.cap(candidates.size)
        self._check_removals(part, removals)
        levels = KthRow(relation, self.places.unit(part), 1, removals)
        return RowQuantile(
            count,
            levels,
            part.detail[0],
            search,
            candidates,
            share.scaled(each),
            part.options.candidates is None,
        )

    def _check_removals(self, part: Part, removals: int) -> None:
        metric = next(metric for metric in self._asked if part in parts_of(metric))
        worker_limits.check_removals(metric, removals)

    def profiler(self, part: Part, removals: int) -> Profiler:
        """Return what makes the removal profile B[0..removals] of a part.

        Raises:
            ValueError: for more removals than a worker can hold.
        """
        self._check_removals(part, removals)
        unit, sign = self.places.unit(part), -1 if part.kind == "min" else 1
        if part.kind in EXTREMES[:2] and self.places.second >= 0:
            relation = Relation(self.places.column(part), self.places.second)
            return Owners("largest", relation, removals, unit, sign)
        if part.kind in ("rows", "sum") and self.places.second >= 0:
            weight = -1 if part.kind == "rows" else self.places.column(part)
            relation, coarse = Relation(-1, self.places.second, weight), _coarse(part.kind, unit)
            return Owners("rows", relation, removals, unit, coarse=coarse)
        if part.kind in OF_ITEMS:
            most = removals + 1 if part.kind == "distinct" and self.places.second < 0 else 0
            relation = Relation(self.places.column(part), self.places.second, most=most)
            return Owners(part.kind, relation, removals)
        if part.kind == "kth":
            rank = part.detail[0]
            most = removals + 1 if rank * (removals + 1) <= _THINNED else 0
            relation = Relation(self.places.column(part), most=most, rank=rank)
            return KthRow(relation, unit, rank, removals)
        if part.kind == "custom":
            function = GuardedProfile(part.detail[0], removals, part.detail[1])
            return UserProfile(Relation(self.places.column(part)), unit, function)
        additive = part.kind not in EXTREMES
        return Profiled(Measure(self.places.source(part), sign, (), removals + 1, additive), unit)


def _is_blank(part: Part) -> bool:
    """Return whether the lowest candidate stands for nobody: on the default grid of extremes."""
    return part.kind in EXTREMES and part.options.candidates is None


def _coarse(kind: str, unit: Fraction) -> int:
    """Return how many units of a sum of two owners are one: up to a thousandth, a power of ten."""
    factor = 1
    while kind == "sum" and unit * factor * 10 <= _COARSE:
        factor *= 10
    return factor
