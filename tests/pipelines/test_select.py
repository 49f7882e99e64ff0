"""The job `select`, and `select:` in a mapping: one statement is the whole call."""

from pathlib import Path

import pytest
import yaml

import beam_dp as dp
from pipelines import aggregate, audit, check, rehearse, select
from pipelines.releasing import CHECK

STATEMENT = """
    SELECT store, day, count(*) AS n, sum(spent) AS spent, sum(spent) / count(*) AS each
    FROM '{}' WHERE minutes > 5 GROUP BY ROLLUP (store, day)
    HAVING count(*) >= 100 ORDER BY n DESC"""
WORDS = ["--person", "who", "--epsilon", "60", "--runner", "FnApiRunner", "--quiet"]
KEYS = ["--public_partitions", "a/1,a/2,b/1,b/2,c/1,c/2"]


@pytest.fixture
def visits(tmp_path: Path) -> str:
    """4,000 people with one row each: 2,000 have 10 minutes, of which 1,000 are in store a."""
    stores = "aaaabbb" + "c" * 1
    lines = [
        f"p{n},{stores[n // 2 % 8]},{n // 16 % 2 + 1},1.5,{10 * (n % 2)}" for n in range(4_000)
    ]
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(["who,store,day,spent,minutes", *lines]) + "\n")
    return str(path)


def test_one_statement_is_a_release(visits, capfd):
    """The noise of a count has a scale below 1 at epsilon 20: it is above 50 in fewer than 1e-12."""
    out = visits.replace("visits.csv", "out.csv")
    asked = STATEMENT.format(visits)
    assert select.main([*WORDS, *KEYS, asked, "--output", out]) == 0
    by_both, by_store, total = map(
        dp.Released.read,
        (out, out.replace(".csv", "_by_store.csv"), out.replace(".csv", "_total.csv")),
    )
    rows = by_store.table.to_pylist()
    assert [row["store"] for row in rows] == ["a", "b", "c"]  # the largest number first
    truth = {"a": 1_000, "b": 750, "c": 250}
    assert all(abs(row["n"] - truth[row["store"]]) < 50 for row in rows)
    assert all(abs(row["each"] - row["spent"] / row["n"]) < 1e-9 for row in rows)
    counts = [sum(each.table["n"].to_pylist()) for each in (by_both, by_store, total)]
    assert counts[1] == counts[2]
    assert by_both.record["job"]["select"] == STATEMENT.format("visits.csv")
    assert str(Path(visits).parent) not in Path(f"{out}.json").read_text()
    assert by_both.record["job"]["post_process"].startswith("SELECT *, ")
    assert "each" in capfd.readouterr().out


@pytest.mark.parametrize("keys", [["--delta", "1e-6"], ["--public_partitions", "a,b"]])
def test_what_leaves_no_row_is_said(visits, capfd, keys):
    asked = f"SELECT store, count(*) AS n FROM '{visits}' GROUP BY store HAVING n > 1000000"
    assert select.main([*WORDS, *keys, asked, "--output", f"{visits}.out.csv"]) == 0
    said = capfd.readouterr().out.splitlines()[-1]
    assert said == "no partition is left: none was selected, or HAVING or LIMIT leaves none"


def test_its_mapping_makes_the_same_plan(visits, capfd):
    asked, folder = STATEMENT.format(visits), Path(visits).parent
    words = [*WORDS[:4], *KEYS, "--output", str(folder / "out.csv")]
    assert select.main([*words, asked, "--show_mapping"]) == 0
    mapping = yaml.safe_load(capfd.readouterr().out)
    assert mapping["also_by"] == [["store"], "total"] and mapping["numbers"] == ["minutes"]
    (folder / "made.yaml").write_text(yaml.safe_dump(mapping))
    assert aggregate.main(["--config", str(folder / "made.yaml"), "--plan"]) == 0
    plan = capfd.readouterr().out
    assert select.main([*words, asked, "--plan"]) == 0
    said = capfd.readouterr().out
    assert said.startswith(plan.removesuffix(CHECK)) and said.endswith(CHECK)
    assert "HAVING (count(*) >= 100): which released rows are kept" in said.removeprefix(plan)
    (folder / "said.yaml").write_text(yaml.safe_dump({"select": asked, "person": "who"}))
    more = ["--config", str(folder / "said.yaml"), "--epsilon", "60", "--plan", *KEYS]
    assert aggregate.main([*more, "--output", str(folder / "out.csv")]) == 0
    assert capfd.readouterr().out == said


