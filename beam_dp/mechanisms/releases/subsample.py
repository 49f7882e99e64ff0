"""Release a user's own function of people, of which nothing is known: the median of its votes.

The people are cut into m blocks, each of which has one vote or none (`summaries.block_votes`). A
median of the votes is searched by `RankSearch`. Adding or removing one person changes the vote of
one block: it takes a vote away (x to x - v) and puts another in its place (x - v to x - v + v'), or
does one of both. By the theorem of `RankSearch`, with rates eps1 and eps2 and p = 1/2,

    ln P_x(o) / P_(x-v)(o)            <= p eps1 + eps2,
    ln P_(x-v)(o) / P_(x-v+v')(o)     <= max((1 - p) eps1, p eps2),

whose sum is what that theorem calls eta; and the search that is rho-zCDP when a vote comes or goes
has eta <= sqrt(8 rho). So with rho = epsilon^2 / 8 the release is epsilon-DP for people. That it is
then epsilon^2 / 2-zCDP (Bun, Steinke 2016, Proposition 1.4) makes rho / 4 the rho for rho-zCDP.

The number of votes is private and needs no noise: ranks are counted from the middle.
"""

import dataclasses
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.releases.released import Released
from beam_dp.mechanisms.search import RankProfile, RankSearch
from beam_dp.mechanisms.summaries.block_votes import BlockFunction, BlockRelation
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import Cells

_BLOCKS = 4  # per vote that the rank may be off: the middle half of the votes
MOST_BLOCKS = 1 << 20
"""Votes are held together per partition."""


def search_of(budget: Budget, beta: float) -> RankSearch:
    """Return the search over votes of which one may be exchanged for another.

    Args:
        budget: what one release may cost; a delta is not spent.
        beta: how often the search may fail.
    """
    rho = budget.amount / 4 if budget.is_zcdp else budget.amount**2 / 8
    return RankSearch(Budget.zcdp(rho), Fraction(1, 2), beta, resolution=1)


def block_count(given: int | None, shift: int) -> int:
    """Return how many blocks to use; public.

    Args:
        given: what the user asked for.
        shift: how many votes the rank may be off.

    Raises:
        ValueError: for so few blocks that a release would say nothing, or too many to hold.
    """
    blocks = max(1, _BLOCKS * shift) if given is None else given
    checks.require(
        2 * shift < blocks <= MOST_BLOCKS,
        f"BlackBox: blocks must be more than {2 * shift} and at most {MOST_BLOCKS} for this "
        f"budget, not {blocks}: the released rank may be off by {shift} votes. Use a larger "
        "budget or fewer candidates, such as Candidates.linear(0, 100, 1).",
    )
    return blocks


@dataclasses.dataclass(frozen=True)
class BlackBoxRelease:
    """The private median of the votes of each partition.

    Attributes:
        relation: how the votes are made.
        search: the search over the votes.
        cost: what one partition costs.
    """

    relation: BlockRelation
    search: RankSearch
    cost: Budget

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """The one relation."""
        return (self.relation,)

    @property
    def shift(self) -> int:
        """How many votes the rank may be off."""
        return self.search.shift(self.relation.candidates.size)

    def release(self, cells: Cells, first: int, clip: int | None, noise: Noise) -> Released:
        """Draw one candidate per partition; there is no clip."""
        lines, candidates = cells.lines(first), self.relation.candidates
        order = np.argsort(lines.places, kind="stable")
        edges = np.searchsorted(lines.places[order], np.arange(1, cells.size))
        values = [
            self.search.choose_from(profile_of(votes), candidates, noise)
            for votes in np.split(lines.items[order], edges)[: cells.size]
        ]
        return Released(np.array(values, float), np.full(len(values), float(self.shift)))


def profile_of(votes: np.ndarray) -> RankProfile:
    """Return the ranks of votes, which are places of candidates; each counts one."""
    return RankProfile(votes, np.ones(len(votes), np.int64), 1)


def build(
    asked: tuple[BlockFunction, int | None, str, str | None],
    column: int,
    order: int,
    unit: Fraction,
    candidates: Candidates,
    beta: float,
    each: Budget,
) -> BlackBoxRelease:
    """Return the release of what a metric asks for: function, blocks, value of a person.

    Args:
        asked: these.
        column: the place of the value column.
        order: that of the column that says which row is the last; -1: none.
        unit: the grid of values.
        candidates: the public outputs.
        beta: how often the guarantee may fail.
        each: what one partition may cost.
    """
    search = search_of(each, beta)
    relation = BlockRelation(
        column,
        order=order,
        blocks=block_count(asked[1], search.shift(candidates.size)),
        person_value=asked[2],
        unit=unit,
        candidates=candidates,
        function=asked[0],
    )
    return BlackBoxRelease(relation, search, each.without_delta())
