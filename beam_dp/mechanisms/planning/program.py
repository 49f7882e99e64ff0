"""Turn metrics and a budget into a program: what to collect, what to draw, what it costs.

Everything that a run must know is fixed here, once, by public parameters: the whole budget is
shared out (`allocation`) among the parts that the metrics are made of (`parts`), and every release
enters its cost in one ledger (`builder`).
"""

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.accounting.ledger import Ledger
from beam_dp.mechanisms.bounding.table import Field
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.metrics.person_epsilon import check_budget
from beam_dp.mechanisms.metrics.ratio import check_selected
from beam_dp.mechanisms.noise.partition_selection import TruncatedGeometric
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.allocation import SelectionRequest, epsilon_of, share_out
from beam_dp.mechanisms.planning.builder import Builder, Step
from beam_dp.mechanisms.planning.column_places import Places
from beam_dp.mechanisms.planning.parts import (
    Part,
    flags_of,
    items_of,
    orders_of,
    parts_of,
    units_of,
    weights_of,
)
from beam_dp.mechanisms.releases.clipped import ClippedSum
from beam_dp.mechanisms.releases.preprocessed import PreprocessedRelease
from beam_dp.mechanisms.releases.released import Released
from beam_dp.mechanisms.releases.shifted_inverse import Profiler
from beam_dp.mechanisms.summaries.histograms import PEOPLE, Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import Cells


@dataclasses.dataclass(frozen=True)
class Program:
    """Everything that a run must know, fixed by public parameters.

    Attributes:
        metrics: what was asked for.
        columns: the value columns that are read.
        units: the grid of each.
        items: the columns whose values are only compared; the second owner is the first of them.
        flags: the columns that are compared with a given value, and that value.
        orders: the columns that say which of a person's rows is the last.
        tiers: the column of people's own epsilons, and the public ones, where they have such.
        fields: what is aggregated per person and partition.
        steps: the releases, one per part.
        selection: how partitions are selected; None for public ones.
        entries: what is spent on what.
        budget: the whole, in the measure that was chosen.
        asked: the whole, as it was asked for.
        reach: the most partitions that a person can have rows in.
    """

    metrics: tuple[Metric, ...]
    columns: tuple[str, ...]
    units: tuple[Fraction, ...]
    items: tuple[str, ...]
    flags: tuple[tuple[str, Any], ...]
    orders: tuple[str, ...]
    tiers: tuple[str, tuple[checks.Real, ...]] | None
    fields: tuple[Field, ...]
    steps: tuple[Step, ...]
    selection: TruncatedGeometric | None
    entries: tuple[tuple[str, Budget, int], ...]
    budget: Budget
    asked: Budget
    reach: int

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """What is summarised per partition; the first one counts the people."""
        return (Measure(PEOPLE), *(m for step in self.steps for m in step.release.measures))

    @property
    def keep_rows(self) -> bool:
        """Whether rows must stay apart until they are summarised."""
        return any(isinstance(measure, Relation) for measure in self.measures)

    @property
    def shared_measures(self) -> tuple[Measure, ...]:
        """What is summarised over all partitions, to choose the shared clips."""
        choosers = (chooser for _, chooser in self._choosers)
        return tuple(c.shared_measure for c in choosers if c.shared_measure is not None)

    @property
    def _choosers(self) -> list[tuple[Step, ClippedSum]]:
        """The steps that use a shared clip, and what chooses it."""
        return [
            (step, step.release.chooser)
            for step in self.steps
            if isinstance(step.release, (ClippedSum, PreprocessedRelease))
            and step.shared is not None
            and step.release.chooser is not None
        ]

    def choose_clips(self, cells: Cells, noise: Noise) -> tuple[int, ...]:
        """Draw the shared clips, in the order of `shared_measures`."""
        return tuple(
            chooser.choose_shared(cells, place, noise)
            for place, (_, chooser) in enumerate(self._choosers)
        )

    def select(self, cells: Cells, noise: Noise) -> np.ndarray:
        """Return the places of the partitions that may be named."""
        if self.selection is None:
            return np.arange(cells.size)
        return np.flatnonzero(self.selection.keep(cells.people(0), noise))

    def release(
        self, cells: Cells, clips: tuple[int, ...], noise: Noise
    ) -> tuple[list[tuple[np.ndarray, np.ndarray]], tuple[float, ...]]:
        """Draw every metric for every partition.

        Returns (values, errors) in the order of `metrics`, and how many people each step shows.
        """
        drawn: dict[Part, Released] = {}
        for step in self.steps:
            clip = clips[step.shared] if step.shared is not None else None
            drawn[step.part] = step.release.release(cells, step.first, clip, noise)
        columns = [_combine([drawn[part] for part in parts_of(m)]) for m in self.metrics]
        return columns, tuple(released.shown for released in drawn.values())

    def is_doubtful(self, shown: Sequence[float]) -> tuple[bool, ...]:
        """Return for each metric whether its shared clip may have cut everybody.

        It has not where any of the released numbers shows more people than its shift.

        Args:
            shown: what `release` said that each step shows, summed over all partitions.
        """
        people = max(shown, default=0.0)
        doubtful = {
            step.part for step, chooser in self._choosers if people <= chooser.shift * self.reach
        }
        return tuple(not doubtful.isdisjoint(parts_of(metric)) for metric in self.metrics)


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
    single: bool = False,
    second: str | None = None,
    partitions: int | None = None,
) -> Program:
    """Share the budget out and return the program.

    Args:
        asked: the metrics; empty only where partitions are selected.
        budget: the whole.
        reach: the most partitions that a person can have rows in.
        depth: the most rows per person and partition; None: unknown.
        selection: how to select partitions; None for public ones.
        single: whether there is one partition for all.
        second: the column of the second owner, where rows have two.
        partitions: how many there are; None: unknown.

    Raises:
        ValueError: when delta is needed and 0, or a column has two units.
    """
    tiers = _tiers(asked, budget, selection)
    whole, chosen = share_out(budget, weights_of(asked), reach, selection)
    compared = items_of(asked, second), flags_of(asked), orders_of(asked)
    places = Places(units_of(asked), *compared, two_owners=second is not None)
    builder = Builder(places, asked, reach, depth, single, partitions)
    ledger = Ledger(whole)
    selector = None
    if selection is not None:
        check_selected(asked)
        cost = chosen[None]
        ledger.spend("partition selection", cost, reach)
        selector = TruncatedGeometric(epsilon_of(cost), cost.delta, selection.pre_threshold)
    for part, share in chosen.items():
        if part is not None:
            builder.add(part, share, ledger)
    entries = tuple((entry.label, entry.cost, entry.times) for entry in ledger.entries)
    return Program(
        tuple(asked),
        tuple(places.units),
        tuple(places.units.values()),
        places.items,
        places.flags,
        places.orders,
        tiers,
        tuple(places.fields),
        tuple(builder.steps),
        selector,
        entries,
        whole,
        budget,
        reach,
    )


