"""Section D of the table of bad inputs: values."""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.numerics import integers
from tests.hostile import support
from tests.hostile.support import Case, Content, Hostile, as_dict

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


def test_rows_bound_and_absent_values() -> None:
    rows = [as_dict((1, "day", None))] * 3 + [as_dict((1, "day", 2.0))] * 3
    found = support.contents(rows, ContributionBounds(1, 6))[("day",)]
    assert found == Content(1, 6, 6 * MILLION, 3)
