"""A column that no row can have is refused when the pipeline is built; rows decide nothing."""

import dataclasses
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import apache_beam as beam
import pandas as pd
import pyarrow as pa
import pytest

import beam_dp as dp


class Visit(NamedTuple):
    who: int
    day: int
    spent: float


@dataclasses.dataclass
class Wrong:
    who: bytes
    day: int
    other: int
    spent: str


BUDGET = dp.Budget(1.0, 1e-6)
DAYS = dp.PublicPartitions([1, 2])
THREE = dp.ContributionBounds(3)
HAS = "'who', 'day', 'spent'"
ROW = {"who": 1, "day": 2, "spent": 3.0}

TRANSFORMS: dict[str, Callable[..., beam.PTransform[Any, Any]]] = {
    "aggregate": lambda who, day, spent, **rest: dp.PrivateAggregate(
        who, [dp.Sum(spent)], BUDGET, [day], partitions=DAYS, **rest
    ),
    "one metric": lambda who, day, spent, **rest: dp.ShiftedInverse(
        dp.Max(spent), who, BUDGET, [day], partitions=DAYS, **rest
    ),
    "loss": lambda who, day, spent, **rest: dp.RemovalLoss(
        dp.Sum(spent), who, [day], partitions=DAYS, **rest
    ),
    "bound": lambda who, day, spent, **rest: dp.BoundContributions(
        who, [day], THREE, values=[spent], **rest
    ),
}
MISSPELT = [("whom", "day", "spent"), ("who", "dya", "spent"), ("who", "day", "spnet")]
TYPED: dict[str, tuple[Any, Any]] = {
    "beam.Row": ([beam.Row(who=1, day=2, spent=3.0)], None),
    "NamedTuple": ([Visit(1, 2, 3.0)], Visit),
    "NamedTuple of nobody": ([], Visit),
}


def built(rows: list[Any], kind: Any, transform: beam.PTransform[Any, Any]) -> list[str]:
    """Build a pipeline, do not run it, and return what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", dp.UnknownColumns)
        made = beam.Pipeline("FnApiRunner") | beam.Create(rows)
        if kind is not None:
            made |= beam.Map(lambda row: row).with_output_types(kind)
        _ = made | "Under test" >> transform
    return [str(w.message) for w in caught if issubclass(w.category, dp.UnknownColumns)]


CASES = [("aggregate", case) for case in TYPED] + [(name, "NamedTuple") for name in TRANSFORMS]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "case"), CASES)
def test_a_typed_row_names_its_columns(name: str, case: str) -> None:
    transform, (rows, kind) = TRANSFORMS[name], TYPED[case]
    for names in MISSPELT:
        [wrong] = {*names} - {"who", "day", "spent"}
        said = f"column {wrong!r} must be one of the columns of its rows: {HAS}"
        with pytest.raises(ValueError, match=said):
            built(rows, kind, transform(*names))
    assert built(rows, kind, transform("who", "day", "spent")) == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_dicts_are_compared_with_the_columns_that_are_declared(
    transform: Callable[..., beam.PTransform[Any, Any]],
) -> None:
    there = ["who", "day", "spent"]
    for names in MISSPELT:
        [wrong] = {*names} - {*there}
        said = f"column {wrong!r} must be one of the columns that colum"
        with pytest.raises(ValueError, match=said):
            built([ROW], None, transform(*names, columns=there))
    assert built([ROW], None, transform(*there, columns=there)) == []


def test_columns_of_a_select_are_those_of_its_rows() -> None:
    there, budget = ["who", "day", "spent"], dp.Budget(1.0)
    for asked in ("sum(spnet) AS s FROM rows WHERE day > 1", "sum(spnet) AS s FROM rows"):
        select = dp.Select(f"SELECT {asked}", person="who", budget=budget, columns=there)
        with pytest.raises(ValueError, match=f"'spnet' must be one of the .*columns=...*: {HAS}"):
            built([ROW], None, select)
    with pytest.raises(ValueError, match=f"'spnet' must be one of the .*columns=...*: {HAS}"):
        built([ROW], None, dp.Rows("SELECT who, spnet FROM rows", columns=there))
    asked = "SELECT sum(spent * 2) AS s FROM rows WHERE day > 1"
    assert built([ROW], None, dp.Select(asked, person="who", budget=budget, columns=there)) == []


DICTS: list[list[Any]] = [[], [{"else": 1}], [{**ROW, "whom": 1}]]
PLAIN = [("aggregate", rows) for rows in DICTS] + [(name, [ROW]) for name in TRANSFORMS]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "rows"), PLAIN)
def test_dicts_alone_decide_nothing_and_are_warned_of(name: str, rows: list[Any]) -> None:
    transform = TRANSFORMS[name]
    [said] = built(rows, None, transform("whom", "dya", "spnet"))
    assert "so a misspelt name among 'whom', 'dya', 'spnet' is not noticed" in said
    assert "path" not in said
    [said] = built(rows, None, transform("who.id", "dya", "spnet"))
    assert said.endswith("a dot is no path into a value")


def test_elements_that_are_no_rows_and_types_that_no_value_can_have_are_refused() -> None:
    of = TRANSFORMS["aggregate"]
    for rows, kind in (
        *(([1, 2], "int.* dp.ReadRows"), (["a line"], "str.* dp.ReadRows")),
        *(([("who", 1)], "Tuple.* Name the columns"), ([[ROW]], "List.* beam.FlatMap")),
        ([pd.DataFrame([ROW])], r"DataFrame.* pa.RecordBatch.from_pandas\(df\)"),
    ):
        said = f"PrivateAggregate: its input must hold rows .*, not {kind}"
        with pytest.raises(TypeError, match=said):
            built(rows, None, of("who", "day", "spent"))
    with pytest.raises(TypeError, match="column 'who' must hold integers, text, dates or boolea"):
        built([], Wrong, of("who", "day", "day"))
    with pytest.raises(TypeError, match="column 'spent' must hold numbers, not string"):
        built([], Wrong, of("other", "day", "spent"))


def test_what_is_read_is_known(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("who,day,spent\n1,2,3\n")
    read = dp.ReadRows(str(path), ["who", "day"])
    with pytest.raises(ValueError, match="'spent' must be one of the columns that ReadRows reads"):
        _ = beam.Pipeline("FnApiRunner") | read | TRANSFORMS["aggregate"]("who", "day", "spent")


def test_a_batch_without_the_column_fails_the_job_and_names_those_that_it_has() -> None:
    batch = pa.record_batch({"who": [1], "day": [2], "spent": [3.0]})
    transform = TRANSFORMS["aggregate"]("who", "day", "spnet")
    with (
        pytest.raises(ValueError, match=f"column 'spnet' must occur once .* One has: {HAS}"),
        beam.Pipeline("FnApiRunner") as p,
    ):
        _ = p | beam.Create([batch]) | transform
