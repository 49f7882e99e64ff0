"""What readers see: which columns belong together, and the table of a terminal."""

import math
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.results.shown_numbers import width
from beam_dp.results.view import ROWS, View
from beam_dp.transforms import run_record
from tests.results.releases import HOSTILE_KEYS, made

INF, NAN = math.inf, math.nan
METRICS = [
    dp.Sum("spent", name="day_low"),
    dp.Quantiles("ms", [0.5, 0.9]),
    dp.Histogram("age", edges=[-INF, 18, 30.5, INF]),
    dp.Median("ms", name="median_rank_error"),
]
NUMBERS = [
    ["sum", "sum_low", "sum_high"],
    ["median", "median_rank_error"],
    ["max", "max_low", "max_high"],
]
RECORD: dict[str, Any] = {"columns": {"keys": ["day"], "numbers": NUMBERS}}
LINES = [
    ("a", 100.0, 80.0, 140.0, 3.0, 5.0, NAN, -INF, INF),
    ("b", 10.0, 4.0, 14.0, 3.0, 5.0, NAN, -INF, INF),
    ("c", NAN, -INF, INF, NAN, INF, NAN, -INF, INF),
]


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    names = ["day", *chain(*NUMBERS)]
    return pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)})


def view(rows: list[tuple[Any, ...]] = LINES, **changed: Any) -> View:
    return View.of(table(rows), {**RECORD, **changed})


def test_every_metric_has_its_numbers():
    release = dp.PrivateAggregate("who", METRICS, dp.Budget(1.0, 1e-6), ["day"])
    record = run_record.facts(release, None)
    names = [*record["columns"]["keys"], *chain(*record["columns"]["numbers"])]
    seen = View.of(pa.table({name: [float(at)] for at, name in enumerate(names)}), record)
    assert [(each.kind, each.column, each.metric, each.label) for each in seen.series] == [
        ("Sum", "spent", "day_low", ""),
        ("Quantiles", "ms", "quantiles_ms_0", "0.5"),
        ("Quantiles", "ms", "quantiles_ms_0", "0.9"),
        ("Histogram", "age", "histogram_age", "below 18"),
        ("Histogram", "age", "histogram_age", "18 to below 30.5"),
        ("Histogram", "age", "histogram_age", "30.5 or more"),
        ("Median", "ms", "median_rank_error", ""),
    ]
    told = [(n.value, n.low, n.high, n.rank) for each in seen.series for n in each.numbers]
    assert told[0] == (1, 2, 3, None) and told[1] == (4, None, None, 5) and told[-1][3] == 18
    assert seen.keys == ((0.0,),)


def test_a_table_without_keys_or_parameters():
    record = {"columns": {"keys": [], "numbers": [["n", "n_low", "n_high"]]}}
    columns = {"n": [5, 6], "n_low": [4.0, INF], "n_high": [None, 9.0]}
    seen = View.of(pa.table(columns), record)
    assert seen.keys == ((), ()) and (seen.series[0].kind, seen.series[0].name) == ("", "n")
    first, second = seen.series[0].numbers
    assert (first.low, first.high, first.whole) == (4, None, True)
    assert (second.low, second.high) == (None, 9)


def test_numbers_are_marked_and_counted():
    assert view().text().splitlines()[:4] == [
        "day                  sum       median  max",
        "  a  100.0 [80.0, 140.0]  3 (rank ±5)   -*",
        "  b    10.0* [4.0, 14.0]  3 (rank ±5)   -*",
        "  c                   -*           -*   -*",
    ]
    [ranks] = view().legend
    assert ranks.endswith(
        "the number stands at most n people, or rows, away from the rank asked for"
    )
    counted, empty = view().doubts()
    assert counted.startswith(
        "* 6 of 9 numbers may be of little use: they are missing or infinite, their"
    )
    assert "(2 of sum, 1 of median, 3 of max). More people" in counted
    assert counted.endswith(" larger budget would help")
    assert empty.startswith(
        "max: no number could be released. There are too few people, or too few"
    )
    assert "whose number is not 0 (of a spread: whose numbers differ), or the col" in empty


