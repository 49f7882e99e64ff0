"""Hostile statements are refused before a row is read, each with one line that names the part.

The corpus has 500 statements: what looks at two rows, at
files, clocks or settings, or makes work or results of any size, in every place of a SELECT.
"""

import itertools
import re

import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.transforms.sql import databases, select_statements

OF_ROWS = """row_number() OVER () ; sum(x) OVER (PARTITION BY y) ; lag(x) OVER (ORDER BY y)
    (SELECT 1) ; (SELECT max(x) FROM rows) ; x IN (SELECT x FROM rows) ; EXISTS (SELECT 1 FROM rows)
    sum(y) ; max(x) - min(x) ; string_agg(x, ',') ; any_value(x) ; list(x)
    read_text('a.csv') ; getenv('HOME') ; current_setting('threads') ; getvariable('x') ; stats(x)
    random() ; uuid() ; gen_random_uuid() ; nextval('s') ; now() ; today() ; age(x) ; repeat(x, y) ; lpad(x, y, ' ') ; rpad(x, 9, y) ; replace(x, 'a', x)
    levenshtein(x, y) ; jaccard(x, y) ; list_transform(x, lambda z: z + 1) ; x[1] ; x[1:2] ; [x, y]
    {'a': x} ; MAP {'a': x} ; unnest([x, y]) ; struct_pack(a := x) ; json_extract(x, '$.a') ; x -> 'a'
    make_timestamptz(x, 1, 1, 0, 0, 0.0) ; x AT TIME ZONE 'UTC' ; to_timestamp(x) ; collate_th(x)
    x COLLATE th ; nfc_normalize(x) ; strip_accents(x) ; regexp_extract_all(x, 'a')
    regexp_split_to_array(x, 'a') ; string_split(x, ',') ; regexp_replace(x, 'a', 'b', 'g')
    regexp_matches(x, y) ; x LIKE y ; x LIKE 'a!%' ESCAPE '!' ; regexp_matches(x, '(')
    strptime(x, '%Y') ; make_date(x, y, 1) ; date_part(['year'], x) ; format('{}', x)
    printf('%d', x) ; bar(x, 0, 1) ; main.upper(x) ; upper(x := y) ; TRY(x + 1) ; error('no')
    hash(x) ; md5(x) ; rows.x.y ; COLUMNS('x.*') ; $1 ; *"""
