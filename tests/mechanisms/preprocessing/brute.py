"""Definition 3.1 by recursion over all subsets, and the statistics in rational numbers."""

import math
from fractions import Fraction

import numpy as np

TRIM = Fraction(1, 4)


def mean(values):
    return Fraction(sum(values), len(values))


def median(values):
    ordered = sorted(values)
    return Fraction(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2], 2)


def trimmed_mean(values, trim=TRIM):
    ordered = sorted(values)
    cut = math.floor(trim * len(ordered))
    return mean(ordered[cut : len(ordered) - cut])


def variance(values):
    count, total = len(values), sum(values)
    squares = sum((count * value - total) ** 2 for value in values)  # n^2 (value - mean)^2
    return Fraction(squares, count**3)


STATISTICS = {
    "mean": mean,
    "median": median,
    "maximum": max,
    "minimum": min,
    "trimmed_mean": trimmed_mean,
    "variance": variance,
}


def preprocessed(f, people, sensitivities, empty):
    """Return g of everybody, by all 2^n subsets as bit masks, in integers over one denominator."""
    places = range(len(people))
    subsets = [[i for i in places if mask >> i & 1] for mask in range(1 << len(people))]
    wanted = [Fraction(f([people[i] for i in here])) for here in subsets[1:]]
    prices, nobody = [Fraction(price) for price in sensitivities], Fraction(empty)
    whole = math.lcm(*(each.denominator for each in (*wanted, *prices, nobody)))
    steps, found = [int(price * whole) for price in prices], [int(nobody * whole)]
    for mask, here in enumerate(subsets[1:], 1):
        high = min(found[mask & ~(1 << i)] + steps[i] for i in here)
        low = max(found[mask & ~(1 << i)] - steps[i] for i in here)
        assert low <= high
        found.append(max(min(int(wanted[mask - 1] * whole), high), low))
    return Fraction(found[-1], whole)


def in_steps(statistic, values):
    """Return g in steps, by all subsets."""

    def stepped(some):
        return STATISTICS[statistic.statistic](some) * statistic.resolution

    deltas = [statistic.sensitivity] * len(values)
    return math.floor(preprocessed(stepped, values, deltas, statistic.empty))


def by_windows(f, values, sensitivity, empty):
    """Return g of a database-ordered f with one Delta, by all windows of the sorted values."""
    ordered = sorted(values)
    found = [empty] * (len(ordered) + 1)
    for size in range(1, len(ordered) + 1):
        found = [
            max(min(f(ordered[i : i + size]), found[i] + sensitivity), found[i + 1] - sensitivity)
            for i in range(len(ordered) - size + 1)
        ]
    return found[0]


def database(generator, most):
    """Return values with ties, of both signs, some of them far out."""
    count = int(generator.integers(0, most + 1))
    families = (
        lambda: generator.integers(-3, 4, count),
        lambda: generator.integers(-100, 101, count),
        lambda: np.rint(generator.standard_cauchy(count) * 10),
        lambda: generator.integers(0, 2, count) * generator.integers(1, 50),
        lambda: np.rint(generator.lognormal(0, 2, count) * 5),
    )
    return [int(value) for value in families[generator.integers(len(families))]()]


def columns(databases):
    """Return databases as one column and its offsets."""
    offsets = np.cumsum([0, *map(len, databases)])
    return np.array([value for values in databases for value in values], np.int64), offsets
