"""How far g may be from f, in numbers, and the Delta from which on g is f.

This is for planning: functions of public numbers say what a Delta is worth if the data are as the
user expects; a result that is a private number is said to be one.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.checks import Real
from beam_dp.mechanisms.preprocessing.individual.general import (
    Function,
    Sensitivities,
    on_subsets,
    per_person,
)


def enough_for_mean(count: int, spread: Real, distance: Real) -> Fraction:
    """Return the Delta from which on g is the mean: max(spread, distance) / n.

    Without its k largest values a mean falls by at most k / n times the range, which is at most
    k Delta. The same holds upwards, and f(empty) is within n Delta. So the two bounds h_- and h_+
    of Cummings and Durfee (2020, section 5) are the mean itself.

    Args:
        count: n, the number of people.
        spread: the range of the values.
        distance: from f(empty) to the mean.
    """
    widths = _at_least_0("enough_for_mean", "spread", spread, "distance", distance)
    return max(widths) / checks.positive_integer("enough_for_mean", "count", count)


def enough_for_variance(count: int, spread: Real, variance: Real | None = None) -> Fraction:
    """Return a Delta from which on g is the variance: (range^2 + variance) / n.

    Each removal from m people lowers the variance by at most range^2 / m and costs Delta. Of the
    d < variance / Delta removals that may be worth it, none saves more than
    range^2 / (n - d) <= Delta.

    Args:
        count: n, the number of people.
        spread: the range of the values.
        variance: of the values; None: the largest, range^2 / 4 (range^2 / 2 for a sample's).
    """
    owner = "enough_for_variance"
    known = Fraction(0) if variance is None else variance
    width, part = _at_least_0(owner, "spread", spread, "variance", known)
    part = width**2 / 2 if variance is None else part
    return (width**2 + part) / checks.positive_integer(owner, "count", count)


def mean_bounds(values: Sequence[Real], sensitivity: Real, empty: Real) -> tuple[float, float]:
    """Return bounds h_- <= g <= h_+ for the mean: private numbers, in double precision.

    h_- is the least mean without the k largest values, plus k Delta (f(empty) + n Delta for k = n);
    h_+ mirrors it (Cummings, Durfee 2020, section 5). |g - mean| <= max(mean - h_-, h_+ - mean).

    Args:
        values: one number per person, finite.
        sensitivity: Delta, at least 0.
        empty: f of nobody.
    """
    step, nobody = float(sensitivity), float(empty)
    below = _least_mean(np.sort(np.asarray(values, np.float64)), step, nobody)
    above = _least_mean(np.sort(-np.asarray(values, np.float64)), step, -nobody)
    return below, -above


def error_bound(
    f: Function, people: Sequence[Any], sensitivities: Sensitivities, empty: Real | None = None
) -> Fraction:
    """Return a bound on |f - g| for any function of at most 20 people: a private number.

    It is the greatest sum, over all orders in which the people may come, of what each person adds
    to or takes from f beyond their Delta_i: |f(D) - g(D)| <= max_order sum_i max(|f(D_i + i) -
    f(D_i)| - Delta_i, 0), where D_i are the people before i (Cummings, Durfee 2020, Lemma 3.6).

    The arguments are those of `general`.
    """
    owner = "error_bound"
    prices = per_person(owner, sensitivities, len(people))
    column = on_subsets(owner, f, people, 1, None if empty is None else [empty])[0]
    numbers = [Fraction(value) for value in column]
    worst = [Fraction(0)] * len(numbers)
    for mask in range(1, len(numbers)):
        for person, price in enumerate(prices):
            without = mask & ~(1 << person)
            if without != mask:
                beyond = max(abs(numbers[mask] - numbers[without]) - price, Fraction(0))
                worst[mask] = max(worst[mask], worst[without] + beyond)
    return worst[-1]


def _least_mean(ascending: np.ndarray, step: float, empty: float) -> float:
    sizes = np.arange(1, len(ascending) + 1)
    means = np.cumsum(ascending) / sizes + (len(ascending) - sizes) * step
    return min(float(means.min(initial=np.inf)), empty + len(ascending) * step)


def _at_least_0(
    owner: str, first: str, one: Real, second: str, other: Real
) -> tuple[Fraction, Fraction]:
    numbers = checks.number(owner, first, one), checks.number(owner, second, other)
    for name, value in zip((first, second), numbers, strict=True):
        checks.require(value >= 0, owner, name, f"be at least 0, not {value}")
    return numbers
