"""ShiftedInverse releases one statistic by the search that was asked for."""

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that

import beam_dp as dp

# With epsilon 60 for one partition a search passes over its shift but for e^-30: no false alarms.
PLENTY = dp.Budget(60.0)
ROWS = [{"person": n, "value": n % 50, "day": "a"} for n in range(2000)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("statistic", "column", "low", "high", "search"),
    [
        (dp.Max("value"), "max_value", 49, 49, dp.AboveThreshold),
        (dp.Min("value"), "min_value", 0, 0, dp.ExponentialMechanism),
        (dp.Count(), "count", 1900, 2000, dp.NoisyBinarySearch),
        (dp.Sum("value"), "sum_value", 44000, 49000, dp.AboveThreshold),
    ],
)
def test_the_released_value_lies_where_the_guarantee_says(
    statistic: object, column: str, low: int, high: int, search: type
) -> None:
    release = dp.ShiftedInverse(
        statistic,
        "person",
        PLENTY,
        candidates=dp.Candidates.linear(0, 50_000, 1),
        search=search,
        beta=1e-12,
    )

    def check(released: list[beam.Row]) -> None:
        [row] = released
        assert low <= getattr(row, column) <= high

    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        assert_that(pipeline | beam.Create(ROWS) | release, check)
        assert release.record().element_type is dict


def test_the_options_of_the_statistic_hold_unless_others_are_given() -> None:
    statistic = dp.Max("value", search=dp.ExponentialMechanism, beta=0.01)
    own = dp.ShiftedInverse(statistic, "person", PLENTY).plan()
    assert "ExponentialMechanism" in str(own)
    other = dp.ShiftedInverse(statistic, "person", PLENTY, search=dp.AboveThreshold).plan()
    assert "AboveThreshold" in str(other)
    looser, tighter = (
        dp.ShiftedInverse(statistic, "person", dp.Budget(1.0), beta=beta).plan().rows[0].shift
        for beta in (0.5, None)
    )
    assert looser < tighter


def test_the_number_of_people_needs_no_search() -> None:
    with pytest.raises(
        TypeError,
        match="statistic must be Count, Sum, Max, Min, KthLargest, DistinctCount, MaxFrequency, ",
    ):
        dp.ShiftedInverse(dp.PeopleCount(), "person", PLENTY)
