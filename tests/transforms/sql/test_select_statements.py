"""A SELECT becomes the mapping that was written by hand for it, or is refused with one line."""

import datetime
import json
from typing import Any

import pyarrow as pa
import pytest
import yaml

import beam_dp as dp
from beam_dp.transforms.sql import sql_trees
from beam_dp.transforms.sql.select_statements import Statement

PERSON = ("visitor_id",)
COMPILED = {
    # of one table
    "SELECT count(*) FROM rows": "metrics: [{count: , name: count}]",
    "SELECT count(1) AS n FROM 'a-*.parquet'": """
        input: a-*.parquet
        metrics: [{count: , name: n}]""",
    "SELECT count(visitor_id) AS n, count(DISTINCT visitor_id) AS people FROM rows": """
        metrics: [{count: , name: n}, {people_count: , name: people}]""",
    "SELECT sum(spent), avg(spent), min(spent), max(spent), median(spent) FROM rows": """
        metrics: [{sum: spent, name: sum_spent}, {mean: spent, own_count: true, name: mean_spent},
                  {min: spent, name: min_spent}, {max: spent, name: max_spent},
                  {median: spent, name: median_spent}]""",
    "SELECT var_pop(x), stddev_pop(x) AS s FROM rows": """
        metrics: [{variance: x, name: variance_x}, {standard_deviation: x, name: s}]""",
    "SELECT quantile_cont(x, 0.9) AS p90 FROM rows": """
        metrics: [{quantile: x, p: 0.9, name: p90}]""",
    "SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY x) AS low FROM rows": """
        metrics: [{quantile: x, p: 0.25, name: low}]""",
    "SELECT count(x) AS known FROM rows": """
        query: SELECT visitor_id, CASE WHEN (x IS NOT NULL) THEN 1 ELSE 0 END AS known FROM rows
        metrics: [{sum: known, unit: 1, name: known}]""",
    "SELECT count(x), count(x) / count(*) AS share FROM rows": """
        query: SELECT visitor_id, CASE WHEN (x IS NOT NULL) THEN 1 ELSE 0 END AS count_x FROM rows
        metrics: [{sum: count_x, unit: 1, name: count_x}, {count: , name: count}]
        post_process: SELECT *, (count_x / count) AS share FROM released""",
    "SELECT count_if(x > 5) AS rich, count(*) AS n, rich / n AS share FROM rows": """
        query: SELECT visitor_id, CASE WHEN (x > 5) THEN 1 ELSE 0 END AS rich FROM rows
        numbers: [x]
        metrics: [{sum: rich, unit: 1, name: rich}, {count: , name: n}]
        post_process: SELECT *, (rich / n) AS share FROM released""",
    "SELECT sum(x = 'yes') AS agreed FROM rows": """
        query: SELECT visitor_id, CASE WHEN (x = 'yes') THEN 1 ELSE 0 END AS agreed FROM rows
        metrics: [{sum: agreed, unit: 1, name: agreed}]""",
    "SELECT countif(s LIKE 'a%') AS n, count_if(x > 5) AS m FROM rows": """
        query: SELECT visitor_id, CASE WHEN (s LIKE 'a%') THEN 1 ELSE 0 END AS n,
          CASE WHEN (x > 5) THEN 1 ELSE 0 END AS m FROM rows
        numbers: [x]
        metrics: [{sum: n, unit: 1, name: n}, {sum: m, unit: 1, name: m}]""",
    "SELECT count(*) FILTER (WHERE x IN (1, 2)) AS n FROM rows": """
        query: SELECT visitor_id, CASE WHEN (x IN (1, 2)) THEN 1 ELSE 0 END AS n FROM rows
        numbers: [x]
        metrics: [{sum: n, unit: 1, name: n}]""",
    "SELECT sum(x) FILTER (WHERE kind = 'a') AS a FROM rows": """
        query: SELECT visitor_id, CASE WHEN (kind = 'a') THEN x ELSE NULL END AS a FROM rows
        numbers: [x]
        metrics: [{sum: a, name: a}]""",
    "SELECT avg(x) FILTER (WHERE kind = 'a') AS a FROM rows": """
        query: SELECT visitor_id, CASE WHEN (kind = 'a') THEN x ELSE NULL END AS a FROM rows
        numbers: [x]
        metrics: [{mean: a, own_count: true, name: a}]""",
    "SELECT count(DISTINCT item) FILTER (WHERE x > 1) AS n FROM rows": """
        query: SELECT visitor_id, CASE WHEN (x > 1) THEN item ELSE NULL END AS n FROM rows
        numbers: [x]
        metrics: [{distinct_count: n, name: n}]""",
    "SELECT avg(a = 'x' AND b IS NULL) AS share FROM rows": """
        query: SELECT visitor_id, (a = 'x' AND b IS NULL) AS share FROM rows
        metrics: [{ratio: share, name: share}]""",
    "SELECT sum(price * n) AS revenue, avg(price * n) AS each FROM rows": """
        query: SELECT visitor_id, (price * n) AS revenue FROM rows
        numbers: [price, n]
        metrics: [{sum: revenue, name: revenue}, {mean: revenue, own_count: true, name: each}]""",
    "SELECT sum(spent * 2) AS spent FROM rows WHERE spent > 5": """
        query: SELECT visitor_id, (spent * 2) AS "(spent * 2)" FROM rows WHERE (spent > 5)
        numbers: [spent]
        metrics: [{sum: (spent * 2), name: spent}]""",
    "FROM rows SELECT sum(spent) AS total": "metrics: [{sum: spent, name: total}]",
    "SELECT sum(v.spent) AS total FROM 'visits.csv' AS v WHERE v.kind = 'a'": """
        input: visits.csv
        query: SELECT visitor_id, spent FROM rows WHERE (kind = 'a')
        metrics: [{sum: spent, name: total}]""",
    # of several partitions
    "SELECT day, store, count(*) AS n FROM rows GROUP BY ALL": """
        partition: [day, store]
        metrics: [{count: , name: n}]""",
    "SELECT day, sum(x) AS x, count(*) AS n, x / n AS each, each * 2 AS pair FROM rows GROUP BY ALL": """
        partition: [day]
        metrics: [{sum: x, name: x}, {count: , name: n}]
        post_process: SELECT *, (x / n) AS each, (each * 2) AS pair FROM released""",
    "SELECT day, store, count(*) AS n FROM rows GROUP BY 2, 1": """
        partition: [store, day]
        metrics: [{count: , name: n}]""",
    "SELECT store AS shop, count(*) AS n FROM rows GROUP BY store": """
        partition: [shop]
        query: SELECT visitor_id, store AS shop FROM rows
        metrics: [{count: , name: n}]""",
    "SELECT dayname(at_time) AS weekday, count(*) AS n FROM rows GROUP BY weekday": """
        partition: [weekday]
        query: SELECT visitor_id, dayname(TRY_CAST(at_time AS TIMESTAMP)) AS weekday FROM rows
        metrics: [{count: , name: n}]""",
    "SELECT date_trunc('Month', at_time) AS month, count(*) AS n FROM rows GROUP BY 1": """
        partition: [month]
        query: SELECT visitor_id, TRY_CAST(date_trunc('Month', TRY_CAST(at_time AS TIMESTAMP)) AS DATE)
            AS month FROM rows
        metrics: [{count: , name: n}]""",
    "SELECT count(*) AS n FROM rows GROUP BY store": """
        partition: [store]
        metrics: [{count: , name: n}]""",
    "SELECT day, sum(x) AS x FROM rows WHERE day > 3 GROUP BY day": """
        partition: [day]
        query: SELECT visitor_id, day, x FROM rows WHERE (TRY_CAST(day AS DOUBLE) > 3)
        metrics: [{sum: x, name: x}]""",
    "SELECT store, day, count(*) AS n FROM rows GROUP BY ROLLUP (store, day)": """
        partition: [store, day]
        also_by: [[store], total]
        metrics: [{count: , name: n}]""",
    "SELECT store, day, count(*) AS n FROM rows GROUP BY CUBE (store, day)": """
        partition: [store, day]
        also_by: [[store], [day], total]
        metrics: [{count: , name: n}]""",
    "SELECT store, day, count(*) AS n FROM rows GROUP BY GROUPING SETS ((store, day), (day))": """
        partition: [store, day]
        also_by: [[day]]
        metrics: [{count: , name: n}]""",
    "SELECT a, b, c, count(*) AS n FROM rows GROUP BY a, ROLLUP (b, c)": """
        partition: [a, b, c]
        also_by: [[a, b], [a]]
        metrics: [{count: , name: n}]""",
    # of the released table
    "SELECT day, count(*) AS n FROM rows GROUP BY day HAVING count(*) >= 100": """
        partition: [day]
        metrics: [{count: , name: n}]
        post_process: SELECT * FROM released WHERE (n >= 100)""",
    "SELECT day, count(*) AS n FROM rows GROUP BY day HAVING count(DISTINCT visitor_id) >= 9": """
        partition: [day]
        metrics: [{count: , name: n}, {people_count: , name: people_count}]
        post_process: SELECT * FROM released WHERE (people_count >= 9)""",
    "SELECT day, sum(x) AS x FROM rows GROUP BY day ORDER BY x DESC LIMIT 3": """
        partition: [day]
        metrics: [{sum: x, name: x}]
        post_process: SELECT * FROM released ORDER BY x DESC LIMIT 3""",
    "SELECT day, sum(x) AS total FROM rows GROUP BY day ORDER BY sum(x), 1": """
        partition: [day]
        metrics: [{sum: x, name: total}]
        post_process: SELECT * FROM released ORDER BY total, day""",
    "SELECT sum(x) / count(*) AS each FROM rows": """
        metrics: [{sum: x, name: sum_x}, {count: , name: count}]
        post_process: SELECT *, (sum_x / count) AS each FROM released""",
    "SELECT day, sum(x) AS a, a * 2 AS b FROM rows GROUP BY day HAVING a_low > 0": """
        partition: [day]
        metrics: [{sum: x, name: a}]
        post_process: SELECT *, (a * 2) AS b FROM released WHERE (a_low > 0)""",
    "SELECT sum(x) AS a, sum(x) AS b FROM rows": """
        metrics: [{sum: x, name: a}]
        post_process: SELECT *, a AS b FROM released""",
    "SELECT count(*) / sum(count(*)) OVER () AS share, day FROM rows GROUP BY day": """
        partition: [day]
        metrics: [{count: , name: count}]
        post_process: SELECT *, (count / sum(count) OVER ()) AS share FROM released""",
    "SELECT upper(s) AS u, length(upper(s)) AS l, count(*) AS n FROM rows GROUP BY upper(s)": """
        partition: [u]
        query: SELECT visitor_id, upper(s) AS u FROM rows
        metrics: [{count: , name: n}]
        post_process: SELECT *, length(u) AS l FROM released""",
    # cells of text
    "SELECT count(*) AS n FROM rows WHERE at_time + INTERVAL 1 HOUR > TIMESTAMP '2026-11-01 06:00:00'": """
        query: SELECT visitor_id FROM rows
          WHERE (TRY_CAST(at_time AS TIMESTAMP) + INTERVAL 1 HOUR > TIMESTAMP '2026-11-01 06:00:00')
        metrics: [{count: , name: n}]""",
    "SELECT CAST(at_time AS DATE) AS day, count(*) AS n FROM rows GROUP BY day": """
        partition: [day]
        query: SELECT visitor_id, CAST(at_time AS DATE) AS day FROM rows
        metrics: [{count: , name: n}]""",
    "SELECT count(*) AS n FROM rows WHERE CAST(a AS DOUBLE) < b AND c > CAST(d AS INT)": """
        query: SELECT visitor_id FROM rows WHERE (CAST(a AS DOUBLE) < b AND c > CAST(d AS INT))
        numbers: [b, c]
        metrics: [{count: , name: n}]""",
    "SELECT count(DISTINCT item) AS items FROM rows WHERE item > 5": """
        query: SELECT visitor_id, item FROM rows WHERE (TRY_CAST(item AS DOUBLE) > 5)
        metrics: [{distinct_count: item, name: items}]""",
    "SELECT sum(CASE WHEN kind = 'a' THEN x * 2 ELSE 0 END) AS a FROM rows": """
        query: SELECT visitor_id, CASE WHEN (kind = 'a') THEN (x * 2) ELSE 0 END AS a FROM rows
        numbers: [x]
        metrics: [{sum: a, name: a}]""",
    "SELECT sum(coalesce(x, 0)) AS a, sum(if(y, z, -w)) AS b, max(greatest(u, v)) AS c FROM rows": """
        query: SELECT visitor_id, COALESCE(x, 0) AS a, if(y, z, -(w)) AS b, greatest(u, v) AS c
          FROM rows
        numbers: [x, w, z, u, v]
        metrics: [{sum: a, name: a}, {sum: b, name: b}, {max: c, name: c}]""",
    "SELECT sum(price - cost) AS profit FROM rows WHERE greatest(x, y) > 3": """
        query: SELECT visitor_id, (price - cost) AS profit FROM rows WHERE (greatest(x, y) > 3)
        numbers: [price, cost, x, y]
        metrics: [{sum: profit, name: profit}]""",
    "SELECT kind, sum(CASE WHEN x > 1 THEN kind END) AS s FROM rows GROUP BY kind": """
        partition: [kind]
        query: SELECT visitor_id, kind, CASE WHEN (x > 1) THEN TRY_CAST(kind AS DOUBLE) ELSE NULL END
          AS s FROM rows
        numbers: [x]
        metrics: [{sum: s, name: s}]""",
    # keys of the released table
    "SELECT day, count(*) AS n FROM rows GROUP BY day HAVING day > 9 ORDER BY day + 1": """
        partition: [day]
        metrics: [{count: , name: n}]
        post_process: SELECT * FROM released WHERE (TRY_CAST("day" AS DOUBLE) > 9)
          ORDER BY (TRY_CAST("day" AS DOUBLE) + 1)""",
    "SELECT day, count(*) AS n, month(day) AS m FROM rows GROUP BY day HAVING day < DATE '2026-12-01'": """
        partition: [day]
        metrics: [{count: , name: n}]
        post_process: SELECT *, month(TRY_CAST("day" AS TIMESTAMP)) AS m FROM released
          WHERE (TRY_CAST("day" AS TIMESTAMP) < CAST('2026-12-01' AS DATE))""",
    # BigQuery's page on its clause for differential privacy, with the clause's own words left out
    "SELECT item, avg(quantity) AS average_quantity FROM professors GROUP BY item": """
        partition: [item]
        metrics: [{mean: quantity, own_count: true, name: average_quantity}]""",
    "SELECT item, count(*) AS times_requested FROM professors GROUP BY item": """
        partition: [item]
        metrics: [{count: , name: times_requested}]""",
    "SELECT item, sum(quantity) AS quantity FROM professors GROUP BY item": """
        partition: [item]
        metrics: [{sum: quantity, name: quantity}]""",
    "SELECT item, percentile_cont(0.5) WITHIN GROUP (ORDER BY quantity) AS m FROM p GROUP BY item": """
        partition: [item]
        metrics: [{quantile: quantity, p: 0.5, name: m}]""",
    "SELECT item, var_pop(quantity) AS v, count(DISTINCT visitor_id) AS c FROM p GROUP BY item": """
        partition: [item]
        metrics: [{variance: quantity, name: v}, {people_count: , name: c}]""",
    # the pages of these docs
    "SELECT day, count(*), sum(spent), avg(spent) FROM 'docs/start/visits.csv' GROUP BY day": """
        input: docs/start/visits.csv
        partition: [day]
        metrics: [{count: , name: count}, {sum: spent, name: sum_spent}, {mean: spent, own_count: true, name: mean_spent}]""",
    """SELECT dayname(DATE '2026-11-22' + CAST(day AS INTEGER)) AS weekday, sum(spent * 1.2) AS spent
       FROM 'docs/start/visits.csv' WHERE minutes > 5 GROUP BY weekday""": """
        input: docs/start/visits.csv
        partition: [weekday]
        query: SELECT visitor_id, dayname(DATE '2026-11-22' + CAST(day AS INTEGER)) AS weekday,
          (spent * 1.2) AS "(spent * 1.2)" FROM rows WHERE (minutes > 5)
        numbers: [spent, minutes]
        metrics: [{sum: (spent * 1.2), name: spent}]""",
    """SELECT isodow(try_strptime(zeitpunkt, '%d.%m.%Y %H:%M')) AS wochentag, laden,
       count(DISTINCT visitor_id) AS kunden, sum(ausgaben) AS ausgaben FROM 'visite.csv'
       GROUP BY wochentag, laden""": """
        input: visite.csv
        partition: [wochentag, laden]
        query: SELECT visitor_id, isodow(try_strptime(zeitpunkt, '%d.%m.%Y %H:%M')) AS wochentag,
          laden, ausgaben FROM rows
        metrics: [{people_count: , name: kunden}, {sum: ausgaben, name: ausgaben}]""",
    "SELECT avg(minutes = 1) AS share FROM 'docs/start/visits.csv'": """
        input: docs/start/visits.csv
        query: SELECT visitor_id, (minutes = 1) AS share FROM rows
        numbers: [minutes]
        metrics: [{ratio: share, name: share}]""",
    # features of people
    """WITH t AS (SELECT visitor_id, store, max(spent) AS most, count(*) AS n FROM 'v.csv'
       WHERE day > 3 GROUP BY visitor_id, store)
       SELECT store, avg(most) AS m, avg(n > 3) AS often FROM t WHERE most > 5 GROUP BY store""": """
        input: v.csv
        partition: [store]
        query: WITH t AS (SELECT visitor_id, store, max(spent) AS most, count(*) AS n FROM rows
          WHERE day > 3 GROUP BY visitor_id, store)
          SELECT visitor_id, store, most, (n > 3) AS often FROM t WHERE (most > 5)
        numbers: [day, spent]
        metrics: [{mean: most, own_count: true, name: m}, {ratio: often, name: often}]""",
    """WITH t AS (SELECT v.visitor_id, day, min(CAST(v.at_time AS TIMESTAMP)) AS first,
       sum(if(kind = 'a', price * n, 0)) AS a, count(DISTINCT item) AS items FROM 'v.csv' AS v
       WHERE item > 2 GROUP BY v.visitor_id, day)
       SELECT hour(t.first) AS h, count(*) AS n, max(a) AS a, sum(items) AS i FROM t WHERE day > 2
       GROUP BY h""": """
        input: v.csv
        partition: [h]
        query: WITH t AS (SELECT visitor_id, day, min(CAST(at_time AS TIMESTAMP)) AS first,
          sum(if(kind = 'a', price * n, 0)) AS a, count(DISTINCT item) AS items FROM rows
          WHERE TRY_CAST(item AS DOUBLE) > 2 GROUP BY visitor_id, day)
          SELECT visitor_id, hour(TRY_CAST(first AS TIMESTAMP)) AS h, a, items FROM t
          WHERE TRY_CAST(day AS DOUBLE) > 2
        numbers: [price, n]
        metrics: [{count: , name: n}, {max: a, name: a}, {sum: items, name: i}]""",
    # TPC-H, query 1 and query 6
    """select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty,
       sum(l_extendedprice) as sum_base_price,
       sum(l_extendedprice * (1 - l_discount)) as sum_disc_price,
       sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge,
       avg(l_quantity) as avg_qty, avg(l_extendedprice) as avg_price, avg(l_discount) as avg_disc,
       count(*) as count_order
       from lineitem where l_shipdate <= date '1998-12-01' - interval '90' day
       group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus;""": """
        partition: [l_returnflag, l_linestatus]
        query: SELECT visitor_id, l_returnflag, l_linestatus, l_quantity, l_extendedprice,
          (l_extendedprice * (1 - l_discount)) AS sum_disc_price,
          ((l_extendedprice * (1 - l_discount)) * (1 + l_tax)) AS sum_charge, l_discount
          FROM rows WHERE (TRY_CAST(l_shipdate AS TIMESTAMP) <= date '1998-12-01' - interval '90' day)
        numbers: [l_discount, l_extendedprice, l_tax]
        metrics: [{sum: l_quantity, name: sum_qty}, {sum: l_extendedprice, name: sum_base_price},
          {sum: sum_disc_price, name: sum_disc_price}, {sum: sum_charge, name: sum_charge},
          {mean: l_quantity, own_count: true, name: avg_qty}, {mean: l_extendedprice, own_count: true, name: avg_price},
          {mean: l_discount, own_count: true, name: avg_disc}, {count: , name: count_order}]
        post_process: SELECT * FROM released ORDER BY l_returnflag, l_linestatus""",
    """select sum(l_extendedprice * l_discount) as revenue from lineitem
       where l_shipdate >= date '1994-01-01' and l_shipdate < date '1994-01-01' + interval '1' year
       and l_discount between 0.06 - 0.01 and 0.06 + 0.01 and l_quantity < 24;""": """
        query: SELECT visitor_id, (l_extendedprice * l_discount) AS revenue FROM rows
          WHERE TRY_CAST(l_shipdate AS TIMESTAMP) >= date '1994-01-01'
          AND TRY_CAST(l_shipdate AS TIMESTAMP) < date '1994-01-01' + interval '1' year
          AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24
        numbers: [l_extendedprice, l_discount, l_quantity]
        metrics: [{sum: revenue, name: revenue}]""",
}  # fmt: skip


