"""Public lists, private selection, and the k largest of what was released."""

import datetime
import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest

import beam_dp as dp
from beam_dp.transforms import partitions
from beam_dp.transforms.partitions import check_partitions
from tests.hostile import support
from tests.row_files import write


def test_keys_become_plain_tuples_listed_once() -> None:
    found = dp.PublicPartitions([1, np.int64(1), Decimal(7)]).keys
    assert found == ((1,), (7,)) and [type(part) for (part,) in found] == [int, int]
    assert dp.PublicPartitions(["a", np.str_("a")]).keys == (("a",),)
    assert dp.PublicPartitions([False, np.bool_(True)]).keys == ((False,), (True,))
    assert dp.PublicPartitions(iter([("a", 1), ("a", 1)])).keys == (("a", 1),)
    assert len(dp.PublicPartitions(["\u00e9", "e\u0301", "e", "E", "e "]).keys) == 5


PAIRS = [[1, "1"], [1, True], [0, False, "a"], ["2020-01-01", datetime.date(2020, 1, 1)]]
NO_KEYS = [
    None,
    1.0,
    float("nan"),
    b"a",
    [1],
    "\ud800",
    1 << 4096,
    datetime.timedelta(1),
    Decimal("0.5"),
]


def test_what_are_no_keys_is_refused() -> None:
    with pytest.raises(ValueError, match="keys must not be empty. Write PublicPartitions"):
        dp.PublicPartitions(iter([]))
    for keys in PAIRS:
        with pytest.raises(TypeError, match="all of a column of one type, not "):
            dp.PublicPartitions(keys)
    for key in (*NO_KEYS, *(("a", key) for key in NO_KEYS)):
        with pytest.raises(TypeError, match="a key must be an int of 64 bits, a string"):
            dp.PublicPartitions([key])
    for keys in ("abc", b"abc", 5, {"a": 1}, dp.Count()):
        with pytest.raises(TypeError, match="keys must be a list of public keys"):
            dp.PublicPartitions(keys)
    pipeline = beam.Pipeline(runner="FnApiRunner")
    with pytest.raises(TypeError, match="not a PCollection. Write .* what is in the data is not"):
        dp.PublicPartitions(pipeline | beam.Create([1]))


def test_parameters_of_private_selection_are_positive_numbers() -> None:
    for value in (0, 1.5, True, None):
        with pytest.raises((TypeError, ValueError), match="pre_threshold must be an int of at lea"):
            dp.PrivatePartitions(pre_threshold=value)
    for value in (0, float("nan"), float("inf"), "1"):
        with pytest.raises((TypeError, ValueError), match="PrivatePartitions: weight must be"):
            dp.PrivatePartitions(weight=value)


def test_partitions_and_columns_must_fit() -> None:
    public = dp.PublicPartitions([("a", 1)])
    assert check_partitions("Owner", (), None) is None
    assert check_partitions("Owner", ("day",), None) == dp.PrivatePartitions()
    assert check_partitions("Owner", ("day", "shop"), public) is public
    with pytest.raises(ValueError, match="one part per partition column .1., not 2"):
        check_partitions("Owner", ("day",), public)
    with pytest.raises(ValueError, match="left out without partition columns"):
        check_partitions("Owner", (), public)
    for other in (["a"], "a", dp.PublicPartitions, 5):
        with pytest.raises(TypeError, match="must be PublicPartitions or PrivatePartitions"):
            check_partitions("Owner", ("day",), other)


KEYS = [(7, "DE"), (8, "DE"), (7, "FR")]
MIXED = [{"day": day, "country": country} for day, country in [*KEYS, KEYS[0]]]


def test_the_order_of_the_columns_is_that_of_partition() -> None:
    made = dp.PublicPartitions.product(day=range(1, 3), country=["DE"])
    ordered = check_partitions("owner", ("country", "day"), made)
    assert ordered is not None and ordered.keys == (("DE", 1), ("DE", 2))
    again = pickle.loads(pickle.dumps(made))
    assert again.names == ("day", "country") and again == made
    with pytest.raises(
        ValueError, match="have the columns of partition, day, city, not day, country"
    ):
        check_partitions("owner", ("day", "city"), made)
    with pytest.raises(ValueError, match="have one part per partition column"):
        check_partitions("owner", ("day",), made)


NO_PRODUCT: dict[str, tuple[dict[str, object], str]] = {
    "an empty column": ({"day": [], "country": ["DE"]}, "keys must not be empty"),
    "a text": ({"country": "DE"}, "country must be a list of values, not 'DE'"),
    "a number": ({"day": 7}, "day must be a list of values, not 7"),
}


