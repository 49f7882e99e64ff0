"""TailSearch: a quantile near an end, the k-th largest and the largest, by a walk from outside."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.search.common import check, check_share
from beam_dp.mechanisms.search.ranks.first_look import (
    FirstLook,
    Line,
    Sight,
    level_for,
    stretches,
)
from beam_dp.mechanisms.search.ranks.levels import (
    Levels,
    exceeded,
    floor_of,
    laplace_at_least,
    rounded_up,
)
from beam_dp.mechanisms.search.ranks.node import Answer, Node, NodeSearch, epsilon_of
from beam_dp.mechanisms.search.ranks.rank_profile import RESOLUTION, alone
from beam_dp.mechanisms.search.ranks.weight_walk import WeightWalk

_OWNER = "TailSearch"
STRAY = 0.008
"""The default chance to stop where nobody is."""
NOBODY = 0.005
"""The chance to take nobody for somebody behind the answer."""
LOOKED = Fraction(1, 20)
"""The part of epsilon for the first look."""
_MISLED = Fraction(1, 100)  # the part of `stray` for edges where nobody is
_NEAR = Fraction(3, 4)  # the part of the rest for candidates near an edge; what is left is for all
_FEW = 0.01  # the chance to take so few people as the floor for many
_EARLY, _EARLIER = 3.2, 2.4
"""Measured: a walk over N candidates stops about ln N / (3.2 e2) people early; where people are
few, and more candidates lie between them, ln N / (2.4 e2)."""
_SPREAD = 6  # measured: the 95% error of the rank, times epsilon
_SURE = math.log(25)  # Laplace noise of rate e exceeds this / e with a chance of 2%, on one side
_UNSURE = 4  # Laplace noise of rate e2 exceeds 4 / e2 with a chance of 1%, on one side
_GRAINS = 1 << 10  # a person is worth so many units of a level at least


@dataclass(frozen=True)
class TailSearch(NodeSearch):
    """Walk from the top to the first candidate with enough people at or above it; or answer none.

    With n people, A(y) of them at or above y (each with their share of rows there), s the share,

        T(y) = max(s n + max(0, rank - 1/2) / worth + h, L(y)),

    the walk is a `WeightWalk` of the levels T and the rate e2: it stops about where A(y) reaches
    T(y), but for Laplace noise of the rate e2. h is by how much it stops early, as the candidates
    before y weigh too: measured. L, the *floor*, is the least number of people that it stops for.
    Where it is reached, the answer has a lower rank than was asked for.

    A `FirstLook` of the rate e3 comes before. Where it sees that many people, some 250 / epsilon,
    are at or above an edge, L is low up to `STEP` candidates above that edge, and rises from there
    on: as the data's scale is known, fewer people are enough. Else L is the same everywhere. Where
    it sees so few people that the floor is above s n + h, then s counts as 0.

    The answer is released if B = n - A(y) + eta >= t, with discrete Laplace noise eta of the rate
    e2, or where the first look sees many people; so is B, which says how far the rank may be off.
    Otherwise, and where the walk passes all candidates, the answer is none: too few people.
    `upper=False` is the mirror image: at or below, from the bottom. All is epsilon-DP (rho-zCDP for
    `Budget.zcdp(rho)`) when one person is added or removed.

    Theorem. Let one more person have a in all (1; less in a part of a `Node`). The logarithm of the
    ratio of any chance with and without them is at most a (e3 + (1 + s) e2), up and down.

    Proof. Let a = 1, else all below is a times that. The first look costs e3. Given what it saw,
    let g_i from 0 to 1 be what the person has at or above the i-th candidate y_i. T(y_i) moves by
    some d_i: by s where s n + ... is the larger one, by 0 where L(y_i) is, by something
    between where they change places. As L does not rise along the walk, d_i does not fall. So a
    stop at y_i costs e2 (g_i + d_i) (the theorem of `WeightWalk`). n - A(y_i) moves by 1 - g_i, so
    each B costs e2 (1 - g_i). Together e2 (1 + d_i). To pass all candidates costs e2.

    *Rates.* e3 is a twentieth of epsilon, and f the rest: e2 = f / (1 + s). zCDP: the log ratio
    ranges over an interval of length 2 (e3 + (1 + s) e2) = eta = sqrt(8 rho); see `epsilon_of`.

    *The floor.* Where nobody is, M candidates of the floor L stop the walk with a chance of at most
    M e^(-e2 L) / 2, which is `stray` less a hundredth. That hundredth is the chance to see an edge
    where nobody is. Without an edge, of candidates on both sides of 0, M is the number of those on
    the outer side: for data beyond 0 it is up to twice as likely. With an edge, a quarter of the
    chance is for these, and three quarters for stretches of candidates above the edge: each one is
    twice as long as the one before, and weighs a quarter for each candidate, so all weigh twice as
    much as the first one. L is the lower one of both.

    *Few people.* A walk that has passed everybody may stop far from all data. With nobody behind,
    B >= t has a chance of 0.5%, t = ln(1 / (0.005 (1 + e^-e2))) / e2. Where nearly all have one
    value nobody is behind it either: then many people do, L + ln(1 / (2 * 0.01)) / e3 by the first
    look.

    All is in integers: shares in units of 1 / D (rounded down), s = a / b, levels in units of
    1 / (b D) or finer. *Rank error*: measured, not proved; see `rank_error`.

    Args:
        budget: what one choice may spend.
        share: s, of the people who shall be at or above the answer; from 0 to below 1.
        rank: how many more shall be: k for the k-th largest, 0 for the largest there is.
        upper: whether the walk begins at the top.
        stray: the chance to stop where nobody is.
        resolution: D.
        worth: how many of the things that `rank` counts a person's whole weight stands for: the C
            of rows that weigh 1 / C each.

    Raises:
        TypeError: if budget is no Budget.
        ValueError: for numbers out of range.

    Source: the sparse vector technique, of which `WeightWalk` is a form with one noise; the count
    behind costs nothing more, as a person is on one side of the answer.
    """

    budget: Budget
    share: checks.Real = 0
    rank: int = 0
    upper: bool = True
    stray: float = STRAY
    resolution: int = RESOLUTION
    worth: int = 1

    def __post_init__(self) -> None:
        check(_OWNER, self.budget, 0.5)
        checks.positive_integer(_OWNER, "worth", self.worth)
        checks.fraction_between(_OWNER, "stray", self.stray, 0, 1)
        share = checks.decimal(_OWNER, "share", self.share)
        checks.require(0 <= share < 1, _OWNER, "share", f"be from 0 to below 1, not {share}")
        check_share(_OWNER, self.share)
        checks.require(self.rank >= 0, _OWNER, "rank", f"be at least 0, not {self.rank}")
        checks.positive_integer(_OWNER, "resolution", self.resolution)

    def floor(self, candidates: Candidates) -> int:
        """Return how many people must be at or above a candidate, about, for the walk to stop.

        It is fewer where the first look sees many people.
        """
        return math.ceil(self._few(_outer(candidates, 0, candidates.size, self.upper)).floor)

    @property
    def usual_error(self) -> int:
        """How far the rank is off in 95% of draws where the floor is not reached."""
        return math.ceil(_SPREAD / float(epsilon_of(self.budget)))

    def is_floored(self, candidates: Candidates) -> bool:
        """Return whether the floor is above `rank`, so that it alone says where the walk stops."""
        levels = self._few(_outer(candidates, 0, candidates.size, self.upper))
        return levels.more <= levels.floor

    def rank_error(self, candidates: Candidates, behind: int = 0) -> int:
        """Return how far the rank is off in 95% of draws, in people, by measurement.

        Args:
            candidates: the public outputs.
            behind: B, how many people are behind the answer.
        """
        levels = self._few(_outer(candidates, 0, candidates.size, self.upper))
        return self._error(levels, 0, behind * self.resolution)

    def choose_at(self, node: Node, candidates: Candidates, noise: Noise) -> Answer:
        """Return one candidate of a node, or none: a private draw."""
        line, outer = self._prepared(node, candidates)
        levels = self._levels(outer, self._look(outer).see(line, noise))
        begins, walk = self._walk(line, levels)
        stop = walk.stop(noise)
        if stop is None:
            return Answer()
        behind = line.total - int(line.reached(begins)[stop.run])
        person = np.array([self.resolution], object)
        behind = int(AdditiveNoise(Budget(levels.rate)).add(alone(behind), person, noise)[0])
        if behind < self._units(levels.behind) and not levels.many:
            return Answer()
        passed = int(begins[stop.run]) + stop.passed
        index = node.stop - 1 - passed if self.upper else node.first + passed
        return Answer(
            index, self._error(levels, passed, behind), self._people(levels, passed, behind)
        )

    def chances_at(self, node: Node, candidates: Candidates) -> list[float]:
        """Return the probabilities of the candidates of a node, and of none."""
        line, outer = self._prepared(node, candidates)
        chances = np.zeros(node.size + 1)
        for sight, chance in self._look(outer).chances(line):
            levels = self._levels(outer, sight)
            begins, walk = self._walk(line, levels)
            behind = line.total - np.repeat(line.reached(begins), walk.lengths)
            kept = np.array([self._kept(levels, int(units)) for units in behind])
            stops = chance * np.array(walk.chances())
            chances[:-1] += stops[:-1] * kept[:, 0]
            chances[-1] += stops[-1] + stops[:-1] @ kept[:, 1]
        ordered = chances[-2::-1] if self.upper else chances[:-1]
        return [float(each) for each in (*ordered, chances[-1])]

    @property
    def _share(self) -> Fraction:
        return checks.decimal(_OWNER, "share", self.share)

    @property
    def _asked(self) -> float:
        """How many people shall be reached beside the share: with k - 1/2 the k-th is the first."""
        return max(0.0, self.rank - 0.5) / self.worth

    @property
    def _unit(self) -> int:
        """How many units of a level one person is worth."""
        return self.resolution * self._share.denominator * self._grain

    @property
    def _grain(self) -> int:
        return max(1, _GRAINS // self.resolution)

    @property
    def _rates(self) -> tuple[Fraction, Fraction]:
        """f and e3."""
        epsilon = epsilon_of(self.budget)
        half = epsilon / 2 if self.budget.is_zcdp else epsilon
        return half * (1 - LOOKED), half * LOOKED

    def _few(self, outer: int) -> Levels:
        """Return the levels where the first look has seen nothing."""
        return self._levels(outer, Sight(None, Fraction(0)))

    def _look(self, outer: int) -> FirstLook:
        """Return the first look: for an edge; whether s n counts; whether people are many."""
        _, third = self._rates
        level = level_for(third, outer, float(self.stray * _MISLED))
        asked = {self._enough(outer), self._many(outer)} if self._share else {self._many(outer)}
        questions = sorted(asked, reverse=True)
        return FirstLook(third, rounded_up(level), questions, self.resolution)

    def _many(self, outer: int) -> Fraction:
        """Return how many people are more than the floor by far."""
        rate, third = self._rates
        few = floor_of(rate / (1 + self._share), outer, self._walked)
        return rounded_up(few + max(0.0, -math.log(2 * _FEW)) / float(third))

    def _enough(self, outer: int) -> Fraction:
        """Return for how many people s n + h is above the floor, or not much below.

        Where s n + h is above it by more than the usual error, people are taken for fewer with a
        chance of 2%.
        """
        rate, third = self._rates
        early = math.log(outer) / (_EARLIER * float(rate))
        above = max(0.0, floor_of(rate, outer, self._walked) - early - self._asked)
        surely = (above + self.usual_error) / float(self._share) - _SURE / float(third)
        return rounded_up(max(0.0, min(above / float(self._share), surely)))

    @property
    def _walked(self) -> float:
        """The chance that a walk stops where nobody is."""
        return float(self.stray * (1 - _MISLED))

    def _levels(self, outer: int, sight: Sight) -> Levels:
        """Return the rates and levels after a first look."""
        rate, _ = self._rates
        share = self._share
        if share and sight.edge is None and sight.people < self._enough(outer):
            share = Fraction(0)
        rate /= 1 + share
        floor = most = floor_of(rate, outer, self._walked)
        cuts: tuple[int, ...] = ()
        if sight.edge is not None:
            cuts, size = stretches(sight.edge)
            most = floor_of(rate, outer, float(1 - _NEAR) * self._walked)
            floor = min(most, floor_of(rate, size, float(_NEAR) * self._walked))
        early = math.log(outer) / ((_EARLIER if sight.edge is None else _EARLY) * float(rate))
        return Levels(
            rate,
            share,
            more=rounded_up(self._asked + early),
            floor=rounded_up(floor),
            most=rounded_up(most),
            cuts=cuts,
            behind=rounded_up(exceeded(NOBODY, float(rate))),
            many=sight.edge is not None or sight.people >= self._many(outer),
        )

    def _prepared(self, node: Node, candidates: Candidates) -> tuple[Line, int]:
        outer = _outer(candidates, node.first, node.stop, self.upper)
        return Line.of(node, self.upper), outer

    def _walk(self, line: Line, levels: Levels) -> tuple[np.ndarray, WeightWalk]:
        """Return where each run of equal T - A(y) begins, and the walk over them."""
        begins = np.sort(np.concatenate([[0], line.indexes, np.array(levels.cuts, np.int64)]))
        begins = begins[np.append(True, np.diff(begins) > 0)]
        parts = self._share.denominator * self._grain
        asked = int(levels.share * parts * line.total) + math.ceil(levels.more * self._unit)
        rises = [levels.floor_at(cut - 1) for cut in levels.cuts]
        floors = [
            math.ceil(rounded_up(each) * self._unit) for each in (float(levels.floor), *rises)
        ]
        needs = [max(asked, each) for each in floors]
        beyond = np.searchsorted(-np.array(levels.cuts, np.int64), -begins, side="left")
        level = integers.narrow(np.array(needs, object))[beyond]
        reached = integers.product(line.reached(begins), alone(parts))
        lengths = np.diff(np.append(begins, line.size))
        return begins, WeightWalk(levels.rate / self._unit, integers.add(level, -reached), lengths)

    def _kept(self, levels: Levels, behind: int) -> tuple[float, float]:
        """Return the chance that an answer with so many units behind it is released, or is not."""
        least, rate = self._units(levels.behind) - behind, float(levels.rate / self.resolution)
        both = laplace_at_least(least, rate), laplace_at_least(1 - least, rate)
        return (1.0, 0.0) if levels.many else both

    def _units(self, people: Fraction) -> int:
        return math.ceil(people * self.resolution)

    def _people(self, levels: Levels, passed: int, behind: int) -> float:
        """Return about how many people there are: those behind, and about T at or beyond.

        With n of them, B = n - T: n is B + L where T is L, and else (B + T - s n) / (1 - s); each
        of the two is below n where the other one is right.
        """
        people, share = behind / self.resolution, float(levels.share)
        return max(people + levels.floor_at(passed), (people + float(levels.more)) / (1 - share))

    def _error(self, levels: Levels, passed: int, behind: int) -> int:
        """Return the error of the rank, for a noisy number behind, in units of 1 / D.

        Where the floor is above what is asked for, the answer has about the floor's rank. There are
        s n people asked for, s / (1 - s) of those behind at least, but for the noise of 4 / e2.
        """
        people = behind / self.resolution - _UNSURE / float(levels.rate)
        share = float(self._share)
        asked = self.rank / self.worth + max(0.0, share / (1 - share) * people)
        return max(self.usual_error, math.ceil(levels.floor_at(passed) - asked))


def _outer(candidates: Candidates, first: int, stop: int, upper: bool) -> int:
    """Return how many of the candidates are on the outer side of 0; all, if none or all are."""
    zero = min(max(candidates.index(0), first), stop)
    outer = stop - zero if upper else zero - first
    return outer or stop - first
