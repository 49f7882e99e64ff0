"""Compile a request: a pure function from what was asked for, and chosen first, to what runs.

The part of the budget that is left for the releases is shared out among their parts; each builds
its release, whose costs are entered in the account, and `check_total` sees that they fit.
"""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from beam_dp.mechanisms.accounting.budget import Budget, Entry, check_total, cost_of_all
from beam_dp.mechanisms.bounding.table import Column, Field, Role, table_order
from beam_dp.mechanisms.histogram_choice.clip_choice import clip_share_of_norm
from beam_dp.mechanisms.metrics.additive.additive_release import AdditiveRelease
from beam_dp.mechanisms.metrics.base import Context, Metric, MetricPart
from beam_dp.mechanisms.metrics.released import ALPHA, Profiler
from beam_dp.mechanisms.noise.noise_on_a_sum import JointNoise
from beam_dp.mechanisms.noise.partition_selection import WeightedThreshold, best_selection
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.budget_split import part_weights_of, share_out
from beam_dp.mechanisms.planning.program import NOTHING, Adaptive, Program, Step, needs_rows
from beam_dp.mechanisms.planning.request import Request

SELECTION = "partition selection"
"""The name of the costs of the selection in the account."""
SEARCH = "partitions per person"
"""The name of the cost of the search for the bound."""
CAP = "partitions that count for the selection"
"""The name of the cost of the choice of the selection's cap."""


def compile_program(request: Request) -> Program:
    """Return the program for a bound on partitions per person, or for the least to choose from.

    Where every release is paid once, whatever partitions a person has, nothing is chosen.

    The ladder ends where a metric can no longer be released with its part of the budget, which
    falls as the bound grows.

    Raises:
        ValueError: when delta is needed and 0, a column has two units, or a metric refuses.
    """
    request = dataclasses.replace(request, metrics=as_released(request.metrics))
    ladder = request.ladder

    def is_possible(bound: int) -> bool:
        try:
            program_at(request, bound)
        except checks.ParameterError:
            return False
        return True

    if request.searches:
        given = dataclasses.replace(request, ladder=ladder[:1])
        if not program_at(given, 1).pays_per_partition:
            ladder = (1,)
        else:
            ladder = tuple(itertools.takewhile(is_possible, ladder)) or ladder[:1]
    for cap in request.caps[:-1]:  # it may be chosen: what refuses it must do so before the run
        program_at(request, ladder[0], Adaptive(cap=cap))
    return compiled(dataclasses.replace(request, ladder=ladder))


def as_released(asked: Sequence[Metric]) -> tuple[Metric, ...]:
    """Return metrics as they are released beside each other."""
    others = {id(old): new for metric in asked for old, new in metric.replaced(asked)}
    return tuple(others.get(id(metric), metric) for metric in asked)


def compiled(request: Request, chosen: Adaptive = NOTHING) -> Program:
    """Return the program of a request for what was chosen first: by default nothing, or not yet.

    It is kept with the request, by all else that it is made of.
    """
    partitions = chosen.partitions_of(request.partitions)
    max_partitions = request.ladder[0] if chosen.bound is None else chosen.bound.bound
    # Of what was selected, nobody has more.
    key = min(max_partitions, partitions or max_partitions), dataclasses.replace(chosen, bound=None)
    if key not in request.compiled:
        request.compiled[key] = program_at(request, *key)
    made: Program = request.compiled[key]
    if chosen == NOTHING:
        return made
    first = compiled(request)
    # What is collected before anything is chosen is read by what follows.
    same = (made.columns, made.fields) == (first.columns, first.fields)
    checks.require(same, "Program", "what is read", "be the same for all choices")
    return dataclasses.replace(made, chosen=chosen)


def program_at(request: Request, max_partitions: int, chosen: Adaptive = NOTHING) -> Program:
    """Return the program for a bound on partitions.

    Args:
        request: what was asked for.
        max_partitions: the most partitions of a person that count where each of them pays for
            itself.
        chosen: what else was chosen: a centre that was not, or None, is 0.
    """
    partitions = chosen.partitions_of(request.partitions)
    budget, metrics, selecting = request.left, request.metrics, request.selection
    for metric in metrics:
        metric.check_plan(budget, len(metrics) == 1, selecting is not None)
    # Partitions are selected before a bound is chosen: their share must be the same for all bounds.
    shared = max_partitions if selecting is None else request.ladder[0]
    gaussian = may_be_gaussian(request, partitions)
    composed, shares = share_out(budget, part_weights_of(metrics), shared, selecting, gaussian)
    selection, costs = None, request.centre_costs
    entries = [(SEARCH, request.search_cost, 1)] if request.searches else []
    entries += [(CAP, request.cap_cost, 1)] if request.chooses_cap else []
    entries += [(f"centre of {c.column.name}", cost, 1) for c, cost in costs.items()]
    first = len(entries)
    if selecting is not None:
        cap = request.cap_of(chosen.cap)
        selection = best_selection(shares[None], cap, selecting.pre_threshold)
        times = 1 if isinstance(selection, WeightedThreshold) else cap
        entries.append((SELECTION, shares[None].scaled(Fraction(1, times)), times))
    context = Context(
        columns_of(metrics, request.others),
        max_partitions=max_partitions,
        bound=request.max_partitions,
        max_rows_per_partition=request.max_rows_per_partition,
        partitions=partitions,
        centres=dict(zip(costs, chosen.centres, strict=False)),
    )
    wanted = {part: each for part, each in shares.items() if part is not None}
    both = gaussian and not composed.is_zcdp and partitions != 1
    delta = composed.delta - (shares[None].delta if None in shares else 0)
    steps, with_gaussian, of_steps = build(metrics, wanted, context, delta if both else None)
    entries += of_steps
    check_total(composed, entries[first:])
    return Program(
        request=request,
        max_partitions=max_partitions,
        partitions=partitions,
        columns=context.columns,
        fields=tuple(context.fields),
        steps=steps,
        gaussian=with_gaussian,
        selection=selection,
        entries=tuple(entries),
        composed=composed,
    )