def normal(mapping: dict[str, Any]) -> dict[str, Any]:
    """Return a mapping whose SQL is written in one way."""
    made = dict(mapping)
    for name in ("query", "post_process"):
        if name in made:
            node = sql_trees.tree_of("test", name, made[name], "")
            made[name] = sql_trees.sql_of(node).casefold()
    return made


@pytest.mark.parametrize("statement", COMPILED)
def test_a_statement_becomes_the_mapping_written_by_hand(statement: str) -> None:
    made = dict(Statement.of(statement, PERSON).mapping)
    assert json.loads(json.dumps(normal(made))) == normal(yaml.safe_load(COMPILED[statement]))


def test_there_are_sixty_statements() -> None:
    assert len(COMPILED) >= 60


@pytest.mark.sampled(6)
@pytest.mark.parametrize("statement", COMPILED)
def test_every_mapping_is_a_release(statement: str) -> None:
    if "input" not in Statement.of(statement, PERSON).mapping:
        asked = dp.Select(statement, person="visitor_id", budget=dp.Budget(1.0, 1e-6))
        assert asked.tables.first.plan().text()


def test_what_each_part_became_is_said_line_by_line() -> None:
    asked = """SELECT store, count(*) AS n, sum(x * 2) AS x2, n + 1 AS m FROM rows WHERE x > 1
        GROUP BY ROLLUP (store) HAVING n > 9 ORDER BY n LIMIT 3"""
    assert Statement.of(asked, PERSON).became == (
        "WHERE (x > 1): which rows count, each by itself",
        "GROUP BY store: a table",
        "GROUP BY (): a table",
        "count(*): n, the metric count",
        "sum((x * 2)): x2, the metric sum of x2",
        "(n + 1): m, computed of what is released",
        "HAVING (n > 9): which released rows are kept",
        "ORDER BY: of released rows",
        "LIMIT: of released rows",
        "x: read as numbers where cells are text",
    )


