"""Compile metrics and a budget into a program: what to collect, what to draw, and the costs.

All that a run must know is fixed here, by public parameters and what was released. What is chosen
first (`first_choices`) is part of what the whole budget pays for:

* the search for the bound on partitions per person spends a part of the whole budget on its
  histogram; a given bound is a ladder of one step, and costs nothing;
* each centre costs a part of what its metrics may spend;
* what they leave is shared out (`allocation`) among the parts of the metrics for the bound that
  was chosen, compiled where it runs, exactly as for a bound that was given; `builder` enters the
  cost of every release, and `account` checks that they fit.

Together they cost the whole. If (epsilon, delta) is spent as zCDP for every bound, the search is
counted in rho too. Else it spends epsilon, and the chosen bound decides whether what is left of
(epsilon, delta) is spent as zCDP.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from beam_dp.mechanisms.accounting.account import Entry, check_total
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.columns import Column
from beam_dp.mechanisms.bounding.table import Field
from beam_dp.mechanisms.histogram_choice import reach
from beam_dp.mechanisms.histogram_choice.reach import SHARE, ReachChoice
from beam_dp.mechanisms.metrics.base import CENTRE, CentreRequest, Context, Metric, MetricPart
from beam_dp.mechanisms.metrics.released import Profiler, Release, Released
from beam_dp.mechanisms.metrics.sums import ClippedSum, draw_together
from beam_dp.mechanisms.noise.partition_selection import (
    MOST,
    Selection,
    WeightedThreshold,
    best_selection,
)
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.allocation import SelectionRequest, share_out, weights_of
from beam_dp.mechanisms.planning.builder import Step, build, columns_of, pools_of
from beam_dp.mechanisms.planning.first_choices import Chosen, FirstVotes, centre_of
from beam_dp.mechanisms.summaries.histograms import PEOPLE, WEIGHTS, Measure, Summary
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

TOGETHER = 64
"""How many numbers may share one draw of noise over all partitions: larger draws take long."""
SELECTION = "partition selection"
"""The name of the costs of the selection in the account."""
SEARCH = "partitions per person"
"""The name of the cost of the search for the bound."""
_NOTHING = Fraction(0)


@dataclasses.dataclass(frozen=True)
class Program:
    """Everything that a run must know, fixed by public parameters and by what was chosen first.

    Before anything is chosen it is the program for the least bound: what is read and summarised is
    the same for all bounds, for it depends on the metrics alone.

    Attributes:
        metrics: what is released; empty only where partitions are selected.
        budget: the whole budget, as the user asked for it.
        edges: the bounds on partitions per person to choose from, in rising order; a given one.
        reach: the bound that it is compiled for.
        depth: the most rows per person and partition; None: unknown.
        selecting: how to select partitions; None for public ones.
        others: the columns of further owners, where rows have several.
        partitions: how many partitions there are; None: unknown.
        about: a guess of that by the choice of the bound, where it is unknown; None: none.
        centres: the centres that were chosen, in units; none: 0 stands for each.
        jointly: whether all public partitions share one draw of noise, where `reach` is their
            number: see `metrics.sums.Pool`.
        counted: how many partitions of a person count for the selection, where the bound is chosen.
        chosen: how the bound was chosen privately; None: it was given, or is not chosen yet.
        compiled: the attributes below of the programs that were made of one another, by all of the
            attributes above that make two programs equal.
        columns: the columns that are read, in the order of a table.
        fields: what is aggregated per person and partition.
        steps: the releases, one per part.
        share: what the selection may cost; None for public partitions.
        selection: how partitions are selected; None for public ones.
        entries: the entries of the account: label, cost, and how often it is spent.
        composed: the whole budget as it is spent (pure or zCDP).
    """

    metrics: tuple[Metric, ...]
    budget: Budget
    edges: tuple[int, ...]
    reach: int
    depth: int | None = None
    selecting: SelectionRequest | None = None
    others: tuple[str, ...] = ()
    partitions: int | None = None
    about: int | None = None
    centres: tuple[int, ...] = ()
    jointly: bool = False
    counted: int = MOST
    chosen: ReachChoice | None = dataclasses.field(default=None, compare=False)
    compiled: dict[tuple[Any, ...], dict[str, object]] = dataclasses.field(
        default_factory=dict, compare=False, repr=False
    )

    columns: tuple[Column, ...] = dataclasses.field(init=False, compare=False)
    fields: tuple[Field, ...] = dataclasses.field(init=False, compare=False)
    steps: tuple[Step, ...] = dataclasses.field(init=False, compare=False)
    share: Budget | None = dataclasses.field(init=False, compare=False)
    selection: Selection | None = dataclasses.field(init=False, compare=False)
    entries: tuple[Entry, ...] = dataclasses.field(init=False, compare=False)
    composed: Budget = dataclasses.field(init=False, compare=False)

    def __post_init__(self) -> None:
        asked = tuple(getattr(self, each.name) for each in dataclasses.fields(self) if each.compare)
        if asked not in self.compiled:
            self.compiled[asked] = _compiled(self)
        for name, value in self.compiled[asked].items():
            object.__setattr__(self, name, value)

    def at(self, chosen: Chosen | None) -> "Program":
        """Return the program for what was chosen first; None: nothing was, or not yet."""
        if chosen is None:
            return self
        found = chosen.reach
        if found is None:
            return dataclasses.replace(self, centres=chosen.centres)
        # A power of two: few programs are compiled.
        about = None if self.partitions else 1 << max(0, round(math.log2(found.guess)))
        return dataclasses.replace(
            self,
            reach=found.reach,
            about=about,
            centres=chosen.centres,
            jointly=found.jointly,
            counted=chosen.counted,
            chosen=found,
        )

    def at_bound(self, reach: int, *, jointly: bool = False) -> "Program":
        """Return the program for a bound."""
        return dataclasses.replace(self, reach=reach, jointly=jointly)

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """What is summarised per partition; the first measure counts the people."""
        people = Measure(PEOPLE if self.selecting is None else WEIGHTS)
        return (people, *(m for step in self.steps for m in step.release.measures))

    @property
    def counts_apart(self) -> bool:
        """Whether other pairs count for the selection than for the metrics."""
        return self.searches and self.selection is not None

    @property
    def keep_rows(self) -> bool:
        """Whether rows must stay apart until they are summarised."""
        return needs_rows(self.measures)

    @property
    def may_draw_jointly(self) -> bool:
        """Whether all its numbers may share a draw over all partitions, and nobody is cut.

        All partitions must be public, all numbers sums whose clips they share, and few enough.
        """
        partitions = self.partitions
        return (
            partitions == self.edges[-1]
            and not self.keep_rows
            and 0 < len(self.steps) * partitions <= TOGETHER
            and all(isinstance(step.release, ClippedSum) for step in self.steps)
        )

    @property
    def shared_measures(self) -> tuple[Measure, ...]:
        """What is summarised over all partitions, to choose the shared clips."""
        return tuple(chooser.shared_measure for chooser in self._choosers)

    @property
    def _choosers(self) -> list[ClippedSum]:
        choosers = (step.release.chooser for step in self.steps)
        return [chooser for chooser in choosers if isinstance(chooser, ClippedSum)]

    def choose_clips(self, view: PartitionView, noise: Noise) -> tuple[np.ndarray, ...]:
        """Draw the shared clips, in the order of `shared_measures`."""
        return tuple(
            chooser.choose_shared(view.at(index), noise)
            for index, chooser in enumerate(self._choosers)
        )

    def select(self, view: PartitionView, noise: Noise) -> np.ndarray:
        """Return the indexes of the partitions that may be named."""
        if self.selection is None:
            return np.arange(view.size)
        people, weights = (column[:, 0] for column in view.histogram(0, 1))
        return np.flatnonzero(self.selection.keep(people, noise, weights))

    def release(
        self, view: PartitionView, clips: tuple[np.ndarray, ...], noise: Noise
    ) -> tuple[Released, ...]:
        """Draw the numbers of every step for every partition."""
        shared = [clips[step.shared] if step.shared is not None else None for step in self.steps]
        views = [view.at(step.first, clip) for step, clip in zip(self.steps, shared, strict=True)]
        drawn: dict[int, Released] = {}
        for indexes in pools_of(self.steps).values():
            numbers = [self.steps[index].release for index in indexes]
            together = [number for number in numbers if isinstance(number, ClippedSum)]
            released = draw_together(together, [views[index] for index in indexes], noise)
            drawn |= zip(indexes, released, strict=True)
        for index, step in enumerate(self.steps):
            if index not in drawn:
                drawn[index] = step.release.draw(views[index], noise)
        return tuple(drawn[index] for index in range(len(self.steps)))

    def combine(self, drawn: Sequence[Released], sums: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the output columns of all metrics: a function of what was released.

        Args:
            drawn: the numbers of every step, for some partitions.
            sums: `sums` of the numbers of all partitions.
        """
        lost = self.chosen.lost_share if self.chosen is not None else 0.0
        known: dict[MetricPart, Released] = {}
        for step, released, each in zip(self.steps, drawn, sums, strict=True):
            told = step.release.with_lost(released.spread(each), lost)
            known[step.part] = dataclasses.replace(told, origin=step.release.origin)
        columns: list[np.ndarray] = []
        for metric in self.metrics:
            released = metric.combine([known[part] for part in metric.parts()])
            columns += metric.output_columns(released)
        return tuple(columns)

    def sums(self, drawn: Sequence[Released]) -> np.ndarray:
        """Return, per step, by what losses at a shared clip are shared out; they add up."""
        each = [r.cut.sums(r.values) if r.cut is not None else np.zeros(2) for r in drawn]
        return np.array(each).reshape(len(self.steps), 2)

    @property
    def searches(self) -> bool:
        """Whether the bound is chosen."""
        return len(self.edges) > 1

    @property
    def chooses(self) -> bool:
        """Whether anything is chosen first."""
        return self.searches or bool(self._centre_shares)

    @functools.cached_property
    def whole(self) -> Budget:
        """The whole budget; as zCDP where it is spent as zCDP for every bound.

        The noise of pure composition grows with the bound, that of zCDP with its root: where zCDP
        is better for the least bound, it is for the others.
        """
        if not self.chooses:
            return self.budget
        return share_out(self.budget, weights_of(self.metrics), self.edges[0], self.selecting)[0]

    @functools.cached_property
    def _centre_shares(self) -> dict[CentreRequest, Fraction]:
        """The centres that are chosen first, each with its part of the whole budget."""
        weights = [checks.number("weight", "weight", metric.weight) for metric in self.metrics]
        selected = self.selecting.weight if self.selecting is not None else _NOTHING
        whole = sum(weights, selected)
        parts: dict[CentreRequest, Fraction] = {}
        for metric, weight in zip(self.metrics, weights, strict=True):
            wanted = {part.asked_centre for part in metric.parts()} - {None}
            for centre in filter(None, wanted):
                parts[centre] = parts.get(centre, _NOTHING) + CENTRE * weight / whole
        return parts

    def cost(self, share: Fraction) -> Budget:
        """Return a share of the whole, without delta: all of that is left for the releases."""
        return self.whole.without_delta().scaled(share)

    @property
    def centre_costs(self) -> dict[CentreRequest, Budget]:
        """What the choice of each centre costs."""
        return {centre: self.cost(share) for centre, share in self._centre_shares.items()}

    @property
    def votes(self) -> FirstVotes:
        """What is counted for the choices."""
        costs = self.centre_costs.items()
        centres = (centre_of(*item, self.fields, self.columns) for item in costs)
        return FirstVotes(self.edges, tuple(centres))

    @property
    def search_cost(self) -> Budget:
        """What the search for the bound costs, if there is one."""
        return self.cost(self._search_share)

    @property
    def _search_share(self) -> Fraction:
        """The part of the search: a coarse histogram is enough where nothing is bounded by it."""
        return SHARE if self.metrics else SHARE / 4

    @property
    def left(self) -> Budget:
        """What the choices leave of the whole; they spend no delta."""
        spent = self._search_share * self.searches + sum(self._centre_shares.values(), _NOTHING)
        made = Budget.zcdp if self.whole.is_zcdp else Budget
        return made(self.whole.amount * (1 - spent), self.whole.delta)

    def noise_at(self, reach: int, jointly: bool = False) -> float:
        """Return the mean absolute noise per partition and unit at a bound, over what is released.

        It is that of the costs per partition; what is spent once for all of them chooses clips.

        Args:
            reach: the bound.
            jointly: whether all partitions share one draw of noise.
        """
        program = self.at_bound(reach, jointly=jointly)
        scales = [_price(step.release) for step in program.steps]
        scales = scales or [_scale([cost for _, cost, _ in program.entries[1:]])]
        mean = sum(scales) / len(scales)
        return mean * math.sqrt(2 / math.pi) if program.composed.is_zcdp else mean

    def choose(self, summary: Summary, noise: Noise) -> Chosen:
        """Draw the centres, and the histogram that chooses the bound.

        Args:
            summary: the votes of everybody.
            noise: the randomness.
        """
        votes = self.votes
        pairs = zip(votes.centres, votes.counted(summary)[1:], strict=True)
        centres = tuple(centre.choose(*counted, noise) for centre, counted in pairs)
        if not self.searches:
            return Chosen(None, centres)
        look = reach.draw(votes.people_per_step(summary), self.search_cost, noise)
        joint = self.noise_at(self.edges[-1], jointly=True) if self.may_draw_jointly else None
        chosen = reach.choose(look, self.edges, self.noise_at, self.partitions, joint)
        counted = self.at(Chosen(chosen, centres)).best_counted()
        return Chosen(chosen, centres, counted)

    def best_counted(self) -> int:
        """Return how many partitions of a person should count for the selection.

        It computes with the released histogram alone. The people who would count in a partition, of
        all people, are compared with those that keep it half of the time.
        """
        if self.share is None or self.selecting is None or not self.chosen or self.chosen.top < 0:
            return MOST
        share, pre_threshold, found = self.share, self.selecting.pre_threshold, self.chosen
        shown = found.look.counts[: found.top + 1].tolist()
        steps: list[tuple[float, int]] = list(zip(shown, self.edges, strict=False))

        def strength(most: int) -> float:
            selection = best_selection(share, most, pre_threshold)
            return sum(
                max(people, 0) * min(edge, most) / selection.middle(min(edge, most))
                for people, edge in steps
            )

        def is_possible(most: int) -> bool:
            try:
                best_selection(share, most, pre_threshold)
            except checks.ParameterError:  # a table that is too long
                return False
            return True

        fitting = [edge for edge in self.edges if edge <= MOST and is_possible(edge)]
        return max(fitting, key=strength, default=MOST)


