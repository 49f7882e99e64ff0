"""Section B of the table of bad inputs: person identifiers."""

import datetime
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from tests.hostile import support
from tests.hostile.support import Case, Content, Hostile

# Two good people are in every partition; a third one comes from the case, or does not.
GOOD = Content(2, 2, 2_000_000, 2)
MORE = Content(3, 3, 7_000_000, 3)
A_DATE = datetime.date(2020, 1, 2)

CASES = [
    Case("23 none", None, False, pa.nulls(1)),
    Case("23 null integer", None, False, pa.array([None], pa.int64())),
    Case("23 null text", None, False, pa.array([None], pa.string())),
    Case("23 nan", float("nan"), False),
    Case("24 one", 1, True, pa.array([1])),
    Case("24 true", True, True, pa.array([True])),
    Case("24 float", 1.0, True, pa.array([1.0])),
    Case("25 zero", 0.0, True, pa.array([0.0], pa.float16())),
    Case("25 minus zero", -0.0, True, pa.array([-0.0]).dictionary_encode()),
    Case("25 float32", np.float32(1), True, pa.array([1], pa.float32())),
    Case("25 no whole float", 1.5, False),
    Case("25 float past 53 bits", 2.0**53, False),
    Case("25 float32 past 24 bits", np.float32(1 << 24), False),
    Case("26 text", "a", True, pa.array(["a"])),
    Case("26 bytes", b"a", False),
    Case("27 composed", "\u00e9", True, pa.array(["\u00e9"])),
    Case("27 trailing space", "a ", True, pa.array(["a "])),
    Case("28 empty", "", True, pa.array([""])),
    Case("29 lone surrogate", "\ud800", False),
    Case("29 invalid utf-8", b"\xff\xfe", False, None),
    Case("30 nul", "a\0b", True, pa.array(["a\0b"])),
    Case("30 newline tab comma", "a\n\t,", True, pa.array(["a\n\t,"])),
    Case("30 one megabyte", "x" * (1 << 20), True, pa.array(["x" * (1 << 20)])),
    Case("31 past 64 bits", 1 << 70, True, pa.array([Decimal(1 << 70)], pa.decimal128(38, 0))),
    Case("31 uint64", (1 << 64) - 1, True, pa.array([(1 << 64) - 1], pa.uint64())),
    Case("31 past 4096 bits", 10**3000, False),
    Case("32 np.int64", np.int64(7), True, pa.array([7], pa.int32())),
    Case("32 np.str", np.str_("seven"), True, pa.array(["seven"], pa.string_view())),
    Case("32 decimal", Decimal(7), True, pa.array([Decimal(7)], pa.decimal128(5, 0))),
    Case("32 fraction of a decimal", Decimal("7.5"), False),
    Case("32 uuid", uuid.UUID(int=7), True, pa.array([str(uuid.UUID(int=7))])),
    Case("32 date", A_DATE, True, pa.array([A_DATE], pa.date64())),
    Case("32 datetime", datetime.datetime(2020, 1, 2), False),
    Case("32 timedelta64", np.timedelta64("NaT"), False),
    Case("32 dictionary", "d", True, pa.array(["d"]).dictionary_encode()),
    Case("32 large text", "l", True, pa.array(["l"], pa.large_string())),
    Case("33 hostile", Hostile(), False),
    Case("34 list", [1], False),
    Case("34 dict", {"a": 1}, False),
    Case("34 tuple", (1,), False),
    Case("34 array", np.array([1, 2]), False),
]  # fmt: skip
PAIRS = support.expressible(CASES)


def build(case: Case, value: object) -> Sequence[object]:
    return value, case.name, 5.0


@pytest.fixture(scope="module")
def found() -> dict[str, dict[Any, Content]]:
    """What one pipeline per form leaves of all cases together."""
    good = [(f"good {n}", case.name, 1.0) for case in CASES for n in (1, 2)]
    return {
        form: support.contents([*map(support.as_dict, good), *support.rows_of(CASES, form, build)])
        for form in support.ALL_FORMS
    }


@pytest.mark.parametrize(("case", "form"), PAIRS, ids=support.names(PAIRS))
def test_a_person_counts_or_vanishes(
    case: Case, form: str, found: dict[str, dict[Any, Content]]
) -> None:
    assert found[form][(case.name,)] == (MORE if case.kept else GOOD)


def test_38_identical_rows_are_rows_inside_the_bounds() -> None:
    rows = [support.as_dict((1, "a", 2.0))] * 10
    assert support.contents(rows)[("a",)] == Content(1, 10, 20_000_000, 10)
    assert support.contents(rows, ContributionBounds(1, 3))[("a",)] == Content(1, 3, 6_000_000, 3)
    assert support.contents(rows, ContributionBounds(1, None, 4))[("a",)].rows == 4
