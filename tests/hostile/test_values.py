"""Section D of the table of bad inputs: values."""

import math
from typing import Any

import pytest

import beam_dp as dp
from tests.hostile import support
from tests.hostile.support import as_dict


def release(rows: list[object], *metrics: Any, **options: Any) -> list[Any]:
    transform = dp.PrivateAggregate("person", list(metrics), dp.Budget(1.0), **options)
    return support.released(rows, transform)


METRICS = [dp.Mean("value"), dp.Mean("value", per="person", name="mean_person"), dp.Max("value")]
METRICS += [
    dp.Min("value"),
    dp.Sum("value"),
    dp.Sum("value", search=dp.AboveThreshold, name="one_sided"),
]


@pytest.mark.sampled(16)
@pytest.mark.parametrize("size", [0, 1, 50])
@pytest.mark.parametrize("value", [None, 0.0, 7.0, math.inf, 10**3000], ids=lambda v: str(v)[:9])
def test_62_63_means_and_extremes_are_well_formed(size: int, value: object) -> None:
    [row] = release([as_dict((person, "day", value)) for person in range(size)], *METRICS)
    for metric in METRICS:
        released = getattr(row, metric.output)
        # NaN where too few people are for a search or a clip: documented, and private as a number.
        blank = math.isnan(released)
        assert type(released) is float and (math.isfinite(released) or blank)
        low, high = (getattr(row, f"{metric.output}_{end}") for end in ("low", "high"))
        assert low <= high and (blank or low <= released <= high)
        assert not blank or (low, high) == (-math.inf, math.inf)
