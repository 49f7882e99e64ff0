"""TailSearch: a quantile far out, the k-th largest or the largest, by a walk from the outside."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.search.common import check, check_share
from beam_dp.mechanisms.search.draws import first_stop
from beam_dp.mechanisms.search.rank_search import RESOLUTION, alone
from beam_dp.mechanisms.search.ranks.node import Answer, Node, NodeSearch, epsilon_of
from beam_dp.mechanisms.search.stop_chances import stop_chances

_OWNER = "TailSearch"
STRAY = 0.008
"""The default chance to stop where nobody is."""
NOBODY = 0.005
"""The chance to take nobody for somebody behind the answer."""
COUNTED = Fraction(1, 20)
"""The part of epsilon for the number of people."""
_FEW = 0.01  # the chance to take so few people as the floor for many
_EARLY = 3.25  # measured: a walk over N candidates stops about ln N / (3.25 e2) people early
_SPREAD = 6  # measured: the 95% error of the rank, times epsilon
_UNSURE = 4  # Laplace noise of rate e2 exceeds 4 / e2 with a chance of 1%, on one side
_FINE = 1 << 40  # levels are multiples of 1 / 2^40 of a person


class _Walk(NamedTuple):
    """Runs of candidates in the order of the walk, and what people have from each of them on."""

    reached: np.ndarray
    begins: np.ndarray
    lengths: np.ndarray


class _Levels(NamedTuple):
    """What is public: the rates of the noises, per person, and levels, in people.

    Attributes:
        first: e1.
        second: e2.
        third: e3.
        more: rank + h.
        floor: L.
        behind: t.
        many: t'.
    """

    first: Fraction
    second: Fraction
    third: Fraction
    more: Fraction
    floor: Fraction
    behind: Fraction
    many: Fraction


@dataclass(frozen=True)
class TailSearch(NodeSearch):
    """Walk from the top to the first candidate with enough people at or above it; or answer none.

    With n people, A(y) of them at or above y (each with their share of rows there), P(Geo(e) = k) =
    (1 - e^-e) e^(-e k), rho ~ Geo(e1), nu_y ~ Geo(e2), y is the first candidate from the top with

        A(y) + nu_y >= T + rho,   T = max(s n + rank + h, L),   s the share.

    It is released if B = n - A(y) + eta >= t or n + eta' >= t', with discrete Laplace noise of
    the rates e2 and e3; so is B, which says how far the rank may be off. Otherwise, and where
    the walk passes all candidates, the answer is none: too few people. `upper=False` is the mirror
    image: at or below, from the bottom. All is epsilon-DP (rho-zCDP for `Budget.zcdp(rho)`) when
    one person is added or removed.

    L, the *floor*, is the least number of people that the walk stops for. Where it is reached, the
    answer has a lower rank than was asked for: no private answer can rest on fewer.

    Theorem. Let one more person have a in all (1; less in a part of a `Node`), x' with and x
    without them. For every outcome and some d from 0 to s, ln P_x / P_x' is at most
    a max((1 - d) e1, (1 + d) e2), and ln P_x' / P_x is at most a (d e1 + e2).

    Proof. Let a = 1, else all below is a times that. Let g_i from 0 to 1 be what the person has at
    or above y_i; T moves by some d from 0 to s, and q_i = A(y_i) - T by c_i = g_i - d. Both g_i and
    c_i do not fall along the walk. With F(r) = P(nu >= r) = e^(-e2 max(r, 0)), it stops at i with
    W_x(i) = sum_r P(rho = r) prod_{j < i} (1 - F(r - q_j)) F(r - q_i).

    1. W_x / W_x'. If c_i >= 0, in W_x' replace r by r + c_i, which costs e^(-e1 c_i): as
       c_j <= c_i, no earlier candidate is passed less, and r + c_i - q'_i = r - q_i. If c_i < 0, so
       are all c_j before: with the same r, no earlier one is passed less, and the stop costs
       e^(-e2 |c_i|).
    2. W_x' / W_x. In W_x replace r by r + z, z = max(0, -c_0) <= d, which costs e^(-e1 z): as
       c_j >= c_0 >= -z, no earlier one is passed less, and the stop costs e^(-e2 (z + c_i)), with
       z + c_i <= g_i: it is g_i - g_0 or g_i - d.
    3. n - A(y_i) moves by 1 - g_i, so each B costs e^(-e2 (1 - g_i)) at most, both ways. Where the
       person counts in the walk, they do not count in B.

    1 and 3 together cost max(e1 (g - d), e2 (d - g)) + e2 (1 - g): piecewise linear in g, at
    most e1 (1 - d) at g = 1, e2 (1 - d) at g = d, and e2 (1 + d) at g = 0. 2 and 3 cost
    e1 d + e2 g + e2 (1 - g). To pass all candidates is as 1 and 2 without the stop. The noisy n
    costs e3 more, both ways.

    *Rates.* Let f be epsilon less a twentieth, and e3 that twentieth. Pure: e1 = f,
    e2 = (1 - s) f. zCDP: the log ratio ranges over an interval of length
    max(e1 + e2, (2 + d) e2 + d e1) + 2 e3, at most eta = sqrt(8 rho) for f and e3 of eta / 2,
    e1 = (1 + s) f, e2 = (1 - s) f; see `epsilon_of`.

    *The floor.* Where nobody is, one of M candidates stops the walk with a chance of at most
    M c e^(-e2 L) = `stray`, c = (1 - e^-e1) / (1 - e^-(e1 + e2)). Of candidates on both sides of 0,
    M is the number of those on the outer side: for data beyond 0 it is up to twice as likely.

    *Few people.* A walk that has passed everybody may stop far from all data. With nobody behind,
    B >= t has a chance of 0.5%, t = ln(1 / (0.005 (1 + e^-e2))) / e2. Where nearly all have one
    value nobody is behind it either: then many people do, t' = L + ln(1 / (0.01 (1 + e^-e3))) / e3.

    All is in integers: shares in units of 1 / D (rounded down), s = a / b, levels in units of
    1 / (b D). *Rank error*: measured, not proved; see `rank_error`.

    Args:
        budget: what one choice may spend.
        share: s, of the people who shall be at or above the answer; from 0 to below 1.
        rank: how many more shall be: k for the k-th largest, 0 for the largest there is.
        upper: whether the walk begins at the top.
        stray: the chance to stop where nobody is.
        resolution: D.

    Raises:
        TypeError: if budget is no Budget.
        ValueError: for numbers out of range.

    Source: the sparse vector technique with one-sided noise (see `AboveThreshold`, `RankSearch`);
    the second step costs nothing more, as a person is on one side of the answer.
    """

    budget: Budget
    share: checks.Real = 0
    rank: int = 0
    upper: bool = True
    stray: float = STRAY
    resolution: int = RESOLUTION

    def __post_init__(self) -> None:
        check(_OWNER, self.budget, 0.5)
        checks.fraction_between(_OWNER, "stray", self.stray, 0, 1)
        share = checks.decimal(_OWNER, "share", self.share)
        checks.require(0 <= share < 1, _OWNER, "share", f"be from 0 to below 1, not {share}")
        check_share(_OWNER, self.share)
        checks.require(self.rank >= 0, _OWNER, "rank", f"be at least 0, not {self.rank}")
        checks.positive_integer(_OWNER, "resolution", self.resolution)

    def floor(self, candidates: Candidates) -> int:
        """Return how many people must be at or above a candidate, about, for the walk to stop."""
        return math.ceil(self._levels(_outer(candidates, 0, candidates.size, self.upper)).floor)

    @property
    def usual_error(self) -> int:
        """How far the rank is off in 95% of draws where the floor is not reached."""
        return math.ceil(_SPREAD / float(epsilon_of(self.budget)))

    def is_floored(self, candidates: Candidates) -> bool:
        """Return whether the floor is above `rank`, so that it alone says where the walk stops."""
        levels = self._levels(_outer(candidates, 0, candidates.size, self.upper))
        return levels.more <= levels.floor

    def rank_error(self, candidates: Candidates, behind: int = 0) -> int:
        """Return how far the rank is off in 95% of draws, in people, by measurement.

        Args:
            candidates: the public outputs.
            behind: B, how many people are behind the answer.
        """
        levels = self._levels(_outer(candidates, 0, candidates.size, self.upper))
        return self._error(levels, behind * self.resolution)

    def choose_at(self, node: Node, candidates: Candidates, noise: Noise) -> Answer:
        """Return one candidate of a node, or none: a private draw."""
        levels, walk = self._prepared(node, candidates)
        rho = int(noise.geometric(levels.first / self._unit, 1)[0])
        needs = integers.add(self._needs(node, levels, walk), alone(rho))
        stop = first_stop(levels.second / self._unit, needs, walk.lengths, noise)
        if stop is None:
            return Answer()
        total = int(node.sums[-1])
        behind = self._noisy(total - int(walk.reached[stop.run]), levels.second, noise)
        many = self._noisy(total, levels.third, noise) >= self._units(levels.many)
        if behind < self._units(levels.behind) and not many:
            return Answer()
        index = self._index(int(walk.begins[stop.run]) + stop.passed, node)
        return Answer(index, self._error(levels, behind))

    def chances_at(self, node: Node, candidates: Candidates) -> list[float]:
        """Return the probabilities of the candidates of a node, and of none."""
        levels, walk = self._prepared(node, candidates)
        needs = np.repeat(self._needs(node, levels, walk), walk.lengths).tolist()
        rates = (float(rate / self._unit) for rate in (levels.first, levels.second))
        stops = stop_chances(needs, *rates)
        total = int(node.sums[-1])
        seconds, thirds = (float(r / self.resolution) for r in (levels.second, levels.third))
        least, many = self._units(levels.behind), self._units(levels.many) - total
        found, lost = [], []
        reached = np.repeat(walk.reached, walk.lengths).tolist()
        for stop, people in zip(stops[:-1], reached, strict=True):
            few = laplace_at_least(1 - (least - total + people), seconds)
            here = laplace_at_least(least - total + people, seconds)
            found.append(stop * (here + few * laplace_at_least(many, thirds)))
            lost.append(stop * few * laplace_at_least(1 - many, thirds))
        none = math.fsum([*lost, stops[-1]])
        return [*(found[::-1] if self.upper else found), none]

    @property
    def _share(self) -> Fraction:
        return checks.decimal(_OWNER, "share", self.share)

    @property
    def _unit(self) -> int:
        """How many units of a level one person is worth."""
        return self.resolution * self._share.denominator

    def _levels(self, outer: int) -> _Levels:
        """Return the rates and levels for so many candidates that nobody may be near."""
        first, second, third = self._rates
        a, b, c = float(first), float(second), float(third)
        ratio = math.expm1(-a) / math.expm1(-a - b)
        floor = max(0.0, math.log(outer * ratio / float(self.stray))) / b
        more = self.rank + math.log(outer) / (_EARLY * b)
        many = floor + _exceeded(_FEW, c)
        levels = (more, floor, _exceeded(NOBODY, b), many)
        return _Levels(first, second, third, *map(_rounded_up, levels))

    @property
    def _rates(self) -> tuple[Fraction, Fraction, Fraction]:
        """e1, e2 and e3."""
        epsilon, share, zcdp = epsilon_of(self.budget), self._share, self.budget.is_zcdp
        half = epsilon / 2 if zcdp else epsilon
        walked = half * (1 - COUNTED)
        first = walked * (1 + share) if zcdp else walked
        return first, walked * (1 - share), half * COUNTED

    def _noisy(self, units: int, rate: Fraction, noise: Noise) -> int:
        """Return a number in units of 1 / D with discrete Laplace noise."""
        return units + int(noise.discrete_laplace(rate / self.resolution, 1)[0])

    def _units(self, people: Fraction) -> int:
        return math.ceil(people * self.resolution)

    def _prepared(self, node: Node, candidates: Candidates) -> tuple[_Levels, _Walk]:
        levels = self._levels(_outer(candidates, node.first, node.stop, self.upper))
        return levels, (_down if self.upper else _up)(node)

    def _needs(self, node: Node, levels: _Levels, walk: _Walk) -> np.ndarray:
        """Return T - A(y) of each run, in units."""
        total, unit = int(node.sums[-1]), self._unit
        asked = self._share.numerator * total + round(levels.more * unit)
        level = alone(max(asked, math.ceil(levels.floor * unit)))
        return integers.add(level, -integers.product(walk.reached, alone(self._share.denominator)))

    def _error(self, levels: _Levels, behind: int) -> int:
        """Return the error of the rank, for a noisy number behind, in units of 1 / D.

        Where the floor is above what is asked for, the answer has about the floor's rank. There are
        s n people asked for, s / (1 - s) of those behind at least, but for the noise of 4 / e2.
        """
        people = behind / self.resolution - _UNSURE / float(levels.second)
        share = float(self._share)
        asked = self.rank + max(0.0, share / (1 - share) * people)
        return max(self.usual_error, math.ceil(float(levels.floor) - asked))

    def _index(self, place: int, node: Node) -> int:
        """Return the index of a candidate by its place in the walk."""
        return node.stop - 1 - place if self.upper else node.first + place


def _up(node: Node) -> _Walk:
    """Return the walk from the bottom: what people have at or below."""
    begins = np.append(node.first, node.buckets)
    lengths = np.diff(np.append(begins, node.stop))
    filled = lengths > 0
    return _Walk(node.sums[filled], (begins - node.first)[filled], lengths[filled])


def _down(node: Node) -> _Walk:
    """Return the walk from the top: what people have at or above."""
    ends = np.append(node.buckets + 1, node.stop)[::-1]
    lengths = -np.diff(np.append(ends, node.first))
    filled = lengths > 0
    sums = node.sums
    reached = integers.add(sums[-1:], -sums)[::-1]
    return _Walk(reached[filled], (node.stop - ends)[filled], lengths[filled])


def _outer(candidates: Candidates, first: int, stop: int, upper: bool) -> int:
    """Return how many of the candidates are on the outer side of 0; all, if none or all are."""
    zero = min(max(candidates.index(0), first), stop)
    outer = stop - zero if upper else zero - first
    return outer or stop - first


def _rounded_up(people: float) -> Fraction:
    return Fraction(math.ceil(people * _FINE), _FINE)


def _exceeded(chance: float, rate: float) -> float:
    """Return what discrete Laplace noise is at least with so small a chance, or a little more."""
    return max(0.0, -math.log(chance * (1 + math.exp(-rate)))) / rate


def laplace_at_least(least: int, rate: float) -> float:
    """Return P(eta >= least) of the discrete Laplace distribution."""
    if least > 0:
        return math.exp(-rate * least) / (1 + math.exp(-rate))
    return 1 - math.exp(-rate * (1 - least)) / (1 + math.exp(-rate))
