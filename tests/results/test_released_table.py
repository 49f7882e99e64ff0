"""A released table with its record, read back from the file of a job."""

import json
from pathlib import Path

import pandas as pd

import beam_dp as dp


def test_a_released_file_becomes_a_table_with_its_record(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("day,count,count_low,count_high\r\n1,5,3.5,\r\n")
    columns = {"keys": ["day"], "numbers": [["count", "count_low", "count_high"]]}
    Path(f"{path}.json").write_text(json.dumps({"columns": columns, "budget": {"epsilon": "1"}}))
    released = dp.Released.read(path)
    assert released.record["budget"] == {"epsilon": "1"}
    row = {"day": "1", "count": 5, "count_low": 3.5, "count_high": None}
    assert released.table.to_pylist() == [row]
    assert isinstance(released.to_pandas(), pd.DataFrame)
