"""ExponentialMechanism: weigh every candidate by how far its loss is from a target."""

import bisect
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import LazyUniform, Noise
from beam_dp.mechanisms.numerics.enclosures import exp_interval
from beam_dp.mechanisms.profiles.profile import Plateau, Profile
from beam_dp.mechanisms.search.common import LOG_COUPLING, Search, bounded_range

_WORD = 64  # bits of one word of noise
_FINE = 2.0**-32  # far above the rounding of a float's logarithm and exponential


def draw_below(count: int, noise: Noise) -> int:
    """Return an exactly uniform integer from 0 to count - 1: floor(U count) for a uniform U."""
    uniform = noise.uniform()
    bits = 64 + count.bit_length()
    while count > 1:
        low, high = uniform.interval(bits)
        if math.floor(low * count) == math.ceil(high * count) - 1:
            return math.floor(low * count)
        bits *= 2
    return 0


def draw_run(sizes: np.ndarray, scores: np.ndarray, rate: Fraction, noise: Noise) -> int:
    """Return a run g with a probability exactly proportional to size_g e^(-rate score_g).

    With U uniform in [0, 1) and W_g the cumulative weights, g is the run with W_{g-1} <= U W < W_g.
    Floats decide where 64 bits of U are further from the ends of a run than they may be wrong,
    exact intervals decide the others.

    Args:
        sizes: integers above 0, of any magnitude.
        scores: integers, of any magnitude.
        rate: above 0.
        noise: the source of the uniform.
    """
    uniform = noise.uniform()
    logarithm = np.frompyfunc(math.log, 1, 1) if sizes.dtype == object else np.log
    exponents = logarithm(sizes).astype(np.float64) - float(rate) * (scores - scores.min()).astype(
        np.float64
    )
    # An exponent above -700 is right to 2^-40, smaller ones add nothing; the sum of K terms to
    # K 2^-52 of the whole.
    ends = np.cumsum(np.exp(np.maximum(exponents - exponents.max(), -800.0)))
    band = float(ends[-1]) * (_FINE + len(ends) * 2.0**-50)
    point = float(uniform.interval(_WORD)[0]) * float(ends[-1])
    run = int(np.searchsorted(ends, point, side="right"))
    start = float(ends[run - 1]) if run else -band
    if run < len(ends) and start + band < point < float(ends[run]) - band:
        return run
    return _enclosed(sizes.tolist(), scores.tolist(), rate, uniform)


def _enclosed(sizes: list[int], scores: list[int], rate: Fraction, uniform: LazyUniform) -> int:
    """Return the run of a uniform: U and all W_g are enclosed ever tighter until it is certain."""
    best = min(scores)  # its weight counts as 1
    bits = _WORD + sum(sizes).bit_length()
    while True:
        weights = [exp_interval(rate * (best - score), bits) for score in scores]
        pairs = list(zip(sizes, weights, strict=True))
        lows = list(itertools.accumulate(size * low for size, (low, _) in pairs))
        highs = list(itertools.accumulate(size * high for size, (_, high) in pairs))
        least, most = uniform.interval(bits)
        run = bisect.bisect_right(highs, least * lows[-1])
        if most * highs[-1] <= lows[run]:
            return run
        bits *= 2


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
        sizes = np.array([stop - start for _, start, stop in groups], object)
        scores = np.array([score for score, _, _ in groups])
        run = draw_run(sizes, scores, bounded_range(self.budget) / 2, noise)
        return groups[run].start + draw_below(sizes[run], noise)

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


def _groups(profile: Profile, candidates: Candidates, tau: int) -> list[Plateau]:
    """Return the candidates by score l*, the first of a plateau by itself: its lbar is larger."""
    before = 2 * tau  # any lbar >= 2 tau gives l* = l - tau, as for the infinite one of y_0
    groups = []
    for loss, start, stop in _rounded_up(list(profile.plateaus(candidates))):
        groups.append(Plateau(max(loss - tau, tau - before), start, start + 1))
        if stop - start > 1:
            groups.append(Plateau(abs(loss - tau), start + 1, stop))
        before = loss
    return groups


def _rounded_up(plateaus: list[Plateau]) -> list[Plateau]:
    """Give the top candidate the loss 0, as f is rounded up onto the candidates."""
    loss, start, stop = plateaus[-1]
    if loss == 0:
        return plateaus
    below = [Plateau(loss, start, stop - 1)] if stop - start > 1 else []
    return [*plateaus[:-1], *below, Plateau(0, stop - 1, stop)]
