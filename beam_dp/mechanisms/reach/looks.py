"""One or two private looks at a histogram of people; the second is paid for only if it is taken.

The histogram h has sensitivity 1 (`ladder`). The first look costs FIRST of the whole budget; where
it shows enough people it is all that is spent, and 1 - FIRST is left. Else the second look is
taken, which costs SECOND in all, the first included, and 1 - SECOND is left.

**Pure epsilon: coarsening.** The fine counts are x2 = h + DLap(s_2 epsilon) for the shares
s_1 < s_2, and `coarser` (`clips.histogram_noise`, with its proof) makes x1 of them, which has the
distribution of h + DLap(s_1 epsilon) exactly, by noise that knows nothing of h.

*Privacy.* Whether x1 is enough is a function of x1. Where it is, x1 is released, at s_1 epsilon,
and what follows spends (1 - s_1) epsilon. Where it is not, x2 is released; x1 is x2 with noise that
knows nothing of h, so both together cost no more than x2, s_2 epsilon, and what follows spends
(1 - s_2) epsilon. For a set S of outcomes, neighbours h, h' and what follows M, (its part of
epsilon, delta)-DP given what was released,

    P[stop, S] <= sum_x1 P(x1) (e^((1 - s_1) epsilon) M'(S | x1) + delta)
               <= e^epsilon P'[stop, S] + delta P[stop],

and in the same way P[go on, S] <= e^epsilon P'[go on, S] + delta P[go on]: together (epsilon,
delta)-DP. So x2 must not be released, nor used, where x1 was enough.

**zCDP: a fresh draw.** x1 = h + N(1 / (2 s_1 rho)); the second look is the mean of x1 and a fresh
draw of (s_2 - s_1) rho, weighted by their shares, with the variance 1 / (2 s_2 rho). *Privacy.*
Given x1, what follows costs (1 - s_1) rho in either case: the rest after one look, or a fresh draw
of (s_2 - s_1) rho and then the rest of (1 - s_2) rho. So it is the composition of two adaptive
mechanisms of s_1 rho and of (1 - s_1) rho: rho in all (Bun and Steinke 2016, Lemma 2.3; with delta,
Lemma 8.2).

Source: the discrete Gaussian is rho-zCDP by Canonne, Kamath, Steinke 2020, Theorem 4.
"""

import dataclasses
import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.clips.histogram_noise import coarser
from beam_dp.mechanisms.noise.sampling import Noise

FIRST, SECOND = Fraction(1, 25), Fraction(3, 25)
"""The shares of the budget that the first look costs, and both looks together."""
ENOUGH = 200
"""The first look is enough from so many people on, times the scale of its noise (5,000 people at
epsilon 1)."""


@dataclasses.dataclass(frozen=True)
class Look:
    """The noisy counts that were released, and what they cost.

    Attributes:
        counts: people per step, with noise; float64.
        share: the part of the whole budget that was spent.
        budget: the whole budget that the share is of.
    """

    counts: np.ndarray
    share: Fraction
    budget: Budget

    @property
    def spent(self) -> Budget:
        """What was spent."""
        return self.budget.without_delta().scaled(self.share)

    @property
    def left(self) -> Budget:
        """What is left of the budget: the rest of epsilon (rho), and all of delta."""
        return left_after(self.budget, self.share)

    @property
    def scale(self) -> float:
        """The scale of the noise: of Laplace's, or the deviation of Gauss's."""
        return noise_scale(self.spent)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        return self.scale * (1.0 if self.budget.is_zcdp else math.sqrt(2))

    def surely_noise(self, chance: float) -> float:
        """Return what the noise of one count exceeds with about this chance."""
        if self.budget.is_zcdp:
            return -self.scale * NormalDist().inv_cdf(chance)
        return self.scale * math.log(1 / (2 * chance))


def left_after(budget: Budget, share: Fraction) -> Budget:
    """Return the budget without a share of its epsilon (rho); delta is not spent."""
    rest = budget.amount * (1 - share)
    return Budget.zcdp(rest, budget.delta) if budget.is_zcdp else Budget(rest, budget.delta)


def noise_scale(spent: Budget) -> float:
    """Return 1 / epsilon, or sqrt(1 / (2 rho))."""
    return math.sqrt(1 / (2 * spent.amount)) if spent.is_zcdp else float(1 / spent.amount)


@dataclasses.dataclass(frozen=True)
class TwoLooks:
    """Look once or twice at a histogram of sensitivity 1; see the module's docstring.

    Attributes:
        budget: the whole budget, of which a share is spent.
        first: the share that the first look costs.
        second: the share of both looks.
        enough: the first look is enough if its counts sum up to this many noise scales.
    """

    budget: Budget
    first: Fraction = FIRST
    second: Fraction = SECOND
    enough: float = ENOUGH

    def draw(self, counts: np.ndarray, noise: Noise) -> Look:
        """Return the look that is released; nothing else of the draws may be used.

        Args:
            counts: the exact histogram, int64.
            noise: the randomness.
        """
        draw = self._draw_gauss if self.budget.is_zcdp else self._draw_laplace
        return draw(np.asarray(counts, np.int64), noise)

    def _draw_laplace(self, counts: np.ndarray, noise: Noise) -> Look:
        whole = self.budget.without_delta()
        first, second = (whole.scaled(share) for share in (self.first, self.second))
        fine = counts + noise.discrete_laplace(second.amount, len(counts))
        coarse = self._look(coarser(fine, second, first, noise), self.first)
        return coarse if self._is_enough(coarse) else self._look(fine, self.second)

    def _draw_gauss(self, counts: np.ndarray, noise: Noise) -> Look:
        rho = self.budget.amount
        values = counts + noise.discrete_gaussian(1 / (2 * rho * self.first), len(counts))
        coarse = self._look(values, self.first)
        if self._is_enough(coarse):
            return coarse
        more = self.second - self.first
        again = counts + noise.discrete_gaussian(1 / (2 * rho * more), len(counts))
        weight = float(self.first / self.second)
        return self._look(weight * values + (1 - weight) * again, self.second)

    def _look(self, counts: np.ndarray, share: Fraction) -> Look:
        return Look(np.asarray(counts, np.float64), share, self.budget)

    def _is_enough(self, look: Look) -> bool:
        return float(look.counts.sum()) >= self.enough * look.scale
