"""Removal profiles of rows with any number of owners, from packings at a grid of thresholds.

E(D) is the most that rows pack when nobody carries more than the threshold D (`packed_rows`). It is
also a minimum over removals of people, who may be removed by parts: what stays of the statistic,
plus D for each person removed. For x' = x + one person, E(D) <= E'(D) <= E(D) + D. E(D) is known in
steps of s = D / 32 only,

    R_D = s (ceil(E(D) / s - c) - 1),    c < 0.4143,    E(D) - 1.42 s < R_D < E(D),

and since D is 32 s, R_D <= R'_D <= R_D + D. Over the thresholds 2^i and 3 / 2 of it, from 2^-6 to
2^62, which are those of `ThresholdSearch` and their eighths, the profile is

    B[0] = the statistic,    B[k] = max(0, ceil(max over D of (R_D - k D))).

*It interlaces*, B'[k + 1] <= B[k] <= B'[k]: at each threshold R'_D - (k + 1) D <= R_D - k D <=
R'_D - k D; the largest of numbers, and ceil, never fall where these do not; and R_D < E(D) <= B[0].
So the loss has sensitivity 1, in one direction, for any number of owners: all that the searches
need (Fang, Dong, Yi, "Shifted Inverse", CCS 2022). It rests on the exact E(D), and not on a solver:
`packing_program` proves the step of E(D) in integers.

*No value is safe because it has more than K owners*: with one K for all levels that is wrong. 100
values with the same K owners leave nothing after K removals. A new owner of them all makes that
100, and the level K - 1 without the new owner is 100 / K.

*What it is.* Whole people are removed by parts 0 and 1, so that E(D) - k D is at most the exact
profile, an integer, and so is B[k].

*Few thresholds are tried*, from the highest down. Of those that pay for everything only the least
is
needed: for D with E(D) = B[0] and D' >= 4 D / 3, D' gives less than B[0] - k D', and D more than
B[0] - k D - 1.42 D / 32. The solution of the program at D gives a line that is above E at all lower
thresholds. Where what this line allows is no more than is known, the lower thresholds are left out.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.packing.packing_program import PARTS, PackingBounds
from beam_dp.mechanisms.profiles.packed.packed_rows import Packed

_LOWEST, _HIGHEST = -6, 62
THRESHOLDS = [
    Fraction(2) ** power * half
    for power in range(_LOWEST, _HIGHEST + 1)
    for half in (Fraction(1), Fraction(3, 2))
]


def profile(packed: Packed, removals: int) -> list[int]:
    """Return B[0..removals] of a statistic.

    Args:
        packed: E of one database.
        removals: K, at least 1.
    """
    best = np.append(packed.total, np.zeros(removals, np.int64))
    enough = next(
        place for place, threshold in enumerate(THRESHOLDS) if threshold >= packed.enough()
    )
    for place in range(enough, -1, -1):
        search, threshold = packed.search(THRESHOLDS[place]), THRESHOLDS[place]
        levels = _levels(search.decided(), threshold, removals)
        best[1 : len(levels) + 1] = np.maximum(best[1 : len(levels) + 1], levels)
        if place and (best[1:] >= _most(search.best, place - 1, removals)).all():
            break
    found: list[int] = best.tolist()
    return found


def _levels(number: int, threshold: Fraction, removals: int) -> np.ndarray:
    """Return ceil(R_D - k D) for k = 1.. while it is above 0, up to K."""
    last = max(0, min(removals, (number - 2) // PARTS))
    left = number - 1 - PARTS * np.arange(1, last + 1)  # in parts of the threshold
    return np.asarray(-(-left * threshold.numerator // (PARTS * threshold.denominator)))


def _most(known: PackingBounds, lower: int, removals: int) -> np.ndarray:
    """Return for k = 1..K what the thresholds up to a lower one cannot exceed.

    E is below a line there, and no higher than it is at this threshold.
    """
    step, parts = THRESHOLDS[lower].as_integer_ratio()
    removed = np.minimum(np.arange(1, removals + 1), math.ceil(known.removed))
    whole = math.ceil((known.stays + THRESHOLDS[lower] * known.removed) * parts)
    line = np.maximum(-(-(whole - step * removed) // parts), math.ceil(known.stays))
    return np.asarray(np.minimum(line, math.ceil(known.high * THRESHOLDS[lower + 1])))
