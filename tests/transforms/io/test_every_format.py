"""What every format keeps: a new one is tested here as soon as it has its line in `FORMATS`."""

import datetime
import math
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from beam_dp.transforms.io.file_format import Wanted, cells_of
from beam_dp.transforms.io.formats import FORMATS

CELLS = {
    "who": [1, 2, None],
    "text": ["a", 'b\n,"', None],
    "yes": [True, False, None],
    "day": [datetime.date(2026, 1, 1), datetime.date(1, 1, 1), None],
    "raw": [b"a", b"\xff", None],
    "exact": [Decimal("0.5"), Decimal(2), None],
    "much": [0.5, math.inf, math.nan],
}


def written(path: Path, table: pa.Table) -> str:
    with path.open("wb") as file:
        FORMATS[path.suffix].write(file, table)
    return str(path)


def read(path: str, column: str) -> list[object]:
    kind, wanted = FORMATS[Path(path).suffix], Wanted("in", [column], [column])
    assert [set(each) - {column} for each in kind.sniff([path], wanted).types] == [set()]
    rows = [row for part in kind.parts([path], wanted) for row in kind.rows(part, wanted)]
    return cells_of(rows, column)


@pytest.mark.parametrize("end", FORMATS)
def test_every_released_table_is_written_and_read(end: str, tmp_path: Path) -> None:
    path = tmp_path / f"r{end}"
    assert read(written(path, pa.table(CELLS)), "who") == [1, 2, None]
    assert read(written(path, pa.table(CELLS)), "much")[0] == 0.5
    nobody = pa.table({name: pa.nulls(0) for name in CELLS})
    for empty in (nobody, pa.table(CELLS).slice(0, 0)):
        assert read(written(path, empty), "who") == []


@pytest.mark.parametrize("end", FORMATS)
def test_no_error_quotes_a_file(end: str, tmp_path: Path) -> None:
    """Of a file of another kind, and of one that was cut; text that was cut has its whole rows."""
    path = tmp_path / f"r{end}"
    path.write_bytes(b"secret of Zoe\n" * 1000)
    with pytest.raises(ValueError, match="^ReadRows: ") as refused:
        read(str(path), "text")
    assert "secret" not in str(refused.value) and refused.value.__context__ is None
    secrets = pa.table({"text": [f"secret {number}" for number in range(1000)]})
    whole = Path(written(path, secrets)).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    try:
        found = read(str(path), "text")
    except ValueError as error:
        assert str(error).startswith("ReadRows: ") and "secret" not in str(error)
        assert error.__context__ is None
    else:
        assert 400 < len(found) < 600
