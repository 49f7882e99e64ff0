"""The down sensitivity is B[0] - B[k], and what its definition says by brute force."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_dp.mechanisms.sensitivity import down_sensitivity
from tests.mechanisms.sensitivity.test_monotone import distinct, total


def defined(f, people, k):
    """Return max over |R| <= k of f(x) - f(x without R), over all R."""
    n = len(people)
    kept = (itertools.combinations(people, n - gone) for gone in range(min(k, n) + 1))
    return max(f(people) - f(some) for some in itertools.chain.from_iterable(kept))


PEOPLE = st.lists(st.lists(st.integers(0, 5), max_size=3).map(tuple), max_size=7).map(tuple)


@pytest.mark.parametrize("f", [total, distinct])
@settings(max_examples=60, deadline=None)
@given(people=PEOPLE, k=st.integers(0, 9))
def test_down_sensitivity_is_its_definition(f, people, k):
    expected = defined(f, people, k)
    assert down_sensitivity(f, people, k) == expected


def test_one_removal_is_the_default():
    assert down_sensitivity(total, [(3,), (8,)]) == 8


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5, 3], 2),
        ([0.3, 0.1], 0.3 - 0.1),
        ([2**60 + 1, 2.0**53], 2**60 + 1 - 2**53),
        ([0.5, Fraction(1, 3)], Fraction(1, 6)),
        ([math.inf, 3], math.inf),
        ([10**400, -math.inf], math.inf),
        ([math.inf, math.inf], 0),
        ([-math.inf, -math.inf], 0),
        ([10**400, 0.5], Fraction(2 * 10**400 - 1, 2)),
    ],
)
def test_differences_of_mixed_numbers_are_exact(values, expected):
    assert down_sensitivity(lambda people: values[not people], [()]) == expected


BAD = [
    (lambda: down_sensitivity(total, [(1,)], -1), ValueError, "k must be an int of at least 0"),
    (lambda: down_sensitivity(total, [(1,)], True), TypeError, "k must be an int of at least 0"),
    (lambda: down_sensitivity(None, []), TypeError, "f must be a function of people, not None"),
    (lambda: down_sensitivity(distinct, [(i,) for i in range(9)], 9, limit=4), ValueError, "limit"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_wrong_calls_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
