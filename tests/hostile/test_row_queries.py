"""Hostile cells of every type go through a query alone as they do among others, and fail nothing.

Each function on the list is tried: with failing and hostile cells before, behind and among good
ones, in every place, against each row alone; and with the longest cells that there may be.
"""

import contextlib
import datetime
import decimal
import itertools
import json
import math
import random
import time
from collections.abc import Iterable

import pyarrow as pa
import pytest

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.sql import databases
from beam_dp.transforms.sql.databases import connected
from beam_dp.transforms.sql.query_engine import _LONGEST, Engine
from beam_dp.transforms.sql.query_steps import RunQuery
from beam_dp.transforms.sql.row_queries import _OPERATORS, FUNCTIONS, Query
from beam_dp.transforms.sql.sql_trees import parts_of
from tests.hostile.inserted import columns_of_arrow, python_rows
from tests.hostile.inserted.layouts import NAMES

EXPRESSIONS = (
    "x",
    "CAST(x AS INTEGER)",
    "CAST(x AS DOUBLE) * 10",
    "upper(CAST(x AS VARCHAR))",
    "lower(x) || substring(x, 2, 3)",
    "dayname(CAST(x AS TIMESTAMP))",
    "x + x",
    "CASE WHEN n % 2 = 0 THEN x ELSE NULL END",
)
MATCHED = ("~~ 'a%_b%'", "!~~ '%a_b'", "~~* '%A%b%'", "!~~* 'é%'")
CALLS = {
    "numbers": """n + m; n - m; -n; n * m; n / m; n // m; n % m; n ^ m; f ^ g; f // g; f % g; f * g
        k + n; k - j; k * j; k / j; k % j; abs(n); abs(f); abs(k); sign(n); floor(f); ceil(f)
        round(f, 2); round(n, -3); trunc(f); exp(f); ln(f); log(f); log2(f); log10(f)
        sqrt(f); ln(n); sqrt(k); pow(f, g); mod(n, m); mod(f, g); greatest(n, m)
        least(f, g); greatest(k, n); isnan(f); isinf(f); nullif(n, m); if(n > m, n, m)
        n = m; n <> f; f < g; n IS DISTINCT FROM m; n BETWEEN m AND 7; n NOT BETWEEN f AND g
        n IN (1, m, f); n NOT IN (m, 9223372036854775807); coalesce(n * m, 1); coalesce(NULL, n * 2)
        CASE WHEN n > 0 THEN n * n WHEN n * 2 < 0 OR m > 0 THEN m * 2 ELSE 0 END
        n > 0 OR n * m > 5; n > 0 AND NOT n * m > 5; n * m IS NULL; n + 1 IS NOT NULL
        (n > 0 OR m * 4 > 0) AND (f > 0 OR n - m > 0); u + u; u * 2; u - 1; -u; u // 2; h * h
        n::TINYINT; n::DECIMAL(9, 2); f::BIGINT; f::FLOAT; f::DECIMAL(38, 10); k::INTEGER; n::DOUBLE
        n::VARCHAR; f::VARCHAR; k::VARCHAR; n::BOOLEAN; u::BIGINT; n::UBIGINT; n::HUGEINT * n; b AND n > 0""",
    "text": """s || v; s || n; concat(s, v, n, NULL); concat_ws('-', s, v); lower(s); upper(s)
        length(s); strlen(s); substr(s, n, m); substring(s, 2, 3); left(s, n); right(s, m)
        contains(s, 'a'); starts_with(s, 'é'); ends_with(s, 'a'); strpos(s, 'b'); position('a' IN s)
        trim(s); trim(s, 'a é'); ltrim(s, 'ab'); rtrim(s); lpad(s, 9, 'ab'); rpad(s, 3, 'é'); replace(s, 'a', 'bb')
        translate(s, 'abé', 'xy'); regexp_matches(s, '(a|é)*b'); regexp_full_match(s, '.*a.*')
        regexp_extract(s, '(.)(.*)', 2); regexp_replace(s, '(.)(.)', '\\2\\1'); regexp_matches(s, 'A', 'i')
        s = v; s < v; s > 'a'; s IN ('a', v); s BETWEEN 'a' AND v; greatest(s, v); least(s, v)
        nullif(s, v); coalesce(s, v); if(s = 'a', v, s); s IS NULL; s::INTEGER; s::BIGINT; s::DOUBLE; s::FLOAT
        s::DECIMAL(18, 3); s::HUGEINT; s::DATE; s::TIMESTAMP; s::TIME; s::BOOLEAN; s::INTERVAL; s::UBIGINT
        try_strptime(s, '%d.%m.%Y'); try_strptime(s, '%Y-%m-%d %H:%M:%S.%f'); try_strptime(s, '%A %j %B %p %I')
        CASE s WHEN 'a' THEN 1 WHEN '5' THEN 2 END; coalesce(s::INTEGER, v::INTEGER) * 2147483647""",
    "times": """year(d); quarter(d); month(t); week(d); isoyear(t); yearweek(d); isodow(d)
        dayofweek(t); day(t); dayofyear(d); dayname(d); dayname(t); monthname(t)
        hour(t); minute(t); second(t); epoch(t); epoch_ms(t); epoch_ms(n); last_day(d); last_day(t)
        date_part('doy', d); extract(hour FROM t); date_trunc('month', t)
        date_trunc('week', d); date_trunc('hour', d); date_diff('day', d, e); date_diff('microsecond', t, w)
        date_diff('month', d, e); strftime(t, '%Y-%m-%d %H %A'); strftime(d, '%j'); d + 1; d - 1; d - e; t - w
        d + n::INTEGER; t + INTERVAL (n) HOUR; t - INTERVAL '3 days'; d + INTERVAL 3 MONTH
        t + to_years(n::INTEGER); t + to_quarters(n::INTEGER); d - to_months(n::INTEGER); d + to_weeks(n::INTEGER)
        d + to_days(n::INTEGER); t + to_hours(n); t + to_minutes(n); t + to_seconds(f); t + (t - w); d::TIMESTAMP
        t::DATE; t::VARCHAR; d::VARCHAR; t::TIME; d < e; t >= w; d = t; d BETWEEN e AND t; greatest(d, e)
        nullif(d, e); coalesce(d + n::INTEGER, e); year(t) = 2024 AND month(d + n::INTEGER) > 0""",
}
ASKED = [
    *(
        each.strip()
        for part in CALLS.values()
        for line in part.splitlines()
        for each in line.split(";")
    ),
    *(f"s {each}" for each in MATCHED),
]
"""What is asked of one row: every function, operator and form of the list, with several types."""
DAY, NOON = datetime.date(2024, 5, 6), datetime.datetime(2024, 5, 6, 12)
_COLUMNS = {
    "n": (pa.int64(), [3, 0, -7], [2**63 - 1, -(2**63), 2**62, None, -1]),
    "u": (pa.uint64(), [4], [2**64 - 1, 0, None]),
    "h": (pa.int32(), [5], [2**31 - 1, -(2**31), None]),
    "f": (pa.float64(), [1.5, 0.0], [1e308, float("nan"), float("-inf"), -0.0, 5e-324, -4.0, None]),
    "k": (pa.decimal128(18, 3), [decimal.Decimal("2.500")], [decimal.Decimal("9" * 15), None]),
    "b": (pa.bool_(), [True, False], [None]),
    "s": (
        pa.string(),
        ["a", "abé", "5", "2024-05-06", "06.05.2024"],
        ["", "é" * 40, "\0", "1e999999999", "9" * 50, "-", "\u0301\u0323" * 9, "9999999-01-01", "NaN",
         "x" * 300, "infinity", "2024-05-06 24:00:00", "%_\\", "ﬀıİẞ", "👩\u200d👧", None],
    ),
    "d": (pa.date32(), [DAY], [-(2**31) + 2, 2**31 - 2, 2932896, -719529, None]),
    "t": (pa.timestamp("us"), [NOON], [2**63 - 1, -(2**63) + 2, 253402300799999999, -1, None]),
}  # fmt: skip
_TWINS = {"m": "n", "g": "f", "j": "k", "v": "s", "e": "d", "w": "t"}
CONDITIONS = ("true", "x IS NOT NULL", "n % 3 = 0 OR CAST(x AS BIGINT) > 0", "x LIKE '%a%'")


