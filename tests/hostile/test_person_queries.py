"""A WITH groups rows by the person: a person's rows of t come of their own rows alone, as a set."""

import datetime
import functools
import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.util import assert_that, equal_to

import beam_dp as dp
from beam_dp.testing import without_noise
from beam_dp.testing.forced_draws import compared, share_spent
from beam_dp.testing.losses.draw_costs import Fault
from beam_dp.transforms import file_checks
from beam_dp.transforms.sql import person_queries
from beam_dp.transforms.sql.person_queries import PersonQuery, _Group, _Scatter, parsed

BIG, KEY = 2**63 - 1, bytes(32)
TYPES = pa.schema([
    ("who", pa.string()), ("day", pa.int64()), ("x", pa.float64()), ("n", pa.int64()),
    ("s", pa.string()), ("at_time", pa.timestamp("us")),
])  # fmt: skip
NAN = math.nan


def made(
    query: str,
    batches: Sequence[pa.RecordBatch],
    shards: int = 1,
) -> list[dict[str, Any]]:
    """Return what a query makes of batches, sorted."""
    asked = parsed(query)
    assert isinstance(asked, PersonQuery)
    scatter, by_shard = _Scatter(asked, shards), dict[int, list[bytes]]()
    scatter._key = KEY  # who shares a shard is the same in every run
    scatter.setup()
    for batch in batches:
        for number, packed in scatter.process(batch):
            by_shard.setdefault(number, []).append(packed)
    grouped = [each for part in by_shard.items() for each in _Group(asked).process(part)]
    found, _ = file_checks._queried(asked.outer, grouped)
    return sorted((row for batch in found for row in batch.to_pylist()), key=repr)


def batches_of(rows: Sequence[dict[str, Any]], size: int = 1 << 16) -> list[pa.RecordBatch]:
    table = pa.Table.from_pylist([*rows], TYPES)
    return table.combine_chunks().to_batches(max_chunksize=size)


def random_rows(seed: int, people: int = 6, size: int = 60) -> list[dict[str, Any]]:
    """Return rows of a few people, with nulls in every column; numbers are multiples of 1/4."""
    chance = random.Random(seed)
    start = datetime.datetime(2026, 11, 24)

    def maybe(value: Any) -> Any:
        return value if chance.random() < 0.85 else None

    return [
        {
            "who": maybe(f"p{chance.randrange(people)}"),
            "day": maybe(chance.randrange(3)),
            "x": maybe(chance.randrange(-20, 20) / 4),
            "n": maybe(chance.randrange(9)),
            "s": maybe(chance.choice("abc")),
            "at_time": maybe(start + datetime.timedelta(hours=chance.randrange(90))),
        }
        for _ in range(size)
    ]


QUERIES = [
    """WITH t AS (SELECT who, count(*) AS rows_, count(x) AS known, count_if(x > 1) AS many,
    count(DISTINCT s) AS kinds, count(DISTINCT x) AS xs, sum(x) AS total, avg(n) AS each,
    min(x) AS low, max(n) AS high, min(at_time) AS first, max(CAST(at_time AS DATE)) AS last
    FROM rows GROUP BY who)
    SELECT who, rows_, known, many, kinds, xs, total, each, low, high, first, last FROM t""",
    """WITH t AS (SELECT who, day, sum(x * n) AS revenue, sum(n > 3) AS many, count(*) AS c
    FROM rows WHERE s <> 'a' GROUP BY who, day)
    SELECT who, coalesce(day, -1) AS day, revenue / c AS each, many FROM t WHERE c > 1""",
    """WITH t AS (SELECT dayname(rows.at_time) AS d, who, avg(x) AS x, max(x) AS y FROM rows
    GROUP BY who, d) SELECT t.who, t.d AS d, t.x + 1 AS x1, y FROM t WHERE t.x IS NOT NULL""",
    """WITH t AS (SELECT upper(who) AS w, max(x) AS top, count(*) AS c FROM rows
    GROUP BY w) SELECT w AS who, top, CASE WHEN top > 2 THEN 'high' ELSE 'low' END AS k FROM t""",
    """WITH t AS (SELECT who, sum(x) FILTER (WHERE n > 3) AS a, count(*) FILTER (WHERE s = 'a') AS b,
    count(x) FILTER (WHERE day = 1) AS c, mean(n) AS d FROM rows GROUP BY who)
    SELECT who, a, b, c, d FROM t""",
    "WITH T AS (SELECT who, x, count(*) AS c FROM rows GROUP BY who, x) SELECT *, c + 1 AS d FROM t",
]


