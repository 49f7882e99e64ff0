"""`Rows` runs SQL on one row at a time: what could look at two rows, or outside, is refused."""

import datetime
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import beam_dp as dp
from beam_dp import testing
from beam_dp.transforms.sql.query_engine import Engine
from beam_dp.transforms.sql.row_queries import FUNCTIONS, Query
from pipelines import aggregate
from tests import pages
from tests.hostile import support
from tests.hostile.support import Hostile

REFUSED = {  # functions and forms that are on no list: tests/hostile/test_select_statements.py
    "an aggregate": "SELECT count(*) AS n FROM rows",
    "groups": "SELECT x FROM rows GROUP BY x",
    "having": "SELECT x FROM rows HAVING x > 1",
    "a window": "SELECT row_number() OVER () AS n FROM rows",
    "qualify": "SELECT x FROM rows QUALIFY x",
    "a subquery": "SELECT (SELECT 1) AS x FROM rows",
    "a subquery in FROM": "SELECT x FROM (SELECT x FROM rows)",
    "a with": "WITH r AS (SELECT 1) SELECT * FROM rows",
    "a union": "SELECT x FROM rows UNION ALL SELECT x FROM rows",
    "distinct": "SELECT DISTINCT x FROM rows",
    "a sample": "SELECT x FROM rows USING SAMPLE 3",
    "a sample of the table": "SELECT x FROM rows TABLESAMPLE 10%",
    "a file": "SELECT x FROM 'a.csv'",
    "a table function": "SELECT x FROM read_csv('a.csv')",
    "the clock": "SELECT now() AS x FROM rows",
    "today": "SELECT x FROM rows WHERE day < current_date",
    "the time": "SELECT x FROM rows WHERE t < CURRENT_TIMESTAMP",
    "columns by a pattern": "SELECT COLUMNS('x.*') FROM rows",
    "a parameter": "SELECT $1 AS x FROM rows",
    "JSON, which may be deep": "SELECT json_contains(TRY_CAST(x AS JSON), '1') AS y FROM rows",
    "all matches replaced": "SELECT regexp_replace(x, 'a(.*b)?', 'c', 'g') AS y FROM rows",
    "a pattern from a cell": "SELECT x LIKE y AS z FROM rows",
    "an escape": "SELECT x LIKE 'a!%' ESCAPE '!' AS y FROM rows",
    "TRY": "SELECT TRY(x + 1) AS y FROM rows",
    "a pattern that is none": "SELECT regexp_matches(x, '(') AS y FROM rows",
    "a format that is none": "SELECT strftime(x, '%Q') AS y FROM rows",
    "no part of a time": "SELECT date_trunc('days of old', x) AS y FROM rows",
    "a group that is none": "SELECT regexp_replace(x, 'a', '\\3') AS y FROM rows",
    "two statements": "SELECT 1 AS x FROM rows; SELECT 2 AS x FROM rows",
    "an insert": "INSERT INTO rows VALUES (1)",
    "an expression without a name": "SELECT x + 1 FROM rows",
    "a name that stands twice": "SELECT x, y AS X FROM rows",
    "the name of a column that another one reads": "SELECT x AS y, y AS x FROM rows",
    "another person under the old name": "SELECT friend AS who, who AS person FROM rows",
    "a condition on the new name of a column": "SELECT x AS y FROM rows WHERE y > 1",
    "a computed column that is renamed": "SELECT x + 1 AS y, y AS z FROM rows",
    "the name of a column that is computed and read": "SELECT x + 1 AS y, y + 1 AS x FROM rows",
    "names that differ in case alone": "SELECT x AS who, v + V AS s FROM rows",
    "a condition on another case": "SELECT V AS s FROM rows WHERE v = 1",
    "no SQL": "x > 1",
    "nothing": "",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_of_one_row_is_refused_with_one_line(name: str) -> None:
    with pytest.raises(ValueError, match="^Rows: query must .") as raised:
        dp.Rows(REFUSED[name])
    assert "\n" not in str(raised.value)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="^Rows: query must be SQL"):
        dp.Rows(b"SELECT x FROM rows")


def test_the_page_has_the_whole_list() -> None:
    table = pages.read("docs/how_to/rows.md").partition("| conditions |")[2].partition("\n\n")[0]
    words = {word for part in re.findall("`([^`]*)`", table) for word in part.split()}
    assert {name for name in FUNCTIONS if name.isidentifier()} <= words


