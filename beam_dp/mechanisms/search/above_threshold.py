"""AboveThreshold, the default: walk up the candidates, stop where the noisy loss is small."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.search.common import LOG_COUPLING, SYSTEM_NOISE, audited_losses, check
from beam_dp.mechanisms.search.draws import failures_before_success
from beam_dp.mechanisms.search.stop_chances import stop_chances
from beam_dp.mechanisms.search.thresholds import Thresholds, guarded_thresholds, thresholds

_OWNER = "AboveThreshold"
_STRAY = 0.03  # the 3% of a gate
_SLACK = 1e-9  # relative, far above the rounding of the logarithms


@dataclass(frozen=True)
class AboveThreshold:
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
    loss, and the walk may stop at any of them, far from the data. With `gate=True` the first
    candidate stands for such data, and theta_0 = theta + m is larger, m the least integer with
    N e^(-eps2 (m + 1)) / (1 + e^-eps2) <= 0.03. A walk that goes on beyond the first candidate
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

    budget: Budget
    beta: float = 0.05
    overshoot: float | None = None
    gate: bool = False

    def __post_init__(self) -> None:
        check(_OWNER, self.budget, self.beta)
        if self.overshoot is not None:
            checks.fraction_between(_OWNER, "overshoot", self.overshoot, 0, 1)

    @property
    def cost(self) -> Budget:
        """What one choice spends: the budget's epsilon or rho, and no delta."""
        return self.budget.without_delta()

    def shift(self, n: int) -> int:
        """Return the T that is guaranteed with probability 1 - beta for n candidates."""
        checks.positive_integer(_OWNER, "n", n)
        return 0 if n == 1 else self._thresholds(n).shift

    def cap(self, n: int) -> int:
        """Return a K such that B[0..K] decides like the whole profile but for 1e-12."""
        return self.reach(n, LOG_COUPLING + math.log(2))  # half of 1e-12 per coupled run

    def reach(self, n: int, rarity: float) -> int:
        """Return a K such that this stops at a loss above K with a chance of e^-rarity at most.

        By a union bound over N candidates that chance is at most
        N sum_r P(rho = r) e^(-eps2 (K + 1 - theta + r)); a gate adds e^(eps2 m) to N.
        """
        checks.positive_integer(_OWNER, "n", n)
        if n == 1:
            return 0
        chosen = self._thresholds(n)
        second = float(chosen.second)
        queries = np.logaddexp(math.log(n), second * (self._first_theta(n) - chosen.theta))
        beyond = (float(queries) + rarity + _log_ratio(chosen)) / second * (1 + _SLACK)
        return chosen.theta + math.ceil(beyond)

    def choose(
        self, profile: Profile, candidates: Candidates, noise: Noise = SYSTEM_NOISE
    ) -> Number:
        """Return one candidate: a private draw, in O(K log N) time whatever the size N."""
        if candidates.size == 1:
            return candidates[0]
        chosen = self._thresholds(candidates.size)
        rho = int(noise.geometric(chosen.first, 1)[0])
        words = noise.words(len(profile.values) + 2).tolist()
        for (need, start, stop), word in zip(self._needs(profile, candidates), words, strict=False):
            # nu >= need + rho has probability e^(-eps2 (need + rho)) at each candidate of a run.
            # The last candidate is returned whether it passes or not.
            passed = failures_before_success(chosen.second, need + rho, stop - start, word, noise)
            if passed < stop - start:
                return candidates[start + passed]
        return candidates[candidates.size - 1]

    def _needs(self, profile: Profile, candidates: Candidates) -> Iterator[tuple[int, int, int]]:
        """Yield (loss - theta_i, start, stop) of each run of candidates of equal difference."""
        theta, first = self._thresholds(candidates.size).theta, self._first_theta(candidates.size)
        for loss, start, stop in profile.plateaus(candidates):
            if start == 0 and self.gate:
                yield loss - first, 0, 1
            if stop > 1 or not self.gate:
                yield loss - theta, max(start, int(self.gate)), stop

    def distribution(self, profile: Profile, candidates: Candidates) -> list[float]:
        """Return the exact output probabilities (each to about 1e-13 of itself), for audits.

        Raises:
            ValueError: for more than 64 candidates.
        """
        losses = audited_losses(_OWNER, profile, candidates)
        if len(losses) == 1:
            return [1.0]
        chosen = self._thresholds(len(losses))
        needs = [loss - chosen.theta for loss in losses[:-1]]
        needs[0] = losses[0] - self._first_theta(len(losses))
        return stop_chances(needs, float(chosen.first), float(chosen.second))

    def _thresholds(self, n: int) -> Thresholds:
        amount, is_zcdp, beta = self.budget.amount, self.budget.is_zcdp, float(self.beta)
        if self.overshoot is None:
            return thresholds(amount, is_zcdp, n, beta)
        return guarded_thresholds(amount, is_zcdp, n, beta, float(self.overshoot))

    def _first_theta(self, n: int) -> int:
        """Return theta_0."""
        chosen = self._thresholds(n)
        if not self.gate:
            return chosen.theta
        second = float(chosen.second)
        least = (math.log(n / _STRAY) - math.log1p(math.exp(-second))) / second * (1 + _SLACK)
        return chosen.theta + max(0, math.ceil(least) - 1)


def _log_ratio(chosen: Thresholds) -> float:
    """Return ln of sum_r P(rho = r) e^(-eps2 r) = (1 - e^-eps1) / (1 - e^-(eps1 + eps2))."""
    first, second = float(chosen.first), float(chosen.second)
    return math.log(math.expm1(-first) / math.expm1(-first - second))
