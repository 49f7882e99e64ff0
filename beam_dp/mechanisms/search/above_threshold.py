"""AboveThreshold: walk up the candidates, stop where the noisy loss is small. The default."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms import checks
from beam_dp.mechanisms.budget import Budget
from beam_dp.mechanisms.candidates import Candidates
from beam_dp.mechanisms.grids import Number
from beam_dp.mechanisms.noise import Noise
from beam_dp.mechanisms.profile import Profile
from beam_dp.mechanisms.search.draws import failures_before_success
from beam_dp.mechanisms.search.parameters import LOG_COUPLING, SYSTEM_NOISE, audited_losses, check
from beam_dp.mechanisms.search.stops import stop_chances
from beam_dp.mechanisms.search.thresholds import Thresholds, guarded_thresholds, thresholds

_OWNER = "AboveThreshold"


@dataclass(frozen=True)
class AboveThreshold:
    """Choose the first candidate whose noisy loss is small: one-sided geometric noise.

    The release is epsilon-DP (rho-zCDP for `Budget.zcdp(rho)`) when one person is added or removed,
    and with probability at least 1 - beta it lies between f without its `shift(n)` most important
    people and f itself, both rounded up onto the candidates.

    With rho ~ Geo(eps1), nu_i ~ Geo(eps2), P(Geo(e) = k) = (1 - e^-e) e^(-e k), k >= 0:
    for i = 0..N-2, if `loss(y_i) <= theta + nu_i - rho` return y_i; else return y_{N-1}.

    Theorem. For x' = x + one person and every i, `ln P_x'(i) / P_x(i) <= eps1 + eps2` and
    `ln P_x(i) / P_x'(i) <= eps2`. Both are attained.

    Proof. Let l, l' be the losses, l <= l' <= l + 1, F(t) = P(nu >= t) = e^(-eps2 max(t, 0)), and
    P_x(i) = sum_r P(rho = r) prod_{j < i} (1 - F(l_j - theta + r)) F(l_i - theta + r).

    1. P_x >= e^-(eps1 + eps2) P_x': in P_x replace r by r + 1. P(rho = r + 1) = e^-eps1 P(rho = r);
       l_j + 1 >= l'_j, so 1 - F(l_j - theta + r + 1) >= 1 - F(l'_j - theta + r); and
       F(l_i - theta + r + 1) >= e^-eps2 F(l_i - theta + r) >= e^-eps2 F(l'_i - theta + r).
    2. P_x' >= e^-eps2 P_x: with the same r, 1 - F(l'_j - theta + r) >= 1 - F(l_j - theta + r), and
       F(l'_i - theta + r) >= F(l_i - theta + r + 1) >= e^-eps2 F(l_i - theta + r).

    For the last candidate the factor F(l_i ...) is absent: the same, with less to lose.

    Edge cases: one candidate is returned as it is, with shift 0. `Budget(epsilon, delta)` spends
    epsilon only. A profile above the top candidate counts as the top.

    Args:
        budget: what one choice may spend.
        beta: the failure probability of the shift; the shift grows like ln(1 / beta) / eps1.
        overshoot: if given, the chance of an answer above f is at most this (and beta bounds the
            other kind of failure, one below f without its shift largest people); for clips,
            where an answer above everybody is worse than one that cuts some.

    Raises:
        TypeError: if budget is no Budget.
        ValueError: unless 0 < beta < 1.

    Source: the sparse vector technique (Dwork and Roth 2014, section 3.6), with one-sided noise for
    monotone queries; zCDP by its bounded range eps1 + 2 eps2 (see `thresholds`).
    """

    budget: Budget
    beta: float = 0.05
    overshoot: float | None = None

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
        """Return a K such that B[0..K] decides like the whole profile but for 1e-12.

        Only a stop at a loss above K could differ. With a union bound over N candidates it has
        probability at most N sum_r P(rho = r) e^(-eps2 (K + 1 - theta + r)): half of 1e-12 for
        each of the two coupled runs.
        """
        checks.positive_integer(_OWNER, "n", n)
        if n == 1:
            return 0
        chosen = self._thresholds(n)
        first, second = float(chosen.first), float(chosen.second)
        ratio = math.log(math.expm1(-first) / math.expm1(-first - second))
        return chosen.theta + math.ceil((math.log(2 * n) + LOG_COUPLING + ratio) / second)

    def choose(
        self, profile: Profile, candidates: Candidates, noise: Noise = SYSTEM_NOISE
    ) -> Number:
        """Return one candidate: a private draw, in O(K log N) time whatever the size N."""
        if candidates.size == 1:
            return candidates[0]
        chosen = self._thresholds(candidates.size)
        rho = int(noise.geometric(chosen.first, 1)[0])
        words = noise.words(len(profile.values) + 1).tolist()
        for (loss, start, stop), word in zip(profile.plateaus(candidates), words, strict=False):
            # nu >= loss - theta + rho has probability e^(-eps2 over), alike for the whole plateau.
            # The last candidate is returned whether it passes or not.
            over, length = loss - chosen.theta + rho, stop - start
            passed = failures_before_success(chosen.second, over, length, word, noise)
            if passed < length:
                return candidates[start + passed]
        return candidates[candidates.size - 1]

    def choose_rows(
        self, losses: npt.NDArray[np.int64], noise: Noise = SYSTEM_NOISE
    ) -> npt.NDArray[np.int64]:
        """Return the index of one private draw for each row of losses (partitions, candidates).

        Row p follows the same distribution as `choose` for a profile with these losses, independent
        of the others. Made for many partitions and few candidates.

        Args:
            losses: non-negative integers, non-increasing along each row.
        """
        rows, n = losses.shape
        found = np.full(rows, n - 1, dtype=np.int64)
        if n == 1 or rows == 0:
            return found
        chosen = self._thresholds(n)
        active = np.arange(rows)
        rho = noise.geometric(chosen.first, rows)
        for i in range(n - 1):
            # Python ints where the noise is wider than int64 (and theta with it).
            column = losses[active, i].astype(rho.dtype, copy=False)
            need = column - chosen.theta + rho[active]
            stops = need <= noise.geometric(chosen.second, active.size)
            found[active[stops]] = i
            active = active[~stops]
            if active.size == 0:
                break
        return found

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
        return stop_chances(needs, float(chosen.first), float(chosen.second))

    def _thresholds(self, n: int) -> Thresholds:
        amount, is_zcdp, beta = self.budget.amount, self.budget.is_zcdp, float(self.beta)
        if self.overshoot is None:
            return thresholds(amount, is_zcdp, n, beta)
        return guarded_thresholds(amount, is_zcdp, n, beta, float(self.overshoot))
