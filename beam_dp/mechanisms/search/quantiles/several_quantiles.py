"""SplitSearch: several quantiles for the price of few, by recursive splitting."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.search.common import Paid
from beam_dp.mechanisms.search.quantiles.middle_quantile import NONE, CentralSearch
from beam_dp.mechanisms.search.quantiles.node import RESOLUTION, Answer, Node
from beam_dp.mechanisms.search.quantiles.tail_quantile import FALSE_STOP, TailSearch

TAIL = Fraction(1, 5)
"""Up to this share, and from 1 - TAIL on, a scan from outside errs less than weights."""

_ROOT = Fraction(11, 9)
"""The first level's part of the budget over that of every other level, where it is a search by
weights: all other levels err with it. Where it is a scan, which errs less, the inverse."""


_TIES = Fraction(1, 4)
"""The part of a level for the place of a quantile among people of one value, where many have it."""
_SEEN = Fraction(1, 20)
"""The chance of noise that is taken for people of one value, twice."""
_WRONG = Fraction(1, 20)
"""The chance that this place is further off than is stated."""


class Ties(NamedTuple):
    """What is known of the people who have the value of an answer; released.

    Attributes:
        below: how many of them are below the quantile, in units of 1 / D.
        above: how many are above it.
        error: how far off that is, in people, in 95% of draws; None: they are few, or nobody.
    """

    below: int
    above: int
    error: float | None


NO_TIES = Ties(0, 0, None)


@dataclass(frozen=True)
class SplitSearch(Paid):
    """Choose a candidate for each of several p, in rising order; or none for some of them.

    The middle p (of two, the one nearer to 1/2) is searched among all people. Its answer y splits
    them: what people have below y is searched for the smaller p, what they have above y for the
    larger ones, with p relative to the part; and so on, in floor(log2 m) + 1 levels for m
    quantiles. The first level has 11 / 9 times as much of the budget as every other, or 9 / 11
    times, if its p is near an end. Between two answers, or an answer and a public end, no answer
    has the weight of all candidates, not 128 of it: none of them is far from the data.

    *Ties.* With lt, eq and gt people below, at and above y, p n is lt + r, where r people at y are
    below the p-quantile: r = p (eq + gt) - (1 - p) lt; the other eq - r are above it. Where few
    have the value y, both are next to nothing. So eq is drawn with noise, by what the next level
    has for people at y, who are in none of its parts. Where it is above the noise, r is drawn too,
    with noise for max(p, 1 - p), by `_TIES` of the next level. The parts then have r and eq - r
    more at y, as drawn: constants. So ranks of the part below are those of lt + r people of whom
    q / p are at or below the q-quantile, and those above like this.

    The release is epsilon-DP (rho-zCDP for `Budget.zcdp(rho)`) when one person is added or removed.

    Proof. Given the answers of the levels above, the parts of one level are fixed, and so are the
    places y between them. A person's rows are divided among them: a_1 + a_2 + ... <= 1 of a person.
    A search of epsilon e is (a_j e)-DP for one who has a_j in its part, where the constants beside
    it change nothing (the theorems of `CentralSearch` and `TailSearch`); eq and Laplace noise of
    the rate e is (a_j e)-DP for one who has a_j at y; r moves by max(p, 1 - p) times what a person
    has in the node before it. Let a level have the epsilon f, and t = `_TIES`. One who has b in a
    node above, c of it at y and b - c on both sides, spends c (1 - t) f + b t f where r is drawn,
    as searches have (1 - t) f then, and (b - c) (1 - t) f for these; b f at most where it is not.
    That is at most b f, and the b of a level add up to 1 at most; levels compose adaptively. Under
    zCDP a search of rho, and Gaussian noise, are (a_j^2 rho)-zCDP for that person: a bounded range
    of a_j sqrt(8 rho) is a_j^2 rho. So b^2 rho or less is spent, and squares add up to 1 at most.

    Where a part has no answer, its people all go to that side which has the p nearest to 1/2, and
    the other side has none: a person is then in one part, as before.

    Args:
        budget: what all choices together may spend.
        shares: every p, rising, above 0 and below 1.
        resolution: D.
        false_stop: of every `TailSearch`.

    Source: Kaplan, Schnapp, Stemmer 2022, "Differentially private approximate quantiles"
    (2110.05429), with other searches in the nodes.
    """

    shares: tuple[Fraction, ...]
    resolution: int = RESOLUTION
    false_stop: float = FALSE_STOP

    @property
    def levels(self) -> int:
        """How many searches of one person's rows follow each other."""
        return len(self.shares).bit_length()

    def level_cost(self, level: int) -> Budget:
        """Return what the searches of one level may spend together; the first one is 0."""
        middle = self.shares[_middle(self.shares)]
        root = _ROOT if TAIL < middle < 1 - TAIL else 1 / _ROOT
        return self.cost.scaled((Fraction(1) if level else root) / (root + self.levels - 1))

    def answers(
        self, node: Node, candidates: Candidates, noise: Noise, people: float = 0
    ) -> list[Answer]:
        """Return the answer for each share, for the node of all candidates: a private draw.

        Args:
            node: what people have at all candidates.
            candidates: the public outputs.
            noise: the randomness.
            people: about how many there are, which is public; 0: nothing is known.
        """
        part = self.shares, people, 0, self.level_cost(0)
        return self._choose(node, *part, candidates, noise)

    @property
    def usual_errors(self) -> list[int]:
        """How far each rank is off in 95% of draws where people are many; by measurement."""
        return [math.ceil(error) for error in self._usual(self.shares, 0)]

    def _usual(self, shares: tuple[Fraction, ...], level: int) -> list[float]:
        if not shares:
            return []
        middle = _middle(shares)
        own = float(self._search(shares[middle], self.level_cost(level)).usual_error)
        below, above = (self._usual(part, level + 1) for part in _relative(shares))
        pairs = zip([*below, 0.0, *above], _weights(shares), strict=True)
        return [math.hypot(error, own * weight) for error, weight in pairs]

    def _search(
        self, p: Fraction, cost: Budget, people: float = 0, none: int = NONE
    ) -> CentralSearch | TailSearch:
        """Return the search of one node that measures best; people are known to a factor of 2."""
        if TAIL < p < 1 - TAIL:
            return CentralSearch(cost, p, self.resolution, none)
        upper = p >= 1 - TAIL
        return TailSearch(
            cost,
            1 - p if upper else p,
            upper=upper,
            false_stop=self.false_stop,
            resolution=self.resolution,
            people=1 << int(people).bit_length() - 1 if people >= 1 else 0,
        )

    def _choose(
        self,
        node: Node,
        shares: tuple[Fraction, ...],
        people: float,
        level: int,
        cost: Budget,
        candidates: Candidates,
        noise: Noise,
    ) -> list[Answer]:
        if not shares:
            return []
        middle = shares[_middle(shares)]
        search = self._search(middle, cost, people, _none(node, level))
        answer = search.choose_at(node, candidates, noise)
        if len(shares) == 1:
            return [answer]
        ties = NO_TIES
        if answer.candidate is not None:
            ties = self._ties(node.around(answer.candidate), middle, level + 1, noise)
        cost = self._left(level + 1, ties)
        below, above = (
            [Answer()] * len(rest)
            if part is None
            else self._choose(part, rest, people * size, level + 1, cost, candidates, noise)
            for part, rest, size in _parts(node, shares, answer.candidate, ties)
        )
        off = answer.error if ties.error is None else ties.error
        weights = iter(_weights(shares))
        left = [_carried(each, off * next(weights)) for each in below]
        next(weights)
        return [*left, answer, *(_carried(each, off * next(weights)) for each in above)]

    def _left(self, level: int, ties: Ties) -> Budget:
        """Return what searches of a level may spend beside the count of those who are tied."""
        cost = self.level_cost(level)
        return cost if ties.error is None else cost.scaled(1 - _TIES)

    def _ties(self, around: tuple[int, int, int], p: Fraction, level: int, noise: Noise) -> Ties:
        """Return how those at an answer are divided, by what people have around it: a draw."""
        below, here, above = around
        cost = self.level_cost(level)
        seen = AdditiveNoise(cost.scaled(1 - _TIES))
        people = int(seen.add(integers.alone(here), self.resolution, noise)[0])
        if people <= seen.bound(1, _SEEN) * self.resolution:
            return NO_TIES
        over, under = p.as_integer_ratio()
        most = max(over, under - over)
        adder = AdditiveNoise(cost.scaled(_TIES))
        exact = integers.alone(over * (here + above) - (under - over) * below)
        lower = int(adder.add(exact, most * self.resolution, noise)[0]) // under
        lower = min(max(0, lower), people)
        return Ties(lower, people - lower, adder.bound(most, _WRONG) / under)


