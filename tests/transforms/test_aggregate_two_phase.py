"""Two phases end to end, in pipelines on memory: with much budget they are the truth."""

import apache_beam as beam
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that

import beam_dp as dp

MUCH = dp.Budget(100_000.0)
ROWS = [
    {"a": person, "b": 1000 + person % 7, "x": person % 5, "v": float(person % 50)}
    for person in range(300)
]
METRICS = [
    dp.Max("v", search="two_phase", candidates=dp.Candidates.linear(0, 100, 1)),
    dp.Min("v", search="two_phase", candidates=dp.Candidates.linear(0, 100, 1)),
    dp.KthLargest("v", 20, search="two_phase", candidates=dp.Candidates.linear(0, 100, 1)),
    dp.MaxFrequency("x"),
    dp.SumOfSquares("x", search="two_phase"),
    dp.DistinctCount("x"),
]
TRUTH = {
    "max_v": 49, "min_v": 0, "largest_20_v": 46, "max_frequency_x": 60,
    "sum_of_squares_x": 5 * 3600, "distinct_x": 5,
}  # fmt: skip


def near(truth):
    """Return a check of one row: at epsilon 10^5 it is off by less than a person's worth."""

    def check(rows):
        [row] = rows
        found = row._asdict()
        for name, wanted in truth.items():
            slack = 0.02 * wanted + 1
            assert abs(found[name] - wanted) <= slack, (name, found[name], wanted)
            low, high = found[f"{name}_low"], found[f"{name}_high"]
            assert low <= found[name] <= high
            # At 10^5 noise is beyond ten times its bound with e^-30, and a floor beyond never.
            ten = found[name] + 10 * (low - found[name]), found[name] + 10 * (high - found[name])
            assert ten[0] <= wanted <= ten[1]

    return check


def test_all_metrics_of_one_owner():
    with TestPipeline(runner="FnApiRunner") as pipeline:
        rows = pipeline | beam.Create(ROWS)
        found = rows | dp.PrivateAggregate("a", METRICS, MUCH)
        assert_that(found, near(TRUTH))


def test_rows_of_two_owners():
    metrics = [dp.Count(search="two_phase"), dp.Sum("v", unit=1, search="two_phase")]
    metrics += [dp.DistinctCount("x", search="two_phase")]
    with TestPipeline(runner="FnApiRunner") as pipeline:
        rows = pipeline | beam.Create(ROWS)
        found = rows | dp.PrivateAggregate(["a", "b"], metrics, MUCH)
        assert_that(found, _two_owners)


def _two_owners(rows):
    [row] = rows
    # Seven people own all rows: 300 and 7,350 are reached where seven may count for everything.
    assert 0 <= row.count <= 301 and 0 <= row.sum_v <= 7351
    assert abs(row.distinct_x - 5) <= 1  # each value needs all seven to go


@pytest.mark.parametrize("metric", [m for m in METRICS if not isinstance(m, dp.MaxFrequency)])
def test_the_plan_says_so(metric):
    plan = str(dp.PrivateAggregate("a", [metric], dp.Budget(1.0)).plan())
    assert "clip for each partition, then discrete Laplace" in plan