@pytest.mark.parametrize("query", QUERIES)
def test_t_is_that_of_sql(query: str) -> None:
    """By brute force: the same as DuckDB, on random databases, in blocks and shards of any size.

    All numbers are multiples of 1/4, so that sums of doubles are exact in any order.
    """
    for seed in (1, 4):
        given = random_rows(seed)
        rows = pa.Table.from_pylist(given, TYPES)
        assert len(rows) == 60  # DuckDB finds it by its name
        expected = duckdb.sql(query).to_arrow_table().to_pylist()
        expected = [row for row in expected if row["who"] is not None]
        found = made(query, batches_of(given, 1 + 9 * seed), 1 + seed)
        for row in [*expected, *found]:
            row.update({name: float(c) for name, c in row.items() if isinstance(c, int)})
        assert sorted(expected, key=repr) == sorted(found, key=repr)


ODD = [1e16, 1.0, -1e16, 3.0, 1e-9, -3.0, 0.1, 1e308, -1e308, 0.0, -0.0, NAN, math.inf, None]
OWN = """WITH t AS (SELECT who, sum(x) AS a, avg(x) AS b, sum(x * n) AS c, sum(n) AS d, min(x) AS e,
    max(-x) AS f, count(x) AS g, count(DISTINCT x) AS h FROM rows GROUP BY who)
    SELECT who, a, b, c, d, e, f, g, h FROM t"""


def bits(rows: list[dict[str, Any]], who: str) -> list[bytes]:
    """Return the numbers of a person, bit by bit."""
    found = [row for row in rows if row["who"] == who]
    cells = [float("nan") if cell is None else cell for row in found for cell in row.values()]
    return [
        repr(cell).encode() if type(cell) is str else np.float64(cell).tobytes() for cell in cells
    ]


def person(who: str, seed: int, size: int) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    row = {"who": who, "day": 1, "s": "a", "at_time": None}
    odd = ODD[:-3] if seed % 2 else ODD
    return [{**row, "x": chance.choice(odd), "n": chance.randrange(9)} for _ in range(size)]


def shuffled(seed: int) -> bool:
    """Return whether order, blocks, shards or others change a person's numbers."""
    chance = random.Random(seed)
    own = person("p", seed, 40)
    alone = bits(made(OWN, batches_of(own)), "p")
    assert len(alone) == 9
    chance.shuffle(own)
    others = [row for at in range(9) for row in person(f"q{at}", chance.random(), 9)]
    rows = [*own, *others]
    chance.shuffle(rows)
    found = made(OWN, batches_of(rows, chance.randrange(1, 99)), chance.randrange(1, 9))
    return bits(found, "p") != alone


def in_row_order(table: pa.Table, sort_keys: Any) -> pa.Array:
    return pa.array(range(len(table)), pa.int64())


def test_order_blocks_and_others_change_no_bit_of_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(map(shuffled, (0, 5, 8)))
    monkeypatch.setattr(person_queries.pc, "sort_indices", in_row_order)
    assert any(map(shuffled, (0, 5, 8)))  # sums in the order of rows


def test_a_person_among_many_rows_has_the_same_bits() -> None:
    """Rows of a person lie in many blocks of Arrow's own, of 32,768 rows."""
    own, rows = person("p", 1, 300), person("q", 3, 70_000)
    alone = bits(made(OWN, batches_of(own)), "p")
    for at, row in enumerate(own):
        rows.insert(at * 231, row)
    assert bits(made(OWN, batches_of(rows, 9_999)), "p") == alone


