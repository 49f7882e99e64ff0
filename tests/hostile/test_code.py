"""No code of a row's own runs: not of its class, its keys, its values, nor of their metaclasses."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest

import beam_dp as dp
from tests.hostile import alarms, support
from tests.hostile.alarms import key_like, loud
from tests.hostile.support import Hostile, Visit, as_dict

SURE = dp.Budget(1e6)  # of 8 metrics: noise is below 1/2 but with probability e^-40
METRICS = [
    dp.PeopleCount(name="people"),
    dp.Count(name="rows"),
    dp.Sum("value", name="sum", unit=1),
    dp.DistinctCount("item", name="items"),
    dp.Ratio("flag", name="ones"),
    dp.Ratio("flag", equals=lambda value: value is not None, name="any", per="person"),
    dp.Preprocessed("value", "variance", name="spread", person_value="max", unit=1),
    dp.Variance("value", name="variance", unit=1),
]


@dataclasses.dataclass
class Record:
    """A row as a dataclass."""

    person: object
    day: object
    value: object


class Coloured(pa.ExtensionType):
    """An Arrow type that is written in Python."""

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


def of(day: str) -> dict[str, object]:
    return as_dict(("bad", day, 1.0))


def with_dict(row: Any, held: dict[Any, object]) -> Any:
    """Return a row whose attributes are held by a dict of another kind."""
    object.__setattr__(row, "__dict__", held)
    return row


def loud_row(base: type, **fields: object) -> Any:
    """Return a row of a class with alarms, which has the fields."""
    row = object.__new__(loud(base))
    vars(base)["__dict__"].__get__(row).update(fields)
    return row


def keyed(day: str, *keys: object) -> dict[Any, object]:
    return {**{key: "other" for key in keys}, **of(day)}


def instead(day: str, key: object) -> dict[Any, object]:
    """Return a row in which that key is all there is of a person."""
    return {key: "bad", "day": day, "value": 1.0}


COUNTS, NO_VALUE = True, None
ROWS: dict[str, tuple[Callable[[str], object], bool | None]] = {
    "key with the hash of a name, before": (lambda day: keyed(day, key_like("person")), COUNTS),
    "key with the hash of a name, behind": (lambda day: {**of(day), key_like("day"): 1}, COUNTS),
    "watched key": (lambda day: keyed(day, key_like("value", True)), COUNTS),
    "keys for all names": (lambda day: keyed(day, *map(key_like, Visit._fields)), COUNTS),
    "key instead of a name": (lambda day: instead(day, key_like("person")), False),
    "text of another class": (lambda day: instead(day, loud(str)("person")), COUNTS),
    "watched text": (lambda day: instead(day, loud(str, True)("person")), COUNTS),
    "other text of another class": (lambda day: instead(day, loud(str)("Person")), False),
    "bytes": (lambda day: instead(day, b"person"), False),
    "dict of another class": (lambda day: loud(dict)(of(day)), COUNTS),
    "watched dict": (lambda day: loud(dict, True)(of(day)), COUNTS),
    "dict and key of other classes": (lambda day: loud(dict)(keyed(day, key_like("day"))), COUNTS),
    "empty dict of another class": (lambda day: loud(dict)(), False),
    "Row": (lambda day: loud_row(beam.Row, **of(day)), False),
    "Row that holds another dict": (
        lambda day: with_dict(beam.Row(), loud(dict)(keyed(day, key_like("person")))),
        COUNTS,
    ),
    "Row that holds another key": (
        lambda day: with_dict(beam.Row(), keyed(day, key_like("value"))),
        COUNTS,
    ),
    "NamedTuple": (lambda day: loud(Visit)("bad", day, 1.0), COUNTS),
    "watched NamedTuple": (lambda day: loud(Visit, True)("bad", day, 1.0), False),
    "tuple": (lambda day: loud(tuple)(("bad", day, 1.0)), False),
    "dataclass": (lambda day: Record("bad", day, 1.0), COUNTS),
    "dataclass with alarms": (lambda day: loud_row(Record, **of(day)), False),
    "dataclass that holds another dict": (
        lambda day: with_dict(Record("bad", day, 1.0), loud(dict)(of(day))),
        COUNTS,
    ),
    "object": (lambda day: loud(object)(), False),
    "watched object": (lambda day: loud(object, True)(), False),
    "class": (lambda day: loud(object, True), False),
    "int": (lambda day: loud(int)(7), False),
    "list": (lambda day: loud(list)(["bad", day, 1.0]), False),
    "65 plain tuple": (lambda day: ("bad", day, 1.0), False),
    "65 short tuple": (lambda day: tuple.__new__(Visit, ("bad",)), False),
    "65 long tuple": (lambda day: tuple.__new__(Visit, ("bad", day, 1.0, 6, 7)), COUNTS),
    "65 no person": (lambda day: {"day": day, "value": 1.0}, False),
    "65 no day": (lambda day: {"person": "bad", "value": 1.0}, False),
    "65 no value": (lambda day: {"person": "bad", "day": day}, NO_VALUE),
    "65 extra fields": (lambda day: {**of(day), "more": Hostile(), 7: None}, COUNTS),
    "65 empty Row": (lambda day: beam.Row(), False),
    "65 Row without value": (lambda day: beam.Row(person="bad", day=day), NO_VALUE),
    "65 lists": (lambda day: {"person": ["bad"], "day": [day], "value": [1.0]}, False),
    "66 hostile": (lambda day: Hostile(), False),
    "66 iterator": (lambda day: iter([1]), False),
    "66 none": (lambda day: None, False),
    "66 array": (lambda day: np.array([1, 2, 3]), False),
    "66 arrow array": (lambda day: pa.array(["bad"]), False),
}


def run(rows: list[object], days: Iterable[str]) -> dict[str, Any]:
    """Return what is released of each day, with the alarm on from the first row to the last."""
    bounds = dp.ContributionBounds(1000, rows_per_partition=4)
    how = SURE, ["day"], bounds, dp.PublicPartitions(sorted(days))
    with alarms.on() as calls, beam.Pipeline(runner="FnApiRunner") as pipeline:
        transform = dp.PrivateAggregate("person", METRICS, *how)
        seen = support.keep(support.start(pipeline, rows) | transform)
    assert calls == []
    return {row.day: row for row in seen}


def good(day: object) -> dict[str, object]:
    return {**as_dict(("good", day, 1.0)), "item": "i", "flag": 1, "time": 1}


def test_rows_of_every_class_among_many_that_are_alike() -> None:
    """Rows of the same names are read together, and others in the same group one by one."""
    given = (
        [*[good(name)] * 300, make(name), *[good(name)] * 300] for name, (make, _) in ROWS.items()
    )
    found = run([row for rows in given for row in rows], ROWS)
    for name, (_, counts) in ROWS.items():
        row, counted = found[name], 0 if counts is False else 1
        assert (row.people, row.rows) == (1 + counted, 4 + counted), name
        assert round(row.sum) == 4 + (counts is True), name


VALUES = alarms.values()
PLACES = {"person": 0, "day": 0, "value": 1, "item": 1, "flag": 1, "time": 1, "else": 1}
"""Fields, and how many rows count with a value in them that is of no known type."""


def test_values_of_every_class_in_every_field() -> None:
    cases = {
        f"{name} as {place}": (place, value) for name, value in VALUES.items() for place in PLACES
    }
    rows = [{**good(day), "person": "bad", place: bad} for day, (place, bad) in cases.items()]
    found = run([row for pair in zip(map(good, cases), rows, strict=True) for row in pair], cases)
    for day, (place, _) in cases.items():
        counted = 1 + PLACES[place]
        assert (found[day].people, found[day].rows) == (counted, counted)
        assert round(found[day].sum) == counted - (place == "value")
        assert found[day].items == 1


def twice(column: str) -> list[object]:
    """Return 40 good people's rows, with one of every value in a column between them."""
    rows: list[object] = [{**good("a"), "person": f"good {place}"} for place in range(40)]
    return [
        *rows[:20],
        *({**good("a"), "person": "bad", column: bad} for bad in VALUES.values()),
        *rows[20:],
    ]


