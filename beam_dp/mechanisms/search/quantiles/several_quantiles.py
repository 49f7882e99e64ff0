"""SplitSearch: several quantiles for the price of few, by recursive splitting."""

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.search.common import Paid
from beam_dp.mechanisms.search.quantiles.end_quantile import STRAY, TailSearch
from beam_dp.mechanisms.search.quantiles.middle_quantile import CentralSearch
from beam_dp.mechanisms.search.quantiles.node import RESOLUTION, Answer, Node

TAIL = Fraction(1, 5)
"""Up to this share, and from 1 - TAIL on, a walk from outside errs less than weights."""

_ROOT = Fraction(11, 9)
"""The first level's part of the budget over that of every other level, where it is a search by
weights: all other levels err with it. Where it is a walk, which errs less, the inverse."""


@functools.lru_cache(maxsize=256)
def quantile_search(
    budget: Budget, p: Fraction, resolution: int = RESOLUTION, stray: float = STRAY
) -> CentralSearch | TailSearch:
    """Return the search that measures best for one p.

    Args:
        budget: what one choice may spend.
        p: the share below, above 0 and below 1.
        resolution: what one person is worth in units.
        stray: of a `TailSearch`.
    """
    if TAIL < p < 1 - TAIL:
        return CentralSearch(budget, p, resolution)
    upper = p >= 1 - TAIL
    share = 1 - p if upper else p
    return TailSearch(budget, share, upper=upper, stray=stray, resolution=resolution)


@dataclass(frozen=True)
class SplitSearch(Paid):
    """Choose a candidate for each of several p, in rising order; or none for some of them.

    The middle p is searched among all people. Its answer y splits them: what people have at or
    below y is searched for the smaller p, what they have above y for the larger ones, with p
    relative to the part; and so on, in floor(log2 m) + 1 levels for m quantiles. The first level
    has 11 / 9 times as much of the budget as every other, or 9 / 11 times, if its p is near an end.
    The release is epsilon-DP (rho-zCDP for `Budget.zcdp(rho)`) when one person is added or removed.

    Proof. Given the answers of the levels above, the parts of one level are fixed. A person's rows
    are divided among them: a_1 + a_2 + ... <= 1 of a person. A search of the level's epsilon is
    (a_j epsilon)-DP for one who has a_j in its part; one of the level's rho has the bounded range
    a_j sqrt(8 rho) (the theorems of `CentralSearch` and `TailSearch`). Epsilons of a level add up
    to epsilon at most, ranges to sqrt(8 rho), and levels compose adaptively.

    Where a part has no answer, its people all go to that side which has the p nearest to 1/2, and
    the other side has none: a person is then in one part, as before.

    Args:
        budget: what all choices together may spend.
        shares: every p, rising, above 0 and below 1.
        resolution: D.
        stray: of every `TailSearch`.

    Source: Kaplan, Schnapp, Stemmer 2022, "Differentially private approximate quantiles"
    (2110.05429), with other searches in the nodes.
    """

    shares: tuple[Fraction, ...]
    resolution: int = RESOLUTION
    stray: float = STRAY

    @property
    def levels(self) -> int:
        """How many searches of one person's rows follow each other."""
        return len(self.shares).bit_length()

    def level_cost(self, level: int) -> Budget:
        """Return what the searches of one level may spend together; the first one is 0."""
        middle = self.shares[len(self.shares) // 2]
        root = _ROOT if TAIL < middle < 1 - TAIL else 1 / _ROOT
        return self.cost.scaled((Fraction(1) if level else root) / (root + self.levels - 1))

    def answers(self, node: Node, candidates: Candidates, noise: Noise) -> list[Answer]:
        """Return the answer for each share, for the node of all candidates: a private draw."""
        return self._choose(node, self.shares, candidates, noise, 0)

    @property
    def usual_errors(self) -> list[int]:
        """How far each rank is off in 95% of draws where people are many; by measurement."""
        return [math.ceil(error) for error in self._usual(self.shares, 0)]

    def _usual(self, shares: tuple[Fraction, ...], level: int) -> list[float]:
        if not shares:
            return []
        middle = len(shares) // 2
        own = float(self._search(shares[middle], level).usual_error)
        parts = _parts(_NOBODY, shares, 0)
        below, above = (self._usual(rest, level + 1) for _, rest, _ in parts)
        weights = _weights(shares)
        pairs = zip([*below, 0.0, *above], weights, strict=True)
        return [math.hypot(error, own * weight) for error, weight in pairs]

    def _search(self, p: Fraction, level: int) -> CentralSearch | TailSearch:
        """Return the search of one node."""
        return quantile_search(self.level_cost(level), p, self.resolution, self.stray)

    def _choose(
        self,
        node: Node,
        shares: tuple[Fraction, ...],
        candidates: Candidates,
        noise: Noise,
        level: int,
    ) -> list[Answer]:
        if not shares:
            return []
        middle = len(shares) // 2
        search = self._search(shares[middle], level)
        answer = search.choose_at(node, candidates, noise)
        below, above = (
            [Answer()] * count
            if part is None
            else self._choose(part, rest, candidates, noise, level + 1)
            for part, rest, count in _parts(node, shares, answer.candidate)
        )
        if answer.candidate is None:
            return [*below, answer, *above]
        pairs = zip([*below, Answer(answer.candidate, 0.0), *above], _weights(shares), strict=True)
        return [_carried(each, answer.error * weight) for each, weight in pairs]


_NOBODY = Node(np.empty(0, np.int64), np.empty(0, np.int64), 0, 1)


def _weights(shares: tuple[Fraction, ...]) -> list[float]:
    """Return by how much of the middle rank's error each rank is off: 1 for the middle itself.

    Where the middle rank is off by r, a rank at the share w of one side is off by w r.
    """
    middle = shares[len(shares) // 2]
    return [float(min(share / middle, (1 - share) / (1 - middle))) for share in shares]


def _carried(answer: Answer, error: float) -> Answer:
    """Return an answer with the error of the ranks of its part: independent, so squares add up."""
    if answer.candidate is None:
        return answer
    return answer._replace(error=math.ceil(math.hypot(answer.error, error)))


Part = tuple[Node | None, tuple[Fraction, ...], int]


def _parts(node: Node, shares: tuple[Fraction, ...], index: int | None) -> tuple[Part, Part]:
    """Return for both sides of the middle p: its people, its p relative to them, how many p."""
    middle = len(shares) // 2
    lower, p, upper = shares[:middle], shares[middle], shares[middle + 1 :]
    if index is not None:
        below, above = node.split(index)
        inner = tuple((share - p) / (1 - p) for share in upper)
        return (below, tuple(share / p for share in lower), middle), (above, inner, len(upper))
    half = Fraction(1, 2)
    left = min((abs(share - half) for share in lower), default=Fraction(1))
    right = min((abs(share - half) for share in upper), default=Fraction(1))
    nearer = left <= right
    return (
        (node if nearer else None, lower, middle),
        (None if nearer else node, upper, len(upper)),
    )
