"""Section C of the table of bad inputs: partition keys."""

import datetime
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from apache_beam.utils.timestamp import Timestamp

import beam_dp as dp
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.transforms.columns.public_keys import PublicKeys
from tests.hostile import support
from tests.hostile.support import Case, Content, Hostile, as_dict

DAY, WIDE = datetime.date(2020, 1, 2), (1 << 64) - 1
LATE = pa.array([3_000_000], pa.int32()).cast(pa.date32())

CASES = [
    Case("45 none", None, None, pa.nulls(1)),
    Case("45 null integer", None, None, pa.array([None], pa.int64())),
    Case("45 null text", None, None, pa.array([None], pa.string())),
    Case("45 null in a dictionary", None, None, pa.array([None, "n"]).dictionary_encode()[:1]),
    Case("45 nan", float("nan"), None),
    Case("45 list", [1], None),
    Case("45 dict", {"a": 1}, None),
    Case("45 tuple", (1, 2), None),
    Case("45 integer", 45, 45, pa.array([45], pa.int16())),
    Case("45 uint64", np.uint64(46), 46, pa.array([46], pa.uint64())),
    Case("45 decimal", Decimal(47), 47, pa.array([Decimal(47)], pa.decimal128(9, 0))),
    Case("45 half", Decimal("47.5"), None),
    Case("45 text", "45", "45", pa.array(["45"])),
    Case("45 large text", "large", "large", pa.array(["large"], pa.large_string())),
    Case("45 text view", "view", "view", pa.array(["view"], pa.string_view())),
    Case("45 dictionary", "coded", "coded", pa.array(["coded"]).dictionary_encode()),
    Case("45 coded integer", 48, 48, pa.array([48]).dictionary_encode()),
    Case("45 true", True, True, pa.array([True])),
    Case("45 date", DAY, DAY, pa.array([DAY])),
    Case("45 date64", datetime.date.max, datetime.date.max, pa.array([datetime.date.max], pa.date64())),
    Case("45 date after 9999", None, None, LATE),
    Case("45 day as a datetime", datetime.datetime(2020, 1, 3), datetime.date(2020, 1, 3)),
    Case("45 datetime", datetime.datetime(2020, 1, 2, 13, 30), "2020-01-02 13:30:00"),
    Case("45 timestamp", Timestamp(1.5), "1970-01-01 00:00:01.500000"),
    Case("45 uuid", uuid.UUID(int=45), str(uuid.UUID(int=45)), pa.array([uuid.UUID(int=45).bytes], pa.uuid())),
    Case("45 surrogate", "\udfff", None),
    Case("45 past 64 bits", WIDE, str(WIDE), pa.array([WIDE], pa.uint64())),
    Case("45 wide decimal", Decimal(-WIDE), str(-WIDE), pa.array([Decimal(-WIDE)], pa.decimal128(38, 0))),
    Case("45 timedelta", np.timedelta64(1, "ns"), None),
    Case("45 hostile", Hostile(), None),
    Case("46 float", 53.0, 53, pa.array([53.0])),
    Case("46 coded float", 54.0, 54, pa.array([54.0]).dictionary_encode()),
    Case("46 minus zero", -0.0, 0, pa.array([-0.0])),
    Case("46 half a float", 0.5, None),
    Case("46 float past 53 bits", 2.0**53, None),
    Case("46 bytes", b"45", None),
    Case("46 set", {1, 2}, None),
    Case("48 path", "../x", "../x", pa.array(["../x"])),
    Case("48 formula", "=cmd|' /C calc'!A0", "=cmd|' /C calc'!A0", pa.array(["=cmd|' /C calc'!A0"])),
    Case("48 empty", "", "", pa.array([""])),
    Case("48 nul and newline", "a\0\n", "a\0\n", pa.array(["a\0\n"])),
]  # fmt: skip
PAIRS = support.expressible(CASES)


def build(case: Case, value: object) -> Sequence[object]:
    return case.name, value, 5.0


def typed(key: tuple[Any, ...]) -> tuple[type, Any]:
    return type(key[0]), key[0]


@pytest.fixture(scope="module")
def found() -> dict[str, dict[Any, Content]]:
    """What one pipeline per form leaves of all cases, and of two rows of a good person."""
    good = [as_dict(("good", "good", 1.0))] * 2
    return {
        form: {
            typed(key): content
            for key, content in support.keyed_contents(
                [*good, *support.rows_of(CASES, form, build)]
            )
        }
        for form in support.ALL_FORMS
    }


@pytest.mark.parametrize(("case", "form"), PAIRS, ids=support.names(PAIRS))
def test_a_key_is_kept_with_its_type_or_its_row_vanishes(
    case: Case, form: str, found: dict[str, dict[Any, Content]]
) -> None:
    if case.kept is not None:
        assert found[form][typed((case.kept,))] == Content(1, 1, 5_000_000, 1)
    expected = {
        typed((other.kept,)) for other, kind in PAIRS if kind == form and other.kept is not None
    }
    assert set(found[form]) == {*expected, (str, "good")}
    assert found[form][(str, "good")] == Content(1, 2, 2_000_000, 2)


def test_40_other_keys_use_up_no_place() -> None:
    public = support.layout(PublicKeys((("a",), ("2",))))
    for make in support.FORMS.values():
        rows = [make((1, f"x{n}", 1.0)) for n in range(30)] + [make((1, "2", 1.0))]
        found = support.contents(rows, ContributionBounds(1), public)
        assert found == {("a",): Content(), ("2",): Content(1, 1, 1_000_000, 1)}


def test_41_42_public_keys_without_data_are_released() -> None:
    public = support.layout(PublicKeys((("a",), ("b",))))
    assert support.contents([], found=public) == {("a",): Content(), ("b",): Content()}
    assert support.contents([]) == {}
    everything = support.layout(partition=())
    assert support.contents([], found=everything) == {(): Content()}


def private(rows: list[object], budget: dp.Budget, **options: Any) -> list[Any]:
    transform = dp.PrivateAggregate(
        "person", [dp.Count()], budget, ["day"], dp.ContributionBounds(1),
        dp.PrivatePartitions(**options),
    )  # fmt: skip
    return support.released(rows, transform)


def test_43_44_keys_of_single_people_are_not_released() -> None:
    # Each key is kept with probability at most delta = 1e-15: false alarm at most 2e-12.
    rows = [as_dict((person, f"letter of {person}", 1.0)) for person in range(2000)]
    assert private(rows, dp.Budget(1.0, 1e-15)) == []
    assert private(rows[:50] * 40, dp.Budget(1e3, 0.5), pre_threshold=2) == []
