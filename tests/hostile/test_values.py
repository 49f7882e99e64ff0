"""Section D of the table of bad inputs: values."""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.numerics import integers
from tests.hostile import support
from tests.hostile.support import Case, Content, Hostile, as_batch, as_dict

MILLION = 10**6
TOP = integers.WIDEST - 1
INT64 = 2**63 - 1

CASES = [
    Case("50 nan", float("nan"), None, pa.array([float("nan")])),
    Case("50 float32 nan", np.float32("nan"), None, pa.array([np.float32("nan")], pa.float32())),
    Case("50 decimal nan", Decimal("NaN"), None),
    Case("50 signalling nan", Decimal("sNaN"), None),
    Case("51 inf", float("inf"), TOP, pa.array([float("inf")])),
    Case("51 minus inf", float("-inf"), -TOP, pa.array([float("-inf")])),
    Case("51 float32 inf", np.float32("inf"), TOP, pa.array([np.float32("inf")], pa.float32())),
    Case("51 decimal inf", Decimal("-Infinity"), -TOP),
    Case("53 minus zero", -0.0, 0, pa.array([-0.0])),
    Case("53 subnormal", 5e-324, 0, pa.array([5e-324])),
    Case("54 int8", np.int8(127), 127 * MILLION, pa.array([127], pa.int8())),
    Case("54 int64", np.int64(INT64), INT64 * MILLION, pa.array([INT64])),
    Case("54 least int64", np.int64(-INT64 - 1), (-INT64 - 1) * MILLION, pa.array([-INT64 - 1])),
    Case("55 uint64", np.uint64(2**64 - 1), (2**64 - 1) * MILLION, pa.array([2**64 - 1], pa.uint64())),
    Case("55 ten to the 3000", 10**3000, TOP),
    Case("55 minus ten to the 3000", -(10**3000), -TOP),
    Case("55 minus ten to the 40", -(10**40), -TOP),
    Case("55 decimal", Decimal("1E+999999"), TOP),
    Case("55 small decimal", Decimal("-1E-999999"), 0),
    Case("55 decimal256", Decimal(10**60), TOP, pa.array([Decimal(10**60)], pa.decimal256(70, 0))),
    Case("56 bool", True, None),
    Case("56 np.bool", np.bool_(True), None),
    Case("56 decimal", Decimal("1.5"), 1_500_000, pa.array([Decimal("1.5")], pa.decimal128(38, 20))),
    Case("56 negative scale", Decimal("12E2"), 1200 * MILLION, pa.array([Decimal("12E2")], pa.decimal128(5, -2))),
    Case("56 fraction", Fraction(1, 4), 250_000),
    Case("56 text", "5", None),
    Case("56 underscore", "1_000", None),
    Case("56 spaces", " 1 ", None),
    Case("56 arabic", "١٢", None),
    Case("56 infinity", "infinity", None),
    Case("56 nan text", "nan", None),
    Case("57 complex", 1j, None),
    Case("57 bytes", b"5", None),
    Case("57 list", [5], None),
    Case("57 none", None, None, pa.nulls(1)),
    Case("57 null", None, None, pa.array([None], pa.float64())),
    Case("57 null decimal", None, None, pa.array([None], pa.decimal128(5, 2))),
    Case("57 not a time", np.datetime64("NaT"), None),
    Case("57 no duration", np.timedelta64("NaT", "s"), None),
    Case("57 masked", np.ma.masked, None),
    Case("57 array", np.array([5]), None),
    Case("57 hostile", Hostile(), None),
    Case("64 float32", np.float32(16777216), 16777216 * MILLION, pa.array([16777216.0], pa.float32())),
    Case("64 float16", np.float16(1.5), 1_500_000, pa.array(np.array([1.5], np.float16))),
    Case("64 dictionary", 2.5, 2_500_000, pa.array([2.5]).dictionary_encode()),
]  # fmt: skip
PAIRS = support.expressible(CASES)


def build(case: Case, value: object) -> Sequence[object]:
    return "bad", case.name, value


