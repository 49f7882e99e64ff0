"""TailSearch: a quantile near an end, the k-th largest and the largest, by a scan from outside.

*`SparseVectorScan`* stops where weights that grow with the number of people passed reach a random
level.

Candidates are scanned in a public order. A(i) people, or parts of people, are at or beyond
the i-th one; T_i is a level, in people. With the rate e:

    H(i) = sum_{j <= i} exp(e (A(j) - T_j)),   stop at the first i with H(i) >= U,

where ln U has the Laplace distribution of scale 1: U = V or 1 / V with the same chance, V uniform.
So (1 / e) ln H is a number of people that rises along the scan; where candidates are many, it rises
a little before A - T does. It is compared with one noise, which is all that e asks for. Where
nobody is, M candidates with the level T stop the scan with the chance M exp(-e T) / 2 at most.

Theorem. Let one more person have g_i at or beyond the i-th candidate, 0 <= g_i <= 1, not falling
along the scan, and let each level move by d_i, 0 <= d_i <= s, not falling either. Then for every i
the logarithm of P'(i) / P(i), with and without them, is between -e (g_i + d_i) and e (g_i + d_i);
that of the chances to pass all candidates is between -e and e s.

Proof. ln U has the density exp(-|v|) / 2, so U has f(u) = min(1, u^-2) / 2. The weight of the j-th
candidate changes by the factor exp(e c_j), c_j = g_j - d_j. Let phi be the map from 0 on that has
this slope between H(j - 1) and H(j). It maps the interval of the i-th one for the first data to
that for the others, so P'(i) is the integral of f(phi(u)) exp(e c_i) over the first interval, where
P(i) has f(u). On it phi(u) / u is a mean of exp(e c_j), j <= i: at most exp(e g_i), as
c_j <= g_j <= g_i, and at least exp(-e d_i), as -c_j <= d_j <= d_i. f does not rise, and u^2 f(u)
does not fall: so f(r u) / f(u) is from 1 to r^-2 for r < 1, and from r^-2 to 1 for r > 1. Hence
P'(i) / P(i) is at most exp(e (g_i - d_i)) exp(2 e d_i), and at least exp(e (g_i - d_i))
exp(-2 e g_i). P(U > h) = 1 - h / 2 up to h = 1, and 1 / (2 h) from there on: it does not rise, and
h P(U > h) does not fall. So P(U > r h) / P(U > h) is from 1 / r to 1, or from 1 to 1 / r for r < 1,
and r is from exp(-e s) to exp(e) at the end of the scan.

Of all f that this proof allows, this one falls fastest on both sides, so that stops are nearest to
the level. A geometric noise for the level and another one for each candidate, as in
`AboveThreshold`, is wider.
"""

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise, Stop
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.numerics.enclosures import ONE, ZERO, Interval, exp_interval
from beam_dp.mechanisms.search.common import Paid, bounded_range
from beam_dp.mechanisms.search.quantiles.node import RESOLUTION, Answer, Node

_WORD = 64  # bits of one word of noise
_FINE = 2.0**-30  # far above the rounding of a float's exponential
_RARE = 2.0**-30  # 64 bits tell any V above it to 2^-34 of itself


