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
    """Ask for noisy counts, bound the local sensitivity by them, release a / b with that noise.

    (epsilon, delta)-DP by the theorem of `noise.bounded_sensitivity`: the counts cost epsilon_1 =
    share epsilon, and all lie within t of the truth but for probability delta, t from the exact
    tail of the discrete Laplace distribution; `local_bound` is then an upper bound of the local
    sensitivity.

    What is asked, between add-remove neighbours: the `"parts"` a and b - a with noise for epsilon_1
    each (a person moves both by at most `rows` together), or `"total"`, the article's a and b for
    epsilon_1 / 2 each, with twice the noise. Substitution neighbours need b alone: LS <= rows / b.

    *The bail-out*: the bound is useless where the counts leave it possible that b <= rows (the
    article's rule), and where its noise is expected to be larger than that of the naive ratio for
    the whole budget, which for b near 2 t it is by far. Then the ratio of Kulesza, Suresh and Wang
    is released for what is left, epsilon_2 = epsilon - epsilon_1. With `switch` that is done
    wherever it is expected to be closer. Both are decided by the noisy counts: they have been paid
    for, so the choice costs nothing, and the theorem allows for it.

    Attributes:
        share: the part of epsilon for the counts.
        queries: "parts" or "total".
        switch: whether to take the better of both, not only the bail-out.
    """

    share: checks.Real = SHARE
    queries: str = PARTS
    switch: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(self._owner, "queries", self.queries, (PARTS, TOTAL))
        _ = self._asker, self._rival, self.fallback  # they refuse what is too small for them

    @property
    def costs(self) -> tuple[Budget, Budget]:
        """What the counts cost (delta is spent here), and what the ratio."""
        return shares(self._owner, self.budget, self.share)

    @property
    def fallback(self) -> KuleszaSureshWang:
        """What is released where the bound is useless."""
        return KuleszaSureshWang(self.costs[1], self.rows, self.neighbours)

    @property
    def _asker(self) -> AdditiveNoise:
        first = self.costs[0].without_delta()
        halved = self.queries == TOTAL and not self.substitution
        return AdditiveNoise(first.scaled(Fraction(1, 2)) if halved else first)

    @property
    def straying(self) -> int:
        """How far a count strays, but for its part of delta: half, or all of it on one side."""
        delta = self.budget.delta
        alpha = min(2 * delta, _WIDEST) if self.substitution else delta / 2
        return laplace_bound(self._asker.budget.amount / self.rows, alpha)

    def bound(self, first: int, second: int, straying: int | None = None) -> Rational | None:
        """Return an upper bound of the local sensitivity; None where the counts are too small.

        Args:
            first: the noisy a (not used for substitution neighbours).
            second: the noisy b - a, or b for queries="total" and for substitution neighbours.
            straying: how far from the truth both may be; `self.straying`, if it is known.
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
        found = self._bounds(ones, totals, noise)
        local = np.array([bound is not None for bound in found], bool)
        other = self.fallback.release(ones[~local], totals[~local], noise, alpha)
        values, errors = np.empty(len(found)), np.empty(len(found))
        values[~local], errors[~local] = other.values, other.errors
        values[local], errors[local] = self._around(
            ones[local].tolist(),
            totals[local].tolist(),
            [each for each in found if each],
            noise,
            alpha,
        )
        return Estimates(values, errors)

    def _around(
        self,
        ones: list[int],
        totals: list[int],
        found: list[Rational],
        noise: Noise,
        alpha: Fraction,
    ) -> tuple[list[float], list[float]]:
        """Return a / b with the noise of each bound, and how far that strays."""
        grid = GridLaplace(self.costs[1].amount)
        drawn = noise.discrete_laplace(grid.rate, len(found)).tolist()
        reach, values, errors = grid.reach(alpha), [], []
        for a, b, bound, added in zip(ones, totals, found, drawn, strict=True):
            # 0 / 0 is 1/2 here too: a noisy b may pass the test where nobody is there.
            steps = grid.steps((a, b) if b else (1, 2), bound) + added
            top, bottom = steps * bound[0], grid.resolution * bound[1]
            values.append(min(max(0, top), bottom) / bottom)
            errors.append(float(reach * bound[0] / bound[1]))
        return values, [min(error, 1.0) for error in errors]

    def _bounds(self, ones: Counts, totals: Counts, noise: Noise) -> list[Rational | None]:
        """Ask for the counts and return the bound of each pair; None: use the fallback."""
        asker, far = self._asker, self.straying
        second = totals
        if self.queries == PARTS and not self.substitution:
            second = integers.add(totals, -ones)
        noisy_second = add_noise(asker, self.rows, second, noise).tolist()
        noisy_first = [0] * len(noisy_second)
        if not self.substitution:
            noisy_first = add_noise(asker, self.rows, ones, noise).tolist()
        pairs = list(zip(noisy_first, noisy_second, strict=True))
        found = [self.bound(*pair, far) for pair in pairs]
        return self._useful(pairs, found)

    @property
    def _rival(self) -> Mechanism:
        """What a bound must be expected to beat."""
        if self.switch:
            return self.fallback
        return Naive(self.budget.without_delta(), self.rows, self.neighbours)

    def _useful(
        self, pairs: list[tuple[int, int]], found: list[Rational | None]
    ) -> list[Rational | None]:
        """Return the bounds, None for the bail-out."""
        rival, epsilon = self._rival, float(min(self.costs[1].amount, Fraction(HUGE)))
        return [
            bound
            if bound and bound[0] / bound[1] / epsilon <= rival.expected_error(*self._seen(*pair))
            else None
            for pair, bound in zip(pairs, found, strict=True)
        ]

    def _seen(self, first: float, second: float) -> tuple[float, float]:
        """Return a and b as the noisy counts show them; half of b where only b was asked.

        That is where the default does best.
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
