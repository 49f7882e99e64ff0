"""Node: people's shares on a run of candidates; the whole of them at first, later parts of it.

`NodeSearch` is what the searches of one quantile have in common.
"""

import abc
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.numerics.intervals import root_below
from beam_dp.mechanisms.numerics.numbers import WIDE, Number
from beam_dp.mechanisms.search.common import AUDITED, ENOUGH, SYSTEM_NOISE
from beam_dp.mechanisms.search.ranks.rank_profile import RankProfile


@dataclass(frozen=True, eq=False, repr=False)
class Node:
    """The shares that people have at the candidates first, ..., stop - 1; private data.

    Attributes:
        buckets: the indexes where somebody has something, rising, each once.
        amounts: how much all people have there, in units of 1 / D of a person.
        first: the first candidate.
        stop: the end of the candidates.
    """

    buckets: np.ndarray
    amounts: np.ndarray
    first: int
    stop: int

    @classmethod
    def of(cls, profile: RankProfile, size: int) -> "Node":
        """Return the node of all candidates; what lies above the last one counts as the last."""
        inside = RankProfile(np.minimum(profile.buckets, size - 1), profile.amounts)
        return cls(inside.buckets, inside.amounts, 0, size)

    @property
    def size(self) -> int:
        """The number of candidates."""
        return self.stop - self.first

    @property
    def sums(self) -> np.ndarray:
        """The sum of the amounts before each bucket, and that of all."""
        return np.append(integers.narrow(np.array([0])), integers.running_sums(self.amounts))

    def split(self, index: int) -> tuple["Node", "Node"]:
        """Return what is at or below a candidate, and what is above it.

        The candidate itself belongs to both: the part above may answer with it too.
        """
        cut = int(np.searchsorted(self.buckets, index, side="right"))
        below = Node(self.buckets[:cut], self.amounts[:cut], self.first, index + 1)
        return below, Node(self.buckets[cut:], self.amounts[cut:], index, self.stop)


class Answer(NamedTuple):
    """What a search answers; all of it is released.

    Attributes:
        candidate: its index; None: there are too few people.
        error: how far its rank may be off, in people, in 95% of draws.
        people: about how many there are, where the search tells; 0 without an answer.
    """

    candidate: int | None = None
    error: float = math.inf
    people: float = 0.0

    def value(self, candidates: Candidates) -> Number:
        """Return the candidate, NaN for none."""
        return math.nan if self.candidate is None else candidates[self.candidate]


def epsilon_of(budget: Budget) -> Fraction:
    """Return the epsilon of a budget; for a rho the most bounded range that it pays: sqrt(8 rho).

    A mechanism whose log ratio of two neighbours ranges over an interval of length eta is
    eta^2 / 8-zCDP (Cesar and Rogers 2021, "Bounding, Concentrating, and Truncating").
    """
    amount = budget.amount
    return min(root_below(8 * amount) if budget.is_zcdp else amount, ENOUGH)


def checked(
    owner: str, profile: RankProfile, candidates: Candidates, resolution: int, most: int = WIDE - 1
) -> Node:
    """Return the node of a profile; refuse another resolution, and too many candidates."""
    checks.require(
        profile.resolution == resolution,
        owner,
        "resolution",
        f"be that of the profile, {profile.resolution}, not {resolution}",
    )
    rule = f"be at most {most}, not {candidates.size}"
    checks.require(candidates.size <= most, owner, "candidates", rule)
    return Node.of(profile, candidates.size)


def audited(owner: str, profile: RankProfile, candidates: Candidates, resolution: int) -> Node:
    """Return the node of a profile; refuse more candidates than an audit can list."""
    return checked(f"{owner}.distribution", profile, candidates, resolution, AUDITED)


class NodeSearch(abc.ABC):
    """The base of the searches of one quantile: what they offer for all candidates.

    Attributes:
        budget: what one choice may spend.
        resolution: D, what one person adds in all.
    """

    budget: Budget
    resolution: int

    @property
    def cost(self) -> Budget:
        """What one choice spends: the budget's epsilon or rho, and no delta."""
        return self.budget.without_delta()

    def choose_from(
        self, profile: RankProfile, candidates: Candidates, noise: Noise = SYSTEM_NOISE
    ) -> Number:
        """Return one candidate, NaN for none: a private draw."""
        node = checked(type(self).__name__, profile, candidates, self.resolution)
        return self.choose_at(node, candidates, noise).value(candidates)

    def distribution(self, profile: RankProfile, candidates: Candidates) -> list[float]:
        """Return the exact output probabilities, the last one that of none, for audits.

        Raises:
            ValueError: for more than 64 candidates.
        """
        node = audited(type(self).__name__, profile, candidates, self.resolution)
        return self.chances_at(node, candidates)

    @abc.abstractmethod
    def choose_at(self, node: Node, candidates: Candidates, noise: Noise) -> Answer:
        """Return one candidate of a node, or none: a private draw."""

    @abc.abstractmethod
    def chances_at(self, node: Node, candidates: Candidates) -> list[float]:
        """Return the probabilities of the candidates of a node, and of none."""
