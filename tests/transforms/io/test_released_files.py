"""Reading back: what was written, of any format, with its record."""

import json
import math
from pathlib import Path

import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.transforms.io import released_files
from beam_dp.transforms.io.formats import FORMATS

COLUMNS = {"keys": ["day"], "numbers": [["count", "count_low", "count_high"], ["mean"]]}
TABLE = pa.table(
    {
        "day": ["a", "=b"],
        "count": [4, -3],
        "count_low": [0.5, -math.inf],
        "count_high": [7.25, math.nan],
        "mean": [math.nan, math.nan],
    }
)


def written(path: Path) -> str:
    with path.open("wb") as file:
        FORMATS[path.suffix].write(file, TABLE)
    Path(f"{path}.json").write_text(json.dumps({"columns": COLUMNS}))
    return str(path)


@pytest.mark.parametrize("extension", [end[1:] for end in FORMATS])
def test_a_released_file_is_read_back(tmp_path: Path, extension: str) -> None:
    released = dp.Released.read(written(tmp_path / f"out.{extension}"))
    assert released.record == {"columns": COLUMNS}
    assert released.table.to_pydict() == {
        "day": ["a", "=b"],
        "count": [4, -3],
        "count_low": [0.5, None if extension == "jsonl" else -math.inf],
        "count_high": [7.25, None],
        "mean": [None, None],
    }
    assert released.table.schema.field("count").type == pa.int64()
    assert released.table.schema.field("mean").type == pa.float64()


@pytest.mark.parametrize("extension", ["csv", "jsonl"])
def test_keys_that_look_like_formulas_stay_different_keys(tmp_path: Path, extension: str) -> None:
    starts = ("=", "+", "-", "@", "＝", "＋", "－", "＠", " =", "\u3000=", "\t", "\r", "\n", "'a")
    keys = [f"{quotes}{start}1" for start in starts for quotes in ("", "'", "''")]
    assert len(set(keys)) == len(keys)
    path = tmp_path / f"out.{extension}"
    table = pa.table({"day": keys, "n": list(range(len(keys)))})
    with path.open("wb") as file:
        FORMATS[path.suffix].write(file, table)
    read = released_files.table_of(
        str(path), FORMATS[path.suffix], {"keys": ["day"], "numbers": [["n"]]}
    )
    assert read["day"].to_pylist() == keys


def test_what_is_missing_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "out.csv")
    for wrong, said in (
        ("out.txt", f"path must end in {', '.join(FORMATS)}, not 'out.txt'"),
        (str(tmp_path / "no.csv"), "no.csv' is missing. A release by dp.release, "),
    ):
        with pytest.raises(ValueError, match="Released: path must") as refused:
            released_files.read("Released", wrong)
        assert said in str(refused.value)
    for record in ("[]", "{}", '{"columns": 3}', '{"columns": {}}'):
        Path(f"{path}.json").write_text(record)
        with pytest.raises(ValueError, match="have the record of a released table beside it"):
            released_files.read("Released", path)
    Path(f"{path}.json").write_text('{"columns": {"keys": [], "numbers": []}, "sha256": "ab"}')
    with pytest.raises(ValueError, match="its SHA-256 is not the one in"):
        released_files.read("Released", path)
    Path(f"{path}.json").unlink()
    with pytest.raises(ValueError, match="out.csv.json' is missing"):
        released_files.read("Released", path)
