"""Build the releases of a program, part by part, and enter their costs in the account."""

import dataclasses
from collections.abc import Mapping, Sequence
from fractions import Fraction

from beam_dp.mechanisms.accounting.account import Entry
from beam_dp.mechanisms.accounting.budget import Budget, cost_of_all
from beam_dp.mechanisms.bounding.columns import Column, Role, table_order
from beam_dp.mechanisms.histogram_choice.clip import SHARE_OF_NORM
from beam_dp.mechanisms.metrics.base import Context, Metric, MetricPart
from beam_dp.mechanisms.metrics.clipped_sum import ClippedSum, Pool
from beam_dp.mechanisms.metrics.released import ALPHA, Release
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.summaries.histograms import Measure


@dataclasses.dataclass(frozen=True)
class Step:
    """A part with its release.

    Attributes:
        part: what is released.
        users: the metrics that have this part.
        label: the name of its costs in the account.
        release: how it is drawn.
        first: the index of its first measure among all measures of the program.
        shared: the index of its clip among the shared clips; None: it has no shared clip.
    """

    part: MetricPart
    users: tuple[Metric, ...]
    label: str
    release: Release
    first: int
    shared: int | None


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
    asked: Sequence[Metric], shares: Mapping[MetricPart, Budget], context: Context
) -> tuple[tuple[Step, ...], list[Entry]]:
    """Return the steps of a program, and the entries of their costs.

    Args:
        asked: the metrics.
        shares: what each part may spend, over all partitions of a person.
        context: the parameters of the pipeline.
    """
    for metric in asked:
        _check_parts(metric, context.columns)
    steps = _steps(asked, shares, context, {})
    entries = [entry for step in steps for entry in _entries(step, context)]
    return _pooled(steps, context.partitions == 1), entries


def build_both(
    asked: Sequence[Metric],
    shares: Mapping[MetricPart, Budget],
    context: Context,
    delta: Fraction,
) -> tuple[tuple[Step, ...], tuple[Step, ...], list[Entry]]:
    """Return the steps with Laplace noise, those with Gaussian noise, and the entries of both.

    What adds up over several partitions is clipped by its L1 norm and has Laplace noise, or by its
    L2 norm and has Gaussian noise: two noisy histograms say which one errs less. Both are paid, a
    half of `SHARE_OF_NORM` each. All the noise together costs (epsilon, delta): as Laplace noise
    epsilon is split, as Gaussian noise the rho that implies (epsilon, delta) is.

    Args:
        asked: the metrics.
        shares: what each part may spend; of pure epsilon.
        context: the parameters of the pipeline.
        delta: what Gaussian noise may spend of delta.
    """
    steps, entries = build(asked, shares, context)
    split = [step for step in steps if _has_norm(step.release)]
    if not split:
        return steps, steps, entries
    chosen = {step.part: shares[step.part] for step in split if not _borrows(step.release)}
    clips = {part: share.scaled(SHARE_OF_NORM / 2) for part, share in chosen.items()}
    left = {
        step.part: shares[step.part].scaled(1 - SHARE_OF_NORM * (step.part in clips))
        for step in split
    }
    whole = sum(share.amount for share in left.values())
    noise = {p: Budget(s.amount, delta * s.amount / whole) for p, s in left.items()}
    pure = _steps(asked, {**shares, **noise}, context, clips)
    rho = Budget(whole, delta).to_zcdp()
    normal = {part: rho.scaled(share.amount / whole) for part, share in left.items()}
    first = sum(len(step.release.measures) for step in pure)
    labels = {step.part: step.label for step in pure}
    others = _steps(asked, normal, context, clips, first, len(clips_of(pure)))
    twins = {each.part: dataclasses.replace(each, label=labels[each.part]) for each in others}
    entries = [entry for step in pure for entry in _entries(step, context)]
    for twin in twins.values():
        [_, *choices] = _entries(twin, context)  # the noise is one or the other
        entries += [(f"{name} (L2)", cost, times) for name, cost, times in choices]
    alone = context.partitions == 1
    gaussian = _pooled([twins.get(step.part, step) for step in pure], alone)
    return _pooled(pure, alone), gaussian, entries


