"""Gradients, norms and sensitivities against brute force over all neighbours."""

import itertools
import math
import statistics
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.sensitivity import (
    discrete_gradient,
    global_sensitivity,
    histograms,
    local_sensitivity,
    norm,
    operator_norm,
)


def people(x):
    """Return the bins of the people, in order."""
    return [i for i, n in enumerate(x) for _ in range(n)]


def positive(x):
    return int(x[0] >= 1)


def mean(x):
    return Fraction(sum(people(x)), len(people(x))) if sum(x) else 0


def median(x):
    return statistics.median_low(people(x)) if sum(x) else 0


def square(x):
    return [int(n) ** 2 for n in x]


def shares(x):
    return [Fraction(int(n), max(1, int(sum(x)))) for n in x]


FUNCTIONS = [positive, mean, median, square, shares, lambda x: x.max(), lambda x: x.sum() ** 2]


def vector(value):
    return list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value]


def p_norm(difference, p):
    """Return the p-norm in floats, by its definition."""
    sizes = [abs(float(each)) for each in difference]
    return max(sizes) if p == math.inf else sum(size**p for size in sizes) ** (1 / p)


def near(x):
    """Return all neighbours of a histogram."""
    moved = [(i, by) for i in range(len(x)) for by in (1, -1)]
    changed = [(*x[:i], x[i] + by, *x[i + 1 :]) for i, by in moved]
    return [other for other in changed if min(other) >= 0]


def distance(f, x, other, p):
    values = [vector(f(np.array(each))) for each in (x, other)]
    return p_norm(
        [Fraction(a) - Fraction(b) for a, b in zip(*map(exactly, values), strict=True)], p
    )


def exactly(values):
    return [value if isinstance(value, Fraction) else int(value) for value in values]


# ------------------------------------------------------------------------------ gradients


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("bins", [1, 3])
def test_the_gradient_is_the_forward_differences(f, bins) -> None:
    for x in histograms(bins, 4):
        gradient = discrete_gradient(f, x)
        assert gradient.shape == (len(vector(f(np.array(x)))), bins)
        for i in range(bins):
            after = vector(f(np.array((*x[:i], x[i] + 1, *x[i + 1 :]))))
            assert gradient[:, i].tolist() == [
                b - a for a, b in zip(vector(f(np.array(x))), after, strict=True)
            ]


@pytest.mark.sampled(14)
@pytest.mark.parametrize("p", [1, 1.5, 2, math.inf])
@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("bins", [1, 3])
def test_the_local_sensitivity_is_the_largest_distance_to_a_neighbour(f, bins, p) -> None:
    for x in histograms(bins, 4):
        expected = max(distance(f, x, other, p) for other in near(x))
        assert float(local_sensitivity(f, x, p)) == pytest.approx(expected, rel=1e-14)
        assert operator_norm(discrete_gradient(f, x), p) <= local_sensitivity(f, x, p)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("p", [1, 2, math.inf])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_the_global_sensitivity_is_the_supremum_of_both(f, p) -> None:
    domain = list(histograms(3, 5))
    pairs = [(x, other) for x in domain for other in near(x)]
    everywhere = [distance(f, *pair, p) for pair in pairs]
    assert float(global_sensitivity(f, domain, p)) == pytest.approx(max(everywhere))
    norms = [operator_norm(discrete_gradient(f, x), p) for x in domain]
    assert global_sensitivity(f, domain, p) == max(norms)


def test_the_local_identity_is_false() -> None:
    """The article's: the local sensitivity is the norm of the gradient. It is not."""
    gradient = discrete_gradient(positive, (1,))
    assert gradient.tolist() == [[0]] and operator_norm(gradient) == 0
    assert local_sensitivity(positive, (1,)) == 1
    assert local_sensitivity(lambda x: x[0] >= 1, [1]) == 1
    # The global one is true: the pair is seen from below.
    assert global_sensitivity(positive, histograms(1, 3)) == 1


def test_the_mean_has_sensitivity_61() -> None:
    ages = 123

    def at(*given):
        return tuple(given.count(age) for age in range(ages))

    def mean_or(empty):
        return lambda x: Fraction(int(np.arange(ages) @ x), int(x.sum())) if x.sum() else empty

    ends = [at(0), at(122), at(0, 122), at(0, 0), at(61)]
    assert global_sensitivity(mean_or(0), ends) == 61
    assert local_sensitivity(mean_or(0), at(0, 122)) == 61
    assert global_sensitivity(mean_or(0), [at(), *ends]) == 122
    assert global_sensitivity(mean_or(61), [at(), *ends]) == 61
    # Over all non-empty ages 0 to 4: 4 / 2, not 4 and not 5; 122 / 2 in the same way.
    assert global_sensitivity(mean, filter(sum, histograms(5, 4))) == 2
    for x in filter(sum, histograms(4, 4)):
        expected = [(i - mean(x)) / (sum(x) + 1) for i in range(4)]
        assert discrete_gradient(mean, x).tolist() == [expected]


# ---------------------------------------------------------------------------------- numbers


