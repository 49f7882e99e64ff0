"""Measure how far private ratios are from a / b: the figures of the article, done again.

    python -m benchmarks ratio                             the table: 100,000 releases per number
    python -m benchmarks ratio --trials 1000               a short look
    python -m benchmarks ratio --neighbours substitution   other rows of a person, not one more

The settings are the article's ("Privately bounding local sensitivity", 2024): epsilon 1, delta
10^-6, a tenth of epsilon for the bound, one row per person, and mean absolute errors against b for
several a / b. Its code bounds nothing (see `beam_dp.mechanisms.ratio.local_bound`); "local" is its
form with corrected bounds, which asks for a and b - a, and releases KSW where noisy counts say that
this is better. "not private" is noise for the same epsilon scaled to the local sensitivity itself:
what "local" would reach if its bound cost nothing. The value without any noise has no error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

import beam_dp as dp
from beam_dp.mechanisms import ratio
from beam_dp.mechanisms.noise.bounded_sensitivity import GridLaplace
from beam_dp.mechanisms.noise.sampling import Noise
from benchmarks import tables
from benchmarks.tables import line, say

BUDGET = dp.Budget(1.0, 1e-6)
RATIOS = (0.0, 0.1, 0.5, 0.9)
SIZES = "10,30,100,300,1000,3000,10000,30000,100000"


def draws(neighbours: str) -> dict[str, Callable[[int, int, int], np.ndarray]]:
    """Return what is compared, by name: releases for a, b and a number of trials."""
    compared = {
        "naive": ratio.Naive(BUDGET, 1, neighbours),
        "KSW": ratio.KuleszaSureshWang(BUDGET, 1, neighbours),
        "local": ratio.LocalSensitivity(BUDGET, 1, neighbours),
    }

    def drawing(mechanism: ratio.Mechanism) -> Callable[[int, int, int], np.ndarray]:
        return lambda a, b, n: mechanism.release(np.full(n, a), np.full(n, b)).values

    def not_private(a: int, b: int, trials: int) -> np.ndarray:
        bound, grid = local_sensitivity(a, b, neighbours), GridLaplace(BUDGET.amount)
        steps = grid.steps((a, b), bound.as_integer_ratio())
        noisy = steps + Noise().discrete_laplace(grid.rate, trials)
        return np.clip(noisy * float(bound / grid.resolution), 0.0, 1.0)

    drawn = {name: drawing(mechanism) for name, mechanism in compared.items()}
    return drawn | {"not private": not_private}


def local_sensitivity(a: int, b: int, neighbours: str) -> Fraction:
    """Return how far one person of one row can move a / b, by looking at all neighbours."""
    rows = [(1, 1), (0, 1)]
    gone = [(0, 0), *[row for row in rows if row[0] <= a and row[1] - row[0] <= b - a]]
    pairs = [(old, new) for old in gone for new in [(0, 0), *rows]]
    if neighbours == ratio.ADD_REMOVE:
        pairs = [pair for pair in pairs if (0, 0) in pair]
    moved = [(a - old[0] + new[0], b - old[1] + new[1]) for old, new in pairs]
    return max(abs(Fraction(a, b) - Fraction(c, d)) for c, d in moved if d)


def main(words: Sequence[str] | None = None) -> int:
    """Print the table of errors."""
    given = tables.options(__doc__, words, trials=100_000, neighbours=ratio.ADD_REMOVE, sizes=SIZES)
    methods = draws(given.neighbours)
    say(tables.heads(["a / b", "b", *methods]))
    for share in RATIOS:
        for b in map(int, given.sizes.split(",")):
            a = round(share * b)
            errors = [np.abs(draw(a, b, given.trials) - a / b) for draw in methods.values()]
            say(line([str(share), f"{b:,}", *(f"{error.mean():.2e}" for error in errors)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
