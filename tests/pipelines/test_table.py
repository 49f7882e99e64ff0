"""The table that a job prints: numbers of little use are marked, counted, and explained."""

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines import table

NAMES = [
    "day",
    "sum",
    "sum_low",
    "sum_high",
    "median",
    "median_rank_error",
    "max",
    "max_low",
    "max_high",
]
INF, NAN = math.inf, math.nan
ROWS = [
    ("a", 100.0, 80.0, 140.0, 3.0, 5.0, NAN, -INF, INF),
    ("b", 10.0, 4.0, 14.0, 3.0, 5.0, NAN, -INF, INF),
    ("c", NAN, -INF, INF, NAN, 5.0, NAN, -INF, INF),
]


@pytest.mark.parametrize(
    ("numbers", "nothing"),
    [
        ((100, 80, 140), False),
        ((-100, -140, -80), False),
        ((100, 40, 140), True),
        ((100, -INF, INF), True),
        ((NAN, -INF, INF), True),
        (("", "", ""), True),
        ((None, None, None), True),
        ((12, 0, INF), True),
        ((177.2, 177.1, INF), False),
        ((5, -INF, 5.5), False),
        ((0, -1, 1), True),
        ((0, 0, 0), True),
        (("100", "80.5", "120"), False),
    ],
)
def test_a_number_says_nothing_where_its_interval_is_as_wide(
    numbers: tuple[object, ...], nothing: bool
) -> None:
    assert table.is_of_little_use(["key", *numbers], 1, 2) == nothing


@pytest.mark.parametrize("extension", ["csv", "parquet"])
def test_numbers_are_marked_and_counted(
    tmp_path: Path, extension: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"out.{extension}"
    if extension == "csv":
        lines = [",".join(NAMES), *(",".join(map(str, row)) for row in ROWS)]
        path.write_text("\n".join(lines) + "\n")
    else:
        columns = dict(zip(NAMES, zip(*ROWS, strict=True), strict=True))
        pq.write_table(pa.table({name: list(cells) for name, cells in columns.items()}), path)
    shown = table.show(str(path), NAMES)
    assert (shown.rows, shown.doubtful, shown.empty) == (
        3,
        {"sum": 2, "median": 1, "max": 3},
        ("max",),
    )
    _, first, second, _, *remarks = capsys.readouterr().out.splitlines()
    assert remarks == shown.remarks
    assert "100.0 " in first and "10.0*" in second and first.count("*") == 1
    counted, empty = shown.remarks
    assert (
        counted.startswith("* 6 of 9 numbers are of little use")
        and "2 of sum, 1 of median, 3 of max" in counted
    )
    assert empty.startswith(
        "max: no number in any row. There are too few people, or the column is "
    )


def test_nothing_is_said_where_all_is_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.csv"
    path.write_text(",".join(NAMES[:4]) + "\na,100.0,80.0,140.0\n")
    assert table.show(str(path), NAMES[:4]).remarks == []
    path.write_text(",".join(NAMES[:4]) + "\n")
    assert table.show(str(path), NAMES[:4]).remarks == []
    assert "*" not in capsys.readouterr().out
