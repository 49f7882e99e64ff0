"""A JOIN with a public table: each row finds its partner by itself, and one row stays one row."""

import functools
import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import beam_dp as dp
from beam_dp.testing import without_noise
from beam_dp.testing.forced_draws import compared, share_spent
from beam_dp.testing.losses.draw_costs import Fault
from beam_dp.transforms.sql.public_tables import PublicTable
from beam_dp.transforms.sql.query_engine import Engine
from beam_dp.transforms.sql.row_queries import Query
from beam_dp.transforms.sql.select_statements import Statement

STORES = "store,region,zone\na,north,1\nb,south,2\n,nowhere,3\n7,north,4\n"
REGION = {"a": "north", "b": "south", "7": "north"}
BIG = 2**63 - 1


@pytest.fixture
def stores(tmp_path: Path) -> str:
    (tmp_path / "stores.csv").write_text(STORES)
    return f"{tmp_path}/stores.csv"


TYPES = pa.schema([("who", pa.string()), ("store", pa.string()), ("n", pa.int64())])


def made(engine: Engine, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what a query makes of rows in one batch."""
    batch = engine.chosen(pa.RecordBatch.from_pylist(rows, TYPES))
    engine.schema_of(batch.schema)
    return [row for part in engine.rows(batch) for row in part.to_pylist()]


@pytest.mark.parametrize(
    ("kind", "on"), [("JOIN", "USING (store)"), ("LEFT JOIN", "ON s.store = store")]
)
def test_a_partner_is_that_of_the_row_alone(stores: str, kind: str, on: str) -> None:
    """Rows together become what each becomes alone: by brute force, rows that fail among them."""
    cells = itertools.product(["a", "b", "c", "7", "A", "", None], [1, 2, BIG])
    rows = [{"who": f"p{at}", "store": name, "n": n} for at, (name, n) in enumerate(cells)]
    random.Random(7).shuffle(rows)
    query = f"""SELECT who, store, s.region AS region, n + CAST(s.zone AS BIGINT) AS z
        FROM rows {kind} '{stores}' AS s {on} WHERE s.zone IS DISTINCT FROM '2'"""
    zones = dict(line.split(",")[::2] for line in STORES.split()[1:])
    expected = []
    for row in rows:
        zone = zones.get(row["store"]) if row["store"] else None
        dropped = zone == "2" or (zone is None and kind == "JOIN")
        if not dropped and not (zone and row["n"] == BIG):
            more = {"region": REGION.get(row["store"]), "z": row["n"] + int(zone) if zone else None}
            expected.append({"who": row["who"], "store": row["store"], **more})
    engine = Engine(Query.of(query))
    together = sorted(made(engine, rows), key=str)
    assert together == sorted(expected, key=str)
    assert together == sorted((out for row in rows for out in made(engine, [row])), key=str)


def test_keys_match_by_their_text(stores: str, tmp_path: Path) -> None:
    query = f"SELECT s.region AS region FROM rows LEFT JOIN '{stores}' AS s ON rows.n = s.store"
    rows = [{"who": "p", "store": "a", "n": n} for n in (7, 8)]
    assert [row["region"] for row in made(Engine(Query.of(query)), rows)] == ["north", None]
    pq.write_table(pa.table({"id": [7, 8], "x": [1.5, 2.5]}), tmp_path / "numbers.parquet")
    query = f"SELECT t.x * 2 AS y FROM rows JOIN '{tmp_path}/numbers.parquet' AS t ON store = t.id"
    engine = Engine(Query.of(query))
    assert made(engine, [{"who": "p", "store": "7", "n": 1}]) == [{"y": 3.0}]


def test_two_public_tables(stores: str, tmp_path: Path) -> None:
    (tmp_path / "heads.tsv").write_text("n\thead\n1\tAnn\n2\tBob\n")
    query = f"""SELECT who, s.region AS region, h.head AS head FROM rows
        LEFT JOIN '{stores}' AS s USING (store) JOIN '{tmp_path}/heads.tsv' AS h ON rows.n = h.n"""
    rows = [{"who": "p", "store": "b", "n": 1}, {"who": "q", "store": "c", "n": 2}]
    assert made(Engine(Query.of(query)), [*rows, {"who": "r", "store": "a", "n": 3}]) == [
        {"who": "p", "region": "south", "head": "Ann"},
        {"who": "q", "region": None, "head": "Bob"},
    ]


def test_a_name_of_two_public_tables_is_refused(stores: str) -> None:
    asked = f"SELECT sum(zone) AS z FROM rows JOIN '{stores}' USING (store) JOIN '{stores}' AS t USING (store)"
    with pytest.raises(ValueError, match="name columns of its rows, and stores.t.zone is none"):
        select(asked)


REFUSED = {
    "FROM rows, '{0}' AS s": "have JOIN, or LEFT JOIN, with a public file",
    "FROM rows POSITIONAL JOIN '{0}' AS s": "have JOIN, or LEFT JOIN, with a public file",
    "FROM rows SEMI JOIN '{0}' AS s USING (store)": "have JOIN, or LEFT JOIN, with a public file",
    "FROM rows JOIN rows AS s USING (store)": "have JOIN, or LEFT JOIN, with a public file",
    "FROM rows JOIN '/etc/passwd' AS s USING (store)": "have JOIN, or LEFT JOIN, with a public",
    "FROM rows JOIN read_csv('{0}') AS s USING (store)": "have JOIN, or LEFT JOIN, with a public",
    "FROM rows JOIN '{0}' AS s ON rows.store > s.store": "compare columns of rows and s only",
    "FROM rows JOIN '{0}' AS s ON rows.store = s.store OR 1 = 1": "compare columns of rows and s",
    "FROM rows JOIN '{0}' AS s ON s.region = s.store": "compare columns of rows and s only",
    "FROM rows JOIN '{0}' AS s ON store = store": "compare columns of rows and s only",
    "FROM rows JOIN '{0}' AS s ON lower(store) = s.store": "compare columns of rows and s only",
    "FROM rows JOIN '{0}' AS s ON s.region = rows.n": "'region' stands twice",
    "FROM rows JOIN '{0}' AS s USING (stor)": "and stor is none. Did you mean store?",
    "FROM rows JOIN '{0}' AS \"a b\" USING (store)": "give each table a name after AS",
    "FROM rows JOIN '{0}' s USING (store) JOIN '{0}' S USING (store)": "give each table a name",
    "FROM rows JOIN '{0}x.csv' AS s USING (store)": "name public files that can be read",
}


@pytest.mark.parametrize("source", REFUSED)
def test_other_joins_are_refused_with_one_line(stores: str, source: str) -> None:
    for start in ("SELECT who", "SELECT count(*)"):
        of = Query.of if start == "SELECT who" else lambda asked: Statement.of(asked, ("who",))
        with pytest.raises(ValueError, match="^Rows: query must ") as raised:
            of(f"{start} {source}".format(stores))
        assert REFUSED[source] in str(raised.value) and "\n" not in str(raised.value)


def select(asked: str, **options: Any) -> dp.Released:
    given = {"rows": ROWS, "person": "who", "budget": dp.Budget(8.0), **options}
    return dp.select(asked, **given)


ROWS = pa.table({
    "who": [f"p{row % 30}" for row in range(300)],
    "store": [["a", "b", "c", None][row % 4] for row in range(300)],
    "zone": ["x"] * 300,
    "n": [row % 5 for row in range(300)],
})  # fmt: skip
KEYS = dp.PublicPartitions(["north", "south"])
SAME = [
    """SELECT s.region AS region, sum(n * CAST(s.zone AS INT)) AS s FROM rows LEFT JOIN '{}' AS s
    ON rows.store = s.store WHERE s.zone::INT < 3 GROUP BY s.region ORDER BY region""",
    """WITH t AS (SELECT who, region, sum(n) AS n FROM rows JOIN '{}' USING (store)
    GROUP BY who, region) SELECT region, sum(n) AS s FROM t GROUP BY region ORDER BY region""",
    """WITH t AS (SELECT who, store, sum(n) AS n FROM rows GROUP BY who, store)
    SELECT region, sum(n) AS s FROM t JOIN '{}' USING (store) GROUP BY region ORDER BY region""",
]


@pytest.mark.parametrize("asked", SAME)
def test_a_select_with_a_public_table_is_that_of_sql(stores: str, asked: str) -> None:
    """Also before and behind a WITH."""
    with pytest.warns(), without_noise():
        found = select(asked.format(stores), partitions=KEYS).table
    rows = ROWS  # DuckDB finds it by its name
    assert len(rows) == 300
    expected = duckdb.sql(asked.format(stores)).fetchall()
    assert list(zip(*found.select(["region", "s"]).to_pydict().values(), strict=True)) == expected


def test_numbers_of_a_public_table_are_read_as_numbers(stores: str) -> None:
    asked = (
        f"SELECT sum(n * s.zone) AS a FROM rows JOIN '{stores}' AS s USING (store) WHERE s.zone > 1"
    )
    with pytest.warns(), without_noise():
        [total] = select(asked).table["a"].to_pylist()
    expected = sum(row % 5 * 2 for row in range(300) if row % 4 == 1)
    assert total == pytest.approx(expected)


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        ("SELECT count(*) FROM rows JOIN '{}' AS s ON who = s.store", "the person: a table of people"),
        ("SELECT lower(store) AS who FROM rows JOIN '{}' AS s USING (store)", "the person: a t"),
        ("SELECT s.store AS who FROM rows JOIN '{}' AS s USING (store)", "the person, of one column"),
        ("SELECT who, 1 AS n FROM rows JOIN '{}' AS s ON n = s.store", "of a column that another one reads"),
        ("SELECT who, upper(store) AS region FROM rows JOIN '{}' AS s USING (store)", "not name an"),
        ("SELECT who, s.zone AS region FROM rows JOIN '{}' AS s USING (store)", "not name an"),
        ("SELECT *, s.zone AS z FROM rows JOIN '{}' AS s USING (store)", "name its columns"),
        ("SELECT who, s.regio AS r FROM rows JOIN '{}' AS s USING (store)", "Did you mean region?"),
    ],
)  # fmt: skip
def test_people_are_not_looked_up_in_a_public_table(stores: str, asked: str, rule: str) -> None:
    given = {"person": "who", "metrics": [dp.Count()], "budget": dp.Budget(1.0)}
    with pytest.raises(ValueError, match="^Rows: query must ") as raised:
        if "count" in asked:
            select(asked.format(stores))
        else:
            dp.release(ROWS, query=asked.format(stores), **given)
    assert rule in str(raised.value)


def test_the_record_has_no_folder_of_a_public_table(stores: str) -> None:
    asked = f"SELECT region, count(*) AS c FROM rows JOIN '{stores}' USING (store) GROUP BY region"
    released = select(asked, partitions=dp.PublicPartitions(["north"]))
    assert str(Path(stores).parent) not in str(released.record)
    assert 'JOIN "stores.csv" AS stores' in released.record["job"]["query"]


# ---------------------------------------------------------------- the exact loss of a release


def databases(seed: int) -> Iterator[list[tuple[str, str | None, int]]]:
    """Yield rows of a few people, then those with one person more: one of their rows fails."""
    source = np.random.default_rng(seed)
    stores = ["a", "b", "c", None]
    few = [(f"p{at % 5}", stores[source.integers(4)], int(source.integers(9))) for at in range(20)]
    yield few
    for failing in (BIG, 1):
        yield [("new", "b", failing), *few, *(("new", store, 3) for store in stores)]


def check(stores: str, kind: str, seed: int) -> None:
    """Raise `Fault` where a SELECT with a public table is not private."""
    asked = f"""SELECT region, count(*) AS c, sum(n + CAST(zone AS BIGINT)) AS s FROM rows
        {kind} '{stores}' USING (store) GROUP BY region ORDER BY s"""
    less, *more = (
        pa.table(list(zip(*rows, strict=True)), ["who", "store", "n"]) for rows in databases(seed)
    )
    release = functools.partial(
        dp.select, asked, person="who", budget=dp.Budget(6), partitions=KEYS, show_errors=True
    )
    for run in compared(lambda rows: release(rows=rows), less, more, seed, 1 - seed):
        share_spent(run)


def test_a_join_costs_its_budget(stores: str) -> None:
    """Exact: the same in every run. A row of the person who comes is above 64 bits."""
    check(stores, "LEFT JOIN", 2)


def by_place(table: PublicTable, runs: bool = False) -> str:
    return f"POSITIONAL JOIN {table.name}" if runs else SQL(table)


SQL = PublicTable.sql


def fails_for_others(self: Engine, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    return iter(())


@pytest.mark.parametrize(
    "mutant", [(PublicTable, "sql", by_place), (Engine, "_halves", fails_for_others)]
)
def test_mutants_are_caught(
    stores: str, monkeypatch: pytest.MonkeyPatch, mutant: tuple[type, str, Any]
) -> None:
    """Partners by the places of rows; rows that fail for others. (Not each draw shows them.)"""
    monkeypatch.setattr(*mutant)
    with pytest.raises(Fault):
        for seed in (1, 2):
            check(stores, "JOIN", seed)
