"""Public lists from a product and from files of every format."""

import datetime
import pickle
from pathlib import Path

import pytest

import beam_dp as dp
from beam_dp.transforms.partitions import check_partitions
from tests.row_files import write

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


BAD: dict[str, tuple[dict[str, object], str]] = {
    "an empty column": ({"day": [], "country": ["DE"]}, "keys must not be empty"),
    "a text": ({"country": "DE"}, "country must be a list of values, not 'DE'"),
    "a number": ({"day": 7}, "day must be a list of values, not 7"),
}


@pytest.mark.parametrize(("parts", "said"), BAD.values(), ids=BAD)
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


def test_a_file_has_the_dialect_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "keys.csv"
    path.write_bytes("ville;jour\nOrléans;1\n".encode("cp1252"))
    how = {"encoding": "cp1252"}
    made = dp.PublicPartitions.from_files(str(path), ["ville", "jour"], **how)
    assert made.keys == (("Orléans", 1),)


def test_files_without_a_key_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "keys.jsonl", [{"day": 1}, {"day": None}])
    with pytest.raises(ValueError, match=r"column 'day' of .* must have no empty cell"):
        dp.PublicPartitions.from_files(path, ["day"])
    with pytest.raises(ValueError, match="matches none"):
        dp.PublicPartitions.from_files(str(tmp_path / "nothing.csv"), ["day"])
    with pytest.raises(TypeError, match="a key must be an int"):
        dp.PublicPartitions.from_files(write(tmp_path / "f.parquet", [{"day": 1.5}]), ["day"])