def test_a_with_is_said() -> None:
    asked = """WITH t AS (SELECT who, day, sum(x) AS x FROM rows WHERE y = 1 GROUP BY who, day)
        SELECT count(*) AS n FROM t WHERE x > 1"""
    assert Statement.of(asked, ("who",)).became == (
        "WHERE (y = 1): which rows count, each by itself",
        "WITH t: one row per who, day, each computed from that person's rows alone",
        "WHERE (x > 1): which rows count, each by itself",
        "count(*): n, the metric count",
        "y, x: read as numbers where cells are text",
    )


def test_the_period_goes_with_the_person() -> None:
    made = Statement.of("SELECT sum(x * 2) AS y FROM rows", ("who",), "day").mapping
    assert made["query"].startswith('SELECT who, "day", ')
    asked = "SELECT CAST(at_time AS DATE) AS day, store, sum(x) AS s FROM rows GROUP BY store"
    found = Statement.of(asked, ("who",), "day")
    assert found.mapping["query"] == (
        'SELECT who, CAST(at_time AS DATE) AS "day", store, x FROM "rows"'
    )
    assert "post_process" not in found.mapping and found.mapping["partition"] == ["store"]
    assert "CAST(at_time AS DATE): day, the period, which is not released" in found.became
    asked = "SELECT CAST(at_time AS DATE) AS day, count(*) AS n FROM rows GROUP BY day"
    made = Statement.of(asked, ("who",), "day").mapping
    assert made["query"].startswith('SELECT who, CAST(at_time AS DATE) AS "day" FROM')


