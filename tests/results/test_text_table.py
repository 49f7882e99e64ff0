"""The table of a terminal: one cell per number, aligned, cut to the width, honest about doubts."""

import math
from itertools import chain

import pyarrow as pa
import pytest

from beam_dp.results.plain_text import width
from beam_dp.results.text_table import text_table

INF, NAN = math.inf, math.nan
NUMBERS = [
    ["sum", "sum_low", "sum_high"],
    ["median", "median_rank_error"],
    ["max", "max_low", "max_high"],
]
RECORD = {"columns": {"keys": ["day"], "numbers": NUMBERS}}
ROWS = [
    ("a", 100.0, 80.0, 140.0, 3.0, 5.0, NAN, -INF, INF),
    ("b", 10.0, 4.0, 14.0, 3.0, 5.0, NAN, -INF, INF),
    ("c", NAN, -INF, INF, NAN, INF, NAN, -INF, INF),
]  # fmt: skip


def table(rows: list[tuple[object, ...]] = ROWS) -> pa.Table:
    names = ["day", *chain(*NUMBERS)]
    return pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)})


def test_numbers_are_marked_and_counted() -> None:
    shown = text_table(table(), RECORD)
    assert shown.lines == [
        "day                  sum       median  max",
        "  a  100.0 [80.0, 140.0]  3 (rank ±5)   -*",
        "  b    10.0* [4.0, 14.0]  3 (rank ±5)   -*",
        "  c                   -*           -*   -*",
    ]
    assert (shown.rows, shown.doubtful, shown.empty) == (
        3,
        {"sum": 2, "median": 1, "max": 3},
        ("max",),
    )
    ranks, counted, empty = shown.remarks
    assert ranks.startswith("(rank ±n): the number may stand n people, or rows, away")
    assert counted.startswith("* 6 of 9 numbers are of little use: missing, with an interval")
    assert "2 of sum, 1 of median, 3 of max" in counted and counted.endswith("says what to expect")
    assert empty.startswith(
        "max: no number could be released. There are too few people, or the column of the input "
    )


def test_nothing_is_said_where_all_is_well() -> None:
    record = {"columns": {"keys": ["day"], "numbers": NUMBERS[:1]}}
    assert text_table(table(ROWS[:1]), record).remarks == []
    assert text_table(table([]), record).remarks == []
    assert "*" not in str(text_table(table(ROWS[:1]), record))
    assert text_table(table([]), record).lines == ["day  sum"]


def test_an_open_end_is_explained() -> None:
    shown = text_table(table([("a", 177.2, 177.1, INF, 1.0, 1.0, 2.0, 1.0, 3.0)]), RECORD)
    assert "177.2* [177.1, ?]" in str(shown) and "?: nothing is known on that side" in shown.remarks
    assert shown.doubtful["sum"] == 0 and shown.open == {"sum": 1, "median": 0, "max": 0}
    assert shown.remarks[-1].startswith("* 1 of 3 numbers: their error could not be shown, and may")
    assert shown.remarks[-1].endswith(" (1 of sum)")
    assert "1 of max." in shown.remarks[-2]


@pytest.mark.parametrize(
    ("person", "said"),
    [
        ("who", ""),
        (
            ["VisitorId", "Day"],
            "each row has two owners: VisitorId and Day; each of them is a person",
        ),
        (["a", "b\n", "c"], "each row has three owners: a, b\\n and c; each of them is a person"),
    ],
)
def test_several_owners_are_named_below_the_table(person: object, said: str) -> None:
    record = {**RECORD, "parameters": {"person": person}}
    remarks = text_table(table(ROWS[:1]), record).remarks
    assert [each for each in remarks if "owners" in each] == [each for each in remarks[-1:] if said]
    assert remarks[-1].startswith(said) if said else True


def test_a_legend_is_there_only_for_what_is_shown() -> None:
    ranks = "(rank ±n): the number may stand n people, or rows, away from the rank asked for"
    assert ranks in text_table(table(), RECORD, 200).remarks
    narrow = text_table(table(), RECORD, 30)
    assert "median" not in narrow.names and ranks not in narrow.remarks


def test_people_that_a_largest_number_passes_over_are_told() -> None:
    numbers = [["max", "max_low", "max_high"]]
    record = {
        "columns": {"keys": [], "numbers": numbers},
        "parameters": {"metrics": [{"type": "Max"}]},
        "releases": [{"metric": "max", "mechanism": "walk from outside", "shift_T": 242}],
    }
    rows = pa.table(
        {
            "max": [39.7, 39.7],
            "max_low": [-INF, 39.69],
            "max_high": [INF, INF],
        }
    )
    shown = text_table(rows, record)
    first, second = (row[0] for row in shown.cells)
    assert first == "39.7* [?, ?]"
    assert second == "39.70 (up to 242 people above)"
    assert shown.open["max"] == 1
    assert any(line.startswith("(up to n people above or below): ") for line in shown.remarks)
    record["releases"][0]["mechanism"] = "shifted inverse, AboveThreshold"
    assert text_table(rows, record).open["max"] == 2  # nobody knows how many people there are


@pytest.mark.parametrize("columns", [10, 30, 40, 50, 200])
def test_no_line_is_wider_than_the_terminal(columns: int) -> None:
    shown = text_table(table(), RECORD, columns, whole="out.csv")
    assert columns < 40 or max(map(width, str(shown).split("\n"))) <= columns
    assert shown.names[:2] == ("day", "sum")  # a key and a number are always there
    left = [line for line in shown.left_out if "in out.csv: the terminal is too narrow" in line]
    assert len(left) == (len(shown.names) < 4)
    if columns == 30:
        assert left == [
            "... and 2 more numbers per row (median, max) in out.csv: the terminal is too narrow"
        ]


def test_the_first_rows_are_shown_and_the_others_counted() -> None:
    shown = text_table(table([(str(n), *ROWS[0][1:]) for n in range(2_060)]), RECORD, whole="x.csv")
    assert len(shown.lines) == 51 and shown.left_out == ("... and 2,010 more rows in x.csv",)
    assert shown.doubtful["max"] == 2_060


def test_a_hostile_key_does_nothing_to_the_terminal() -> None:
    row = ("\x1b[2J\r\n" + "東" * 60, *ROWS[0][1:])
    shown = text_table(table([row, ROWS[1]]), RECORD)
    assert "\x1b" not in str(shown) and len(shown.lines) == 3
    assert len({width(line) for line in shown.lines}) == 1 and width(shown.lines[0]) < 80
