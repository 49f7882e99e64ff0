"""UUIDs, PostgreSQL's NUMERIC, times as keys, wide integers: counted as they are, or refused."""

import datetime
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import apache_beam as beam
import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.utils.timestamp import Timestamp

import beam_dp as dp
from beam_dp.testing import without_noise

pytestmark = pytest.mark.filterwarnings("ignore::beam_dp.testing.NotPrivate")
PEOPLE = [uuid.UUID(int=number << 90) for number in range(4)]
NUMERIC = pa.opaque(pa.string(), "numeric", "PostgreSQL")
HOUR = datetime.datetime(2026, 11, 24, 13)
DAY = datetime.date(2026, 11, 24)
TWICE = [*PEOPLE, *PEOPLE]


@pytest.fixture(autouse=True)
def exact() -> Iterator[None]:
    with without_noise():
        yield


def asked(partition: str = "", keys: Any = None, **options: Any) -> dict[str, Any]:
    columns = [partition] if partition else []
    partitions = {} if keys is None else {"partitions": dp.PublicPartitions(keys)}
    given = {
        "person": "who",
        "metrics": [dp.Count(), dp.PeopleCount()],
        "budget": dp.Budget(1, 1e-6),
    }
    return {**given, "partition": columns, **partitions, **options}


def numbers(data: Any, **options: Any) -> list[dict[str, Any]]:
    rows = dp.release(data, **asked(**options)).table.to_pylist()
    return [
        {name: n for name, n in row.items() if name[-4:] not in ("_low", "high")} for row in rows
    ]


def test_uuids_are_people_and_keys(tmp_path: Path) -> None:
    """Of Arrow, and of files as others, and as DuckDB write them."""
    ids = pa.array([person.bytes for person in TWICE], pa.uuid())
    table = pa.table({"who": ids, "key": ids})
    other, engines = str(tmp_path / "other.parquet"), f"{tmp_path}/duckdb.parquet"
    pq.write_table(table, other, store_schema=False)
    texts = pa.table({"u": [str(person) for person in TWICE]})
    with duckdb.connect() as engine:
        engine.register("texts", texts)
        select = "SELECT u::UUID AS who, u::UUID AS key FROM texts"
        engine.execute(f"COPY ({select}) TO '{engines}' (FORMAT parquet)")
    text = [str(person) for person in PEOPLE]
    for data in (table, table.set_column(0, "who", texts["u"]), other, engines):
        found = numbers(data, partition="key", keys=text)
        assert found == [{"key": key, "count": 2, "people_count": 1} for key in text]


def test_numeric_is_added_exactly_and_is_no_id() -> None:
    cells = ["10.25", "-0.75", None, "NaN", "1e2", "x", "9" * 2000, "0.5"]
    spent = pa.ExtensionArray.from_storage(NUMERIC, pa.array(cells, pa.string()))
    table = pa.table({"who": list(range(8)), "spent": spent})
    sums = {"metrics": [dp.Sum("spent", clip=1000, unit=0.25)]}
    assert numbers(table, **sums) == [{"sum_spent": 110.0}]
    for options in (
        {"person": "spent"},
        {"partition": "spent"},
        {"metrics": [dp.DistinctCount("spent")]},
    ):
        with pytest.raises(
            TypeError, match="column 'spent' must hold .* not extension<arrow.opaque"
        ):
            numbers(table, **options)


def test_decimals_of_pandas_are_refused_as_numbers_and_are_ids() -> None:
    frame = pd.DataFrame(
        {"who": [Decimal(1), Decimal("1.00"), Decimal(2)], "spent": [Decimal("1.5")] * 3}
    )
    assert numbers(frame) == [{"count": 3, "people_count": 2}]
    with pytest.raises(
        TypeError, match="column 'spent' must hold numbers, not large_string. Of a Data"
    ):
        numbers(frame, metrics=[dp.Sum("spent")])
    typed = frame.astype({"spent": pd.ArrowDtype(pa.decimal128(9, 2))})
    assert numbers(typed, metrics=[dp.Sum("spent", clip=10, unit=0.5)]) == [{"sum_spent": 4.5}]


