"""WeightWalk: stop where weights that grow with the number of people passed reach a random level.

Candidates are walked through in a public order. A(i) people, or parts of people, are at or beyond
the i-th one; T_i is a level, in people. With the rate e:

    H(i) = sum_{j <= i} exp(e (A(j) - T_j)),   stop at the first i with H(i) >= U,

where ln U has the Laplace distribution of scale 1: U = V or 1 / V with the same chance, V uniform.
So (1 / e) ln H is a number of people that rises along the walk, a little before A - T does where
candidates are many, and it is compared once, with all of the noise that e asks for. Where nobody
is, M candidates with the level T stop the walk with the chance M exp(-e T) / 2 at most.

Theorem. Let one more person have g_i at or beyond the i-th candidate, 0 <= g_i <= 1, not falling
along the walk, and let each level move by d_i, 0 <= d_i <= s, not falling either. Then for every i
the logarithm of P'(i) / P(i), with and without them, is between -e (g_i + d_i) and e (g_i + d_i);
that of the chances to pass all candidates is between -e and e s.

Proof. ln U has the density exp(-|v|) / 2, so U has f(u) = min(1, u^-2) / 2. The weight of the j-th
candidate changes by the factor exp(e c_j), c_j = g_j - d_j. Let phi be the map from 0 on that has
this slope between H(j - 1) and H(j). It maps the interval of the i-th one for the first data to
that for the others, so P'(i) is the integral of f(phi(u)) exp(e c_i) over the first interval, where
P(i) has f(u). On it phi(u) / u is a mean of exp(e c_j), j <= i: at most exp(e g_i), as
c_j <= g_j <= g_i, and at least exp(-e d_i), as -c_j <= d_j <= d_i. f does not rise, and u^2 f(u)
does not fall: so f(r u) / f(u) is from 1 to r^-2 for r < 1, and from r^-2 to 1 for r > 1. Hence
P'(i) / P(i) is at most exp(e (g_i - d_i)) exp(2 e d_i), and at least exp(e (g_i - d_i))
exp(-2 e g_i). P(U > h) = 1 - h / 2 up to h = 1, and 1 / (2 h) from there on: it does not rise, and
h P(U > h) does not fall. So P(U > r h) / P(U > h) is from 1 / r to 1, or from 1 to 1 / r for r < 1,
and r is from exp(-e s) to exp(e) at the end of the walk.

Of all f that this proof allows, this one falls fastest on both sides, so that stops are nearest to
the level. A geometric noise for the level and another one for each candidate, as in
`AboveThreshold`, is wider.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.noise.sampling import Noise, Stop
from beam_dp.mechanisms.numerics.enclosures import ONE, ZERO, Interval, exp_interval

_WORD = 64  # bits of one word of noise
_FINE = 2.0**-30  # far above the rounding of a float's exponential
_RARE = 2.0**-30  # 64 bits tell any V above it to 2^-34 of itself


class WeightWalk(NamedTuple):
    """Runs of candidates of one weight each; private data.

    Attributes:
        rate: e per unit of need, above 0.
        needs: T - A of each run, in units: integers of any magnitude.
        lengths: how many candidates each run has, from 1 on.
    """

    rate: Fraction
    needs: np.ndarray
    lengths: np.ndarray

    def stop(self, noise: Noise) -> Stop | None:
        """Return where the walk stops; None where it passes all candidates: a private draw.

        The distribution is exact: floats decide where U is further from the ends of a candidate
        than they may be wrong, enclosures by rationals decide the others.
        """
        inverse = bool(noise.words(1)[0] & 1)
        uniform = noise.uniform()
        part = float(uniform.interval(_WORD)[0])
        decided = None
        if part > _RARE:
            decided = self._by_floats(1 / part if inverse else part)
        bits = 2 * _WORD
        while decided is None:
            low, high = uniform.interval(bits)
            if low or not inverse:
                level = (ONE / high, ONE / low) if inverse else (low, high)
                decided = self._enclosed(level, bits)
            bits *= 2
        return decided if decided.run < len(self.lengths) else None

    def _floats(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the weight of one candidate of each run, and H at the end of each.

        An exponent above -700 is right to 2^-41. Weights above e^300 stand for larger ones: no
        level that floats decide about is so large.
        """
        exponents = -float(self.rate) * self.needs.astype(np.float64)
        weights = np.exp(np.clip(exponents, -700.0, 300.0))
        return weights, np.cumsum(weights * self.lengths)

    def _by_floats(self, level: float) -> Stop | None:
        """Return where H reaches a level (a run too far: nowhere); None if floats cannot tell."""
        weights, ends = self._floats()
        band = _FINE + len(ends) * 2.0**-50
        run = int(np.searchsorted(ends, level))
        before = float(ends[run - 1]) if run else 0.0
        if before * (1 + band) >= level * (1 - band):
            return None
        if run == len(ends):
            return Stop(len(self.lengths), 0)
        passed = (level - before) / float(weights[run])
        unsure = band * (level / float(weights[run]) + 1)
        index = math.floor(passed)
        begun = not index or passed - index > unsure  # H was below the level before the run
        sure = begun and passed - index < 1 - unsure and index < int(self.lengths[run])
        return Stop(run, index) if sure else None

    def _enclosed(self, level: Interval, bits: int) -> Stop | None:
        """Return the same for a level between two rationals; None if so many bits cannot tell."""
        least, most = ZERO, ZERO  # H so far
        for run, (need, length) in enumerate(
            zip(self.needs.tolist(), self.lengths.tolist(), strict=True)
        ):
            # A weight is cut at e^bits: a level below decides all the same.
            low, high = exp_interval(min(-self.rate * need, Fraction(bits)), bits)
            if least + low >= level[1]:
                return Stop(run, 0)
            if most + length * high >= level[0]:
                if low == 0 or -self.rate * need > bits:
                    return None
                first = math.ceil((level[0] - most) / high) - 1
                last = math.ceil((level[1] - least) / low) - 1
                return Stop(run, first) if 0 <= first == last < length else None
            least, most = least + length * low, most + length * high
        return Stop(len(self.lengths), 0)
