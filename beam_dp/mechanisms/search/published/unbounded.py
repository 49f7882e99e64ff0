"""UnboundedSearch: AboveThreshold over 0, step, 2 step, ..., without a largest candidate."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.intervals import root_below
from beam_dp.mechanisms.numerics.numbers import Number, is_nan
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.search.common import AUDITED, ENOUGH, LOG_COUPLING, SYSTEM_NOISE, check
from beam_dp.mechanisms.search.stop_chances import stop_chances

_OWNER = "UnboundedSearch"
_PARTS = 50  # shares of epsilon and of beta are multiples of 1/50
_SLACK = 1e-12  # relative, above the rounding of the logarithms


@dataclass(frozen=True)
class UnboundedSearch:
    """Choose the first multiple of a step whose noisy loss is small; no bound is needed.

    The release is epsilon-DP (rho-zCDP for `Budget.zcdp(rho)`) when one person is added or removed,
    and with probability at least 1 - beta the answer y_i = i step lies between f without its
    `shift_at(i)` most important people and f itself, both rounded up to a multiple of the step. The
    shift is that of the answer's own index: it is known once the answer is, and is at most that of
    f's index.

    With rho ~ Geo(eps1), nu_i ~ Geo(eps2): return y_i for the first i = 0, 1, 2, ... with
    `loss(y_i) <= theta + nu_i - rho`.

    Privacy is that of `AboveThreshold`, whose proof looks at one output at a time and needs no last
    candidate. The search ends with probability 1: from f on (or, for an infinite f, from the last
    finite step of the loss on) every candidate stops it with the same chance, which is above 0.

    Guarantee. Give the candidates public prior weights w_i > 0 that sum to 1, and let
    tau_i = T_i + 1 - theta. A candidate with a loss above T_i stops the search with a chance of at
    most sum_r P(rho = r) e^(-eps2 (tau_i + r)) = e^(-eps2 tau_i) c, c = (1 - e^-eps1) /
    (1 - e^-(eps1 + eps2)). So T_i is the smallest integer with c e^(-eps2 tau_i) <= w_i beta1, and
    all candidates together have beta1. The search passes over the first loss of 0 with a chance of
    e^(-eps1 (theta + 1)) (1 - e^-eps2) / (1 - e^-(eps1 + eps2)) <= beta2 = beta - beta1.

    The 2^j candidates from 2^j - 1 to 2^(j+1) - 2 share the weight 1 / (2 (d + 1) (d + 2)), d the
    distance of j to the j of `typical`: ln(1 / w_i) is about ln(i + 1), more by ln 4 near `typical`
    and by 2 ln(d + 2) elsewhere. So T_i exceeds the shift for a known number i of candidates by
    little: at epsilon 1 it is 36 (for 33) at i = 2^20 and 84 (for 74) at i = 2^64, or 76 there with
    typical=2**64.

    Edge cases: a negative number has the loss of 0, the lowest candidate. An infinite profile
    gives some large finite number. Answers are ints for an int step, else exact Fractions: no
    magnitude overflows. `Budget(epsilon, delta)` spends epsilon only.

    Args:
        budget: what one choice may spend.
        beta: the failure probability of the shift.
        step: the distance of the candidates, above 0; floats are read as decimals.
        typical: the index whose shift is made the smallest; public, a rough idea of f / step. It
            changes the shift little, and privacy not at all.

    Raises:
        TypeError: if budget is no Budget.
        ValueError: unless 0 < beta < 1 and step > 0.
    """

    budget: Budget
    beta: float = 0.05
    step: checks.Real = 1
    typical: int = 2**20

    def __post_init__(self) -> None:
        check(_OWNER, self.budget, self.beta)
        checks.fraction_between(_OWNER, "step", self.step, 0, math.inf, "Write step=1.")
        checks.positive_integer(_OWNER, "typical", self.typical, "Write typical=2**20.")

    @property
    def cost(self) -> Budget:
        """What one choice spends: the budget's epsilon or rho, and no delta."""
        return self.budget.without_delta()

    def shift_at(self, i: int) -> int:
        """Return the T_i that is guaranteed for the answer i step."""
        _require_index(i)
        return self._rates.shift_at(i)

    def cap_at(self, i: int) -> int:
        """Return a K such that B[0..K] decides like the whole profile but for 1e-12, if f <= y_i.

        As for `AboveThreshold` with i + 1 candidates. For a larger f the answer still rarely
        exceeds it, but may lie below what `shift_at` promises.
        """
        _require_index(i)
        rates = self._rates
        spread = math.log(2 * (i + 1)) + LOG_COUPLING + rates.log_ratio
        return rates.theta + math.ceil(spread / float(rates.second))

    def choose(self, profile: Profile, noise: Noise = SYSTEM_NOISE) -> int | Fraction:
        """Return one multiple of the step: a private draw, in O(K log f) time."""
        rates, step = self._rates, self._step
        rho = int(noise.geometric(rates.first, 1)[0])
        for loss, start, stop in _plateaus(profile, step):
            rate = rates.second * (loss - rates.theta + rho)
            if stop is None:
                index = start + _failures(rate, noise)
                break
            index = start + noise.first_success(rate, stop - start)
            if index < stop:
                break
        answer = index * step
        return answer.numerator if isinstance(self.step, int) else answer

    def distribution(self, profile: Profile, top: int) -> list[float]:
        """Return the exact chances of 0, step, ..., (top - 1) step, and of all larger answers.

        Each chance is right to about 1e-13 of itself: for audits.

        Raises:
            ValueError: unless 1 <= top <= 64.
        """
        checks.require(
            type(top) is int and 1 <= top <= AUDITED,
            f"{_OWNER}.distribution",
            "top",
            f"be an int from 1 to {AUDITED}, not {top!r}",
        )
        rates = self._rates
        losses = [
            itertools.repeat(loss, top if stop is None else stop - start)
            for loss, start, stop in _plateaus(profile, self._step)
        ]
        first = itertools.islice(itertools.chain.from_iterable(losses), top)
        needs = [loss - rates.theta for loss in first]
        return stop_chances(needs, float(rates.first), float(rates.second))

    @property
    def _step(self) -> Fraction:
        return checks.decimal(_OWNER, "step", self.step)

    @property
    def _rates(self) -> "_Rates":
        return _rates(self.budget.amount, self.budget.is_zcdp, float(self.beta), self.typical)


