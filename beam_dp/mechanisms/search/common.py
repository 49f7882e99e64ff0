"""What all searches of a removal loss share: the base `Search`, and checks of parameters."""

import abc
import math
from dataclasses import dataclass
from fractions import Fraction

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import SYSTEM_NOISE, Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.enclosures import root_below
from beam_dp.mechanisms.numerics.integers import Number
from beam_dp.mechanisms.profiles.profile import Profile

# ln(1 / chance): a profile cut at `cap(n)` gives another result than the whole one with at most
# this chance.
LOG_COUPLING = math.log(1e12)
ENOUGH = Fraction(2**20)  # the most epsilon that is spent: floats stay finite


def bounded_range(budget: Budget) -> Fraction:
    """Return the epsilon of a budget; for a rho the most bounded range that it pays: sqrt(8 rho).

    A mechanism whose log ratio of two neighbours ranges over an interval of length eta is
    eta^2 / 8-zCDP (Cesar and Rogers 2021, "Bounding, Concentrating, and Truncating").
    """
    amount = budget.amount
    return min(root_below(8 * amount) if budget.is_zcdp else amount, ENOUGH)


def log_ratio(first: float, second: float) -> float:
    """Return ln of the sum over r of P(Geo(first) = r) e^(-second r)."""
    return math.log(math.expm1(-first) / math.expm1(-first - second))


@dataclass(frozen=True)
class Paid:
    """A choice that a budget pays for."""

    budget: Budget

    def __post_init__(self) -> None:
        hint = "Write Budget(1.0)."
        checks.of_type(type(self).__name__, "budget", self.budget, Budget, hint)

    @property
    def cost(self) -> Budget:
        """What one choice spends: the budget's epsilon or rho, and no delta."""
        return self.budget.without_delta()


@dataclass(frozen=True)
class Search(Paid, abc.ABC):
    """Choose one candidate by a removal loss; n is the number of candidates.

    One candidate is returned as it is, with shift 0, and nothing is drawn.
    """

    beta: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        subject, hint = type(self).__name__, "Write beta=0.05."
        checks.fraction_between(subject, "beta", self.beta, 0, 1, hint)

    def shift(self, n: int) -> int:
        """Return the T that is guaranteed with probability 1 - beta for n candidates."""
        checks.positive_integer(type(self).__name__, "n", n)
        return 0 if n == 1 else self._shift(n)

    def cap(self, n: int) -> int:
        """Return a K such that B[0..K] decides like the whole profile but for 1e-12."""
        checks.positive_integer(type(self).__name__, "n", n)
        return 0 if n == 1 else self._cap(n)

    def choose(
        self, profile: Profile, candidates: Candidates, noise: Noise = SYSTEM_NOISE
    ) -> Number:
        """Return one candidate: a private draw, in O(K log N) time whatever the number N."""
        if candidates.size == 1:
            return candidates[0]
        return candidates[self._choose(profile, candidates, noise)]

    @abc.abstractmethod
    def _shift(self, n: int) -> int:
        """Return the shift for n >= 2."""

    @abc.abstractmethod
    def _cap(self, n: int) -> int:
        """Return the cap for n >= 2."""

    @abc.abstractmethod
    def _choose(self, profile: Profile, candidates: Candidates, noise: Noise) -> int:
        """Return the index of one candidate of several: a private draw."""
