"""Release a user's own function of people, of which nothing is known: the median of its votes.

The people are cut into m blocks, each of which has one vote or none (`blocks`). A median of the
votes is searched by `RankSearch`. Adding or removing one person changes the vote of one block: it
takes a vote away (x to x - v) and puts another in its place (x - v to x - v + v'), or does one of
both. By the theorem of `RankSearch`, with rates eps1 and eps2 and p = 1/2,

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

from beam_dp.mechanisms import checks, persons
from beam_dp.mechanisms.blocks import BlockFunction, BlockRelation
from beam_dp.mechanisms.budget import Budget
from beam_dp.mechanisms.candidates import Candidates
from beam_dp.mechanisms.cells import Cells
from beam_dp.mechanisms.metrics import UNIT, Metric, check_candidates, check_places, check_unit
from beam_dp.mechanisms.noise import Noise
from beam_dp.mechanisms.owned import Relation
from beam_dp.mechanisms.people import check_callable
from beam_dp.mechanisms.releases import Released
from beam_dp.mechanisms.search import RankProfile, RankSearch
from beam_dp.mechanisms.statistics import Measure

_BLOCKS = 4  # per vote that the rank may be off: the middle half of the votes
MOST_BLOCKS = 1 << 20
"""Votes are held together per partition."""


@dataclasses.dataclass(frozen=True)
class BlackBox(Metric):
    """Release any function of one number per person, with nothing asked of it.

    The people of a partition are cut into `blocks` parts by a keyed hash; the function is called on
    each part alone, on the workers, and a private median of its answers is released. One person
    changes one answer, so the release is private for every function, however wild: no bound, no
    sensitivity, no smoothness is asked for. With probability 1 - beta at most half of the answers
    and `<name>_error` more lie below the released value, and at most as many above (answers rounded
    up to the candidates).

    It is an answer about samples of the data: of n people, each block has about n / blocks. It is
    good for what has nearly the same value on such a sample as on everybody (means, quantiles,
    slopes, fitted parameters), and wrong for what grows with the number of people (sums, counts)
    or needs all of them (the largest value, the number of different ones).

    A block on which the function raises, or returns no finite real number (bool, None, NaN, an
    array), has no vote, and neither has a block without people; nothing of the error is kept. Where
    too few blocks vote, any candidate may come out. What a function does besides is not in our
    hands: what it prints or writes and how long it runs leave the worker unprotected. **It must use
    its argument only**: the guarantee rests on one block telling another nothing. A callable object
    or a function of the main program is unpickled anew for each block, and default arguments are
    new; what a function keeps in its module, a class or its attributes is not forgotten.

    Attributes:
        column: the value column.
        function: takes a float64 array, one value per person in increasing order, and returns a
            number. It must be picklable, and must not remember: it may use its argument only.
        blocks: how many; more than twice the error bound. None: four times that, a public number
            that depends on the budget and the candidates only.
        person_value: what a person with several rows counts as: "mean", "sum", "max", "min" or
            "last".
        last_by: for "last": the column that says when, as in `Variance`.
        candidates: the public outputs; None: as for `Median`.
        beta: how often the guarantee may fail.
        unit: the grid of values.

    Source: Nissim, Raskhodnikova, Smith, "Smooth Sensitivity and Sampling in Private Data Analysis"
    (STOC 2007), section 4; on black boxes at large, Linder, Raskhodnikova, Smith, Steinke,
    "Privately Evaluating Untrusted Black-Box Functions" (2025).
    """

    column: str
    function: BlockFunction
    _: dataclasses.KW_ONLY
    blocks: int | None = None
    person_value: str = "mean"
    last_by: str | None = None
    candidates: Candidates | None = None
    beta: float = 0.05
    unit: checks.Real = UNIT

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = "BlackBox"
        check_callable(owner, "function", self.function)
        if type(self.function).__hash__ is None:
            raise TypeError(
                f"{owner}: function must be hashable, as functions are, not "
                f"{type(self.function).__name__}. Write function=lambda values: ...."
            )
        persons.check_person_value(owner, self.person_value, self.last_by)
        checks.fraction_between(owner, "beta", self.beta, 0, 1)
        check_candidates(owner, self.candidates)
        check_places(owner, self.candidates)
        check_unit(owner, self.unit)
        if self.blocks is not None:
            mend = "Leave it out for a number that suits the budget."
            checks.positive_integer(owner, "blocks", self.blocks, mend)

    @property
    def orders(self) -> tuple[str, ...]:
        """The column of `last_by`, if there is one."""
        return () if self.last_by is None else (self.last_by,)

    @property
    def _prefix(self) -> str:
        return "black_box"


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
