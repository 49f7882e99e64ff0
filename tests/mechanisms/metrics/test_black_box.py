"""Black boxes and the votes of their blocks: one person changes one vote, and what that costs."""

import itertools
import math
import sys
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.metrics import own_function
from beam_dp.mechanisms.search.quantiles.middle_quantile import CentralSearch
from beam_dp.mechanisms.search.quantiles.node import Node
from beam_dp.mechanisms.summaries import block_votes
from beam_dp.mechanisms.summaries.block_votes import BlockRelation
from beam_dp.mechanisms.summaries.owner_lines import Owned
from tests import laws
from tests.sizes import tries as sized

ROUNDING = 1e-9
SIZES = (2, 3)


def neighbours(size):
    """Return all pairs of up to 4 votes for `size` candidates of which one changes, comes or goes."""
    for count in range(4):
        for rest in itertools.combinations_with_replacement(range(size), count):
            ways = [rest, *((*rest, vote) for vote in range(size))]
            yield from itertools.permutations(ways, 2)


def worst(search, size, of=max):
    """Return the largest ln P_x(o) / P_x'(o), or another number of these, over all neighbours."""
    candidates = Candidates.of(range(size))

    def chances(votes):
        return laws.chances_at(
            search, Node.of(np.array(votes), np.ones(len(votes), np.int64), size), candidates
        )

    known = {
        votes: chances(votes) for votes in {each for pair in neighbours(size) for each in pair}
    }
    return max(
        of([math.log(p / q) for p, q in zip(known[one], known[other], strict=True)])
        for one, other in neighbours(size)
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_exchanging_a_vote_costs_the_budget_exactly_audited(epsilon, size):
    assert worst(own_function.search_of(Budget(epsilon)), size) <= epsilon + ROUNDING
    # The search that a comer or a goer costs epsilon: the audit must notice it.
    twin = CentralSearch(Budget(epsilon), resolution=1)
    assert size == 2 or epsilon < 3 or worst(twin, size) > epsilon * 1.05


@pytest.mark.parametrize("rho", [0.02, 0.5])
def test_under_zcdp_the_exchange_has_the_bounded_range_of_rho(rho):
    search = own_function.search_of(Budget.zcdp(rho))
    twin, most = CentralSearch(Budget.zcdp(rho), resolution=1), math.sqrt(8 * rho)
    assert worst(search, 3, lambda logs: max(logs) - min(logs)) <= most + ROUNDING
    assert worst(twin, 3, lambda logs: max(logs) - min(logs)) > most * 1.05


def relation(function, count=7, **options):
    given = {
        "person_value": "mean",
        "unit": Fraction(1, 4),
        "candidates": Candidates.of(range(100)),
    }
    return BlockRelation(0, blocks=count, function=function, **{**given, **options})


def owned(rows):
    """Return lines of (partition, person, value in units, rows)."""
    partition, person, item, count = (np.array(column, np.int64) for column in zip(*rows))
    places = np.zeros(len(rows), np.int64)
    owner = person[None].view(np.uint64)
    return Owned(
        partition=partition[None].view(np.uint64),
        relation=places,
        person=owner,
        item=item,
        count=count,
    )


def voted(function, rows, **options):
    """Return {(partition, block): place of a candidate}."""
    if not rows:
        return {}
    made = relation(function, **options)
    votes = made.votes(owned(rows), lambda: function)
    return dict(
        zip(zip(votes.partition[0].tolist(), votes.person[0].tolist()), votes.item.tolist())
    )


def wild(values):
    """Return something without any continuity."""
    return hash(values.tobytes()) % 97 if len(values) % 5 else "none"


def in_ranges(rows, count=7):
    """Return votes of a wrong way to make blocks: by the rank of a value."""
    ordered = np.sort([value for _, _, value, _ in rows]) / 4
    return {n: wild(part) for n, part in enumerate(np.array_split(ordered, count))}


def changed(one, other):
    return [key for key in {*one, *other} if one.get(key) != other.get(key)]


@sized(60, 1000)
def test_one_person_changes_one_vote_of_a_partition(tries):
    rng = np.random.default_rng(7)
    moved, twin = Counter(), Counter()
    for _ in range(tries):
        people = rng.integers(1, 40)
        rows = [
            (partition, 1000003 * person, int(value), int(copies))
            for person in range(people)
            for partition in range(2)
            for value, copies in zip(rng.integers(-50, 50, 3), rng.integers(1, 4, 3))
        ]
        gone = 1000003 * rng.integers(people)
        rest = [row for row in rows if row[1] != gone]
        found = changed(voted(wild, rows), voted(wild, rest))
        moved[len(found)] += 1
        assert {block for _, block in found} <= {gone % 7} and len(found) <= 2
        twin[len(changed(in_ranges(rows), in_ranges(rest))) > 1] += 1
    assert moved[2] > tries / 3 and twin[True] > tries / 3


def test_votes_are_the_function_of_the_numbers_of_each_block_in_order():
    seen = []

    def function(values):
        seen.append(values.tolist())
        values[:] = 0  # its own copy
        return 200.5 if len(values) == 2 else 2.5

    rows = [(0, 0, 8, 1), (0, 7, 4, 3), (0, 7, 0, 1), (0, 1, 12, 1), (3, 1, 12, 2)]
    assert voted(function, rows) == {(0, 0): 99, (0, 1): 3, (3, 1): 3}
    assert seen == [[0.75, 2.0], [3.0], [3.0]]
    assert voted(len, rows, person_value="max") == {(0, 0): 2, (0, 1): 1, (3, 1): 1}


class Leaving(BaseException):
    """Nothing that a handler of Exception would catch."""


class Number(float):
    """A number that does things when it is asked for its class."""

    @property
    def __class__(self):
        raise Leaving("canary")


def raising(error):
    def function(values):
        raise error(f"canary {values}")

    return function


def endless(values):
    return endless(values)


HOSTILE = {
    "error": raising(ValueError),
    "exit": raising(SystemExit),
    "own": raising(Leaving),
    "sys.exit": lambda values: sys.exit(str(values)),
    "recursion": endless,
    "huge array": lambda values: np.zeros(1 << 60),
    "nothing": lambda values: None,
    "text": lambda values: "canary",
    "bool": lambda values: True,
    "nan": lambda values: math.nan,
    "infinity": lambda values: -math.inf,
    "array": lambda values: values,
    "complex": lambda values: 1j,
    "beyond floats": lambda values: 10**400,
    "class": lambda values: Number(3.0),
}


@pytest.mark.parametrize("function", HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_finite_number_is_no_vote_and_surfaces_nowhere(function, capfd):
    assert voted(function, [(0, 1, 4, 1), (0, 2, 8, 1)]) == {}
    assert capfd.readouterr() == ("", "")


def test_a_function_that_cannot_be_made_anew_has_no_votes():
    def broken():
        raise ImportError("canary")

    votes = relation(len).votes(owned([(0, 1, 4, 1)]), broken)
    assert len(votes) == 0
    assert block_votes.vote_of(lambda: len, np.zeros(3)) == 3.0