EXPRESSIONS = {
    "x + 1 - 2 * 3": -4,
    "CASE WHEN x > 0 THEN 'a' ELSE 'b' END": "a",
    "x IN (1, 2) AND x BETWEEN 0 AND 3 AND NOT x IS NULL": True,
    "s LIKE 'a%' OR s ILIKE 'B%' OR s SIMILAR TO 'c'": True,
    "coalesce(NULL, s)": "ab c",
    "ln(x - 1) IS NULL AND sqrt(-x) IS NULL AND x % 0 IS NULL AND log(x) = 0": True,
    "isnan(CAST(x AS DOUBLE) % 0) AND isinf(x / 0) AND x / nullif(0, 0) IS NULL": True,
    "CAST('2026-11-26' AS DATE) = t::DATE AND CAST(s AS DATE) IS NULL": True,
    "TRY_CAST(s AS DOUBLE)": None,
    "dayname(t)": "Thursday",
    "t >= TIMESTAMP '2026-11-01' + INTERVAL 3 DAY": True,
    "rows.x": 1,
}


def run(
    query: str, elements: list[Any], columns: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Return the rows that a query makes of elements."""
    batches = support.released(elements, dp.Rows(query, columns))
    return [row for batch in batches for row in batch.to_pylist()]


def test_expressions_of_one_row() -> None:
    when = datetime.datetime(2026, 11, 26, 9)
    names = [f"c{number}" for number in range(len(EXPRESSIONS))]
    asked = ", ".join(f"{each} AS {name}" for each, name in zip(EXPRESSIONS, names, strict=True))
    row = {"x": 1, "s": "ab c", "t": when}
    found = run(f"SELECT {asked} FROM rows", [pa.RecordBatch.from_pylist([row]), row])
    assert found == [dict(zip(names, EXPRESSIONS.values(), strict=True))] * 2


def test_which_columns_are_read() -> None:
    batch = pa.record_batch({"x": [1, 6], "y": ["a", "b"]})
    found = run("SELECT *, x * 2 AS z FROM rows WHERE x > 5", [batch], ["x", "y"])
    assert found == [{"x": 6, "y": "b", "z": 12}]
    row, names = {"x": 6, "y": "b", "w": None}, ["x", "y"]
    assert run("SELECT *, x * 2 AS z FROM rows", [row], names) == found
    typed = [beam.Row(who="a", spent=2.0), beam.Row(who="b", spent=0.0)]
    assert run("SELECT who FROM rows WHERE spent > 1", typed) == [{"who": "a"}]
    assert run("SELECT who FROM rows", [{"who": 2**64}]) == [{"who": str(2**64)}]
    assert run("SELECT who FROM rows", []) == []
    query = Query.of("SELECT a AS who, upper(b) AS d, d || c AS e FROM rows WHERE e > f")
    assert sorted(query.needs) == ["a", "b", "c", "f"]
    assert query.columns_of(["who", "d", "x"]) == ["a"]


def test_casts_that_fail_are_null_in_one_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = counted(monkeypatch)
    query = "SELECT n, CAST(x AS INT) AS x FROM rows WHERE n % 2 = 0 OR CAST(x AS INT) = 5"
    batch = pa.record_batch({"n": pa.array(range(5000)), "x": ["5", "4", "a"] * 1666 + ["5", "b"]})
    [made] = Engine(Query.of(query)).rows(batch)
    given = [(n, int(x) if x.isdigit() else None) for n, x in enumerate(batch["x"].to_pylist())]
    kept = [(n, x) for n, x in given if n % 2 == 0 or x == 5]
    assert list(zip(*made.to_pydict().values(), strict=True)) == kept
    assert len(runs) == 1


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return what will hold the number of rows of each execution."""
    runs: list[int] = []
    run = Engine._run
    monkeypatch.setattr(
        Engine, "_run", lambda self, batch: runs.append(len(batch)) or run(self, batch)
    )
    return runs


@pytest.mark.parametrize("failing", [{0, 2047}, {*range(0, 2048, 128)}])
def test_a_row_that_fails_costs_a_bounded_number_of_executions(
    failing: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = counted(monkeypatch)
    large = [2**62 if n in failing else 1 for n in range(2048)]
    batch = pa.record_batch({"n": pa.array(range(2048)), "x": large})
    made = list(Engine(Query.of("SELECT n, x * 2 AS y FROM rows WHERE n > 0 OR true")).rows(batch))
    kept = [n for each in made for n in each["n"].to_pylist()]
    assert kept == [n for n in range(2048) if n not in failing]
    assert len(runs) <= len(failing) * (2 * 11 + 2)


def test_a_cell_above_64_kib_drops_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = counted(monkeypatch)
    most = "é" * 2**15
    cells = ["a", most, most + "a", None, "a" * 10**6, "b"]
    for column in (
        pa.array(cells),
        pa.array(cells, pa.large_string()),
        pa.array(cells).cast(pa.string_view()),
        pa.array(cells).dictionary_encode(),
    ):
        batch = pa.record_batch({"n": range(6), "s": column})
        for query in ("SELECT n, s FROM rows", "SELECT *, length(s) AS l FROM rows"):
            runs.clear()
            [made] = Engine(Query.of(query)).rows(batch)
            assert made["n"].to_pylist() == [0, 1, 3, 5]
            assert runs == [4]
        [made] = Engine(Query.of("SELECT n FROM rows")).rows(batch.select(["n"]))
        assert len(made) == 6


def test_both_sides_of_and_and_or_are_computed_for_every_row() -> None:
    """DuckDB alone computes one side only where the other one does not settle it."""
    batch = pa.record_batch({"n": pa.array(range(3000)), "x": [1] * 2999 + [2**62]})
    for condition in (
        "true OR x * 2 > 0",
        "n < 0 OR NOT (false AND x * 2 > 0)",
        "CASE WHEN n >= 0 OR x * 2 > 0 THEN true END",
    ):
        engine = Engine(Query.of(f"SELECT n FROM rows WHERE {condition}"))
        assert sum(map(len, engine.rows(batch))) == 2999
        assert sum(map(len, engine.rows(batch.slice(2999)))) == 0


def test_text_that_is_no_utf8_drops_its_row() -> None:
    raw = pa.array([b"good", b"\xff\xfe", b"fine"]).cast(pa.binary())
    text = pa.StringArray.from_buffers(3, *raw.buffers()[1:])
    for column in (text, pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), text)):
        found = run("SELECT upper(s) AS s FROM rows", [pa.record_batch({"s": column})])
        assert found == [{"s": "GOOD"}, {"s": "FINE"}]


