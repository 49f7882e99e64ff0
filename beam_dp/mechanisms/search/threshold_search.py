"""ThresholdSearch: choose a clip privately, from the statistic f as clipped at each of the
thresholds."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from beam_dp.mechanisms.noise.sampling import SYSTEM_NOISE, Noise
from beam_dp.mechanisms.numerics.enclosures import root_below
from beam_dp.mechanisms.profiles.packed.packed_rows import Packed
from beam_dp.mechanisms.search.common import ENOUGH, Paid, log_ratio

Extension = Callable[[Fraction], Fraction]
"""A function of the threshold D > 0: E(D) of one database, see `ThresholdSearch`."""


STEP = 8
"""a in `ThresholdSearch`: E(D) is compared with E(D / a)."""
_MESH = 16  # M
_FIRST = Fraction(3, 5)  # the part of epsilon for rho; the nu get the rest
ALARM = 1e-3
"""The chance of a threshold that clips more people than `ThresholdSearch.shift`."""
_MISSED = 0.01  # the chance to pass over a threshold whose eighth clips nobody
_RARER = 1e-4  # of that: for thresholds beyond the usual ones
_SLACK = 1e-9  # relative, far above the rounding of the logarithms


@dataclass(frozen=True)
class ThresholdSearch(Paid):
    """Choose the first of the thresholds 1, 2, 3, 4, 6, 8, 12, ... that clips few people.

    A Lipschitz extension E is any function of a database and a threshold D that has the sensitivity
    D: for x' = x + one person, `0 <= E'(D) - E(D) <= D` (such as
    `lipschitz_extension.ProfileExtension`). The choice is epsilon-DP ((epsilon^2 / 2)-zCDP for
    `Budget.zcdp`) when one person is added or removed.

    With the mesh M = 16, a = 8 and Q_j = floor(M (E(D_j) - E(D_j / a)) / (D_j / a)), D_j the j-th
    threshold (see `threshold_at`), rho ~ Geo(r1), nu_j ~ Geo(r2), P(Geo(r) = k) = (1 - e^-r) e^(-r
    k), k >= 0: for j = 0..top, if `Q_j <= theta_j + nu_j - rho` return j; else return None. theta_j
    is theta up to j = usual, and theta + extra beyond.

    *Steps of Q.* E'(D) - E(D) is from 0 to D = a (D / a), E'(D / a) - E(D / a) from 0 to D / a. So
    the quotient moves by -1 to a, and its floor at mesh M, as M is whole, by d_j from -M to a M.

    Theorem. ln P_x'(j) / P_x(j) <= a M r1 + (a + 1) M r2 = epsilon, and ln P_x(j) / P_x'(j) is at
    most M r1 + (a + 1) M r2, which is no larger.

    Proof. Let F(t) = P(nu >= t) = e^(-r2 max(t, 0)), and
    P_x(j) = sum_r P(rho = r) prod_{i < j} (1 - F(Q_i - theta_i + r)) F(Q_j - theta_j + r).

    1. In P_x replace r by r + a M, which costs e^(-r1 a M). As Q_i + a M >= Q'_i, the factors of
       i < j are at least those of x'; and Q_j + a M - Q'_j = a M - d_j is from 0 to (a + 1) M, so
       F(Q_j - theta_j + r + a M) >= e^(-r2 (a + 1) M) F(Q'_j - theta_j + r).
    2. In P_x' replace r by r + M, which costs e^(-r1 M): the same with Q'_i + M >= Q_i, and
       Q'_j + M - Q_j = M + d_j from 0 to (a + 1) M.

    Without a stop the last factor is absent: the same, with less to lose.

    *What is chosen.* Where E(D) = min_k (B[k] + k D), E is concave in D. Its slope is the number k
    of people who are clipped, which falls: so (E(D) - E(D / a)) / (D - D / a) is at least the k of
    D. But for a chance of `ALARM` no threshold up to the usual one is returned that clips more than
    `shift` people: a stop at Q_j >= theta + s has a chance of at most c e^(-r2 s),
    c = (1 - e^-r1) / (1 - e^-(r1 + r2)), and there are usual + 1 of these thresholds. With theta
    the least integer with e^(-r1 (theta + 1)) <= 0.01, a threshold whose eighth clips nobody is
    passed over with a chance of at most 0.01 (so where people are alike, D is up to eight times
    what one of them counts). All later thresholds are passed over far less often (they share rho,
    so the chance to pass over m more falls like a power of m), but the error this costs grows as
    fast as the thresholds: so beyond `usual`, extra makes that chance 10^4 times smaller; it clips
    more people.

    *The constants.* a = 8, thresholds by halves of a doubling, 0.01 and the 3 : 2 of the rates were
    settled on the questions of `benchmarks.statistics`: there, a = 4 and whole doublings erred by
    up to a half more in the middle, and many times as much in their means.

    Args:
        budget: what one choice may spend.

    Raises:
        TypeError: if budget is no Budget.
    """

    def shift(self, thresholds: int) -> int:
        """Return how many people the chosen one of `thresholds` thresholds may clip, but for
        `ALARM`."""
        first, second = map(float, self._rates)
        beyond = math.log(thresholds / ALARM) + log_ratio(first, second)
        beyond = beyond / second * (1 + _SLACK)
        return (self._theta(0) + max(0, math.ceil(beyond))) // ((STEP - 1) * _MESH) + 1

    def choose(
        self, extension: Extension, top: int, usual: int, noise: Noise = SYSTEM_NOISE
    ) -> int | None:
        """Return j for `threshold_at(j)`, a private draw; None where none of 0..top was chosen.

        Args:
            extension: E, of one database; it is asked for at most top + 7 thresholds.
            top: public, or released before.
            usual: public, or released before; larger thresholds are chosen only for want of others.
            noise: the randomness.
        """
        first, second = self._rates
        rho = int(noise.geometric(first, 1)[0])
        known = extension if isinstance(extension, Packed) else cache(extension)
        for j in range(top + 1):
            theta = self._theta(j - usual)
            if _is_at_most(known, j, theta + int(noise.geometric(second, 1)[0]) - rho):
                return j
        return None

    @property
    def _rates(self) -> tuple[Fraction, Fraction]:
        """r1 and r2."""
        amount = self.budget.amount
        epsilon = min(root_below(2 * amount) if self.budget.is_zcdp else amount, ENOUGH)
        return _FIRST * epsilon / (STEP * _MESH), (1 - _FIRST) * epsilon / ((STEP + 1) * _MESH)

    def _theta(self, beyond: int) -> int:
        """Return theta_j for j = usual + `beyond`."""
        chance = _MISSED * (_RARER if beyond > 0 else 1)
        return max(0, math.ceil(-math.log(chance) / float(self._rates[0]) * (1 + _SLACK) - 1))


def threshold_at(j: int) -> int:
    """Return D_j: 1, 2, 3, 4, 6, 8, 12, 16, ... for j = 0, 1, 2, ...: every 2^i and 3 / 2 of it."""
    doublings, half = divmod(j + 1, 2)
    return 1 if j == 0 else (3 << doublings - 1 if half else 1 << doublings)


def index_of_threshold(most: Fraction | int) -> int:
    """Return the largest j with `threshold_at(j)` at most `most`; 0 if none is."""
    whole = max(1, int(most))
    doublings = whole.bit_length() - 1
    j = max(0, 2 * doublings - 1)
    return j + 1 if threshold_at(j + 1) <= whole else j


def query(extension: Extension, j: int) -> int:
    """Return Q_j: E(D) - E(D / 8) in sixteenths of D / 8, rounded down."""
    whole = Fraction(threshold_at(j))
    return _adds(extension(whole) - extension(whole / STEP), whole)


def _adds(number: Fraction, whole: Fraction) -> int:
    return math.floor(_MESH * number / (whole / STEP))


def _is_at_most(extension: Extension, j: int, most: int) -> bool:
    """Return whether Q_j is at most a number, without more work than that takes."""
    if not isinstance(extension, Packed):
        return query(extension, j) <= most
    whole = Fraction(threshold_at(j))
    while True:
        (low, high), (less, more) = (extension.between(at) for at in (whole, whole / STEP))
        if _adds(high - less, whole) <= most:
            return True
        if _adds(low - more, whole) > most:
            return False
        extension.closer(whole if high - low > more - less else whole / STEP)