class SparseVectorScan(NamedTuple):
    """Runs of candidates of one weight each; private data.

    Attributes:
        rate: e per unit of need, above 0.
        needs: T - A of each run, in units: integers of any magnitude.
        lengths: how many candidates each run has, from 1 on.
    """

    rate: Fraction
    needs: np.ndarray
    lengths: np.ndarray

    def stop(self, noise: Noise) -> Stop | None:
        """Return where the scan stops; None where it passes all candidates: a private draw.

        The distribution is exact: floats decide where U is further from the ends of a candidate
        than they may be wrong, enclosures by rationals decide the others.
        """
        inverse = bool(noise.words(1)[0] & 1)
        uniform = noise.uniform()
        part = float(uniform.interval(_WORD)[0])
        decided = None
        if part > _RARE:
            decided = self._by_floats(1 / part if inverse else part)
        bits = 2 * _WORD
        while decided is None:
            low, high = uniform.interval(bits)
            if low or not inverse:
                level = (ONE / high, ONE / low) if inverse else (low, high)
                decided = self._enclosed(level, bits)
            bits *= 2
        return decided if decided.run < len(self.lengths) else None

    def _floats(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the weight of one candidate of each run, and H at the end of each.

        An exponent above -700 is right to 2^-41. Weights above e^300 stand for larger ones: no
        level that floats decide about is so large.
        """
        exponents = -float(self.rate) * self.needs.astype(np.float64)
        weights = np.exp(np.clip(exponents, -700.0, 300.0))
        return weights, np.cumsum(weights * self.lengths)

    def _by_floats(self, level: float) -> Stop | None:
        """Return where H reaches a level (a run too far: nowhere); None if floats cannot tell."""
        weights, ends = self._floats()
        band = _FINE + len(ends) * 2.0**-50
        run = int(np.searchsorted(ends, level))
        before = float(ends[run - 1]) if run else 0.0
        if before * (1 + band) >= level * (1 - band):
            return None
        if run == len(ends):
            return Stop(len(self.lengths), 0)
        passed = (level - before) / float(weights[run])
        unsure = band * (level / float(weights[run]) + 1)
        index = math.floor(passed)
        begun = not index or passed - index > unsure  # H was below the level before the run
        sure = begun and passed - index < 1 - unsure and index < int(self.lengths[run])
        return Stop(run, index) if sure else None

    def _enclosed(self, level: Interval, bits: int) -> Stop | None:
        """Return the same for a level between two rationals; None if so many bits cannot tell."""
        least, most = ZERO, ZERO  # H so far
        for run, (need, length) in enumerate(
            zip(self.needs.tolist(), self.lengths.tolist(), strict=True)
        ):
            # A weight is cut at e^bits: a level below decides all the same.
            low, high = exp_interval(min(-self.rate * need, Fraction(bits)), bits)
            if least + low >= level[1]:
                return Stop(run, 0)
            if most + length * high >= level[0]:
                if low == 0 or -self.rate * need > bits:
                    return None
                first = math.ceil((level[0] - most) / high) - 1
                last = math.ceil((level[1] - least) / low) - 1
                return Stop(run, first) if 0 <= first == last < length else None
            least, most = least + length * low, most + length * high
        return Stop(len(self.lengths), 0)


FALSE_STOP = 0.008
"""The default chance to stop where nobody is."""
NOBODY = 0.005
"""The chance to take nobody for somebody behind the answer."""
FIRST_SHARE = Fraction(1, 20)
"""The part of epsilon for the first scan."""
STEP = 4096
"""How many candidates are between two edges: four digits have 9,000 in a decade."""
EDGES = 1 << 12
"""So many edges at most: they are further apart where candidates are very many."""
_FARTHER = 4  # by so much less each further stretch of candidates beyond an edge weighs
_MISLED = Fraction(1, 100)  # the part of `false_stop` for edges where nobody is
_NEAR = Fraction(3, 4)  # the part of the rest for candidates near an edge; what is left is for all
_FEW = 0.01  # the chance to take so few people as the floor for many
_EARLY, _EARLIER = 3.2, 2.4
"""Measured: a scan over N candidates stops about ln N / (3.2 e2) people early; where people are
few, and more candidates lie between them, ln N / (2.4 e2)."""
_DENSE = 1300
"""Measured: where s n people are asked for, a scan over decimals stops about ln(1300 / (s n e2)) / e2
people early, if that is less: late, where fewer candidates lie among 1 / e2 people."""
_SPREAD = 6  # measured: the 95% error of the rank, times epsilon
_SURE = math.log(25)  # Laplace noise of rate e exceeds this / e with a chance of 2%, on one side
_UNSURE = 4  # Laplace noise of rate e2 exceeds 4 / e2 with a chance of 1%, on one side
_GRAINS = 1 << 10  # a person is worth so many units of a level at least


class Line(NamedTuple):
    """People in the order of a scan; private data, but for the sizes.

    Attributes:
        indexes: how many slots are passed before each place where somebody is, rising.
        sums: how much people have before each of these, and in all, in units of 1 / D.
        size: how many slots there are.
        side: how many candidates are on the side of 0 that has more of them.
        slots: how many slots count as one candidate.
    """

    indexes: np.ndarray
    sums: np.ndarray
    size: int
    side: int
    slots: int = 1

    @classmethod
    def of(cls, node: Node, candidates: Candidates, upper: bool) -> "Line":
        """Return the people of a node, from the top or from the bottom."""
        first, stop = candidates.slots_before(np.array([node.first, node.stop])).tolist()
        indexes, amounts = candidates.slots_before(node.buckets) - first, node.amounts
        if upper:
            indexes = (stop - candidates.slots_before(node.buckets + 1))[::-1]
            amounts = amounts[::-1]
        sums = np.append(integers.narrow(np.array([0])), integers.running_sums(amounts))
        side = _side(candidates, node.first, node.stop)
        return cls(indexes, sums, stop - first, side, candidates.slots)

    @property
    def total(self) -> int:
        """How much all people have."""
        return int(self.sums[-1])

    def reached(self, indexes: np.ndarray) -> np.ndarray:
        """Return what people have at or before each place."""
        return np.asarray(self.sums[np.searchsorted(self.indexes, indexes, side="right")])


class ScanResult(NamedTuple):
    """What a first scan ends with; it is released.

    Attributes:
        edge: a place that many people are at or before; None: no such place was seen.
        people: n is likely to be so large; 0: nothing is known.
    """

    edge: int | None
    people: float


NOTHING = ScanResult(None, 0.0)


@dataclass(frozen=True)
class Levels:
    """What is public after the first scan: rates per person, and levels in people.

    Attributes:
        rate: e2.
        share: s, or 0 where the floor alone counts.
        more: max(0, rank - 1/2) / worth + h; h is below 0 where people lie dense.
        floors: L of each stretch of candidates, from the data outwards.
        cuts: how many candidates are passed before each stretch but the last, falling.
        behind: t.
        many: whether people are many.
        seen: n is likely to be so large; 0: nothing is known.
        person: how many units of a level one person is worth.
    """

    rate: Fraction
    share: Fraction
    more: float
    floors: tuple[float, ...]
    cuts: tuple[int, ...]
    behind: float
    many: bool
    seen: float
    person: int

    def floor_at(self, passed: int) -> float:
        """Return L of the candidate before which so many are passed."""
        return self.floors[sum(passed < cut for cut in self.cuts)]


@dataclass(frozen=True)
class TailSearch(Paid):
    """Scan from the top to the first candidate with enough people at or above it; or answer none.

    With n people, A(y) of them at or above y (each with their share of rows there), s the share,

        T(y) = max(s n + max(0, rank - 1/2) / worth + h, L(y)),

    the scan is a `SparseVectorScan` of the levels T and the rate e2: it stops about where A(y)
    reaches T(y), but for Laplace noise of the rate e2. h makes up for early stops, as the
    candidates before y weigh too; it is measured. L, the *floor*, is the least number of people
    that it stops for. Where it is reached, the answer has a lower rank than was asked for.

    A *first scan* of the rate e3 comes before. Where it sees that many people, some 250 / epsilon,
    are at or above an edge, L is low up to `STEP` candidates above that edge, and rises from there
    on: as the data's scale is known, fewer people are enough. Else L is the same everywhere. Where
    it sees so few people that the floor is above s n + h, then s counts as 0.

    The answer is released if B = n - A(y) + eta >= t, with discrete Laplace noise eta of the rate
    e2, or where the first scan sees many people; so is B, which says how far the rank may be off.
    Otherwise, and where the scan passes all candidates, the answer is none: too few people.
    `upper=False` is the mirror image: at or below, from the bottom. All is epsilon-DP (rho-zCDP for
    `Budget.zcdp(rho)`) when one person is added or removed.

    Theorem. Let one more person have a in all (1; less in a part of a `Node`). The logarithm of the
    ratio of any chance with and without them is at most a (e3 + (1 + s) e2), up and down.

    Proof. Let a = 1, else all below is a times that. The first scan costs e3. Given what it saw,
    let g_i from 0 to 1 be what the person has at or above the i-th candidate y_i. T(y_i) moves by
    some d_i: by s where s n + ... is the larger one, by 0 where L(y_i) is, by something
    between where they change places. As L does not rise along the scan, d_i does not fall. So a
    stop at y_i costs e2 (g_i + d_i) (the theorem of `SparseVectorScan`). n - A(y_i) moves by 1 -
    g_i, so each B costs e2 (1 - g_i). Together e2 (1 + d_i). To pass all candidates costs e2.

    *Slots.* A `FinerGrid` has several numbers where the grid has one candidate. The scan is over
    slots, of which a number has one or more, and each level is higher by ln(slots) / e2: a
    constant, which moves no d_i. So a cell weighs what its candidate does, and what follows counts
    cells.

    *Rates.* e3 is a twentieth of epsilon, and f the rest: e2 = f / (1 + s). zCDP: the log ratio
    ranges over an interval of length 2 (e3 + (1 + s) e2) = eta = sqrt(8 rho); see `bounded_range`.

    *The floor.* Where nobody is, M candidates of the floor L stop the scan with a chance of at most
    M e^(-e2 L) / 2, which is `false_stop` less a hundredth. That hundredth is the chance to see an
    edge where nobody is. Without an edge, M counts the candidates on one side of 0, on which there
    are more: data beyond 0, which both sides are before, have up to twice the chance. With an edge,
    a quarter of the chance is for these, and three quarters for stretches of candidates above the
    edge: each is twice as long as the one before, and weighs a quarter for each candidate, so all
    weigh twice as much as the first one. L is the lower one of both.

    *Few people.* A scan that has passed everybody may stop far from all data. With nobody behind,
    B >= t has a chance of 0.5%, t = ln(1 / (0.005 (1 + e^-e2))) / e2. Where nearly all have one
    value nobody is behind it either. Then the answer is released because the first scan sees many
    people: L + ln(1 / (2 * 0.01)) / e3.

    All is in integers: shares in units of 1 / D (rounded down), s = a / b, levels in units of
    1 / (b D) or finer. *Rank error*: measured, not proved; see `rank_error`.

    Args:
        budget: what one choice may spend.
        share: s, of the people who shall be at or above the answer; from 0 to below 1.
        rank: how many more shall be: k for the k-th largest, 0 for the largest there is.
        upper: whether the scan begins at the top.
        false_stop: the chance to stop where nobody is.
        resolution: D.
        worth: how many of the things that `rank` counts a person's whole weight stands for: the C
            of rows that weigh 1 / C each.
        people: about how many people there are, which is public; 0: nothing is known.

    Source: the sparse vector technique, of which `SparseVectorScan` is a form with one noise; the
    count behind costs nothing more, as a person is on one side of the answer.
    """

    share: Fraction = ZERO
    rank: int = 0
    upper: bool = True
    false_stop: float = FALSE_STOP
    resolution: int = RESOLUTION
    worth: int = 1
    people: int = 0

    def floor(self, candidates: Candidates) -> int:
        """Return how many people must be at or above a candidate, about, for the scan to stop.

        It is fewer where the first scan sees many people.
        """
        return math.ceil(self._few(candidates).floors[0])

    @property
    def usual_error(self) -> int:
        """How far the rank is off in 95% of draws where the floor is not reached."""
        return math.ceil(_SPREAD / float(bounded_range(self.budget)))

    def is_floored(self, candidates: Candidates) -> bool:
        """Return whether the floor is above `rank`, so that it alone says where the scan stops."""
        levels = self._few(candidates)
        return levels.more <= levels.floors[0]

    def rank_error(self, candidates: Candidates) -> int:
        """Return how far the rank is off in 95% of draws, in people, by measurement.

        That is where nobody is behind the answer.
        """
        return self._error(self._few(candidates), 0, 0)

    def choose_at(self, node: Node, candidates: Candidates, noise: Noise) -> Answer:
        """Return one candidate of a node, or none: a private draw."""
        line = Line.of(node, candidates, self.upper)
        results, first = self._first_scan(line)
        seen = first.stop(noise)
        levels = _levels(self, line.side, results[-1] if seen is None else results[seen.run])
        begins, scan = self._scan(line, levels)
        stop = scan.stop(noise)
        if stop is None:
            return Answer()
        behind = line.total - int(line.reached(begins)[stop.run])
        adder = AdditiveNoise(Budget(levels.rate))
        behind = int(adder.add(integers.alone(behind), self.resolution, noise)[0])
        if behind < self._units(levels.behind) and not levels.many:
            return Answer()
        slot = int(begins[stop.run]) + stop.passed
        first, end = candidates.slots_before(np.array([node.first, node.stop])).tolist()
        index = candidates.index_of_slot(end - 1 - slot if self.upper else first + slot)
        passed = slot // line.slots
        return Answer(
            index, self._error(levels, passed, behind), self._people(levels, passed, behind)
        )

    @property
    def _asked(self) -> float:
        """How many people shall be reached beside the share: with k - 1/2 the k-th is the first."""
        return max(0.0, self.rank - 0.5) / self.worth

    @property
    def _grain(self) -> int:
        """How many units of a level 1 / (b D) of a person is worth."""
        return max(1, _GRAINS // self.resolution)

    @property
    def _rates(self) -> tuple[Fraction, Fraction]:
        """f and e3."""
        epsilon = bounded_range(self.budget)
        half = epsilon / 2 if self.budget.is_zcdp else epsilon
        return half * (1 - FIRST_SHARE), half * FIRST_SHARE

    @property
    def _scanned(self) -> float:
        """The chance that a scan stops where nobody is."""
        return float(self.false_stop * (1 - _MISLED))

    def _few(self, candidates: Candidates) -> Levels:
        """Return the levels where the first scan has seen nothing."""
        return _levels(self, _side(candidates, 0, candidates.size), NOTHING)

    def _first_scan(self, line: Line) -> tuple[list[ScanResult], SparseVectorScan]:
        """Return what each stop of the first scan stands for, and last no stop; and its scan.

        It is a scan whose levels do not move, over edges and then over questions, in falling order:
        it ends at the first thing that it takes for true. A person is at or beyond an edge if they
        are at or beyond one before, and counts for all questions: whether s n counts, and whether
        people are many. It is e3-DP, of bounded range 2 e3.
        """
        _, rate = self._rates
        level, *questions = _asked_at_first(self, line.side)
        edges = _edges(-(-line.size // line.slots))
        places = np.append(edges * line.slots, np.repeat(line.size, len(questions)))
        reached = line.reached(places)
        levels = [self._units(level)] * len(edges) + [self._units(each) for each in questions]
        needs = integers.add(integers.narrow(np.array(levels, object)), -reached)
        results = [ScanResult(edge, level) for edge in edges.tolist()]
        results += [ScanResult(None, people) for people in questions]
        scan = SparseVectorScan(rate / self.resolution, needs, np.ones(len(needs), np.int64))
        return [*results, NOTHING], scan

    def _many(self, side: int) -> float:
        """Return how many people are more than the floor by far."""
        rate, third = self._rates
        few = _floor(rate / (1 + self.share), side, self._scanned)
        return few + max(0.0, -math.log(2 * _FEW)) / float(third)

    def _enough(self, side: int) -> float:
        """Return from how many people on s n + h is above the floor, or not much below it.

        Where s n + h is above it by more than the usual error, people are taken for fewer with a
        chance of 2%.
        """
        rate, third = self._rates
        early = math.log(side) / (_EARLIER * float(rate))
        above = max(0.0, _floor(rate, side, self._scanned) - early - self._asked)
        surely = (above + self.usual_error) / float(self.share) - _SURE / float(third)
        return max(0.0, min(above / float(self.share), surely))

    def _scan(self, line: Line, levels: Levels) -> tuple[np.ndarray, SparseVectorScan]:
        """Return where each run of equal T - A(y) begins, and the scan over them."""
        cuts = np.array(levels.cuts, np.int64) * line.slots
        each = math.log(line.slots) / float(levels.rate)
        begins = np.unique(np.concatenate([[0], line.indexes, cuts]).astype(np.int64))
        parts = self.share.denominator * self._grain
        more, *floors = (
            math.ceil((level + each) * levels.person) for level in (levels.more, *levels.floors)
        )
        asked = int(levels.share * parts) * line.total + more
        needs = integers.narrow(np.array([max(asked, floor) for floor in floors], object))
        level = needs[np.searchsorted(-cuts, -begins, side="left")]
        reached = integers.product(line.reached(begins), integers.alone(parts))
        lengths = np.diff(np.append(begins, line.size))
        return begins, SparseVectorScan(
            levels.rate / levels.person, integers.add(level, -reached), lengths
        )

    def _units(self, people: float) -> int:
        return math.ceil(people * self.resolution)

    def _people(self, levels: Levels, passed: int, behind: int) -> float:
        """Return about how many people there are: those behind, and about T at or beyond.

        With n of them, B = n - T: n is B + L where T is L, and else (B + T - s n) / (1 - s); each
        of the two is below n where the other one is right. Where nearly all have one value nobody is
        behind it, and only the first scan knows of many.
        """
        people, share = behind / self.resolution, float(levels.share)
        asked = (people + levels.more) / (1 - share)
        return max(levels.seen, people + levels.floor_at(passed), asked)

    def _error(self, levels: Levels, passed: int, behind: int) -> int:
        """Return the error of the rank, for a noisy number behind, in units of 1 / D.

        Where the floor is above what is asked for, the answer has about the floor's rank. There are
        s n people asked for, s / (1 - s) of those behind at least, but for the noise of 4 / e2.
        """
        people = behind / self.resolution - _UNSURE / float(levels.rate)
        share = float(self.share)
        asked = self.rank / self.worth + max(0.0, share / (1 - share) * people)
        return max(self.usual_error, math.ceil(levels.floor_at(passed) - asked))


@functools.lru_cache(maxsize=256)
def _asked_at_first(search: TailSearch, side: int) -> tuple[float, ...]:
    """Return how many people the first scan asks for: at an edge, then in all, in falling order.

    M edges of the level T are seen where nobody is with the chance M e^(-e T) / 2.
    """
    rate = float(search._rates[1])
    misled = float(search.false_stop * _MISLED)
    at_edge = max(0.0, math.log(max(1, side // STEP) / (2 * misled))) / rate
    asked = {search._enough(side), search._many(side)} if search.share else {search._many(side)}
    return at_edge, *sorted(asked, reverse=True)


@functools.lru_cache(maxsize=256)
def _levels(search: TailSearch, side: int, result: ScanResult) -> Levels:
    """Return the rates and levels after a first scan."""
    rate, share = search._rates[0], search.share
    if share and result.edge is None and result.people < search._enough(side):
        share = Fraction(0)
    rate /= 1 + share
    cuts: tuple[int, ...] = ()
    floors = [_floor(rate, side, search._scanned)]
    if result.edge is not None:
        cuts, size = stretches(result.edge)
        most = _floor(rate, side, float(1 - _NEAR) * search._scanned)
        nearest = min(most, _floor(rate, size, float(_NEAR) * search._scanned))
        rise = math.log(_FARTHER) / float(rate)
        floors = [min(most, nearest + beyond * rise) for beyond in range(len(cuts) + 1)]
    early = math.log(side) / (_EARLIER if result.edge is None else _EARLY)
    if share and search.people:
        early = min(early, math.log(_DENSE / float(share * search.people * rate)))
    # Discrete Laplace noise is at least this with the chance `NOBODY`, or a little more.
    behind = max(0.0, -math.log(NOBODY * (1 + math.exp(-rate)))) / float(rate)
    return Levels(
        rate,
        share,
        more=search._asked + early / float(rate),
        floors=tuple(floors),
        cuts=cuts,
        behind=behind,
        many=result.edge is not None or result.people >= search._many(side),
        seen=result.people,
        person=search.resolution * search.share.denominator * search._grain,
    )


def _side(candidates: Candidates, first: int, stop: int) -> int:
    """Return how many of the candidates are on the side of 0 that has more of them."""
    zero = min(max(candidates.index(0), first), stop)
    sides = candidates.slots_before(np.array([first, zero, stop]))
    return -(-int(np.diff(sides).max()) // candidates.slots)


def _floor(rate: Fraction, size: int, false_stop: float) -> float:
    """Return the floor of so many candidates.

    It is half a person at least: where a large epsilon could do with less, strays become rarer for
    nothing, as one person is still above it.
    """
    return max(0.5, math.log(size / (2 * false_stop)) / float(rate))


def _edges(size: int) -> np.ndarray:
    """Return where edges are, from the outside: every `STEP` candidates, or `EDGES` in all."""
    step = max(STEP, -(-size // EDGES))
    return np.arange(step, size, step, dtype=np.int64)


def stretches(edge: int) -> tuple[tuple[int, ...], int]:
    """Return where the stretches beyond an edge end, and what all weigh in candidates of the first.

    The first one has `STEP` candidates, each further one twice as many, of a quarter of the weight.
    """
    cuts, weight, index, length, part = [], 0.0, edge, STEP, 1.0
    while index > 0:
        weight += part * min(length, index)
        index = max(0, index - length)
        cuts.append(index)
        length, part = 2 * length, part / _FARTHER
    return tuple(cut for cut in cuts if cut), math.ceil(weight)