PLACES = (
    "SELECT sum({}) AS n FROM rows",
    "SELECT count(*) AS n FROM rows WHERE ({}) = x",
    "SELECT {} AS k, count(*) AS n FROM rows GROUP BY k",
    "SELECT sum(x) FILTER (WHERE ({}) = x) AS n FROM rows",
    "SELECT count(DISTINCT {}) AS n FROM rows",
    "WITH t AS (SELECT visitor_id, max({}) AS m FROM rows GROUP BY visitor_id) SELECT sum(m) FROM t",
)
STATEMENTS = """SELECT count(*) FROM rows JOIN 'stops.csv' USING (stop)
    SELECT count(*) FROM rows, 'stops.csv' AS s
    SELECT count(*) FROM rows, LATERAL (SELECT rows.x) AS s
    WITH t AS (SELECT * FROM rows) SELECT count(*) FROM t
    WITH t AS (SELECT visitor_id, max(x) AS m FROM rows GROUP BY visitor_id) SELECT sum(m) FROM rows
    WITH t AS (SELECT store, max(x) AS m FROM rows GROUP BY store) SELECT sum(m) FROM t
    WITH t AS (SELECT visitor_id, max(x) AS m FROM rows GROUP BY visitor_id) SELECT sum(m) FROM t JOIN t AS u USING (m)
    WITH t AS (SELECT visitor_id, max(x) AS m FROM rows GROUP BY visitor_id) SELECT sum(m) FROM t WHERE m > (SELECT avg(m) FROM t)
    WITH t AS MATERIALIZED (SELECT 1) SELECT count(*) FROM rows
    SELECT count(*) FROM (SELECT * FROM rows LIMIT 1)
    SELECT count(*) FROM read_csv('a.csv')
    SELECT count(*) FROM main.rows
    SELECT count(*) FROM rows AS r (a, b)
    SELECT count(*) FROM rows TABLESAMPLE 10%
    SELECT count(*) FROM rows AT (VERSION => 1)
    SELECT count(*) FROM rows UNION SELECT count(*) FROM rows
    SELECT count(*) ; SELECT 1
    SELECT DISTINCT count(*) FROM rows GROUP BY x
    SELECT DISTINCT ON (x) x, count(*) FROM rows GROUP BY x
    SELECT * FROM rows
    SELECT x, count(*) FROM rows
    SELECT x FROM rows GROUP BY x
    SELECT x + 1 AS y FROM rows ORDER BY y
    SELECT count(*) AS n FROM rows QUALIFY n > 1
    SELECT count(*) AS n, rank() OVER (ORDER BY x) AS r FROM rows
    SELECT count(*) AS n FROM rows HAVING x > 3
    SELECT count(*) AS n FROM rows HAVING n > (SELECT 3)
    SELECT count(*) AS n FROM rows ORDER BY x
    SELECT count(*) AS n FROM rows ORDER BY ALL
    SELECT count(*) AS n FROM rows ORDER BY 2
    SELECT count(*) AS n FROM rows LIMIT (SELECT 1)
    SELECT count(*) AS n FROM rows GROUP BY 2
    SELECT count(*) AS n FROM rows GROUP BY 1
    SELECT count(*) AS n FROM rows GROUP BY x + 1
    SELECT upper(x) AS x, count(*) AS n FROM rows GROUP BY x
    SELECT sum(x) AS n, sum(y) AS n FROM rows
    SELECT sum(x), x AS sum_x FROM rows GROUP BY x
    SELECT count(*) AS n, 'a' AS word FROM rows
    SELECT count(*) AS n, [n] AS list FROM rows
    SELECT count(*) AS n, read_text('a.csv') AS file FROM rows
    SELECT sum(x + 1) FROM rows
    SELECT sum(x, y) FROM rows
    SELECT sum(DISTINCT x) FROM rows
    SELECT sum(x ORDER BY y) FROM rows
    SELECT count(DISTINCT visitor_id) FILTER (WHERE x > 1) AS n FROM rows
    SELECT count(DISTINCT (x, y)) AS n FROM rows
    SELECT quantile_cont(x, y) AS n FROM rows
    SELECT quantile_cont(x, [0.1, 0.9]) AS n FROM rows
    SELECT quantile_cont(x, 2) AS n FROM rows
    SELECT quantile_cont(x, 1) AS n FROM rows
    SELECT quantile_cont(x, 0) AS n FROM rows
    SELECT quantile_cont(x) AS n FROM rows
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x DESC) AS n FROM rows
    SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY x) AS n FROM rows
    SELECT x, grouping(x) AS g, count(*) FROM rows GROUP BY ROLLUP (x)
    SELECT a, b, c, count(*) FROM rows GROUP BY CUBE (a, b, c)
    SELECT a, b, count(*) FROM rows GROUP BY GROUPING SETS ((a), (b))
    SELECT a, count(*) FROM rows GROUP BY GROUPING SETS ((a), (a))
    PIVOT rows ON x USING sum(y)
    DESCRIBE rows
    EXPLAIN SELECT count(*) FROM rows
    FROM rows
    INSERT INTO rows VALUES (1)
    CREATE TABLE a AS SELECT count(*) FROM rows
    COPY (SELECT count(*) FROM rows) TO 'a.csv'
    SELECT count(*) FROM rows WHERE
    x > 1"""
LINE = "^(Select: statement|Rows: query|release: post_process|PrivateTables: |.*: output columns|also_by|Quantile: p)"
KNOWN = {*select_statements._METRICS, *select_statements._COUNTS}