def of_zeros(*zeros: float) -> list[bytes]:
    """Return the numbers of a person whose values are these, in this order."""
    row = {"who": "p", "day": 1, "n": 1, "s": "a", "at_time": None}
    return bits(made(OWN, batches_of([{**row, "x": x} for x in zeros])), "p")


def test_zeros_that_keep_their_sign_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of_zeros(0.0, -0.0) == of_zeros(-0.0, 0.0)
    monkeypatch.setattr(person_queries, "_one_zero", lambda cells: cells)
    assert of_zeros(0.0, -0.0) != of_zeros(-0.0, 0.0)


def test_names_do_not_meet_and_a_column_of_any_name_is_the_column() -> None:
    query = """WITH t AS (SELECT who, s AS k, max(n) AS x, sum(x) AS x_max, min("1") AS "0", max("1" + 1) AS a
        FROM rows WHERE "1" > 1 GROUP BY who, k) SELECT who, k AS b, x, x_max, "0" AS c, a FROM t"""
    rows = {"who": ["p"] * 3, "s": ["a"] * 3, "n": [1, 2, 9], "x": [0.5] * 3, "1": [3.0, 5.0, 0.0]}
    expected = {"who": "p", "b": "a", "x": 2, "x_max": 1.0, "c": 3.0, "a": 6.0}
    assert made(query, [pa.RecordBatch.from_pydict(rows)]) == [expected]


def test_a_cell_that_fails_changes_its_own_person_only() -> None:
    query = "WITH t AS (SELECT who, sum(n + 1) AS a, count(*) AS c FROM rows GROUP BY who) SELECT who, a, c FROM t"
    rows = random_rows(5)
    less = made(query, batches_of(rows))
    failing = {**rows[0], "who": "p1", "n": BIG}
    more = made(query, batches_of([failing, *rows, failing], 7), 3)
    assert more == less
    spoilt = [{**row, "n": BIG} if row["who"] == "p1" else row for row in rows]
    more = made(query, batches_of(spoilt))
    assert more == [row for row in less if row["who"] != "p1"] != less


def test_what_fails_behind_t_drops_that_row_of_t() -> None:
    t = "WITH t AS (SELECT who, max(n) AS n FROM rows GROUP BY who)"
    rows = {"who": ["a", "b", "c"], "n": [1, BIG, 2]}
    found = made(f"{t} SELECT who, n + 1 AS n FROM t", [pa.RecordBatch.from_pydict(rows)])
    assert found == [{"who": "a", "n": 2}, {"who": "c", "n": 3}]


NUMBERS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "nulls": ([None, None], {"total": None, "known": 0, "each": None, "many": 0}),
    "NaN": ([None, NAN], {"each": None, "known": 0}),
    "NaN beside": ([NAN, 2.0], {"most": 2.0, "total": 2.0}),
    "infinite": ([math.inf, 2.0], {"total": math.inf}),
    "no sum": ([math.inf, -math.inf, 2.0], {"total": None}),
    "too large": ([1e308, 1e308], {"total": math.inf, "wide": 2.0**64, "wide_most": BIG}),
    "zeros": ([0.0, -0.0, NAN, None, 1.0], {"kinds": 2}),
    "conditions": ([1.0, None, 3.0], {"many": 2, "large": 3.0}),
}


def test_odd_numbers_take_a_documented_path() -> None:
    query = """WITH t AS (SELECT who, sum(x) AS total, avg(x) AS each, count(x) AS known, max(x) AS most,
        count(DISTINCT x) AS kinds, sum(9223372036854775807) AS wide, count_if(x) AS many,
        max(9223372036854775807) AS wide_most, sum(CASE WHEN x > 2 THEN x END) AS large
        FROM rows GROUP BY who) SELECT * FROM t"""
    rows = [{"who": who, "x": cell} for who, (x, _) in NUMBERS.items() for cell in x]
    found = {row["who"]: row for row in made(query, batches_of(rows))}
    for who, (_, expected) in NUMBERS.items():
        assert {name: found[who][name] for name in expected} == expected, who


