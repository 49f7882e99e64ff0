"""One draw of noise for several integers that the same people move.

One person moves number j by 0..C_j (added) or -C_j..0 (removed) if it is one-signed, by -C_j..C_j
if it is signed. Noise for each of d numbers by itself splits the budget. One draw for all has the
same guarantee, and what each errs grows much slower than d.

*Pure epsilon: the hull.* Let M >= 1 be whole, q = e^(-epsilon / M). For levels (u, v), whole and
at least 0, let B(u, v) be the product of the sides

    one-signed j: -floor(u C_j / M) .. floor(v C_j / M),
    signed j:     -floor((u + v) C_j / M) .. floor((u + v) C_j / M),

and P(z) proportional to the sum of q^(u + v) over all (u, v) with z in B(u, v).

Theorem. x + z is epsilon-DP for moves as above. Proof. Let d be the move of a person added. If z is
in B(u, v), then z + d is in B(u, v + M), as floor(v C / M) + C = floor((v + M) C / M) and both ends
of signed sides grow by C. (u, v) -> (u, v + M) is injective, so P(z) <= q^-M P(z + d) =
e^epsilon P(z + d). For -d the same with (u + M, v). QED. The proof asks nothing of M, which may
depend on the clips. Without one-signed numbers a single level r = u + v is enough, and r -> r + M.

The density falls by e^-epsilon per step of the convex hull of all moves: it is the K-norm
mechanism (Hardt and Talwar 2010; Joseph and Yu 2023, arXiv 2309.15790) for the hull of [0, C] and
[-C, 0], which is far smaller than the cube, up to levels that are whole.

*zCDP: correlated Gaussians.* Let d be the number of one-signed numbers, L whole, h an integer of
discrete Gaussian noise of variance b L^2, g_j independent ones of variance a (C_j L)^2, and
z_j = (g_j + C_j h) / L, rounded.

Theorem. x + z is rho-zCDP for rho = (1 + 1 / L^2) (a + b d) / (8 a b). Proof. As L x_j is a
multiple of L, x_j + z_j is (G_j + C_j h) / L, rounded, with G_j = L x_j + g_j: it is computed from
h and the G_j. Let m be the move of a person, and s any multiple of 1 / L. With x + m for x, the
release is the same function of h + s L and of L (x_j + m_j) - C_j s L + g_j. So the divergence is
at most that of (h, G), independent discrete Gaussians, and of (h, G) shifted by the integers s L
and L (m_j - C_j s). Of order alpha it is at most alpha f(s), where f(s) = s^2 / (2 b) + sum of (m_j
/ C_j - s)^2 / (2 a) (Canonne, Kamath, Steinke 2020, Proposition 5). f is quadratic in s with f'' =
(a + b d) / (a b), and some s is within 1 / (2 L) of the best one: that costs at most (a + b d) / (8
a b L^2). The least value of f over real s is convex in m, so it is largest at a corner, where k of
the m_j / C_j are 1 and the others 0: k / (2 a) - k^2 b / (2 a (a + b d)) <= (a + b d) / (8 a b).
For -m take -s. QED.

a + b is least at a / b = sqrt(d), about ((1 + sqrt(d)) / 2)^2 / (2 rho) instead of d / (2 rho); the
constant is that of arXiv 2408.06853. A rational t near sqrt(d) with b = (1 + 1 / L^2) (1 + d / t) /
(8 rho), a = t b costs rho exactly. Signed numbers gain nothing from h: they get independent noise,
of variance C_j^2 n / (2 rho') for n of them. With rho in parts in proportion to (d + sqrt(d)) / 2
and n, the sum of all variances in clips is least (Cauchy).
"""

import bisect
import collections
import dataclasses
import functools
import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.interval_widths import gaussian_bound
from beam_dp.mechanisms.noise.sampling import Integers, Noise
from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.numerics.enclosures import Bound, Interval, exp_interval, last_where

Floats = npt.NDArray[np.float64]
Profile = tuple[Floats, Floats]
Side = tuple[int, bool]
"""A clip, and whether the number is signed."""

