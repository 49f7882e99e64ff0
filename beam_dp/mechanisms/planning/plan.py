"""Say what a program would spend on what, and how far its numbers would stray: no data needed.

Say what a preprocessed statistic promises, in words and numbers, before any data is read.

Where g = f (proved beside `preprocessing.enough_for_mean` and `enough_for_variance`; for the other
statistics by Lemma 3.6 of Cummings and Durfee 2020, which holds for all: |f - g| is at most the
greatest sum, over the orders in which people may come, of what each moves f beyond Delta):

* mean: range <= n Delta and |mean - empty| <= n Delta;
* variance: range^2 + variance <= n Delta;
* others: nobody, coming to any group of the others, moves f by more than Delta.

The rest of the error is noise of scale Delta / epsilon (zCDP: deviation Delta / sqrt(2 rho)).
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from beam_dp.mechanisms.accounting.budget import Budget, readable
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.tails import laplace_bound
from beam_dp.mechanisms.planning.builder import Step
from beam_dp.mechanisms.planning.parts import Part, parts_of
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.releases.clipped import ClippedSum
from beam_dp.mechanisms.releases.person_epsilon import TieredRelease
from beam_dp.mechanisms.releases.preprocessed import PreprocessedRelease
from beam_dp.mechanisms.releases.quantiles import RankRelease, RowQuantile
from beam_dp.mechanisms.releases.ratio import RatioRelease
from beam_dp.mechanisms.releases.released import PeopleRelease
from beam_dp.mechanisms.releases.shifted_inverse import DirectRelease
from beam_dp.mechanisms.releases.subsample import BlackBoxRelease
from beam_dp.mechanisms.releases.two_phase import TwoPhase, TwoPhaseDistinct
from beam_dp.mechanisms.releases.weighted_median import WeightedMedian
from beam_dp.mechanisms.search import why

_FINE = 1 << 20  # a Delta in steps of its grid: bounds are told to about a millionth


class Promise(NamedTuple):
    """What a plan says of a preprocessed statistic.

    Attributes:
        scale: of the noise.
        error: the mean absolute noise.
        reason: where g = f, and how far the noise strays.
    """

    scale: str
    error: str
    reason: str


def promise_of(release: PreprocessedRelease) -> Promise:
    """Return the scale of the noise, its mean size, and when nothing else is lost."""
    if isinstance(release, TieredRelease):
        return _tiered(release)
    adder = AdditiveNoise(release.noise_cost)
    bound = adder.bound(_FINE, release.alpha) / _FINE
    given = release.sensitivity
    exact = _exactly(release)
    if given is None:
        factor, per = _delta(release)
        scale, error = f"{adder.scale * factor:.4g} {per}", f"{adder.mean_error * factor:.4g} {per}"
        where = f"Delta = {factor:.4g} {per}; {exact}"
        strays = f"noise within {bound * factor:.4g} {per}"
    else:
        delta = float(given)
        scale, error = f"{adder.scale * delta:.4g}", f"{adder.mean_error * delta:.4g}"
        where, strays = f"Delta = {delta:.4g}; {exact}", f"noise within {bound * delta:.4g}"
    return Promise(scale, f"{error}, and |f - g|", f"{where}; {strays} for 95%")


def _delta(release: PreprocessedRelease) -> tuple[float, str]:
    """Return Delta as a multiple of R / n, for what R and n will be released."""
    if release.statistic.endswith("variance"):
        return 4.0, "R^2/n"
    return float(2 / (1 - 2 * release.trim)), "R/n"


def _exactly(release: PreprocessedRelease) -> str:
    if release.statistic == "mean":
        around = f"|mean - {float(release.empty):g}|"
        return f"g = f where the range and {around} are at most n Delta"
    if release.statistic.endswith("variance"):
        return "g = f where range^2 + variance is at most n Delta"
    return "g = f where nobody, coming to any others, moves f by more than Delta"


def _tiered(release: TieredRelease) -> Promise:
    """Say it in units of Delta, the sensitivity of the person who allows most."""
    rate = release.epsilons[-1]
    scale = f"{float(1 / rate):.4g} Delta"
    parts = ", ".join(f"{float(each / rate):.3g}" for each in release.epsilons)
    bound = laplace_bound(rate / _FINE, release.alpha) / _FINE
    where = f"by epsilon, a person moves g by at most {parts} times Delta"
    return Promise(
        scale, f"{scale}, and |f - g|", f"{where}; noise within {bound:.4g} Delta for 95%"
    )


_UNBOUNDED = ", which is all of them: bounds (--max_partitions) would shrink all noise"
_RATIOS = {"kulesza_suresh_wang": "noise on both counts (Kulesza, Suresh, Wang)"}
_HEADINGS = ("metric", "mechanism", "spends", "noise scale", "shift T", "expected error")


@dataclasses.dataclass(frozen=True)
class PlanRow:
    """What one released number is made of.

    Attributes:
        metric: the output columns that use it.
        mechanism: how it is drawn.
        epsilon: what it costs in all, over the partitions of one person; 0 under zCDP.
        rho: the same under zCDP; 0 otherwise.
        delta: the same for delta.
        noise_scale: the scale of the noise, in words.
        shift: how many people may be cut or passed over (T); 0, shown as "-", if there is none.
        expected_error: the mean absolute error of a released number, in words.
        reason: why this search, where `search="auto"` was asked for; of two phases, what is done
            for few people; of a preprocessed statistic, where it is not changed, and how far the
            noise strays.
    """

    metric: str
    mechanism: str
    epsilon: float
    rho: float
    delta: float
    noise_scale: str
    shift: int
    expected_error: str
    reason: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        spends = f"rho {self.rho:.4g}" if self.rho else f"epsilon {self.epsilon:.4g}"
        spends += f", delta {self.delta:.3g}" if self.delta else ""
        return (
            self.metric,
            self.mechanism,
            spends,
            self.noise_scale,
            str(self.shift or "-"),
            self.expected_error,
        )


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a release would spend; `str(plan)` is a table."""

    rows: tuple[PlanRow, ...]
    total: str

    def __str__(self) -> str:
        table = [_HEADINGS, *(row.cells for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in table
        ]
        reasons = [f"{row.metric}: {row.reason}" for row in self.rows if row.reason]
        return "\n".join([*lines, *reasons, f"in all: {self.total}"])


def describe(program: Program, unbounded: bool = False) -> Plan:
    """Return the plan of a program.

    Args:
        program: the program.
        unbounded: whether its reach is only the number of public partitions, as it could be bound.
    """
    rows = [_step_row(program, step) for step in program.steps]
    if program.selection is not None:
        rows.insert(0, _selection_row(program))
    total = f"{_total(program.asked)}; {_composition(program)}"
    return Plan(tuple(rows), total + _UNBOUNDED * (unbounded and program.reach > 1))


def _total(budget: Budget) -> str:
    spent = f"{'rho' if budget.is_zcdp else 'epsilon'} {readable(budget.amount)}"
    return f"{spent}, delta {readable(budget.delta)}"


def _composition(program: Program) -> str:
    kind = "zCDP" if program.budget.is_zcdp else "pure"
    if program.budget.is_zcdp and not program.asked.is_zcdp:
        kind = f"spent as rho {float(program.budget.amount):.4g} by zCDP"
    return f"{kind} composition, one person in at most {program.reach} partition(s)"


def _cost(program: Program, label: str) -> tuple[float, float, float]:
    """Return epsilon, rho and delta of all entries that begin with the label."""
    epsilon = rho = delta = 0.0
    for name, cost, times in program.entries:
        if name == label or name.startswith(label + ":"):
            epsilon += float(cost.amount * times) * (not cost.is_zcdp)
            rho += float(cost.amount * times) * cost.is_zcdp
            delta += float(cost.delta * times)
    return epsilon, rho, delta


def _selection_row(program: Program) -> PlanRow:
    epsilon, rho, delta = _cost(program, "partition selection")
    selection = program.selection
    assert selection is not None
    mechanism = "truncated geometric selection"
    error = f"kept for sure from {selection.threshold} people on"
    return PlanRow("(partitions)", mechanism, epsilon, rho, delta, "-", 0, error)


def _use(metric: Metric, part: Part) -> str:
    """Return what a metric takes from a part: the name of its output, and of what, if several."""
    named = {"valid": "people" if part.people else "rows"}.get(part.kind, part.kind)
    return metric.output if len(parts_of(metric)) == 1 else f"{metric.output} ({named})"


def _searched(step: Step) -> str:
    """Return how a step that searches does it."""
    release = step.release
    if isinstance(release, RankRelease):
        return "rank search, each person counts once"
    if isinstance(release, RowQuantile):
        return "noisy number of rows, then the k-th largest"
    if isinstance(release, PreprocessedRelease):
        how = "given sensitivity" if release.sensitivity is not None else "private sensitivity"
        if isinstance(release, TieredRelease):
            how += " and an epsilon per person"
        return f"preprocessing for a {how}, then noise"
    if isinstance(release, WeightedMedian):
        return "rank search, each person counts by their epsilon"
    if isinstance(release, BlackBoxRelease):
        return f"median of a function of {release.relation.blocks} blocks of people"
    if isinstance(release, RatioRelease):
        method, rows = step.part.detail[1], release.mechanism.rows
        how = _RATIOS.get(method, method.replace("_", " "))
        return f"ratio, {how}, at most {_counted(rows, 'row', 'rows')} per person"
    if isinstance(release, (TwoPhase, TwoPhaseDistinct)):
        return f"clip for each partition, then {AdditiveNoise(release.noise_cost).name}"
    assert isinstance(release, DirectRelease)
    return f"shifted inverse, {type(release.search).__name__}"


def _counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _reason(step: Step) -> str:
    """Return why this search, if it was left to the library, and what is done for few people."""
    release = step.release
    if isinstance(release, TwoPhase):
        few, most = release.search.shift(release.candidates.size), release.least_shift
        below = f", and from below: at most {most} of them are passed over" if release.blank else ""
        return f"an error of inf where fewer than about {few} people are{below}"
    if not isinstance(release, DirectRelease) or step.part.options.search != "auto":
        return ""
    return why(step.share, release.candidates.size, float(step.part.options.beta))


def _step_row(program: Program, step: Step) -> PlanRow:
    uses: Sequence[str] = [_use(m, step.part) for m in program.metrics if step.part in parts_of(m)]
    costs = _cost(program, step.label)
    release = step.release
    if not isinstance(release, (ClippedSum, PeopleRelease)):
        words, scale = f"at most {_counted(release.shift, 'person', 'people')}", "-"
        if isinstance(release, (TwoPhase, TwoPhaseDistinct)):
            adder = AdditiveNoise(release.noise_cost)
            scale = f"{adder.scale:.4g} clips"
            words = f"{adder.mean_error:.4g} clips, and what is cut"
        if isinstance(release, RatioRelease):
            words = "shrinks with the number of rows"
        if isinstance(release, PreprocessedRelease):
            scale, words, reason = promise_of(release)
            named = ", ".join(uses), _searched(step)
            return PlanRow(*named, *costs, scale, release.shift, words, reason)
        if isinstance(release, BlackBoxRelease):
            words = f"at most {_counted(release.shift, 'block', 'blocks')}"
        searched, reason = _searched(step), _reason(step)
        return PlanRow(", ".join(uses), searched, *costs, scale, release.shift, words, reason)
    adder = AdditiveNoise(release.noise_cost)
    if isinstance(release, ClippedSum) and release.search is not None:
        where = "all partitions" if release.shared else "each partition"
        mechanism = f"clip for {where}, then {adder.name}"
        scale, error = f"{adder.scale:.4g} clips", f"{adder.mean_error:.4g} clips, and what is cut"
        return PlanRow(", ".join(uses), mechanism, *costs, scale, release.shift, error)
    clip = float(release.thresholds[0] * release.unit) if isinstance(release, ClippedSum) else 1.0
    scale, error = f"{adder.scale * clip:.4g}", f"{adder.mean_error * clip:.4g}"
    return PlanRow(", ".join(uses), adder.name, *costs, scale, 0, error)
