"""Tests of `beam_dp.transforms.columns.compared_values`."""

import datetime
import decimal
import math
import struct

import numpy as np
import pyarrow as pa
import pytest

from beam_dp.mechanisms.numerics import integers
from beam_dp.transforms.columns import compared_values

KEY = bytes(range(32))
NOTHING = [None, math.nan, math.inf, -math.inf, b"a", [1], datetime.timedelta(1), 1j]
ALIKE = [
    [17, 17.0, "17", np.float32(17), np.int8(17), decimal.Decimal(17)],
    [0, 0.0, -0.0, False, "0"],
    [1.5, np.float64(1.5), np.float32(1.5)],
    [float(-(1 << 63)), -(1 << 63)],
    ["a", np.str_("a")],
    [2.0**63, np.float64(2.0**63)],
]


def code(value):
    return int(compared_values.codes([value], KEY)[0])


def test_forms_of_one_value_are_one_item_and_what_cannot_be_compared_is_none():
    assert {code(value) for value in NOTHING} == {integers.LOWEST}
    for group in ALIKE:
        [one] = {code(value) for value in group}
        assert one >= 0


def test_different_values_have_different_codes():
    """63 random bits: equal codes of two of these 2,000 have a chance of 2^-42 at most."""
    bits = [struct.unpack("<d", struct.pack("<q", n))[0] for n in range(1, 1000)]
    values = [*bits, *(n + 0.5 for n in range(500)), *range(500), "x"]
    assert len({*compared_values.codes(values, KEY).tolist()}) == len(values)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.float64(), [1.5, 2.0, None, math.nan, -0.0, math.inf]),
        (pa.int64(), [1, None, -3]),
        (pa.string(), ["a", None, "17", ""]),
        (pa.date32(), [datetime.date(2020, 1, 2), None]),
    ],
    ids=str,
)
def test_columns_and_values_give_the_same_codes(kind, values):
    column = pa.array(values, kind)
    found = compared_values.codes(values, KEY).tolist()
    assert compared_values.codes(column, KEY).tolist() == found
    assert compared_values.codes(column.dictionary_encode(), KEY).tolist() == found


def truth(value):
    return value == "a" or value == datetime.date(2020, 1, 2) or value == 1.5


@pytest.mark.parametrize("encoded", [False, True], ids=["plain", "dictionary"])
@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(["a", None, "b", "a"]), [1, None, 0, 1]),
        (pa.array([b"a", b"\xff", None], pa.binary()).view(pa.string()), [1, None, None]),
        (pa.array([18263, 10**8, None], pa.int32()).cast(pa.date32()), [1, None, None]),
        (
            pa.array([18263 * 86_400_000, 2**62 // 86_400_000 * 86_400_000]).view(pa.date64()),
            [1, None],
        ),
        (pa.array([1.5, math.nan, None], pa.float64()), [1, None, None]),
        (pa.array(np.array([1.5, 2.0], np.float16)), [1, 0]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_a_function_judges_what_python_can_name_and_nothing_raises(column, expected, encoded):
    if encoded and not pa.types.is_float16(column.type):
        column = column.dictionary_encode()
    found = compared_values.judged(column, truth).tolist()
    assert found == [integers.LOWEST if value is None else value for value in expected]


def leave(value):
    raise SystemExit(value)


def test_a_missing_value_is_not_shown_to_a_function_and_one_that_would_end_the_process_counts_0():
    assert compared_values.judged(["4711"], leave).tolist() == [0]
    assert compared_values.judged(pa.array(["4711"]), leave).tolist() == [0]
    shown = []
    found = compared_values.judged([None, math.nan, np.float32("nan"), 0, math.inf], shown.append)
    assert found.tolist() == [integers.LOWEST] * 3 + [0, 0] and shown == [0, math.inf]


# What csv writers make of booleans and of integers: Python's, pandas' with and without missing
# values, Excel's, JavaScript's.
SAME = [
    [1, True, 1.0, "1", "1.0", "true", "True", "TRUE", np.int8(1), np.float32(1)],
    [0, False, 0.0, -0.0, "0", "0.0", "false", "False", "FALSE"],
    [-17, "-17", "-17.0", -17.0],
    [0.5, "0.5", np.float16(0.5)],
    ["yes"],
    ["Yes"],
    ["017"],
    [17, "17", 17.0, "17.0"],
    ["t"],
    ["1e0"],
    ["1.00001", 1.00001],
    [2**70, str(2**70)],
    ["2024-01-02", datetime.date(2024, 1, 2)],
]


def test_a_value_is_all_of_its_spellings_and_no_other():
    column = [value for group in SAME for value in group]
    codes = compared_values.codes(column, KEY)
    for group in SAME:
        for wanted in group:
            if type(wanted) in (int, float, bool, str, datetime.date):
                found = compared_values.equal(codes, wanted, KEY)
                assert [v for v, one in zip(column, found, strict=True) if one] == group


def test_what_no_file_says_equals_nothing():
    codes = compared_values.codes(["", "inf", "nan", None, math.inf, 10**400], KEY)
    for wanted in (math.inf, 1e300, -math.inf, "\ud800"):
        assert set(compared_values.equal(codes, wanted, KEY).tolist()) <= {0, integers.LOWEST}
