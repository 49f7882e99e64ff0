"""g of any function of few people, exactly: Algorithm 1 of Cummings and Durfee (2020).

g(empty) = f(empty), and for a database D

    UB(D) = min_{i in D} g(D - i) + Delta_i,   LB(D) = max_{i in D} g(D - i) - Delta_i,
    g(D)  = f(D) cut to [LB(D), UB(D)]                                       (Definition 3.1),

over all 2^n subsets as bit masks, each once, in rational arithmetic (integers over a common
denominator). So |g(D) - g(D - i)| <= Delta_i holds exactly for every person of every subset.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.checks import Real

MOST_PEOPLE = 20
"""There are 2^20 subsets of 20 people, and f is called on each."""

Function = Callable[[tuple[Any, ...]], Any]
Sensitivities = Real | Sequence[Real]


def general(
    f: Function, people: Sequence[Any], sensitivities: Sensitivities, empty: Real | None = None
) -> Fraction:
    """Return g of any function of at most 20 people.

    |g(D) - g(D - i)| <= Delta_i for each person i, exactly. f is called once per subset of the
    people, with a tuple in their order; it must depend on who is in the subset only. For a release,
    round down to the steps of a grid, with whole steps for each Delta_i.

    Args:
        f: a finite real number for a tuple of people.
        people: one record per person.
        sensitivities: Delta for all, or Delta_i per person; at least 0.
        empty: f of nobody; None: f is asked.

    Raises:
        ValueError: for more than 20 people, a negative sensitivity, or what is no finite number.
    """
    deltas = _per_person("general", sensitivities, len(people))
    values = _on_subsets("general", f, people, empty)
    return _clamped([_finite("general", value) for value in values], deltas)


def plane(
    f: Callable[[tuple[Any, ...]], Sequence[Any]],
    people: Sequence[Any],
    sensitivities: Sensitivities,
    empty: Sequence[Real] | None = None,
) -> tuple[Fraction, Fraction]:
    """Return g of a function into the plane: |g(D) - g(D - i)|_1 <= Delta_i.

    In the coordinates u = f1 + f2 and v = f1 - f2 the L1 ball is a square, |(x, y)|_1 =
    max(|x + y|, |x - y|). So two runs on u and v, each with Delta_i, are the construction in the
    plane, and g1 = (g_u + g_v) / 2, g2 = (g_u - g_v) / 2. No such turn exists in three dimensions.

    The arguments are those of `general`, but that f returns two numbers.
    """
    deltas = _per_person("plane", sensitivities, len(people))
    values = _on_subsets("plane", f, people, empty)
    pairs = [_pair(value) for value in values]
    u = _clamped([x + y for x, y in pairs], deltas)
    v = _clamped([x - y for x, y in pairs], deltas)
    return (u + v) / 2, (u - v) / 2


def _per_person(subject: str, sensitivities: Sensitivities, count: int) -> list[Fraction]:
    """Return Delta_i for each of `count` people, from one number or a list."""
    if isinstance(sensitivities, (Sequence, np.ndarray)):
        checks.require(len(sensitivities) == count, subject, "sensitivities", "be one per person")
        deltas = [checks.number(subject, "sensitivities", value) for value in sensitivities]
    else:
        deltas = [checks.number(subject, "sensitivities", sensitivities)] * count
    checks.require(all(value >= 0 for value in deltas), subject, "sensitivities", "be at least 0")
    return deltas


def _on_subsets(subject: str, f: Function, people: Sequence[Any], empty: Any) -> list[Any]:
    """Return f of all subsets, in the order of the bit masks."""
    checks.require(
        len(people) <= MOST_PEOPLE,
        subject,
        "people",
        f"be at most {MOST_PEOPLE}, for f is called on all their subsets",
    )
    subsets: list[tuple[Any, ...]] = [()]
    for person in people:
        subsets += [(*subset, person) for subset in subsets]
    return [f(()) if empty is None else empty, *map(f, subsets[1:])]


def _finite(subject: str, value: object) -> Fraction:
    """Return what a user's function returned, exactly; an error does not show it: it is data."""
    try:
        return checks.number(subject, "f", value)
    except (TypeError, ValueError):
        raise ValueError(f"{subject}: f must return finite real numbers.") from None


def _pair(value: Any) -> tuple[Fraction, Fraction]:
    several = isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str)
    checks.require(several and len(value) == 2, "plane", "f", "return two numbers")
    return _finite("plane", value[0]), _finite("plane", value[1])


def _clamped(values: Sequence[Fraction], deltas: Sequence[Fraction]) -> Fraction:
    """Return g of everybody, from f of all subsets."""
    scale = math.lcm(*(number.denominator for number in [*values, *deltas]))
    found = [value.numerator * (scale // value.denominator) for value in values]
    steps = [delta.numerator * (scale // delta.denominator) for delta in deltas]
    people = [(1 << i, step) for i, step in enumerate(steps)]
    for mask in range(1, len(found)):
        without = [(found[mask ^ bit], step) for bit, step in people if mask & bit]
        high = min(less + step for less, step in without)
        low = max(less - step for less, step in without)
        found[mask] = max(min(found[mask], high), low)
    return Fraction(found[-1], scale)