def _tiers(
    asked: Sequence[Metric], budget: Budget, selection: SelectionRequest | None
) -> tuple[str, tuple[checks.Real, ...]] | None:
    """Return the column of people's own epsilons; refuse what would cost everybody the same."""
    found = [metric for metric in asked if metric.tiers is not None]
    if not found:
        return None
    checks.require(
        len(asked) == 1 and selection is None,
        "PreprocessSensitivity: partitions must be public ones for people with an epsilon of their "
        "own, who pay for nothing else. Write partitions=dp.PublicPartitions([...]).",
    )
    check_budget("PreprocessSensitivity", budget, vars(found[0])["epsilons"])
    return found[0].tiers


@dataclasses.dataclass(frozen=True)
class Loss:
    """What must be collected for the removal loss of one statistic.

    Attributes:
        columns: the value columns that are read.
        units: the grid of each.
        items: the columns whose values are only compared.
        fields: what is aggregated per person and partition.
        profiler: what must be summarised, and how profiles are made of it.
    """

    columns: tuple[str, ...]
    units: tuple[Fraction, ...]
    items: tuple[str, ...]
    fields: tuple[Field, ...]
    profiler: Profiler

    @property
    def keep_rows(self) -> bool:
        """Whether rows must stay apart until they are summarised."""
        return any(isinstance(measure, Relation) for measure in self.profiler.measures)


def compile_loss(statistic: Metric, removals: int, second: str | None = None) -> Loss:
    """Return what is needed for the profile B[0..removals] of a monotone statistic.

    Args:
        statistic: the metric.
        removals: K.
        second: the column of the second owner, where rows have two.
    """
    part = parts_of(statistic)[0]
    units, items = units_of([statistic]), items_of([statistic], second)
    places = Places(units, items, two_owners=second is not None)
    profiler = Builder(places, [statistic], 1).profiler(part, removals)
    return Loss(tuple(units), tuple(units.values()), items, tuple(places.fields), profiler)