def _middle(shares: tuple[Fraction, ...]) -> int:
    """Return the place of the p that is searched first."""
    last = len(shares) // 2
    places = [last - 1, last] if len(shares) % 2 == 0 else [last]
    return min(places, key=lambda place: abs(shares[place] - Fraction(1, 2)))


def _none(node: Node, level: int) -> int:
    """Return the weight of no answer; at the first level the people may be few."""
    return 1 if level and all(node.known) else NONE


def _weights(shares: tuple[Fraction, ...]) -> list[float]:
    """Return by how much of the middle rank's error each rank is off: 1 for the middle itself.

    Where the middle rank is off by r, a rank at the share w of one side is off by w r.
    """
    middle = shares[_middle(shares)]
    return [float(min(share / middle, (1 - share) / (1 - middle))) for share in shares]


def _carried(answer: Answer, error: float) -> Answer:
    """Return an answer with the error of the ranks of its part: independent, so squares add up."""
    if answer.candidate is None or math.isinf(error):
        return answer
    return answer._replace(error=math.ceil(math.hypot(answer.error, error)))


Part = tuple[Node | None, tuple[Fraction, ...], float]


def _relative(shares: tuple[Fraction, ...]) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Return the p on both sides of the middle one, relative to the people there."""
    middle = _middle(shares)
    p = shares[middle]
    upper = tuple((share - p) / (1 - p) for share in shares[middle + 1 :])
    return tuple(share / p for share in shares[:middle]), upper


def _parts(
    node: Node, shares: tuple[Fraction, ...], index: int | None, ties: Ties
) -> tuple[Part, Part]:
    """Return for both sides of the middle p: its people, its p relative to them, their share."""
    middle = _middle(shares)
    if index is not None:
        p = float(shares[middle])
        parts = node.split(index, ties.below, ties.above)
        below, above = zip(parts, _relative(shares), (p, 1 - p), strict=True)
        return below, above
    lower, upper = shares[:middle], shares[middle + 1 :]
    half = Fraction(1, 2)
    left = min((abs(share - half) for share in lower), default=Fraction(1))
    right = min((abs(share - half) for share in upper), default=Fraction(1))
    nearer, node = left <= right, replace(node, known=(False, False))
    return (node if nearer else None, lower, 1.0), (None if nearer else node, upper, 1.0)
