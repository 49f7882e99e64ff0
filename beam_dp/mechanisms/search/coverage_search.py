"""CoverageSearch: choose the clip of different values, by how many of them are covered."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.bounding.ordering import changes
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics.enclosures import root_below
from beam_dp.mechanisms.search.common import ENOUGH, Paid, log_ratio

PARTS = 16
"""The least clip is a 16th of a value."""
OCTAVES = 30  # the largest is 2^30 times as large
_WHOLE = 1 << 30  # a value, in steps
_LEAST = _WHOLE // PARTS
_MESH = 16  # M
_FIRST = Fraction(1, 2)  # the part of epsilon for rho; the nu get the rest
_WORTH = 1.5
"""A larger clip is worth its noise where it covers so many times as much more."""
_MARGIN = 8
"""A search that goes on is stopped by its own noise with a chance of 1 in so many, where that
takes no more than half of what a clip is worth."""
_BETA = 0.05  # the chance of a steeper curve than `steepest`


def coverage(values: np.ndarray, norms: np.ndarray, fine: int) -> np.ndarray:
    """Return F_0, F_1, ...: how many values are covered at each octave, in steps (exact, int64).

    Args:
        values: of each line the number of its value; the same value in two partitions has two.
        norms: of each line the norm of its person, in units.
        fine: how many units a value has.
    """
    covered = np.zeros(OCTAVES + 1, np.int64)
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(changes(values[None, order]))
    least = (_LEAST * fine // norms)[order]
    for octave in range(OCTAVES + 1) if len(starts) else ():
        parts = np.minimum(least << octave, _WHOLE)
        covered[octave:] = np.minimum(np.add.reduceat(parts, starts), _WHOLE).sum()
        if (parts[least > 0] == _WHOLE).all():
            break
    return covered


@dataclass(frozen=True)
class CoverageSearch(Paid):
    """Choose the last clip that covers enough more than the clip half as large, of D_j = 2^j / 16.

    A person i with the norm T_i covers w_j = min(1, 2^j w_0) of each of their values, where w_0 is
    D_0 / T_i, rounded down. F_j is the sum over the values of all partitions of the smaller of 1
    and the sum of the w_j of those who have it. Let R be 1 where T_i is an L1 norm. Of P partitions
    it is a whole number from sqrt(P) on where T_i is an L2 norm. With M = 16,
    Q_j = floor(M (F_j - F_(j-1)) / (R D_(j-1))), rho ~ Geo(r1), nu_j ~ Geo(r2): for j = 1, 2, ...,
    if `Q_j <= theta + nu_j - rho` return j - 1; else nothing. It is epsilon-DP, and
    (epsilon^2 / 2)-zCDP for `Budget.zcdp`, when one person is added or removed.

    *Lemma.* One person more moves Q_j by -M to M.

    Proof. Let the person raise F_j by m_j. At a value that others cover to s_j this is
    min(w_j, 1 - min(1, s_j)). The room 1 - min(1, s_j) falls in j, and w_j <= 2 w_(j-1). So
    0 <= m_j <= 2 m_(j-1), and m_j - m_(j-1) is from -m_(j-1) to m_(j-1). Of n_l values in partition
    l the person covers n_l w_j at most, and so m_j <= 2^j w_0 (n_1 + n_2 + ...) <= R D_j: the sum
    of the n_l is T_i at most, or sqrt(P) T_i. The floor moves by M at most, as M is whole.

    *Theorem.* The log ratio of the chances of every outcome is M r1 + 2 M r2 = epsilon at most.

    Proof. With F(t) = P(nu >= t) = e^(-r2 max(t, 0)), the chance to return j - 1 is

        sum_r P(rho = r) prod_{i < j} (1 - F(Q_i - theta + r)) F(Q_j - theta + r).

    Let Q' be of a neighbour. Replace r by r + M, which costs e^(-r1 M). As Q_i + M >= Q'_i, the
    factors of i < j are at least those of the neighbour. Q_j + M - Q'_j is from 0 to 2 M, so that
    the last factor costs e^(-r2 2 M) at most. Where nothing is returned it is absent.
    (Sparse vector technique: Dwork, Roth 2014, section 3.6.)

    *What is chosen.* F is concave in the clip. Twice the clip costs P partitions P D m more of
    noise, m the mean noise at a clip of 1, and lets them have what it covers more: Q_j R D / M. The
    search goes on as long as that is worth `_WORTH` times as much, less a margin for its own noise
    (`_MARGIN`). Beyond the clip that is returned, the curve rises by at most `steepest` per unit of
    the clip, but for a chance of `_BETA` (for each clip by itself: all share rho).

    *The constants* were settled on 16 kinds of data. `benchmarks.many_partitions` has six kinds at
    epsilon 1: 0.9 to 2.4 times the error of an expert.
    """

    def choose(
        self, covered: np.ndarray, root: int, cost_of_noise: float, octaves: int, noise: Noise
    ) -> int | None:
        """Return j, a private draw; None where none of the first octaves was chosen.

        Args:
            covered: `coverage` of all partitions together.
            root: R.
            cost_of_noise: P m / R, public or released before.
            octaves: how many clips there are to choose from, public or released before.
            noise: the randomness.
        """
        first, second = self._rates
        rho = int(noise.geometric(first, 1)[0])
        for octave, need in enumerate(self.needs(covered, root, cost_of_noise, octaves)):
            if need + rho <= int(noise.geometric(second, 1)[0]):
                return octave
        return None

    def needs(
        self, covered: np.ndarray, root: int, cost_of_noise: float, octaves: int
    ) -> list[int]:
        """Return Q_j - theta for j = 1, 2, ..., as of `choose`."""
        more = np.diff(covered[: octaves + 1]).tolist()
        quotients = [_MESH * each // (root * _LEAST << octave) for octave, each in enumerate(more)]
        return [quotient - self._theta(cost_of_noise) for quotient in quotients]

    def steepest(self, cost_of_noise: float) -> float:
        """Return how much more R units of a larger clip may cover, in values.

        A stop at Q_j >= theta + s has a chance of c e^(-r2 s) at most,
        c = (1 - e^-r1) / (1 - e^-(r1 + r2)).
        """
        first, second = map(float, self._rates)
        beyond = max(0.0, log_ratio(first, second) - math.log(_BETA)) / second
        return (self._theta(cost_of_noise) + 1 + beyond) / _MESH

    @property
    def _rates(self) -> tuple[Fraction, Fraction]:
        """r1 and r2."""
        amount = self.budget.amount
        epsilon = min(root_below(2 * amount) if self.budget.is_zcdp else amount, ENOUGH)
        return _FIRST * epsilon / _MESH, (1 - _FIRST) * epsilon / (2 * _MESH)

    def _theta(self, cost_of_noise: float) -> int:
        theta = _MESH * _WORTH * cost_of_noise
        return round(max(theta / 2, theta - math.log(_MARGIN) / float(self._rates[1])))
