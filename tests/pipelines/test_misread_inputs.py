"""Files of people that a spreadsheet or another program changed a little are refused, not misread.

The tables are made like real ones: visits of restaurants, salaries of players. Each is released as
it is; each change of its decimal signs, its encoding, one cell or the type of its keys is refused
before anything is charged, with what to write instead, or read by an option.
"""

import datetime
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import beam_dp as dp
from pipelines import aggregate, releasing
from tests.pipelines.described import described
from tests.row_files import as_csv, as_lines

ROWS = 300
DAYS = "1,2,3"
Rows = list[dict[str, Any]]
VISITS: Rows = [
    {"Visitor": at % 97, "Time": f"9:{at % 60:02}:00 AM", "Euros": 1200 + at, "Day": at % 3 + 1}
    for at in range(ROWS)
]
SALARIES: Rows = [
    {"year": 2000 + at % 9, "team": "ABC"[at % 3], "player": f"play{at}01", "salary": 10**6 + at}
    for at in range(ROWS)
]
CALLS = {
    "visits": ("Visitor", "Day", "Euros", DAYS),
    "salaries": ("player", "team", "salary", "A,B,C"),
}


def words(source: Path, call: str, *options: str, keys: str = "") -> list[str]:
    person, partition, column, public = CALLS[call]
    folder = source.parent
    return [
        *("--input", str(source), "--output", str(folder / "out.csv"), "--person", person),
        *("--partition", partition, "--sum", column, "--people_count", "--epsilon", "1"),
        *("--public_partitions", keys or public, "--runner", "FnApiRunner", "--quiet"),
        *("--ledger", str(folder / "l.jsonl"), "--total_epsilon", "1", *options),
    ]


def queried(folder: Path, query: str, *options: str, **cells: str) -> list[str]:
    """Return the words of a query of the visits, whose rows have further cells."""
    source = folder / "in.csv"
    source.write_text(as_csv([{**row, **cells} for row in VISITS]))
    return words(source, "visits", "--query", query, *options)


def with_column(name: str, change: Callable[[Any], Any], only: int | None = None) -> Rows:
    return [
        {**row, name: change(row[name])} if only in (None, at) else row
        for at, row in enumerate(VISITS if name in VISITS[0] else SALARIES)
    ]


def lines_changed(change: Callable[[str], str], first: int = 1, last: int = ROWS + 1) -> str:
    lines = as_csv(VISITS).splitlines()
    changed = [change(line) if first <= at < last else line for at, line in enumerate(lines)]
    return "\n".join(changed) + "\n"


