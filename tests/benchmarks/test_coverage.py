"""The tables of coverage: goals are those that are stated, a miss is said and fails the command."""

import dataclasses
from pathlib import Path

import pytest

from benchmarks import coverage, coverage_statistics, questions, suites
from benchmarks.coverage import Goal, goal, misses, table
from benchmarks.measured import Result
from benchmarks.questions import COUNT, MEAN, SUM, Question

GOOD = Goal(error=2.0, cell=4.0)


def result(error: float, inside: float, width: float, mark: str = "", kind: str = "k") -> Result:
    asked = Question("sum", kind, "1,000", lambda seed: suites.alone("uniform", 9, seed), (SUM,))
    return Result(asked, "sum", error, inside, width, 0.0, mark)


@pytest.mark.parametrize(
    ("family", "people", "error", "cell", "inside", "least"),
    [
        ("sum", "100", 2.6, 4.0, 0.85, 0.0),
        ("count", "300", 2.2, 4.0, 0.93, 0.8),
        ("mean", "1,000", 2.1, 4.0, 0.93, 0.8),
        ("sum", "10,000", 1.9, 4.0, 0.93, 0.8),
        ("sum", "100,000", 1.9, 4.0, 0.93, 0.8),
        ("sum", "1,000,000", float("inf"), 4.0, 0.93, 0.8),
        ("10 partitions", "any", 1.6, float("inf"), 0.93, 0.8),
        ("100 partitions", "any", 1.4, float("inf"), 0.93, 0.8),
        ("1,000 partitions", "any", 1.4, float("inf"), 0.93, 0.8),
        ("files", "in all", float("inf"), float("inf"), 0.93, 0.8),
        ("sum, kept for checking", "100", float("inf"), float("inf"), 0.0, 0.0),
    ],
)
def test_the_goals(
    family: str, people: str, error: float, cell: float, inside: float, least: float
) -> None:
    found = goal(family, people)
    assert (found.error, found.cell, found.inside, found.least) == (error, cell, inside, least)
    assert family == "sum, kept for checking" or (found.width, found.widest) == (3.0, 8.0)


@pytest.mark.parametrize(
    ("second", "missed"),
    [
        (result(2.0, 0.95, 2.9), []),
        (result(2.1, 0.95, 2.9), ["error"]),
        (result(4.1, 0.95, 2.9), ["error", "an error"]),
        (result(2.0, 0.90, 2.9), ["inside"]),
        (result(2.0, 0.79, 2.9), ["inside", "an inside"]),
        (result(2.0, 0.95, 3.3), ["width"]),
        (result(2.0, 0.95, 8.1), ["width", "a width"]),
        (result(2.0, 0.95, float("inf")), ["width", "a width"]),
        (result(2.0, 0.95, float("nan")), []),
    ],
)
def test_a_column_misses_what_it_misses(second: Result, missed: list[str]) -> None:
    assert misses([result(1.99, 0.95, 2.9), second], GOOD) == missed


def test_marked_cells_are_shown_and_not_counted() -> None:
    hidden = result(50.0, 0.0, 0.0, "unseen: 1 people", "giant")
    text = table("sum", [result(1.5, 0.96, 2.0), hidden])
    assert "| giant | (50 / 0 / 0.0 u) |" in text and "* giant, 1,000: unseen: 1 people" in text
    assert "| **1.50** (1.5) / **96.0** (96) / **2.00** (2.0) |" in text
    assert "NO" not in text
    assert "NO: error, an error, inside, an inside |" in table(
        "sum", [result(1.5, 0.96, 2.0), dataclasses.replace(hidden, mark="")]
    )


def test_the_last_table_has_a_line_for_each_column() -> None:
    hidden = result(50.0, 0.0, 0.0, "unseen: 1 people", "giant")
    text = coverage.overview({"sum": [result(1.5, 0.96, 2.0), hidden], "files": [hidden]})
    assert text.splitlines()[2:] == [
        "| sum | 1,000 | **1.50** (1.5) | **96.0** (96) | **2.00** (2.0) | 1 of 2 | yes |",
        "| files | 1,000 |  |  |  | 0 of 1 |  |",
    ]
    missed = coverage.overview({"sum": [result(3.0, 0.96, 2.0)]})
    assert missed.endswith("| 1 of 1 | NO: error |\n")


