"""AboveThreshold, the default: scan the candidates upwards, stop where the noisy loss is small."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.search.common import LOG_COUPLING, Search, bounded_range, log_ratio

_FALSE_STOP = 0.03  # the 3% of a gate
_EARLY_PARTS = (0.05, 0.1, 0.2, 0.3, 0.5)  # of beta: the chance to stop too early
_SLACK = 1e-9  # relative, far above the rounding of the logarithms
_PARTS = 200  # eps1 is a multiple of 1/200 of the whole


@dataclass(frozen=True)
class AboveThreshold(Search):
    """Choose the first candidate whose noisy loss is small, by one-sided geometric noise.

    The release is epsilon-DP (rho-zCDP for `Budget.zcdp(rho)`) when one person is added or removed,
    and with probability at least 1 - beta it lies between f without its `shift(n)` most important
    people and f itself, both rounded up onto the candidates.

    With rho ~ Geo(eps1), nu_i ~ Geo(eps2), P(Geo(e) = k) = (1 - e^-e) e^(-e k), k >= 0:
    for i = 0..N-2, if `loss(y_i) <= theta_i + nu_i - rho` return y_i; else return y_{N-1}. Every
    theta_i is theta, but for theta_0 with a gate (below).

    Theorem. For x' = x + one person and every i, `ln P_x'(i) / P_x(i) <= eps1 + eps2` and
    `ln P_x(i) / P_x'(i) <= eps2`. Both bounds are attained.

    Proof. Let l, l' be the losses minus theta_i, so l <= l' <= l + 1, and
    F(t) = P(nu >= t) = e^(-eps2 max(t, 0)). Then
    P_x(i) = sum_r P(rho = r) prod_{j < i} (1 - F(l_j + r)) F(l_i + r).

    1. P_x >= e^-(eps1 + eps2) P_x': in P_x replace r by r + 1. P(rho = r + 1) = e^-eps1 P(rho = r);
       l_j + 1 >= l'_j, so 1 - F(l_j + r + 1) >= 1 - F(l'_j + r); and
       F(l_i + r + 1) >= e^-eps2 F(l_i + r) >= e^-eps2 F(l'_i + r).
    2. P_x' >= e^-eps2 P_x: with the same r, 1 - F(l'_j + r) >= 1 - F(l_j + r), and
       F(l'_i + r) >= F(l_i + r + 1) >= e^-eps2 F(l_i + r).

    For the last candidate the factor F(l_i + r) is absent: the same, with less to lose.

    *A gate.* Where people are fewer than the shift, all candidates below the data have the same
    loss, and the scan may stop at any of them, far from the data. With `gate=True` the first
    candidate stands for such data, and theta_0 = theta + m is larger, m the least integer with
    N e^(-eps2 (m + 1)) / (1 + e^-eps2) <= 0.03. A scan that goes on beyond the first candidate
    has a loss there of at least theta + m + 1 + nu_0 - rho, and E e^(-eps2 nu_0) =
    1 / (1 + e^-eps2): the chance to stop at another candidate of that loss is 3% at most. The
    guarantee above then holds for all answers but the first.

    Edge cases: one candidate is returned as it is, with shift 0. `Budget(epsilon, delta)` spends
    epsilon only. A profile above the top candidate counts as the top.

    Args:
        budget: what one choice may spend.
        beta: the failure probability of the shift; the shift grows like ln(1 / beta) / eps1.
        overshoot: if given, the most chance of an answer above f (beta then bounds the other
            failure, an answer below f without its shift largest people); for clips, where an
            answer above everybody's values is worse than a clip that cuts some of them.
        gate: return the first candidate where there are hardly more people than the shift.

    Raises:
        TypeError: if budget is no Budget.
        ValueError: unless 0 < beta < 1.

    Source: the sparse vector technique (Dwork and Roth 2014, section 3.6), with one-sided noise for
    monotone queries; zCDP by its bounded range eps1 + 2 eps2 (see `thresholds`).
    """

    overshoot: float | None = None
    gate: bool = False

    def _shift(self, n: int) -> int:
        return self._thresholds(n).shift

    def _cap(self, n: int) -> int:
        return self.tail_bound(n, LOG_COUPLING + math.log(2))  # half of 1e-12 per coupled run

    def tail_bound(self, n: int, rarity: float) -> int:
        """Return a K such that this stops at a loss above K with a chance of e^-rarity at most.

        By a union bound over N candidates that chance is at most
        N sum_r P(rho = r) e^(-eps2 (K + 1 - theta + r)); a gate adds e^(eps2 m) to N.
        """
        if n == 1:
            return 0
        chosen = self._thresholds(n)
        second = float(chosen.second)
        queries = np.logaddexp(math.log(n), second * (self._first_theta(n) - chosen.theta))
        ratio = log_ratio(float(chosen.first), second)
        beyond = (float(queries) + rarity + ratio) / second * (1 + _SLACK)
        return chosen.theta + math.ceil(beyond)

    def _choose(self, profile: Profile, candidates: Candidates, noise: Noise) -> int:
        chosen = self._thresholds(candidates.size)
        rho = int(noise.geometric(chosen.first, 1)[0])
        runs = list(self._needs(profile, candidates))
        # nu >= need + rho has probability e^(-eps2 (need + rho)) at each candidate of a run.
        needs = [need + rho for need, _, _ in runs]
        found = noise.first_success(chosen.second, needs, [end - start for _, start, end in runs])
        # The last candidate is returned whether it passes or not.
        return candidates.size - 1 if found is None else runs[found.run][1] + found.passed

    def _needs(self, profile: Profile, candidates: Candidates) -> Iterator[tuple[int, int, int]]:
        """Yield (loss - theta_i, start, stop) of each run of candidates of equal difference."""
        theta, first = self._thresholds(candidates.size).theta, self._first_theta(candidates.size)
        for loss, start, stop in profile.plateaus(candidates):
            if start == 0 and self.gate:
                yield loss - first, 0, 1
            if stop > 1 or not self.gate:
                yield loss - theta, max(start, int(self.gate)), stop

    def _thresholds(self, n: int) -> "Thresholds":
        overshoot = None if self.overshoot is None else float(self.overshoot)
        scale, weight = bounded_range(self.budget), 2 if self.budget.is_zcdp else 1
        return thresholds(scale, weight, n, float(self.beta), overshoot)

    def _first_theta(self, n: int) -> int:
        """Return theta_0."""
        chosen = self._thresholds(n)
        if not self.gate:
            return chosen.theta
        second = float(chosen.second)
        least = (math.log(n / _FALSE_STOP) - math.log1p(math.exp(-second))) / second * (1 + _SLACK)
        return chosen.theta + max(0, math.ceil(least) - 1)


class Thresholds(NamedTuple):
    """eps1 for rho, eps2 for each candidate (exact), the threshold theta and the shift T."""

    first: Fraction
    second: Fraction
    theta: int
    shift: int


@lru_cache(maxsize=1024)
def thresholds(
    scale: Fraction, weight: int, n: int, beta: float, overshoot: float | None
) -> Thresholds:
    """Return the parameters of the smallest shift T whose failure is at most beta.

    eps1 + weight eps2 = scale. Pure: eps1 + eps2 <= epsilon. zCDP: the log ratio of two neighbours
    ranges over an interval of length eps1 + 2 eps2 (it is at most eps1 + eps2 one way and eps2 the
    other), which is what `bounded_range` pays for. This allows every choice of eps1 + eps2 <=
    sqrt(2 rho), and more.

    Let tau = T + 1 - theta. Given rho = r the search fails only if

    * it stops at one of the candidates of loss >= T + 1, each with chance at most
      P(nu >= tau + r) = e^(-eps2 (tau + r)); there are at most N - 1 (the last is never asked).
      The sum over r and all of them is (N - 1) e^(-eps2 tau) (1 - e^-eps1) / (1 - e^-(eps1 + eps2));
    * or it goes on where the loss is 0 for the first time, with the chance
      P(nu < r - theta) = 1 - e^(-eps2 max(r - theta, 0)) of an answer above f. The sum over r is
      e^(-eps1 (theta + 1)) (1 - e^-eps2) / (1 - e^-(eps1 + eps2)).

    Both together are at most beta; with an overshoot the first is at most beta, and the second at
    most the overshoot. Of many shares of eps1, and of beta for the first failure, the best is taken.
    """
    failures = [(beta, overshoot)] if overshoot is not None else []
    failures = failures or [(part * beta, (1 - part) * beta) for part in _EARLY_PARTS]

    def parameters(part: int, early: float, late: float) -> tuple[int, int]:
        first = float(scale) * part / _PARTS
        second = (float(scale) - first) / weight
        queries = math.log(n - 1) + log_ratio(first, second)
        tau = max(1, math.ceil((queries - math.log(early)) / second * (1 + _SLACK)))
        beyond = (log_ratio(second, first) - math.log(late)) / first * (1 + _SLACK)
        theta = max(0, math.ceil(beyond - 1))
        return tau + theta - 1, theta

    (shift, theta), part = min(
        (parameters(part, *each), part) for part in range(1, _PARTS) for each in failures
    )
    first = scale * Fraction(part, _PARTS)
    return Thresholds(first, (scale - first) / weight, theta, shift)