def test_a_public_table_is_said_in_plan_and_record(visits, capfd):
    folder = str(Path(visits).parent)
    Path(f"{folder}/stores.csv").write_text("store,region\na,north\nb,north\nc,south\n")
    asked = f"""SELECT region, count(*) AS n FROM '{visits}' LEFT JOIN '{folder}/stores.csv'
        USING (store) GROUP BY region"""
    words = [*WORDS, "--public_partitions", "north,south", "--output", f"{folder}/out.csv", asked]
    assert select.main([*words, "--plan"]) == 0
    said = " ".join(capfd.readouterr().out.split())
    assert f'LEFT JOIN "{folder}/stores.csv" AS stores ON ' in said
    assert 'rows."store" = stores."store": a PUBLIC table: nobody in it is protected' in said
    assert select.main(words) == 0
    north, south = dp.Released.read(f"{folder}/out.csv").table["n"].to_pylist()
    assert abs(north - 3_500) < 50 and abs(south - 500) < 50
    assert folder not in Path(f"{folder}/out.csv.json").read_text()


WRONG = {
    "SELECT count(*) FROM a JOIN b USING (c)": "query must have JOIN, or LEFT JOIN, with a public file",
    "SELECT variance(x) AS v FROM rows": "not call variance: no metric is that. Write var_pop(x)",
    "SELECT store, count(*) FROM rows": "statement must group by store. Write GROUP BY store",
    "SELECT upper(kind) AS u, count(*) FROM rows": "must group by kind. Write GROUP BY kind",
    "SELECT 'x' AS k, count(*) FROM rows": "statement must compute numbers, and 'x' is text. Leave",
    "SELECT approx_quantiles(x, 4), count(*) FROM rows": "not call approx_quantiles: no metric is",
    "SELECT sum(x) OVER () FROM rows": "windows of what is released alone, and x is not. Write sum(c",
    "SELECT sum(info.spent) AS s FROM rows": "For objects write a file with info.spent AS spent first",
    "SELECT WITH DIFFERENTIAL_PRIVACY count(*) FROM rows": "no WITH DIFFERENTIAL_PRIVACY: a release",
    "SELECT hour(at) AS h, count(*) FROM rows GROUP BY h": """near ")", behind SELECT hour(at. Write""",
    "SELECT sum(at) AS at FROM rows": 'A column that is named like a word of SQL is quoted: "at".',
    "SELECT sum(SAFE_CAST(x AS INT64)) AS x FROM rows": "(x. Write TRY_CAST(x AS BIGINT)",
    "SELECT percentile_cont(x, 0.9) AS q FROM rows": "Write quantile_cont(x, 0.9)",
    "SELECT count(*) FROM rows WHERE timestamp_trunc(t, HOUR) > b": "Write date_trunc('hour', t)",
    "SELECT count(*) FROM rows WHERE date_trunc(t, DAY) > b": "Write date_trunc('day', t)",
    "SELECT count(*) FROM rows WHERE format_date('%Y', t) > b": "Write strftime(t, '%Y-%m')",
    "SELECT count(*) FROM rows WHERE t > current_date - 7": "itself. Write DATE '2026-11-22'",
    "SELECT count_if(c) / count(*) AS r FROM rows": "SELECT count_if(c) AS a, and a in express",
    "SELECT sum(Amount (EUR)) AS x FROM rows": 'If it is a column, quote it: "Amount (EUR)"',
    "SELECT a, b, c, count(*) FROM rows GROUP BY CUBE (a, b, c)": "(CUBE) cannot agree: leave some out, or write --totals 'apart'",
    "SELECT count(*) FROM visits.csv": "must name its file in quotes. Write FROM 'visits.csv'",
}


@pytest.mark.parametrize("statement", WRONG)
def test_a_wrong_statement_is_one_line(statement, tmp_path, capfd):
    words = [*WORDS, "--delta", "1e-6", "--input", "a.csv", "--output", str(tmp_path / "o.csv")]
    with pytest.raises(SystemExit) as stopped:
        select.main([*words, statement])
    said = capfd.readouterr()
    assert stopped.value.code == 2 and said.out == "" and said.err.count("\n") == 1
    assert WRONG[statement] in said.err


def test_the_help_lists_no_option_that_the_statement_says():
    said = select.parser().format_help()
    for flag in ("--input", "--query", "--partition", "--also_by"):
        assert f"\n  {flag} " not in said and f"\n  {flag} " in aggregate.parser().format_help()