def lines(batches: list[pa.RecordBatch]) -> list[str]:
    """Return rows as text, without a look at what Python could not hold."""
    return [
        column.slice(row, 1).to_string(window=10**6)
        for batch in batches
        for row in range(len(batch))
        for column in batch.columns
    ]


SIZE = 24
"""How many rows of a batch are read alone and together."""


@pytest.mark.sampled(12)
@pytest.mark.parametrize("seed", range(12))
def test_each_row_alone_gives_what_it_gives_among_others(seed: int) -> None:
    rng = random.Random(seed)
    types = columns_of_arrow.kinds(rng)
    rows = [columns_of_arrow.bad(rng, types) for _ in range(SIZE)]
    batch = columns_of_arrow.batch(rng, types, rows)
    for name in NAMES:
        asked = f"{rng.choice(EXPRESSIONS)} AS y FROM rows WHERE {rng.choice(CONDITIONS)}"
        engine = Engine(Query.of(f"SELECT n, {asked}"))
        one = pa.record_batch({"n": pa.array(range(SIZE)), "x": batch.column(name)})
        with contextlib.suppress(checks.ParameterError):  # a type that the expression does not take
            engine.schema_of(one.schema)
            alone = [out for row in range(SIZE) for out in engine.rows(one.slice(row, 1))]
            assert lines(list(engine.rows(one))) == lines(alone)


