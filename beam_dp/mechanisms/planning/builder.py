"""Build the releases of a program, request by request, and enter their costs in the account."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from beam_dp.mechanisms.accounting.account import Account
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.releases.clipped import ClippedSum, Pool
from beam_dp.mechanisms.releases.released import ALPHA, Release
from beam_dp.mechanisms.releases.request import CentreRequest, Context, Request


@dataclasses.dataclass(frozen=True)
class Step:
    """A request with its release.

    Attributes:
        request: the request of a metric.
        label: the name of its costs in the account.
        release: how it is drawn.
        first: the index of its first measure among all measures of the program.
        shared: the index of its clip among the shared clips; None: it has no shared clip.
    """

    request: Request
    label: str
    release: Release
    first: int
    shared: int | None

    def about(self, centres: Mapping[CentreRequest, int]) -> "Step":
        """Return the step with sums about the centre that was chosen for it, if one was.

        Args:
            centres: in units.
        """
        centre = centres.get(self.request.asked_centre) if self.request.asked_centre else None
        if centre is None or not isinstance(self.release, ClippedSum):
            return self
        return dataclasses.replace(self, release=dataclasses.replace(self.release, centre=centre))


def build(
    asked: Sequence[Metric],
    shares: dict[Request, Budget],
    context: Context,
    account: Account,
) -> tuple[Step, ...]:
    """Return the steps of a program, and enter their costs in the account.

    Args:
        asked: the metrics.
        shares: what each request may spend, over all partitions of a person.
        context: the parameters of the pipeline.
        account: the account of the whole budget.
    """
    steps: list[Step] = []
    built: dict[Request, Release] = {}
    choices: dict[Request, int] = {}
    first, clips = 1, 0  # the first measure counts the people
    context = dataclasses.replace(context, lenders=built)
    for request, share in shares.items():
        together = _together(request, shares, asked)
        release = request.build(_context_of(request, asked, context, together), share)
        words = str(len(steps)), request.word, request.column_name
        label = " ".join(word for word in words if word)
        _spend(account, label, release, context.reach)
        built[request] = release
        shared = None
        if release.chooser is not None:
            shared, clips = clips, clips + 1
            choices[request] = shared
        elif request.borrows is not None:
            shared = choices.get(request.borrows)
        steps.append(Step(request, label, release, first, shared))
        first += len(release.measures)
    return _pooled(steps, asked, (context.partitions or 1) if context.jointly else 1)


def pools_of(steps: Sequence[Step]) -> dict[Pool, list[int]]:
    """Return the indexes of the steps that share a draw of noise, in the order of their pool."""
    pools: dict[Pool, list[int]] = {}
    for index, step in enumerate(steps):
        if isinstance(step.release, ClippedSum) and step.release.pool is not None:
            pools.setdefault(step.release.pool, []).append(index)
    return pools


def _pooled(steps: Sequence[Step], asked: Sequence[Metric], partitions: int) -> tuple[Step, ...]:
    """Return the steps, with one draw of noise for all numbers whose metrics have one weight.

    In a pool all numbers have the same noise relative to their clips: so other weights, which ask
    for something else, have pools of their own.
    """
    groups: dict[Fraction, list[int]] = {}
    for index, step in enumerate(steps):
        if isinstance(step.release, ClippedSum):
            groups.setdefault(_weight_of(step.request, asked), []).append(index)
    pooled = list(steps)
    for weight, indexes in groups.items():
        numbers = [step.release for step in (steps[i] for i in indexes)]
        members = [number for number in numbers if isinstance(number, ClippedSum)]
        pool = Pool(
            tuple(number.signed for number in members),
            tuple(number.noise_costs for number in members),
            weight,
            partitions,
        )
        for place, (index, number) in enumerate(zip(indexes, members, strict=True)):
            release = dataclasses.replace(number, pool=pool, place=place)
            pooled[index] = dataclasses.replace(steps[index], release=release)
    return tuple(pooled)


def _weight_of(request: Request, asked: Sequence[Metric]) -> Fraction:
    """Return the weight of the first metric that asks for it."""
    users = (metric for metric in asked if request in metric.requests())
    return checks.number("weight", "weight", next(users).weight)


def _spend(account: Account, label: str, release: Release, reach: int) -> None:
    """Enter what a release spends on one person, in all the partitions that they reach."""
    for cost, purpose, once in release.spends:
        account.spend(f"{label}: {purpose}" if purpose else label, cost, 1 if once else reach)


def _together(request: Request, all_: Iterable[Request], asked: Sequence[Metric]) -> int:
    """Return how many numbers share a draw of noise with that of a request, itself included."""
    if not request.pooled:
        return 1
    weight = _weight_of(request, asked)
    return sum(each.pooled and _weight_of(each, asked) == weight for each in all_)


def _context_of(
    request: Request, asked: Sequence[Metric], context: Context, together: int
) -> Context:
    """Return the context of one request: intervals of one output must hold together."""
    users = [metric for metric in asked if request in metric.requests()]
    parts = max(len(metric.requests()) if metric.splits_alpha else 1 for metric in users)
    return dataclasses.replace(
        context,
        alpha=ALPHA / parts,
        together=together,
        asker=type(users[0]).__name__,
        output=users[0].output,
    )
