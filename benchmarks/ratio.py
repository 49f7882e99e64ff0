"""Measure how far private ratios are from a / b: the figures of the article, done again.

    python -m benchmarks.ratio                             the table: 100,000 releases per number
    python -m benchmarks.ratio --trials 1000               a short look
    python -m benchmarks.ratio --neighbours substitution   other rows of a person, not one more
    python -m benchmarks.ratio --plot ratio.svg            a picture as well (pip install .[plot])

The settings are the article's ("Privately bounding local sensitivity", 2024): epsilon 1, delta
10^-6, a tenth of epsilon for the bound, one row per person, and mean absolute errors against b for
several a / b. Its code bounds nothing (see `beam_dp.mechanisms.ratio.local_bound`); "local" is its
form with corrected bounds, which asks for a and b - a, and releases KSW where noisy counts say that
this is better. "not private" is noise for the same epsilon scaled to the local sensitivity itself:
what "local" would reach if its bound cost nothing. The value without any noise has no error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

import numpy as np

import beam_dp as dp
from beam_dp.mechanisms import ratio
from beam_dp.mechanisms.noise.bounded_sensitivity import GridLaplace
from beam_dp.mechanisms.noise.sampling import Noise

BUDGET = dp.Budget(1.0, 1e-6)
RATIOS = (0.0, 0.1, 0.5, 0.9)
SIZES = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
TRIALS = 100_000
STYLES = ("C3s-", "C0o-", "C2^-", "k--")
"""How the methods are drawn, in the order of `methods`."""

Draw = Callable[[int, int, int], np.ndarray]
"""Releases for a, b and a number of trials."""


def methods(neighbours: str) -> dict[str, Draw]:
    """Return what is compared, by name."""
    compared = {
        "naive": ratio.Naive(BUDGET, 1, neighbours),
        "KSW": ratio.KuleszaSureshWang(BUDGET, 1, neighbours),
        "local": ratio.LocalSensitivity(BUDGET, 1, neighbours),
    }

    def not_private(a: int, b: int, trials: int) -> np.ndarray:
        return released_with(local_sensitivity(a, b, neighbours), a, b, trials)

    drawn = {name: drawing(mechanism) for name, mechanism in compared.items()}
    return {**drawn, "not private": not_private}


def drawing(mechanism: ratio.Mechanism) -> Draw:
    """Return a method's releases of one ratio, many times."""

    def draw(a: int, b: int, trials: int) -> np.ndarray:
        return mechanism.release(np.full(trials, a), np.full(trials, b)).values

    return draw


def local_sensitivity(a: int, b: int, neighbours: str) -> Fraction:
    """Return how far one person of one row can move a / b, by looking at all neighbours."""
    rows = [(1, 1), (0, 1)]
    gone = [(0, 0), *[row for row in rows if row[0] <= a and row[1] - row[0] <= b - a]]
    pairs = [(old, new) for old in gone for new in [(0, 0), *rows]]
    if neighbours == ratio.ADD_REMOVE:
        pairs = [pair for pair in pairs if (0, 0) in pair]
    moved = [(a - old[0] + new[0], b - old[1] + new[1]) for old, new in pairs]
    return max(abs(Fraction(a, b) - Fraction(c, d)) for c, d in moved if d)


def released_with(bound: Fraction, a: int, b: int, trials: int) -> np.ndarray:
    """Return a / b with noise for the whole epsilon, scaled to a number that is not private."""
    grid = GridLaplace(BUDGET.amount)
    steps = grid.steps((a, b), bound.as_integer_ratio())
    noisy = steps + Noise().discrete_laplace(grid.rate, trials)
    return np.clip(noisy * float(bound / grid.resolution), 0.0, 1.0)


def errors(draws: dict[str, Draw], a: int, b: int, trials: int) -> dict[str, float]:
    """Return the mean absolute error of each method."""
    return {name: float(np.abs(draw(a, b, trials) - a / b).mean()) for name, draw in draws.items()}


def line(cells: Iterable[str]) -> str:
    """Return cells as one line of a Markdown table."""
    return f"| {' | '.join(cells)} |\n"


def plot(found: dict[tuple[float, int], dict[str, float]], path: str) -> None:
    """Draw the errors against b, one column of pictures per a / b.

    Above, the article's figure: four decades, in which most lines are one. So below the same errors
    times b, which are constants where an error is that of noise on a count.

    Args:
        found: the mean absolute errors by a / b, b and method.
        path: where the picture goes; its ending says which kind it is.
    """
    from matplotlib.figure import Figure

    shares = sorted({share for share, _ in found})
    figure = Figure(figsize=(3.5 * len(shares), 7), layout="constrained")
    axes = figure.subplots(2, len(shares), squeeze=False, sharex=True, sharey="row")
    for upper, lower, share in zip(*axes, shares, strict=True):
        sizes = sorted(b for other, b in found if other == share)
        for name, style in zip(found[share, sizes[0]], STYLES, strict=False):
            errors_of = [found[share, b][name] for b in sizes]
            upper.loglog(sizes, errors_of, style, label=name, markersize=4)
            scaled = [error * b for error, b in zip(errors_of, sizes, strict=True)]
            lower.semilogx(sizes, scaled, style, label=name, markersize=4)
        upper.set(title=f"a / b = {share}")
        lower.set(xlabel="b")
        for each in (upper, lower):
            each.grid(alpha=0.3)
    axes[0][0].set(ylabel="mean absolute error")
    axes[1][0].set(ylabel="mean absolute error times b", ylim=(0, None))
    lines, names = axes[0][0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=len(names))
    figure.savefig(path, dpi=150)


def main(words: Sequence[str] | None = None) -> None:
    """Print the table of errors, and draw it where that is wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=TRIALS, help="releases per number")
    parser.add_argument("--neighbours", default=ratio.ADD_REMOVE, help="or substitution")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="b, with commas")
    parser.add_argument("--plot", metavar="PATH", help="draw a picture, too")
    arguments = parser.parse_args(words)
    draws = methods(arguments.neighbours)
    heads = ["a / b", "b", *draws]
    sys.stdout.write(line(heads) + line(["---"] * len(heads)))
    found = {}
    for share in RATIOS:
        for b in map(int, arguments.sizes.split(",")):
            cells = found[share, b] = errors(draws, round(share * b), b, arguments.trials)
            sys.stdout.write(line([str(share), f"{b:,}", *(f"{e:.2e}" for e in cells.values())]))
            sys.stdout.flush()
    if arguments.plot:
        plot(found, arguments.plot)


if __name__ == "__main__":
    main()