COUNTED = "WITH t AS (SELECT v, count(*) AS c FROM rows GROUP BY v) SELECT v, c FROM t"


def test_ids_that_a_release_drops_make_no_row_and_equal_ones_are_one_person() -> None:
    """As a signed integer of 64 bits, 2^63 + 5 would be 5 - 2^63."""
    ids = [1.0, 1.5, NAN, None, 0.0, -0.0, 2.0**60, math.inf, 1.0]
    batch = pa.RecordBatch.from_pydict({"v": pa.array(ids, pa.float64())})
    assert made(COUNTED, [batch], 5) == [{"v": 0.0, "c": 2}, {"v": 1.0, "c": 2}]
    coded = pa.array(["a", None, "b", "a"]).dictionary_encode()
    batch = pa.RecordBatch.from_pydict({"v": coded})
    assert made(COUNTED, [batch, batch], 5) == [{"v": "a", "c": 4}, {"v": "b", "c": 2}]
    wide = pa.array([2**63 + 5], pa.uint64()), pa.array([5 - 2**63])
    batches = [pa.RecordBatch.from_pydict({"v": each}) for each in wide]
    assert sorted(row["v"] for row in made(COUNTED, batches)) == [5 - 2**63, 2**63 + 5]


def test_elements_are_small_enough_for_every_runner() -> None:
    query = parsed(
        "WITH t AS (SELECT who, max(x) AS x, count(s) AS c FROM rows GROUP BY who) SELECT who FROM t"
    )
    rows = [{"who": f"p{at}", "x": 1.0, "s": "s" * 60_000} for at in range(200)]
    scatter = _Scatter(query, 1)
    scatter.setup()
    [batch] = batches_of(rows)
    packed = [each for _, each in scatter.process(batch)]
    assert len(packed) > 4 and max(map(len, packed)) <= 2 << 20
    assert sum(len(pa.ipc.open_stream(each).read_all()) for each in packed) == 200


def test_a_schema_is_refused_for_itself_and_rows_of_different_ones_do_not_meet() -> None:
    query = parsed(
        "WITH t AS (SELECT who, sum(x) AS x FROM rows WHERE x = 1 GROUP BY who) SELECT who, x FROM t"
    )
    scatter = _Scatter(query, 1)
    scatter.setup()
    texts = pa.RecordBatch.from_pydict(
        {"who": pa.array([], pa.string()), "x": pa.array([], pa.string())}
    )
    with pytest.raises(ValueError, match="^Rows: query must "):
        list(scatter.process(texts))
    batches = [
        pa.RecordBatch.from_pydict(
            {"who": pa.array(["p", "q"], kind), "x": pa.array([1, 1], number)}
        )
        for kind in (pa.string(), pa.large_string())
        for number in (pa.int32(), pa.int64(), pa.float64())
    ]
    expected = [{"who": who, "x": x} for who in "pq" for x in (2.0, 4.0)]
    assert made(query.text, batches) == expected


# ---------------------------------------------------------------- what is refused