def _compiled(asked: Program) -> dict[str, object]:
    """Return what is compiled for the bound of a program, by the names of its attributes."""
    budget = asked.left
    for metric in asked.metrics:
        metric.check_plan(budget, len(asked.metrics) == 1, asked.selecting is not None)
    composed, shares = share_out(budget, weights_of(asked.metrics), asked.reach, asked.selecting)
    selection = None
    entries: list[Entry] = []
    if asked.selecting is not None:
        most = min(asked.counted, asked.edges[-1]) if asked.searches else asked.reach
        selection = best_selection(shares[None], most, asked.selecting.pre_threshold)
        times = 1 if isinstance(selection, WeightedThreshold) else most
        entries.append((SELECTION, shares[None].scaled(Fraction(1, times)), times))
    costs = asked.centre_costs
    context = Context(
        columns_of(asked.metrics, asked.others),
        reach=asked.reach,
        depth=asked.depth,
        partitions=asked.partitions,
        about=asked.about,
        jointly=asked.jointly,
        centres=dict(zip(costs, asked.centres, strict=False)),
    )
    wanted = {part: each for part, each in shares.items() if part is not None}
    steps, of_steps = build(asked.metrics, wanted, context)
    entries += of_steps
    check_total(composed, entries)
    first = [(SEARCH, asked.search_cost, 1)] if asked.searches else []
    first += [(f"centre of {c.column.name}", cost, 1) for c, cost in costs.items()]
    return {
        "columns": context.columns,
        "fields": tuple(context.fields),
        "steps": steps,
        "share": shares.get(None),
        "selection": selection,
        "entries": (*first, *entries),
        "composed": composed,
    }


