"""The ratio with noise scaled to a private upper bound of its local sensitivity."""

import dataclasses
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.bounded_sensitivity import SHARE, GridLaplace, shares
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.noise.tails import laplace_bound
from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.ratio import local_bound as bounds
from beam_dp.mechanisms.ratio.base import HUGE, Counts, Estimates, Mechanism, add_noise
from beam_dp.mechanisms.ratio.counts import KuleszaSureshWang, Naive
from beam_dp.mechanisms.ratio.local_bound import Rational, Span

PARTS, TOTAL = "parts", "total"
_WIDEST = Fraction(1, 2)


@dataclasses.dataclass(frozen=True)
class BoundedLocalSensitivity(Mechanism):
    """Draw noisy counts, bound the local sensitivity by them, release a / b with noise to match.

    (epsilon, delta)-DP by the theorem of `noise.bounded_sensitivity`: the counts cost epsilon_1 =
    share epsilon, and all lie within t of the truth but for probability delta, t from the exact
    tail of the discrete Laplace distribution; `local_bound` is then an upper bound of the local
    sensitivity.

    The counts, between add-remove neighbours, are the `"parts"` a and b - a with noise for
    epsilon_1 each (a person moves both by at most `rows` together), or `"total"`, the article's a
    and b for epsilon_1 / 2 each, with twice the noise. Substitution neighbours need b alone:
    LS <= rows / b.

    *The bail-out*: the bound is useless where the counts leave it possible that b <= rows (the
    article's rule), and where its noise is expected to be larger than that of the naive ratio for
    the whole budget (for b near 2 t, by far). Then the ratio of Kulesza, Suresh and Wang is
    released for the rest of the budget, epsilon_2 = epsilon - epsilon_1. With `switch` it is also
    released wherever it is expected to be closer. The noisy counts decide both: they have been paid
    for, so the choice costs nothing, and the theorem allows for it.

    Attributes:
        share: the part of epsilon for the counts.
        queries: "parts" or "total".
        switch: whether to release the better of both ratios, not only to bail out.
    """

    share: checks.Real = SHARE
    queries: str = PARTS
    switch: bool = False

    @property
    def _owner(self) -> str:
        return "LocalSensitivity"  # as it is called where users take it from

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(self._owner, "queries", self.queries, (PARTS, TOTAL))
        _ = self._asker, self._rival, self.fallback  # each refuses too small a budget

    @property
    def costs(self) -> tuple[Budget, Budget]:
        """What the counts cost (delta is spent here), and what the ratio costs."""
        return shares(self._owner, self.budget, self.share)

    @property
    def fallback(self) -> KuleszaSureshWang:
        """The mechanism that releases where the bound is useless."""
        return KuleszaSureshWang(self.costs[1], self.rows, self.neighbours)

    @property
    def _asker(self) -> AdditiveNoise:
        first = self.costs[0].without_delta()
        halved = self.queries == TOTAL and not self.substitution
        return AdditiveNoise(first.scaled(Fraction(1, 2)) if halved else first)

    @property
    def straying(self) -> int:
        """How far a count strays, but for its part of delta: half, or all of delta on one side."""
        delta = self.budget.delta
        alpha = min(2 * delta, _WIDEST) if self.substitution else delta / 2
        return laplace_bound(self._asker.budget.amount / self.rows, alpha)

    def bound(self, first: int, second: int, straying: int | None = None) -> Rational | None:
        """Return an upper bound of the local sensitivity; None where the counts are too small.

        Args:
            first: the noisy a (not used for substitution neighbours).
            second: the noisy b - a, or b for queries="total" and for substitution neighbours.
            straying: how far from the truth both may be; None: `self.straying` is computed.
        """
        far = self.straying if straying is None else straying
        if self.substitution:
            return (self.rows, second - far) if second - far > self.rows else None
        ones: Span = (max(0, first - far), max(0, first + far))
        if self.queries == TOTAL:
            if second - far <= self.rows:
                return None
            return bounds.of_total(ones, (second - far, second + far), self.rows)
        zeros: Span = (max(0, second - far), max(0, second + far))
        return bounds.of_parts(ones, zeros, self.rows) if ones[0] + zeros[0] > self.rows else None

    def _draw(self, ones: Counts, totals: Counts, noise: Noise, alpha: Fraction) -> Estimates:
        limits = self._bounds(ones, totals, noise)
        local = np.array([bound is not None for bound in limits], bool)
        fallback = self.fallback.release(ones[~local], totals[~local], noise, alpha)
        values, errors = np.empty(len(limits)), np.empty(len(limits))
        values[~local], errors[~local] = fallback.values, fallback.errors
        values[local], errors[local] = self._around(
            ones[local].tolist(),
            totals[local].tolist(),
            [bound for bound in limits if bound],
            noise,
            alpha,
        )
        return Estimates(values, errors)

    def _around(
        self,
        ones: list[int],
        totals: list[int],
        bounds: list[Rational],
        noise: Noise,
        alpha: Fraction,
    ) -> tuple[list[float], list[float]]:
        """Return a / b with the noise of each bound, and how far that noise strays."""
        grid = GridLaplace(self.costs[1].amount)
        drawn = noise.discrete_laplace(grid.rate, len(bounds)).tolist()
        reach, values, errors = grid.reach(alpha), [], []
        for a, b, bound, added in zip(ones, totals, bounds, drawn, strict=True):
            # 0 / 0 is 1/2 here too: a noisy b may pass the test where nobody is there.
            steps = grid.steps((a, b) if b else (1, 2), bound) + added
            top, bottom = steps * bound[0], grid.resolution * bound[1]
            values.append(min(max(0, top), bottom) / bottom)
            errors.append(float(reach * bound[0] / bound[1]))
        return values, [min(error, 1.0) for error in errors]

    def _bounds(self, ones: Counts, totals: Counts, noise: Noise) -> list[Rational | None]:
        """Draw the noisy counts and return the bound of each pair; None: use the fallback."""
        asker, far = self._asker, self.straying
        second = totals
        if self.queries == PARTS and not self.substitution:
            second = integers.add(totals, -ones)
        noisy_second = add_noise(asker, self.rows, second, noise).tolist()
        noisy_first = [0] * len(noisy_second)
        if not self.substitution:
            noisy_first = add_noise(asker, self.rows, ones, noise).tolist()
        pairs = list(zip(noisy_first, noisy_second, strict=True))
        limits = [self.bound(*pair, far) for pair in pairs]
        return self._useful(pairs, limits)

    @property
    def _rival(self) -> Mechanism:
        """The mechanism that the noise of a bound must be expected to beat."""
        if self.switch:
            return self.fallback
        return Naive(self.budget.without_delta(), self.rows, self.neighbours)

    def _useful(
        self, pairs: list[tuple[int, int]], bounds: list[Rational | None]
    ) -> list[Rational | None]:
        """Return the bounds; None for those that bail out."""
        rival, epsilon = self._rival, float(min(self.costs[1].amount, Fraction(HUGE)))
        return [
            bound
            if bound and bound[0] / bound[1] / epsilon <= rival.expected_error(*self._seen(*pair))
            else None
            for pair, bound in zip(pairs, bounds, strict=True)
        ]

    def _seen(self, first: float, second: float) -> tuple[float, float]:
        """Return a and b as the noisy counts show them; a is half of b where only b was drawn.

        At a = b / 2 the default does best.
        """
        if self.substitution:
            return second // 2, second
        return (first, second) if self.queries == TOTAL else (first, first + second)

    def _expected(self, ratio: float, total: float) -> float:
        ones = round(ratio * total)
        asked = self.queries == TOTAL or self.substitution
        bound = self.bound(ones, round(total) if asked else round(total) - ones)
        if bound is not None:
            local = bound[0] / bound[1] / float(min(self.costs[1].amount, Fraction(HUGE)))
            if local <= self._rival.expected_error(ones, total):
                return local
        return self.fallback.expected_error(ones, total)