@pytest.fixture(scope="module")
def found() -> dict[str, dict[Any, Content]]:
    """What one pipeline per form leaves of all cases, each beside a good row of value 1."""
    good = [as_dict(("good", case.name, 1.0)) for case in CASES]
    return {
        form: support.contents([*good, *support.rows_of(CASES, form, build)])
        for form in support.ALL_FORMS
    }


@pytest.mark.parametrize(("case", "form"), PAIRS, ids=support.names(PAIRS))
def test_a_value_adds_what_it_is_or_is_absent(
    case: Case, form: str, found: dict[str, dict[Any, Content]]
) -> None:
    adds, valid = (0, 0) if case.kept is None else (case.kept, 1)
    assert found[form][(case.name,)] == Content(2, 2, MILLION + adds, 1 + valid)


def total(values: Sequence[object], person: Any = "one") -> Content:
    return support.contents([as_dict((person, "day", value)) for value in values])[("day",)]


def test_52_both_infinities_are_no_nan() -> None:
    assert total([math.inf, -math.inf, 3.0]) == Content(1, 3, 3 * MILLION, 3)


def test_54_64_narrow_integers_and_floats_do_not_wrap() -> None:
    assert total([np.int8(127)] * 3).total == 381 * MILLION
    assert total([np.int64(INT64)] * 3).total == 3 * INT64 * MILLION
    assert total([np.float32(16777216), np.float32(1)]).total == 16777217 * MILLION
    batch = as_batch((pa.array([1] * 3), pa.array(["day"] * 3), pa.array([127] * 3, pa.int8())))
    assert support.contents([batch])[("day",)].total == 381 * MILLION


def test_58_order_and_cuts_change_nothing() -> None:
    values = [0.1, 1e15, -1e15, 2.7, 1 << 60, -(1 << 60), Decimal("0.3"), 1e-6] * 5
    expected = total(values)
    assert total(values[::-1]) == total(sorted(values)) == expected
    batches = [
        as_batch(("one", "day", value)) for value in values if not isinstance(value, Decimal)
    ]
    rest = [as_dict(("one", "day", value)) for value in values if isinstance(value, Decimal)]
    assert support.contents([*batches, *rest])[("day",)] == expected


def test_59_a_large_number_and_a_thousand_ones() -> None:
    for large in (2**53, float(2**53), np.int64(2**53), Decimal(2**53)):
        assert total([large, *[1] * 1000]).total == (2**53 + 1000) * MILLION
        assert total([*[1.0] * 1000, large]).total == (2**53 + 1000) * MILLION


def test_60_the_clip_is_inclusive_and_holds_one_ulp_above_it() -> None:
    measure = support.MEASURES[2]
    exactly, above = 1 << 20, (1 << 20) + 1
    bucket = type(measure)(0, 1, (1 << 19, 1 << 20, 1 << 21)).buckets(np.array([exactly, above]))
    assert bucket.tolist() == [1, 2]


def release(rows: list[object], *metrics: Any, **options: Any) -> list[Any]:
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        transform = dp.PrivateAggregate("person", list(metrics), dp.Budget(1.0), **options)
        return support.keep(support.start(pipeline, rows) | transform)


METRICS = [dp.Mean("value"), dp.Mean("value", per="person", name="mean_person"), dp.Max("value")]
METRICS += [dp.Min("value"), dp.Sum("value"), dp.Sum("value", one_sided=True, name="one_sided")]


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


def test_61_the_price_of_a_sum_does_not_depend_on_where_values_lie() -> None:
    """One person more moves the clipped sum by at most the clip, not by a range of values."""
    rows = [as_dict((person, "day", 1000.0)) for person in range(5)]
    more = [*rows, as_dict(("one more", "day", 1000.0))]
    before, after = support.contents(rows)[("day",)], support.contents(more)[("day",)]
    assert after.total - before.total == 1000 * MILLION
    assert after.people - before.people == 1


def test_rows_bound_and_absent_values() -> None:
    rows = [as_dict((1, "day", None))] * 3 + [as_dict((1, "day", 2.0))] * 3
    found = support.contents(rows, ContributionBounds(1, 6))[("day",)]
    assert found == Content(1, 6, 6 * MILLION, 3)