EUROS = "column 'Euros' of "
CELLS = "must have as many cells as the header, 4, and quotes as in RFC 4180; it has others"
OTHER_DAYS = (
    "column 'Day' must be written as the public key is, in whole numbers, and its files begin "
)
PLAIN = as_csv(VISITS)
CHANGED: dict[str, tuple[str | bytes, str]] = {
    "thousands.csv": (
        as_csv(with_column("Euros", lambda n: f"{n:,}.50" if n % 4 else n)),
        'Write --thousands ",".',
    ),
    "one that may be either.csv": (
        as_csv(with_column("Euros", lambda _: "1,250", 7)),
        'Write --thousands "," or --decimal ",".',
    ),
    "of India.csv": (as_csv(with_column("salary", lambda _: "12,34,567.8", 7)), '--thousands ",".'),
    "of Switzerland.csv": (
        as_csv(with_column("Euros", lambda n: f"{n:,}".replace(",", "\u2019"))),
        'Write --thousands "\'".',
    ),
    "of France.csv": (
        as_csv(with_column("Euros", lambda n: f"{n:,},50".replace(",", "\u202f", 1))),
        'Write --decimal "," and --thousands " ".',
    ),
    "decimal commas.csv": (as_csv(with_column("Euros", lambda n: f"{n},5")), 'Write --decimal ",".'),
    "both.csv": (
        as_csv(with_column("Euros", lambda n: f"{n:_},50".replace("_", "."))),
        'Write --decimal "," and --thousands ".".',
    ),
    "true and false.csv": (
        as_csv(with_column("Euros", lambda n: ["True", "false", ""][n % 3])),
        "must hold numbers, not true and false: a share of rows is a ratio",
    ),
    "true and false.jsonl": (
        as_lines(with_column("Euros", lambda n: [True, False, None][n % 3])),
        "must hold numbers, not true and false: a share of rows is a ratio",
    ),
    "currency.csv": (as_csv(with_column("Euros", lambda n: f"{n} EUR", 5)), EUROS),
    "a time.csv": (as_csv(with_column("Euros", lambda n: "12:30", 5)), "reads dates, CAST (\"Euros\" AS DATE)"),
    "a comma without quotes.csv": (lines_changed(lambda line: f"{line},5", 9, 10), CELLS),
    "trailing.csv": (lines_changed(lambda line: f"{line},"), "End the header with a delimiter too."),
    "shorter.csv": (lines_changed(lambda line: line.rsplit(",", 1)[0]), CELLS),
    "inches.csv": (lines_changed(lambda line: f'"12" pipe",{line[2:]}', 9, 10), CELLS),
    "backslash.csv": (lines_changed(lambda line: '1,"a\\"b",1,1', 9, 10), CELLS),
    "cp1252.csv": (
        as_csv(with_column("Time", lambda _: "\xe9t\xe9", 9)).encode("cp1252"),
        "must be text in UTF-8, and it is not, in its first 1 MiB",
    ),
    "days with points.csv": (
        as_csv(with_column("Day", lambda day: f"{day}.0")),
        OTHER_DAYS + "with numbers like 1.0. Write the public key as the cells are",
    ),
    "dates.csv": (as_csv(with_column("Day", lambda day: f"2026-11-0{day}")), OTHER_DAYS),
    "one quoted number.jsonl": (
        as_lines(with_column("Euros", str, 9)),
        "must hold numbers without quotes, and it has text there",
    ),
    "nested.jsonl": (
        as_lines(with_column("Visitor", lambda who: {"id": who})),
        "must hold plain values, and it has lists or objects there",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGED)
@pytest.mark.filterwarnings("ignore::beam_dp.UnknownColumns")
def test_a_changed_file_is_refused_before_the_charge(name, tmp_path, refused):
    content, told = CHANGED[name]
    source = tmp_path / name
    source.write_bytes(content if isinstance(content, bytes) else content.encode())
    call = "salaries" if name == "of India.csv" else "visits"
    said = refused(aggregate, *words(source, call))
    assert told in said
    if name == "dates.csv":
        said = refused(aggregate, *words(source, call, keys="a"))
        assert "is, in text, and its files begin with dates like" in said
    for cell in ("1,250", "EUR", 'pipe"', "12:30", "12,34", "play1", "9:2"):
        assert cell not in said
    assert not (tmp_path / "l.jsonl").exists()


@pytest.mark.parametrize(("call", "kind"), [("salaries", "csv.gz"), ("visits", "jsonl")])
@pytest.mark.filterwarnings("ignore::beam_dp.UnknownColumns")
def test_the_file_itself_is_released(call, kind, tmp_path, capfd):
    rows = VISITS if call == "visits" else SALARIES
    text = (as_lines if kind == "jsonl" else as_csv)(rows).encode()
    source = tmp_path / f"in.{kind}"
    source.write_bytes(gzip.compress(text) if kind.endswith("gz") else text)
    assert aggregate.main(words(source, call)) == 0
    person, partition, column, _ = CALLS[call]
    said = " ".join(capfd.readouterr().out.split())
    assert (
        f"not counted, if any: rows that cannot be read; rows without {person} or "
        f"{partition}; rows with {partition} other than the 3 named; cells of {column} without a "
        "plain value"
    ) in said


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (lambda n: f"{n:,}.00", ["--thousands", ","]),
        (lambda n: f"{n:_},00".replace("_", "."), ["--decimal", ",", "--thousands", "."]),
        (lambda n: f"{n:,}".replace(",", "\xa0"), ["--thousands", " "]),
        (lambda n: f"{n:,}".replace(",", "\u2019"), ["--thousands", "'"]),
    ],
)
def test_the_option_that_is_told_reads_them(change, options, tmp_path):
    source = tmp_path / "in.csv"
    source.write_text(as_csv(with_column("Euros", change)))
    reader = releasing.reader_of(described(*words(source, "visits", *options)))
    found = pa.Table.from_batches(reader.here())["Euros"].to_pylist()
    assert found == [row["Euros"] for row in VISITS]