@pytest.mark.parametrize("owner", ["buyer", "seller"])
def test_no_owner_becomes_another_column_by_a_name_in_group_by(owner: str) -> None:
    asked = f"SELECT order_id AS {owner}, count(*) AS n FROM rows GROUP BY {owner}"
    with pytest.raises(ValueError, match=f"mean one thing by {owner}"):
        Statement.of(asked, ("buyer", "seller"))


def test_of_several_owners_those_that_are_there_are_counted() -> None:
    [count] = Statement.of("SELECT count(buyer) AS n FROM rows", ("buyer", "seller")).mapping[
        "metrics"
    ]
    assert count == {"sum": "n", "unit": 1, "name": "n"}  # of rows that have one


@pytest.mark.parametrize("at", [0, 3])
def test_columns_are_numbered_from_1(at: int) -> None:
    with pytest.raises(ValueError, match="must name its 2 columns by numbers from 1 on"):
        Statement.of(f"SELECT store, count(*) AS n FROM rows GROUP BY {at}", ("who",))


def test_a_column_in_single_quotes_and_a_star_are_told_what_to_write() -> None:
    with pytest.raises(ValueError, match="columns stand in double quotes"):
        Statement.of("SELECT avg('Money spent') AS each FROM rows", ("who",))
    with pytest.raises(ValueError, match=r"or aggregates: count\(\*\), sum\(spent\)"):
        Statement.of("SELECT * FROM rows", ("who",))


