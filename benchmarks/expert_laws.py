"""What a careful user of OpenDP or PipelineDP releases at epsilon 1, with bounds well chosen.

Bounds come from a million draws of the population: more than a user can know, and less than the
sample itself would tell. Every function returns several choices; who compares takes the best of
them for each cell, afterwards, which flatters the expert.

*Quantiles* follow the law of OpenDP's `make_private_quantile` (0.16): of the candidates c, that
with the largest -|(1 - p) below(c) - p above(c)| + X, X exponential of the scale 2 max(p, 1 - p) /
epsilon. *Means* follow PipelineDP's: half
of epsilon for a number of rows, half for the sum of distances to the middle of the bounds, with
Laplace noise for L0 = 1 and Linf rows. *Distinct counts* and *frequencies* are those of either:
people keep so many of their items, and Laplace noise is added for that sensitivity.
"""

import functools
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks import suites
from benchmarks.suites import Rows

EPSILON = 1.0
POPULATION = 1_000_000
CANDIDATES = 1000
TAILS = (0.0005, 0.005, 0.02)
"""How much of the population is outside of bounds, on each side."""
ITEMS_EACH = (1, 2, 3, 4, 5, 6, 8)
_BLOCK = 1000
Law = Callable[[np.random.Generator, int], np.ndarray]
"""Takes a generator and a number of releases."""
Laws = dict[str, Law]
"""An expert's choices, by what was chosen."""


def no_laws(kind: str, rows: Rows) -> Laws:
    return {}


@functools.cache
def population(kind: str, share: float) -> float:
    """Return a quantile of the population of a kind of numbers."""
    return float(np.quantile(suites.numbers(kind, POPULATION, 12345), share))


def quantiles(
    kind: str, values: np.ndarray, ranks: Sequence[float], epsilon: float = EPSILON
) -> Laws:
    """Return private quantiles at each of the ranks, among each of the `grids`."""
    ordered = np.sort(values)
    found: Laws = {}
    for name, candidates in grids(kind).items():
        below = np.searchsorted(ordered, candidates, "left")
        above = len(ordered) - np.searchsorted(ordered, candidates, "right")
        for p in ranks:
            rank = min(max(p, 0.0), 1.0)
            scores = -abs((1 - rank) * below - rank * above)
            scale = 2 * max(rank, 1 - rank) / epsilon
            found[f"{name}, rank {rank:.4g}"] = functools.partial(
                noisy_best, candidates, scores, scale
            )
    return found


@functools.cache
def grids(kind: str) -> dict[str, np.ndarray]:
    """Return candidates between two values of the population: evenly spaced, or their logarithms.

    What is outside is that share of the population on each side.
    """
    found: dict[str, np.ndarray] = {}
    for tail in TAILS:
        low, high = population(kind, tail), population(kind, 1 - tail)
        found[f"{tail:g} outside"] = np.linspace(low, high, CANDIDATES)
        if low > 0:
            found[f"{tail:g} outside, log"] = np.geomspace(low, high, CANDIDATES)
    return found


def noisy_best(
    candidates: np.ndarray, scores: np.ndarray, scale: float, drawn: np.random.Generator, runs: int
) -> np.ndarray:
    """Return the candidates with the largest scores plus exponential noise."""
    near = scores >= scores.max() - 60 * scale
    candidates, scores = candidates[near], scores[near]
    picked = [
        np.argmax(scores + drawn.exponential(scale, (min(_BLOCK, runs - start), len(scores))), 1)
        for start in range(0, runs, _BLOCK)
    ]
    return candidates[np.concatenate(picked)]


def means(kind: str, rows: Rows) -> Laws:
    """Return means of rows, for bounds on the values and on the rows of a person."""
    found: Laws = {}
    for tail in TAILS:
        low, high = population(kind, tail), population(kind, 1 - tail)
        middle, half = (low + high) / 2, (high - low) / 2
        distances = np.clip(rows.columns["v"], low, high) - middle
        for most in (3, 5, 8):
            kept = first_of_each(rows.person, most)
            total, count = float(distances[kept].sum()), int(kept.sum())
            scale = most / (EPSILON / 2)
            found[f"{tail:g} outside, {most} rows"] = functools.partial(
                noisy_mean, (middle, half), (total, count), scale
            )
    return found


def noisy_mean(
    span: tuple[float, float],
    sums: tuple[float, int],
    scale: float,
    drawn: np.random.Generator,
    runs: int,
) -> np.ndarray:
    """Return the middle of the bounds and a noisy sum over a noisy count, within the bounds."""
    (middle, half), (total, count) = span, sums
    noisy = total + drawn.laplace(0.0, half * scale, runs)
    under = np.maximum(count + drawn.laplace(0.0, scale, runs), 1.0)
    return middle + np.clip(noisy / under, -half, half)


def first_of_each(person: np.ndarray, most: int) -> np.ndarray:
    """Return which rows are among the first so many of their person; people stand together."""
    return suites.first_ranks(person) < most


def distinct(kind: str, rows: Rows) -> Laws:
    """Return numbers of different items, for several bounds on the items of a person."""
    found: Laws = {}
    for most in ITEMS_EACH:
        kept = first_of_each(rows.person, most)
        number = float(len(np.unique(rows.columns["v"][kept])))
        found[f"{most} items each"] = functools.partial(_laplace, number, most / EPSILON)
    return found


def _laplace(number: float, scale: float, drawn: np.random.Generator, runs: int) -> np.ndarray:
    return number + drawn.laplace(0.0, scale, runs)


def frequency(kind: str, rows: Rows) -> Laws:
    """Return the largest of the noisy counts of all items, for several bounds on rows."""
    found: Laws = {}
    for most in ITEMS_EACH:
        counts = np.bincount(rows.columns["v"][first_of_each(rows.person, most)])
        near = np.sort(counts)[::-1]
        found[f"{most} rows each"] = functools.partial(noisy_largest, near, most / EPSILON)
    return found


def noisy_largest(
    counts: np.ndarray, scale: float, drawn: np.random.Generator, runs: int
) -> np.ndarray:
    """Return the largest of counts, each with Laplace noise of its own."""
    return np.array([(counts + drawn.laplace(0.0, scale, len(counts))).max() for _ in range(runs)])