FINENESS = 8  # levels per clip and unit of epsilon: 64 would gain 0.4% of the error
MARGIN = 2.0**-20  # above what floats err in the bound of the quotient of weights
SLACK = 10 / 1024  # of alpha: see `_Hull._profile`
LEAST_ALPHA = Fraction(1, 1 << 20)  # far above the weight of the levels that are left out
SEVERAL = 1 << 16
BLOCK = 32
ROOT = 1 << 20
PARTS = 128


@dataclasses.dataclass(frozen=True)
class OneDraw:
    """Noise for several integers at once; the module holds the theorems.

    Attributes:
        budget: what all numbers together cost.
        clips: by how much one person moves each number at most, from 1 on.
        signed: for each number whether a person may move it up or down when added.
    """

    budget: Budget
    clips: tuple[int, ...]
    signed: tuple[bool, ...]

    def draw(self, noise: Noise, size: int = 1) -> list[Integers]:
        """Return an array of `size` independent draws for each number."""
        return self.law.draw(noise, size)

    def bound(self, index: int, alpha: Fraction) -> int:
        """Return a bound that the noise of a number exceeds with probability alpha at most.

        It is proved, and within 1% of the smallest such number, or one larger.

        Raises:
            ValueError: unless 2^-20 < alpha < 1.
        """
        checks.fraction_between("OneDraw.bound", "alpha", alpha, LEAST_ALPHA, 1)
        return self.law.bound(index, alpha)

    @property
    def law(self) -> "_Hull | _Gaussian":
        """The distribution: deviations and mean errors too, to one part in a hundred."""
        law = _gaussian if self.budget.is_zcdp else _hull
        return law(self.budget.amount, tuple(zip(self.clips, self.signed, strict=True)))


