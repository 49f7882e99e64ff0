"""The checks find what is wrong, pass what is right, and prove what they say they prove."""

import itertools
import math
import statistics
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_dp.mechanisms.sensitivity.monotone import Monotone
from beam_dp.testing import check_interlacing, check_monotone, check_profile, profiles
from tests.mechanisms.sensitivity.test_monotone import distinct, max_frequency, rows, total

FEW = [(1, 2), (2,), (), (3, 3, 1), (5, 2), (1,)]
MANY = [(i % 7, i * i % 11) for i in range(40)]


def largest(people):
    return max(rows(people), default=0)


def mean(people):
    return Fraction(total(people), max(1, len(rows(people))))


def median(people):
    return statistics.median_low(rows(people)) if rows(people) else 0


def signed(people):
    return sum(row - 2 for row in rows(people))


MONOTONE = [total, largest, distinct, max_frequency]
NOT_MONOTONE = [mean, median, signed, lambda people: -len(people)]


def refuted(found):
    """Return whether a counterexample is one: neighbours for whom the two values break the rule."""
    (joined,) = Counter(found.larger) - Counter(found.smaller)
    return joined is not None and found.values[0] > found.values[1]


# ------------------------------------------------------------------------------------ monotone?


@pytest.mark.parametrize("f", MONOTONE)
@pytest.mark.parametrize("people", [[], FEW, MANY[:30]], ids=["nobody", "few", "many"])
def test_monotone_functions_are_not_refuted(f, people):
    assert check_monotone(f, people, 2000) is None


@pytest.mark.parametrize("f", NOT_MONOTONE)
@pytest.mark.parametrize("people", [FEW, MANY], ids=["few", "many"])
def test_functions_that_fall_are_refuted(f, people):
    # With 40 people 2,000 pairs are drawn in 125 chains or more. A chain meets a fall with a chance
    # of .27 for the median (1,000 chains), and more for the others: none does in .73^125 < 1e-16.
    found = check_monotone(f, people, 4000)
    assert refuted(found) and found.rule == "f(smaller) <= f(larger)"
    assert found.values == (f(found.smaller), f(found.larger))


@settings(max_examples=100, deadline=None)
@given(values=st.lists(st.integers(0, 3), min_size=16, max_size=16))
def test_the_exhaustive_check_is_a_proof(values):
    def f(people):
        return values[sum(1 << person for person in people)]

    rises = all(
        values[small] <= values[large]
        for small, large in itertools.product(range(16), repeat=2)
        if small & large == small
    )
    assert (check_monotone(f, range(4), 16) is None) == rises


# ------------------------------------------------------------------------------------ profiles


def top_profile(people):
    """Return the profile of `total`."""
    sums = sorted(map(sum, people))
    return [sum(sums[: len(sums) - k]) for k in range(len(sums) + 1)]


def searched(f):
    return lambda people: Monotone(f, people).profile(len(people))


def cut_at(removals, function):
    return lambda people: list(function(people))[: removals + 1]


def repeats_its_last(people):
    """Stop at one removal, and say that more removals take nothing: 2 people may be lost."""
    levels = top_profile(people)
    return [*levels[:2], *levels[1:2] * max(0, len(people) - 1)]


SOUND = [
    (top_profile, total, True),
    (searched(distinct), distinct, True),
    (cut_at(2, top_profile), total, True),
    (lambda people: iter(top_profile(people)), total, True),
    (lambda people: [total(people)], total, True),  # useless, but B[0] is right and private
    (lambda people: [0], total, False),
    (lambda people: top_profile(people)[::2], total, False),  # half the loss, rounded up
]
UNSOUND = {
    "increases": (lambda people: top_profile(people)[::-1], total),
    "repeats its last": (repeats_its_last, total),
    "of no monotone function": (searched(mean), mean),
    "moves both ways": (lambda people: [-(len(people) % 2)], total),
}


@pytest.mark.parametrize(("function", "f", "exact"), SOUND)
@pytest.mark.parametrize("people", [[], FEW, MANY], ids=["nobody", "few", "many"])
def test_sound_profiles_are_not_refuted(function, f, exact, people):
    assert check_profile(function, f, people, attempts=64, size=6, exact=exact) is None
    assert check_interlacing(function, people[:7], 128) is None


# Among 40 people 400 pairs of at most 6 are drawn in 66 chains or more. A chain breaks a rule with
# a chance of .8 or more (1,000 chains each): all keep it with a chance below .2^66 < 1e-45.
@pytest.mark.parametrize(("function", "f"), UNSOUND.values(), ids=UNSOUND)
@pytest.mark.parametrize("people", [FEW, MANY], ids=["few", "many"])
def test_unsound_profiles_are_refuted(function, f, people):
    found = check_profile(function, f, people, attempts=400, size=6)
    assert found is not None and set(found.smaller) <= set(found.larger)
    found = check_interlacing(function, people[:6], 64)
    assert found is not None and len(found.larger) - len(found.smaller) in (0, 1)


def test_a_profile_above_the_exact_one_is_refuted():
    def above(people):
        return [level + 1 for level in top_profile(people)]

    found = check_profile(above, total, FEW)
    assert found.rule == "claimed B[k] <= exact B[k]" and found.values == (1, 0) and found.at == 0
    assert check_interlacing(above, FEW) is None
    found = check_profile(lambda people: [0], total, FEW, exact=True)
    assert found.rule == "claimed B[k] == exact B[k]" and found.values[0] < found.values[1]


def test_a_counterexample_names_the_place():
    found = check_interlacing(lambda people: [2 * len(people), 0][: 1 + len(people)], [(1,), (2,)])
    assert found is None
    found = check_interlacing(lambda people: [len(people)] * (1 + 2 * len(people)), [(1,), (2,)])
    assert (found.smaller, found.larger) == ((), ((1,),))
    assert (found.values, found.at) == ((1, 3), -math.inf)


@pytest.mark.parametrize("broken", ["one way", "two for one"])
def test_a_check_that_compares_too_little_is_noticed(monkeypatch, broken):
    # Mutants of the loss: rounded down to even numbers, it hides steps of 1; capped at 1, of 2.
    mutants = {"one way": lambda levels, y: 0, "two for one": lambda levels, y: int(levels[0] > y)}
    wrong = UNSOUND["repeats its last"][0]
    assert check_interlacing(wrong, FEW) is not None
    monkeypatch.setattr(profiles, "_loss", mutants[broken])
    assert check_interlacing(wrong, FEW) is None


# --------------------------------------------------------------------------------- wrong calls

BAD = [
    (lambda: check_monotone(None, FEW), TypeError, "check_monotone: f must be a function"),
    (lambda: check_monotone(total, FEW, 0), ValueError, "attempts must be an int of at least 1"),
    (lambda: check_monotone(str, FEW), TypeError, "f must return real numbers .* not str"),
    (lambda: check_interlacing(lambda p: [], FEW), ValueError, "must return at least B"),
    (lambda: check_profile(top_profile, 3, FEW), TypeError, "check_profile: f must be a function"),
    (lambda: check_profile(top_profile, total, FEW, 9, 0), ValueError, "size must be an int"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_wrong_calls_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
