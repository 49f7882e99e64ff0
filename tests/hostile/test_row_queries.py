"""Hostile cells of every type go through a query alone as they do among others, and fail nothing."""

import contextlib
import random

import pyarrow as pa
import pytest

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.row_queries import Query, _Engine, _Run
from tests.hostile.inserted import columns_of_arrow, python_rows
from tests.hostile.inserted.layouts import NAMES

EXPRESSIONS = (
    "x",
    "CAST(x AS INTEGER)",
    "CAST(x AS DOUBLE) * 10",
    "upper(CAST(x AS VARCHAR))",
    "reverse(x) || substring(x, 2, 3)",
    "dayname(CAST(x AS TIMESTAMP))",
    "x + x",
    "CASE WHEN n % 2 = 0 THEN x ELSE NULL END",
)
CONDITIONS = ("true", "x IS NOT NULL", "n % 3 = 0 OR CAST(x AS BIGINT) > 0", "x LIKE '%a%'")


def lines(batches: list[pa.RecordBatch]) -> list[str]:
    """Return rows as text, without a look at what Python could not hold."""
    table = [column.to_string(window=10**6) for batch in batches for column in _rows_of(batch)]
    return table


def _rows_of(batch: pa.RecordBatch) -> list[pa.Array]:
    return [column.slice(row, 1) for row in range(len(batch)) for column in batch.columns]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(24))
def test_each_row_alone_gives_what_it_gives_among_others(seed: int) -> None:
    rng = random.Random(seed)
    types = columns_of_arrow.kinds(rng)
    rows = [columns_of_arrow.bad(rng, types) for _ in range(40)]
    batch = columns_of_arrow.batch(rng, types, rows)
    for name in NAMES:
        asked = f"{rng.choice(EXPRESSIONS)} AS y FROM rows WHERE {rng.choice(CONDITIONS)}"
        engine = _Engine(Query.of(f"SELECT n, {asked}"))
        one = pa.record_batch({"n": pa.array(range(40)), "x": batch.column(name)})
        with contextlib.suppress(checks.ParameterError):  # a type that the expression does not take
            engine.bound(one.schema)
            alone = [out for row in range(40) for out in engine.rows(one.slice(row, 1))]
            assert lines(list(engine.rows(one))) == lines(alone)


def test_hostile_objects_fail_nothing_and_change_no_other() -> None:
    rng = random.Random(7)
    rows = [python_rows.hostile(rng) for _ in range(500)]
    run = _Run(Query.of("SELECT person, day, value * 2 AS value FROM rows WHERE value >= 0"))
    run.setup()

    def found(given: list[object]) -> list[str]:
        run.start_bundle()
        made = [batch for row in given for batch in run.process(row)]
        return sorted(lines([*made, *(each.value for each in run.finish_bundle())]))

    good = list(python_rows.BASE)
    others = [line for row in rows for line in found([row])]
    assert found([*rows[:250], *good, *rows[250:]]) == sorted([*found(good), *others])
