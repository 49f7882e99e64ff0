"""ScaleThenChoose: choose how coarse a grid crowds the profile, then a cell of that grid.

The one-level form of the recursive search whose shift grows like the iterated logarithm of N
(Steinke, "Beyond Local Sensitivity via Down Sensitivity", 2023, Theorem 6): here T grows like
ln ln N. See `ScaleThenChoose` for the algorithm and `scales` for its constants.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.search.common import ENOUGH, SYSTEM_NOISE, audited_losses, check
from beam_dp.mechanisms.search.draws import draw_by_score
from beam_dp.mechanisms.search.published.scales import Scales, scales
from beam_dp.mechanisms.search.stop_chances import stop_chances

_OWNER = "ScaleThenChoose"


@dataclass(frozen=True)
class ScaleThenChoose:
    """Choose a scale, a cell of that scale, and a candidate of that cell.

    The release is (epsilon, delta)-DP when one person is added or removed, and with probability at
    least 1 - beta it lies between f without its `shift(n)` most important people and f itself, both
    rounded up onto the candidates. Its shift hardly grows with n: at epsilon 1 and delta 1e-6 it is
    286 for 2^20 candidates, 297 for 2^64 and 320 for 2^1024. AboveThreshold has 33, 74 and 808 and
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

    Guarantee. But for a chance of beta / 4 each (see `scales`), (a) step 1 stops at j = m or with
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

    budget: Budget
    beta: float = 0.05

    def __post_init__(self) -> None:
        check(_OWNER, self.budget, self.beta)
        checks.require(
            not self.budget.is_zcdp and self.budget.delta > 0,
            _OWNER,
            "budget",
            "have an epsilon and a delta above 0",
            "Write Budget(epsilon, delta=1e-6).",
        )

    @property
    def cost(self) -> Budget:
        """What one choice spends: the whole budget."""
        return self.budget

    def shift(self, n: int) -> int:
        """Return the T that is guaranteed with probability 1 - beta for n candidates."""
        checks.positive_integer(_OWNER, "n", n)
        return 0 if n == 1 else self._mechanism(n).scales.shift

    def cap(self, n: int) -> int:
        """Return a K such that B[0..K] decides like the whole profile: T, as no more is read."""
        return self.shift(n)

    def choose(
        self, profile: Profile, candidates: Candidates, noise: Noise = SYSTEM_NOISE
    ) -> Number:
        """Return one candidate: a private draw, in O(T log N) time for any size N."""
        if candidates.size == 1:
            return candidates[0]
        mechanism = self._mechanism(candidates.size)
        indexes = _indexes(profile.steps(candidates), candidates.size, mechanism.scales.shift)
        return candidates[mechanism.choose(indexes, noise)]

    def distribution(self, profile: Profile, candidates: Candidates) -> list[float]:
        """Return the exact output probabilities (each to about 1e-13 of itself), for audits.

        Raises:
            ValueError: for more than 64 candidates.
        """
        losses = audited_losses(_OWNER, profile, candidates)
        if len(losses) == 1:
            return [1.0]
        mechanism = self._mechanism(len(losses))
        indexes = _indexes(profile.steps(candidates), len(losses), mechanism.scales.shift)
        return mechanism.distribution(indexes)

    def _mechanism(self, n: int) -> "ScaledChoice":
        budget = self.budget
        epsilon = min(budget.amount, ENOUGH)
        count = (n - 1).bit_length()
        return ScaledChoice(scales(epsilon, budget.delta, count, float(self.beta)), n)


