"""BoundContributions: rows within the bounds, as many as they allow, the same however cut."""

import collections
import datetime
import uuid
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.coders import registry

import beam_dp as dp
from beam_dp.transforms.columns import layout, plain_values
from tests.hostile import support

KEY = bytes(range(16))
Bounds = dp.ContributionBounds


@pytest.fixture(autouse=True)
def known_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "fresh_key", lambda: KEY)


def bounded(
    rows: Iterable[object], bounds: Bounds, values: Sequence[str] = ("value",), **options: Any
) -> list[tuple[Any, ...]]:
    """Return the kept rows of a pipeline as sorted tuples."""
    repeats = options.pop("repeats", 0)
    transform = dp.BoundContributions("person", ["day"], bounds, values, **options)
    seen = support.released(rows, transform, direct_runner_bundle_repeat=repeats)
    return sorted((tuple(row) for row in seen), key=repr)


def visits(size: int = 600) -> list[dict[str, Any]]:
    return [
        support.as_dict((row * row % 31, f"d{row * 7 % 11}", float(row % 5))) for row in range(size)
    ]


LIMITS = [(3,), (None, 2), (None, None, 4), (2, 2, 3)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_each_person_keeps_as_much_as_the_bounds_allow(limits: tuple[Any, ...]) -> None:
    bounds = Bounds(*limits)
    owned: dict[int, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for visit in visits():
        owned[visit["person"]][visit["day"]] += 1
    kept: dict[int, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for person, day, _ in bounded(visits(), bounds):
        kept[person][day] += 1
    most = {"pairs": bounds.partitions or 10**9, "each": bounds.rows_per_partition or 10**9}
    for person, days in owned.items():
        mine = kept[person]
        assert len(mine) <= most["pairs"] and max(mine.values()) <= most["each"]
        assert all(mine[day] <= days[day] for day in mine)
        if bounds.rows is None:
            assert len(mine) == min(len(days), most["pairs"])
            assert all(mine[day] == min(days[day], most["each"]) for day in mine)
        else:
            # Pairs are chosen first, so the rows kept are at least those of the smallest pairs.
            smallest = sorted(min(count, most["each"]) for count in days.values())
            least = sum(smallest[: bounds.partitions])
            assert min(bounds.rows, least) <= sum(mine.values()) <= bounds.rows


def test_every_way_keeps_the_same_rows() -> None:
    rows, bounds = visits(), Bounds(2, 2, 3)
    kept = bounded(rows, bounds)
    table = pa.Table.from_pylist(rows)
    slices = [table.slice(start, 7) for start in range(0, 600, 7)]
    for way in (rows[::-1], [support.Visit(**each) for each in rows], table.to_batches(), slices):
        assert bounded(way, bounds) == kept
    assert bounded(rows, bounds, repeats=1)[::2] == bounded(rows, bounds, shards=1) == kept
    others = [support.as_dict(("new", f"d{n}", 1.0)) for n in range(20)]
    assert [row for row in bounded([*rows, *others], bounds) if row[0] != "new"] == kept


def test_the_key_decides_which_rows_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = bounded(visits(), Bounds(1))
    monkeypatch.undo()
    assert kept != bounded(visits(), Bounds(1)) != bounded(visits(), Bounds(1))


def test_public_partitions_come_first() -> None:
    rows = [support.as_dict((1, f"x{n}", 1.0)) for n in range(30)] + [
        support.as_dict((1, "a", 1.0))
    ]
    public = dp.PublicPartitions(["a"])
    assert bounded(rows, Bounds(1), partitions=public) == [(1, "a", 1.0)]


VALUES = [
    1, -1, 1 << 90, True, 1.5, -0.0, float("inf"), "text", "", "a\0b", "\U0001f600", b"\xff", None,
    datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3, 4, 5, 6), Decimal("1.50"),
    Decimal("NaN"), uuid.UUID(int=9), datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
]  # fmt: skip


OTHERS = [[1], {1: 2}, {1}, 1j, support.Hostile(), object(), np.datetime64("2020-01-01"), len,
          "\ud800", np.str_("a\udfff"), np.timedelta64("NaT"), np.array([1]), Ellipsis, datetime.timedelta(1), np.longdouble(1)]  # fmt: skip


def test_plain_values_come_back_and_others_become_none() -> None:
    for value in VALUES:
        found = plain_values.restored(plain_values.plain(value))
        assert type(found) is type(value) and repr(found) == repr(value)
    assert all(plain_values.plain(value) is None for value in OTHERS)


def test_every_row_that_comes_out_can_be_written() -> None:
    """Runners write rows between steps, and Beam writes a sample of them to estimate sizes."""
    rows = [
        support.as_dict(("p", f"d{place}", value)) for place, value in enumerate(VALUES + OTHERS)
    ]
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        kept = support.start(pipeline, rows) | dp.BoundContributions(
            "person", ["day"], Bounds(100, 1), ["value"]
        )
        coder = registry.get_coder(kept.element_type)
        seen = support.keep(kept | beam.Map(coder.encode))
    assert len(seen) == len(rows)
    values = [coder.decode(row).value for row in seen]
    assert sum(value is not None for value in values) == len(VALUES) - 1


INVALID = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(np.array([0, 2, 3], np.int32)), pa.py_buffer(b"\xff\xfea")]
)
DAYS = pa.array([0, 1 << 30], pa.int32()).cast(pa.date32())
ARROW: list[tuple[pa.Array, list[object]]] = [
    (INVALID, [None, "a"]),
    (INVALID.dictionary_encode(), [None, "a"]),
    (DAYS, [datetime.date(1970, 1, 1), None]),
    (pa.array([0, 1 << 62], pa.int64()).cast(pa.timestamp("s")), [datetime.datetime(1970, 1, 1), None]),
    (pa.array([1, -(1 << 62)], pa.int64()).cast(pa.timestamp("us")), [datetime.datetime(1970, 1, 1, 0, 0, 0, 1), None]),
    (pa.array([1001, None], pa.int64()).cast(pa.timestamp("ns")), [datetime.datetime(1970, 1, 1, 0, 0, 0, 1), None]),
    (pa.array([[1], None]), [None, None]),
    (pa.array([1, None], pa.uint8()), [1, None]),
    (pa.array([Decimal("1.5"), None]), [Decimal("1.5"), None]),
    (pa.array([b"\xff", None]), [b"\xff", None]),
    (pa.array([1], pa.duration("s")), [None]),
    (pa.array([1], pa.time64("ns")), [None]),
    (pa.nulls(2), [None, None]),
]  # fmt: skip


def test_arrow_columns_become_lists_and_never_fail() -> None:
    for column, expected in ARROW:
        assert plain_values.to_list(column) == expected
        assert plain_values.to_list(column.slice(1)) == expected[1:]


def test_bad_parameters_are_refused() -> None:
    given: dict[str, Any] = {"person": "person", "partition": ["day"], "bounds": Bounds(1)}
    for changes in (
        *({"person": 1}, {"partition": "day"}, {"bounds": 3}, {"bounds": Bounds(None)}),
        *({"shards": 3}, {"values": "value"}),
    ):
        with pytest.raises((TypeError, ValueError), match="BoundContributions: .* must "):
            dp.BoundContributions(**{**given, **changes})
