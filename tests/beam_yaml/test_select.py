"""A SELECT is released as its SQL says: without noise, its numbers are those of DuckDB."""

import re
from typing import Any

import apache_beam as beam
import duckdb
import pyarrow as pa
import pytest
from apache_beam.testing.util import assert_that

import beam_dp as dp
from beam_dp.beam_yaml import private_transforms
from beam_dp.testing import without_noise

pytestmark = pytest.mark.filterwarnings("ignore::beam_dp.testing.NotPrivate")
ROWS = pa.table({
    "who": [f"p{row % 30}" for row in range(600)],
    "store": ["abc"[row % 3] for row in range(600)],
    "day": [1 + row % 4 for row in range(600)],
    "spent": [float(row % 7) for row in range(600)],
    "n": [row % 5 for row in range(600)],
    "x": [None if row % 2 else 10.0 for row in range(600)],
    "kind": [None if row % 6 == 0 else "xy"[row % 2] for row in range(600)],
})  # fmt: skip
PARTITIONS = {"partitions": dp.PublicPartitions(["a", "b", "c"])}
SAME = [
    "SELECT count(kind) AS c, count_if(spent > 3) AS m, sum(kind = 'x') AS x FROM rows",
    "SELECT count(*) FILTER (WHERE n > 2) AS c, sum(spent) FILTER (WHERE kind = 'x') AS s FROM rows",
    "SELECT sum(spent * n) AS s FROM rows WHERE spent BETWEEN 2 AND 5 AND kind IS NOT NULL",
    "SELECT avg(x) AS a, sum(x) AS s, count(*) AS c FROM rows",
    "SELECT avg(spent) FILTER (WHERE kind = 'x') AS a, sum(spent) AS s, count(*) AS c FROM rows",
    "SELECT store, sum(n) AS s FROM rows WHERE day < 3 GROUP BY store ORDER BY s, store LIMIT 2",
    "SELECT store, sum(n) AS s, s * 2 AS d FROM rows GROUP BY store HAVING sum(n) > 390 ORDER BY 1",
    "SELECT store, sum(n) AS s, sum(n * 2) AS s2, s2 - s AS d FROM rows GROUP BY store ORDER BY d, store",
]


def exact(statement: str, **options: Any) -> dp.Released:
    """Return what a statement releases without noise."""
    with without_noise():
        return dp.select(statement, rows=ROWS, person="who", budget=dp.Budget(1.0), **options)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("statement", SAME)
def test_without_noise_a_select_is_that_of_sql(statement):
    by = PARTITIONS if "GROUP BY" in statement else {}
    found = exact(statement, **by).table
    engine = duckdb.connect()
    engine.register("rows", ROWS)
    expected = engine.sql(statement).to_arrow_table()
    for name in expected.column_names:
        assert found[name].to_pylist() == pytest.approx(expected[name].to_pylist()), name


def test_shares_and_distinct_values_and_totals():
    keys = {"partitions": dp.PublicPartitions.product(store=["a", "b", "c"], day=[1, 2, 3, 4])}
    asked = "SELECT store, day, count(*) AS c, sum(n) AS s FROM rows GROUP BY ROLLUP (store, day)"
    released = exact(asked, **keys)
    tables = [released, *released.others]
    assert [len(each.table) for each in tables] == [12, 3, 1]
    assert [sum(each.table["s"].to_pylist()) for each in tables] == [1200] * 3
    shares = exact("SELECT avg(spent > 3) AS high, count(DISTINCT n) AS ns FROM rows").table
    assert shares["high"].to_pylist()[0] == pytest.approx(256 / 600)
    assert shares["ns"].to_pylist() == [5]