HOSTILE = {
    "other": Hostile(),
    "list": [1],
    "bytes": b"\xff",
    "surrogate": "\ud800",
    "huge": 10**400,
    "large": 2**64,
    "nan": float("nan"),
    "truth": True,
    "words": "x",
    "none": None,
    "far": datetime.datetime.max,
}


@pytest.mark.filterwarnings("ignore::beam_dp.testing.NotPrivate")
def test_rows_without_a_type_fail_no_release_of_them() -> None:
    """A cell that is of no use for its column is that row's own: the others are released."""
    good = [{"who": f"good {number}", "key": "a", "v": 2.0} for number in range(9)]
    bad = [{**good[0], name: value} for name in good[0] for value in HOSTILE.values()]
    public = dp.PublicPartitions(["a"])
    metrics = [dp.Count(), dp.Sum("v", clip=50), dp.DistinctCount("v")]
    release = dp.PrivateAggregate("who", metrics, dp.Budget(1), ["key"], partitions=public)
    bound = dp.BoundContributions("who", ["key"], dp.ContributionBounds(1, 1), ["v"])
    with testing.without_noise(), beam.Pipeline(runner="FnApiRunner") as pipeline:
        read = support.start(pipeline, [*bad, *good])
        rows = read | dp.Rows("SELECT who, key, v FROM rows")
        seen, kept = support.keep(rows | release), support.keep(rows | bound, "KeepBound")
    assert {f"good {number}" for number in range(1, 9)} <= {each.who for each in kept}
    [row] = seen
    assert row.key == "a" and row.count >= 9 and row.sum_v >= 18


