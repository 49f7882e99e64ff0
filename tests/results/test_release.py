"""A release without Beam code: every kind of data, every wrong call, no data in any message."""

import gzip
import logging
import math
import sys
from pathlib import Path
from typing import Any

import apache_beam as beam
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.results import release
from beam_dp.testing import without_noise

CANARY = "canary-90f1"
PEOPLE, DAYS = 200, (1, 2, 3)
TABLE = pa.table(
    {
        "who": [f"{CANARY}-{person}" for _ in DAYS for person in range(PEOPLE)],
        "day": [day for day in DAYS for _ in range(PEOPLE)],
        "spent": [1.5] * PEOPLE * len(DAYS),
    }
)
ASKED: dict[str, Any] = {
    "person": "who",
    "partition": ["day"],
    "metrics": [dp.PeopleCount(), dp.Sum("spent", clip=2)],
    "budget": dp.Budget(1.0),
    "partitions": dp.PublicPartitions(DAYS),
    "bounds": dp.ContributionBounds(3),
}


def written(path: Path) -> Path:
    TABLE.to_pandas().to_csv(path, index=False)
    return path


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["csv", "Table", "pandas", "polars"])
def test_every_kind_of_data_is_released(tmp_path, kind):
    frame = TABLE.to_pandas()
    data: Any = {
        "csv": lambda: str(written(tmp_path / "in.csv")),
        "Table": lambda: TABLE,
        "pandas": lambda: frame,
        "polars": lambda: pl.from_arrow(TABLE),
    }[kind]()
    released = dp.release(data, **ASKED)
    names = ["people_count", "people_count_low", "people_count_high"]
    assert released.table.column_names[:4] == ["day", *names]
    rows = released.table.to_pylist()
    assert [row["day"] for row in rows] == list(DAYS)
    # Discrete Laplace of rate 1/6, 18 draws: P(some |X| > 180) < 18 * 2 e^-30 < 4e-12.
    assert all(abs(row["people_count"] - PEOPLE) <= 180 for row in rows)
    assert released.record["budget"] == {"epsilon": "1", "delta": "0"}
    assert released.record["columns"]["keys"] == ["day"]
    name = "in.csv" if kind == "csv" else type(data).__name__
    assert released.record["job"] == {"program": "beam_dp.release", "input": name}
    assert str(tmp_path) not in str(released.record) + released.report()
    assert CANARY not in str(released.record)
    assert released.to_pandas().equals(pd.DataFrame(released.table.to_pydict()))


def test_ids_among_missing_ones_and_text_that_cannot_be_written_cost_their_own_rows():
    ids = [float(person) for person in range(PEOPLE)] * len(DAYS)
    data = pd.DataFrame({"who": [*ids, None, 0.5], "spent": 1.5})
    days = [*map(str, TABLE["day"].to_pylist()), "1", "1"]
    for kind, bad in (("object", 10**30), ("string[python]", "\udfff"), ("category", "\ud800")):
        days[-2] = bad
        counts = dp.release(data.assign(day=pd.Series(days, dtype=kind)), **ASKED).table
        # 9 draws in all, as above: false with a probability below 4e-12.
        assert all(abs(count - PEOPLE) <= 180 for count in counts["people_count"].to_pylist())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("partitions", [None, dp.PublicPartitions(DAYS)], ids=["private", "public"])
def test_columns_keep_names_that_no_row_could_have(partitions):
    data = TABLE.rename_columns(["Visitor Id", "visit day", "spent (euros)"])
    metrics = [dp.Count(), dp.Sum("spent (euros)", clip=2), dp.Median("spent (euros)", name="in €")]
    asked: dict[str, Any] = {"metrics": metrics, "partition": ["visit day"]}
    budget = dp.Budget(9.0, 1e-6 if partitions is None else 0)
    released = dp.release(data, person="Visitor Id", budget=budget, partitions=partitions, **asked)
    # With epsilon 1 or more and 200 people a day is missing with probability below 1e-9.
    assert len(released.table) == len(DAYS)
    spent = ["sum_spent (euros)", "sum_spent (euros)_low", "sum_spent (euros)_high"]
    names = ["visit day", "count", "count_low", "count_high", *spent, "in €", "in €_rank_error"]
    assert released.table.column_names == names
    assert "sum_spent (euros)" in str(released) and "in €" in released.report()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"data": "visits.txt"}, "pattern must end in one of .parquet, .csv, "),
        ({"data": "none.csv"}, "pattern must match a file, and 'none.csv' matches none"),
        ({"data": [1, 2]}, "data must be a table, not an object of type list. Give a path"),
        ({"data": pl.from_arrow(TABLE).lazy()}, "not an object of type LazyFrame. Give a path"),
        ({"person": "whom"}, "column 'whom' must be one of the columns of data, once: 'who', "),
        ({"partition": "spent"}, 'must be a list of column names, not \'spent\'. Write partition=["spent"]'),
        ({"metrics": dp.Count()}, "metrics must be a list of metrics"),
        ({"metrics": [dp.Sum("who")]}, "column 'who' must hold numbers, not string"),
        ({"budget": 1.0}, "budget must be of type Budget, not 1.0. Write budget=dp.Budget(epsilon=1.0)"),
        ({"partitions": [1, 2]}, "must be PublicPartitions or PrivatePartitions, not [1, 2]. Write"),
        ({"partitions": None}, "Budget: delta must be above 0"),
        ({"csv": dp.CsvFormat(decimal=",")}, "csv must be left out for a table in memory"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)  # fmt: skip
