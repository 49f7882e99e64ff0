"""CentralSearch: a quantile in the middle, by the exponential mechanism on ranks."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.search.common import Paid, bounded_range
from beam_dp.mechanisms.search.exponential import draw_below, draw_run
from beam_dp.mechanisms.search.quantiles.node import RESOLUTION, Answer, Node

NONE = 128
"""The weight of no answer over that of all candidates together, where data say nothing."""
_SPREAD = 4  # measured: the 95% error of the rank, in units of 2 m / epsilon people


class _Runs(NamedTuple):
    """Runs of candidates of equal loss, and no answer as the last one."""

    losses: np.ndarray
    weights: np.ndarray
    starts: np.ndarray


@dataclass(frozen=True)
class CentralSearch(Paid):
    """Choose a candidate whose rank is near p n, every person counting once; or answer nothing.

    It is best for p in the middle, from 0.2 to 0.8, and answers where n people are more than about
    10 m / (epsilon min(p, 1 - p)), m = max(p, 1 - p). The release is epsilon-DP (rho-zCDP for
    `Budget.zcdp(rho)`, with epsilon = sqrt(8 rho) below) when one person is added or removed.

    With F_i(y) the share of person i's rows at or below y, le(y) = sum_i F_i(y), and lt(y) = le of
    the candidate before (0 for the first one):

        u(y) = min(0, le(y) - p n, p n - lt(y)),   P(y) ~ w(y) e^(epsilon u(y) / (2 m)),
        u(none) = -min(p, 1 - p) n,                P(none) ~ v W e^(epsilon u(none) / (2 m)),

    w the public weight of a candidate (`Candidates.weight_before`), W that of all of them, and v
    that of no answer: 128.

    Theorem. For x' = x + one person and any two outcomes a, b, the ratio P_x'(a) / P_x(a) is at
    most e^(epsilon G) times P_x'(b) / P_x(b), G <= 1 what that person has in all (their share of a
    `Node`; 1 for the whole). So it is epsilon-DP, and of bounded range epsilon.

    Proof. The person moves n by G, le(y) and lt(y) by amounts from 0 to G. So le - p n moves by
    -p G to (1 - p) G, p n - lt by -(1 - p) G to p G, and u(none) by -min(p, 1 - p) G: each of them
    by m G at most, up or down, and so does every u, as a minimum of such and 0. P_x'(a) / P_x(a)
    is e^(epsilon (u'(a) - u(a)) / (2 m)) times Z / Z', which is the same for all outcomes:
    the logarithms of two of them differ by at most 2 m G epsilon / (2 m). As both distributions sum
    to 1, some ratio is at least 1 and some at most 1, hence every one is within e^(+-epsilon G).

    All is in integers: shares in units of 1 / D (rounded down, with no loss of privacy, as every
    F_i is a function of that person alone), p = a / b, losses -u in units of 1 / (b D).

    *Too few people.* Where all data are on one side of y, u(y) = u(none) at most: whatever the data
    are, a y that is beyond all of them comes out with a chance of at most 1 / (v + 1).

    *Rank error.* Measured, not proved: in 95% of draws the rank is within 8 m / epsilon people of
    p n (`usual_error`), but for people who share one value.

    Edge cases: with nobody, none has the chance v / (v + 1). `Budget(epsilon, delta)` spends
    epsilon only.

    Args:
        budget: what one choice may spend.
        p: the share of rows below, above 0 and below 1.
        resolution: D.
        none: v.

    Source: McSherry and Talwar 2007; quantiles by utilities of ranks: Smith 2011, "Privacy-
    preserving statistical estimation with optimal convergence rates".
    """

    p: Fraction = Fraction(1, 2)
    resolution: int = RESOLUTION
    none: int = NONE

    @property
    def usual_error(self) -> int:
        """How far the rank is off in 95% of draws, in people, by measurement."""
        most = max(self.p, 1 - self.p)
        return math.ceil(_SPREAD * float(2 * most / bounded_range(self.budget)))

    def choose_at(self, node: Node, candidates: Candidates, noise: Noise) -> Answer:
        """Return one candidate of a node, or none: a private draw."""
        runs = self._runs(node, candidates)
        run = draw_run(runs.weights, runs.losses, self._rate, noise)
        if run == len(runs.starts):
            return Answer()
        [before] = candidates.weight_before(runs.starts[run : run + 1]).tolist()
        index = candidates.index_at(before + draw_below(int(runs.weights[run]), noise))
        return Answer(index, self.usual_error)

    @property
    def _rate(self) -> Fraction:
        """epsilon / (2 m) per unit of loss."""
        return bounded_range(self.budget) / (
            2 * max(self.p, 1 - self.p) * self.p.denominator * self.resolution
        )

    def _runs(self, node: Node, candidates: Candidates) -> _Runs:
        """Return the runs of equal loss: each bucket alone, and what lies between two of them."""
        over, under = self.p.as_integer_ratio()
        sums, total = node.sums, int(node.sums[-1])
        target = integers.alone(over * total)
        # Between buckets lt = le; at a bucket le is already larger.
        before = integers.product(np.repeat(sums, 2)[:-1], integers.alone(under))
        until = integers.product(np.repeat(sums, 2)[1:], integers.alone(under))
        short, beyond = integers.add(target, -until), integers.add(before, -target)
        losses = np.maximum(np.maximum(short, beyond), 0)
        starts = np.append(node.first, np.column_stack([node.buckets, node.buckets + 1]).ravel())
        ends = candidates.weight_before(np.append(starts, node.stop))
        filled = ends[1:] > ends[:-1]
        none = integers.alone(self.none * int(ends[-1] - ends[0]))
        return _Runs(
            integers.concatenate([losses[filled], integers.alone(min(over, under - over) * total)]),
            integers.concatenate([np.diff(ends)[filled], none]),
            starts[filled],
        )
