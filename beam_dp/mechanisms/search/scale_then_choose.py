"""ScaleThenChoose: choose how coarse a grid crowds the profile, then a cell of that grid.

The one-level form of the recursive search whose shift grows like the iterated logarithm of N
(Steinke, "Beyond Local Sensitivity via Down Sensitivity", 2023, Theorem 6): here T grows like
ln ln N. See `ScaleThenChoose` for the algorithm and `Scales` for its constants.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.search.common import Search, bounded_range, log_ratio
from beam_dp.mechanisms.search.exponential import draw_run

_SLACK = 1 + 1e-12  # above the rounding of the logarithms
_SHARES = (Fraction(11, 100), Fraction(12, 100), Fraction(40, 100))
"""a1, a2 and e3 as parts of epsilon, which make T small; e4 is the rest."""


@dataclass(frozen=True)
class ScaleThenChoose(Search):
    """Choose a scale, a cell of that scale, and a candidate of that cell.

    The release is (epsilon, delta)-DP when one person is added or removed, and with probability at
    least 1 - beta it lies between f without its `shift(n)` most important people and f itself, both
    rounded up onto the candidates. Its shift hardly grows with n: at epsilon 1 and delta 1e-6 it is
    287 for 2^20 candidates, 297 for 2^64 and 321 for 2^1024. AboveThreshold has 34, 74 and 808 and
    is better up to about 2^360 candidates, more than any statistic of people needs. Take
    ScaleThenChoose for finer grids, and to see what the theorem is worth.

    Let s_t be the index of B[t], t = 0..T, and I = {I0, ..., T - I0}, k = |I|, m = ceil(log2 N).
    A cell of scale j holds the indexes from c 2^j to (c + 1) 2^j - 1; q_c counts the t in I with
    s_t in it, and S(j) is the largest q_c at scale j.

    1. For j = 0..m-1, stop at j if S(j) + nu_j >= alarm + rho, rho ~ Geo(a1), nu_j ~ Geo(a2); else
       take j = m, one cell of all.
    2. Draw a cell of scale j with weight e^(e3 q_c / 2) where q_c >= 1, or no cell with weight
       W = ceil(k / delta) e^(e3 / 2): then the lowest candidate is the answer.
    3. For j = 0 the cell is the answer. Else the answer is one of z, z + 2^(j-1) and z + 2^j, z the
       first index of the cell, drawn with weight e^(e4 u / 2), u(v) the smaller one of the number
       of t <= T with s_t >= v and of that with s_t <= v.

    Privacy. x' = x + one person moves #{t in I: s_t >= v} = min(max(l_{v-1} - I0, 0), k), l_i the
    loss of candidate i, by 0 or 1 for every v. q_c is the difference of two such numbers: it moves
    by at most 1, and so does S(j). Then epsilon = a1 + 2 a2 + e3 + e4 by adaptive composition:

    1. With r + 1 for r, P(rho = r + 1) = e^-a1 P(rho = r), the scales before j are passed over no
       less likely (S' <= S + 1), and P(nu >= t + 2) >= e^(-2 a2) P(nu >= t): a1 + 2 a2, both ways.
    2. Let Z be the sum of all weights, n0 the number of cells with q_c = 0 and q'_c = 1, at most k.
       Z' <= W + e^(e3 / 2) (Z - W) + n0 e^(e3 / 2) <= e^(e3 / 2) Z if k e^(e3 / 2) <=
       (e^(e3 / 2) - 1) W, for which delta <= e3 / 2 is enough. So an answer that both databases can
       give has chances within a factor of e^e3. The other answers are at most k cells of q_c = 1,
       with a chance of at most k e^(e3 / 2) / W <= delta together: (e3, delta).
    3. u moves by at most 1, as the two numbers are min(l_{v-1}, T + 1) and T + 1 - min(l_v, T + 1):
       e4 by the exponential mechanism (McSherry and Talwar 2007).

    Guarantee. But for a chance of beta / 4 each (`scales_for`), (a) step 1 stops at j = m or with
    S(j) >= C, (b) S(j - 1) < k, as S does not fall with j and S(m) = k, (c) step 2 draws a cell,
    (d) step 3 draws no v with u(v) = 0 if there is one with u >= I0 + 1. An answer v with
    u(v) >= 1 has s_T <= v <= s_0, which is to be shown. Step 2 gives a cell with s_t in it, t in I.
    For j = 0, v = s_t. Otherwise either half of the cell has at most k - 1 of the k values. Say s_t
    is in the lower half; z' is the middle. If I0 + 1 values are >= z', then u(z') >= I0 + 1, for
    s_t and the T - t >= I0 values after it are below z'. If not, s_I0 < z' and so all k values are
    below z', but not all in the lower half: s_{T-I0} < z, while s_t and the t >= I0 values before
    it are >= z, so u(z) >= I0 + 1. If s_t is in the upper half, the same holds upside down for z'
    and the first index after the cell.

    Edge cases: one candidate is returned as it is, with shift 0. A profile above the top candidate
    counts as the top.

    Args:
        budget: what one choice may spend: an epsilon and a delta.
        beta: the failure probability of the shift.

    Raises:
        TypeError: if budget is no Budget.
        ValueError: unless 0 < beta < 1; for a budget without delta, or of zCDP.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.require(
            not self.budget.is_zcdp and self.budget.delta > 0,
            "ScaleThenChoose",
            "budget",
            "have an epsilon and a delta above 0",
            "Write Budget(epsilon, delta=1e-6).",
        )

    @property
    def cost(self) -> Budget:
        """What one choice spends: the whole budget."""
        return self.budget

    def _shift(self, n: int) -> int:
        return self._scales(n).shift

    def _cap(self, n: int) -> int:
        return self._scales(n).shift  # no more of the profile is read

    def _choose(self, profile: Profile, candidates: Candidates, noise: Noise) -> int:
        scales = self._scales(candidates.size)
        return scales.choose(scales.indexes(profile.steps(candidates)), noise)

    def _scales(self, n: int) -> "Scales":
        return scales_for(bounded_range(self.budget), self.budget.delta, n, float(self.beta))


@dataclass(frozen=True, kw_only=True)
class Scales:
    """The three steps with their parameters, over n >= 2 candidates.

    In all methods `indexes` are the indexes s_0 >= s_1 >= ... >= s_T of the profile's values.

    Attributes:
        first: a1, the rate of the noise on the threshold of the scales.
        second: a2, the rate of the noise on each scale.
        third: e3, for the choice of a cell.
        fourth: e4, for the choice inside of a cell.
        delta: for the choice of a cell, at most e3 / 2.
        alarm: the threshold of the scales.
        inner: k, the number of values of the profile that are counted.
        margin: I0, the number of values left out at either end.
        n: the number of candidates.
    """

    first: Fraction
    second: Fraction
    third: Fraction
    fourth: Fraction
    delta: Fraction
    alarm: int
    inner: int
    margin: int
    n: int

    @property
    def shift(self) -> int:
        """The T that is guaranteed: the counted values are B[I0] to B[T - I0]."""
        return 2 * self.margin + self.inner - 1

    @property
    def nothing(self) -> int:
        """The weight of "no cell" in units of e^(e3 / 2)."""
        return math.ceil(self.inner / self.delta)

    @property
    def count(self) -> int:
        """m, how many scales are asked at most."""
        return (self.n - 1).bit_length()

    def indexes(self, steps: Sequence[int]) -> list[int]:
        """Return s_0..s_T: what is above the top becomes the top, missing values the lowest."""
        indexes = [min(step, self.n - 1) for step in steps[: self.shift + 1]]
        return indexes + [0] * (self.shift + 1 - len(indexes))

    def choose(self, indexes: Sequence[int], noise: Noise) -> int:
        """Return the index of one candidate: a private draw."""
        scale = self._draw_scale(indexes, noise)
        cell = _drawn(self.cells(indexes, scale), self.third, noise)
        if cell is None:
            return 0
        return _drawn(self.inside(indexes, cell, scale), self.fourth, noise) or 0

    def cells(self, indexes: Sequence[int], scale: int) -> "Choices":
        """Return the cells that hold any inner values, scored by their number, and no cell."""
        inner = indexes[self.margin : self.margin + self.inner]
        runs = itertools.groupby(index >> scale for index in inner)
        return [(None, self.nothing, 1), *((cell, 1, len(list(run))) for cell, run in runs)]

    def inside(self, indexes: Sequence[int], cell: int, scale: int) -> "Choices":
        """Return the candidates of step 3, scored by u; a cell of one index has one."""
        ends = [cell << scale]
        if scale > 0:
            ends += [ends[0] + (1 << scale - 1), ends[0] + (1 << scale)]
        return [(end, 1, _margin(indexes, end)) for end in ends if end < self.n]

    def _draw_scale(self, indexes: Sequence[int], noise: Noise) -> int:
        rho = int(noise.geometric(self.first, 1)[0])
        noises = noise.geometric(self.second, self.count).tolist()
        for scale, (crowd, nu) in enumerate(zip(self._crowds(indexes), noises, strict=True)):
            if crowd + nu >= self.alarm + rho:
                return scale
        return self.count

    def _crowds(self, indexes: Sequence[int]) -> Iterator[int]:
        """Yield S(0), ..., S(m - 1)."""
        for scale in range(self.count):
            yield max(count for cell, _, count in self.cells(indexes, scale) if cell is not None)


Choices = list[tuple[int | None, int, int]]
"""Names with sizes and scores: each is chosen with a weight of size e^(epsilon score / 2)."""


def _drawn(choices: Choices, epsilon: Fraction, noise: Noise) -> int | None:
    sizes = np.array([size for _, size, _ in choices], object)
    scores = np.array([-score for _, _, score in choices])
    return choices[draw_run(sizes, scores, epsilon / 2, noise)][0]


def _margin(indexes: Sequence[int], end: int) -> int:
    above = sum(index >= end for index in indexes)
    below = sum(index <= end for index in indexes)
    return min(above, below)


@lru_cache(maxsize=1024)
def scales_for(epsilon: Fraction, delta: Fraction, n: int, beta: float) -> Scales:
    """Return the parameters with a failure of at most beta.

    Let beta' = beta / 4, one for each way to fail. For rho ~ Geo(a1) and nu ~ Geo(a2)
    (P(Geo(e) = k) = (1 - e^-e) e^(-e k)), summed over the other variable,

        P(nu - rho >= g) = e^(-a2 g) (1 - e^-a1) / (1 - e^-(a1 + a2)),
        P(rho - nu >= g) = e^(-a1 g) (1 - e^-a2) / (1 - e^-(a1 + a2)).

    With W = ceil(k / delta) e^(e3 / 2) (see `ScaleThenChoose`) the integers below are the smallest
    for which each way to fail has a chance of at most beta':

    * crowd C: e^(e3 C / 2) beta' >= W, so that "no cell" is drawn with W / (W + e^(e3 C / 2)) at
      most;
    * alarm = C + g1 - 1, m P(nu - rho >= g1) <= beta': a stop at any of the m scales asked has
      S >= C;
    * k = alarm + g2 - 1, P(rho - nu >= g2) <= beta': the first scale with S >= k is not passed
      over, as that needs k + nu < alarm + rho, or rho - nu >= g2;
    * margin I0: 2 e^(-e4 (I0 + 1) / 2) <= beta', for the choice among three.

    C depends on k by its logarithm only: k is raised until all of them hold. T = 2 I0 + k - 1.
    """
    first, second, third = (epsilon * share for share in _SHARES)
    fourth = epsilon - first - 2 * second - third
    log_failure = math.log(beta / 4)
    before, after = _gaps(float(first), float(second), (n - 1).bit_length(), log_failure)
    margin = _up(2 * (math.log(2) - log_failure) / float(fourth)) - 1
    delta = min(delta, third / 2)  # the proof asks for delta <= e^(e3 / 2) - 1
    crowd, inner = 1, max(1, before + after - 1)
    while True:
        chosen = Scales(
            first=first,
            second=second,
            third=third,
            fourth=fourth,
            delta=delta,
            alarm=crowd + before - 1,
            inner=inner,
            margin=max(0, margin),
            n=n,
        )
        needed = 1 + _up((math.log(chosen.nothing) - log_failure) / (float(third) / 2))
        if needed <= crowd:
            return chosen
        crowd, inner = needed, max(1, needed + before + after - 2)


def _gaps(first: float, second: float, scale_count: int, log_failure: float) -> tuple[int, int]:
    """Return g1 and g2, at least 1."""
    alarm = math.log(scale_count) + log_ratio(first, second) - log_failure
    miss = log_ratio(second, first) - log_failure
    return max(1, _up(alarm / second)), max(1, _up(miss / first))


def _up(value: float) -> int:
    return math.ceil(value * _SLACK) if value > 0 else math.ceil(value / _SLACK)