def test_hostile_objects_fail_nothing_and_change_no_other() -> None:
    rng = random.Random(7)
    rows = [python_rows.hostile(rng) for _ in range(200)]
    run = RunQuery(Query.of("SELECT person, day, value * 2 AS value FROM rows WHERE value >= 0"))
    run.setup()

    def found(given: list[object]) -> list[str]:
        run.start_bundle()
        made = [batch for row in given for batch in run.process(row)]
        return sorted(lines([*made, *(each.value for each in run.finish_bundle())]))

    good = list(python_rows.BASE)
    others = [line for row in rows for line in found([row])]
    assert found([*rows[:100], *good, *rows[100:]]) == sorted([*found(good), *others])


def cells(name: str) -> tuple[pa.Array, pa.Array]:
    """Return the good and the hostile cells of a column."""
    kind, good, hostile = _COLUMNS[_TWINS.get(name, name)]
    raw = {pa.date32(): pa.int32(), pa.timestamp("us"): pa.int64()}.get(kind, kind)
    return pa.array(good, kind), pa.array(hostile, raw).cast(kind)


def table_of(rng: random.Random, columns: list[str], hostile: bool, size: int) -> pa.RecordBatch:
    """Return rows of good cells, or with a hostile cell in each."""
    made = {}
    bad = [rng.choice(columns) for _ in range(size)]
    for name in columns:
        good, other = cells(name)
        drawn = [rng.randrange(len(good)) for _ in range(size)]
        if hostile:
            drawn = [
                len(good) + rng.randrange(len(other)) if name == at or rng.random() < 0.3 else one
                for one, at in zip(drawn, bad, strict=True)
            ]
        made[name] = pa.concat_arrays([good, other]).take(pa.array(drawn))
    return pa.record_batch(made)