FITS_NOT = {
    "SELECT who, spent * 2 AS spent FROM rows": r"No function matches .*CAST\(spent AS DOUBLE",
    "SELECT who, missing FROM rows": "column 'missing' must stand once in every file",
    "SELECT who FROM rows WHERE spent < got": r"what it compares spent and got: .*CAST\(spent AS",
    "SELECT who FROM rows WHERE spent BETWEEN '2026-11-01' AND got": "compares spent and got: cells",
    "SELECT who, greatest(spent, got) AS most FROM rows": "as what it compares spent and got",
    "SELECT who FROM rows WHERE upper(spent) > '5'": "not order spent by '5': .*as spent > 5",
    "SELECT who FROM rows WHERE greatest(spent, '9') = spent": "not order spent by '9'",
    "SELECT who FROM rows WHERE spent BETWEEN 'a' AND '24.11.2026'": "like '2026-11-24'",
    "SELECT who FROM rows JOIN 'public.csv' AS p USING (who) WHERE p.low < p.high": "low and high",
    "WITH t AS (SELECT who, spent, got, count(*) AS n FROM rows GROUP BY who, spent, got) "
    "SELECT who FROM t WHERE spent < got": "as what it compares spent and got",
}


@pytest.mark.parametrize("query", FITS_NOT)
def test_what_does_not_fit_a_file_is_refused_before_it_runs(tmp_path: Path, query: str) -> None:
    for name in ("in", "public"):
        (tmp_path / f"{name}.csv").write_text("who,spent,got,low,high\ncanary,1,2,3,4\n")
    rows = dp.Rows(query.replace("public.csv", str(tmp_path / "public.csv")))
    read = dp.ReadRows(str(tmp_path / "in.csv"), rows.parsed.needs)
    with pytest.raises(ValueError, match=FITS_NOT[query]) as raised:
        _ = beam.Pipeline("FnApiRunner") | read | rows
    assert "canary" not in str(raised.value)


@pytest.mark.parametrize("condition", ["a > '2026-11-24'", "a = b", "a IN ('5')", "n > 5"])
def test_what_orders_no_two_texts_of_csv_is_taken(tmp_path: Path, condition: str) -> None:
    (tmp_path / "in.csv").write_text("who,a,b,n\nx,2026-11-25,2026-11-26,9\n")
    read = dp.ReadRows(str(tmp_path / "in.csv"), ["who", "a", "b", "n"], ["n"])
    _ = beam.Pipeline("FnApiRunner") | read | dp.Rows(f"SELECT who FROM rows WHERE {condition}")


def test_text_that_has_a_type_is_ordered_as_text(tmp_path: Path) -> None:
    pq.write_table(pa.table({"who": ["x"], "a": ["10"], "b": ["9"]}), tmp_path / "in.parquet")
    read = dp.ReadRows(str(tmp_path / "in.parquet"), ["who", "a", "b"])
    _ = beam.Pipeline("FnApiRunner") | read | dp.Rows("SELECT who FROM rows WHERE a < b")


def test_batches_with_two_columns_of_one_name_or_none_fail_the_job() -> None:
    with pytest.raises(Exception, match="query must read one of 'v' and 'V'"):
        run("SELECT * FROM rows WHERE v = 1", [pa.record_batch({"v": [1], "V": [100]})], ["v"])
    with pytest.raises(Exception, match="column 'y' must stand once in every batch"):
        run("SELECT y FROM rows", [pa.record_batch({"x": [1]})])


