"""A user's own monotone statistic: the search is exact."""

import itertools
import math
import pickle
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_dp.mechanisms.profiles.profile import GuardedProfile, Profile
from beam_dp.mechanisms.sensitivity.monotone import Monotone
from beam_dp.testing import check_interlacing
from beam_dp.transforms.columns import compared_values


def rows(people):
    return [row for person in people for row in person]


def total(people):
    return sum(rows(people))


def third_largest(people):
    return sorted([*rows(people), 0, 0, 0])[-3]


def distinct(people):
    return len(set(rows(people)))


def max_frequency(people):
    return max(Counter(rows(people)).values(), default=0)


def edges(people):
    """Count pairs of people who share a row: both must be there."""
    return sum(bool(set(a) & set(b)) for a, b in itertools.combinations(people, 2))


def triangles_and_a_third(people):
    """Return Fractions: a quarter for each, and 1/3 where three people share a row."""
    shared = [set.intersection(*map(set, three)) for three in itertools.combinations(people, 3)]
    return Fraction(len(people), 4) + Fraction(sum(map(bool, shared)), 3)


MONOTONE = [total, third_largest, distinct, max_frequency, edges, triangles_and_a_third]
PEOPLE = st.lists(st.lists(st.integers(0, 6), max_size=4).map(tuple), max_size=8)


def subsets(people):
    return itertools.chain.from_iterable(
        itertools.combinations(people, size) for size in range(len(people) + 1)
    )


def defined_profile(f, people):
    """Return B[0..n] by its definition, over all subsets."""
    levels = [math.inf] * (len(people) + 1)
    for kept in subsets(people):
        for k in range(len(people) - len(kept), len(people) + 1):
            levels[k] = min(levels[k], f(kept))
    return tuple(levels)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("f", MONOTONE)
@settings(max_examples=40, deadline=None)
@given(people=PEOPLE)
def test_the_search_finds_the_best_removals(f, people):
    expected = defined_profile(f, people)
    assert Monotone(f, people).profile(len(people)).values == expected
    assert Monotone(f, people).profile(2).values == expected[:3]


def test_the_limit_counts_evaluations_and_its_error_shows_nothing():
    # All sets of 12 people are within a limit of 2^12, whatever the function.
    twelve = [(7654321 + i % 5, i) for i in range(12)]
    assert len(Monotone(distinct, twelve, limit=1 << 12).profile(12).values) == 13
    with pytest.raises(ValueError, match=r"^Monotone: limit must be at least .* not 1000") as error:
        Monotone(distinct, twelve, limit=1000).profile(12)
    assert "7654321" not in str(error.value)


def top_profile(people):
    """Yield the profile of `total`: the rest after the k largest people are gone."""
    sums = sorted(map(sum, people))
    for k in range(len(sums) + 1):
        yield sum(sums[: len(sums) - k])


# ----------------------------------------------------------------------------------- in a worker


def raises(people):
    raise RuntimeError(f"secret {people}")


def raises_in_the_middle(people):
    yield 5
    raise KeyError(people)


FAILURES = {
    "raises": raises,
    "raises in the middle": raises_in_the_middle,
    "NaN": lambda people: [5, math.nan],
    "increases": lambda people: [5, 6],
    "nothing": lambda people: [],
    "no list": lambda people: None,
    "text": lambda people: "54",
    "recursion": lambda people: FAILURES["recursion"](people),
}


@pytest.mark.parametrize("function", FAILURES.values(), ids=FAILURES)
def test_a_failing_profile_function_becomes_the_public_constant(function, capsys):
    assert GuardedProfile(function, 5, lowest=2)([(7654321,)]) == Profile([2])
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


@settings(max_examples=40, deadline=None)
@given(people=PEOPLE, removals=st.integers(0, 9))
def test_a_guarded_profile_gives_what_the_function_gives(people, removals):
    expected = Monotone(total, people).profile(removals)
    assert GuardedProfile(top_profile, removals)(people) == expected


def losses(profile):
    """Return the loss of every number that the profiles below have, and of one below all."""
    return [sum(level > y for level in profile.values) for y in range(-1, 30)]


WRONG_CLAIMS = {
    "two levels for each person": lambda people: [9] * (1 + 2 * len(people)),
    "fewer levels for more people": lambda people: [9] * max(1, 5 - len(people)),
    "one person is worth two": lambda people: [9 if 2 * len(people) > k else 0 for k in range(9)],
    "falls with more people": lambda people: [9 - len(people)] * 4,
    "fails of nobody": lambda people: [20, 10, 7, 0][-1 - len(people) :] if people else 1 / 0,
}


@pytest.mark.parametrize("name", WRONG_CLAIMS)
def test_a_profile_that_cannot_follow_from_that_of_nobody_is_none(name):
    """The loss is then that of `lowest`; so is one whose length moves by more than one a person."""
    guarded = GuardedProfile(WRONG_CLAIMS[name], 8, lowest=-5)
    nobody, found = guarded([]), [guarded([(1,)] * size) for size in range(1, 4)]
    assert found[0] == Profile([-5])
    for people, profile in enumerate(found, 1):
        moved = zip(losses(nobody), losses(profile), strict=True)
        assert profile == Profile([-5]) or all(0 <= b - a <= people for a, b in moved)