def places(rng: random.Random, good: int, hostile: int) -> list[list[int]]:
    """Return orders of rows: the hostile ones, behind the good, before, behind and among them."""
    first, last = list(range(good)), list(range(good, good + hostile))
    mixed = rng.sample(first + last, good + hostile)
    single = [[*first[:at], rng.choice(last), *first[at:]] for at in (0, good // 2, good)]
    return [last + first, first + last, mixed, *single]


def outcome(engine: Engine, batch: pa.RecordBatch) -> list[tuple[int, str]]:
    """Return which rows come out, and as what."""
    found = []
    for made in engine.rows(batch):
        values = made.column("y")
        if pa.types.is_floating(values.type):  # text shows a sign of zero, and all digits
            values = values.cast(pa.large_string())
        shown = [values.slice(row, 1).to_string(window=10**6) for row in range(len(made))]
        found += zip(made.column("row").to_pylist(), shown, strict=True)
    return found


def columns_of(expression: str) -> list[str]:
    """Return the columns that an expression reads."""
    return sorted(Query.of(f"SELECT {expression} AS y FROM rows").needs)


GOOD, HOSTILE = 4, 12
"""How many rows there are of each sort."""


@pytest.mark.sampled(24)
@pytest.mark.parametrize("asked", ASKED)
def test_every_function_gives_each_row_what_it_gives_it_alone(asked: str) -> None:
    rng = random.Random(asked)
    columns = columns_of(asked) or ["n"]
    rows = [table_of(rng, columns, False, GOOD), table_of(rng, columns, True, HOSTILE)]
    both = pa.Table.from_batches(rows).combine_chunks().to_batches()[0]
    numbered = both.append_column("row", pa.array(range(GOOD + HOSTILE)))
    kinds = Engine(Query.of(f"SELECT {asked} AS y FROM rows")).schema_of(both.schema).types
    queries = [f"SELECT row, {asked} AS y FROM rows"]
    if kinds == [pa.bool_()]:
        queries.append(f"SELECT row, true AS y FROM rows WHERE {asked}")
        queries.append(f"SELECT row, true AS y FROM rows WHERE row < 0 OR NOT ({asked})")
    for query in queries:
        engine = Engine(Query.of(query))
        engine.schema_of(numbered.schema)
        each_alone = (outcome(engine, numbered.slice(row, 1)) for row in range(GOOD + HOSTILE))
        alone = dict(itertools.chain.from_iterable(each_alone))
        for order in places(rng, GOOD, HOSTILE):
            expected = [(row, alone[row]) for row in order if row in alone]
            assert outcome(engine, numbered.take(pa.array(order))) == expected, query


def test_every_function_of_the_list_is_tried() -> None:
    engine = connected()
    called, forms, kinds = set(), set(), set()
    for asked in ASKED:
        [[tree]] = engine.execute("SELECT json_serialize_sql(?)", [f"SELECT {asked}"]).fetchall()
        for part in parts_of(json.loads(tree)):
            called |= {part["function_name"]} if "function_name" in part else set()
            forms |= {part["type"]} if part.get("class") == "OPERATOR" else set()
            kinds |= {part["class"]} if "class" in part else set()
    assert called == set(FUNCTIONS)
    assert forms == _OPERATORS
    assert {"CASE", "BETWEEN", "CONJUNCTION", "CAST", "COMPARISON"} <= kinds


LONG = ("a", "é", "\u0301\u0323", " ", "9", "a\u0301", "\0", "aé", "2024-05-06 ", "🇩🇪", "-", "1e9")
SECONDS = 1.0
"""Most seconds of one cell: linear work takes some milliseconds, its square seconds to hours."""


@pytest.mark.sampled(24)
@pytest.mark.parametrize("asked", [each for each in ASKED if "s" in columns_of(each)])
def test_the_longest_cell_takes_bounded_work_and_gives_a_bounded_result(asked: str) -> None:
    engine = Engine(Query.of(f"SELECT {asked} AS y FROM rows"))
    columns = columns_of(asked)
    for each in LONG:
        whole = each * (_LONGEST // len(each.encode()))
        made = {name: cells(name)[0].slice(0, 1) for name in columns}
        made |= {name: pa.array([whole]) for name in columns if name in "sv"}
        batch = pa.record_batch(made)
        engine.schema_of(batch.schema)
        taken = [math.inf]
        while len(taken) < 4 and min(taken) >= SECONDS:  # others may use the machine meanwhile
            start = time.monotonic()
            found = list(engine.rows(batch))
            taken.append(time.monotonic() - start)
        assert min(taken) < SECONDS, each
        assert sum(part.nbytes for part in found) <= 4 * _LONGEST + 1000


def kept(query: str, rows: Iterable[dict[str, object]]) -> list[int]:
    """Return the n of the rows that a step yields for one bundle."""
    step = RunQuery(Query.of(query))
    step.setup()
    step.start_bundle()
    assert not any(list(step.process(row)) for row in rows)
    return sorted(n for made in step.finish_bundle() for n in made.value["n"].to_pylist())


@pytest.mark.parametrize(
    "condition",
    [
        "CAST(day AS DATE) >= DATE '2026-11-01'",
        "CAST(day AS DATE) >= '2026-11-01'",
        "CAST(day AS TIMESTAMP) > '2026-11-01 10:00'",
        "day > '2026'",
        "x < CAST('5' AS DOUBLE)",
    ],
)
def test_rows_of_each_combination_of_types_stay_whatever_others_have(condition: str) -> None:
    """A literal in quotes is cast when the query is checked, once for each combination."""
    common = {"day": "2026-11-24", "note": "x", "x": 1.5}
    rows = [{"n": 0, **common}, {"n": 1, **common, "note": None}, {"n": 2, **common, "x": 1}]
    for order in itertools.permutations(rows):
        assert kept(f"SELECT n, note, x FROM rows WHERE {condition}", order) == [0, 1, 2]


def test_small_floats_are_numbers_in_a_query() -> None:
    batch = pa.record_batch({"x": pa.array([1.5, 2.5], pa.float16())})
    engine = Engine(Query.of("SELECT x * 2 AS y FROM rows WHERE x > 2"))
    assert engine.schema_of(batch.schema).names == ["y"]
    [made] = engine.rows(batch)
    assert made["y"].to_pylist() == [5.0]


def test_a_combination_of_types_that_breaks_the_engine_drops_its_own_rows_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_plan = Engine._check_plan

    def broken(engine: Engine, empty: pa.RecordBatch, untyped: frozenset[str]) -> None:
        if empty.schema.field("x").type == pa.null():
            engine._planner.close()  # as DuckDB refuses everything behind an internal error
            engine._connection.close()
            raise databases.duckdb().InternalException("broken")
        check_plan(engine, empty, untyped)

    monkeypatch.setattr(Engine, "_check_plan", broken)
    for order in itertools.permutations(
        [{"n": 0, "x": 1}, {"n": 1, "x": None}, {"n": 2, "x": "a"}]
    ):
        assert kept("SELECT n, x FROM rows", order) == [0, 2]
