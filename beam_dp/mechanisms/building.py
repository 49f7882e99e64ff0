"""Build the releases of a program, part by part, and enter what each of them spends."""

import dataclasses
import functools
import math
from fractions import Fraction

from beam_dp.mechanisms import checks, metrics
from beam_dp.mechanisms.budget import Budget, Ledger
from beam_dp.mechanisms.candidates import Candidates
from beam_dp.mechanisms.contributions import Field
from beam_dp.mechanisms.metrics import SearchKind
from beam_dp.mechanisms.parts import Part
from beam_dp.mechanisms.releases import (
    ALPHA,
    ClippedSum,
    DirectRelease,
    PeopleRelease,
    Profiled,
)
from beam_dp.mechanisms.statistics import PEOPLE, ROWS, Measure

Release = PeopleRelease | ClippedSum | DirectRelease

_VALUE_CLIPS, _ROW_CLIPS = 84, 41
_MOST_CLIPS = 4096
_OWNERS = {"rows": "Count", "sum": "Sum"}  # the metrics that take candidates for their clips
_SUM_BITS, _EXTREME_RATIO = 17, 1.01


@dataclasses.dataclass(frozen=True)
class Step:
    """A part with its release, the name of its costs, and where its measures begin."""

    part: Part
    label: str
    release: Release
    first: int
    shared: int | None


class Builder:
    """Collect the fields, measures and costs of the parts, one after the other."""

    def __init__(
        self,
        units: dict[str, Fraction],
        reach: int,
        depth: int | None,
        quotients: frozenset[Part],
        single: bool = False,
    ) -> None:
        self.units = units
        self.fields: list[Field] = []
        self.steps: list[Step] = []
        self._reach, self._depth, self._quotients = reach, depth, quotients
        self._single = single
        self._measures, self._shared = 1, 0

    def add(self, part: Part, share: Budget, ledger: Ledger) -> None:
        """Append the part with its share of the budget, and enter what it spends."""
        release = self._release(part, share)
        shared = None
        words = str(len(self.steps)), part.kind, part.column
        label = " ".join(word for word in words if word)
        if isinstance(release, DirectRelease):
            ledger.spend(label, release.search.cost, self._reach)
        else:
            ledger.spend(f"{label}: noise", release.noise_cost, self._reach)
        if isinstance(release, ClippedSum) and release.search_cost is not None:
            ledger.spend(
                f"{label}: clip", release.search_cost, 1 if release.shared else self._reach
            )
            if release.shared:
                shared, self._shared = self._shared, self._shared + 1
        self.steps.append(Step(part, label, release, self._measures, shared))
        self._measures += len(release.measures)

    def _release(self, part: Part, share: Budget) -> Release:
        alpha = ALPHA / 2 if part in self._quotients else ALPHA
        each = share.scaled(Fraction(1, self._reach))
        if part.kind == "people":
            return PeopleRelease(each, PEOPLE, alpha)
        if part.people:
            return PeopleRelease(each, self._source(part), alpha)
        if part.options.search is not None:
            return self._direct(part, part.options.search, each)
        return self._clipped(part, share, alpha)

    def _source(self, part: Part) -> int:
        """Return where the part's number per person and partition is found."""
        if part.kind in ("people", "rows"):
            return PEOPLE if part.kind == "people" else ROWS
        operation = "count" if part.kind == "valid" else part.kind
        field = Field(list(self.units).index(part.column), operation)
        if field not in self.fields:
            self.fields.append(field)
        return self.fields.index(field)

    def _unit(self, part: Part) -> Fraction:
        return Fraction(1) if part.kind in ("people", "rows", "valid") else self.units[part.column]

    def _clipped(self, part: Part, share: Budget, alpha: Fraction) -> ClippedSum:
        unit, shared = self._unit(part), part.options.clip == "shared"
        thresholds = self._thresholds(part, unit)
        search, noise = None, share
        if len(thresholds) > 1:
            search, noise = share.split(self._clip_weights(part))
            search = search if shared else search.scaled(Fraction(1, self._reach))
        return ClippedSum(
            self._source(part),
            part.kind == "sum",
            thresholds,
            unit,
            search,
            noise.scaled(Fraction(1, self._reach)),
            shared,
            alpha,
        )

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
            return tuple(1 << power for power in range(_VALUE_CLIPS))
        powers = [1 << power for power in range(_ROW_CLIPS)]
        if self._depth is None:
            return tuple(powers)
        return (*(power for power in powers if power < self._depth), self._depth)

    def _direct(self, part: Part, kind: SearchKind, each: Budget) -> DirectRelease:
        search = metrics.build_search(kind, each, float(part.options.beta))
        candidates = part.options.candidates
        if candidates is None:
            candidates = default_candidates(part.kind, self._unit(part))
        if part.kind == "min":
            candidates = candidates.mirrored()
        profiled = self.profiled(part, search.cap(candidates.size))
        blank = part.kind in ("max", "min") and part.options.candidates is None
        return DirectRelease(profiled.measure, profiled.unit, search, candidates, blank)

    def profiled(self, part: Part, removals: int) -> Profiled:
        """Return the removal profile B[0..removals] of a part."""
        sign = -1 if part.kind == "min" else 1
        additive = part.kind not in ("max", "min")
        measure = Measure(self._source(part), sign, (), removals + 1, additive)
        return Profiled(measure, self._unit(part))


@functools.lru_cache(maxsize=16)
def default_candidates(kind: str, unit: Fraction) -> Candidates:
    """Return the public outputs of a one-sided release that need no input.

    Counts and sums: the multiples of the unit of at most 17 significant bits, up to 2^63, so that
    neighbours differ by less than 2^-16 of their size. Extremes: 0 and +-unit 1.01^i up to 2^83
    units (about 10^19 at the default unit of one millionth): one person in the middle of the others
    moves a maximum far more than 1%, and fewer candidates let a search pass over fewer people.
    """
    if kind not in ("max", "min"):
        return Candidates.rounded(1 << 63, _SUM_BITS, max(1, math.ceil(1 / unit)))
    count = math.ceil((_VALUE_CLIPS - 1) * math.log(2) / math.log(_EXTREME_RATIO))
    steps = [float(unit * Fraction(_EXTREME_RATIO**power)) for power in range(count + 1)]
    return Candidates.of([*(-value for value in steps), 0.0, *steps])