DECIMALS = [Decimal(12), Decimal("12.50"), Decimal("NaN"), Decimal(2**70), Decimal("1E+999999")]


def test_decimals_of_dicts_are_numbers_and_ids_in_a_query() -> None:
    """As BigQuery gives NUMERIC: whole ones are integers, or text beyond 64 bits; others doubles."""
    rows = [{"who": who, "spent": each} for who in (Decimal(1), 1) for each in DECIMALS]
    rows.append({"who": Decimal(2**70), "spent": Decimal("-1.5")})
    query = dp.Rows("SELECT who, spent * 2 AS spent FROM rows WHERE spent < 13", list(rows[0]))
    metrics = [dp.Count(), dp.PeopleCount(), dp.Sum("spent", clip=100)]
    release = dp.PrivateAggregate("who", metrics, dp.Budget(1.0))
    with TestPipeline() as pipeline:
        released = pipeline | beam.Create(rows) | query | release
        numbers = released | beam.Map(lambda row: (row.count, row.people_count, row.sum_spent))
        assert_that(numbers, equal_to([(5, 2, 95.0)]))


def test_times_of_dicts_are_keys() -> None:
    """Whatever form the instant has, and also where keys are named as datetimes."""
    utc, berlin = datetime.UTC, datetime.timezone(datetime.timedelta(hours=1))
    midnight, later = datetime.datetime(2026, 11, 24), HOUR + datetime.timedelta(hours=1)
    cells = [HOUR, HOUR.replace(tzinfo=utc), Timestamp(HOUR.replace(tzinfo=utc).timestamp())]
    cells += [midnight, datetime.datetime(2026, 11, 24, 1, tzinfo=berlin), DAY, later]
    rows = [{"who": person, "at": cell} for person, cell in enumerate(cells)]
    public = dp.PublicPartitions([HOUR, midnight, later.replace(day=25)])
    keys = ["2026-11-24 13:00:00", "2026-11-24", "2026-11-25 14:00:00"]
    assert list(public.keys) == [(key,) for key in keys]
    with TestPipeline() as pipeline:
        release = dp.PrivateAggregate(**{**asked("at"), "partitions": public})
        out = pipeline | beam.Create(rows) | release | beam.Map(lambda row: (row.at, row.count))
        assert_that(out, equal_to(list(zip(keys, (3, 3, 0), strict=True))))


class Stamped(NamedTuple):
    who: int
    at: datetime.datetime | None


@pytest.mark.parametrize("options", [{"partition": "at"}, {"metrics": [dp.Sum("at")]}])
def test_times_of_typed_rows_are_refused_when_the_pipeline_is_built(
    options: dict[str, Any],
) -> None:
    pipeline = beam.Pipeline()
    rows = pipeline | beam.Create([Stamped(1, HOUR)]).with_output_types(Stamped)
    with pytest.raises(
        TypeError, match=r"column 'at' must hold .*, not timestamp\[us\]. (Write query=|Cast it)"
    ):
        _ = rows | dp.PrivateAggregate(**asked(**options))


@pytest.mark.parametrize("kind", [pa.uint64(), pa.decimal128(38, 0)])
def test_categories_of_wide_integers_are_the_keys_that_these_are(kind: pa.DataType) -> None:
    cells = [2**63 + 1] * 60 + [5] * 40
    keys = pa.array(cells if kind == pa.uint64() else map(Decimal, cells), kind)
    found = []
    for column in (keys, keys.dictionary_encode()):
        table = pa.table({"who": list(range(100)), "key": column})
        found.append(numbers(table, partition="key"))
    assert found[0] == found[1]
    assert [(row["key"], row["count"]) for row in found[0]] == [("5", 40), (str(2**63 + 1), 60)]