def test_counts_of_some_rows_are_whole_numbers_under_their_names():
    asked = "SELECT store, count(kind), count_if(n > 2) AS many, many / count(*) AS share FROM rows"
    columns = {"who": [n // 3 for n in range(30_000)], "n": [n % 4 for n in range(30_000)]}
    rows = pa.table(
        {**columns, "kind": ["x", None, "y"] * 10_000, "store": ["a", "b", "c"] * 10_000}
    )
    options = {"rows": rows, "person": "who", "budget": dp.Budget(1.0), **PARTITIONS}
    released = dp.select(f"{asked} GROUP BY store", **options)
    found = [*released.table["count_kind"].to_pylist(), *released.table["many"].to_pylist()]
    assert len(found) == 6 and all(map(float.is_integer, found))
    assert not re.search(r"\.\d+\*? \[", repr(released))  # nor are they shown with fractions
    assert "; cells of count_kind, many without a plain value" in " ".join(repr(released).split())


def test_the_record_and_the_page_say_what_was_computed():
    asked = "SELECT store, sum(n) AS s, s / 2 AS half FROM rows GROUP BY store HAVING s > 0"
    released = exact(asked, **PARTITIONS)
    assert released.record["job"]["post_process"].startswith("SELECT *, (s / 2) AS half FROM")
    assert released.record["columns"]["numbers"] == [["s", "s_low", "s_high"], ["half"]]
    assert released.record["columns"]["computed"] == {"half": ["s"]}
    assert "half" in repr(released) and "half" in released.report()
    assert "rows that the query drops" not in repr(exact("SELECT sum(n) AS s FROM rows"))


DAYS = pa.table({
    "who": [f"p{row}" for row in range(600)],
    "day": [1 + row % 12 for row in range(600)],
})  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("key", "last", "expected"),
    [
        ("day", "HAVING k > 1 ORDER BY k DESC LIMIT 3", [12, 11, 10]),
        ("day", "HAVING k LIKE '1%' ORDER BY k", [1, 10, 11, 12]),
        ("CAST(day AS VARCHAR)", "HAVING k > 9 ORDER BY k + 0 DESC", ["12", "11", "10"]),
        ("CAST(CAST(day AS VARCHAR) AS INTEGER)", "ORDER BY k DESC LIMIT 3", [12, 11, 10]),
    ],
)
def test_released_keys_are_sorted_and_compared_by_their_type(key, last, expected):
    """Of 12 days with 50 people each none is left out, but with a chance below 1e-12."""
    asked = f"SELECT {key} AS k, count(*) AS n FROM rows GROUP BY k {last}"
    released = dp.select(asked, rows=DAYS, person="who", budget=dp.Budget(30.0, 1e-6))
    assert released.table["k"].to_pylist() == expected


def test_a_misspelt_column_of_the_released_table_names_its_neighbour():
    asked = "SELECT store, count(*) AS c FROM rows GROUP BY store HAVING stor + 1 > c"
    with pytest.raises(ValueError, match=r"and stor is none. Did you mean store\?"):
        exact(asked, **PARTITIONS)


def test_what_is_computed_of_doubtful_numbers_is_marked():
    asked = "SELECT store, count(*) AS n, sum(n) AS s, s / n AS r, r + 1 AS t, n_high * 2 AS h FROM rows"
    rows = pa.table({"who": [*map(str, range(9_000))], "store": ["a", "b", "a"] * 3_000})
    rows = rows.append_column(
        "n", pa.array([None if store == "b" else 4 for store in rows["store"].to_pylist()])
    )
    options = {"rows": rows, "person": "who", "budget": dp.Budget(1.0)}
    keys = dp.PublicPartitions(["a", "b"])
    with without_noise():
        released = dp.select(f"{asked} GROUP BY store", partitions=keys, **options)
    lines = repr(released).splitlines()
    cells = {line.split()[0]: re.sub(r"\[.*?\]", "", line).split()[1:] for line in lines[1:3]}
    assert [cell[-1] == "*" for cell in cells["b"]] == [False, True, True, True, False]
    assert [cell[-1] == "*" for cell in cells["a"]] == [False] * 5
    assert "or they are computed of such (1 of s, 1 of r, 1 of t)" in " ".join(
        " ".join(lines).split()
    )


def test_what_fails_on_released_numbers_leaves_the_table_as_it_is():
    asked = "SELECT store, sum(n) AS s, CAST(s AS TINYINT) AS small FROM rows GROUP BY store"
    asked += " HAVING small > 0 ORDER BY s"
    released = exact(asked, **PARTITIONS).table
    assert released["store"].to_pylist() == ["a", "b", "c"]
    assert released["small"].to_pylist() == [None] * 3


def test_text_is_taken_as_what_it_is_compared_or_computed_with(tmp_path):
    """In CSV files all cells are text."""
    (tmp_path / "in.csv").write_text(
        "who,at_time,spent,day,kind\n"
        + "".join(
            f"p{n},2026-11-0{n % 9 + 1} 10:00,{n % 4}.5,{n % 3},{'xy'[n % 2]}\n" for n in range(90)
        )
    )
    asked = f"""SELECT dayname(at_time) AS name, count(*) AS c, sum(spent - day) AS b,
            sum(spent) FILTER (WHERE kind = 'x') AS a,
            sum(CASE WHEN kind = 'y' THEN -day ELSE coalesce(spent, 0) END) AS d
        FROM '{tmp_path}/in.csv' WHERE at_time < DATE '2026-11-04' AND spent > 1 AND day <= 2
        GROUP BY name"""
    with without_noise():
        keys = dp.PublicPartitions(["Sunday", "Monday", "Tuesday"])
        found = dp.select(asked, person="who", budget=dp.Budget(1.0), partitions=keys)
    names = ["name", "c", "b", "a", "d"]
    released = found.table.select(names).to_pylist()
    expected = duckdb.sql(asked).fetchall()
    assert sorted(tuple(row.values()) for row in released) == sorted(expected)


def by_store(rows: list[Any]) -> None:
    assert [(row.store, row.half) for row in rows] == [("a", 200.0)]


def spent(records: list[Any]) -> None:
    assert records[0]["budget"]["epsilon"] == "1"


def test_a_transform_of_rows_and_its_record():
    asked = "SELECT store, sum(n) AS s, s / 2 AS half FROM rows GROUP BY store HAVING store = 'a'"
    with without_noise():
        select = dp.Select(asked, person="who", budget=dp.Budget(1.0), **PARTITIONS)
        with beam.Pipeline("FnApiRunner") as pipeline:
            assert_that(pipeline | beam.Create([ROWS]) | select, by_store)
            assert_that(select.tables.tables[0].record(), spent, label="Spent")


def alike(sums: list[float]) -> None:
    assert len(sums) == 2 and len({*sums}) == 1


def test_beam_yaml_takes_a_select():
    asked = "SELECT store, sum(n) AS s, s / 2 AS half FROM rows GROUP BY store HAVING store = 'a'"
    options = {"budget": {"epsilon": 1}, "partitions": ["a", "b", "c"], "select": asked}
    with without_noise(), beam.Pipeline("FnApiRunner") as pipeline:
        rows = pipeline | beam.Create([ROWS])
        assert_that(rows | private_transforms.private_aggregate("who", **options), by_store)
    rolled = {**options, "select": "SELECT store, sum(n) AS s FROM rows GROUP BY ROLLUP (store)"}
    with without_noise(), beam.Pipeline("FnApiRunner") as pipeline:
        rows = pipeline | beam.Create([ROWS])
        tables = rows | private_transforms.private_aggregate("who", **rolled)
        assert list(tables) == ["first", "total"]
        sums = [tables[name] | f"Sums {name}" >> beam.Map(lambda row: row.s) for name in tables]
        total = sums[0] | beam.CombineGlobally(sum)
        assert_that((total, sums[1]) | beam.Flatten(), alike)
    with pytest.raises(ValueError, match="also_by must be left out beside select"):
        private_transforms.private_aggregate("who", **rolled, also_by="total")


def test_rows_stand_in_one_place():
    budget = dp.Budget(1.0)
    with pytest.raises(ValueError, match="statement must be FROM rows"):
        dp.Select("SELECT count(*) FROM 'visits.csv'", person="who", budget=budget)
    for statement, rows in (
        ("SELECT count(*) FROM 'a.csv'", ROWS),
        ("SELECT count(*) FROM rows", None),
    ):
        with pytest.raises(ValueError, match="rows must be given where FROM names no files"):
            dp.select(statement, person="who", budget=budget, rows=rows)
