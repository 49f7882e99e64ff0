"""Turn metrics and a budget into a program: what to collect, what to draw, what it costs.

The whole budget is shared out here, once, in exact rationals, before any row is read. One person
reaches at most `reach` partitions and adds to each released number of these; composition over them:

* **pure** (and for delta that partition selection spends): what is released per partition costs
  reach times its epsilon (and delta); a clip shared by all partitions costs its epsilon once.
* **zCDP**: the same with rho (Bun and Steinke 2016, Lemma 2.3); the whole (epsilon, delta) is first
  turned into the largest rho that is proved to imply it (Canonne, Kamath, Steinke 2020, Prop. 12).

Both are proved, so the one with the smaller noise may be taken: it is chosen by the parameters.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms import checks, metrics
from beam_dp.mechanisms.budget import Budget, Ledger
from beam_dp.mechanisms.candidates import Candidates
from beam_dp.mechanisms.contributions import Field
from beam_dp.mechanisms.metrics import Metric
from beam_dp.mechanisms.noise import Noise
from beam_dp.mechanisms.releases import (
    ALPHA,
    ClippedSum,
    DirectRelease,
    PeopleRelease,
    Profiled,
    Released,
)
from beam_dp.mechanisms.selection import TruncatedGeometric
from beam_dp.mechanisms.statistics import PEOPLE, ROWS, Cells, Measure

Release = PeopleRelease | ClippedSum | DirectRelease

_VALUE_CLIPS, _ROW_CLIPS = 84, 41
_MOST_CLIPS = 4096
_SUM_BITS, _EXTREME_RATIO = 17, 1.01


@dataclasses.dataclass(frozen=True)
class Part:
    """One number per partition that must be released; two metrics may share it.

    Attributes:
        kind: "people", "rows", "valid" (rows with a value), "sum", "max" or "min".
        column: the value column, "" for people and rows.
        people: for "valid": count people instead of rows.
        options: the metric whose options apply.
    """

    kind: str
    column: str = ""
    people: bool = False
    options: tuple[tuple[str, object], ...] = ()

    def option(self, name: str, default: object) -> object:
        """Return an option of the metric, or the default."""
        return dict(self.options).get(name, default)


def parts_of(metric: Metric) -> tuple[Part, ...]:
    """Return the parts that a metric is computed from."""
    match metric:
        case metrics.PeopleCount():
            return (Part("people"),)
        case metrics.Count():
            return (Part("rows", options=_additive(metric)),)
        case metrics.Sum():
            return (Part("sum", metric.column, options=_additive(metric)),)
        case metrics.Max() | metrics.Min():
            options = (("candidates", metric.candidates), ("search", metric.search))
            kind = "max" if isinstance(metric, metrics.Max) else "min"
            return (Part(kind, metric.column, options=(*options, ("beta", metric.beta))),)
        case metrics.Mean():
            options = (("clip", metric.clip), ("clip_share", metric.clip_share))
            return (
                Part("sum", metric.column, options=options),
                Part("valid", metric.column, metric.per == "person", options),
            )
    raise TypeError(f"PrivateAggregate: a metric must be one of beam_dp's, not {metric!r}.")


def _additive(metric: metrics.Count | metrics.Sum) -> tuple[tuple[str, object], ...]:
    options = (("clip", metric.clip), ("clip_share", metric.clip_share))
    if metric.candidates is not None:
        options += (("candidates", metric.candidates),)
    if metric.one_sided:
        options += (("one_sided", True), ("search", metric.search), ("beta", metric.beta))
    return options


@dataclasses.dataclass(frozen=True)
class SelectionRequest:
    """How partitions are to be selected: its part of the budget, and the fewest people."""

    weight: Fraction
    pre_threshold: int


@dataclasses.dataclass(frozen=True)
class Step:
    """A part with its release, the name of its costs, and where its measures begin."""

    part: Part
    label: str
    release: Release
    first: int
    shared: int | None


@dataclasses.dataclass(frozen=True)
class Program:
    """Everything that a run must know, fixed by public parameters.

    Attributes:
        metrics: what was asked for.
        columns: the value columns that are read.
        units: the grid of each.
        fields: what is aggregated per person and partition.
        steps: the releases, one per part.
        selection: how partitions are selected; None for public ones.
        entries: what is spent on what.
        budget: the whole, in the measure that was chosen.
        reach: the most partitions that a person can have rows in.
    """

    metrics: tuple[Metric, ...]
    columns: tuple[str, ...]
    units: tuple[Fraction, ...]
    fields: tuple[Field, ...]
    steps: tuple[Step, ...]
    selection: TruncatedGeometric | None
    entries: tuple[tuple[str, Budget, int], ...]
    budget: Budget
    reach: int

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What is summarised per partition; the first one counts the people."""
        return (Measure(PEOPLE), *(m for step in self.steps for m in step.release.measures))

    @property
    def shared_measures(self) -> tuple[Measure, ...]:
        """What is summarised over all partitions, to choose the shared clips."""
        releases = (step.release for step in self.steps if step.shared is not None)
        return tuple(r.shared_measure for r in releases if isinstance(r, ClippedSum) and r.shared_measure)

    def choose_clips(self, cells: Cells, noise: Noise) -> tuple[int, ...]:
        """Draw the shared clips, in the order of `shared_measures`."""
        return tuple(
            step.release.choose_shared(cells, step.shared, noise)
            for step in self.steps
            if step.shared is not None and isinstance(step.release, ClippedSum)
        )

    def select(self, cells: Cells, noise: Noise) -> np.ndarray:
        """Return the places of the partitions that may be named."""
        if self.selection is None:
            return np.arange(cells.size)
        return np.flatnonzero(self.selection.keep(cells.people(0), noise))

    def release(
        self, cells: Cells, clips: tuple[int, ...], noise: Noise
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Draw every metric for every partition: (values, errors) in the order of `metrics`."""
        drawn: dict[Part, Released] = {}
        for step in self.steps:
            clip = clips[step.shared] if step.shared is not None else None
            drawn[step.part] = step.release.release(cells, step.first, clip, noise)
        return [_combine([drawn[part] for part in parts_of(metric)]) for metric in self.metrics]


def _combine(parts: list[Released]) -> tuple[np.ndarray, np.ndarray]:
    """Return a metric from its parts: the one number, or the quotient of two."""
    if len(parts) == 1:
        return parts[0].values, parts[0].errors
    total, count = (part.values.astype(float) for part in parts)
    slack, doubt = parts[0].errors, parts[1].errors
    mean = total / np.maximum(count, 1.0)
    # For n in [count - doubt, count + doubt] and s in [total - slack, total + slack] the quotient
    # strays from total / count by at most (slack + |mean| doubt) / (count - doubt).
    with np.errstate(divide="ignore", invalid="ignore"):
        error = (slack + abs(mean) * doubt) / (count - doubt)
    return mean, np.where((count - doubt > 0) & np.isfinite(error), error, np.inf)


def compile_program(
    asked: Sequence[Metric],
    budget: Budget,
    reach: int,
    depth: int | None = None,
    selection: SelectionRequest | None = None,
) -> Program:
    """Share the budget out and return the program.

    Args:
        asked: the metrics; empty only where partitions are selected.
        budget: the whole.
        reach: the most partitions that a person can have rows in.
        depth: the most rows per person and partition; None: unknown.
        selection: how to select partitions; None for public ones.

    Raises:
        ValueError: when delta is needed and 0, or a column has two units.
    """
    weights: dict[Part, Fraction] = {}
    for metric in asked:
        parts = parts_of(metric)
        for part in parts:
            share = Fraction(metric.weight) / len(parts)
            weights[part] = weights.get(part, Fraction(0)) + share
    whole, chosen = _shares(budget, weights, reach, selection)
    builder = _Builder(_units(asked), reach, depth, _quotients(asked))
    ledger = Ledger(whole)
    selector = None
    if selection is not None:
        cost = chosen.pop(None)
        ledger.spend("partition selection", cost, reach)
        selector = TruncatedGeometric(_epsilon(cost), cost.delta, selection.pre_threshold)
    for part, share in chosen.items():
        builder.add(part, share, ledger)
    entries = tuple((entry.label, entry.cost, entry.times) for entry in ledger.entries)
    return Program(
        tuple(asked),
        tuple(builder.units),
        tuple(builder.units.values()),
        tuple(builder.fields),
        tuple(builder.steps),
        selector,
        entries,
        whole,
        reach,
    )


@dataclasses.dataclass(frozen=True)
class Loss:
    """What must be collected for the removal loss of one statistic.

    Attributes:
        columns: the value columns that are read.
        units: the grid of each.
        fields: what is aggregated per person and partition.
        profiled: the measure, and how profiles are made of it.
    """

    columns: tuple[str, ...]
    units: tuple[Fraction, ...]
    fields: tuple[Field, ...]
    profiled: Profiled


def compile_loss(statistic: Metric, removals: int) -> Loss:
    """Return what is needed for the profile B[0..removals] of a monotone statistic."""
    part = parts_of(statistic)[0]
    builder = _Builder(_units([statistic]), 1, None, frozenset())
    profiled = builder.profiled(part, removals)
    units = builder.units
    return Loss(tuple(units), tuple(units.values()), tuple(builder.fields), profiled)


def _units(asked: Sequence[Metric]) -> dict[str, Fraction]:
    """Return the unit of every value column that the metrics read."""
    units: dict[str, Fraction] = {}
    for metric in asked:
        for column in metric.columns:
            unit = Fraction(vars(metric)["unit"])
            checks.require(
                units.setdefault(column, unit) == unit,
                f"{type(metric).__name__}: unit must be the same for all metrics of "
                f"{column!r}, not both {float(units[column])} and {float(unit)}.",
            )
    return units


def _quotients(asked: Sequence[Metric]) -> frozenset[Part]:
    """Return the parts that a quotient uses: their error bounds must hold together."""
    return frozenset(part for metric in asked for part in _several(parts_of(metric)))


def _several(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return parts if len(parts) > 1 else ()


def _shares(
    budget: Budget,
    weights: dict[Part, Fraction],
    reach: int,
    selection: SelectionRequest | None,
) -> tuple[Budget, dict[Part | None, Budget]]:
    """Return the whole in the measure that was chosen, and what each part may spend.

    The key None stands for the selection of partitions, whose share is already per partition.
    """
    if budget.is_zcdp or not budget.delta:
        whole = budget
    else:
        whole = _smaller(budget, weights, reach, selection)
    keys: list[Part | None] = list(weights)
    values = list(weights.values())
    if selection is not None:
        checks.require(
            budget.delta > 0,
            "PrivatePartitions: delta must be above 0 to select partitions privately, not 0. "
            "Write Budget(epsilon=1.0, delta=1e-6), or give PublicPartitions([...]).",
        )
        keys.append(None)
        values.append(selection.weight)
    shares = dict(zip(keys, whole.without_delta().split(values), strict=True))
    if selection is not None:
        amount = shares[None].amount / reach
        delta = whole.delta / reach
        shares[None] = Budget.zcdp(amount, delta) if whole.is_zcdp else Budget(amount, delta)
    return whole, shares


def _smaller(
    budget: Budget,
    weights: dict[Part, Fraction],
    reach: int,
    selection: SelectionRequest | None,
) -> Budget:
    """Return the budget itself, or as zCDP where that has the smaller noise.

    For sensitivity 1, a share w of the whole and `reach` partitions the deviations are
    sqrt(2) reach / (epsilon w) and sqrt(reach / (2 rho w)).
    """
    kept = budget.delta / 2 if selection is not None else Fraction(0)
    rho = Budget(budget.amount, budget.delta - kept).to_zcdp().amount
    total = sum(weights.values(), selection.weight if selection is not None else Fraction(0))
    shares = [float(weight / total) for weight in weights.values()]
    pure = sum(math.sqrt(2) * reach / (float(budget.amount) * share) for share in shares)
    zcdp = sum(math.sqrt(reach / (2 * float(rho) * share)) for share in shares)
    return Budget.zcdp(rho, kept) if zcdp < pure else budget


def _epsilon(cost: Budget) -> Fraction:
    """Return an epsilon that the cost pays for: epsilon-DP is epsilon^2/2-zCDP."""
    return root(2 * cost.amount) if cost.is_zcdp else cost.amount


def root(value: Fraction) -> Fraction:
    """Return a rational just below the square root of `value`, good to about 2^-64 of it."""
    shift = 64 + max(0, value.denominator.bit_length() - value.numerator.bit_length())
    scaled = value.numerator * (1 << 2 * shift) // value.denominator
    return Fraction(math.isqrt(scaled), 1 << shift)


class _Builder:
    """Collect the fields, measures and costs of the parts, one after the other."""

    def __init__(
        self, units: dict[str, Fraction], reach: int, depth: int | None, quotients: frozenset[Part]
    ) -> None:
        self.units = units
        self.fields: list[Field] = []
        self.steps: list[Step] = []
        self._reach, self._depth, self._quotients = reach, depth, quotients
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
            ledger.spend(f"{label}: clip", release.search_cost, 1 if release.shared else self._reach)
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
        if part.kind in ("max", "min") or part.option("one_sided", False):
            return self._direct(part, each)
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
        unit, shared = self._unit(part), part.option("clip", "shared") == "shared"
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

        The shift of the choice falls like 1 / share, the noise grows like reach / (1 - share):
        an eighth costs little noise where people are many, which one partition suggests.
        """
        share = part.option("clip_share", None)
        default = Fraction(1, 8) if self._reach == 1 else Fraction(1, 4)
        portion = Fraction(share) if isinstance(share, (int, float, Fraction)) else default
        return portion, 1 - portion

    def _thresholds(self, part: Part, unit: Fraction) -> tuple[int, ...]:
        """Return the public clips in units: the user's, or powers of two up to the row bound."""
        candidates = part.option("candidates", None)
        if isinstance(candidates, Candidates):
            checks.require(
                candidates.size <= _MOST_CLIPS,
                f"{part.kind}: candidates for a clip must be at most {_MOST_CLIPS}, "
                f"not {candidates.size}. Write Candidates.geometric(1, 1e6, 2).",
            )
            return tuple(sorted({max(1, math.ceil(Fraction(y) / unit)) for y in candidates}))
        if part.kind == "sum":
            return tuple(1 << power for power in range(_VALUE_CLIPS))
        powers = [1 << power for power in range(_ROW_CLIPS)]
        if self._depth is None:
            return tuple(powers)
        return (*(power for power in powers if power < self._depth), self._depth)

    def _direct(self, part: Part, each: Budget) -> DirectRelease:
        kind = part.option("search", None)
        search = metrics.build_search(kind, each, float(str(part.option("beta", None))))
        candidates = part.option("candidates", None)
        if not isinstance(candidates, Candidates):
            candidates = default_candidates(part.kind, self._unit(part))
        if part.kind == "min":
            candidates = candidates.mirrored()
        profiled = self.profiled(part, search.cap(candidates.size))
        return DirectRelease(profiled.measure, profiled.unit, search, candidates)

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