def test_exact_numbers_stay_exact() -> None:
    assert discrete_gradient(lambda x: 10**30 * int(x[0]), [3, 1]).tolist() == [[10**30, 0]]
    assert discrete_gradient(lambda x: x, [3, 1]).dtype == np.int64
    assert discrete_gradient(lambda x: x / 2, [3, 1]).dtype == np.float64
    halves = discrete_gradient(lambda x: Fraction(x[0], 2), [3, 1])
    assert halves.tolist() == [[Fraction(1, 2), 0]]
    assert type(halves[0, 0].numerator) is int
    assert local_sensitivity(lambda x: Fraction(int(x[0]), 3), [0]) == Fraction(1, 3)
    assert local_sensitivity(lambda x: [3 * x[0], 4 * x[0]], [1], 2) == 5
    assert local_sensitivity(lambda x: x[0] * math.inf if x[0] else 0, [0]) == math.inf
    assert discrete_gradient(lambda x: 5, []).shape == (1, 0)
    assert discrete_gradient(lambda x: int(x[0]), [2**70]).tolist() == [[1]]


def test_f_may_change_what_it_is_given() -> None:
    def spoil(x):
        x += 1
        return int(x.sum())

    assert discrete_gradient(spoil, [1, 2]).tolist() == [[1, 1]]


@pytest.mark.parametrize(
    ("entries", "p", "expected"),
    [
        ([3, -4], 1, 7),
        ([3, -4], 2, 5),
        ([3, -4], math.inf, 4),
        ([Fraction(3, 5), Fraction(4, 5)], 2, 1),
        ([Fraction(1, 3), Fraction(1, 3)], 1, Fraction(2, 3)),
        ([0.1, 0.2], 1, 0.1 + 0.2),
        ([0.5, Fraction(1, 3)], 1, Fraction(5, 6)),
        ([], 2, 0),
        ([0, 0], 3, 0),
        ([0, -7], 3, 7),
        ([1, 1], 2, math.sqrt(2)),
        ([1, 1, 1, 1], 1.5, 4 ** (2 / 3)),
        ([10**300, 10**300], 2, 2**0.5 * 1e300),
        ([math.inf, 1], 2, math.inf),
        ([1e-300, 1e-300], 3, 2 ** (1 / 3) * 1e-300),
    ],
)
def test_norms(entries, p, expected) -> None:
    found = norm(entries, p)
    exact = type(expected) in (int, Fraction)
    assert found == expected if exact else found == pytest.approx(expected, rel=1e-14)


def test_the_norm_of_a_matrix_is_that_of_its_corners() -> None:
    matrix = [[3, -1, 0], [4, 2, 0]]
    assert operator_norm(matrix, 2) == 5 and operator_norm(np.array(matrix), 1) == 7
    # No v with ||v||_1 <= 1 does more than a corner.
    grid = [v for v in itertools.product(np.linspace(-1, 1, 9), repeat=3) if sum(map(abs, v)) <= 1]
    for p in (1, 2, 3, math.inf):
        most = max(p_norm(np.array(matrix) @ v, p) for v in grid)
        assert most == pytest.approx(float(operator_norm(matrix, p)))
    assert operator_norm([]) == operator_norm([[], []]) == operator_norm(np.zeros((0, 3))) == 0


def test_histograms_are_all_of_them_once() -> None:
    found = list(histograms(3, 4))
    assert len(found) == len(set(found)) == math.comb(7, 3)
    assert all(len(x) == 3 and sum(x) <= 4 and min(x) >= 0 for x in found)


# ------------------------------------------------------------------------------- wrong calls

BAD = [
    (lambda: discrete_gradient(3, [1]), TypeError, "f must be a function of histograms, not 3"),
    (lambda: discrete_gradient(mean, [1.0]), TypeError, "x must hold ints, not float"),
    (lambda: discrete_gradient(mean, [True]), TypeError, "x must hold ints, not bool"),
    (lambda: discrete_gradient(mean, [-1]), ValueError, "x must hold counts of at least 0"),
    (lambda: discrete_gradient(mean, "12"), TypeError, "x must be a list of counts per bin"),
    (lambda: discrete_gradient(str, [1]), TypeError, "f must return real numbers .* not str"),
    (lambda: discrete_gradient(lambda x: math.nan, [1]), ValueError, "not NaN"),
    (lambda: discrete_gradient(lambda x: [0] * x[0], [1]), ValueError, "vectors of one length"),
    (lambda: local_sensitivity(mean, [1], 0.5), ValueError, "p must be from 1 to inf, not 0.5"),
    (lambda: local_sensitivity(mean, [1], "2"), TypeError, "p must be a real number"),
    (lambda: local_sensitivity(mean, [1], math.nan), ValueError, "p must be finite"),
    (lambda: global_sensitivity(mean, [(1,), (1, 2)]), ValueError, "histograms of one length"),
    (lambda: operator_norm([[1], [1, 2]]), ValueError, "rows of numbers, of one length"),
    (lambda: norm([math.nan]), ValueError, "not NaN"),
    (lambda: histograms(0, 1).__next__(), ValueError, "bins must be an int of at least 1"),
    (lambda: next(histograms(1, -1)), ValueError, "people must be an int of at least 0"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_wrong_calls_are_refused(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()
