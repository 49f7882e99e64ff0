"""What is unreliable is suppressed, by one rule for the release, the table, the page and the
file."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.beam_yaml import mappings
from beam_dp.results.shown_numbers import shown
from beam_dp.transforms.suppress_unreliable import doubtful, kept

NAN, INF = math.nan, math.inf
CASES = [
    # value, low, high, doubtful
    (100, 60, 150, False),
    (100, 50, 150, True),  # as wide as the number
    (-100, -120, -90, False),
    (0, -1, 1, True),
    (0, 0, 0, True),
    (100, 99, INF, True),  # open
    (NAN, NAN, NAN, True),
    (INF, INF, INF, True),
    (2**63 - 1, 2**62 + 2**61, 2**63 - 1, False),
]


@pytest.mark.parametrize(("value", "low", "high", "expected"), CASES)
def test_the_table_marks_what_the_rule_empties(value, low, high, expected) -> None:
    assert shown(value, low, high).is_doubtful == expected
    columns = [np.array([each], float) for each in (value, low, high)]
    [number, *_] = kept(columns, [dp.Sum("x")], dp.SuppressUnreliable(), False, set())
    assert bool(np.isnan(number[0])) == expected


def test_shares_and_open_sides_of_largest_numbers_have_their_own_measure() -> None:
    assert doubtful(0.01, 0.0, 0.2) and not doubtful(0.01, 0.0, 0.2, share=True)
    assert doubtful(0.5, 0.3, 0.6, share=True) and doubtful(0.0, 0.0, 0.345, share=True)
    assert not doubtful(50, 49, INF, one_sided=True) and doubtful(50, NAN, INF, one_sided=True)
    for beyond in (None, 9):
        expected = bool(doubtful(50, 49, NAN, one_sided=beyond is not None))
        assert shown(50, 49, None, beyond=beyond).is_doubtful == expected


def test_beyond_and_below_are_limits_of_released_numbers() -> None:
    metrics = [dp.PeopleCount(), dp.Median("x"), dp.Ratio("c")]
    people = [np.array([200, 99, 400]), np.array([190.0, 98, 200]), np.array([210.0, 100, 600])]
    median = [np.array([5.0, 6, 7]), np.array([3.0, 2, INF])]
    share = [np.array([0.1, 0.1, 0.9]), np.array([0.0, 0.0, 0.8]), np.array([0.2, 0.2, 1.0])]
    rule = dp.SuppressUnreliable(beyond=0.25, below={"people_count": 100})
    found = kept([*people, *median, *share], metrics, rule, False, set())
    rows = list(zip(*(column.tolist() for column in found), strict=True))
    assert rows[0] == (200, 190, 210, 5, 3, 0.1, 0, 0.2) and type(rows[0][0]) is int
    assert rows[1][0] is None and all(map(math.isnan, rows[1][1:]))  # too few people
    assert rows[2][0] is None and math.isnan(rows[2][3]) and rows[2][5:] == (0.9, 0.8, 1.0)


def test_negative_numbers_and_ends_become_0() -> None:
    columns = [np.array([-3, 5]), np.array([-9.0, 2]), np.array([1.0, -INF])]
    found = kept(columns, [dp.Count()], None, True, set())
    assert [column.tolist() for column in found] == [[0, 5], [0, 2], [1, 0]]
    assert found[0].dtype == np.int64


def test_an_interval_below_0_moves_with_its_number() -> None:
    columns = [np.array([-6.0, -6.0]), np.array([-9.0, -INF]), np.array([-2.0, INF])]
    ranks = [np.array([-6.0, 7.0]), np.array([3.0, INF])]
    asked = [dp.Median("x"), dp.Sum("x")]
    found = kept([*ranks, *columns], asked, None, True, set())
    assert [each.tolist() for each in found] == [[0, 7], [3, INF], [0, 0], [0, 0], [4, INF]]


def test_a_release_leaves_out_what_is_not_reliable_and_says_so() -> None:
    keys = np.repeat(["many", "few"], [2000, 2])
    table = pa.table({"person": np.arange(2002), "key": keys})
    released = dp.release(
        table,
        person="person",
        partition=["key"],
        metrics=[dp.Count(clip=1), dp.Sum("person", clip=1)],
        budget=dp.Budget(5.0, 1e-6),
        bounds=dp.ContributionBounds(1),
        partitions=dp.PublicPartitions(["many", "few"]),
        suppress=dp.SuppressUnreliable(below={"count": 500}),
        nonnegative=True,
    )
    cells = released.table.to_pydict()
    counts = dict(zip(cells["key"], cells["count"], strict=True))
    assert 1900 < counts["many"] < 2100 and counts.get("few") is None
    assert released.table.schema.field("count").type == pa.int64()
    assert released.record["parameters"]["suppress"]["below"] == {"count": 500}
    assert released.record["parameters"]["nonnegative"] is True
    said = "numbers were too uncertain to show, so they are empty"
    assert said in str(released) and said in released.report()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"beyond": 0}, ValueError, "SuppressUnreliable: beyond must be above 0"),
        ({"below": ["count"]}, TypeError, "SuppressUnreliable: below must be of type Mapping"),
        ({"below": {"sum_x": 3}}, ValueError, "SuppressUnreliable: below must name output columns"),
    ],
)
def test_wrong_rules_are_refused(given, error, message) -> None:
    asked = "p", [dp.Count()], dp.Budget(1.0)
    with pytest.raises(error, match=message):
        dp.PrivateAggregate(*asked, suppress=dp.SuppressUnreliable(**given))
    with pytest.raises(TypeError, match="suppress must be of type SuppressUnreliable"):
        dp.PrivateAggregate(*asked, suppress=0.25)


def test_the_mapping_says_the_same() -> None:
    given = {"beyond": "0.25", "below": {"people_count": "1e2"}}
    made = mappings.suppress_of("release", given)
    assert made == dp.SuppressUnreliable(Fraction(1, 4), {"people_count": 100})
    assert mappings.suppress_of("release", "unreliable") == dp.SuppressUnreliable()
    with pytest.raises(ValueError, match="suppress must not have the word 'witin'"):
        mappings.suppress_of("release", {"witin": 1})
    with pytest.raises(
        TypeError, match="suppress must be a mapping, not 'within 25%'.* Write suppress: unreliable"
    ):
        mappings.suppress_of("release", "within 25%")
