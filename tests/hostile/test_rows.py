"""Section E of the table of bad inputs: rows and what they come in."""

from collections.abc import Callable
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest

from tests.hostile import support
from tests.hostile.support import Content, Hostile, Visit, as_batch, as_dict, as_row

GOOD = Content(1, 1, 1_000_000, 1)


class Loud(dict[str, object]):
    """A dict whose own methods raise."""

    def get(self, *args: object) -> Any:
        raise RuntimeError

    items = keys = values = __getitem__ = __iter__ = __contains__ = __len__ = get


def of(day: str) -> dict[str, object]:
    return as_dict(("bad", day, 5.0))


FULL, BARE = Content(1, 1, 5_000_000, 1), Content(1, 1, 0, 0)
CASES: dict[str, tuple[Callable[[str], object], Content | None]] = {
    "65 plain tuple": (lambda day: ("bad", day, 5.0), None),
    "65 list": (lambda day: ["bad", day, 5.0], None),
    "65 long tuple": (lambda day: tuple.__new__(Visit, ("bad", day, 5.0, 6, 7)), FULL),
    "65 no person": (lambda day: {"day": day, "value": 5.0}, None),
    "65 no day": (lambda day: {"person": "bad", "value": 5.0}, None),
    "65 no value": (lambda day: {"person": "bad", "day": day}, BARE),
    "65 extra field": (lambda day: {**of(day), "more": "x", 7: None}, FULL),
    "65 extra hostile field": (lambda day: {**of(day), "more": Hostile()}, FULL),
    "65 empty Row": (lambda day: beam.Row(), None),
    "65 Row without value": (lambda day: beam.Row(person="bad", day=day), BARE),
    "65 dict of lists": (lambda day: {"person": ["bad"], "day": [day], "value": [5.0]}, None),
    "66 hostile": (lambda day: Hostile(), None),
    "66 dict that raises": (lambda day: Loud(of(day)), FULL),
    "66 iterator": (lambda day: iter([1]), None),
    "66 none": (lambda day: None, None),
    "66 class": (lambda day: Visit, None),
    "66 array": (lambda day: np.array([1, 2, 3]), None),
    "66 arrow scalar": (lambda day: pa.array([of(day)])[0].as_py(), FULL),
    "70 no rows": (lambda day: as_batch(("bad", day, 5.0)).slice(0, 0), None),
    "70 no rows in a table": (lambda day: pa.table({"other": []}), None),
    "70 offset": (lambda day: pa.concat_batches([as_batch(("x", "y", 1.0)), as_batch(("bad", day, 5.0))])[1:], FULL),
    "70 chunks": (lambda day: pa.Table.from_batches([as_batch(("bad", day, 5.0))] * 2), Content(1, 2, 10**7, 2)),
    "70 extra column": (lambda day: as_batch(("bad", day, 5.0)).append_column("s", pa.array([{"a": 1}])), FULL),
}  # fmt: skip


@pytest.fixture(scope="module")
def found() -> dict[Any, Content]:
    """What one pipeline leaves of all cases, among rows of a good person."""
    rows = [make(name) for name, (make, _) in CASES.items()]
    good = [as_row(("good", name, 1.0)) for name in CASES]
    mixed = [row for pair in zip(rows, good, strict=True) for row in pair]
    return support.contents(mixed)


@pytest.mark.parametrize("name", CASES)
def test_a_row_counts_or_vanishes_alone(name: str, found: dict[Any, Content]) -> None:
    bad = CASES[name][1] or Content()
    sums = (getattr(GOOD, field) + getattr(bad, field) for field in Content.__dataclass_fields__)
    assert found[(name,)] == Content(*sums)
    assert set(found) == {(other,) for other in CASES}


def test_68_elements_are_never_changed() -> None:
    row = as_dict((1, "a", 1.0))
    batch = as_batch((pa.array([1, None]), pa.array(["a", "b"]), pa.array([1.0, float("nan")])))
    before = batch.to_pydict()
    support.contents([row, batch])
    assert row == as_dict((1, "a", 1.0)) and str(batch.to_pydict()) == str(before)
