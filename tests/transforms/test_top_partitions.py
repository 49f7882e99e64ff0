"""The k largest of the released partitions: by brute force, in a pipeline, and as its page says."""

import math
from collections.abc import Callable

import apache_beam as beam
import pytest

import beam_dp as dp
from beam_dp.transforms import partitions
from tests.hostile import support

# Day d has d people, from d1 to d8; nobody is in two.
ROWS = [{"p": f"{day}/{n}", "day": f"d{day}", "x": 1} for day in range(1, 9) for n in range(day)]


def test_it_keeps_the_largest_and_a_row_without_a_number_is_below_all() -> None:
    rows = [beam.Row(d=d, x=x) for d, x in zip("abcdef", [3, math.nan, 7.5, -math.inf, 3, None])]
    ordered = sorted(rows, key=lambda row: partitions._place(row, "x"))
    assert "".join(row.d for row in ordered) == "bdfaec"


def days(transform: beam.PTransform, **options: object) -> list[str]:
    """Return the days that are kept, of a release that adds no noise but with e^-100."""
    public = dp.PublicPartitions([f"d{day}" for day in range(1, 9)])
    metrics = [dp.PeopleCount(), dp.Max("x")]
    release = dp.PrivateAggregate(
        "p", metrics, dp.Budget(400.0), ["day"], dp.ContributionBounds(1), public, **options
    )
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        kept = support.keep(pipeline | beam.Create(ROWS) | "A" >> release | "B" >> transform)
    return sorted(row.day for row in kept)


def test_in_a_pipeline() -> None:
    assert days(dp.TopPartitions(3, by="people_count")) == ["d6", "d7", "d8"]
    assert days(dp.TopPartitions(2, by="people_count_low")) == ["d7", "d8"]
    assert len(days(dp.TopPartitions(99, by="people_count"))) == 8


WRONG: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: dp.TopPartitions(0, "x"), ValueError, "k must be an int of at least 1"),
    (lambda: dp.TopPartitions(1, ""), TypeError, "by must be the name of a column"),
    (lambda: days(dp.TopPartitions(1, "count")), ValueError, "one of the numbers people_count, "),
    (
        lambda: days(dp.TopPartitions(1, "people_count"), batches=True),
        ValueError,
        "by must be one of the numbers of rows, not of batches",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), WRONG)
def test_wrong_parameters_are_refused_when_the_pipeline_is_built(
    call: Callable[[], object], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=f"TopPartitions: .*{message}"):
        call()
