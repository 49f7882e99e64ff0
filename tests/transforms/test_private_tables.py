"""Several tables of one run: every total is the sum of its parts, in every output file."""

import collections
import decimal
import json
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.mechanisms.numerics.checks import ParameterError
from beam_dp.transforms.stages.output_names import OTHER
from pipelines import aggregate
from tests.row_files import read, write

NAMES = ("region", "store", "hour", "kind")
METRICS = [dp.Count(), dp.Sum("spent"), dp.Mean("spent"), dp.Sum("year"), dp.PeopleCount()]


def rows(people: int = 400) -> list[dict[str, Any]]:
    random = np.random.default_rng(3)
    made = []
    for person in range(people):
        for _ in range(random.integers(1, 6)):
            region = "nnnsw"[random.integers(5)]
            store, hour, kind = f"{region}{random.integers(3)}", *random.integers(0, 2, 2).tolist()
            values = {"spent": float(random.integers(-20, 90)) / 4, "year": 2000 + hour}
            made.append(dict(zip(NAMES, (region, store, hour, kind), strict=True), who=person, **values))
    return made


ROWS = rows()
CHAINS = [["region", "total"], [], ["region"], [["region", "store"], "region", "total"]]
DEEP = [list(NAMES[:3]), list(NAMES[:2]), "region", "total"]
SHAPES: dict[str, tuple[list[str], list[Any], str]] = {
    "two": (["region", "store"], ["total"], "listed"),
    "two, no total": (["region", "store"], ["region"], "listed"),
    "three": (["region", "store"], ["region", "total"], "listed"),
    "five": (list(NAMES), DEEP, "listed"),
    "five, private": (list(NAMES), DEEP, "private"),
    "three, private": (["region", "store"], ["region", "total"], "private"),
    "two, private, no total": (["region", "store"], ["region"], "private"),
    "public above private": (
        ["region", "store"],
        [{"partition": ["region"], "partitions": dp.PublicPartitions(["n", "s"])}, "total"],
        "private",
    ),
    "the first is coarse": (["region"], [["region", "store"], "total"], "private"),
    "crossed": (["region", "hour"], ["region", "hour", "total"], "product"),
    "crossed, no total": (["region", "hour"], ["region", "hour"], "product"),
    "crossed, private": (["region", "hour"], ["region", "hour", "total"], "private"),
}


def released(
    shape: str, metrics: list[Any] = METRICS, epsilon: float = 20, **more: Any
) -> list[dp.Released]:
    by, also_by, kind = SHAPES[shape]
    listed: Any = None
    if kind == "listed":
        listed = dp.PublicPartitions(sorted({tuple(row[name] for name in by) for row in ROWS}))
    elif kind == "product":
        values = {name: sorted({row[name] for row in ROWS}) for name in by}
        listed = dp.PublicPartitions.product(**values)
    first = dp.release(
        pa.Table.from_pylist(ROWS),
        person="who",
        partition=by,
        partitions=listed,
        metrics=metrics,
        budget=dp.Budget(epsilon, 1e-4),
        also_by=also_by,
        **more,
    )
    return [first, *first.others]


def exact(cell: Any) -> decimal.Decimal:
    return decimal.Decimal(str(cell))


def assert_agree(tables: list[dict[str, Any]], names: list[str]) -> int:
    """Assert that each row which has parts is their sum, as decimals; return how many have.

    Args:
        tables: of each the columns `by` and the `rows`.
        names: of what adds up.
    """
    checked = 0
    for fine in tables:
        for coarse in tables:
            between = [t for t in tables if {*coarse["by"]} < {*t["by"]} < {*fine["by"]}]
            if between or not {*coarse["by"]} < {*fine["by"]}:
                continue
            sums: Any = collections.defaultdict(decimal.Decimal)
            for row in fine["rows"]:
                other = [n for n in fine["by"] if row[n] in (None, "")]
                if row.get(OTHER) in (True, "true") and not {*other} == {*fine["by"]} - {*coarse["by"]}:
                    continue  # (other) of another margin
                for name in names:
                    sums[*(str(row[n]) for n in coarse["by"]), name] += exact(row[name])
            for row in coarse["rows"]:
                if row.get(OTHER) in (True, "true"):
                    continue
                checked += 1
                for name in names:
                    key = *(str(row[n]) for n in coarse["by"]), name
                    assert sums[key] == exact(row[name]), (coarse["by"], fine["by"], row)
    return checked


@pytest.mark.parametrize("epsilon", [20, 0.5])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_total_is_the_sum_of_its_parts(shape: str, epsilon: float) -> None:
    found = released(shape, epsilon=epsilon)
    tables = [
        {"by": [n for n in NAMES if n in each.table.column_names], "rows": each.table.to_pylist()}
        for each in found
    ]
    missing = any(row["sum_spent"] is None for table in tables for row in table["rows"])
    years = any(np.isnan(row["sum_year"]) for table in tables for row in table["rows"])
    names = ["count"] + ["sum_spent"] * (not missing) + ["sum_year"] * (not years)
    assert assert_agree(tables, names) or epsilon < 1
    for table in tables:
        for row in table["rows"]:
            assert type(row["count"]) is int and row["count"] >= 0
            for name in names:
                assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
            if not np.isnan(row["mean_spent"]) and row["count"] and "sum_spent" in names:
                assert row["mean_spent"] == pytest.approx(row["sum_spent"] / row["count"])