@dataclass(frozen=True)
class _Rates:
    """eps1 and eps2 (exact), the threshold theta, beta1, and the j of `typical`."""

    first: Fraction
    second: Fraction
    theta: int
    alarms: float
    middle: int

    @property
    def log_ratio(self) -> float:
        """ln c, c as in the guarantee of `UnboundedSearch`."""
        first, second = float(self.first), float(self.second)
        return math.log(math.expm1(-first) / math.expm1(-first - second))

    def shift_at(self, i: int) -> int:
        block = _block(i)
        distance = abs(block - self.middle)
        log_weight = -block * math.log(2) - math.log(2 * (distance + 1) * (distance + 2))
        tau = (self.log_ratio - log_weight - math.log(self.alarms)) / float(self.second)
        return self.theta - 1 + max(1, math.ceil(tau * (1 + _SLACK)))


@lru_cache(maxsize=256)
def _rates(amount: Fraction, is_zcdp: bool, beta: float, typical: int) -> _Rates:
    """Return the shares of epsilon and of beta that make T_typical the smallest.

    eps1 + eps2 = epsilon, or eps1 + 2 eps2 <= sqrt(8 rho): see `thresholds`.
    """
    scale, weight = min(root_below(8 * amount) if is_zcdp else amount, ENOUGH), 1 + is_zcdp
    choices = (
        _with_shares(scale, weight, beta, part, alarms, _block(typical))
        for part in range(1, _PARTS)
        for alarms in range(5, _PARTS, 5)
    )
    return min(choices, key=lambda rates: rates.shift_at(typical))


def _block(i: int) -> int:
    return (i + 1).bit_length() - 1


def _with_shares(
    scale: Fraction, weight: int, beta: float, part: int, alarms: int, middle: int
) -> _Rates:
    first = scale * Fraction(part, _PARTS)
    second = (scale - first) / weight
    ratio = math.expm1(-float(second)) / math.expm1(-float(first) - float(second))
    missed = beta * (1 - alarms / _PARTS) * (1 - _SLACK)
    theta = max(0, math.ceil(math.log(ratio / missed) / float(first) * (1 + _SLACK) - 1))
    return _Rates(first, second, theta, beta * alarms / _PARTS, middle)


def _plateaus(profile: Profile, step: Fraction) -> Iterator[tuple[int, int, int | None]]:
    """Yield (loss, start, stop) of runs from the lowest candidate up; the last run has no stop."""
    start = 0
    for loss in range(len(profile.values), 0, -1):
        stop = _index(profile.values[loss - 1], step)
        if stop is None:
            yield loss, start, None
            return
        if stop > start:
            yield loss, start, stop
            start = stop
    yield 0, start, None


def _index(value: Number, step: Fraction) -> int | None:
    """Return the first i >= 0 with i step >= value; None for an infinite value."""
    if value == math.inf or is_nan(value):
        return None
    return 0 if value <= 0 else math.ceil(Fraction(value) / step)


def _failures(rate: Fraction, noise: Noise) -> int:
    """Return the failures before the first success, where a trial succeeds with chance e^-rate.

    The limit is far above what is likely: it is met with a chance of at most e^-(2^64), and the
    draw then goes on from there.
    """
    limit = 1 << (64 + 3 * max(0, math.ceil(rate)) // 2 + 1)
    total = 0
    while (failures := noise.first_success(rate, limit)) == limit:
        total += limit
    return total + failures


def _require_index(i: object) -> None:
    checks.require(type(i) is int and i >= 0, _OWNER, "i", f"be an int of at least 0, not {i!r}")