@pytest.mark.parametrize(("error", "missed"), [(3.0, []), (3.1, ["one row each"])])
def test_counts_of_one_row_each_have_a_goal_of_their_own(error: float, missed: list[str]) -> None:
    asked = Question("count", "all alike", "300", lambda seed: suites.alone("uniform", 9, 0), ())
    found = [dataclasses.replace(result(error, 1.0, 1.0), question=asked)]
    assert coverage.one_row_each(found, "count", "300") == missed
    assert coverage.one_row_each(found, "sum", "300") == []


def test_statistics_that_are_released_together_have_a_line_each() -> None:
    rows = suites.several_rows("uniform", 500, 0)
    asked = Question("together", "uniform", "500", lambda seed: rows, (COUNT, SUM, MEAN))
    found = [Result(asked, one.name, 1.0, 1.0, 1.0, 0.0, "") for one in asked.asked]
    text = table("together", found)
    assert all(
        f"| uniform: {name} | 1.0 / 100 / 1.0 |" in text for name in ("count", "sum", "mean")
    )


def test_every_family_is_asked() -> None:
    asked = list(coverage.asked(False, []))
    families = {one.family for one in asked}
    assert {"sum", "count", "mean", "together", "sum, zCDP", "sum, epsilon and delta"} <= families
    assert {"10 partitions", "100 partitions", "1,000 partitions"} <= families
    assert {"many partitions, zCDP", "a clip for each partition"} <= families
    sums = {(one.data, one.people) for one in asked if one.family == "sum"}
    sizes = (*suites.SIZES, suites.LARGEST)
    assert sums == {(kind, f"{size:,}") for kind in suites.SUITE for size in sizes}
    assert {one.family for one in coverage.asked(True, [])} == families - {"1,000 partitions"}


def test_the_command_prints_its_tables_and_fails_where_a_goal_is_missed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = suites.alone("all alike", 400, 0)
    one = Question("sum", "all alike", "1,000", lambda seed: rows, (SUM,))
    monkeypatch.setattr(coverage, "asked", lambda *_: [one])
    assert coverage.main(["--runs", "40", "--seeds", "1", "--only", "nothing"]) == 0
    assert capsys.readouterr().out.count("\n") == 2
    monkeypatch.setattr(coverage, "goal", lambda *_: Goal(error=1e9, inside=0.0, least=0.0))
    coverage.main(["--runs", "40", "--seeds", "1", "--only", "sum", "--quick"])
    out = capsys.readouterr().out
    assert out.startswith("| sum | 1,000 |\n| --- | --- |\n| all alike | ")
    monkeypatch.setattr(coverage, "goal", lambda *_: Goal(error=1e-9))
    assert coverage.main(["--runs", "40", "--seeds", "1", "--only", "sum", "--quick"]) == 1
    assert "NO: error" in capsys.readouterr().out


def test_files_are_asked_about_by_group(tmp_path: Path) -> None:
    path = tmp_path / "shop.csv"
    lines = [f"{person},{person % 3},{person}.5" for person in range(200)]
    path.write_text("\n".join(["who,day,spent", *lines]))
    asked = list(questions.of_file(suites.File.of(f"{path}:who:day:spent")))
    by_day = "by day, 3 partitions"
    assert [(one.family, one.data, one.people) for one in asked] == [
        *(("files", f"shop: {name}", "in all") for name in ("count", "spent")),
        *(
            (family, f"shop: {name}", by_day)
            for name in ("count", "spent")
            for family in ("files", "files, selected")
        ),
    ]
    rows, selected = asked[4].make(0), asked[5].make(0)
    assert rows.reach is None and rows.partitions == 3
    assert selected.selected and not rows.selected and asked[5].budget.delta
    assert asked[4].asked[0].truth(rows).sum() == pytest.approx(sum(range(200)) + 100)


def test_statistics_are_left_to_their_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage_statistics, "report", lambda *given: len(given))
    assert coverage.main(["--statistics"]) == 4