@pytest.mark.parametrize(("low", "told"), [(-3.0, True), (8.0, False), (-INF, True)])
def test_counts_that_are_all_doubtful_ask_for_the_right_columns(low, told):
    record = {"columns": {"keys": [], "numbers": [["count", "count_low", "count_high"]]}}
    rows = pa.table({"count": [1, 9], "count_low": [-1.0, low], "count_high": [9.0, 9.0]})
    seen = View.of(rows, {**record, "parameters": {"metrics": [{"type": "Count"}]}})
    [said] = seen.doubts()
    assert said.endswith("Are these the right columns and keys? beam-dp check says it") == told


def test_a_rank_that_is_not_known_is_explained_with_what_helps():
    seen = view([("a", 100.0, 80.0, 140.0, 3.0, INF, 2.0, 1.9, 2.1)])
    assert "3* (rank ±?)" in seen.text()
    [said] = [
        line
        for line in seen.legend
        if line.startswith("(rank ±?): the rank error may be above a tenth")
    ]
    assert "Of people, with per=person, it is mostly smaller" in said
    assert "or their rank error is ±? (1 of median)" in seen.doubts()[0]
    assert not any(line.startswith(("(rank ±n)", "?:")) for line in seen.legend)


def test_what_the_intervals_take_for_granted_is_told():
    """A bound or a clip that is too small makes intervals miss the truth, and no number shows it."""
    metrics = [dp.Sum("spent", clip=2.5), dp.Median("ms"), dp.Max("ms")]
    bounds = dp.ContributionBounds(partitions=3)
    budget = dp.Budget(1.0, 1e-6)
    told = []
    for partition in (["day"], []):
        release = dp.PrivateAggregate("who", metrics, budget, partition, bounds=bounds)
        record = {**RECORD, "parameters": run_record.facts(release, None)["parameters"]}
        record["columns"] = {"keys": partition, "numbers": NUMBERS}
        told.append(View.of(table(LINES), record).legend[-1])
    rule = "the intervals hold only if nobody has more than was given: "
    assert told == [f"{rule}partitions=3, clip=2.5 of sum", f"{rule}clip=2.5 of sum"]


def test_an_open_end_is_explained_and_marked():
    """6 million rows of 1,000 clerks: nothing is known above, and the number may be close."""
    seen = view([("a", 6_033_404, 5_540_000.0, INF, 1.0, 1.0, 2.0, 1.9, 2.1)])
    assert "6,033,000* [5,540,000, ?]" in seen.text()
    assert "?: nothing is known on that side" in seen.legend
    [said] = seen.doubts()
    assert said.startswith("* 1 of 3 numbers may be of little use") and "(1 of sum)" in said


def test_people_that_a_largest_number_passes_over_are_told():
    sparse_vector = {"metric": "max", "mechanism": "sparse_vector", "people_beyond": 242}
    record = {
        "columns": {"keys": [], "numbers": NUMBERS[2:]},
        "parameters": {"metrics": [{"type": "Max"}]},
    }
    rows = pa.table({"max": [39.7, 39.7], "max_low": [-INF, 39.69], "max_high": [INF, INF]})
    seen = View.of(rows, {**record, "releases": [sparse_vector]})
    numbers = [str(number) for number in seen.series[0].numbers]
    assert numbers == ["39.7* [?, ?]", "39.70 (up to 242 people above)"]
    assert seen.legend[0].startswith("(up to n people above or below): ")
    searched = {"metric": "max", "mechanism": "shifted inverse, AboveThreshold", "shift_T": 242}
    seen = View.of(rows, {**record, "releases": [searched]})
    assert "2 of 2 numbers" in seen.doubts()[0]  # nobody knows how many people there are


@pytest.mark.parametrize("columns", [30, 50])
def test_no_line_is_wider_than_the_terminal(columns):
    text = view().text(columns)
    assert columns < 40 or max(map(width, text.split("\n"))) <= columns
    names = text.split("\n")[0].split()
    assert names[:2] == ["day", "sum"]  # a key and a number are always there
    note = "... and median, max: the terminal is too narrow"
    assert (note in " ".join(text.split())) == (columns == 30)


