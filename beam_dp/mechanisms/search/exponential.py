"""ExponentialMechanism: weigh every candidate by how far its loss is from a target."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.profiles.profile import Plateau, Profile
from beam_dp.mechanisms.search.common import LOG_COUPLING, Search, bounded_range
from beam_dp.mechanisms.search.draws import draw_below, draw_run


class _Group(NamedTuple):
    """A run of `size` candidates from `start` on that share one score l*."""

    score: int
    start: int
    size: int


@dataclass(frozen=True)
class ExponentialMechanism(Search):
    """Choose y_i with probability proportional to e^(-epsilon l*_i / 2).

    The release is epsilon-DP (rho-zCDP for `Budget.zcdp(rho)`) when one person is added or removed,
    and with probability at least 1 - beta it lies between f without its `shift(n)` most important
    people and f itself, both rounded up onto the candidates.

    With the strict loss lbar_i = l_{i-1}, l*_i = max(l_i - tau, tau - lbar_i), where y_0, whose
    lbar is infinite, has l*_0 = l_0 - tau. Both l and lbar move by at most 1 between neighbours, so
    l* does (up or down, hence the 2), which makes the choice epsilon-DP (McSherry and Talwar 2007).
    Its range is bounded by epsilon, so it is epsilon^2 / 8-zCDP (Cesar and Rogers 2021); for a
    budget of rho, epsilon = sqrt(8 rho).

    Guarantee. l*_i < tau implies lbar_i >= 1 and l_i <= T = 2 tau - 1. The good candidates have
    together at least the weight 2, for some i has l_i <= tau < lbar_i: if y_i alone is good, then
    l_i = 0, lbar_i >= 2 tau and its weight is e^(epsilon tau / 2); two good ones have at least
    2 cosh(epsilon (tau - l) / 2) >= 2. Every other one has at most p = e^(-epsilon tau / 2). So the
    failure is at most the larger of (N-2) p / (2 + (N-2) p) and (N-1) p / (1/p + (N-1) p).

    Edge cases: one candidate is returned as it is, with shift 0. `Budget(epsilon, delta)` spends
    epsilon only. A profile above the top candidate counts as the top.

    Args:
        budget: what one choice may spend.
        beta: the failure probability of the shift; the shift grows like 4 ln(N / beta) / epsilon.

    Raises:
        TypeError: if budget is no Budget.
        ValueError: unless 0 < beta < 1.
    """

    def _shift(self, n: int) -> int:
        return 2 * self._tau(n) - 1

    def _cap(self, n: int) -> int:
        """Return a K beyond which candidates hardly weigh.

        Each candidate of loss above K has a weight of at most e^(-epsilon (K - tau) / 2), against
        1 at least for good ones; half of 1e-12 goes to each of the two coupled runs.
        """
        spread = math.log(2 * n) + LOG_COUPLING
        return self._tau(n) + math.ceil(2 * spread / float(bounded_range(self.budget)))

    def _choose(self, profile: Profile, candidates: Candidates, noise: Noise) -> int:
        groups = _groups(profile, candidates, self._tau(candidates.size))
        sizes = np.array([group.size for group in groups], object)
        scores = np.array([group.score for group in groups])
        chosen = groups[draw_run(sizes, scores, bounded_range(self.budget) / 2, noise)]
        return chosen.start + draw_below(chosen.size, noise)

    def _tau(self, n: int) -> int:
        """Return the smallest tau with both failures at most beta.

        (N-2) p / (2 + (N-2) p) <= beta iff ln p <= logit(beta) - ln((N-2) / 2);
        (N-1) p^2 / (1 + (N-1) p^2) <= beta iff 2 ln p <= logit(beta) - ln(N-1).
        """
        beta = float(self.beta)
        logit = math.log(beta) - math.log1p(-beta)
        two = math.log(n - 2) - math.log(2) - logit if n > 2 else 0.0
        step = (math.log(n - 1) - logit) / 2
        slack = 1 + 1e-12  # above the rounding of the logarithms
        epsilon = float(bounded_range(self.budget))
        return max(1, math.ceil(2 * slack * max(two, step) / epsilon))


def _groups(profile: Profile, candidates: Candidates, tau: int) -> list[_Group]:
    """Return the candidates by score, the first of a plateau by itself: its lbar is larger."""
    before = 2 * tau  # any lbar >= 2 tau gives l* = l - tau, as for the infinite one of y_0
    groups = []
    for loss, start, stop in _rounded_up(list(profile.plateaus(candidates))):
        groups.append(_Group(max(loss - tau, tau - before), start, 1))
        if stop - start > 1:
            groups.append(_Group(abs(loss - tau), start + 1, stop - start - 1))
        before = loss
    return groups


def _rounded_up(plateaus: list[Plateau]) -> list[Plateau]:
    """Give the top candidate the loss 0, as f is rounded up onto the candidates."""
    loss, start, stop = plateaus[-1]
    if loss == 0:
        return plateaus
    below = [Plateau(loss, start, stop - 1)] if stop - start > 1 else []
    return [*plateaus[:-1], *below, Plateau(0, stop - 1, stop)]
