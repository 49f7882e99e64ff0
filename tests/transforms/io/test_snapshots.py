"""The files of a snapshot of Delta or Iceberg, as docs/how_to/recipes.md names them: no dead ones."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog

import beam_dp as dp


def visits(people: int) -> pa.Table:
    who = [f"v{person}" for person in range(people)]
    return pa.table({"who": who, "day": [at % 3 for at in range(people)], "spent": [1.5] * people})


def delta(folder: Path) -> list[str]:
    """Return the files of a table that was written twice, in folders of days."""
    for people in (40, 9):
        write_deltalake(str(folder / "t"), visits(people), partition_by=["day"], mode="overwrite")
    return list(DeltaTable(str(folder / "t")).file_uris())


def iceberg(folder: Path) -> list[str]:
    """Return the files of a table that was written twice."""
    (folder / "w").mkdir()
    place = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/w"}
    catalog = load_catalog("local", type="sql", **place)
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.visits", visits(1).schema)
    for people in (40, 9):
        table.overwrite(visits(people))
    found = list(catalog.load_table("shop.visits").scan().plan_files())
    assert not any(each.delete_files for each in found)
    return [each.file.file_path.removeprefix("file://") for each in found]


@pytest.mark.parametrize("files", [delta, iceberg])
def test_a_snapshot_has_the_rows_of_the_table(
    files: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    found = files(tmp_path)
    reader = dp.ReadRows(",".join(found), ["who", "day", "spent"], ["spent"])
    rows = [row for batch in reader.here() for row in batch.to_pylist()]
    expected = [(row["who"], str(row["day"])) for row in visits(9).to_pylist()]
    assert sorted((row["who"], str(row["day"])) for row in rows) == expected
    every = sum(1 for _ in tmp_path.rglob("*.parquet"))
    assert every > len(found), "dead files are there, which a glob would read"