@dataclasses.dataclass(frozen=True)
class _Hull:
    """The noise under pure epsilon.

    Levels are drawn with weight |B(u, v)| q^(u + v), then each number is uniform in its side. A
    level r is proposed by a geometric number of rate `slow`, u uniform in 0..r, and kept with
    chance |B(u, r - u)| (r + 1) e^(-(rate - slow) r - top): top is above the largest logarithm of
    the rest, since |B| is at most the product of r C_j / M + 1, or of 2 r C_j / M + 1.
    """

    epsilon: Fraction
    sides: tuple[Side, ...]

    @property
    def levels(self) -> int:
        """M: fine enough for epsilon, and no finer than the integers of the largest number."""
        return min(math.ceil(FINENESS * self.epsilon), max(clip for clip, _ in self.sides))

    @property
    def rate(self) -> Fraction:
        return self.epsilon / self.levels

    @property
    def split(self) -> bool:
        """Say whether levels have two parts."""
        return not all(signed for _, signed in self.sides)

    @functools.cached_property
    def proposal(self) -> tuple[Fraction, Fraction]:
        """`slow` and `top`."""
        mode = self.steepest(self.rate)
        slow = self.rate / max(2, math.ceil(1 + float(self.rate) * mode))
        rest = self.rate - slow
        return slow, Fraction(self.height(rest) + MARGIN)

    def height(self, rate: Fraction) -> float:
        """Return the largest logarithm of the product of 1 + slope r, times e^(-rate r)."""
        best = self.steepest(rate)
        return float(np.sum(np.log1p(self._slopes * best))) - float(rate) * best

    @functools.cached_property
    def _slopes(self) -> npt.NDArray[np.float64]:
        """The weight of a level r is at most the product of 1 + slope r."""
        slopes = [(1 + signed) * clip / self.levels for clip, signed in self.sides]
        return np.array([1.0] * self.split + slopes)

    def steepest(self, rate: Fraction) -> float:
        """Return where the product of 1 + slope r times e^(-rate r) is largest, or just beside."""
        rises = lambda r: bool(np.sum(self._slopes / (1 + self._slopes * r)) > float(rate))
        return last_where(rises, 0.0, len(self._slopes) / float(rate))

    def draw(self, noise: Noise, size: int) -> list[Integers]:
        """Return an array of draws for each number."""
        kept: list[tuple[Integers, Integers]] = []
        missing = size
        while missing:
            lower, upper = self._proposed(noise, min(4 * missing + 4, SEVERAL))
            kept.append((lower[:missing], upper[:missing]))
            missing -= len(kept[-1][0])
        down, up = (integers.concatenate(part) for part in zip(*kept, strict=True))
        columns = []
        for low, high in self._ends(down, up):
            drawn = noise.below(integers.add(integers.add(low, high), np.ones(1, np.int64)))
            columns.append(integers.add(drawn, -low))
        return columns

    def _proposed(self, noise: Noise, size: int) -> tuple[Integers, Integers]:
        """Return the levels that were kept of so many."""
        slow, top = self.proposal
        rest = self.rate - slow
        total = integers.narrow(noise.geometric(slow, size))
        choices = total + 1
        up = noise.below(choices) if self.split else total
        down = total - up
        widths = [low + high + 1 for low, high in self._ends(down, up)] + [choices] * self.split
        logs = sum(np.log(width.astype(np.float64)) for width in widths)
        chances = np.exp(logs - float(rest) * total.astype(np.float64) - float(top))

        def bound_of(index: int) -> Bound:
            weight = math.prod(int(width[index]) for width in widths)
            return functools.partial(_scaled_exp, weight, -top - rest * int(total[index]))

        keeps = noise.coins_near(chances, bound_of)
        return down[keeps], up[keeps]

    def _ends(self, down: Integers, up: Integers) -> list[tuple[Integers, Integers]]:
        """Return how far the side of each number reaches below and above 0."""
        ends = []
        for clip, signed in self.sides:
            low, high = (down + up, down + up) if signed else (down, up)
            ends.append((self._span(low, clip), self._span(high, clip)))
        return ends

    def _span(self, levels: Integers, clip: int) -> Integers:
        return integers.divide(integers.product(levels, integers.alone(clip)), self.levels)

    def bound(self, place: int, alpha: Fraction) -> int:
        """Return a bound that the noise of a number exceeds with probability alpha at most."""
        ends, weights, unit = self._profile(place)
        least = float(alpha) * (1 - SLACK)
        is_rare = lambda t: 2 * float(weights @ np.maximum(ends - t, 0)) <= least
        high = bisect.bisect_left(range(int(ends[-1])), True, key=is_rare)
        return math.ceil((high + (unit != 1)) * unit)

    def deviation(self, place: int) -> float:
        """Return the root of the sum of (2 t + 1) P(|z| > t), the second moment."""
        ends, weights, unit = self._profile(place)
        squares = ends * (ends + 1) * (2 * ends + 1) / 3
        return math.sqrt(float(weights @ squares)) * float(unit)

    def mean_error(self, place: int) -> float:
        """Return the sum of P(|z| > t)."""
        ends, weights, unit = self._profile(place)
        return float(weights @ (ends * (ends + 1))) * float(unit)

    def _profile(self, place: int) -> tuple[Floats, Floats, Fraction]:
        """Return e, g and a unit with P(|z| > t) about 2 sum of g (e - t / unit)_+.

        *Coarser levels.* Where M = 1 and the rate x is tiny, clips K C_j and the rate K x stand for
        C_j and x. In levels u = K u' + i, v = K v' + j, i and j below K, the numerator of
        P(|z| > t), which is q^(u + v) times what rises with u and v, is at most what it is at
        (u' + 1, v' + 1) but for q^(u + v) <= q^(K (u' + v')), and the denominator is at least what
        it is at (u', v') but for q^(u + v) >= q^(K (u' + v' + 2)): together P is at most
        e^(4 K x) P', and K x is at most 1 / 1024.

        *Large clips.* C_j / M beyond c = 1024 (d + 1) is taken as c, which changes its factor of
        |B(u, v)|, beside C_j / M, by at most (c + 1) / (c - 1) for u + v >= 1; so P is at most
        (1 + 5 / 1024) P', and its own t is a step less in units of C_j / (c M).
        """
        largest = 1024 * (len(self.sides) + 1) * self.levels
        stride = max(1, math.floor(1 / (1024 * self.rate))) if self.levels == 1 else 1
        sides = [(min(clip * stride, largest), signed) for clip, signed in self.sides]
        own = sides[place]
        ends, weights = _profiles(self.rate * stride, self.levels, tuple(sorted(sides)))[own]
        cut = Fraction(self.sides[place][0] * stride, own[0]) if own[0] == largest else Fraction(1)
        return ends, weights, cut


