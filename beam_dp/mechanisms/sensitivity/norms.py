"""Norms of vectors of exact numbers, and the norm of a matrix from l1 to lp."""

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.numerics.user_functions import is_infinite, plain_number

INFINITY = math.inf

_FLOATS_END = 1 << 1023


def check_p(owner: str, p: object) -> Number:
    """Return p if it is a number from 1 to inf.

    Raises:
        TypeError, ValueError: unless it is.
    """
    if isinstance(p, float) and p == INFINITY:
        return INFINITY
    exact = checks.number(owner, "p", p)
    checks.require(exact >= 1, owner, "p", f"be from 1 to inf, not {p!r}")
    return int(exact) if exact.denominator == 1 else float(exact)


def norm(vector: Iterable[Any], p: checks.Real = 1) -> Number:
    """Return the p-norm of a vector.

    Exact for ints and Fractions wherever the norm is rational by itself: for p = 1 and p = inf, for
    vectors with at most one entry that is not 0, and for p = 2 where the sum of squares is a
    square. Else, and for floats, the result is a float, right to a few units in the last digit.

    Args:
        vector: real numbers; infinities give inf.
        p: from 1 to `math.inf`.

    Raises:
        TypeError, ValueError: for other parameters, or NaN.
    """
    power = check_p("norm", p)
    entries = [plain_number("norm: vector", entry) for entry in vector]
    sizes = [entry if entry >= 0 else -entry for entry in entries]
    if any(is_infinite(size) for size in sizes):
        return INFINITY
    sizes = [size for size in sizes if size]
    if len(sizes) <= 1 or power == INFINITY:
        return max(sizes, default=0)
    if power == 1:
        return _sum(sizes)
    return _power_norm(sizes, power)


def operator_norm(matrix: Iterable[Iterable[Any]], p: checks.Real = 1) -> Number:
    """Return the norm of a matrix from l1 to lp: the largest p-norm of a column.

    Exact where `norm` is. A matrix without columns, or without rows, has norm 0.

    Args:
        matrix: rows of real numbers, as `discrete_gradient` returns them.
        p: from 1 to `math.inf`.

    Raises:
        TypeError, ValueError: for other parameters, or NaN.
    """
    power = check_p("operator_norm", p)
    table = np.array(list(matrix), object)
    checks.require(
        table.ndim == 2 or not table.size,
        "operator_norm",
        "matrix",
        "have rows of numbers, of one length",
    )
    columns = table.T if table.ndim == 2 else ()
    return max((norm(column, power) for column in columns), default=0)


def _sum(sizes: list[Number]) -> Number:
    """Return the exact sum; for floats alone the float nearest to it."""
    total = sum((Fraction(size) for size in sizes), Fraction(0))
    only_floats = all(isinstance(size, float) for size in sizes) and total < _FLOATS_END
    return float(total) if only_floats else _plain(total)


def _power_norm(sizes: list[Number], power: Number) -> Number:
    """Return (sum of sizes^power)^(1 / power) of at least two positive numbers."""
    exact = [Fraction(size) for size in sizes]
    if power == 2:
        square = sum((size**2 for size in exact), Fraction(0))
        root = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
        if root * root == square:
            return _plain(root)
    largest = max(exact)  # powers of size / largest stay within floats
    total = math.fsum(float(size / largest) ** power for size in exact)
    root = Fraction(total ** (1 / power)) * largest
    return float(root) if root < _FLOATS_END else root


def _plain(value: Fraction) -> Number:
    """Return the value, as an int where it is an integer."""
    return value.numerator if value.denominator == 1 else value
