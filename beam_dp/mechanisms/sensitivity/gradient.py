"""The discrete gradient of a function of histograms, and the sensitivities that follow from it."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.numerics.user_functions import is_infinite, plain_number, removal_count
from beam_dp.mechanisms.sensitivity.norms import check_p, norm

Matrix = npt.NDArray[Any]
Histogram = Sequence[int] | npt.NDArray[Any]
Function = Callable[[Any], Any]
"""From a histogram, as an array of integers, to a number or a vector of numbers."""
Vector = tuple[Number, ...]


def discrete_gradient(f: Function, x: Histogram) -> Matrix:
    """Return the forward differences of f at x: the matrix of f(x + e_i) - f(x), column i for i.

    It has k rows for f with k values (1 for a single number) and |X| columns, one per bin.
    Differences of ints and Fractions are exact, those of two floats are floats. The array is of
    integers, of floats, or of Python numbers (dtype object) where it holds Fractions or both.

    Args:
        f: from a histogram, a new integer array, to a real number or a flat sequence or array of
            real numbers. True counts as 1.
        x: the counts per bin, ints from 0.

    Raises:
        TypeError, ValueError: for other parameters; if f returns NaN or vectors of different
            lengths. An error that f raises comes through.
    """
    values = Values("discrete_gradient", f)
    start = counts("discrete_gradient", x)
    columns = [values.difference(start, i) for i in range(len(start))]
    if not columns:
        return np.zeros((len(values(start)), 0), np.int64)
    return _array(columns)


def local_sensitivity(f: Function, x: Histogram, p: checks.Real = 1) -> Number:
    """Return the local sensitivity of f at x: the largest ||f(x) - f(x')||_p over neighbours x'.

    The neighbours are x + e_i for every bin i, and x - e_i for every bin that is not empty, which
    the gradient at x does not see. Exact where `norm` is. The result is data, not private.

    Args:
        f: as for `discrete_gradient`.
        x: the counts per bin.
        p: the norm, from 1 to `math.inf`.

    Raises:
        TypeError, ValueError: as `discrete_gradient`; or for another p.
    """
    owner = "local_sensitivity"
    power, values, start = check_p(owner, p), Values(owner, f), counts(owner, x)
    forward = [values.difference(start, i) for i in range(len(start))]
    backward = [values.difference(step(start, i, -1), i) for i, n in enumerate(start) if n]
    return max((norm(column, power) for column in forward + backward), default=0)


def global_sensitivity(
    f: Function, domain: Iterable[Histogram], p: checks.Real = 1, within: bool = False
) -> Number:
    """Return the supremum over x in a finite domain of ||grad f(x)||: the sensitivity of f there.

    Every x of the domain is compared with every x + e_i: all pairs of neighbours whose smaller one
    is in the domain; with `within` only pairs with both in the domain. Exact where `norm` is.

    Args:
        f: as for `discrete_gradient`.
        domain: histograms of one length, `histograms(3, 5)` say; it is iterated once.
        p: the norm, from 1 to `math.inf`.
        within: whether x + e_i must be in the domain too (f may not be defined outside).

    Raises:
        TypeError, ValueError: as `discrete_gradient`; or for another p.
    """
    owner = "global_sensitivity"
    power, values = check_p(owner, p), Values(owner, f)
    starts = dict.fromkeys(counts(owner, x) for x in domain)
    checks.require(
        len({len(x) for x in starts}) <= 1, owner, "domain", "have histograms of one length"
    )
    pairs = ((x, i) for x in starts for i in range(len(x)))
    compared = (pair for pair in pairs if not within or step(*pair, 1) in starts)
    return max((norm(values.difference(*pair), power) for pair in compared), default=0)


def histograms(bins: int, people: int, least: int = 0) -> Iterator[tuple[int, ...]]:
    """Return all histograms of `least` to `people` people in `bins` bins, small ones first.

    There are (bins + people choose people) of them for least = 0.

    Args:
        bins: how many records there are, at least 1.
        people: the most people.
        least: the fewest people; 1 leaves the empty database out.

    Raises:
        TypeError, ValueError: for other parameters.
    """
    checks.positive_integer("histograms", "bins", bins)
    sizes = range(
        removal_count("histograms", "least", least),
        removal_count("histograms", "people", people) + 1,
    )
    for size in sizes:
        for bars in itertools.combinations(range(size + bins - 1), bins - 1):
            ends = (-1, *bars, size + bins - 1)
            yield tuple(after - before - 1 for before, after in itertools.pairwise(ends))


class Values:
    """The values of f on histograms, each computed once.

    Args:
        owner: the function that errors name.
        f: the function.
    """

    def __init__(self, owner: str, f: Function) -> None:
        if not callable(f):
            raise checks.ParameterTypeError(
                owner, "f", f"be a function of histograms, not {checks.shown(f)}"
            )
        self._owner, self._f = owner, f
        self._known: dict[tuple[int, ...], Vector] = {}
        self._length: int | None = None

    def __call__(self, x: tuple[int, ...]) -> Vector:
        """Return f(x) as a tuple of Python numbers."""
        if x not in self._known:
            result = self._f(integers.narrow(np.array(x, object)))
            entries = result if _is_vector(result) else (result,)
            vector = tuple(_real(f"{self._owner}: f", entry) for entry in entries)
            self._length = len(vector) if self._length is None else self._length
            checks.require(
                len(vector) == self._length,
                self._owner,
                "f",
                "return vectors of one length",
            )
            self._known[x] = vector
        return self._known[x]

    def difference(self, x: tuple[int, ...], i: int) -> Vector:
        """Return f(x + e_i) - f(x)."""
        return tuple(map(minus, self(step(x, i, 1)), self(x)))


def counts(owner: str, x: object) -> tuple[int, ...]:
    """Return a histogram as a tuple of ints.

    Raises:
        TypeError, ValueError: unless it is a sequence of ints of at least 0.
    """
    if isinstance(x, (str, bytes)) or not isinstance(x, (Sequence, np.ndarray)):
        raise checks.ParameterTypeError(
            owner, "x", f"be a list of counts per bin, not {type(x).__name__}"
        )
    for count in x:
        if isinstance(count, (bool, np.bool_)) or not isinstance(count, (int, np.integer)):
            raise checks.ParameterTypeError(owner, "x", f"hold ints, not {type(count).__name__}")
        checks.require(int(count) >= 0, owner, "x", "hold counts of at least 0")
    return tuple(int(count) for count in x)


def step(x: tuple[int, ...], i: int, by: int) -> tuple[int, ...]:
    """Return x + by e_i."""
    return (*x[:i], x[i] + by, *x[i + 1 :])


def minus(high: Number, low: Number) -> Number:
    """Return high - low: as floats for two floats, else exactly; equal infinities are 0 apart."""
    if high == low:
        return 0
    if is_infinite(high) or is_infinite(low):
        return math.inf if high > low else -math.inf
    return high - low if type(high) is type(low) else Fraction(high) - Fraction(low)


def _is_vector(value: object) -> bool:
    return isinstance(value, (tuple, list)) or (isinstance(value, np.ndarray) and value.ndim == 1)


def _real(owner: str, value: object) -> Number:
    """Return an entry as a Python number; True is 1, and a Fraction holds Python integers."""
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    number = plain_number(owner, value)
    if isinstance(number, Fraction):
        return Fraction(int(number.numerator), int(number.denominator))
    return number


def _array(columns: list[Vector]) -> Matrix:
    """Return the columns as one matrix of the plainest type that holds them."""
    matrix = np.empty((len(columns[0]), len(columns)), object)
    for i, column in enumerate(columns):
        matrix[:, i] = column
    kinds = {type(entry) for entry in matrix.flat if type(entry) is not int or entry}
    if kinds == {float}:
        return matrix.astype(np.float64)
    return integers.narrow(matrix) if kinds <= {int} else matrix
