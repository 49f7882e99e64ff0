"""Compile metrics and a budget into a program: what to collect, what to draw, and the costs.

All that a run must know is fixed here, once, by public parameters: the whole budget is shared out
(`allocation`) among the requests of the metrics, and `builder` enters the cost of every release in
one account.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from beam_dp.mechanisms.accounting.account import Account
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.columns import Column
from beam_dp.mechanisms.bounding.table import Field
from beam_dp.mechanisms.clips.choice import Choice
from beam_dp.mechanisms.metrics.base import Metric, Output
from beam_dp.mechanisms.noise.partition_selection import Selection, best_selection
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.allocation import (
    SelectionRequest,
    share_out,
    weights_of,
)
from beam_dp.mechanisms.planning.builder import Step, build, pools_of
from beam_dp.mechanisms.planning.columns import columns_of
from beam_dp.mechanisms.planning.first_choices import Chosen
from beam_dp.mechanisms.reach.reach_choice import ReachChoice
from beam_dp.mechanisms.releases.clipped import ClippedSum, draw_together
from beam_dp.mechanisms.releases.released import Chooser, Released
from beam_dp.mechanisms.releases.request import Context
from beam_dp.mechanisms.releases.shifted_inverse import Profiler
from beam_dp.mechanisms.summaries.histograms import PEOPLE, Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

TOGETHER = 64
"""How many numbers may share one draw of noise over all partitions: larger draws take long."""
SELECTION = "partition selection"
"""The name of the costs of the selection in the account."""


@dataclasses.dataclass(frozen=True)
class Program:
    """Everything that a run must know, fixed by public parameters.

    Attributes:
        metrics: what was asked for.
        columns: the columns that are read, in the order of a table.
        fields: what is aggregated per person and partition.
        steps: the releases, one per request.
        selection: how partitions are selected; None for public ones.
        entries: the entries of the account: label, cost, and how often it is spent.
        budget: the whole budget as it is spent (pure or zCDP).
        asked: the whole budget as the user asked for it.
        reach: the most partitions that a person can have rows in.
        chosen: how that was chosen privately; None: it was given.
    """

    metrics: tuple[Metric, ...]
    columns: tuple[Column, ...]
    fields: tuple[Field, ...]
    steps: tuple[Step, ...]
    selection: Selection | None
    entries: tuple[tuple[str, Budget, int], ...]
    budget: Budget
    asked: Budget
    reach: int
    chosen: ReachChoice | None = None

    @property
    def model(self) -> "Program":
        """The program itself: a given bound leaves nothing to choose (see `reach_programs`)."""
        return self

    def at(self, chosen: Chosen | None) -> "Program":
        """Return the program itself."""
        return self

    @property
    def pieces(self) -> tuple[tuple[Budget, int], ...]:
        """What the output costs, release by release, each with how often it is spent."""
        return tuple((cost, times) for _, cost, times in self.entries)

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """What is summarised per partition; the first measure counts the people."""
        return (Measure(PEOPLE), *(m for step in self.steps for m in step.release.measures))

    @property
    def keep_rows(self) -> bool:
        """Whether rows must stay apart until they are summarised."""
        return needs_rows(self.measures)

    def may_draw_jointly(self, partitions: int) -> bool:
        """Return whether all its numbers may share a draw over so many partitions.

        All must be sums whose clips all partitions share, and few enough for one draw.
        """
        return (
            not self.keep_rows
            and 0 < len(self.steps) * partitions <= TOGETHER
            and all(
                isinstance(step.release, ClippedSum)
                and (step.release.shared or not step.release.looks)
                for step in self.steps
            )
        )

    @property
    def shared_measures(self) -> tuple[Measure, ...]:
        """What is summarised over all partitions, to choose the shared clips."""
        choosers = (chooser for _, chooser in self._choosers)
        return tuple(c.shared_measure for c in choosers if c.shared_measure is not None)

    @property
    def _choosers(self) -> list[tuple[Step, Chooser]]:
        """The steps that use a shared clip, and the chooser of each clip."""
        choosers = ((step, step.release.chooser) for step in self.steps)
        return [(step, chooser) for step, chooser in choosers if chooser is not None]

    def choose_clips(self, view: PartitionView, noise: Noise) -> tuple[Choice, ...]:
        """Draw the shared clips, in the order of `shared_measures`."""
        return tuple(
            chooser.choose_shared(view.at(index), noise)
            for index, (_, chooser) in enumerate(self._choosers)
        )

    def select(self, view: PartitionView, noise: Noise) -> np.ndarray:
        """Return the indexes of the partitions that may be named."""
        if self.selection is None:
            return np.arange(view.size)
        return np.flatnonzero(self.selection.keep(view.people(0), noise))

    def release(
        self, view: PartitionView, clips: tuple[Choice, ...], noise: Noise
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
        whole = [
            step.release.with_lost(released.spread(each), lost)
            for step, released, each in zip(self.steps, drawn, sums, strict=True)
        ]
        origins = [step.release.origin for step in self.steps]
        whole = [
            dataclasses.replace(each, origin=origin)
            for each, origin in zip(whole, origins, strict=True)
        ]
        known = dict(zip((step.request for step in self.steps), whole, strict=True))
        columns: list[np.ndarray] = []
        for metric in self.metrics:
            released = metric.combine([known[request] for request in metric.requests()])
            columns += metric.output_columns(released)
        return tuple(columns)

    def sums(self, drawn: Sequence[Released]) -> np.ndarray:
        """Return, per step, by what losses at a shared clip are shared out; they add up."""
        each = [r.cut.sums(r.values) if r.cut is not None else np.zeros(2) for r in drawn]
        return np.array(each).reshape(len(self.steps), 2)

    @property
    def spreads(self) -> bool:
        """Whether `combine` needs the sums over all partitions."""
        return bool(self.shared_measures)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The output columns of all metrics."""
        return tuple(output for metric in self.metrics for output in metric.outputs)