def test_the_first_rows_are_shown_and_the_others_counted():
    seen = view([(str(n), *LINES[0][1:]) for n in range(2_060)])
    lines = seen.text().split("\n")
    assert lines[ROWS + 1] == "... and 2,010 more rows"
    assert "2,060 of max" in seen.doubts()[0]


def test_a_hostile_key_does_nothing_to_the_terminal():
    row = ("\x1b[2J\r\n" + "東" * 60, *LINES[0][1:])
    text = view([row, LINES[1]]).text()
    lines = text.split("\n")[:3]
    assert "\x1b" not in text and len({width(line) for line in lines}) == 1
    assert width(lines[0]) < 80


def test_it_is_printed_rounded_with_its_cost(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = str(dp.Released(*made(["a", "b"]))).splitlines()
    assert lines[0].split() == ["day", "sum_spent", "median_ms"]
    assert "\x1b" not in repr(dp.Released(*made(HOSTILE_KEYS)))
    assert lines[1].split("  ")[-2:] == ["1,000 [799, 1,321]", "1,000 (rank ±73)"]
    assert max(map(len, lines[:-1])) <= 60 and lines[-1].startswith("in all: epsilon 1")


@pytest.mark.parametrize(("period", "needed"), [("week", "week or day"), ("day", "day")])
def test_what_is_left_out_is_said_by_rule(period, needed):
    metrics = [dp.Sum("spent"), dp.DistinctCount("shop"), dp.Count()]
    metrics += [
        dp.Histogram("spent", [0, 10, 20.5]),
        dp.Histogram("spent", [-math.inf, math.inf], name="all"),
    ]
    keys = dp.PublicPartitions([1, 2, 3])
    release = dp.PrivateAggregate(
        "who",
        metrics,
        dp.Budget(1.0),
        ["day"],
        partitions=keys,
        period=period,
        ledger_period="3",
        bounds=dp.ContributionBounds(rows=3),
    )
    seen = view(**run_record.facts(release, {"query": "SELECT * FROM rows"}) | RECORD)
    assert seen.left_out == (
        f"not counted, if any: rows that cannot be read; rows without who or {needed}; "
        "rows that the query drops; rows of other periods than 3; rows with day other than the 3 "
        "named; cells of spent, shop without a plain value; people whose number of spent is outside 0 to 20.5; "
        "what a person has beyond the bounds"
    )
    assert seen.left_out in seen.text()
    mean = [
        dp.Mean("x"),
        dp.Sum("x"),
        dp.Count(),
        dp.Mean("y"),
        dp.Mean("x", own_count=True, name="m"),
    ]
    facts = run_record.facts(dp.PrivateAggregate("who", mean, dp.Budget(1.0)), None)
    assert view(**facts | RECORD).left_out.endswith("cells of x, y without a plain value")
    [zeros] = view(**facts | RECORD).legend[1:]
    assert zeros.startswith(
        "mean_x: beside a sum and a count, empty cells count as 0, unless own_count"
    )
    owners = dp.PrivateAggregate(["a", "b"], [dp.Count()], dp.Budget(1.0))
    seen = view(**run_record.facts(owners, None) | RECORD)
    assert seen.left_out == ("not counted, if any: rows that cannot be read; rows without a and b")
    one = dp.PrivateAggregate("a", [dp.Max("spent")], dp.Budget(1.0))
    facts = run_record.facts(one, None) | {"partitions_of_one_person": 1}
    assert "beyond" not in view(**facts | RECORD).left_out
    by = dp.PrivateAggregate("a", [dp.Max("spent")], dp.Budget(1.0, 1e-6), ["day"])
    facts = run_record.facts(by, None) | {"partitions_of_one_person": 2}
    assert view(**facts | RECORD).left_out.endswith("beyond the bounds")
    assert view().left_out == "" and made([()]).record["parameters"]["person"] == "who"
