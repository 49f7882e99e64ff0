"""Statistics of a few people's records, against their definitions."""

import itertools
import math
from fractions import Fraction

import pytest

from beam_dp.mechanisms.numerics import exact_statistics as exact

PEOPLE = ((3, None, 5), (), (-2, -2), (None,), (5, Fraction(1, 2)))


def test_what_is_absent_counts_nowhere() -> None:
    assert list(exact.present(PEOPLE)) == [3, 5, -2, -2, 5, Fraction(1, 2)]
    assert exact.occurrences(PEOPLE) == {3: 1, 5: 2, -2: 2, Fraction(1, 2): 1}
    assert [exact.total(record) for record in PEOPLE] == [8, 0, 0, 0, Fraction(11, 2)]


def least(statistic, people, removed):
    """Return the least value of the statistic without at most so many people."""
    return min(
        statistic(tuple(person for n, person in enumerate(people) if n not in gone))
        for size in range(removed + 1)
        for gone in itertools.combinations(range(len(people)), size)
    )


STATISTICS = {
    "rows": exact.additive(len),
    "totals": exact.additive(exact.total),
    "people": exact.additive(lambda record: 1),
    "largest": exact.extreme(1),
    "smallest": exact.extreme(-1),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_a_profile_is_the_least_value_without_so_many_people(name: str) -> None:
    made = STATISTICS[name]
    for size in range(len(PEOPLE) + 1):
        people = PEOPLE[:size]
        levels = [least(made.statistic, people, k) for k in range(size + 1)]
        assert list(made.profile(people)) == levels


def test_nobody_has_no_extreme() -> None:
    for sign in (1, -1):
        assert exact.extreme(sign).statistic(()) == -math.inf
    assert exact.extreme(-1).statistic(((4,), (-7, 9))) == 7
