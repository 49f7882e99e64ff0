"""A look at one's own files: what it says is counted again, and whatever is dropped has a reason."""

import collections
import datetime
import random
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines import check
from tests.row_files import write

WORDS = ["--person", "who", "--partition", "day", "--public_partitions", "1,2,3", "--sum", "spent"]
Said = Callable[..., list[str]]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """Return what looks at files, and returns the lines but for the first one."""

    def called(*words: str, code: int = 0) -> list[str]:
        assert check.main([*map(str, words)]) == code
        first, *lines = capsys.readouterr().out.splitlines()
        assert first == check.HEAD and first.startswith("NOT PRIVATE")
        return lines

    return called


def visits(seed: int, n: int = 400) -> list[dict[str, Any]]:
    drawn = random.Random(seed)
    return [
        {
            "who": drawn.choice(["", "", *(f"v{i}" for i in range(80))]),
            "day": drawn.choice(["", "1", "2", "2", "4"]),
            "spent": drawn.choice(["", "NA", "1,234.50", "2.5", "1e3"]),
        }
        for _ in range(n)
    ]


@pytest.mark.parametrize(("seed", "ending"), [(0, ".csv"), (1, ".jsonl"), (2, ".csv.gz")])
def test_every_number_is_the_one_that_is_counted_by_hand(seed, ending, said, tmp_path):
    rows = visits(seed)
    if ending == ".jsonl":  # in JSON the empty text is an id, null is none
        rows = [{name: cell or None for name, cell in row.items()} for row in rows]
    path = write(tmp_path / f"rows{ending}", rows)
    lines = said(path, *WORDS, code=1)
    kept = [row for row in rows if row["who"] and row["day"] in ("1", "2", "3")]
    unlisted = sum(bool(row["who"]) and row["day"] == "4" for row in rows)
    nobody = sum(not row["who"] for row in rows)
    no_day = sum(bool(row["who"]) and not row["day"] for row in rows)
    per_person = sorted(collections.Counter(row["who"] for row in kept).values())
    of = [len({row["who"] for row in kept if row["day"] == day}) for day in "12"]
    middle = per_person[(len(per_person) - 1) // 2]
    assert lines[0] == f"{path}: {len(kept)} of 400 rows count"
    assert f"  {nobody} dropped: no who" in lines
    assert f"  {no_day} dropped: no day" in lines
    assert f"  {unlisted} dropped: a key that is not in the list" in lines
    people = (
        f"people: {len(per_person)}; rows of one: {middle} in the middle, {per_person[-1]} at most"
    )
    assert people in lines
    assert f"partitions: 2; people of one: {min(of)} (1) to {max(of)} (2)" in lines
    assert "  keys of the list that never occur (1): 3" in lines
    assert "  keys that the list lacks (1): 4" in lines
    of_cells = collections.Counter(row["spent"] for row in rows)
    [cells] = [line for line in lines if "no numbers" in line]
    assert f"{of_cells['1,234.50']} like '1,234.50'" in cells
    assert f"{of_cells['NA']} like 'NA'" in cells
    if ending != ".jsonl":  # there, all text is no number, and no option mends it
        assert cells.endswith('; all numbers are read by --thousands ","')
        assert f"  {of_cells['NA'] + of_cells['1,234.50']} cells are" in cells
        assert lines[-1].startswith("REFUSED: column 'spent' of ")
    dropped = sum(int(n) for n in re.findall(r"^  (\d+) dropped", "\n".join(lines), re.MULTILINE))
    assert dropped + len(kept) == 400


def test_a_good_file_is_what_the_release_reads(said, visits, tmp_path):
    """Its options are those of the release, and no file is written; named twice it is read twice."""
    words = ["--person", "visitor", "--partition", "day", "--count", "--epsilon", "1"]
    lines = said(visits, *words, "--delta", "1e-6", "--ledger", str(tmp_path / "l.jsonl"))
    assert lines == [
        f"{visits}: 600 of 600 rows count",
        "visitor: other text",
        "day: whole numbers",
        "people: 200; rows of one: 3 in the middle, 3 at most",
        "partitions: 3; people of one: 200 (3) to 200 (1)",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["visits.csv"]
    assert said("--input", visits, *words[:4]) == lines
    assert said(visits, visits, *words[:4])[0] == f"{visits}: 1,200 of 1,200 rows count"


FAR_MORE = "far more rows than others have"


def test_test_cards_among_many_people_are_found_and_the_query_leaves_them_out(said, tmp_path):
    rows = [{"who": f"v{i}", "day": 1, "spent": 2} for i in range(3000)]
    cards = [{"who": who, "day": 1, "spent": 2} for who in ("o'test", "y") for _ in range(21)]
    few = [{"who": "z", "day": 1, "spent": 2}] * 20
    path = write(tmp_path / "rows.csv", rows + cards + few)
    lines = said(path, *WORDS)
    assert f"  {FAR_MORE}, as a test has: \"o'test\" (21), 'y' (21)" in lines
    [line] = [line for line in lines if "leaves these out" in line]
    query = line.partition(": ")[2]
    assert query == "SELECT * FROM rows WHERE who NOT IN ('o''test', 'y')"
    lines = said(path, *WORDS, "--query", query)
    assert lines[:2] == [
        f"{path}: 3,020 of 3,062 rows count",
        "  42 dropped: left out by the query",
    ]
    assert not [line for line in lines if FAR_MORE in line]


def test_the_file_that_differs_is_named(said, tmp_path):
    good = [{"who": f"v{i}", "day": "2026-11-24", "spent": 2.5} for i in range(9)]
    other = [{"who": f"v{i}", "day": "24.11.2026", "spent": "2,5"} for i in range(4)]
    for name, rows in {"a": good, "b": good, "c": other}.items():
        write(tmp_path / f"{name}.csv", rows)
    keys = [*WORDS[:4], "--public_partitions", "2026-11-24", *WORDS[6:]]
    days = ["2026-11-24", "24.11.2026", "25.11.2026", "24/11/26"]
    mixed = [{"who": f"v{i}", "day": day, "spent": 2.5} for i, day in enumerate(days)]
    lines = said(write(tmp_path / "mixed.csv", mixed), *keys)
    at = lines.index("day: dates like 2026-11-22 and other text") + 1
    shown = "3 cells are no such dates: 2 like '25.11.2026', 1 like '24/11/26'"
    assert lines[at] == f"  {shown}"
    (tmp_path / "mixed.csv").unlink()
    a, c = (str(tmp_path / f"{name}.csv") for name in "ac")
    lines = said(str(tmp_path / "*.csv"), *keys, code=1)
    assert lines[0] == "3 files: 18 of 22 rows count"
    assert f"  4 dropped: a key that is not in the list, all in {c}" in lines
    assert lines[lines.index("day: dates like 2026-11-22") + 1] == f"  in {c}: other text"
    cells = "4 cells are no numbers: 4 like '2,5'; all numbers are read by --decimal \",\""
    assert f"  {cells}, in {c}" in lines
    assert not [line for line in lines if a in line]


def test_lines_that_are_no_rows_have_their_reasons(said, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('who,day,spent\nv1,1,2\n\nv1,1\nv2,2,"a"b\nv3,3,1,\n')
    lines = said(path, *WORDS, code=1)
    assert lines[:3] == [
        f"{path}: 1 of 4 rows count",
        "  2 dropped: more or fewer cells than the header",
        "  1 dropped: a quote that does not close, a CR that ends no line, or more than 1 MiB",
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text(
        '{"who": 1, "day": 1, "spent": 2}\n[1]\n\nx\n{"who": 2, "day": 2, "spent": "2"}\n'
    )
    lines = said(path, *WORDS, code=1)
    assert lines[:2] == [f"{path}: 2 of 4 rows count", "  2 dropped: no JSON object"]
    assert "  1 cells are no numbers: 1 like '2'" in lines


def test_keys_are_those_of_their_columns_on_one_line(said, tmp_path):
    keys = [("a", "b/c"), ("a/b", "c"), ("x\nREFUSED:", "k" * 100)]
    rows = [{"who": number, "one": one, "two": two} for number, (one, two) in enumerate(keys)]
    path = write(tmp_path / "rows.csv", rows)
    lines = said(path, "--person", "who", "--partition", "one,two")
    [line] = [line for line in lines if line.startswith("partitions:")]
    assert line.startswith("partitions: 3; people of one: 1 (") and len(line) < 150
    assert not any(line.startswith("REFUSED") for line in lines)


def test_periods_have_their_range(said, tmp_path):
    days = ["2026-11-03", "2026-10-30", "", "2026-11-03"]
    path = write(tmp_path / "rows.csv", [{"who": 1, "at": day} for day in days])
    lines = said(path, "--person", "who", "--period", "at")
    assert "  1 dropped: no at" in lines
    assert "people: 1, 2 of one at; rows of one: 1 in the middle, 2 at most" in lines
    assert lines[-1] == "at: 2 periods from 2026-10-30 to 2026-11-03"
    of = ["--ledger_period", "2026-11-01..2026-11-30"]
    lines = said(path, "--person", "who", "--period", "at", *of)
    assert "  1 dropped: another period than ledger_period" in lines


def test_rows_with_several_owners_and_typed_files(said, tmp_path):
    rows = [
        {"a": 1, "b": 2, "v": 3.5},
        {"a": None, "b": 2, "v": 1.0},
        {"a": None, "b": None, "v": 1.0},
    ]
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    lines = said(path, "--person", "a,b", "--sum", "v")
    assert lines[:2] == [f"{path}: 2 of 3 rows count", "  1 dropped: no a or b"]
    assert lines[2:5] == ["a: int64", "b: int64", "v: double"]
    lines = said(path, "--person", "v", "--sum", "a")
    assert lines[1] == "  1 dropped: no v"  # 3.5 is no id


def test_a_column_of_nulls_has_its_type_of_the_other_files(said, tmp_path):
    """One cell decides whether a column of a file has a type: the run takes such a file."""
    moments = pa.array([datetime.datetime(2026, 11, 24, 13)] * 2)
    for at, cells in enumerate((pa.nulls(2), moments, pa.nulls(2, moments.type))):
        pq.write_table(pa.table({"who": [at, 7], "seen": cells}), tmp_path / f"{at}.parquet")
    query = "SELECT who, CAST(date_trunc('hour', seen) AS DATE) AS day FROM rows"
    words = ["--person", "who", "--partition", "day", "--query", query]
    lines = said(str(tmp_path / "*.parquet"), *words)
    assert lines[:2] == ["3 files: 2 of 6 rows count", "  4 dropped: no day"]
    lines = said(str(tmp_path / "*.parquet"), "--person", "who", "--partition", "seen", code=1)
    assert lines[-1].startswith("REFUSED: column 'seen' must hold")  # as of a file without nulls


def test_files_of_which_each_is_good_are_refused_for_what_they_are_together(said, tmp_path):
    for name, who in {"a": [1, 2], "b": ["1", "2"]}.items():
        pq.write_table(pa.table({"who": who}), tmp_path / f"{name}.parquet")
    pattern = str(tmp_path / "*.parquet")
    lines = said(pattern, "--person", "who", code=1)
    assert lines[0] == "2 files: 4 of 4 rows count"
    assert f"  in {tmp_path / 'b.parquet'}: whole numbers" in lines
    assert "REFUSED: column 'who' must have one type in all files of" in lines[-1]
    assert said(str(tmp_path / "a.parquet"), "--person", "who")[0].endswith("2 of 2 rows count")


def test_every_table_of_a_run_is_looked_at(said, config, tmp_path):
    rows = [
        {"who": f"v{at % 40}", "day": "123"[at % 3], "shop": ["", *"abc"][at % 4]}
        for at in range(300)
    ]
    path = write(tmp_path / "rows.csv", rows)
    asked = {"person": "who", "metrics": ["count"], "budget": {"epsilon": 1}, "input": str(path)}
    asked |= {"partition": "day", "partitions": ["1", "2"]}
    asked |= {"also_by": [{"partition": "shop", "partitions": ["a", "b", "d"]}]}
    of_day = [row for row in rows if row["day"] in ("1", "2")]
    of_shop = [row for row in rows if row["shop"] in ("a", "b")]
    lines = said(*config(**asked, totals="apart"))
    at = lines.index(f"{path}, by shop: {len(of_shop)} of 300 rows count")
    assert lines[0] == f"{path}, by day: {len(of_day)} of 300 rows count"
    assert "  keys of the list that never occur (1): d" in lines[at:]
    assert f"  {sum(row['shop'] == '' for row in rows)} dropped: no shop" in lines[at:]
    for part, kept in ((lines[:at], of_day), (lines[at:], of_shop)):
        dropped = re.findall(r"^  (\d+) dropped", "\n".join(part), re.MULTILINE)
        assert sum(map(int, dropped)) == 300 - len(kept)
    # Where totals agree, a row counts in all tables or in none.
    lines = said(*config(**asked | {"also_by": "total"}))
    at = lines.index(f"{path}, all rows: {len(of_day)} of 300 rows count")
    assert lines[0] == f"{path}, by day: {len(of_day)} of 300 rows count"
    reason = "a key that is not in the list of another table"
    assert lines[at + 1] == f"  {300 - len(of_day)} dropped: {reason}"


def test_what_a_run_would_refuse_is_told_and_ends_with_one(said, tmp_path):
    rows = [{"who": 1, "day": f"0{day}"} for day in range(1, 9)]
    path = write(tmp_path / "rows.csv", rows)
    *lines, last = said(path, *WORDS[:6], code=1)
    assert last.startswith("REFUSED: column 'day' must be written as the public key is, in whole")
    assert "day: other text" in lines
    [line] = [line for line in said(path, *WORDS, code=1) if line.startswith("REFUSED")]
    assert line.startswith("REFUSED: column 'spent' must stand once in every file of ")


def test_wrong_calls_are_told_in_one_line(refused, visits):
    once = "input must be given once, as FILE, or by --input, or in the file of --config"
    assert once in refused(check, *WORDS)
    assert once in refused(check, visits, "--input", visits, *WORDS)
    assert "person must be given" in refused(check, visits)
    assert "a SELECT stands behind --select" in refused(check, "SELECT count(*) FROM v", *WORDS)
    assert "match a file" in refused(check, "nowhere.csv", *WORDS)
