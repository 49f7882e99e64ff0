"""Rehearsals: the truth of all rows, what draws say of it, and marks that it is not private."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.search.quantiles.node import Answer
from beam_dp.mechanisms.search.quantiles.several_quantiles import SplitSearch
from beam_dp.transforms import rehearsal
from pipelines import check, rehearse
from tests.row_files import write

MARK = "NOT PRIVATE: a rehearsal of 20 releases, which shows the true numbers of the input"
PEOPLE = 300


@pytest.fixture
def held() -> list[dict[str, object]]:
    """300 people with rows in 1 to 6 partitions, of 1 to 3 rows there; one has far more."""
    rows: list[dict[str, object]] = []
    numbers = np.random.default_rng(3)
    for person in range(PEOPLE):
        for key in numbers.permutation(6)[: 1 + person % 6].tolist():
            for _ in range(1 + person % 3 + 200 * (person == 7)):
                value = float(numbers.integers(0, 50))
                rows.append({"who": person, "key": key, "value": value, "other": key + 9000})
    return rows


METRICS = [
    dp.Count(),
    dp.PeopleCount(),
    dp.Sum("value", clip=10),
    dp.Mean("value", low=0, high=50),
    dp.Max("value"),
    dp.Histogram("value", edges=[0, 25, 50]),
]


@pytest.mark.parametrize(
    "given",
    [
        {"partitions": dp.PublicPartitions(range(7)), "bounds": dp.ContributionBounds(2, 1)},
        {"partitions": dp.PrivatePartitions()},
    ],
)
def test_the_truth_is_that_of_all_rows(held, given):
    """Whatever bounds and clips would cut, and whichever partitions would be named."""
    release = dp.PrivateAggregate("who", METRICS, dp.Budget(1, 1e-6), partition=["key"], **given)
    found = rehearsal.truth(release, held)
    is_public = isinstance(given["partitions"], dp.PublicPartitions)
    assert set(found) == {(key,) for key in range(6 + is_public)}
    for (key,), numbers in found.items():
        values = [row["value"] for row in held if row["key"] == key]
        people = {row["who"] for row in held if row["key"] == key}
        expected = [len(values), len(people), sum(values), sum(values) / max(1, len(values))]
        expected += [max(values, default=0), len(people)]
        if values:
            bins = sum(numbers[15::3])
            assert [*numbers[:15:3], bins] == pytest.approx(expected, rel=1e-3), key
        else:
            assert numbers[:7:3] == (0, 0, 0)


@pytest.mark.parametrize("values", [[5] * 300, [5] * 299 + [6], [-2, 7] * 150])
def test_true_extremes_are_known_where_many_people_have_them(values):
    rows = [{"who": who, "value": value} for who, value in enumerate(values)]
    found = rehearsal.truth(
        dp.PrivateAggregate("who", [dp.Max("value"), dp.Min("value")], dp.Budget(1)), rows
    )
    assert found[()][::3] == (max(values), min(values))


def test_the_true_quantiles_are_not_what_the_search_finds(held, monkeypatch):
    """A search that is wrong is not the truth that its draws are compared with."""
    monkeypatch.setattr(SplitSearch, "answers", lambda search, *_: [Answer(0, 0.0)] * 3)
    release = dp.PrivateAggregate(
        "who",
        [dp.Quantiles("value", [0.25, 0.5, 0.75])],
        dp.Budget(1),
        partition=["key"],
        partitions=dp.PublicPartitions(range(7)),
        bounds=dp.ContributionBounds(2),
    )
    found = rehearsal.truth(release, held)
    assert np.isnan(found.pop((6,))[::2]).all()
    for (key,), numbers in found.items():
        values = np.array([row["value"] for row in held if row["key"] == key], float)
        expected = np.quantile(values, [0.25, 0.5, 0.75], method="inverted_cdf")
        assert list(numbers[::2]) == expected.tolist()
    assert rehearsal.draws(dp.PrivateTables(release), held, 1)[0][0][(0,)][0] < -1e17


def test_the_truth_names_the_partitions_of_ranks_alone(held):
    release = dp.PrivateAggregate("who", [dp.Median("value")], dp.Budget(1, 1e-6), ["key"])
    found = rehearsal.truth(release, held)
    assert sorted(found) == [(key,) for key in range(6)]
    assert {len(numbers) for numbers in found.values()} == {len(release.metrics[0].outputs)}


def test_the_truth_knows_no_bound_on_rows():
    rows = [{"who": who, "value": 1} for who in range(50) for _ in range(3)]
    asked, bounds = [dp.MaxFrequency("value")], dp.ContributionBounds(1, 1)
    release = dp.PrivateAggregate("who", asked, dp.Budget(epsilon=1.0), bounds=bounds)
    [(most, *_)] = rehearsal.truth(release, rows).values()
    assert most == 150


NAN = math.nan
DRAWN = {
    "a number": ([[4.0], [6.0]], "5 ±1"),
    "an interval": ([[4.0, 3.0, 5.0], [6.0, 5.5, 7.0]], "5 ±1 (50% hold)"),
    "some are missing": ([[4.0, 2.0], [6.0, 2.0], [NAN, math.inf]], "5 ±1 (33% missing)"),
    "some have no rank error": ([[4.0, math.inf], [6.0, 2.0]], "5 ±1 (50% rank ±?)"),
    "most lack one": (
        [[4.0, math.inf], [6.0, 2.0], [NAN, 1.0]],
        "5* ±1 (33% missing) (50% rank ±?)",
    ),
    "all are missing": ([[NAN, 1.0]], "5* (no number)"),
}


@pytest.mark.parametrize(("drawn", "text"), DRAWN.values(), ids=DRAWN)
def test_what_draws_lack_is_said(drawn, text):
    assert str(rehearse._number(5.0, drawn)) == text


def test_rows_of_json_lines_behind_a_star_are_those_of_the_release(tmp_path, capsys):
    path = write(tmp_path / "in.jsonl", [{"who": f"p{n}", "x": n % 9} for n in range(400)])
    words = ["--input", path, "--person", "who", "--epsilon", "9", "--sum", "x"]
    words += ["--query", "SELECT * FROM rows WHERE x > 2"]
    assert rehearse.main([*words, "--runs", "2"]) == 0
    said = capsys.readouterr().out
    assert re.search(rf"^{sum(n % 9 for n in range(400) if n % 9 > 2):,} ±", said, re.MULTILINE)
    assert check.main(words) == 0 and "265 of 400 rows" in capsys.readouterr().out


def test_draws_are_those_of_the_release(held):
    """Of 400 intervals at least 95% hold on average: below 89% has a chance below 1e-6."""
    release = dp.PrivateAggregate(
        "who",
        [dp.PeopleCount()],
        dp.Budget(1),
        partition=["key"],
        partitions=dp.PublicPartitions(range(6)),
        bounds=dp.ContributionBounds(6),
    )
    true = rehearsal.truth(release, held)
    [drawn] = rehearsal.draws(dp.PrivateTables(release), held, 100)
    inside = [
        numbers[1] <= true[key][0] <= numbers[2] for each in drawn for key, numbers in each.items()
    ]
    assert len(inside) == 600 and np.mean(inside) > 0.89
    assert len({each[(0,)][0] for each in drawn}) > 10
    errors = [abs(each[(0,)][0] - true[(0,)][0]) for each in drawn]
    assert 1 < np.mean(errors) < 20  # of rate 1/6 it is 6 on average


ASKED = ["--person", "visitor", "--count", "--epsilon", "9", "--runs", "20"]


def test_the_table_and_the_page_are_marked(visits, tmp_path, capsys):
    """The number is true whatever is drawn.

    1 in 300 draws of a mean of equal values is far off, so that it may be marked.
    """
    page = str(tmp_path / "page.html")
    words = ["--input", visits, *ASKED, "--mean", "spent,low=0,high=9", "--median", "minutes"]
    words += ["--partition", "day", "--public_partitions", "1,2,3,4", "--report", page]
    assert rehearse.main(words) == 0
    checked, table = capsys.readouterr().out.split(f"{MARK}\n", 1)
    assert checked.startswith(f"{check.HEAD}\n{visits}: 600 of 600 rows count\n")
    assert "  keys of the list that never occur (1): 4\n" in checked
    heading, *rows, last = table.splitlines()
    assert rows.pop() == MARK and last == f"report: {page}"
    assert heading.split()[0] == "day"
    assert re.match(r" *1 +200 ±[\d.]+ \(\d+% hold\) +1\.5\*? ±", rows[0]), rows[0]
    assert "N ±E (P% hold): N is the true number" in table
    assert "(no number)" in rows[3]  # a mean of nobody
    text = Path(page).read_text()
    assert "NOT PRIVATE. Rehearsal: visits.csv" in text and "rehearsed on 20" in text
    assert "Do not show this page to others" in text and "without noise" not in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "visits.csv"]


def test_private_partitions_say_how_often_they_are_named(rows, tmp_path, capsys):
    """200 people are nearly always enough, one person never is (a chance of 1e-6 in each draw)."""
    path = write(tmp_path / "rows.jsonl", [*rows, {"visitor": "one", "day": 9, "spent": 1.0}])
    words = ["--input", path, *ASKED, "--partition", "day", "--delta", "1e-6", "--quiet"]
    assert rehearse.main([*words, "--also_by", "total"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert re.search(r"^ *1 +100% +200", said.out, re.MULTILINE)
    assert re.search(r"^601 ±[\d.]+ \(\d+% hold\)", said.out, re.MULTILINE), said.out
    assert re.search(r"^ *9 +0% +1\*? \(no number\)", said.out, re.MULTILINE), said.out


def test_the_mapping_of_a_release_can_be_rehearsed(visits, tmp_path, config, capsys):
    """What it says of output and ledger is for the release: nothing is written or charged."""
    words = config(
        person="visitor",
        metrics=["count"],
        suppress="unreliable",
        post_process="SELECT * FROM released LIMIT 9",
        budget={"rho": 0.5},
        output=str(tmp_path / "out.csv"),
        ledger={"path": str(tmp_path / "l.jsonl"), "limit": {"rho": 1}},
    )
    assert rehearse.main([*words, "--input", visits, "--runs", "3"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"\b600\*? ±", said)
    assert "not rehearsed: suppress; HAVING, ORDER BY, LIMIT and columns computed" in said
    assert {path.name for path in tmp_path.iterdir()} == {"visits.csv", "release.json"}


WRONG = {
    "one run": (["--input", "v.csv", "--runs", "1"], "runs must be 2 or more"),
    "a runner": (
        ["--input", "v.csv", "--runner", "FlinkRunner"],
        "unrecognized argument: --runner",
    ),
    "a statement": (["SELECT day FROM v"], "beam-dp select takes it"),
    "a plan": (["--input", "v.csv", "--plan"], "plan must be left out: it reads no row"),
    "a page of text": (["--input", "v.csv", "--report", "page.txt"], "end in .html"),
}


@pytest.mark.parametrize(("words", "said"), WRONG.values(), ids=WRONG)
def test_wrong_calls_are_told_in_one_line(words, said, refused):
    assert said in refused(rehearse, *ASKED[:5], *words)


def test_draws_of_several_tables_agree(held):
    first = dp.PrivateAggregate(
        "who", [dp.Count()], dp.Budget(1), ["key"], partitions=dp.PublicPartitions(range(6))
    )
    for totals in ("agree", "apart"):
        drawn = rehearsal.draws(dp.PrivateTables(first, ["total"], totals), held, 10)
        sums = [sum(row[0] for row in numbers.values()) for numbers in drawn[0]]
        whole = [numbers[()][0] for numbers in drawn[1]]
        assert (sums == whole) == (totals == "agree"), "apart, noise of 10 draws is not the same"
        assert len({*whole}) > 5