def test_booleans_have_the_keys_that_a_release_writes(tmp_path):
    """1,000 and 500 people; noise of scale 3 at most is beyond 100 with probability e^-33."""
    rows = [{"Visitor": at, "Day": at % 3 > 0, "Euros": 1.0} for at in range(1_500)]
    out = tmp_path / "out.csv"
    (tmp_path / "in.jsonl").write_text(as_lines(rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    for kind, keys in (("parquet", "true,false"), ("jsonl", f"@{out}")):
        asked = words(tmp_path / f"in.{kind}", "visits", "--overwrite", keys=keys)
        asked[asked.index("--total_epsilon") + 1] = "2"
        assert aggregate.main(asked) == 0
        found = dp.Released.read(out).table.to_pylist()
        counts = {row["Day"]: row["people_count"] for row in found}
        assert counts.keys() == {"true", "false"}
        assert abs(counts["true"] - 1_000) < 100 and abs(counts["false"] - 500) < 100


@pytest.mark.parametrize(("kind", "period"), [("parquet", "24.11.2026"), ("csv", "24.11.2026")])
def test_a_period_that_the_column_cannot_equal_is_refused(kind, period, tmp_path, refused):
    rows = [{"Visitor": at, "Day": datetime.date(2026, 11, 24), "Euros": 1} for at in range(9)]
    source = tmp_path / f"in.{kind}"
    source.write_text(as_csv(rows))
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), source)
    asked = words(source, "visits", "--period", "Day", "--ledger_period", period)
    at = asked.index("--public_partitions")
    first, second = asked.index("--partition"), asked.index("--partition") + 2
    said = refused(aggregate, *asked[:first], *asked[second:at], *asked[at + 2 :], "--count")
    assert "the ledger_period" in said and "ates like 2026-11-22" in said
    assert not (tmp_path / "l.jsonl").exists()


def test_the_file_is_named_that_is_unlike_the_others(tmp_path, refused):
    for name in ("a.csv", "b.csv", "c.csv"):
        (tmp_path / name).write_text(PLAIN)
    for content, told in (
        (PLAIN.replace("Euros", "euro").encode(), "has 'Visitor', 'Time', 'euro', 'Day'"),
        (PLAIN.replace("AM", "\xe9").encode("latin-1"), "is not, in its first 1 MiB"),
        (PLAIN.encode("utf-16"), "is text in UTF-16"),
        (lines_changed(lambda line: f"{line},").encode(), "has others in its first 1 MiB"),
    ):
        (tmp_path / "b.csv").write_bytes(content)
        said = refused(aggregate, *words(tmp_path / "?.csv", "visits"))
        assert f"'{tmp_path / 'b.csv'}' {told}" in said


def test_a_missing_name_lists_the_columns_if_another_one_is_there(tmp_path, refused):
    source = tmp_path / "in.csv"
    source.write_text(PLAIN)
    asked = ["--input", str(source), "--output", str(tmp_path / "out.csv"), "--epsilon", "1"]
    said = refused(aggregate, *asked, "--sum", "Euros", "--person", "visitors")
    assert "it has 'Visitor', 'Time', 'Euros', 'Day'" in said
    # It may have no header: cells of a first row may be much like a wanted name.
    said = refused(aggregate, *asked, "--count", "--person", "visitors")
    assert "it has none of the wanted columns in its first line" in said and "Euros" not in said


def test_a_computed_boolean_has_the_keys_true_and_false(tmp_path, refused):
    """And a few remarks and cells without digits are no fault."""
    source = tmp_path / "in.csv"
    text = (
        as_csv(with_column("Euros", lambda _: "n/a", 9))
        .replace("1277", "#DIV/0!")
        .replace("1278", "true")
    )
    source.write_text(f"{text}\n(300 rows)\n")
    query = ["--query", "SELECT Visitor, Day <> '0' AS Day, Euros FROM rows"]
    assert aggregate.main(words(source, "visits", *query, keys="true,false")) == 0
    said = refused(aggregate, *words(source, "visits", *query, "--overwrite", keys="yes,no"))
    assert "column 'Day' must be able to hold the public key 'yes'" in said


TIME, KEY = "try_strptime(Time, '%I:%M:%S %p')", "CAST(Day AS DATE)"
READ = [TIME, f"coalesce(CAST(Time AS TIMESTAMP), {TIME})", "CAST(none AS DATE)"]


@pytest.mark.parametrize("time", [*READ, KEY, "date_trunc('day', CAST(Time AS TIMESTAMP))"])
def test_times_of_which_no_cell_is_read_are_refused_before_the_charge(time, tmp_path, refused):
    query = f"SELECT Visitor, Day, if({time} IS NULL, 0, 1) AS Euros FROM rows"
    if time in READ:
        assert aggregate.main(queried(tmp_path, query, none="n/a")) == 0
        return
    said = refused(aggregate, *queried(tmp_path, query, none="n/a"))
    column = "Day" if time == KEY else "Time"
    assert f"query must read '{column}' as its cells are, and reads none of it in its first" in said
    assert f"1 MiB. Write try_strptime (\"{column}\", '%d.%m.%Y %H:%M'), in the form of its" in said
    query = f"""WITH t AS (SELECT Visitor, Day, {time} AS begun, sum(Euros) AS Euros FROM rows
        GROUP BY Visitor, Day, begun) SELECT Visitor, Day, Euros FROM t"""
    assert f"query must read '{column}' as its" in refused(aggregate, *queried(tmp_path, query))
    assert not (tmp_path / "l.jsonl").exists()