def test_wrong_calls_are_refused_before_a_row_is_read(change, said):
    with pytest.raises((TypeError, ValueError)) as refused:
        dp.release(**{"data": TABLE, **ASKED, **change})
    assert said in str(refused.value) and CANARY not in str(refused.value)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("cut", [0, 3_000_000])
def test_a_damaged_file_fails_in_one_line(tmp_path, cut):
    """It is not paid for where the start of the file is damaged."""
    path, ledger = tmp_path / "in.csv.gz", dp.Ledger(tmp_path / "l.jsonl", dp.Budget(1))
    rows = b"".join(b"%d,1,%d\n" % (number, number**9) for number in range(cut // 7))
    text = f"who,day,spent\n{CANARY},1,2\n".encode() + rows
    path.write_bytes(gzip.compress(text)[:cut] or b"no gzip " + CANARY.encode())
    failure = dp.RunFailed if cut else ValueError
    with pytest.raises(failure, match="^ReadRows: every file of .* cannot be read") as failed:
        dp.release(path, **ASKED, ledger=ledger)
    assert CANARY not in f"{failed.value}{failed.value.__context__}"
    assert (tmp_path / "l.jsonl").exists() == bool(cut)


def test_a_ledger_is_charged_before_the_run_and_its_limit_holds(tmp_path, monkeypatch):
    ledger = dp.Ledger(tmp_path / "l.jsonl", dp.Budget(2.5))
    with pytest.raises(ValueError, match="pattern must match a file"):
        dp.release("none.csv", **ASKED, ledger=ledger)
    assert ledger.balance.charges == ()
    dp.release(TABLE, **ASKED, ledger=ledger)
    path = written(tmp_path / "in.csv")
    monkeypatch.setattr(release, "run", fail)
    with pytest.raises(dp.RunFailed):
        dp.release(path, **ASKED, ledger=ledger)
    charges = ledger.balance.charges
    assert [each.label for each in charges] == ["dp.release", "dp.release: in.csv"]
    assert [each.budget for each in charges] == [dp.Budget(1.0)] * 2
    with pytest.raises(ValueError, match=r"must be at most epsilon 2\.5"):
        dp.release(TABLE, **ASKED, ledger=ledger)
    assert len(ledger.balance.charges) == 2


def fail(*given: object, **named: object) -> None:
    raise dp.RunFailed("the disk is gone")


@pytest.mark.filterwarnings("ignore::beam_dp.testing.NotPrivate")
def test_where_no_clip_shows_anybody_nothing_is_known():
    """After the charge a fact has to come out."""
    asked = [dp.Sum("spent")]
    with without_noise():
        released = dp.release(TABLE.slice(0, 0), **ASKED | {"metrics": asked})
    rows = released.table.to_pylist()
    assert [row["day"] for row in rows] == list(DAYS)
    assert {row[metric.output] for row in rows for metric in asked} == {0.0}
    assert {row[f"{metric.output}_high"] for row in rows for metric in asked} == {math.inf}
    assert "?: nothing is known on that side" in str(released)


def cry(element: str) -> str:
    sys.stderr.write(element)
    logging.getLogger("apache_beam.anything").error(element)
    raise KeyError(element)


def failing() -> beam.Pipeline:
    made = beam.Pipeline(release.RUNNER)
    _ = made | beam.Create([CANARY]) | beam.Reshuffle() | beam.Map(cry)
    return made


def test_a_failure_shows_no_data(capfd, caplog):
    with pytest.raises(dp.RunFailed) as failed:
        release.run(failing())
    said = f"{failed.value}{failed.value.__cause__}{failed.value.__context__}"
    assert "the run failed with " in said and "show_errors shows it" in said
    assert CANARY not in f"{said}{capfd.readouterr()}{caplog.text}"
    logging.getLogger("apache_beam").error(CANARY)  # the log is given back
    assert CANARY in caplog.text
    with pytest.raises(Exception, match=CANARY) as shown:
        release.run(failing(), show_errors=True)
    assert not isinstance(shown.value, dp.RunFailed)


def test_a_release_shows_its_error_to_who_asks(monkeypatch):
    monkeypatch.setattr(release, "write_of", lambda *_, **__: beam.Map(lambda row: cry(str(row))))
    for options, kind in (({}, dp.RunFailed), ({"show_errors": True}, KeyError)):
        with pytest.raises(kind):
            dp.release(TABLE, **ASKED, **options)


BATCH = beam.Create([pa.record_batch({"a": ["x"]})]).with_output_types(pa.RecordBatch)


def test_a_disk_that_is_full_is_named_though_beam_wraps_it_and_data_is_not() -> None:
    behind = "[while running 'WriteFile']"
    full = RuntimeError(f"OSError: [Errno 28] No space left on device {behind}")
    assert release.message_of(full) == "[Errno 28] No space left on device"
    for quoted in (
        f"OSError: [Errno 28] No space left on device: '{CANARY}' {behind}",
        f"FileNotFoundError: [Errno 2] No such file or directory: '{CANARY}' {behind}",
        f"OSError: [Errno 28] {CANARY} {behind}",
    ):
        assert CANARY not in release.message_of(RuntimeError(quoted))


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (dp.ReadRows("none/*.csv", ["a"]), "ReadRows: pattern must match a file, and 'none/"),
        (BATCH | dp.Rows("SELECT a + 1 AS b FROM rows"), "Rows: query must fit the columns 'a'"),
    ],
)
def test_our_own_errors_are_passed_on(steps, said):
    made = beam.Pipeline(release.RUNNER)
    _ = made | steps
    with pytest.raises(dp.RunFailed, match=f"^{said}"):
        release.run(made)
