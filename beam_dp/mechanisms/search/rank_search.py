"""RankSearch: a quantile in which every person counts once, however many rows they own."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.numerics.intervals import root_below
from beam_dp.mechanisms.numerics.numbers import WIDE, Number
from beam_dp.mechanisms.search.common import AUDITED, ENOUGH, SYSTEM_NOISE, check, check_share
from beam_dp.mechanisms.search.draws import first_stop

RESOLUTION = 6_983_776_800
"""2^5 3^3 5^2 7 11 13 17 19, a multiple of 1, ..., 22: shares of so many rows are exact."""
_OWNER = "RankSearch"
_PARTS = 256  # eps1 is tried at multiples of 1/256 of its most
_SLACK = 1e-9  # relative, far above the rounding of the logarithms
_REACH = 2**22  # the most values of rho that `distribution` sums
_BLOCK = 2**16  # values of rho at a time


def increments(
    people: np.ndarray, buckets: np.ndarray, counts: np.ndarray, resolution: int = RESOLUTION
) -> tuple[np.ndarray, np.ndarray]:
    """Return (bucket, amount) pairs: how much all people's shares of rows rise at each bucket.

    For a person with c_i(y) of m_i rows at or below candidate y the share is
    G_i(y) = floor(D c_i(y) / m_i), D the resolution: it depends on that person alone, does not
    decrease in y, and is D from their largest row on. The pairs of disjoint groups of people are
    simply put together. Each person adds D in all.

    Args:
        people: per line the code of its person; all lines of a person must be here.
        buckets: per line the index of a candidate, at least 0.
        counts: per line how many rows, at least 1; lines of one person and bucket add up.
        resolution: D, public.
    """
    order = _order(people, buckets)
    people, buckets, counts = people[order], buckets[order], counts[order]
    new = np.append(True, people[1:] != people[:-1])[: len(people)]
    starts = np.flatnonzero(new)
    sizes = np.diff(np.append(starts, len(people)))
    totals = np.add.reduceat(counts, starts) if len(starts) else counts
    below = counts.cumsum() - np.repeat(totals.cumsum() - totals, sizes)
    scaled = integers.product(np.full(len(below), resolution), below)
    shares = integers.narrow(scaled // np.repeat(totals, sizes))
    rises = shares - np.where(new, 0, np.append(0, shares[:-1])[: len(shares)])
    return _merged(buckets, rises)


def _order(people: np.ndarray, buckets: np.ndarray) -> np.ndarray:
    """Return the order by people, then buckets: by one int64 key where it fits, which is faster."""
    width = int(buckets.max(initial=0)) + 1
    if (int(people.max(initial=0)) + 1) * width < WIDE:
        return np.argsort(people * width + buckets)
    return np.lexsort((buckets, people))


def _merged(buckets: np.ndarray, amounts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each bucket once, in rising order, with the exact sum of its amounts."""
    order = np.argsort(buckets)  # sums are exact: equal buckets may come in any order
    buckets = buckets[order]
    new = np.append(True, buckets[1:] != buckets[:-1])[: len(buckets)]
    starts = np.flatnonzero(new)
    return buckets[starts], integers.segment_sums(amounts[order], starts)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class RankProfile:
    """The sum over people of their shares at every candidate; private data, not private by itself.

    Args:
        buckets: indexes of candidates, in any order; an index may stand there several times.
        amounts: per bucket, by how much the sum rises; see `increments`.
        resolution: D, what one person adds in all.
    """

    buckets: np.ndarray
    amounts: np.ndarray
    resolution: int

    def __init__(
        self, buckets: np.ndarray, amounts: np.ndarray, resolution: int = RESOLUTION
    ) -> None:
        merged = _merged(buckets, amounts)
        object.__setattr__(self, "buckets", merged[0])
        object.__setattr__(self, "amounts", merged[1])
        object.__setattr__(self, "resolution", resolution)

    def __repr__(self) -> str:
        return f"RankProfile(of {len(self.buckets)} buckets)"

    def queries(self, p: Fraction, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the runs of equal Q(y) among the first n - 1 candidates: Q, start and stop.

        With p = a / b, Q(y) = b sum_i G_i(y) - a D (number of people), which is b D q(y).
        """
        sums = np.append(0, integers.running_sums(self.amounts))
        risen = integers.product(sums, alone(p.denominator))
        scores = integers.add(risen, alone(-p.numerator * int(sums[-1])))
        edges = np.minimum(np.concatenate([[0], self.buckets, [n - 1]]), n - 1)
        filled = edges[1:] > edges[:-1]
        return scores[filled], edges[:-1][filled], edges[1:][filled]


def alone(value: int) -> np.ndarray:
    """Return a column of one integer of any size."""
    return integers.narrow(np.array([value], object))


@dataclass(frozen=True)
class _Parameters:
    """eps1 and eps2 per unit of Q (exact), the level, and T in units of Q."""

    first: Fraction
    second: Fraction
    level: int
    shift: int


@dataclass(frozen=True)
class RankSearch:
    """Choose a candidate whose rank, each person counted once, is near p.

    With F_i(y) the share of person i's rows at or below y, n people and q(y) = sum_i (F_i(y) - p),
    the released y_i has `q(y_i) >= -T` and `q(y_(i-1)) <= T` with probability at least 1 - beta,
    T = `shift(n)`: the rank p n is between those of y_(i-1) and y_i but for T people. For the
    first candidate no y_(i-1) is needed, and the last one is taken for the end of all data. The
    release is epsilon-DP (rho-zCDP for `Budget.zcdp(rho)`) when one person is added or removed.

    For p <= 1/2, with rho ~ Geo(eps1), nu_i ~ Geo(eps2), P(Geo(e) = k) = (1 - e^-e) e^(-e k):
    for i = 0..N-2, if `Q(y_i) + nu_i >= level + rho` return y_i; else return y_{N-1}. All is in
    integers: Q = b D q, p = a / b, shares are in units of 1 / D; eps1, eps2 below are per person,
    so eps1 / (b D) per unit. For p > 1/2 the walk goes down, by -Q(y_(i-1)) and with 1 - p for p.

    Theorem. For x' = x + one person and every i, `ln P_x(i) / P_x'(i)` is at most
    max((1 - p) eps1, p eps2), and `ln P_x'(i) / P_x(i)` is at most p eps1 + eps2.

    Proof. Let d_j = q'_j - q_j = F(y_j) - p: between -p and 1 - p, and non-decreasing in j. With
    F(t) = P(nu >= t) = e^(-eps2 max(t, 0)) for the moment,
    P_x(i) = sum_r P(rho = r) prod_{j < i} (1 - F(level + r - q_j)) F(level + r - q_i).

    1. If d_i >= 0, in P_x' replace r by r + d_i, which costs e^(-eps1 d_i), d_i <= 1 - p. As
       d_j <= d_i, 1 - F(level + r + d_i - q'_j) >= 1 - F(level + r - q_j); and
       level + r + d_i - q'_i = level + r - q_i. If d_i < 0, with the same r: d_j <= d_i < 0, so
       1 - F(level + r - q'_j) >= 1 - F(level + r - q_j), and
       F(level + r - q'_i) >= e^(-eps2 |d_i|) F(level + r - q_i), |d_i| <= p.
    2. In P_x replace r by r + s, s = max(0, -d_0) <= p, which costs e^(-eps1 p) at most. As
       -d_j <= -d_0 <= s, 1 - F(level + r + s - q_j) >= 1 - F(level + r - q'_j); and
       F(level + r + s - q_i) >= e^(-eps2 max(0, s + d_i)) F(level + r - q'_i), where
       s + d_i <= 1: d_i - d_0 <= 1, as shares are from 0 to 1.

    For the last candidate the factor of i is absent: use j = N - 2 for i in 1, and less in 2.

    *zCDP.* The ratio ranges over an interval of length max((1 - p) eps1, p eps2) + p eps1 + eps2
    = max(eps1 + eps2, p eps1 + (1 + p) eps2) = eta, so it is eta^2 / 8-zCDP (Cesar, Rogers 2021).

    *Shift.* The walk fails only where it stops at some Q <= -T - 1 (of N - 1 chances) or goes on at
    the first Q >= T. With theta = T - level, tau = T + level + 1, c = (1 - e^-eps1) /
    (1 - e^-(eps1 + eps2)) and c' = (1 - e^-eps2) / (1 - e^-(eps1 + eps2)), in units of Q,

        failure <= (N - 1) c e^(-eps2 tau) + c' e^(-eps1 (theta + 1)) = beta1 + beta2.

    For small rates beta1 : beta2 = eps1 : eps2 is best, and 2 T = ln((N - 1) / beta) / eps2 +
    ln(1 / beta) / eps1 people; eps1 and eps2 minimise it.

    Edge cases: one candidate is returned as it is, with shift 0. `Budget(epsilon, delta)` spends
    epsilon only. With nobody the draw is as if all ranks were right. A share that is no multiple of
    1 / D is rounded down: the ranks of n people are off by less than n / D.

    Args:
        budget: what one choice may spend.
        p: the share of rows below, above 0 and below 1; a float is read as the decimal it prints.
        beta: the failure probability of the shift.
        resolution: D; a small D makes an exact `distribution` possible.

    Raises:
        TypeError: if budget is no Budget.
        ValueError: unless 0 < p < 1 and 0 < beta < 1.
    """

    budget: Budget
    p: checks.Real = Fraction(1, 2)
    beta: float = 0.05
    resolution: int = RESOLUTION

    def __post_init__(self) -> None:
        check(_OWNER, self.budget, self.beta)
        checks.fraction_between(_OWNER, "p", self.p, 0, 1, "Write p=0.5 for the median.")
        check_share(_OWNER, self.p)
        checks.positive_integer(_OWNER, "resolution", self.resolution)

    @property
    def cost(self) -> Budget:
        """What one choice spends: the budget's epsilon or rho, and no delta."""
        return self.budget.without_delta()

    def shift(self, n: int) -> int:
        """Return the T, in people, rounded up, that holds with probability 1 - beta."""
        checks.positive_integer(_OWNER, "n", n)
        return 0 if n == 1 else math.ceil(Fraction(self._parameters(n).shift, self._unit))

    def choose_from(
        self, profile: RankProfile, candidates: Candidates, noise: Noise = SYSTEM_NOISE
    ) -> Number:
        """Return one candidate: a private draw, in a time that does not grow with their number."""
        n = self._checked(profile, candidates)
        if n == 1:
            return candidates[0]
        chosen = self._parameters(n)
        scores, starts, stops = self._walk(profile, n)
        rho = int(noise.geometric(chosen.first, 1)[0])
        over = integers.add(alone(chosen.level + rho), -scores)
        stop = first_stop(chosen.second, over, stops - starts, noise)
        index = n - 1 if stop is None else int(starts[stop.run]) + stop.passed
        return candidates[index if self._rises else n - 1 - index]

    def distribution(self, profile: RankProfile, candidates: Candidates) -> list[float]:
        """Return the exact output probabilities (each to about 1e-13 of itself), for audits.

        Raises:
            ValueError: for more than 64 candidates, or a resolution too large to sum over rho.
        """
        n = self._checked(profile, candidates)
        owner, rule = f"{_OWNER}.distribution", f"be at most {AUDITED}, not {n}"
        checks.require(n <= AUDITED, owner, "candidates", rule)
        if n == 1:
            return [1.0]
        scores, starts, stops = self._walk(profile, n)
        queries = np.repeat(scores.astype(np.float64), stops - starts)
        parts = list(_parts(queries, self._parameters(n)))
        chances = [math.fsum(column) for column in zip(*parts, strict=True)]
        return chances if self._rises else chances[::-1]

    @property
    def _share(self) -> Fraction:
        return checks.decimal(_OWNER, "p", self.p)

    @property
    def _rises(self) -> bool:
        return self._share <= Fraction(1, 2)

    @property
    def _unit(self) -> int:
        """How many units of Q one person is worth."""
        return self.resolution * self._share.denominator

    def _parameters(self, n: int) -> _Parameters:
        amount, share = self.budget.amount, min(self._share, 1 - self._share)
        rates = _rates(amount, self.budget.is_zcdp, share, n, float(self.beta))
        return _levels(*(rate / self._unit for rate in rates), n, float(self.beta))

    def _checked(self, profile: RankProfile, candidates: Candidates) -> int:
        checks.require(
            profile.resolution == self.resolution,
            _OWNER,
            "resolution",
            f"be that of the profile, {profile.resolution}, not {self.resolution}",
        )
        checks.require(candidates.size < WIDE, _OWNER, "candidates", "be fewer than 2**62")
        return candidates.size

    def _walk(self, profile: RankProfile, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the queries in the order in which they are asked."""
        scores, starts, stops = profile.queries(self._share, n)
        if self._rises:
            return scores, starts, stops
        return -scores[::-1], n - 1 - stops[::-1], n - 1 - starts[::-1]


@lru_cache(maxsize=1024)
def _rates(
    amount: Fraction, is_zcdp: bool, share: Fraction, n: int, beta: float
) -> tuple[Fraction, Fraction]:
    """Return eps1 and eps2 per person with the least shift, for p = `share` <= 1/2.

    Pure: (1 - p) eps1 <= epsilon and p eps1 + eps2 <= epsilon; then p eps2 <= epsilon too.
    zCDP: eps1 + eps2 <= eta and p eps1 + (1 + p) eps2 <= eta, for eta = sqrt(8 rho).
    """
    limit = min(root_below(8 * amount) if is_zcdp else amount, ENOUGH)
    most = limit if is_zcdp else limit / (1 - share)
    pairs = []
    for part in range(1, _PARTS):
        first = most * Fraction(part, _PARTS)
        second = limit - share * first
        if is_zcdp:
            second = min(limit - first, second / (1 + share))
        pairs.append((first, second))
    log_alarms, log_misses = math.log(n - 1) - math.log(beta), -math.log(beta)
    return min(pairs, key=lambda pair: log_alarms / float(pair[1]) + log_misses / float(pair[0]))


@lru_cache(maxsize=1024)
def _levels(first: Fraction, second: Fraction, n: int, beta: float) -> _Parameters:
    """Return the least T of the failure bound, and its level, for rates per unit of Q."""
    a, b = float(first), float(second)
    whole = -math.expm1(-a - b)
    alarms = beta * a / (a + b) * (1 - _SLACK)
    misses = beta * b / (a + b) * (1 - _SLACK)
    logarithm = math.log(n - 1) + math.log(-math.expm1(-a) / whole / alarms)
    tau = max(1, math.ceil(logarithm / b))
    theta = max(0, math.ceil(math.log(-math.expm1(-b) / whole / misses) / a - 1))
    shift = (tau + theta) // 2  # theta + tau - 1 = 2 T, or one less
    return _Parameters(first, second, shift - theta, shift)


def _parts(queries: npt.NDArray[np.float64], chosen: _Parameters) -> Iterator[list[float]]:
    """Yield the summands of every P(i), one block of values of rho at a time."""
    first, second = float(chosen.first), float(chosen.second)
    # From the largest rho that leaves a hazard of 6 on, every product over j is above 1/2 and all
    # terms fall like e^(-eps1 r) or faster: 45 / eps1 later, the rest is below 1e-18 of the sum.
    start = max(0, math.ceil(queries.max(initial=0.0)) - chosen.level)
    reach = start + math.ceil(6 / second + 45 / first)
    owner, mend = f"{_OWNER}.distribution", "Write resolution=2."
    checks.require(reach <= _REACH, owner, "resolution", "be smaller", mend)
    for begin in range(0, reach, _BLOCK):
        rho = np.arange(begin, min(begin + _BLOCK, reach), dtype=np.float64)
        passed = -math.expm1(-first) * np.exp(-first * rho)
        sums = []
        for query in queries:
            hazard = second * np.maximum(chosen.level + rho - query, 0)
            sums.append(math.fsum(passed * np.exp(-hazard)))
            passed = passed * -np.expm1(-hazard)
        yield [*sums, math.fsum(passed)]
