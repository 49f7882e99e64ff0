"""Build the releases of a program, request by request, and enter their costs in the account."""

import dataclasses
from collections.abc import Sequence

from beam_dp.mechanisms.accounting.account import Account
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.releases.released import ALPHA, Release
from beam_dp.mechanisms.releases.request import Context, Request


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
    first, clips = 1, 0  # the first measure counts the people
    for request, share in shares.items():
        release = request.build(_context_of(request, asked, context), share)
        words = str(len(steps)), request.word, request.column_name
        label = " ".join(word for word in words if word)
        _spend(account, label, release, context.reach)
        shared = None
        if release.chooser is not None:
            shared, clips = clips, clips + 1
        steps.append(Step(request, label, release, first, shared))
        first += len(release.measures)
    return tuple(steps)


def _spend(account: Account, label: str, release: Release, reach: int) -> None:
    """Enter what a release spends on one person, in all the partitions that they reach."""
    for cost, purpose, once in release.spends:
        account.spend(f"{label}: {purpose}" if purpose else label, cost, 1 if once else reach)


def _context_of(request: Request, asked: Sequence[Metric], context: Context) -> Context:
    """Return the context of one request: intervals of one output must hold together."""
    users = [metric for metric in asked if request in metric.requests()]
    together = max(len(metric.requests()) if metric.splits_alpha else 1 for metric in users)
    return dataclasses.replace(
        context,
        alpha=ALPHA / together,
        asker=type(users[0]).__name__,
        output=users[0].output,
    )
