"""Compile metrics and a budget into a program: what to collect, what to draw, and the costs.

All that a run must know is fixed here, by public parameters and what was released. What is chosen
first (`first_choices`) is part of what the whole budget pays for:

* partitions are selected first, where they are private; what is released of them is then clipped
  by what people have in the selected ones. How many partitions of a person count for that, one or
  up to 64, is chosen before where no bound is given (`CapChoice`);
* where some metric pays for every partition of a person, the search for a bound on these spends a
  part of the whole budget on its histogram; a given bound is a ladder of one step, and costs
  nothing;
* each centre costs a part of what its metrics may spend;
* what they leave is shared out (`allocation`) among the parts of the metrics for the bound that
  was chosen, compiled where it runs, exactly as for a bound that was given; `builder` enters the
  cost of every release, and `account` checks that they fit.

Together they cost the whole. If (epsilon, delta) is spent as zCDP for every bound, the search is
counted in rho too. Else it spends epsilon, and the chosen bound decides whether what is left of
(epsilon, delta) is spent as zCDP; where partitions are selected, the least bound does.
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
from beam_dp.mechanisms.histogram_choice import partition_bound
from beam_dp.mechanisms.histogram_choice.clip import ClipChoice
from beam_dp.mechanisms.histogram_choice.loss import SUMS
from beam_dp.mechanisms.histogram_choice.partition_bound import BoundChoice
from beam_dp.mechanisms.metrics.base import CENTRE, CentreRequest, Context, Metric, MetricPart
from beam_dp.mechanisms.metrics.clipped_sum import ClippedSum, draw_together
from beam_dp.mechanisms.metrics.released import Profiler, Released
from beam_dp.mechanisms.noise.partition_selection import (
    MOST,
    CapChoice,
    Selection,
    WeightedThreshold,
    best_selection,
)
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.allocation import SelectionRequest, share_out, weights_of
from beam_dp.mechanisms.planning.builder import (
    Step,
    build,
    build_both,
    clips_of,
    columns_of,
    pools_of,
)
from beam_dp.mechanisms.planning.first_choices import Chosen, FirstVotes, centre_of
from beam_dp.mechanisms.summaries.histograms import Measure, Summary
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

SELECTION = "partition selection"
"""The name of the costs of the selection in the account."""
SEARCH = "partitions per person"
"""The name of the cost of the search for the bound."""
SEARCH_SHARE = Fraction(2, 25)
"""The part of the whole budget that the search for the bound costs."""
CAP = "partitions that count for the selection"
"""The name of the cost of the choice of the selection's cap."""
CAP_SHARE = Fraction(1, 50)
"""The part of the whole budget that this choice costs."""
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
        reach: the most partitions of a person that count where each of them pays for itself.
        bound: the most partitions of a person that the user's bounds leave; None: no limit.
        depth: the most rows per person and partition; None: unknown.
        selecting: how to select partitions; None for public ones.
        others: the columns of further owners, where rows have several.
        partitions: how many partitions there are; None: they are not yet selected.
        centres: the centres that were chosen, in units; none, or None: 0 stands for each.
        cap: how many partitions of a person count for the selection, if it was chosen.
        chosen: how `reach` was chosen privately; None: it was given, or is not chosen yet.
        columns: the columns that are read, in the order of a table.
        fields: what is aggregated per person and partition.
        steps: the releases, one per part.
        gaussian: the same, with Gaussian noise where both kinds are possible.
        selection: how partitions are selected; None for public ones.
        entries: the entries of the account: label, cost, and how often it is spent.
        composed: the whole budget as it is spent (pure or zCDP).
    """

    metrics: tuple[Metric, ...]
    budget: Budget
    edges: tuple[int, ...]
    reach: int
    bound: int | None = None
    depth: int | None = None
    selecting: SelectionRequest | None = None
    others: tuple[str, ...] = ()
    partitions: int | None = None
    centres: tuple[int | None, ...] = ()
    cap: int | None = None
    chosen: BoundChoice | None = dataclasses.field(default=None, compare=False)

    columns: tuple[Column, ...] = dataclasses.field(init=False, compare=False)
    fields: tuple[Field, ...] = dataclasses.field(init=False, compare=False)
    steps: tuple[Step, ...] = dataclasses.field(init=False, compare=False)
    gaussian: tuple[Step, ...] = dataclasses.field(init=False, compare=False)
    selection: Selection | None = dataclasses.field(init=False, compare=False)
    entries: tuple[Entry, ...] = dataclasses.field(init=False, compare=False)
    composed: Budget = dataclasses.field(init=False, compare=False)
    _made: dict[tuple[Any, ...], "Program"] = dataclasses.field(
        init=False, compare=False, repr=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        for name, value in _compiled(self).items():
            object.__setattr__(self, name, value)

    def at(self, chosen: Chosen | None) -> "Program":
        """Return the program for what was chosen first; None: nothing was, or not yet."""
        if chosen is None:
            return self
        reach = self.reach if chosen.bound is None else chosen.bound.bound
        partitions = self.partitions if chosen.partitions is None else max(1, chosen.partitions)
        reach = min(reach, partitions or reach)  # of what was selected, nobody has more
        key = reach, chosen.centres, partitions, chosen.cap
        if key not in self._made:
            made = self._made[key] = dataclasses.replace(
                self,
                reach=reach,
                centres=chosen.centres,
                partitions=partitions,
                cap=chosen.cap,
                chosen=chosen.bound,
            )
            # What is collected before anything is chosen is read by what follows.
            same = (made.columns, made.fields) == (self.columns, self.fields)
            checks.require(same, "Program", "what is read", "be the same for all choices")
        return self._made[key]

    def at_bound(self, reach: int) -> "Program":
        """Return the program for a bound."""
        return dataclasses.replace(self, reach=reach)

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """What is summarised per partition."""
        return tuple(measure for step in self._every for measure in step.release.measures)

    @property
    def _every(self) -> list[Step]:
        """The steps, and those with Gaussian noise that may take their place."""
        return [*self.steps, *(step for step in self.gaussian if step not in self.steps)]

    def taken(self, clips: Sequence[np.ndarray]) -> tuple[Step, ...]:
        """Return the steps that err less, by the histograms that chose their clips.

        They are compared by the geometric mean of the errors of what has both.
        """
        logarithms = [
            math.log(two.release.expected_error(clips[two.shared], self.partitions or 1))
            - math.log(one.release.expected_error(clips[one.shared], self.partitions or 1))
            for one, two in zip(self.steps, self.gaussian, strict=True)
            if isinstance(one.release, ClippedSum)
            and isinstance(two.release, ClippedSum)
            and one is not two
            and one.shared is not None
            and two.shared is not None
        ]
        return self.gaussian if sum(logarithms) < 0 else self.steps

    @property
    def bounded_partitions(self) -> int | None:
        """How many partitions of a person count for what is no norm; None: all that are left."""
        return self.reach if self.searches else None

    @property
    def limit(self) -> int | None:
        """How many partitions of a person stay, where the user gave no bound; None: all do."""
        pays = any(map(costs_per_partition, self.steps))
        return self.reach if pays and not self.searches else None

    @property
    def may_be_gaussian(self) -> bool:
        """Whether what adds up may have either noise: of (epsilon, delta), and no given bound."""
        several = self.partitions != 1 or self.selecting is not None
        several = several and self.bound is None and not self.others and bool(self.metrics)
        delta = not self.budget.is_zcdp and self.budget.delta > 0
        parts = (part for metric in self.metrics for part in metric.parts())
        return several and delta and not any(part.wants_delta for part in parts)

    @property
    def caps(self) -> tuple[int, ...]:
        """How many partitions of a person may count for the selection: one of these numbers."""
        if self.selecting is None:
            return ()
        return (1, MOST) if self.bound is None else (min(MOST, self.bound),)

    @property
    def counted(self) -> int:
        """How many partitions of a person count for the selection."""
        return self.cap or self.caps[-1]

    @property
    def chooses_cap(self) -> bool:
        """Whether the cap of the selection is chosen."""
        return len(self.caps) > 1

    @property
    def keep_rows(self) -> bool:
        """Whether rows must stay apart until they are summarised."""
        return needs_rows(self.measures)

    @property
    def shared_measures(self) -> tuple[Measure, ...]:
        """What is summarised over all partitions, to choose the shared clips."""
        return tuple(chooser.measure for chooser in clips_of(self._every))

    def choose_clips(self, view: PartitionView, noise: Noise) -> tuple[np.ndarray, ...]:
        """Draw the shared clips, in the order of `shared_measures`."""
        return tuple(
            chooser.choose_shared(view.at(index), noise)
            for index, chooser in enumerate(clips_of(self._every))
        )

    def select(self, view: PartitionView, noise: Noise) -> np.ndarray:
        """Return the indexes of the partitions that may be named, by the summary of weights."""
        assert self.selection is not None
        sums = view.histogram(self.caps.index(self.counted), 1)
        people, weights = (column[:, 0] for column in sums)
        return np.flatnonzero(self.selection.keep(people, noise, weights))

    def release(
        self, view: PartitionView, clips: tuple[np.ndarray, ...], noise: Noise
    ) -> tuple[Released, ...]:
        """Draw the numbers of every step for every partition."""
        steps = self.taken(clips)
        shared = [clips[step.shared] if step.shared is not None else None for step in steps]
        views = [view.at(step.first, clip) for step, clip in zip(steps, shared, strict=True)]
        drawn: dict[int, Released] = {}
        for indexes in pools_of(steps).values():
            numbers = [steps[index].release for index in indexes]
            together = [number for number in numbers if isinstance(number, ClippedSum)]
            released = draw_together(together, [views[index] for index in indexes], noise)
            drawn |= zip(indexes, released, strict=True)
        for index, step in enumerate(steps):
            if index not in drawn:
                drawn[index] = step.release.draw(views[index], noise)
        return tuple(drawn[index] for index in range(len(steps)))

    def combine(self, drawn: Sequence[Released], sums: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the output columns of all metrics: of the `numbers` of the same."""
        pairs = zip(self.metrics, self.numbers(drawn, sums, self.metrics), strict=True)
        return tuple(column for metric, each in pairs for column in metric.output_columns(each))

    def numbers(
        self, drawn: Sequence[Released], sums: np.ndarray, metrics: Sequence[Metric]
    ) -> list[Released]:
        """Return the numbers of metrics that have its parts: a function of what was released.

        Args:
            drawn: the numbers of every step, for some partitions.
            sums: `sums` of the numbers of all partitions.
            metrics: the metrics.
        """
        lost = self.chosen.lost_share if self.chosen is not None else 0.0
        known: dict[MetricPart, Released] = {}
        for step, released, each in zip(self.steps, drawn, sums, strict=True):
            told = step.release.with_lost(released.spread(each), lost)
            told = told.rounded() if step.part.whole else told
            known[step.part] = dataclasses.replace(told, origin=step.release.origin)
        return [metric.combine([known[part] for part in metric.parts()]) for metric in metrics]

    def sums(self, drawn: Sequence[Released]) -> np.ndarray:
        """Return, per step, by what losses at a shared clip are shared out; they add up."""
        each = [r.cut.sums(r.values) if r.cut is not None else np.zeros(SUMS) for r in drawn]
        return np.array(each).reshape(len(self.steps), SUMS)

    @property
    def searches(self) -> bool:
        """Whether the bound is chosen."""
        return len(self.edges) > 1

    @property
    def chooses(self) -> bool:
        """Whether anything is chosen first."""
        return self.searches or self.chooses_cap or bool(self._centre_shares)

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
        return FirstVotes(self.edges, tuple(centres), self.cap_choice)

    @property
    def cap_choice(self) -> CapChoice | None:
        """How the cap of the selection is chosen; None: it is not."""
        if not self.chooses_cap:
            return None
        one, several = (dataclasses.replace(self, cap=cap).selection for cap in self.caps)
        assert one is not None and several is not None
        return CapChoice(self.cost(CAP_SHARE), one, several)

    @property
    def search_cost(self) -> Budget:
        """What the search for the bound costs, if there is one."""
        return self.cost(SEARCH_SHARE)

    @property
    def left(self) -> Budget:
        """What the choices leave of the whole; they spend no delta."""
        spent = SEARCH_SHARE * self.searches + CAP_SHARE * self.chooses_cap
        spent += sum(self._centre_shares.values(), _NOTHING)
        made = Budget.zcdp if self.whole.is_zcdp else Budget
        return made(self.whole.amount * (1 - spent), self.whole.delta)

    def noise_at(self, reach: int) -> float:
        """Return the mean absolute noise per partition and unit at a bound on partitions.

        It is that of the costs per partition; what is spent once needs no bound.

        Args:
            reach: the bound.
        """
        program = self.at_bound(reach)
        scales = [_scale(costs) for costs in map(costs_per_partition, program.steps) if costs]
        mean = sum(scales) / len(scales)
        return mean * math.sqrt(2 / math.pi) if program.composed.is_zcdp else mean

    def choose(self, summary: Summary, noise: Noise) -> Chosen:
        """Draw the centres, the cap of the selection, and the histogram that chooses the bound.

        Args:
            summary: the votes of everybody.
            noise: the randomness.
        """
        votes = self.votes
        _, *counted, found = votes.counted(summary)
        pairs = zip(votes.centres, counted, strict=True)
        centres = tuple(centre.choose(*each, noise) for centre, each in pairs)
        cap = None if votes.cap is None else votes.cap.choose(*found, noise)
        if not self.searches:
            return Chosen(None, centres, cap=cap)
        choice = ClipChoice(self.search_cost, self.edges)
        noisy = choice.draw(votes.people_per_step(summary)[None, None], noise)
        noises = list(map(self.noise_at, self.edges))
        bound = partition_bound.choose(choice, noisy, noises, self.partitions)
        return Chosen(bound, centres, cap=cap)