def test_a_month_is_a_key_that_is_a_date() -> None:
    """date_trunc gives a time, which is no key; the date is the one that DuckDB has."""
    times = [datetime.datetime(2026, month, 7, 23) for month in (10, 11, 11) for _ in range(40)]
    rows = pa.table({"who": range(120), "at_time": pa.array(times, pa.timestamp("us"))})
    query = "SELECT date_trunc('month', at_time) AS month, count(*) AS n FROM rows GROUP BY ALL"
    with dp.testing.without_noise():
        made = dp.select(query, person="who", budget=dp.Budget(1, 1e-6), rows=rows)
    found = {row["month"]: row["n"] for row in made.table.to_pylist()}
    assert found == {datetime.date(2026, 10, 1): 40, datetime.date(2026, 11, 1): 80}


@pytest.mark.parametrize(
    ("items", "keys"),
    [
        ("d, sum(x) AS a, a * 2 AS twice", ["d"]),
        ("d, sum(x) AS A, a * 2 AS twice", ["d"]),
        ("d, sum(a) AS x, avg(x) AS y, x * 2 AS z", ["d", "z"]),
        ("d, sum(x) AS x, x > 5 AS big", ["d", "big"]),  # as in SQL: a column before an alias
        ("date_trunc('hour', CAST(d AS TIMESTAMP)) AS h, count(*) AS n", ["h"]),
    ],
)
def test_keys_of_group_by_all_are_those_of_sql(items: str, keys: list[str]) -> None:
    made = Statement.of(f"SELECT {items} FROM rows GROUP BY ALL", ("who",)).mapping
    assert made["partition"] == keys and "AS DATE)" not in made.get("query", "")