def needs_rows(measures: Sequence[Measure | Relation]) -> bool:
    """Return whether rows must stay apart until they are summarised: owner lines need them."""
    return any(isinstance(measure, Relation) for measure in measures)


def compile_program(
    asked: Sequence[Metric],
    budget: Budget,
    reach: int,
    *,
    depth: int | None = None,
    selection: SelectionRequest | None = None,
    others: Sequence[str] = (),
    partitions: int | None = None,
    about: int | None = None,
    jointly: bool = False,
) -> Program:
    """Share the budget out and return the program.

    Args:
        asked: the metrics; empty only where partitions are selected.
        budget: the whole budget.
        reach: the most partitions that a person can have rows in.
        depth: the most rows per person and partition; None: unknown.
        selection: how to select partitions; None for public ones.
        others: the columns of further owners, where rows have several.
        partitions: how many partitions there are; None: unknown.
        about: a guess of it, from what was released; None: there is none.
        jointly: whether all public partitions share one draw of noise, where `reach` is their
            number: see `releases.clipped.PoolNoise`.

    Raises:
        ValueError: when delta is needed and 0, a column has two units, or a metric refuses.
    """
    asked = tuple(metric.beside(asked) for metric in asked)
    for metric in asked:
        metric.check_plan(budget, len(asked) == 1, selection is not None)
    whole, shares = share_out(budget, weights_of(asked), reach, selection)
    account = Account(whole)
    selector = None
    if selection is not None:
        cost = account.spend(SELECTION, shares[None], reach)
        selector = best_selection(cost, selection.pre_threshold)
    columns = columns_of(asked, others)
    context = Context(
        columns,
        reach=reach,
        depth=depth,
        partitions=partitions,
        about=about,
        jointly=jointly,
    )
    wanted = {request: share for request, share in shares.items() if request is not None}
    steps = build(asked, wanted, context, account)
    return Program(
        metrics=tuple(asked),
        columns=columns,
        fields=tuple(context.fields),
        steps=steps,
        selection=selector,
        entries=account.entries,
        budget=whole,
        asked=budget,
        reach=reach,
    )


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
    profiler = statistic.profile_request().profiler(context, context.check_removals(removals))
    return Loss(context.columns, tuple(context.fields), profiler)