def asked() -> list[str]:
    """Return the statements of this page."""
    parts = [each.strip() for line in OF_ROWS.splitlines() for each in line.split(" ; ")]
    made = [place.format(part) for place, part in itertools.product(PLACES, parts)]
    unknown = sorted(databases.functions_of("aggregate") - KNOWN)
    made += [f"SELECT {name}(x) AS n FROM rows" for name in unknown]
    return [*made, *(line.strip() for line in STATEMENTS.splitlines())]


def build(statement: str) -> None:
    """Build a release of a statement, of no rows; none is read."""
    dp.Select(statement, person="visitor_id", budget=dp.Budget(1.0, 1e-6))


def test_hostile_statements_are_refused_with_one_line() -> None:
    taken = []
    for statement in asked():
        try:
            build(statement)
            taken.append(statement)
        except (ValueError, TypeError) as error:
            if not re.match(LINE, str(error)) or "\n" in str(error):
                taken.append(f"{statement}: {error!r}")
    assert taken == []


def test_there_are_five_hundred_of_them() -> None:
    assert len({*asked()}) >= 500


@pytest.mark.parametrize("depth", [20, 2_000, 100_000])
def test_a_deep_statement_is_refused(depth: int) -> None:
    for deep in ("(" * depth + "x" + ")" * depth, "x" + "+1" * depth, "-" * 3 * depth + "x"):
        try:
            build(f"SELECT sum({deep}) AS n FROM rows")
            assert depth == 20
        except ValueError as error:
            assert re.match(LINE, str(error)) and "\n" not in str(error)


@pytest.mark.parametrize("statement", [None, 7, b"SELECT count(*) FROM rows", ""])
def test_what_is_no_statement_is_refused(statement: object) -> None:
    with pytest.raises((ValueError, TypeError), match=LINE):
        dp.Select(statement, person="visitor_id", budget=dp.Budget(1.0))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT *, epoch(now()) AS ended FROM released",  # when a run ends depends on its data
        "SELECT * FROM released ORDER BY random()",
        "SELECT *, 1 AS one FROM released, read_text('/etc/hostname')",
        "SELECT * FROM released USING SAMPLE 1",
        "SELECT *, (SELECT sum(memory_usage_bytes) FROM duckdb_memory()) AS used FROM released",
        "SELECT * REPLACE (count + 1 AS count) FROM released",
        "SELECT * FROM duckdb_settings()",
        "WITH released AS (SELECT 1 AS count) SELECT * FROM released",
        "SELECT *",
        "SELECT *, count FROM released",
        "SELECT *, count + 1 AS count_low FROM released",
        "SELECT * FROM released WHERE count >= '1,000'",  # no row is left out by what fails
        "SELECT * FROM released WHERE count > 5 AND count IN (7, 'x')",
        "SELECT *, count > 'x' AS more FROM released WHERE count > 5 QUALIFY rank() OVER () < 3",
    ],
)
def test_what_is_no_function_of_the_released_table_is_refused(query: str) -> None:
    given = {"person": "visitor_id", "metrics": [dp.Count()], "budget": dp.Budget(1.0)}
    with pytest.raises(ValueError, match="^release: post_process must "):
        dp.release(pa.table({"visitor_id": ["a"]}), post_process=query, **given)


def test_keys_are_text_for_what_is_done_with_a_released_table() -> None:
    given = {"person": "v", "partition": ["n"], "metrics": [dp.Count()], "budget": dp.Budget(1.0)}
    given["partitions"] = dp.PublicPartitions([1, 2])
    rows = pa.table({"v": ["a"], "n": [1]})
    with pytest.raises(ValueError, match=r'text here; numbers of them: CAST\("n" AS BIGINT\)'):
        dp.release(rows, post_process="SELECT * FROM released WHERE n > 1", **given)
    kept = "SELECT * FROM released WHERE CAST(n AS BIGINT) > 1"
    assert dp.release(rows, post_process=kept, **given).table["n"].to_pylist() == [2]
