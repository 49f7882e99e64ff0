"""Release a user's function of people, of unknown sensitivity, by the median of blocks' votes.

The people are cut into m blocks, each of which has one vote or none (`summaries.block_votes`).
`CentralSearch` searches a median of the votes. Adding or removing one person changes the vote of
one block at most: it takes a vote away (x to x - v) and adds another instead (x - v to x - v + v'),
or does one of the two. By the theorem of `CentralSearch` each step costs epsilon' and has the
bounded range epsilon', sqrt(8 rho') for a rho'. So the release is 2 epsilon'-DP for people, and as
ranges add up to 2 sqrt(8 rho'), 4 rho'-zCDP (`bounded_range`): the search gets half of epsilon, or
a quarter of rho.

The number of votes is private and needs no noise: ranks are counted from the middle.
"""

import dataclasses
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.releases.released import (
    Description,
    Release,
    Released,
    Spending,
    counted,
)
from beam_dp.mechanisms.search.ranks.central import CentralSearch
from beam_dp.mechanisms.search.ranks.node import Node
from beam_dp.mechanisms.summaries.block_votes import BlockRelation
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

_BLOCKS = 10  # for each vote that the rank may be off: with fewer an answer may be missing
MOST_BLOCKS = 1 << 20
"""The votes of one partition are held together."""


def search_of(budget: Budget) -> CentralSearch:
    """Return the search over votes, where a person may exchange one vote for another.

    Args:
        budget: what one release may cost; a delta is not spent.
    """
    part = Fraction(1, 4) if budget.is_zcdp else Fraction(1, 2)
    return CentralSearch(budget.without_delta().scaled(part), resolution=1)


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
        "Use a larger budget, or leave blocks out.",
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
    search: CentralSearch
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
        return self.search.usual_error

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one candidate per partition; there is no clip."""
        lines, candidates = view.lines(0), self.relation.candidates
        order = np.argsort(lines.indexes, kind="stable")
        edges = np.searchsorted(lines.indexes[order], np.arange(1, view.size))
        values = [
            self.search.choose_at(node_of(votes, candidates), candidates, noise).value(candidates)
            for votes in np.split(lines.items[order], edges)[: view.size]
        ]
        return Released.within(np.array(values, float), np.full(len(values), np.inf))

    def describe(self) -> Description:
        """Describe the number of blocks; the error bound is a number of blocks."""
        mechanism = f"median of a function of {self.relation.blocks} blocks of people"
        error = f"at most {counted(self.shift, 'block', 'blocks')}"
        return Description(mechanism, "-", self.shift, error)


def node_of(votes: np.ndarray, candidates: Candidates) -> Node:
    """Return votes, which are indexes of candidates; each vote counts once."""
    return Node.of(votes, np.ones(len(votes), np.int64), candidates.size)