def may_be_gaussian(request: Request, partitions: int | None) -> bool:
    """Return whether what adds up may have either noise: of (epsilon, delta), and no given bound."""
    several = partitions != 1 or request.selection is not None
    several = several and request.max_partitions is None and not request.others
    delta = not request.budget.is_zcdp and request.budget.delta > 0
    parts = [part for metric in request.metrics for part in metric.parts()]
    return several and delta and bool(parts) and not any(part.wants_delta for part in parts)


def columns_of(asked: Sequence[Metric], others: Sequence[str] = ()) -> tuple[Column, ...]:
    """Return the columns that metrics read, once each, in the order of a table.

    An owner is another column even if the same column is compared too: owners are ids.

    Args:
        asked: the metrics.
        others: the columns of further owners, where rows have several.

    Raises:
        ValueError: when a column of numbers has two units.
    """
    read = [(metric, column) for metric in asked for column in metric.columns()]
    units: dict[str, Column] = {}
    for metric, column in read:
        if column.role is Role.VALUE:
            first = units.setdefault(column.name, column)
            checks.require(
                first.detail == column.detail,
                type(metric).__name__,
                "unit",
                f"be the same for all metrics of {column.name!r}, not both "
                f"{float(first.detail)} and {float(column.detail)}",
            )
    owners = (Column(name, Role.OWNER) for name in others)
    return table_order([*owners, *(column for _, column in read)])


def build(
    asked: Sequence[Metric],
    shares: Mapping[MetricPart, Budget],
    context: Context,
    delta: Fraction | None = None,
) -> tuple[tuple[Step, ...], tuple[Step, ...], list[Entry]]:
    """Return the steps of a program, those with Gaussian noise, and the entries of their costs.

    What adds up over several partitions is clipped by its L1 norm and has Laplace noise, or by its
    L2 norm and has Gaussian noise: two noisy histograms say which one errs less. Both are paid, a
    half of `clip_share_of_norm` each. All the noise together costs (epsilon, delta): as Laplace noise
    epsilon is split, as Gaussian noise the rho that implies (epsilon, delta) is. Where partitions
    are so few that Laplace noise errs less whatever people have, there is no choice.

    Args:
        asked: the metrics.
        shares: what each part may spend, over all partitions of a person.
        context: the parameters of the pipeline.
        delta: what Gaussian noise may spend of delta; None: there is one kind of noise.
    """
    for metric in asked:
        _check_parts(metric, context.columns)
    steps = _steps(asked, list(shares.items()), context)
    split = [
        s for s in steps if delta is not None and s.release.clip and s.release.clip.measure.norm
    ]
    gaussian, twins = steps, dict[MetricPart, Step]()
    if (
        split
        and delta is not None
        and _gauss_may_win([shares[s.part] for s in split], context, delta)
    ):
        halves = {
            step.part: clip_share_of_norm(shares[step.part], context.partitions) / 2
            for step in split
        }
        clips = {part: shares[part].scaled(half) for part, half in halves.items()}
        left = {
            step.part: shares[step.part].scaled(1 - 2 * halves.get(step.part, Fraction(0)))
            for step in split
        }
        whole = sum(share.amount for share in left.values())
        noise = {p: Budget(s.amount, delta * s.amount / whole) for p, s in left.items()}
        rho = Budget(whole, delta).to_zcdp()
        of_gaussian = [(part, rho.scaled(share.amount / whole)) for part, share in left.items()]
        each = [*{**shares, **noise}.items(), *of_gaussian]
        made = _steps(asked, each, context, clips)
        steps, others = made[: len(shares)], made[len(shares) :]
        labels = {step.part: step.label for step in steps}
        twins = {step.part: dataclasses.replace(step, label=labels[step.part]) for step in others}
        gaussian = [twins.get(step.part, step) for step in steps]
    entries = [entry for step in steps for entry in _entries(step, context)]
    for twin in twins.values():
        *_, (name, cost, times) = _entries(twin, context)  # the rest is of one or the other
        entries.append((f"{name} (L2)", cost, times))
    if context.partitions == 1:
        same, steps = gaussian is steps, _with_joint_noise(steps)
        gaussian = steps if same else _with_joint_noise(gaussian)
    return tuple(steps), tuple(gaussian), entries


