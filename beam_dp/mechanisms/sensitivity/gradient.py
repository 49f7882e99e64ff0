"""The discrete gradient of a function of histograms, its norms, and sensitivities from them."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.numerics.integers import Number
from beam_dp.mechanisms.numerics.user_functions import is_infinite, plain_number, removal_count

Matrix = npt.NDArray[Any]
Histogram = Sequence[int] | npt.NDArray[Any]
Function = Callable[[Any], Any]
"""From a histogram, as an array of integers, to a number or a vector of numbers."""
Vector = tuple[Number, ...]
Counts = tuple[int, ...]
"""A histogram as it is kept: one count per bin."""

_FLOATS_END = 1 << 1023


def check_p(subject: str, p: object) -> Number:
    """Return p if it is a number from 1 to inf; raise TypeError or ValueError if not."""
    if isinstance(p, float) and p == math.inf:
        return math.inf
    exact = checks.number(subject, "p", p)
    checks.require(exact >= 1, subject, "p", f"be from 1 to inf, not {checks.shown(p)}")
    return int(exact) if exact.denominator == 1 else float(exact)


def norm(vector: Iterable[Any], p: checks.Real = 1) -> Number:
    """Return the p-norm of a vector.

    Exact for ints and Fractions for p = 1 and p = inf, and for vectors with at most one entry that
    is not 0. Else, and for floats, the result is a float, right to a few units in the last digit.

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
        return math.inf
    sizes = [size for size in sizes if size]
    if len(sizes) <= 1 or power == math.inf:
        return max(sizes, default=0)
    exact = [Fraction(size) for size in sizes]
    if power == 1:
        only_floats = all(isinstance(size, float) for size in sizes)
        return _number(sum(exact, Fraction(0)), as_float=only_floats)
    largest = max(exact)  # powers of size / largest stay within floats
    total = math.fsum(float(size / largest) ** power for size in exact)
    return _number(Fraction(total ** (1 / power)) * largest, as_float=True)


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
    rule = "have rows of numbers, of one length"
    checks.require(table.ndim == 2 or not table.size, "operator_norm", "matrix", rule)
    columns = table.T if table.ndim == 2 else ()
    return max((norm(column, power) for column in columns), default=0)


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
    matrix = np.empty((len(values(start)), len(columns)), object)
    for i, column in enumerate(columns):
        matrix[:, i] = column
    kinds = {type(entry) for entry in matrix.flat if type(entry) is not int or entry}
    if kinds == {float}:
        return matrix.astype(np.float64)
    return integers.narrow(matrix) if kinds <= {int} else matrix


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
    subject = "local_sensitivity"
    power, values, start = check_p(subject, p), Values(subject, f), counts(subject, x)
    return max((norm(values.difference(*move), power) for move in moves(start)), default=0)


def global_sensitivity(f: Function, domain: Iterable[Histogram], p: checks.Real = 1) -> Number:
    """Return the supremum over x in a finite domain of ||grad f(x)||: the sensitivity of f there.

    Every x of the domain is compared with every x + e_i: all pairs of neighbours whose smaller one
    is in the domain. Exact where `norm` is.

    Args:
        f: as for `discrete_gradient`.
        domain: histograms of one length, `histograms(3, 5)` say; it is iterated once.
        p: the norm, from 1 to `math.inf`.

    Raises:
        TypeError, ValueError: as `discrete_gradient`; or for another p.
    """
    subject = "global_sensitivity"
    power, values = check_p(subject, p), Values(subject, f)
    starts = dict.fromkeys(counts(subject, x) for x in domain)
    checks.require(
        len({len(x) for x in starts}) <= 1, subject, "domain", "have histograms of one length"
    )
    pairs = ((x, i) for x in starts for i in range(len(x)))
    return max((norm(values.difference(*pair), power) for pair in pairs), default=0)