@pytest.mark.parametrize(
    "condition",
    [
        "When_ >= '2026-11-01'",
        "When_ <> '2026-01-01'",
        "When_ NOT IN ('2026-01-01')",
        "When_ BETWEEN '2026-11-01' AND '2026-12-01 10:00'",
        "'2026-11-02' = When_",
        "When_ IN ('2026-11-02', NULL)",
        "CAST(ROWS.When_ AS date) IS NOT NULL",
        "When_ IN ('2026-11-02', '2026-11-03')",
        "TRY_CAST(Paid AS DOUBLE) > 5",
        "CAST(Paid AS DECIMAL(9, 2)) > 5",
    ],
)
def test_text_is_no_date_or_number_of_another_form(condition, tmp_path, refused):
    query = f"SELECT Visitor, Day, Euros FROM rows WHERE {condition}"
    said = refused(aggregate, *queried(tmp_path, query, When_="11/24/2026", Paid="$7"))
    column = "Paid" if "Paid" in condition else "When_"
    assert f"query must read '{column}' as its cells are" in said
    hint = f"CAST (replace (\"{column}\", '$', '') AS DOUBLE)"
    assert (hint if column == "Paid" else f'try_strptime ("{column}"') in said
    assert aggregate.main(queried(tmp_path, query, When_="2026-11-24", Paid="7")) == 0


@pytest.mark.parametrize(
    "condition",
    [
        "When_ = '2026-11-16 - 2026-11-22'",
        "When_ = '2026-11-16 Tank A'",
        "When_ IN ('unknown1', '2026-11-01')",
        "COALESCE(CAST(Paid AS DOUBLE), CAST(replace(Paid, '$', '') AS DOUBLE)) > 5",
        "CASE WHEN Paid LIKE '$%' THEN CAST(trim(Paid, '$') AS INT) ELSE CAST(Paid AS INT) END > 5",
        "TRY_CAST(Paid AS INTEGER) IS NULL",
        "CASE WHEN Paid LIKE 'back%' THEN CAST(substr(Paid, 5) AS DOUBLE) ELSE 0 END = 0",
        "CAST(Paid AS interval) IS NULL",
    ],
)
def test_text_that_is_compared_as_it_is_or_read_in_one_of_several_ways_is_taken(
    condition, tmp_path
):
    query = f"SELECT Visitor, Day, Euros FROM rows WHERE {condition}"
    asked = queried(tmp_path, query, When_="2026-11-16 - 2026-11-22", Paid="$7")
    assert aggregate.main(asked) == 0


def test_dates_behind_a_with_are_looked_at(tmp_path, refused):
    made = (
        "WITH t AS (SELECT Visitor, When_, sum(Euros) AS Euros FROM rows GROUP BY Visitor, When_)"
    )
    query = f"{made} SELECT Visitor, 1 AS Day, Euros FROM t WHERE When_ > '2026-11-01'"
    asked = queried(tmp_path, query, When_="11/24/2026")
    assert "query must read 'When_' as its" in refused(aggregate, *asked)


def test_a_number_of_a_with_is_no_cell(tmp_path):
    made = "WITH t AS (SELECT Visitor, Day, count(Paid) AS Paid FROM rows GROUP BY Visitor, Day)"
    query = f"{made} SELECT Visitor, Day, CAST(Paid AS DOUBLE) AS Euros FROM t"
    assert aggregate.main(queried(tmp_path, query, Paid="d1")) == 0


def test_numbers_in_another_form_may_be_cast(tmp_path):
    query = "SELECT Visitor, Day, CAST(Paid AS INTEGER) AS Euros FROM rows"
    written = ["--decimal", ",", "--numbers", "Paid"]
    assert aggregate.main(queried(tmp_path, query, *written, Paid="7,5")) == 0


def test_a_column_that_a_query_passes_on_keeps_its_form(tmp_path, refused):
    source = tmp_path / "in.csv"
    source.write_text(as_csv(with_column("Day", lambda day: f"0{day}")))
    query = ["--query", "SELECT Visitor, Day AS Tag, Euros FROM rows WHERE Day <> '9'"]
    asked = words(source, "visits", *query)
    asked[asked.index("Day")] = "Tag"
    assert OTHER_DAYS.split(" must ")[-1] in refused(aggregate, *asked)
