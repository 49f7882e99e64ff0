"""With a period, one person's rows of one period are what a person is without one."""

import datetime
import decimal
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.mechanisms.bounding.table import Column, Role, two_words
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.columns.public_keys import KeyList, PublicKeys

KEY = bytes(32)
DAYS = [datetime.date(2026, 11, day) for day in (21, 22, 23)]
NO_DAYS = [None, float("nan"), 2.5, b"2026-11-22", datetime.timedelta(1), [1], object()]
CONTENT = pa.schema([("person", pa.string()), ("day", pa.date32()), ("spent", pa.float64())])


def layout(*only: str) -> Layout:
    kept = PublicKeys(KeyList.of((each,) for each in only)) if only else None
    columns = (Column("spent", Role.VALUE, Fraction(1)),)
    return Layout("person", (), columns, None, KEY, "day", kept)


def people(found: Layout, persons: list[Any], days: list[Any]) -> list[tuple[int, int]]:
    """Return the identities of the rows that count."""
    tables = found.from_lists([persons, [1] * len(days), days])
    return [
        pair for table in tables for pair in zip(*two_words(table.person).tolist(), strict=True)
    ]


def test_the_pair_of_a_person_and_a_period_is_the_id() -> None:
    persons, days = zip(*itertools.product(["a", "b", 1, 2], [*DAYS, 1, 2, "x"]), strict=True)
    found = people(layout(), [*persons], [*days])
    assert len(set(found)) == len(found) == 24
    assert people(layout(), [*persons], [*days]) == found
    assert all(second % 2 for _, second in found)


def test_every_way_to_write_a_period_is_one_period() -> None:
    days = ["2026-11-22", datetime.date(2026, 11, 22)]
    assert len(set(people(layout(), ["a", "a"], days))) == 1
    numbers = [7, "7", 7.0, decimal.Decimal(7), np.int8(7)]
    assert len(set(people(layout(), ["a"] * 5, numbers))) == 1
    assert len(people(layout("7"), ["a"] * 5, numbers)) == 5
    assert len(people(layout("2026-11-22"), ["a", "a"], days)) == 2


def test_a_row_without_a_period_or_of_another_one_is_dropped_alone() -> None:
    days = [*NO_DAYS, *DAYS]
    assert len(people(layout(), ["a"] * len(days), days)) == 3
    assert len(people(layout("2026-11-22", "2026-11-23"), ["a"] * len(days), days)) == 2
    assert len(people(layout("2026-11-2"), ["a"] * len(days), days)) == 0
    assert len(people(layout(), [None, "a", []], DAYS)) == 1


@pytest.mark.parametrize("kind", [pa.date64(), pa.string()])
def test_batches_agree_with_rows(kind: pa.DataType) -> None:
    persons, days = ["a", "b", "a", None], [DAYS[0], None, DAYS[1], DAYS[1]]
    cells = pa.array(days).cast(kind)
    batch = pa.record_batch({"person": persons, "spent": [1.0] * 4, "day": cells})
    for found in (layout(), layout("2026-11-22")):
        table = found.from_batch(batch)
        pairs = [*zip(*two_words(table.person).tolist(), strict=True)]
        assert pairs == people(found, persons, days) and pairs


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"period": "person"}, "period must be another column than the person"),
        ({"partition": ["day", "person"]}, "partition must not be the person: each would have one"),
        ({"ledger_period": "2026-11-22"}, "period must be given where ledger_period is"),
        ({"period": "day", "ledger_period": "1..2"}, "ledger_period must be a period, or FROM..TO"),
        (
            {"period": "day", "person": ["a", "b"]},
            "period must be left out where rows have several",
        ),
    ],
)
def test_a_wrong_period_is_refused_with_what_to_write(given: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        dp.PrivateAggregate(
            **{"person": "person", "metrics": [dp.Count()], "budget": dp.Budget(1)} | given
        )


def test_an_owner_that_looks_like_a_day_is_answered_with_the_period() -> None:
    for metric, keys in ((dp.Mean("v"), None), (dp.Count(), ["city"])):
        with pytest.raises((TypeError, ValueError), match="rows of one day, write --period day"):
            dp.PrivateAggregate(["who", "day"], [metric], dp.Budget(1, 1e-6), keys or ())


@pytest.fixture
def rows() -> pa.Table:
    """40 people with two rows on each of three days, and 9 rows without a day."""
    made = [{"person": f"p{p}", "day": day, "spent": 2.0} for p in range(40) for day in DAYS * 2]
    return pa.Table.from_pylist(
        [*made, *[{"person": "p1", "day": None, "spent": 2.0}] * 9], CONTENT
    )


def test_a_release_counts_a_person_once_for_each_period_and_says_so(rows: pa.Table) -> None:
    asked = [dp.PeopleCount(), dp.Sum("spent", clip=4)]

    def released(**named: Any) -> dp.Released:
        return dp.release(rows, person="person", metrics=asked, budget=dp.Budget(2000), **named)

    [every] = released(period="day").table.to_pylist()
    assert every["people_count"] == 120 and round(every["sum_spent"]) == 480
    two = released(period="day", ledger_period="2026-11-22..2026-11-30")
    [row] = two.table.to_pylist()
    assert row["people_count"] == 80 and round(row["sum_spent"]) == 320
    assert two.record["unit"] == "one person's rows of one day"
    assert (
        "; pure composition, one person's rows of one day in at most 1 "
        in two.record["composition"]
    )
    page, table = two.report(), str(two)
    for said in (page.replace("&#39;", "'"), table):
        assert "protected: one person's rows of one day (epsilon 2,000)" in " ".join(said.split())
        assert "one person's rows" in said and said.count("one person") == said.count(
            "one person's rows"
        )
    [whole] = released().table.to_pylist()
    assert whole["people_count"] == 40 and round(whole["sum_spent"]) == 160
    assert released().record["unit"] == "one person"


def test_bounds_hold_for_each_period(rows: pa.Table) -> None:
    bounds = dp.ContributionBounds(rows_per_partition=1, partitions=1)
    asked: dict[str, Any] = {"metrics": [dp.Count()], "budget": dp.Budget(2000), "bounds": bounds}
    keys = {"partition": ["day"], "partitions": dp.PublicPartitions(DAYS)}
    [*found] = (
        dp.release(rows, person="person", period="day", **asked, **keys).table["count"].to_pylist()
    )
    assert found == [40, 40, 40]
    assert sum(dp.release(rows, person="person", **asked, **keys).table["count"].to_pylist()) == 40
