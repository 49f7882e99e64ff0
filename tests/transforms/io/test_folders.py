"""Folders like day=2026-11-24 are columns: the rows are those of files that hold the column."""

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that, equal_to

import beam_dp as dp
from beam_dp.testing import without_noise
from tests.row_files import write

DAYS = ["2026-11-24", "2026-11-25", None, "a/b = c"]
FOLDERS = [
    "day=2026-11-24",
    "day=2026-11-25",
    "day=__HIVE_DEFAULT_PARTITION__",
    "day=a%2Fb%20%3D%20c",
]
ENDINGS = [".parquet", ".csv", ".jsonl", ".csv.gz"]


@pytest.fixture
def table(tmp_path: Path) -> Callable[[str], str]:
    """Return what writes people 0 to n on each of four days, and returns the pattern."""

    def written(ending: str) -> str:
        for number, folder in enumerate(FOLDERS):
            place = tmp_path / "visits" / folder
            place.mkdir(parents=True)
            rows = [{"who": f"v{person}", "spent": 1.5} for person in range(number + 1)]
            write(place / f"part-0{ending}", rows)
        return f"{tmp_path}/visits/*/*{ending}"

    return written


def cells(reader: dp.ReadRows) -> list[tuple[Any, ...]]:
    found = [row for e in reader.here() for row in ([e] if type(e) is dict else e.to_pylist())]
    return [tuple(row[name] for name in reader.columns) for row in found]


@pytest.mark.parametrize("ending", ENDINGS)
def test_each_row_has_the_column_of_its_folder(ending: str, table: Callable[[str], str]) -> None:
    found = cells(dp.ReadRows(table(ending), ["who", "day", "spent"], ["spent"]))
    rows = [
        (f"v{person}", day, 1.5) for number, day in enumerate(DAYS) for person in range(number + 1)
    ]
    assert sorted(found, key=str) == sorted(rows, key=str)


@pytest.mark.parametrize("ending", [".parquet", ".jsonl"])
def test_it_is_a_key_of_partitions(ending: str, table: Callable[[str], str]) -> None:
    days = [datetime.date(2026, 11, 24), datetime.date(2026, 11, 25)]
    asked = {"partition": ["day"], "partitions": dp.PublicPartitions(days)}
    with without_noise():
        release = dp.PrivateAggregate("who", [dp.Count()], dp.Budget(1), batches=True, **asked)
        with TestPipeline() as pipeline:
            rows = pipeline | dp.ReadRows(table(ending), ["who", "day"])
            counts = rows | release | beam.FlatMap(lambda batch: batch["count"].to_pylist())
            assert_that(counts, equal_to([1, 2]))


def test_keys_in_another_form_are_refused_when_it_is_built(table: Callable[[str], str]) -> None:
    pattern = table(".csv")
    asked = {"person": "who", "metrics": [dp.Count()], "budget": dp.Budget(1)}
    asked |= {"partition": ["day"], "partitions": dp.PublicPartitions([1, 2])}
    with pytest.raises(ValueError, match="must be written as the public key is, in whole n"):
        dp.release(pattern.replace("/*/", "/day=2026*/"), **asked)


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_not_the_same_in_all_files_is_refused(
    ending: str, table: Callable[[str], str], tmp_path: Path
) -> None:
    pattern = table(ending)
    write(tmp_path / "visits" / f"day{ending}", [{"who": "a", "day": "2026-11-24", "spent": 1.5}])
    both = dp.ReadRows(f"{pattern},{tmp_path}/visits/day{ending}", ["who", "day"])
    with pytest.raises(ValueError, match="column 'day' must be text in the names of folders"):
        both.here()
    with pytest.raises(ValueError, match="column 'day' must be text in the names of folders"):
        dp.ReadRows(pattern, ["who", "day"], ["day"]).here()
    with pytest.raises(ValueError, match="columns must name one that is in the files too"):
        dp.ReadRows(pattern, ["day"]).here()


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".jsonl"])
def test_a_column_of_the_files_is_never_replaced(ending: str, tmp_path: Path) -> None:
    place = tmp_path / "who=5"
    place.mkdir()
    write(place / f"visits{ending}", [{"who": "v1", "spent": 1.5}])
    with pytest.raises(
        ValueError, match=r"column 'who' must be a column of the files, or the name"
    ):
        dp.ReadRows(f"{place}/visits{ending}", ["who", "spent"], ["spent"]).here()
