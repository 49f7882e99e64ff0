"""g of any function of few people, exactly: Algorithm 1 of Cummings and Durfee (2020).

g(empty) = f(empty), and for a database D

    UB(D) = min_{i in D} g(D - i) + Delta_i,   LB(D) = max_{i in D} g(D - i) - Delta_i,
    g(D)  = f(D) cut to [LB(D), UB(D)]                                       (Definition 3.1),

over all 2^n subsets as bit masks, by size, each once, in rational arithmetic (integers over a
common denominator). So |g(D) - g(D - i)| <= Delta_i holds exactly for every person of every subset.
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
Vector = Callable[[tuple[Any, ...]], Sequence[Any]]
Sensitivities = Real | Sequence[Real]


def general(
    f: Function, people: Sequence[Any], sensitivities: Sensitivities, empty: Real | None = None
) -> Real:
    """Return g of any function of at most 20 people.

    |g(D) - g(D - i)| <= Delta_i for each person i, exactly. f is called once per subset of the
    people, with a tuple in their order; it must depend on who is in the subset only.

    The result is a float if f ever returned one, and a Fraction otherwise. That float is rounded,
    at the cost of its last bit: for a release, round down to the steps of a grid, with whole steps
    for each Delta_i.

    Args:
        f: a finite real number for a tuple of people.
        people: one record per person.
        sensitivities: Delta for all, or Delta_i per person; at least 0.
        empty: f of nobody; None: f is asked.

    Raises:
        TypeError: if f returns no number.
        ValueError: for more than 20 people, a negative sensitivity, or a value that is not finite.
    """
    owner = "general"
    prices = per_person(owner, sensitivities, len(people))
    values = on_subsets(owner, f, people, 1, None if empty is None else [empty])
    return _plain(_cut(values[0], prices), values)


def plane(
    f: Vector,
    people: Sequence[Any],
    sensitivities: Sensitivities,
    empty: Sequence[Real] | None = None,
) -> tuple[Real, Real]:
    """Return g of a function into the plane: |g(D) - g(D - i)|_1 <= Delta_i.

    In the coordinates u = f1 + f2 and v = f1 - f2 the L1 ball is a square, |(x, y)|_1 =
    max(|x + y|, |x - y|). So two runs on u and v, each with Delta_i, are the construction in the
    plane, and g1 = (g_u + g_v) / 2, g2 = (g_u - g_v) / 2. No such turn exists in three dimensions.

    Args:
        f: two finite real numbers for a tuple of people.
        people: as for `general`, at most 20.
        sensitivities: as for `general`.
        empty: f of nobody; None: f is asked.
    """
    owner = "plane"
    prices = per_person(owner, sensitivities, len(people))
    values = on_subsets(owner, f, people, 2, empty)
    pairs = [(Fraction(x), Fraction(y)) for x, y in zip(*values, strict=True)]
    u = _cut([x + y for x, y in pairs], prices)
    v = _cut([x - y for x, y in pairs], prices)
    return _plain((u + v) / 2, values), _plain((u - v) / 2, values)


def coordinates(
    f: Vector,
    people: Sequence[Any],
    sensitivities: Sequence[Sensitivities],
    empty: Sequence[Real] | None = None,
) -> tuple[Real, ...]:
    """Return g of a function into d dimensions, coordinate by coordinate.

    |g_c(D) - g_c(D - i)| <= Delta_{c,i} for each coordinate c, so one person moves g by at most
    sum_c Delta_{c,i} in L1 and max_c Delta_{c,i} in the largest coordinate.

    Args:
        f: d finite real numbers for a tuple of people.
        people: as for `general`, at most 20.
        sensitivities: per coordinate, as for `general`.
        empty: f of nobody; None: f is asked.
    """
    owner = "coordinates"
    prices = [per_person(owner, deltas, len(people)) for deltas in sensitivities]
    values = on_subsets(owner, f, people, len(prices), empty)
    results = [_cut(column, deltas) for column, deltas in zip(values, prices, strict=True)]
    return tuple(_plain(number, values) for number in results)


def per_person(owner: str, sensitivities: Sensitivities, count: int) -> list[Fraction]:
    """Return Delta_i for each of `count` people, checked, from one number or a list."""
    if isinstance(sensitivities, (Sequence, np.ndarray)):
        checks.require(len(sensitivities) == count, owner, "sensitivities", "be one per person")
        deltas = [checks.number(owner, "sensitivities", value) for value in sensitivities]
    else:
        deltas = [checks.number(owner, "sensitivities", sensitivities)] * count
    checks.require(all(value >= 0 for value in deltas), owner, "sensitivities", "be at least 0")
    return deltas


def finite(owner: str, value: object, rule: str = "f must return finite real numbers") -> Real:
    """Return a value, or what a user's function returned, if it is a finite real number.

    An error does not show the value, which is data.
    """
    try:
        number = checks.number(owner, "f", value)
    except (TypeError, ValueError):
        raise ValueError(f"{owner}: {rule}.") from None
    return float(number) if isinstance(value, (float, np.floating)) else number


def on_subsets(
    owner: str, f: Function, people: Sequence[Any], width: int, empty: Sequence[Real] | None
) -> list[list[Real]]:
    """Return f per coordinate and subset, in the order of the bit masks."""
    checks.require(
        len(people) <= MOST_PEOPLE,
        owner,
        "people",
        f"be at most {MOST_PEOPLE}, for f is called on all their subsets",
        "Use a function of sorted values (mean, median, ordered, ...) for more.",
    )
    subsets: list[tuple[Any, ...]] = [()]
    for person in people:
        subsets += [(*subset, person) for subset in subsets]
    rows = [_row(owner, f(subset), width) for subset in subsets[0 if empty is None else 1 :]]
    rows = rows if empty is None else [_row(owner, empty, width), *rows]
    return [list(column) for column in zip(*rows, strict=True)]


def _row(owner: str, value: Any, width: int) -> list[Real]:
    """Return the numbers of a vector, or of a single number."""
    several = isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str)
    row = [finite(owner, number) for number in (value if several else [value])]
    checks.require(len(row) == width, owner, "f", f"return {width} number(s)")
    return row


def _cut(values: Sequence[Real], prices: Sequence[Fraction]) -> Fraction:
    """Return g of everybody, from f of all subsets."""
    numbers = [Fraction(value) for value in values]
    scale = math.lcm(*(number.denominator for number in [*numbers, *prices]))
    table = _whole([number * scale for number in numbers])
    steps = _whole([price * scale for price in prices])
    beyond = abs(table).max() + steps.max(initial=0) + 1  # above every bound
    if beyond < 1 << 60:
        table, steps = table.astype(np.int64), steps.astype(np.int64)
    masks = np.arange(len(table))
    sizes = sum((masks >> person & 1 for person in range(len(prices))), np.zeros_like(masks))
    for size in range(1, len(prices) + 1):
        _cut_subsets(table, masks[sizes == size], steps, beyond)
    return Fraction(int(table[-1]), scale)


def _cut_subsets(table: np.ndarray, masks: np.ndarray, steps: np.ndarray, beyond: int) -> None:
    """Cut f of all subsets of one size, given g of the smaller ones, in place."""
    high = np.full(len(masks), beyond, table.dtype)
    low = -high
    for person, step in enumerate(steps):
        present = np.flatnonzero(masks >> person & 1)
        without = table[masks[present] & ~(1 << person)]
        high[present] = np.minimum(high[present], without + step)
        low[present] = np.maximum(low[present], without - step)
    table[masks] = np.maximum(np.minimum(table[masks], high), low)


def _whole(numbers: list[Fraction]) -> np.ndarray:
    column = np.empty(len(numbers), object)
    column[:] = [int(number) for number in numbers]
    return column


def _plain(value: Fraction, values: Sequence[Sequence[Real]]) -> Real:
    """Return a float where f returned any."""
    return float(value) if any(isinstance(x, float) for column in values for x in column) else value