@pytest.mark.parametrize(("parts", "said"), NO_PRODUCT.values(), ids=NO_PRODUCT)
def test_a_wrong_product_is_refused(parts: dict[str, list[object]], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        dp.PublicPartitions.product(**parts)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
def test_files_of_every_format_hold_keys(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path / f"keys{ending}", MIXED)
    made = dp.PublicPartitions.from_files(path, ["country", "day"])
    assert made.keys == tuple((country, day) for day, country in KEYS)
    assert made.names == ("country", "day")


def test_a_parquet_file_keeps_types_and_a_csv_file_guesses_integers(tmp_path: Path) -> None:
    rows = [{"zip": "01067", "year": "2024", "day": datetime.date(2024, 1, 2)}]
    parquet = write(tmp_path / "k.parquet", rows)
    assert dp.PublicPartitions.from_files(parquet, [*rows[0]]).keys == (tuple(rows[0].values()),)
    csv = write(tmp_path / "k.csv", rows)
    assert dp.PublicPartitions.from_files(csv, [*rows[0]]).keys == (("01067", 2024, "2024-01-02"),)


def test_a_file_is_written_as_is_said(tmp_path: Path) -> None:
    path = tmp_path / "keys.csv"
    path.write_bytes("ville;jour\nOrléans;1\n".encode("cp1252"))
    windows = dp.CsvFormat(encoding="cp1252")
    made = dp.PublicPartitions.from_files(str(path), ["ville", "jour"], csv=windows)
    assert made.keys == (("Orléans", 1),)


def test_files_without_a_key_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "keys.jsonl", [{"day": 1}, {"day": None}])
    with pytest.raises(ValueError, match=r"column 'day' of .* must have no empty cell"):
        dp.PublicPartitions.from_files(path, ["day"])
    with pytest.raises(ValueError, match="matches none"):
        dp.PublicPartitions.from_files(str(tmp_path / "nothing.csv"), ["day"])
    with pytest.raises(TypeError, match="a key must be an int"):
        dp.PublicPartitions.from_files(write(tmp_path / "f.parquet", [{"day": 1.5}]), ["day"])


# Day d has d people, from d1 to d8; nobody is in two.
ROWS = [{"p": f"{day}/{n}", "day": f"d{day}", "x": 1} for day in range(1, 9) for n in range(day)]


def test_it_keeps_the_largest_and_a_row_without_a_number_is_below_all() -> None:
    rows = [beam.Row(d=d, x=x) for d, x in zip("abcdef", [3, math.nan, 7.5, -math.inf, 3, None])]
    ordered = sorted(rows, key=lambda row: partitions._place(row, "x"))
    assert "".join(row.d for row in ordered) == "bdfaec"


def days(transform: beam.PTransform, **options: object) -> list[str]:
    """Return the days that are kept, of a release that adds no noise but with e^-100."""
    public = dp.PublicPartitions([f"d{day}" for day in range(1, 9)])
    metrics = [dp.PeopleCount(), dp.Max("x")]
    release = dp.PrivateAggregate(
        "p", metrics, dp.Budget(400.0), ["day"], dp.ContributionBounds(1), public, **options
    )
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        kept = support.keep(pipeline | beam.Create(ROWS) | "A" >> release | "B" >> transform)
    return sorted(row.day for row in kept)


def test_in_a_pipeline() -> None:
    assert days(dp.TopPartitions(3, by="people_count")) == ["d6", "d7", "d8"]
    assert days(dp.TopPartitions(2, by="people_count_low")) == ["d7", "d8"]
    assert len(days(dp.TopPartitions(99, by="people_count"))) == 8
    assert days(dp.TopPartitions(1, by="people_count"), nonnegative=True) == ["d8"]
    suppressed = dp.SuppressUnreliable(beyond=0.25)
    assert days(dp.TopPartitions(1, by="people_count"), suppress=suppressed) == ["d8"]


WRONG: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: dp.TopPartitions(0, "x"), ValueError, "k must be an int of at least 1"),
    (lambda: dp.TopPartitions(1, ""), TypeError, "by must be the name of a column"),
    (lambda: days(dp.TopPartitions(1, "count")), ValueError, "one of the numbers people_count, "),
    (
        lambda: days(dp.TopPartitions(1, "people_count"), batches=True),
        ValueError,
        "by must be one of the numbers of rows, not of batches",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), WRONG)
def test_wrong_parameters_are_refused_when_the_pipeline_is_built(
    call: Callable[[], object], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=f"TopPartitions: .*{message}"):
        call()
