"""NoisyBinarySearch: find a candidate of small loss by halving, with noisy comparisons.

Left out is the search that tolerates wrong answers (Steinke, "Beyond Local Sensitivity via Down
Sensitivity", 2023, footnote 7; Karp and Kleinberg 2007, Gretta and Price 2023). Its privacy is
that of M adaptive comparisons, but no shift T is proved for a finite N: losses from 1 to T may be
answered in any way, which no finite bound allows for. Even without such losses, its T at
beta = 0.05 would be (walk: a walk with backtracking, by the exact binomial tail; ideal: the bound
N (1/2 + sqrt(p (1 - p)))^M of Burnashev and Zigangirov 1974)

    budget         log2 N   walk   ideal   gaussian   bit   AboveThreshold
    rho = 0.5          16     31      18         21    18               24
                       64     57      34         50    42               65
                      128     79      48         75    64              116
                      512    153      94        168   144              405
    (1, 1e-6)          64    244     145        213     -               74
                      128    336     203        320     -              127
                      512    648     401        710     -              426
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.intervals import normal_cdf_interval, root_below
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.profiles.profile import Profile, loss_at
from beam_dp.mechanisms.search.common import (
    ENOUGH,
    LOG_COUPLING,
    SYSTEM_NOISE,
    audited_losses,
    check,
)
from beam_dp.mechanisms.search.published.bit_answers import LONGEST, REST, BitAnswer, bit_answer

_OWNER = "NoisyBinarySearch"


@dataclass(frozen=True)
class NoisyBinarySearch:
    """Search the first candidate of small loss by m = ceil(log2 N) noisy comparisons.

    The release is epsilon-DP (noise="laplace"), (epsilon, delta)-DP (noise="gaussian") or rho-zCDP
    (each noise, "bit" only so) when one person is added or removed, and with probability at least
    1 - beta it lies between f without its `shift(n)` most important people and f itself, both
    rounded up onto the candidates.

        lo = -1; hi = N - 1                    # so that y_0 can be returned
        while hi - lo > 1:
            k = (lo + hi) // 2
            if l(y_k) + noise <= (T + 1) / 2 (or T / 2): hi = k, else lo = k
        return y_hi                            # after at most ceil(log2 N) comparisons

    Privacy: each answer comes from a loss of sensitivity 1 plus noise; answers compose adaptively.

    * laplace: discrete Laplace noise of rate eps0: each answer is eps0-DP and eps0 = epsilon / m,
      or m eps0^2 / 2 <= rho, as eps0-DP implies eps0^2 / 2-zCDP (Bun and Steinke 2016, Prop. 1.4).
    * gaussian: N(0, sigma^2) noise. Only the answer is released, so it is drawn as one exact coin
      of Phi(((T + 1) / 2 - l) / sigma). m / (2 sigma^2) = rho (Bun and Steinke 2016, Prop. 1.6).
      For (epsilon, delta) the m answers are mu-GDP with mu = sqrt(m) / sigma (Dong, Roth, Su 2022,
      Theorem 3.7, Cor. 3.3), which is (epsilon, delta)-DP iff
      Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) <= delta (there, Cor. 2.13).
    * bit: the answer is a coin of exact rational chances that fall off as fast as rho / m-zCDP is
      proved to allow (see `bit_answers`). Of all answers for this rho it is nearly the best, with a
      shift 12 to 20% below that of gaussian noise.

    Guarantee: an answer is wrong only where it goes up at l = 0 or down at l >= T + 1. Either has
    a probability of at most err = 1 - (1 - beta)^(1/m), and the noise of answers is independent.

    Edge cases: one candidate is returned as it is, with shift 0. "laplace" with
    `Budget(epsilon, delta)` spends epsilon only. A profile above the top counts as the top.

    Args:
        budget: what one choice may spend.
        beta: the failure probability of the shift.
        noise: "laplace", "gaussian" or "bit"; "gaussian" has the smaller shift from 2^8 candidates
            on, "bit" the smallest of the three for a zCDP budget.

    Raises:
        TypeError: if budget is no Budget.
        ValueError: unless 0 < beta < 1; for another noise; for gaussian noise with pure epsilon;
            for bit noise without zCDP, or with so small a rho that its table gets too long.
    """

    budget: Budget
    beta: float = 0.05
    noise: str = "laplace"

    def __post_init__(self) -> None:
        check(_OWNER, self.budget, self.beta)
        checks.one_of(_OWNER, "noise", self.noise, ("laplace", "gaussian", "bit"))
        pure = not self.budget.is_zcdp and self.budget.delta == 0
        checks.require(
            self.noise != "gaussian" or not pure,
            _OWNER,
            "noise",
            'be "laplace" for a budget without delta, not "gaussian"',
            "Write Budget(epsilon, delta=1e-6) or Budget.zcdp(rho) for gaussian noise.",
        )
        checks.require(
            self.noise != "bit" or self.budget.is_zcdp,
            _OWNER,
            "noise",
            'be "laplace" or "gaussian" for a budget of epsilon, not "bit"',
            "Write Budget.zcdp(rho), or budget.to_zcdp() for a budget with delta.",
        )

    @property
    def cost(self) -> Budget:
        """What one choice spends; delta only by gaussian noise under (epsilon, delta)."""
        whole = self.noise == "gaussian" and not self.budget.is_zcdp
        return self.budget if whole else self.budget.without_delta()

    def shift(self, n: int) -> int:
        """Return the T that is guaranteed with probability 1 - beta for n candidates."""
        checks.positive_integer(_OWNER, "n", n)
        return 0 if n == 1 else self._answer(n).shift

    def cap(self, n: int) -> int:
        """Return a K such that B[0..K] decides like the whole profile but for 1e-12.

        Only an answer "down" at a loss above K could differ: a chance of 1e-12 / m per answer.
        """
        checks.positive_integer(_OWNER, "n", n)
        return 0 if n == 1 else self._answer(n).reach(LOG_COUPLING + math.log(_comparisons(n)))

    def choose(
        self, profile: Profile, candidates: Candidates, noise: Noise = SYSTEM_NOISE
    ) -> Number:
        """Return one candidate: a private draw, in O((K + m) log N) time for any size N."""
        if candidates.size == 1:
            return candidates[0]
        steps = profile.steps(candidates)
        goes_down = self._answer(candidates.size).drawn(_comparisons(candidates.size), noise)
        low, high = -1, candidates.size - 1
        while high - low > 1:
            middle = (low + high) // 2
            if goes_down(loss_at(steps, middle)):
                high = middle
            else:
                low = middle
        return candidates[high]

    def distribution(self, profile: Profile, candidates: Candidates) -> list[float]:
        """Return the exact output probabilities (each to about 1e-13 of itself), for audits.

        Raises:
            ValueError: for more than 64 candidates.
        """
        losses = audited_losses(_OWNER, profile, candidates)
        if len(losses) == 1:
            return [1.0]
        answer = self._answer(len(losses))
        return _leaves(losses, answer, -1, len(losses) - 1)

    def fits(self, n: int) -> bool:
        """Say whether n candidates are possible: always, but for "bit" with a tiny rho."""
        checks.positive_integer(_OWNER, "n", n)
        return n == 1 or self.noise != "bit" or self._bits(n) is not None

    def _answer(self, n: int) -> "_Answer":
        m = _comparisons(n)
        if self.noise == "bit":
            return _required(self._bits(n))
        error = _error(self.beta, m)
        amount = min(self.budget.amount, ENOUGH)
        if self.noise == "laplace":
            rate = root_below(2 * amount / m) if self.budget.is_zcdp else amount / m
            return _Laplace(rate, _laplace_theta(rate, error))
        rho = amount if self.budget.is_zcdp else _gaussian_rho(self.budget)
        return _Gaussian(m / (2 * rho), _gaussian_shift(m / (2 * rho), error))

    def _bits(self, n: int) -> BitAnswer | None:
        m = _comparisons(n)
        return bit_answer(min(self.budget.amount, ENOUGH) / m, _error(self.beta, m), REST / m)


@dataclass(frozen=True)
class _Laplace:
    """The answer to l + X <= theta, P(X = k) proportional to e^(-rate |k|)."""

    rate: Fraction
    theta: int

    @property
    def shift(self) -> int:
        """The T that these answers guarantee."""
        return 2 * self.theta

    def reach(self, log_chance: float) -> int:
        """Return a loss whose answer is "down" with a chance of at most e^-log_chance."""
        return self.theta + math.ceil(log_chance / float(self.rate))

    def drawn(self, m: int, noise: Noise) -> Callable[[int], bool]:
        """Return a function of the loss that gives a fresh answer (True: down), for m calls."""
        noises = iter(noise.discrete_laplace(self.rate, m).tolist())
        return lambda loss: loss + next(noises) <= self.theta

    def chances(self, loss: int) -> tuple[float, float]:
        """Return the probabilities of down and up: P(X > t) = e^(-rate (t+1)) / (1 + e^-rate)."""
        rate, t = float(self.rate), self.theta - loss
        tail = math.exp(-rate * (t + 1 if t >= 0 else -t)) / (1 + math.exp(-rate))
        return (1 - tail, tail) if t >= 0 else (tail, 1 - tail)


@dataclass(frozen=True)
class _Gaussian:
    """The answer to l + N(0, variance) <= (T + 1) / 2, drawn as a coin."""

    variance: Fraction
    shift: int

    def reach(self, log_chance: float) -> int:
        """Return a loss whose answer is "down" with a chance of at most e^-log_chance."""
        quantile = -NormalDist().inv_cdf(math.exp(-log_chance))
        return math.ceil((self.shift + 1) / 2 + math.sqrt(self.variance) * quantile)

    def drawn(self, _: int, noise: Noise) -> Callable[[int], bool]:
        """Return a function of the loss that gives a fresh answer (True: down)."""

        def answer(loss: int) -> bool:
            # Phi(((T + 1) / 2 - l) / sigma) = Phi((T + 1 - 2 l) / (2 sigma)): an integer on top.
            distance, variance = self.shift + 1 - 2 * loss, 4 * self.variance
            return noise.bernoulli_below(lambda bits: normal_cdf_interval(distance, variance, bits))

        return answer

    def chances(self, loss: int) -> tuple[float, float]:
        """Return the probabilities of down and up."""
        z = (self.shift + 1 - 2 * loss) / math.sqrt(8 * self.variance)
        return math.erfc(-z) / 2, math.erfc(z) / 2


_Answer = _Laplace | _Gaussian | BitAnswer


def _comparisons(n: int) -> int:
    """Return ceil(log2 n), for n >= 2: hi - lo starts at n and each comparison halves it."""
    return (n - 1).bit_length()


def _error(beta: float, m: int) -> float:
    """Return how often each of m independent answers may be wrong: 1 - (1 - beta)^(1 / m)."""
    return -math.expm1(math.log1p(-float(beta)) / m)


def _required(answer: BitAnswer | None) -> BitAnswer:
    if answer is None:
        raise checks.ParameterError(
            _OWNER,
            "noise",
            f'be "gaussian" where a table of coins would exceed {LONGEST}, not "bit"',
        )
    return answer


def _leaves(losses: list[int], answer: _Answer, low: int, high: int) -> list[float]:
    """Return the probabilities of y_{low+1}..y_high for a search narrowed down to them."""
    if high - low == 1:
        return [1.0]
    middle = (low + high) // 2
    down, up = answer.chances(losses[middle])
    return [
        *(down * p for p in _leaves(losses, answer, low, middle)),
        *(up * p for p in _leaves(losses, answer, middle, high)),
    ]


def _laplace_theta(rate: Fraction, error: float) -> int:
    """Return the smallest theta >= 0 with e^(-rate (theta + 1)) / (1 + e^-rate) <= error.

    That is P(X > theta), of going up at l = 0, and P(X < -theta), of going down at 2 theta + 1.
    """
    per_step = float(rate)
    needed = -(math.log(error) + math.log1p(math.exp(-per_step))) / per_step - 1
    return max(0, math.ceil(needed * (1 + 1e-12)))  # the factor is above the rounding


def _gaussian_shift(variance: Fraction, error: float) -> int:
    """Return the smallest T >= 0 with Phi(-(T + 1) / (2 sigma)) <= error."""
    quantile = -NormalDist().inv_cdf(error) * (1 + 1e-12)  # the factor is above the rounding
    return max(0, math.ceil(2 * math.sqrt(variance) * quantile) - 1)


@lru_cache(maxsize=1024)
def _gaussian_rho(budget: Budget) -> Fraction:
    """Return mu^2 / 2 for nearly the largest mu such that mu-GDP is within (epsilon, delta)-DP.

    Rounding cannot break this: `_is_private` allows for it, and every smaller mu is private too.
    For a delta below 1e-200 floats lack the range of the formula; there zCDP converts exactly.
    """
    epsilon, delta = float(min(budget.amount, Fraction(50))), float(budget.delta)
    if delta < 1e-200:
        return budget.to_zcdp().amount
    low, high = 1.0, 1.0
    while not _is_private(low, epsilon, delta):
        low /= 2
    while _is_private(high, epsilon, delta):
        high *= 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _is_private(middle, epsilon, delta) else (low, middle)
    return Fraction(low) ** 2 / 2


def _is_private(mu: float, epsilon: float, delta: float) -> bool:
    """Say whether mu-GDP is (epsilon, delta)-DP, with a margin of 1e-12 of both terms.

    Phi is taken at |z| < 38, where a relative error of 2^-51 of z moves it by at most
    z^2 2^-51 < 7e-13 of itself, erfc and e^epsilon (epsilon <= 50) by a few 1e-16 more; for larger
    |z| both terms are below 1e-300. delta and epsilon as floats are within 2^-53 of themselves.
    """
    plus = math.erfc((epsilon / mu - mu / 2) / math.sqrt(2)) / 2
    minus = math.exp(epsilon) * math.erfc((epsilon / mu + mu / 2) / math.sqrt(2)) / 2
    return plus - minus + 1e-12 * (plus + minus) + 1e-15 * delta <= delta