def test_types_go_on_to_the_release(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("who,spent\na,1\n")
    rows = beam.Pipeline("FnApiRunner") | dp.ReadRows(str(tmp_path / "in.csv"), ["who", "spent"])
    made = rows | dp.Rows("SELECT who, spent FROM rows")
    with pytest.raises((TypeError, ValueError), match="'spent'"):
        _ = made | dp.PrivateAggregate("who", [dp.Sum("spent", clip=3)], dp.Budget(1.0))


TYPES = {
    "STRUCT": ("v.f", pa.struct([("f", pa.string())])),
    "LIST": ("v", pa.list_(pa.int64())),
    "BLOB": ("v", pa.binary()),
    "UHUGEINT": ("CAST(v AS UHUGEINT)", pa.int64()),  # comes out negative from 2^127 on
    "VARIANT": ("CAST(v AS VARIANT)", pa.string()),
    "TIMESTAMP WITH TIME ZONE": ("CAST(v AS TIMESTAMPTZ)", pa.string()),
}


@pytest.mark.parametrize("name", TYPES)
def test_values_that_are_not_plain_are_refused_by_their_type(name: str) -> None:
    expression, kind = TYPES[name]
    engine = Engine(Query.of(f"SELECT id, {expression} AS f FROM rows"))
    with pytest.raises(ValueError, match=f"query must have plain values only, and {name} is none"):
        engine.schema_of(pa.schema([("id", pa.int64()), ("v", kind)]))


UNASKED = {
    "s = 5": "cast text to INTEGER, as that of s.* Write CAST.s AS INTEGER",
    "d > DATE '24.11.2026'": "invalid date field format",
    "n = 'x'": "Could not convert string 'x'",
}


@pytest.mark.parametrize("condition", UNASKED)
def test_text_is_not_cast_unasked(condition: str) -> None:
    engine = Engine(Query.of(f"SELECT n FROM rows WHERE {condition}"))
    known = pa.schema([("s", pa.string()), ("n", pa.int16()), ("d", pa.date32())])
    with pytest.raises(ValueError, match=UNASKED[condition]):
        engine.schema_of(known)


def test_small_integers_have_64_bits_and_times_are_in_utc() -> None:
    when = datetime.datetime(2026, 11, 26, 23, tzinfo=datetime.UTC)
    at = pa.array([when], pa.timestamp("us", "Europe/Berlin"))
    batch = pa.record_batch({"x": pa.array([120], pa.int8()), "tm": at})
    found = run("SELECT x * x AS y, hour(tm) AS h, tm::DATE AS d FROM rows", [batch])
    assert found == [{"y": 14_400, "h": 23, "d": datetime.date(2026, 11, 26)}]


def test_a_query_of_a_query_is_refused() -> None:
    rows = beam.Pipeline("FnApiRunner") | beam.Create([{"a": 1}])
    with pytest.raises(ValueError, match="rows that no other query makes"):
        _ = rows | dp.Rows("SELECT a, a AS b FROM rows") | "2" >> dp.Rows("SELECT a FROM rows")


PEOPLE = {
    "lower(trim(who)) AS who": "",
    "CASE WHEN who = 'a' THEN NULL ELSE who || 'x' END AS person": "",
    "7 AS person": "",
    "who || n AS person": "compute 'person', the person, of one column",
    "coalesce(who, n) AS person": "compute 'person', the person, of one column",
    "n + 1 AS m, who || m AS person": "of one column",
}


@pytest.mark.parametrize("columns", PEOPLE)
def test_a_person_is_computed_of_one_column_only(columns: str) -> None:
    query = Query.of(f"SELECT {columns} FROM rows")
    release = dp.PrivateAggregate(list(query.named)[-1], [dp.Count()], dp.Budget(1.0))
    if not PEOPLE[columns]:
        release.reads(query)
        return
    with pytest.raises(ValueError, match=PEOPLE[columns]):
        release.reads(query)
    with pytest.raises(ValueError, match=PEOPLE[columns]):
        rows = beam.Pipeline("FnApiRunner") | beam.Create([{"who": "a", "n": 1}])
        _ = rows | dp.Rows(f"SELECT {columns} FROM rows") | release


JOINED = "SELECT who || n AS x FROM rows"


def moved(*queries: str) -> beam.PCollection:
    """Return the rows that queries make, after another step."""
    rows = beam.Pipeline("FnApiRunner") | beam.Create([{"who": "a", "n": 1}])
    names = ["who", "n"]
    made = [
        rows | f"{at}" >> dp.Rows(query, names) if query else rows
        for at, query in enumerate(queries)
    ]
    return tuple(made) | beam.Flatten() | beam.Reshuffle() | beam.Map(lambda row: row)


@pytest.mark.parametrize("others", [[], [""], ["SELECT who AS x FROM rows"]])
def test_a_person_is_computed_of_one_column_before_other_steps_too(others: list[str]) -> None:
    release = dp.PrivateAggregate("x", [dp.Count()], dp.Budget(1.0))
    with pytest.raises(ValueError, match="compute 'x', the person, of one column"):
        _ = moved(*others, JOINED) | release
    with pytest.raises(ValueError, match="rows that no other query makes"):
        _ = moved(*others, JOINED) | dp.Rows("SELECT lower(x) AS who FROM rows")


@pytest.mark.parametrize("plain", ["", "SELECT who, n FROM rows"])
def test_periods_are_computed_alike_in_all_rows(plain: str) -> None:
    _ = moved(plain, "SELECT * FROM rows") | daily("n")
    with pytest.raises(ValueError, match="period must be the same for all rows"):
        _ = moved(plain, "SELECT who, n + 1 AS n FROM rows") | daily("n")


def daily(period: str, when: str = "") -> dp.PrivateAggregate:
    """Return a release by periods."""
    parts = [dp.Count()], dp.Budget(1.0)
    return dp.PrivateAggregate("who", *parts, period=period, ledger_period=when or None)


def test_the_same_rows_are_not_released_twice_for_one_charge(tmp_path: Path) -> None:
    rows = pa.table({"who": [f"u{n}" for n in range(500)], "day": [1 + n % 2 for n in range(500)]})
    given: dict[str, Any] = {"person": "who", "metrics": [dp.Count()], "budget": dp.Budget(1.0)}
    given["ledger"] = dp.Ledger(tmp_path / "ledger.jsonl", dp.Budget(1.0))
    dp.release(rows, **given, period="day", ledger_period="1")
    for name in ("tag", "day"):
        query = f"SELECT who, day + 1 AS {name} FROM rows"
        with pytest.raises(ValueError, match="period must be day as in earlier runs"):
            dp.release(rows, **given, query=query, period=name, ledger_period="2")
    with pytest.raises(ValueError, match="compute 'one', the person, of one column"):
        given |= {"person": "one", "ledger": None}
        dp.release(rows, **given, query="SELECT who || day AS one FROM rows")


def test_a_period_is_known_before_it_is_charged(tmp_path: Path) -> None:
    ledger = dp.Ledger(tmp_path / "ledger.jsonl", dp.Budget(1.0))
    release = daily("tag", "2")
    ledger.charge(release, "of a column")
    rows = beam.Pipeline("FnApiRunner") | beam.Create([{"who": "a", "day": 1}])
    with pytest.raises(ValueError, match="not tag and .* Charge the ledger after"):
        _ = rows | dp.Rows("SELECT who, day + 1 AS tag FROM rows") | release


@pytest.mark.parametrize("columns", ["day + 1 AS m, m + 1 AS tag", "day || '\n' AS tag"])
def test_a_period_that_no_line_can_name_is_refused(columns: str) -> None:
    with pytest.raises(ValueError, match="compute 'tag', the period, in one line"):
        daily("tag").reads(Query.of(f"SELECT who, {columns} FROM rows"))
    release = daily("tag")
    release.reads(Query.of("SELECT who, day AS tag FROM rows"))
    assert release.period_source == "day"


def test_a_job_whose_query_computes_its_period(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "in.csv", str(tmp_path / "out.csv")
    lines = [f"u{n},2026-11-0{n % 9 + 1} 10:00,1.5,{n % 2}" for n in range(900)]
    source.write_text("\n".join(["who,tm,spent,kept", *lines]))
    query = "SELECT who, CAST(tm AS DATE) AS tag, spent * 2 AS spent FROM rows WHERE kept = '1'"
    words = ["--input", str(source), "--output", out, "--person", "who", "--runner", "FnApiRunner"]
    words += ["--count", "--sum", "spent,clip=9", "--epsilon", "5", "--query", query, "--quiet"]
    words += ["--period", "tag", "--ledger_period", "2026-11-02..2026-11-03"]
    with pytest.raises(SystemExit):
        aggregate.main(words)
    said = capfd.readouterr().err
    assert "query must fit the columns" in said and "CAST(spent AS DOUBLE); numbers" in said
    words += ["--numbers", "spent", "--ledger", str(tmp_path / "l.jsonl"), "--total_epsilon", "5"]
    for further in (["--plan"], []):
        assert aggregate.main([*words, *further]) == 0
        said = " ".join(capfd.readouterr().out.split())
        assert "tag is CAST(tm AS DATE); times of a query are in UTC" in said
        assert "from 2026-11-02 00:00 to 2026-11-03 24:00" in said
        assert "per person and CAST(tm AS DATE): epsilon 5 of 5" in said
    found = dp.Released.read(out)
    assert abs(found.table["sum_spent"][0].as_py() - 300) < 100
    assert found.record["job"]["query"] == query
    assert found.record["parameters"]["period_source"] == "CAST(tm AS DATE)"
    assert "tag is CAST(tm AS DATE)" in found.report()


@pytest.mark.parametrize("call", ["count(*)", "sum(x)", "avg(x)"])
def test_an_aggregate_of_many_people_is_told_what_counts_rows(call: str) -> None:
    name = call.replace("(x)", "")
    with pytest.raises(ValueError) as refused:
        dp.Rows(f"SELECT {call} AS n FROM rows")
    assert f"must not call {name}: a query looks at one row. Metrics count rows" in str(
        refused.value
    )
