"""What all searches share: checks of parameters, the limits of audits, and the face `Search`."""

import math
from fractions import Fraction
from typing import Protocol

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.profiles.profile import Profile

# ln(1 / chance): a profile cut at `cap(n)` gives another result than the whole one with at most
# this chance.
LOG_COUPLING = math.log(1e12)
SYSTEM_NOISE = Noise()  # holds no state: every draw reads the entropy of the operating system
ENOUGH = Fraction(2**20)  # the most epsilon that is spent: floats stay finite
_FINEST = 1 << 100
AUDITED = 64  # the most candidates that `distribution` takes


def check(owner: str, budget: object, beta: object) -> None:
    """Refuse a budget that is no `Budget`, and a failure probability outside of (0, 1)."""
    if not isinstance(budget, Budget):
        raise checks.ParameterTypeError(
            owner, "budget", f"be a Budget, not {checks.shown(budget)}", "Write Budget(1.0)."
        )
    checks.fraction_between(owner, "beta", beta, 0, 1, "Write beta=0.05.")


def check_share(owner: str, p: checks.Real) -> None:
    """Refuse a p whose rates per unit of Q no float could hold; 30 digits are fine.

    Args:
        owner: the class that errors name.
        p: the share of rows below the quantile, above 0 and below 1.

    Raises:
        ValueError: for another p.
    """
    checks.require(
        checks.decimal(owner, "p", p).denominator <= _FINEST,
        owner,
        "p",
        f"be a fraction with a denominator of at most 2^100, not {checks.shown(p)}",
        "Write p=0.001.",
    )


def audited_losses(owner: str, profile: Profile, candidates: Candidates) -> list[int]:
    """Return the loss of every candidate; refuse more candidates than an audit can list."""
    checks.require(
        candidates.size <= AUDITED,
        f"{owner}.distribution",
        "candidates",
        f"be at most {AUDITED}, not {candidates.size}",
    )
    return profile.loss(candidates)


class Search(Protocol):
    """What every search offers; n is the number of candidates."""

    @property
    def beta(self) -> float:
        """The probability with which the shift may fail."""

    @property
    def cost(self) -> Budget:
        """What one `choose` spends."""

    def shift(self, n: int) -> int:
        """Return the T that is guaranteed with probability 1 - beta."""

    def cap(self, n: int) -> int:
        """Return a K such that B[0..K] decides like the whole profile but for 1e-12."""

    def choose(
        self, profile: Profile, candidates: Candidates, noise: Noise = SYSTEM_NOISE
    ) -> Number:
        """Return one candidate: a private draw."""

    def distribution(self, profile: Profile, candidates: Candidates) -> list[float]:
        """Return the exact output probabilities, for at most 64 candidates."""