def costs_per_partition(step: Step) -> list[Budget]:
    """Return what every partition of a person pays for a release."""
    return [spending.cost for spending in step.release.spends if not spending.once]


def _compiled(asked: Program) -> dict[str, object]:
    """Return what is compiled for the bound of a program, by the names of its attributes."""
    budget = asked.left
    for metric in asked.metrics:
        metric.check_plan(budget, len(asked.metrics) == 1, asked.selecting is not None)
    # Partitions are selected before a bound is chosen: their share must be the same for all bounds.
    reach = asked.reach if asked.selecting is None else asked.edges[0]
    weights, gaussian = weights_of(asked.metrics), asked.may_be_gaussian
    composed, shares = share_out(budget, weights, reach, asked.selecting, gaussian)
    selection = None
    entries: list[Entry] = []
    if asked.selecting is not None:
        selection = best_selection(shares[None], asked.counted, asked.selecting.pre_threshold)
        times = 1 if isinstance(selection, WeightedThreshold) else asked.counted
        entries.append((SELECTION, shares[None].scaled(Fraction(1, times)), times))
    costs = asked.centre_costs
    context = Context(
        columns_of(asked.metrics, asked.others),
        reach=asked.reach,
        bound=asked.bound,
        depth=asked.depth,
        partitions=asked.partitions,
        centres=dict(zip(costs, asked.centres, strict=False)),
    )
    wanted = {part: each for part, each in shares.items() if part is not None}
    if gaussian and not composed.is_zcdp and asked.partitions != 1:
        delta = composed.delta - (shares[None].delta if None in shares else 0)
        steps, normal, of_steps = build_both(asked.metrics, wanted, context, delta)
    else:
        steps, of_steps = build(asked.metrics, wanted, context)
        normal = steps
    entries += of_steps
    check_total(composed, entries)
    first = [(SEARCH, asked.search_cost, 1)] if asked.searches else []
    first += [(CAP, asked.cost(CAP_SHARE), 1)] if asked.chooses_cap else []
    first += [(f"centre of {c.column.name}", cost, 1) for c, cost in costs.items()]
    return {
        "columns": context.columns,
        "fields": tuple(context.fields),
        "steps": steps,
        "gaussian": normal,
        "selection": selection,
        "entries": (*first, *entries),
        "composed": composed,
    }