def histograms(bins: int, people: int) -> Iterator[Counts]:
    """Yield all histograms of up to `people` people in `bins` bins, small ones first.

    There are (bins + people choose people) of them.

    Args:
        bins: how many records there are, at least 1.
        people: the most people.

    Raises:
        TypeError, ValueError: for other parameters.
    """
    checks.positive_integer("histograms", "bins", bins)
    for size in range(removal_count("histograms", "people", people) + 1):
        for bars in itertools.combinations(range(size + bins - 1), bins - 1):
            ends = (-1, *bars, size + bins - 1)
            yield tuple(after - before - 1 for before, after in itertools.pairwise(ends))


class Values:
    """The values of f on histograms, each computed once.

    Args:
        subject: the function that errors name.
        f: the function.
    """

    def __init__(self, subject: str, f: Function) -> None:
        if not callable(f):
            raise checks.ParameterTypeError(
                subject, "f", f"be a function of histograms, not {checks.shown(f)}"
            )
        self._subject, self._f = subject, f
        self._known: dict[Counts, Vector] = {}
        self._length: int | None = None

    def __call__(self, x: Counts) -> Vector:
        """Return f(x) as a tuple of Python numbers."""
        if x not in self._known:
            result = self._f(integers.narrow(np.array(x, object)))
            entries = result if _is_vector(result) else (result,)
            vector = tuple(_real(f"{self._subject}: f", entry) for entry in entries)
            self._length = len(vector) if self._length is None else self._length
            same = len(vector) == self._length
            checks.require(same, self._subject, "f", "return vectors of one length")
            self._known[x] = vector
        return self._known[x]

    def difference(self, x: Counts, i: int) -> Vector:
        """Return f(x + e_i) - f(x)."""
        return tuple(map(minus, self(step(x, i, 1)), self(x)))


def counts(subject: str, x: object) -> Counts:
    """Return a histogram as a tuple of ints.

    Raises:
        TypeError, ValueError: unless it is a sequence of ints of at least 0.
    """
    if isinstance(x, (str, bytes)) or not isinstance(x, (Sequence, np.ndarray)):
        raise checks.ParameterTypeError(
            subject, "x", f"be a list of counts per bin, not {type(x).__name__}"
        )
    for count in x:
        if isinstance(count, (bool, np.bool_)) or not isinstance(count, (int, np.integer)):
            raise checks.ParameterTypeError(subject, "x", f"hold ints, not {type(count).__name__}")
        checks.require(int(count) >= 0, subject, "x", "hold counts of at least 0")
    return tuple(int(count) for count in x)


def step(x: Counts, i: int, by: int) -> Counts:
    """Return x + by e_i."""
    return (*x[:i], x[i] + by, *x[i + 1 :])


def moves(x: Counts) -> Iterator[tuple[Counts, int]]:
    """Yield (lower, i) for every neighbour of x: lower and lower + e_i are x and the neighbour."""
    for i, count in enumerate(x):
        yield x, i
        if count:
            yield step(x, i, -1), i


def minus(high: Number, low: Number) -> Number:
    """Return high - low: as floats for two floats, else exactly; equal infinities are 0 apart."""
    if high == low:
        return 0
    if is_infinite(high) or is_infinite(low):
        return math.inf if high > low else -math.inf
    return high - low if type(high) is type(low) else Fraction(high) - Fraction(low)


def _is_vector(value: object) -> bool:
    return isinstance(value, (tuple, list)) or (isinstance(value, np.ndarray) and value.ndim == 1)


def _real(subject: str, value: object) -> Number:
    """Return an entry as a Python number; True is 1, and a Fraction holds Python integers."""
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    number = plain_number(subject, value)
    if isinstance(number, Fraction):
        return Fraction(int(number.numerator), int(number.denominator))
    return number


def _number(value: Fraction, as_float: bool = False) -> Number:
    """Return a float where one is wanted and there is one, else an int where it is an integer."""
    if as_float and value < _FLOATS_END:
        return float(value)
    return value.numerator if value.denominator == 1 else value