def test_a_title_is_no_statement(visits, capfd):
    words = [*WORDS[:4], "--output", f"{visits}.csv", "--report", f"{visits}.html", "--plan"]
    asked = f"SELECT sum(spent) FROM '{visits}'"
    assert select.main([*words, asked, "--title", "From Monday to Sunday"]) == 0
    assert select.main([*words, "--title=With love", asked]) == 0


def test_what_the_statement_says_is_not_said_again(refused, visits):
    words = [*WORDS, "--output", f"{visits}.csv", "--input", visits]
    said = refused(select, *words, f"SELECT count(*) FROM '{visits}'")
    assert "input must be said by the statement alone. Leave one of the two out" in said
    asked = [*words[:-2], f"SELECT count(*) FROM '{visits}'"]
    for name, text in {
        "partition": "day",
        "also_by": "total",
        "query": "SELECT * FROM rows",
    }.items():
        said = refused(select, *asked, f"--{name}={text}")
        assert f"{name} must be said by the statement alone" in said
    said = refused(select, *WORDS, "--output", f"{visits}.csv", "SELECT count(*) FROM salaries")
    assert "input must be given: FROM names no file. Write FROM 'visits.csv'" in said
    said = refused(select, *WORDS, "--output", f"{visits}.csv")
    assert "metrics must be given: ask for one, like count, or sum of a column, or write a" in said
    assert "person must be given" in refused(select, "--epsilon", "1", "SELECT count(*) FROM rows")


OFTEN = """WITH t AS (SELECT who, store, max(spent * minutes) AS most, count(*) AS rows_ FROM '{}'
    WHERE minutes > 5 GROUP BY who, store)
    SELECT store, count(*) AS people, sum(most) AS most FROM t WHERE rows_ > 1 GROUP BY store"""


@pytest.fixture
def twice(visits: str) -> str:
    """The file with each row twice: 2,000 people have two rows of 10 minutes."""
    lines = Path(visits).read_text().splitlines()
    Path(visits).write_text("\n".join([*lines, *lines[1:]]) + "\n")
    return visits


def test_features_of_people(twice, capfd):
    """The noise of both has a scale below 20 at epsilon 60: it is above 900 in fewer than 1e-12."""
    out, asked = twice.replace("visits.csv", "out.csv"), OFTEN.format(twice)
    words = [*WORDS[:4], "--public_partitions", "a,b,c,d"]
    assert select.main([*words, asked, "--output", out, "--plan"]) == 0
    said = " ".join(capfd.readouterr().out.split())
    assert "WITH t: one row per who, store, each computed from that person's rows alone" in said
    assert select.main([*words, *WORDS[4:], asked, "--output", out]) == 0
    rows = {row["store"]: row for row in dp.Released.read(out).table.to_pylist()}
    for store, people in {"a": 1_000, "b": 750, "c": 250, "d": 0}.items():
        assert abs(rows[store]["people"] - people) < 50
        assert abs(rows[store]["most"] - 15 * people) < 900


def described(visits: str) -> list[str]:
    path = Path(visits).parent / "asked.yaml"
    given = {"select": OFTEN.format(visits), "person": "who", "partitions": ["a", "b", "c", "d"]}
    path.write_text(yaml.safe_dump({**given, "budget": {"epsilon": 60}}))
    return ["--config", str(path)]


def test_check_and_rehearse_and_audit_features(twice, capfd):
    with Path(twice).open("a") as file:
        file.write(",a,1,1.5,10\np0,d,1,1.5,10\n")  # nobody's row, and one that is left out
    assert check.main(described(twice)) == 0
    said = capfd.readouterr().out
    # 4,000 rows of 0 minutes, nobody's, one of a person who has no second one there
    assert "2,000 of 6,002 rows count" in said and "4,002 dropped: left out by the query" in said
    assert rehearse.main([*described(twice), "--runs", "2"]) == 0
    said = capfd.readouterr().out
    assert "1,000" in said and "15,000" in said
    assert audit.main([*described(twice), "--seconds", "0.001"]) == 0
    assert "largest share of the budget spent: " in capfd.readouterr().out


def test_check_of_several_files_with_features_is_refused(refused, twice):
    Path(twice.replace("visits.csv", "visits2.csv")).write_text(Path(twice).read_text())
    pattern = twice.replace("visits.csv", "visits*.csv")
    said = refused(check, *described(pattern))
    assert "input must be one file of CSV or Parquet where a query has WITH" in said