RIGHT_CLAIMS = {
    "one level more": lambda people: [*range(len(people), -1, -1)],
    "no level of nobody": lambda people: sorted(map(sum, people), reverse=True),
    "always as many": lambda people: [max(0, len(people) - k) for k in range(9)],
    "cut short": lambda people: [*range(len(people), -1, -1)][:3],
    "ends in -inf": lambda people: [*[3] * len(people), *[-math.inf] * (7 - len(people))],
}


@pytest.mark.parametrize("removals", [0, 1, 3, 20])
@pytest.mark.parametrize("name", RIGHT_CLAIMS)
def test_a_profile_that_keeps_its_claim_comes_through(name, removals):
    function, people = RIGHT_CLAIMS[name], [(3,), (1,), (4,), (1,), (5,)]
    assert check_interlacing(lambda given: function(given) or [-math.inf], people) is None
    for size in range(1, 6):
        expected = Profile(function(people[:size])[: removals + 1])
        assert GuardedProfile(function, removals)(people[:size]) == expected


# ----------------------------------------------------------------------------------- the records


@pytest.mark.parametrize(
    "record",
    [Monotone(total, [(1,), (2,)], limit=50), GuardedProfile(top_profile, 4, 1)],
    ids=["Monotone", "GuardedProfile"],
)
def test_records_survive_pickling_and_cannot_be_changed(record):
    assert pickle.loads(pickle.dumps(record)) == record
    with pytest.raises(AttributeError):
        record.limit = 7


def test_a_forged_record_is_refused_where_it_arrives():
    forged = pickle.loads(pickle.dumps(GuardedProfile(top_profile, 4)))
    object.__setattr__(forged, "removals", -1)
    sent = pickle.dumps(forged)
    with pytest.raises(ValueError, match="removals must be an int of at least"):
        pickle.loads(sent)


def test_no_repr_shows_a_record():
    shown = repr(Monotone(total, [(7654321,)]))
    assert "7654321" not in shown + repr(GuardedProfile(top_profile, 3))


def test_numbers_are_compared_exactly():
    levels = {2: 2**53 + 1, 1: float(2**53), 0: Fraction(2**54 - 1, 2)}
    found = Monotone(lambda people: levels[len(people)], [(), ()]).profile(2).values
    assert found == (2**53 + 1, 2**53, Fraction(2**54 - 1, 2))


def one(people):
    return 1


TYPES = [
    (lambda: Monotone(3, []), "Monotone: f must be a function of people, not 3"),
    (lambda: Monotone(one, {"a": [1]}), r"Monotone: people must be a list .*people.values\(\)"),
    (lambda: Monotone(one, 7), "Monotone: people must be a list"),
    (lambda: Monotone(one, [], limit=2.0), "Monotone: limit must be an int"),
    (lambda: Monotone(one, []).profile(True), "Monotone.profile: removals must be an int"),
    (lambda: Monotone(lambda p: None, []).profile(1), "Monotone: f must return real numbers"),
    (lambda: Monotone(lambda p: True, []).profile(1), "not bool"),
    (lambda: Monotone(lambda p: np.timedelta64(1, "ns"), []).profile(1), "not timedelta64"),
    (lambda: GuardedProfile(None, 3), "GuardedProfile: function must be a function"),
    (lambda: GuardedProfile(one, 3.0), "GuardedProfile: removals must be an int"),
    (lambda: GuardedProfile(one, 3, None), "GuardedProfile: lowest must be a real number"),
]
VALUES = [
    (lambda: Monotone(one, [], limit=0), "Monotone: limit must be an int of at least 1, not 0"),
    (lambda: Monotone(one, []).profile(-1), "removals must be an int of at least 0, not -1"),
    (lambda: Monotone(lambda p: math.nan, []).profile(1), "Monotone: f must return numbers, not"),
    (lambda: Monotone(lambda p: np.float32("nan"), []).profile(1), "not NaN"),
    (lambda: GuardedProfile(one, -1), "GuardedProfile: removals must be an int of at least 0"),
]


@pytest.mark.parametrize(("call", "message"), TYPES)
def test_wrong_types_are_refused(call, message):
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize(("call", "message"), VALUES)
def test_wrong_values_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


class Own(BaseException):
    """What no handler of `Exception` sees."""


@pytest.mark.parametrize("kind", [Own, KeyboardInterrupt, GeneratorExit, SystemExit])
def test_nothing_that_a_function_raises_comes_out(kind: type[BaseException]) -> None:
    def tells(people: object) -> list[int]:
        raise kind(f"a canary: {people}")

    assert GuardedProfile(tells, 3, -1)(((7,),)).values == Profile((-1,)).values
    assert compared_values.judged([7], tells).tolist() == [0]