def needs_rows(measures: Sequence[Measure | Relation]) -> bool:
    """Return whether rows must stay apart until they are summarised: owner lines need them."""
    return any(isinstance(measure, Relation) for measure in measures)


def _price(release: Release) -> float:
    """Return the scale of the noise of a release per partition, for a clip of 1."""
    if isinstance(release, ClippedSum):
        return release.price
    return _scale([spending.cost for spending in release.spends if not spending.once])


def _scale(costs: Sequence[Budget]) -> float:
    """Return the scale of noise that costs so much: Gauss's if any part is counted in rho."""
    rho = sum(float(cost.amount) for cost in costs if cost.is_zcdp)
    epsilon = sum(float(cost.amount) for cost in costs if not cost.is_zcdp)
    return math.sqrt(1 / (2 * rho)) if rho else 1 / epsilon


def compile_program(
    asked: Sequence[Metric],
    budget: Budget,
    reach: int | tuple[int, ...],
    *,
    depth: int | None = None,
    selection: SelectionRequest | None = None,
    others: Sequence[str] = (),
    partitions: int | None = None,
) -> Program:
    """Return the program for a bound on partitions per person, or for the least to choose from.

    The ladder ends where a metric can no longer be released with its part of the budget, which
    falls as the bound grows.

    Args:
        asked: the metrics; empty only where partitions are selected.
        budget: the whole budget.
        reach: the most partitions that a person can have rows in; or the bounds that can be chosen,
            in rising order.
        depth: the most rows per person and partition; None: unknown.
        selection: how to select partitions; None for public ones.
        others: the columns of further owners, where rows have several.
        partitions: how many partitions there are; None: unknown.

    Raises:
        ValueError: when delta is needed and 0, a column has two units, or a metric refuses.
    """
    edges = reach if isinstance(reach, tuple) else (reach,)
    program = functools.partial(
        Program,
        tuple(metric.beside(asked) for metric in asked),
        budget,
        depth=depth,
        selecting=selection,
        others=tuple(others),
        partitions=partitions,
    )

    def is_possible(bound: int) -> bool:
        try:
            program(edges, bound)
        except checks.ParameterError:
            return False
        return True

    if len(edges) > 1:
        edges = tuple(itertools.takewhile(is_possible, edges)) or edges[:1]
    return program(edges, edges[0])


@dataclasses.dataclass(frozen=True)
class Loss:
    """What must be collected for the removal loss of one statistic.

    Attributes:
        columns: the columns that are read, in the order of a table.
        fields: what is aggregated per person and partition.
        profiler: what must be summarised, and how profiles are computed from it.
    """

    columns: tuple[Column, ...]
    fields: tuple[Field, ...]
    profiler: Profiler

    @property
    def keep_rows(self) -> bool:
        """Whether rows must stay apart until they are summarised."""
        return needs_rows(self.profiler.measures)


def compile_loss(statistic: Metric, removals: int, others: Sequence[str] = ()) -> Loss:
    """Return what must be collected for the profile B[0..removals] of a monotone statistic.

    Args:
        statistic: the metric.
        removals: K.
        others: the columns of further owners, where rows have several.

    Raises:
        ValueError: for more removals than a worker can hold.
    """
    context = Context(
        columns_of([statistic], others), asker=type(statistic).__name__, output=statistic.output
    )
    profiler = statistic.profiler(context, context.check_removals(removals))
    return Loss(context.columns, tuple(context.fields), profiler)