ASKED = "WITH t AS (SELECT who, {} FROM rows GROUP BY who) SELECT who FROM t"
REFUSED = {
    **{
        ASKED.format(item): "count_if, sum, avg, min, max, each alone, and nothing else in its WITH"
        for item in (
            "string_agg(s, ',') AS v", "max(x) - min(x) AS v", "x AS v", "max(x) OVER () AS v",
            "(SELECT 1) AS v",
        )
    },
    **{
        ASKED.format(item): "plainly"
        for item in (
            "sum(DISTINCT x) AS v", "max(x, 3) AS v",
            "sum(x ORDER BY n) AS v", "main.sum(x) AS v",
        )
    },
    ASKED.format("max(random()) AS v"): "it changes by itself",
    ASKED.format("max(sum(x)) AS v"): "not call sum",
    ASKED.format("max(x)"): "name each expression",
    ASKED.format("max(x) AS v, min(x) AS V"): "each in another way",
    "WITH t AS (SELECT max(x) AS v FROM rows) SELECT v FROM t": "GROUP BY the person",
    "WITH t AS (SELECT who, max(x) AS v FROM rows GROUP BY ROLLUP (who)) SELECT v FROM t": "GROUP BY the person",
    "WITH t AS (SELECT who, max(x) AS v FROM rows GROUP BY ALL) SELECT v FROM t": "not have aggregate handling",
    "WITH t AS (SELECT who, max(x) AS v FROM rows GROUP BY who, n) SELECT v FROM t": "by names of its SELECT",
    "WITH t AS (SELECT who, max(x) AS v FROM rows GROUP BY who HAVING v > 1) SELECT v FROM t": "not have having",
    "WITH t AS (SELECT who, max(x) AS v FROM rows GROUP BY who LIMIT 3) SELECT v FROM t": "not have modifiers",
    "WITH t AS (SELECT upper(s) AS x, max(x) AS v FROM rows GROUP BY x) SELECT v FROM t": "that another one reads",
    "WITH t AS (SELECT who, count(*) AS c FROM rows GROUP BY who) SELECT * FROM rows": "be FROM t",
    "WITH t AS (SELECT who, count(*) AS c FROM rows GROUP BY who) SELECT * FROM t AS u": "not have alias",
    "WITH t AS (SELECT who, count(*) AS c FROM rows GROUP BY who) SELECT a.c FROM t AS a JOIN t AS b USING (who)": "be FROM t",
    "WITH t AS (SELECT who, count(*) AS c FROM rows GROUP BY who) SELECT sum(c) AS c FROM t": "not call sum",
    "WITH t AS (SELECT who, count(*) AS c FROM rows GROUP BY who) SELECT c FROM t GROUP BY c": "not have group",
    "WITH t(a, b) AS (SELECT who, count(*) AS c FROM rows GROUP BY who) SELECT a FROM t": "have one WITH",
    "WITH t AS (SELECT who, count(*) AS c FROM t GROUP BY who) SELECT c FROM t": "be FROM rows",
    "WITH t AS (SELECT who, count(*) AS c FROM rows GROUP BY who), u AS (SELECT 1) SELECT c FROM t": "have one WITH",
    "WITH t AS (WITH u AS (SELECT 1) SELECT who, count(*) AS c FROM rows GROUP BY who) SELECT c FROM t": "not have cte",
    "WITH t AS (SELECT 1 AS who UNION ALL SELECT 2) SELECT who FROM t": "have one WITH",
    "WITH t AS (VALUES (1)) SELECT * FROM t": "",
}  # fmt: skip


@pytest.mark.parametrize("query", REFUSED)
def test_other_queries_with_a_with_are_refused_with_one_line(query: str) -> None:
    with pytest.raises(ValueError, match="^Rows: query must ") as raised:
        dp.Rows(query)
    assert REFUSED[query] in str(raised.value) and "\n" not in str(raised.value)


GIVEN = {"metrics": [dp.Count()], "budget": dp.Budget(1.0)}
ROWS = pa.Table.from_pylist(random_rows(1), TYPES)