WAYS: dict[str, tuple[Callable[[], beam.PTransform], str]] = {
    "private partitions": (
        lambda: dp.PrivateAggregate(
            "person", METRICS[:2], dp.Budget(1e6, 1e-6), ["day"], dp.ContributionBounds(3)
        ),
        "day",
    ),
    "several owners": (
        lambda: dp.PrivateAggregate(["person", "item"], [dp.Max("value")], SURE),
        "item",
    ),
    "epsilons of their own": (
        lambda: dp.PreprocessSensitivity(
            dp.Sum("value"), "person", SURE, person_epsilon="time", epsilons=[1, 1e6], sensitivity=1
        ),
        "time",
    ),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", WAYS)
def test_values_of_every_class_on_every_way(name: str) -> None:
    make, column = WAYS[name]
    with alarms.on() as calls, beam.Pipeline(runner="FnApiRunner") as pipeline:
        seen = support.keep(support.start(pipeline, twice(column)) | make())
    assert calls == [] and seen


def test_columns_of_a_type_with_code_of_its_own_are_refused_without_asking_it() -> None:
    kind = loud(Coloured)(pa.int64(), "coloured")
    column = pa.ExtensionArray.from_storage(kind, pa.array([1]))
    batch = pa.RecordBatch.from_arrays(
        [column, pa.array(["a"]), pa.array([1.0])], list(Visit._fields)
    )
    with alarms.on() as calls, pytest.raises(TypeError, match="'person' must hold .* Cast it bef"):
        support.layout().from_batch(batch)
    assert calls == []


def test_other_columns_may_be_of_any_type() -> None:
    kind = loud(Coloured)(pa.int64(), "coloured")
    column = pa.ExtensionArray.from_storage(kind, pa.array([1]))
    batch = support.as_batch(("good", "a", 1.0))
    tables = [pa.table({}), pa.Table.from_batches([batch[:0], batch, batch])]
    with alarms.on() as calls:
        coloured = batch.append_column("else", column)
        found = support.contents([coloured, coloured[:0], *tables])
    assert calls == [] and found == {("a",): support.Content(1, 3, 3_000_000, 3)}


def test_elements_are_never_changed() -> None:
    row = as_dict((1, "a", 1.0))
    batch = support.as_batch(
        (pa.array([1, None]), pa.array(["a", "b"]), pa.array([1.0, float("nan")]))
    )
    before = batch.to_pydict()
    support.contents([row, batch])
    assert row == as_dict((1, "a", 1.0)) and str(batch.to_pydict()) == str(before)
