"""Release a user's function of people, of unknown sensitivity, by the median of blocks' votes.

The people are cut into m blocks, each of which has one vote or none (`summaries.block_votes`).
`RankSearch` searches a median of the votes. Adding or removing one person changes the vote of one
block: it takes a vote away (x to x - v) and adds another instead (x - v to x - v + v'), or does one
of the two. By the theorem of `RankSearch`, with rates eps1 and eps2 and p = 1/2,

    ln P_x(o) / P_(x-v)(o)            <= p eps1 + eps2,
    ln P_(x-v)(o) / P_(x-v+v')(o)     <= max((1 - p) eps1, p eps2),

whose sum is called eta in that theorem; and the search that is rho-zCDP when a vote comes or goes
has eta <= sqrt(8 rho). So with rho = epsilon^2 / 8 the release is epsilon-DP for people. It is then
epsilon^2 / 2-zCDP (Bun, Steinke 2016, Proposition 1.4), so that a search of rho / 4 is enough for
rho-zCDP.

The number of votes is private and needs no noise: ranks are counted from the middle.
"""

import dataclasses
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.releases.released import (
    Description,
    Release,
    Released,
    Spending,
    counted,
)
from beam_dp.mechanisms.search import RankProfile, RankSearch
from beam_dp.mechanisms.summaries.block_votes import BlockRelation
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

_BLOCKS = 4  # for each vote that the rank may be off: the rank is in the middle half of the votes
MOST_BLOCKS = 1 << 20
"""The votes of one partition are held together."""


def search_of(budget: Budget, beta: float) -> RankSearch:
    """Return the search over votes, where a person may exchange one vote for another.

    Args:
        budget: what one release may cost; a delta is not spent.
        beta: how often the search may fail.
    """
    rho = budget.amount / 4 if budget.is_zcdp else budget.amount**2 / 8
    return RankSearch(Budget.zcdp(rho), Fraction(1, 2), beta, resolution=1)


def block_count(given: int | None, shift: int) -> int:
    """Return the public number of blocks.

    Args:
        given: the number that the user asked for; None: the default.
        shift: how many votes the rank may be off.

    Raises:
        ValueError: for so few blocks that a release would say nothing, or too many to hold.
    """
    blocks = max(1, _BLOCKS * shift) if given is None else given
    checks.require(
        2 * shift < blocks <= MOST_BLOCKS,
        "BlackBox",
        "blocks",
        f"be more than {2 * shift} and at most {MOST_BLOCKS} for this budget, not "
        f"{blocks}: the released rank may be off by {shift} votes",
        "Use a larger budget or fewer candidates, such as Candidates.linear(0, 100, 1).",
    )
    return blocks


@dataclasses.dataclass(frozen=True)
class BlackBoxRelease(Release):
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
        """The relation alone."""
        return (self.relation,)

    @property
    def spends(self) -> tuple[Spending, ...]:
        """What the search costs."""
        return (Spending(self.cost),)

    @property
    def shift(self) -> int:
        """How many votes the rank may be off."""
        return self.search.shift(self.relation.candidates.size)

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one candidate per partition; there is no clip."""
        lines, candidates = view.lines(0), self.relation.candidates
        order = np.argsort(lines.indexes, kind="stable")
        edges = np.searchsorted(lines.indexes[order], np.arange(1, view.size))
        values = [
            self.search.choose_from(profile_of(votes), candidates, noise)
            for votes in np.split(lines.items[order], edges)[: view.size]
        ]
        return Released.within(np.array(values, float), np.full(len(values), np.inf))

    def describe(self) -> Description:
        """Describe the number of blocks; the error bound is a number of blocks."""
        mechanism = f"median of a function of {self.relation.blocks} blocks of people"
        error = f"at most {counted(self.shift, 'block', 'blocks')}"
        return Description(mechanism, "-", self.shift, error)


def profile_of(votes: np.ndarray) -> RankProfile:
    """Return the ranks of votes, which are indexes of candidates; each vote counts once."""
    return RankProfile(votes, np.ones(len(votes), np.int64), 1)