@pytest.mark.parametrize(
    ("query", "more", "rule"),
    [
        (ASKED.format("sum(s) AS v"), {}, "not make v, a sum, of large_string; numbers names"),
        (ASKED.format("count(DISTINCT at_time - at_time) AS v"), {}, "not make v, a count_distinct, of month_day"),
        (ASKED.format("count(*) AS v").replace("SELECT who FROM", "SELECT who, w FROM"), {}, "name columns of t, 'who', 'v', and w is none"),
        ("WITH t AS (SELECT s, who, count(*) AS c FROM rows GROUP BY s, who) SELECT who FROM t", {}, "first"),
        ("WITH t AS (SELECT who, max(n) AS c FROM rows GROUP BY who) SELECT c AS who FROM t", {}, "first, and give it as it is"),
        ("WITH t AS (SELECT who, count(*) AS c FROM rows GROUP BY who) SELECT lower(who) AS who FROM t", {}, "first, and give it as"),
        ("WITH t AS (SELECT who || s AS who, count(*) AS c FROM rows GROUP BY who) SELECT who FROM t", {}, "of one column"),
        ("WITH t AS (SELECT at_time AS who, count(*) AS c FROM rows GROUP BY who) SELECT who FROM t", {}, "not make who, a person, of timestamp"),
        (ASKED.format("count(*) AS v"), {"person": ["who", "s"]}, "group by 's', the one person"),
        (ASKED.format("max(day) AS day").replace("SELECT who FROM", "SELECT who, day FROM"), {"period": "day"}, "the period"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_before_a_row_is_read(
    query: str, more: dict[str, Any], rule: str
) -> None:
    with pytest.raises(ValueError, match="^Rows: ") as raised:
        dp.release(ROWS, query=query, **{"person": "who", **GIVEN, **more})
    assert rule in str(raised.value) and "\n" not in str(raised.value)


ONE = "WITH t AS (SELECT who, max(x) AS x, count(*) AS c FROM rows GROUP BY who) SELECT who, x, c FROM t"


def test_rows_that_are_no_batches_are_refused_when_the_pipeline_is_built() -> None:
    for given in ([{"who": "a", "x": 1.0}], [beam.Row(who="a", x=1.0)]):
        with pytest.raises(ValueError, match="^Rows: its input must be batches, for WITH: files"):
            _ = beam.Pipeline() | beam.Create(given) | dp.Rows(ONE)


def test_batches_of_unknown_types_have_those_of_their_schema() -> None:
    batches = batches_of(random_rows(2), 9)
    given = [*batches, {"who": "p1", "x": 99.0}]  # no batch, though it was said that all are
    with beam.Pipeline() as pipeline:
        created = pipeline | beam.Create(given).with_output_types(pa.RecordBatch)
        found = created | dp.Rows(ONE) | beam.FlatMap(lambda batch: batch.to_pylist())
        assert_that(found, equal_to(made(ONE, batches)))


def test_blocks_and_shards_of_a_pipeline_make_one_row_per_person() -> None:
    """300 people in 40 batches and several shards."""
    rows = pa.table({"who": [f"p{at % 300}" for at in range(6_000)], "x": [1.0] * 6_000})
    with pytest.warns(), without_noise():
        found = dp.release(
            pa.Table.from_batches(rows.to_batches(150)), query=ONE, person="who",
            metrics=[dp.Count(), dp.PeopleCount(), dp.Sum("c")], budget=dp.Budget(3.0),
        ).table.to_pylist()[0]  # fmt: skip
    assert (found["count"], found["people_count"]) == (300, 300)
    assert found["sum_c"] == pytest.approx(6_000)


# ---------------------------------------------------------------- the exact loss of a release

SELECT = """WITH t AS (SELECT who, s, sum(x) AS total, sum(n + 1) AS n, count(*) AS c FROM rows
    GROUP BY who, s)
    SELECT s, count(*) AS people, sum(n) AS n, avg(c) AS c FROM t WHERE total > 0.5 GROUP BY s"""


def databases(seed: int) -> Iterator[list[dict[str, Any]]]:
    """Yield rows of a few people, then, in another order, those with one person more.

    Each person's numbers add up to 1 only in some orders. A row of the person who comes fails.
    """
    chance = random.Random(seed)
    few = [
        {"who": f"p{at}", "s": s, "x": x, "n": chance.randrange(9), "day": 0, "at_time": None}
        for at in range(5)
        for s in "ab"
        for x in (1e16, 1.0, -1e16, 1.0)
    ]
    yield few
    for failing in (BIG, 1):
        more = [*few, *({**row, "who": "new", "n": failing} for row in few[:6])]
        chance.shuffle(more)
        yield more


def check(seed: int) -> None:
    """Raise `Fault` where a SELECT with a WITH is not private."""
    keys = dp.PublicPartitions(["a", "b"])
    less, *more = (pa.Table.from_pylist(rows, TYPES) for rows in databases(seed))
    release = functools.partial(
        dp.select, SELECT, person="who", budget=dp.Budget(6), partitions=keys, show_errors=True
    )
    for run in compared(lambda rows: release(rows=rows), less, more, seed, 1 - seed):
        share_spent(run)


def of_all_people(self: PersonQuery, rows: pa.Table) -> pa.Table:
    """Return for each person what the rows of all of them come to: groups without the person."""
    person, people = self.keys[0], pc.unique(rows[self.keys[0]])
    one = GROUPED(self, rows.set_column(0, person, pa.repeat(people[0], len(rows))))
    named = (one.set_column(0, person, pa.repeat(each, len(one))) for each in people)
    return pa.concat_tables(named)


GROUPED = PersonQuery.grouped
MUTANTS = (
    (PersonQuery, "grouped", of_all_people),
    (person_queries.pc, "sort_indices", in_row_order),
)


def test_a_with_costs_its_budget_and_mutants_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact: the same in every run. A group without the person, sums in the order of rows."""
    monkeypatch.setattr(person_queries.shard_number, "number_of", lambda *_: 1)
    check(0)
    for mutant in MUTANTS:
        with monkeypatch.context() as broken, pytest.raises(Fault):
            broken.setattr(*mutant)
            check(0)


def test_a_period_that_is_a_key_is_protected_and_named_for_the_ledger() -> None:
    query = """WITH t AS (SELECT who, day % 2 AS parity, count(*) AS c FROM rows GROUP BY who, parity)
        SELECT who, parity, c FROM t"""
    release = dp.PrivateAggregate("who", [dp.Count()], dp.Budget(1.0), period="parity")
    release.reads(parsed(query))
    assert release.period_source == '("day" % 2)'


NULLS = """WITH t AS (SELECT who, max(x) AS most, sum(x * 2) AS total, count(x) AS n,
    count(DISTINCT x) AS different, min(date_trunc('hour', at_time)) AS first FROM rows GROUP BY who)
    SELECT who, most, total, n, different, dayname(first) AS first FROM t"""


def test_a_file_in_which_all_cells_are_null_is_as_any_other(tmp_path: Path) -> None:
    """One cell of one person decides whether a column of a file has a type."""
    rows = [{**row, "x": None, "at_time": None} for row in random_rows(1)]
    more = [{**row, "x": 2.0} for row in random_rows(2)]
    empty = pa.Table.from_pylist(rows, TYPES)
    for at, name in ((2, "x"), (5, "at_time")):
        empty = empty.set_column(at, name, pa.nulls(len(empty)))
    types = pa.Table.from_pylist([], TYPES).schema
    without_times = NULLS.replace("date_trunc('hour', at_time)", "x").replace("dayname(first)", "1")
    found = made(without_times, empty.to_batches())
    assert found and {(row["n"], row["different"]) for row in found} == {(0, 0)}
    for at, table in enumerate((empty, pa.Table.from_pylist(more, types))):
        pq.write_table(table, tmp_path / f"{at}.parquet")
    with without_noise():
        released = dp.release(
            str(tmp_path / "*.parquet"), person="who", query=NULLS, budget=dp.Budget(1),
            metrics=[dp.Count(), dp.Sum("n"), dp.Sum("different"), dp.Sum("total")],
        )  # fmt: skip
    [row] = released.table.to_pylist()
    every = {each["who"] for each in (*rows, *more)} - {None}
    known_values = [each["x"] for each in more if each["who"] is not None]
    assert row["count"] == len(every) and row["sum_n"] == len(known_values)
    assert row["sum_different"] == len({each["who"] for each in more} - {None})
    assert row["sum_total"] == 2 * sum(known_values)