def _steps(
    asked: Sequence[Metric],
    shares: Sequence[tuple[MetricPart, Budget]],
    context: Context,
    clips: Mapping[MetricPart, Budget] | None = None,
) -> list[Step]:
    """Return the steps of some parts.

    Args:
        asked: the metrics.
        shares: what each part may spend.
        context: the parameters of the pipeline.
        clips: what the choice of a part's clip costs, where that is no part of its share.
    """
    steps: list[Step] = []
    first = choices = 0
    parts = [(metric, metric.parts()) for metric in asked]
    for part, share in shares:
        using = [(metric, its) for metric, its in parts if part in its]
        # Intervals of one output must hold together.
        intervals = max(len(its) if metric.splits_alpha else 1 for metric, its in using)
        users = tuple(metric for metric, _ in using)
        own = dataclasses.replace(
            context,
            alpha=ALPHA / intervals,
            asker=type(users[0]).__name__,
            output=users[0].output,
            clip_cost=(clips or {}).get(part),
        )
        release = part.build(own, share)
        if not release.spends:  # else rows of people would be read, and nothing be paid
            rule = "name what each draw costs"
            raise checks.ParameterError(own.asker, f"spends of {type(release).__name__}", rule)
        about = [part.source.name] if part.source else []
        label = " ".join([str(len(steps)), part.word, *about])
        choices += release.clip is not None
        shared = None if release.clip is None else choices - 1
        steps.append(Step(part, users, label, release, first, shared))
        first += len(release.measures)
    return steps


def _entries(step: Step, context: Context) -> list[Entry]:
    return [
        (f"{step.label}: {use}" if use else step.label, cost, 1 if once else context.max_partitions)
        for cost, use, once in step.release.spends
    ]


def _check_parts(metric: Metric, columns: Sequence[Column]) -> None:
    """Refuse what only the author of a metric can correct, before any row is read.

    Args:
        metric: the metric.
        columns: all columns that are read.

    Raises:
        TypeError: where it makes no number of its parts, or does not read what they read.
    """
    name, parts = type(metric).__name__, metric.parts()
    if len(parts) > 1 and type(metric).combine is Metric.combine:
        raise TypeError(f"{name}: `combine` must make its number of its {len(parts)} parts.")
    for column in (column for part in parts for column in part.columns()):
        if column not in columns:
            raise TypeError(
                f"{name}: `columns` must name every column that its parts read, with their unit; "
                f"it lacks {column.name!r}, or gives it another unit."
            )


def _gauss_may_win(shares: Sequence[Budget], context: Context, delta: Fraction) -> bool:
    """Return whether Gaussian noise can err less than Laplace noise in some part.

    Of P partitions the L1 norm is at most sqrt(P) L2 norms. With a share w of the whole epsilon
    the mean errors are L1 / (w epsilon) and L2 / sqrt(pi w rho).
    """
    whole = sum(share.amount for share in shares)
    least, rho = min(share.amount for share in shares), Budget(whole, delta).to_zcdp().amount
    return context.partitions is None or context.partitions * math.pi * rho > least * whole


def _with_joint_noise(steps: Sequence[Step]) -> list[Step]:
    """Return the steps of one partition, with the numbers that share a draw of noise.

    Those do whose metrics have one weight: in one draw all numbers have the same noise relative to
    their clips, and other weights, as those of the two numbers of a quotient alone, ask for
    something else. (Of N partitions two numbers would gain a part of 1 / (2 N + 2), and the draw
    takes long.)
    """
    groups: dict[Fraction, list[tuple[int, AdditiveRelease]]] = {}
    for index, step in enumerate(steps):
        if step.additive is not None and step.additive.contribution.size == 1:
            weight = checks.number("weight", "weight", step.users[0].weight)
            groups.setdefault(weight, []).append((index, step.additive))
    joined = list(steps)
    for group, members in enumerate(groups.values(), 1):
        alone = len({steps[index].users for index, _ in members}) == 1
        if alone and steps[members[0][0]].users[0].is_quotient:
            continue
        signed = tuple(number.signed for _, number in members)
        costs = cost_of_all([number.noise_cost for _, number in members])
        noise = JointNoise(costs, signed, group)
        for place, (index, number) in enumerate(members):
            release = dataclasses.replace(number, joint=noise, place=place)
            joined[index] = dataclasses.replace(steps[index], release=release)
    return joined


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