def needs_rows(measures: Sequence[Measure | Relation]) -> bool:
    """Return whether rows must stay apart until they are summarised: owner lines need them."""
    return any(isinstance(measure, Relation) for measure in measures)


def _scale(costs: Sequence[Budget]) -> float:
    """Return the scale of noise that costs so much: Gauss's if any part is counted in rho."""
    rho = sum(float(cost.amount) for cost in costs if cost.is_zcdp)
    epsilon = sum(float(cost.amount) for cost in costs if not cost.is_zcdp)
    return math.sqrt(1 / (2 * rho)) if rho else 1 / epsilon


def as_released(asked: Sequence[Metric]) -> tuple[Metric, ...]:
    """Return metrics as they are released beside each other."""
    others = {id(old): new for metric in asked for old, new in metric.replaced(asked)}
    return tuple(others.get(id(metric), metric) for metric in asked)


def compile_program(
    asked: Sequence[Metric],
    budget: Budget,
    reach: int | tuple[int, ...],
    *,
    bound: int | None = None,
    depth: int | None = None,
    selection: SelectionRequest | None = None,
    others: Sequence[str] = (),
    partitions: int | None = None,
) -> Program:
    """Return the program for a bound on partitions per person, or for the least to choose from.

    Where every release is paid once, whatever partitions a person has, nothing is chosen.

    The ladder ends where a metric can no longer be released with its part of the budget, which
    falls as the bound grows.

    Args:
        asked: the metrics; empty only where partitions are selected.
        budget: the whole budget.
        reach: the most partitions that a person can have rows in; or the bounds that can be chosen,
            in rising order.
        bound: the most partitions of a person that the user's bounds leave; None: no limit.
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
        as_released(asked),
        budget,
        bound=bound,
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

    if len(edges) > 1 and not any(map(costs_per_partition, program(edges[:1], 1).steps)):
        edges = (1,)
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