def _steps(
    asked: Sequence[Metric],
    shares: Mapping[MetricPart, Budget],
    context: Context,
    clips: Mapping[MetricPart, Budget],
    first: int = 0,
    choices: int = 0,
) -> list[Step]:
    """Return the steps of some parts.

    Args:
        asked: the metrics.
        shares: what each part may spend.
        context: the parameters of the pipeline.
        clips: what the choice of a part's clip costs, where that is no part of its share.
        first: how many measures other steps have before.
        choices: how many shared clips they have.
    """
    steps: list[Step] = []
    clip: Budget | None = None
    for part, share in shares.items():
        clip = clips.get(part, clip)  # who borrows a clip stands behind its lender
        using = [metric for metric in asked if part in metric.parts()]
        # Intervals of one output must hold together.
        intervals = max(len(one.parts()) if one.splits_alpha else 1 for one in using)
        own = dataclasses.replace(
            context,
            alpha=ALPHA / intervals,
            asker=type(using[0]).__name__,
            output=using[0].output,
            clip=clip,
        )
        release = part.build(own, share)
        if not release.spends:  # else rows of people would be read, and nothing be paid
            rule = "name what each draw costs"
            raise checks.ParameterError(own.asker, f"spends of {type(release).__name__}", rule)
        words = str(len(steps)), part.word, part.column_name
        label = " ".join(word for word in words if word)
        choices += release.chooser is not None
        has_clip = release.chooser is not None or _borrows(release)
        shared = choices - 1 if has_clip else None
        steps.append(Step(part, tuple(using), label, release, first, shared))
        first += len(release.measures)
    return steps


def clips_of(steps: Sequence[Step]) -> list[ClippedSum]:
    """Return what chooses the shared clips of some steps, in order."""
    choosers = (step.release.chooser for step in steps)
    return [chooser for chooser in choosers if isinstance(chooser, ClippedSum)]


def _entries(step: Step, context: Context) -> list[Entry]:
    return [
        (f"{step.label}: {purpose}" if purpose else step.label, cost, 1 if once else context.reach)
        for cost, purpose, once in step.release.spends
    ]


def _check_parts(metric: Metric, columns: Sequence[Column]) -> None:
    """Refuse what only the author of a metric can mend, before any row is read.

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


def _borrows(release: Release) -> bool:
    return isinstance(release, ClippedSum) and release.borrowed


def _has_norm(release: Release) -> bool:
    return isinstance(release, ClippedSum) and bool(release.measure.norm and release.clip_cost)


def pools_of(steps: Sequence[Step]) -> dict[Pool, list[int]]:
    """Return the indexes of the steps that share a draw of noise, in the order of their pool."""
    pools: dict[Pool, list[int]] = {}
    for index, step in enumerate(steps):
        if isinstance(step.release, ClippedSum) and step.release.pool is not None:
            pools.setdefault(step.release.pool, []).append(index)
    return pools


def _pooled(steps: Sequence[Step], alone: bool) -> tuple[Step, ...]:
    """Return the steps, with the numbers that share a draw of noise in pools.

    Those of one partition do whose metrics have one weight: in a pool all numbers have the same
    noise relative to their clips, and other weights ask for something else. (Of N partitions two
    numbers would gain a part of 1 / (2 N + 2), and the draw takes long.) Those of several partitions
    do that are parts of one vector.

    Args:
        steps: the steps.
        alone: whether there is one partition.
    """
    groups: dict[tuple[Fraction, Measure | None], list[tuple[int, ClippedSum]]] = {}
    for index, step in enumerate(steps):
        if isinstance(step.release, ClippedSum) and step.part.pooled:
            weight, split = _weight(step.users), None if alone else _whole_of(step.release)
            if alone or split is not None:
                groups.setdefault((weight, split), []).append((index, step.release))
    pooled = list(steps)
    for (weight, split), members in groups.items():
        signed = tuple(number.signed for _, number in members)
        costs = cost_of_all([number.noise_cost for _, number in members])
        pool = Pool(costs, signed, weight, split)
        for place, (index, number) in enumerate(members):
            release = dataclasses.replace(number, pool=pool, place=place)
            pooled[index] = dataclasses.replace(steps[index], release=release)
    return tuple(pooled)


def _whole_of(number: ClippedSum) -> Measure | None:
    """Return the measure of the whole whose part is counted; None: the whole is counted."""
    measure = number.measure
    if measure.part is None:
        return None
    return dataclasses.replace(measure, part=dataclasses.replace(measure.part, rest=False))


def _weight(users: Sequence[Metric]) -> Fraction:
    """Return the weight of the first metric that has a part."""
    return checks.number("weight", "weight", users[0].weight)