@dataclass(frozen=True)
class ScaledChoice:
    """The three steps with given parameters, over n >= 2 candidates.

    In all methods `indexes` are the indexes s_0 >= s_1 >= ... >= s_T of the profile's values.
    """

    scales: Scales
    n: int

    def choose(self, indexes: Sequence[int], noise: Noise) -> int:
        """Return the index of one candidate: a private draw."""
        scale = self._draw_scale(indexes, noise)
        cells = self.cells(indexes, scale)
        groups = [(self.scales.nothing, -1), *((1, -count) for count in cells.values())]
        drawn = draw_by_score(groups, self.scales.third / 2, noise)
        if drawn == 0:
            return 0
        cell = list(cells)[drawn - 1]
        inside = self.inside(indexes, cell, scale)
        groups = [(1, -margin) for margin in inside.values()]
        return list(inside)[draw_by_score(groups, self.scales.fourth / 2, noise)]

    def cells(self, indexes: Sequence[int], scale: int) -> dict[int, int]:
        """Return per cell the number of inner values in it, for cells that hold any."""
        inner = indexes[self.scales.margin : self.scales.margin + self.scales.inner]
        return {cell: len(list(run)) for cell, run in itertools.groupby(s >> scale for s in inner)}

    def inside(self, indexes: Sequence[int], cell: int, scale: int) -> dict[int, int]:
        """Return the candidates of step 3 with their margins u; a cell of one index has one."""
        ends = [cell << scale]
        if scale > 0:
            ends += [ends[0] + (1 << scale - 1), ends[0] + (1 << scale)]
        return {end: _margin(indexes, end) for end in ends if end < self.n}

    def scale_chances(self, indexes: Sequence[int]) -> list[float]:
        """Return the probabilities of the scales 0..m."""
        needs = [self.scales.alarm - crowd for crowd in self._crowds(indexes)]
        return stop_chances(needs, float(self.scales.first), float(self.scales.second))

    def cell_chances(self, indexes: Sequence[int], scale: int) -> dict[int | None, float]:
        """Return the probabilities of the cells of a scale, and of no cell (the key None)."""
        groups: list[tuple[int | None, int, int]] = [(None, self.scales.nothing, 1)]
        groups += [(cell, 1, count) for cell, count in self.cells(indexes, scale).items()]
        return _chances(groups, float(self.scales.third) / 2)

    def inside_chances(
        self, indexes: Sequence[int], cell: int, scale: int
    ) -> dict[int | None, float]:
        """Return the probabilities of the candidates of a cell."""
        groups = [(end, 1, u) for end, u in self.inside(indexes, cell, scale).items()]
        return _chances(groups, float(self.scales.fourth) / 2)

    def distribution(self, indexes: Sequence[int]) -> list[float]:
        """Return the probabilities of all n candidates."""
        chances = [0.0] * self.n
        for scale, of_scale in enumerate(self.scale_chances(indexes)):
            for cell, of_cell in self.cell_chances(indexes, scale).items():
                if cell is None:
                    chances[0] += of_scale * of_cell
                    continue
                for end, of_end in self.inside_chances(indexes, cell, scale).items():
                    chances[end or 0] += of_scale * of_cell * of_end
        return chances

    def _draw_scale(self, indexes: Sequence[int], noise: Noise) -> int:
        rho = int(noise.geometric(self.scales.first, 1)[0])
        count = (self.n - 1).bit_length()
        noises = noise.geometric(self.scales.second, count).tolist()
        for scale, (crowd, nu) in enumerate(zip(self._crowds(indexes), noises, strict=True)):
            if crowd + nu >= self.scales.alarm + rho:
                return scale
        return count

    def _crowds(self, indexes: Sequence[int]) -> Iterator[int]:
        """Yield S(0), ..., S(m - 1)."""
        for scale in range((self.n - 1).bit_length()):
            yield max(self.cells(indexes, scale).values())


def _indexes(steps: list[int], n: int, shift: int) -> list[int]:
    """Return s_0..s_T: indexes above the top become the top, missing values the lowest index."""
    indexes = [min(step, n - 1) for step in steps[: shift + 1]]
    return indexes + [0] * (shift + 1 - len(indexes))


def _margin(indexes: Sequence[int], end: int) -> int:
    above = sum(index >= end for index in indexes)
    below = sum(index <= end for index in indexes)
    return min(above, below)


def _chances(groups: Sequence[tuple[int | None, int, int]], half: float) -> dict[int | None, float]:
    """Return the chances of (name, size, score) with weights size e^(half score)."""
    best = max(score for _, _, score in groups)
    weights = {name: size * math.exp(half * (score - best)) for name, size, score in groups}
    total = math.fsum(weights.values())
    return {name: weight / total for name, weight in weights.items()}