_hull = functools.lru_cache(maxsize=1 << 10)(_Hull)


@functools.lru_cache(maxsize=1 << 10)
def _profiles(rate: Fraction, levels: int, sides: tuple[Side, ...]) -> dict[Side, Profile]:
    """Return e and g with P(|z| > t) = 2 sum of g (e - t)_+ for a number with each of the sides.

    Levels (u, v) contribute (e(v) - t)_+ above 0 and (e(u) - t)_+ below, over |side|: by symmetry
    twice the first. Where M = 1, and without one-signed numbers, sides depend on u + v alone.
    The levels that are left out have less than 10^-11 of the weight (Chernoff's bound for a sum of
    geometric numbers).
    """
    hull = _hull(rate * levels, sides)
    counts = collections.Counter(sides)
    shape = len(sides) + 1 + hull.split
    span = math.ceil((shape + 7 * math.sqrt(shape) + 28) / rate)
    steps = np.arange(span + BLOCK)
    ends = {side: (steps * side[0] // levels).astype(np.float64) for side in counts}
    mode = hull.steepest(rate)
    typical = {side: 1 + (1 + side[1]) * side[0] / levels * mode for side in counts}
    falling = np.exp(-float(rate) * (steps - mode))

    if levels == 1 or not hull.split:
        widths: dict[Side, Floats] = {side: (1 + side[1]) * ends[side] + 1 for side in counts}
        each = falling * _product(widths, typical, counts)
        pairs = np.where(hull.split, steps + 1.0, 1.0)
        whole = float(each @ pairs)
        return {
            side: (ends[side], _summed(each / width, pairs, side[1]) / whole)
            for side, width in widths.items()
        }
    whole, sums = 0.0, {side: np.zeros(len(steps)) for side in counts}
    for start in range(0, span, BLOCK):
        up, down = steps[start : start + BLOCK, None], steps[: span - start]
        widths = {
            side: 2 * end[up + down] + 1 if side[1] else end[up] + end[down] + 1
            for side, end in ends.items()
        }
        each = falling[up + down] * _product(widths, typical, counts)
        whole += float(each.sum())
        for side, width in widths.items():
            if side[1]:
                sums[side] += np.bincount((up + down).ravel(), (each / width).ravel(), len(steps))
            else:
                sums[side][up[:, 0]] = (each / width).sum(axis=1)
    return {side: (ends[side], sums[side] / whole) for side in counts}


def _summed(parts: Floats, pairs: Floats, signed: bool) -> Floats:
    """Return by levels of the side the sum of what is given by u + v."""
    return parts * pairs if signed else np.cumsum(parts[::-1])[::-1]


def _product(
    widths: dict[Side, Floats], typical: dict[Side, float], counts: dict[Side, int]
) -> Floats:
    product = np.ones(1)
    for side, count in counts.items():
        product = product * (widths[side] / typical[side]) ** count
    return product


def _scaled_exp(weight: int, exponent: Fraction, bits: int) -> Interval:
    """Enclose weight e^exponent."""
    low, high = exp_interval(exponent, bits + weight.bit_length())
    return weight * low, weight * high


@dataclasses.dataclass(frozen=True)
class _Gaussian:
    """The noise under zCDP."""

    rho: Fraction
    sides: tuple[Side, ...]

    @functools.cached_property
    def together(self) -> int:
        """How many numbers are correlated; one alone gains nothing."""
        count = sum(not signed for _, signed in self.sides)
        return count if count > 1 else 0

    @functools.cached_property
    def root(self) -> Fraction:
        """The square root of how many are correlated, but for 2^-20."""
        return Fraction(math.isqrt(self.together * ROOT**2), ROOT)

    @property
    def parts(self) -> int:
        """L: odd, so that no half is rounded, and with b L^2 >= 1."""
        return 2 * PARTS * max(1, math.ceil(self.rho)) - 1

    @property
    def shares(self) -> tuple[Fraction, Fraction]:
        """The rho of the numbers that are correlated, and of the others."""
        apart = len(self.sides) - self.together
        joint = (self.together + self.root) / 2
        share = self.rho * joint / (joint + apart)
        return share, self.rho - share

    @property
    def variances(self) -> tuple[Fraction, Fraction]:
        """a and b, in clips."""
        count, root = self.together, self.root
        b = (1 + Fraction(1, self.parts**2)) * (1 + count / root) / (8 * self.shares[0])
        return root * b, b

    @property
    def apart(self) -> Fraction:
        """The variance of a number that is not correlated, in clips."""
        return (len(self.sides) - self.together) / (2 * self.shares[1])

    def draw(self, noise: Noise, size: int) -> list[Integers]:
        """Return an array of draws for each number."""
        common = np.zeros(size, np.int64)
        if self.together:
            common = noise.discrete_gaussian(self.variances[1] * self.parts**2, size)
        return [
            self._correlated(clip, common, noise)
            if self._is_together(signed)
            else noise.discrete_gaussian(self.apart * clip**2, size)
            for clip, signed in self.sides
        ]

    def _is_together(self, signed: bool) -> bool:
        return self.together > 0 and not signed

    def _correlated(self, clip: int, common: Integers, noise: Noise) -> Integers:
        parts = self.parts
        alone = noise.discrete_gaussian(self.variances[0] * (clip * parts) ** 2, len(common))
        moved = integers.product(common, integers.alone(clip))
        both = integers.add(integers.narrow(alone), moved)
        doubled = integers.add(integers.add(both, both), np.array([parts]))
        return integers.divide(doubled, 2 * parts)

    def bound(self, place: int, alpha: Fraction) -> int:
        """Return a bound that the noise of a number exceeds with probability alpha at most.

        For a discrete Gaussian X of variance v >= 1 and N of the normal one, P(X >= m) <=
        P(N >= m - 1) for every integer m. Let f be e^(-x^2 / (2 v)), F its integral over the reals
        and S its sum over the integers: 1 <= S / F <= 1 + 2.1 e^(-2 pi^2 v) (Poisson summation).
        For m >= 1, the sum from m on is at most the integral from m - 1 on, and S >= F. For m <= 0
        let n = 1 - m >= 1: P(X >= n) >= P(N >= n) is asked, and f(k) >= (1 + 1 / (4 v)) times its
        integral from k to k + 1, for k >= 1: that is more than S / F.

        So g + C h is at most 1 + C above a normal number, in distribution, and z > t needs
        g + C h >= L t + (L + 1) / 2.
        """
        clip, signed = self.sides[place]
        if not self._is_together(signed):
            return gaussian_bound(self.apart * clip**2, alpha)
        wide = gaussian_bound(sum(self.variances) * (clip * self.parts) ** 2, alpha)
        return math.ceil((wide + 1 + clip - Fraction(self.parts + 1, 2)) / self.parts)

    def deviation(self, place: int) -> float:
        """Return the standard deviation, to the accuracy of the continuous one."""
        clip, signed = self.sides[place]
        variance = sum(self.variances) if self._is_together(signed) else self.apart
        return clip * math.sqrt(variance)

    def mean_error(self, place: int) -> float:
        """Return the mean absolute noise, to the accuracy of the continuous one."""
        return self.deviation(place) * math.sqrt(2 / math.pi)


_gaussian = functools.lru_cache(maxsize=1 << 10)(_Gaussian)
