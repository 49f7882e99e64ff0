"""`beam-dp audit`: what it tries on made-up rows, that it touches nothing, and what it says."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from beam_dp.transforms.columns import ids
from pipelines import audit, card
from pipelines.description import Description
from tests.results.releases import made

MAPPING: dict[str, Any] = {
    "person": "visitor",
    "partition": "day",
    "partitions": [1, 2],
    "metrics": ["count", {"sum": "spent"}],
    "budget": {"epsilon": 1},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "CSV": {},
    "two owners of JSON, a query, rho": {
        "input": "calls.jsonl",
        "person": ["caller", "called"],
        "query": "SELECT *, CAST(date_trunc('month', sold) AS DATE) AS day FROM rows "
        "WHERE spent / price < 100 AND kind = 'retail'",
        "numbers": ["price"],
        "partitions": ["2026-11-01", "2026-12-01"],
        "metrics": [{"max": "spent", "candidates": {"low": 0, "high": 9, "step": 1}}],
        "budget": {"rho": 1},
    },
    "private tables of one run, a page, SQL behind": {
        "partitions": {"private": {"pre_threshold": 1}},
        "also_by": ["total"],
        "budget": {"epsilon": 1, "delta": 1e-6},
        "post_process": "SELECT * FROM released WHERE count > 5 ORDER BY count DESC",
    },
    "one SELECT, of which no row may be left": {
        "select": "SELECT day, count(*) AS n, sum(spent) / count(*) AS each FROM 'visits.csv' "
        "WHERE spent > 2 GROUP BY ROLLUP (day) HAVING count(*) >= 4711 ORDER BY n DESC",
    },
    "people of one day": {"period": "day", "ledger_period": "2026-11-01..2026-11-30"},
}
Audited = Callable[..., str]


@pytest.fixture
def audited(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Audited:
    """Return what audits a mapping in an empty folder, and returns the one line that is said."""
    monkeypatch.chdir(tmp_path)

    def called(mapping: dict[str, Any], code: int = 0, seconds: str = "0.001") -> str:
        Path("release.yaml").write_text(yaml.safe_dump(mapping))
        assert audit.main(["--config", "release.yaml", "--seconds", seconds]) == code
        [line] = capsys.readouterr().out.splitlines()
        assert [path.name for path in tmp_path.iterdir()] == ["release.yaml"]
        return line.partition(": ")[2]

    return called


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", VARIANTS)
def test_a_sound_mapping_is_tried_on_rows_that_nobody_has(name, audited):
    """Neither its input nor its ledger is there, and no file is written."""
    mapping = {"ledger": {"path": "x.jsonl", "limit": {"epsilon": 1}}, "output": "released.csv"}
    mapping |= {} if "rho" not in name else {"ledger": {"path": "x.jsonl", "limit": {"rho": 1}}}
    asked = {"person": "visitor", "partitions": [1, 2], "budget": {"epsilon": 1}}
    asked = (asked if "SELECT" in name else MAPPING) | mapping | VARIANTS[name]
    said = audited(asked, seconds="0.5")
    assert said.startswith("largest share of the budget spent: ")
    assert said.endswith("pairs; nothing else differed")


def test_what_is_wrong_is_said_and_the_status_is_not_zero(audited, monkeypatch):
    def warned_of_a_cell(values: Any, key: bytes) -> Any:
        warnings.warn(f"no id: {list(values)[-1]!r}", stacklevel=1)
        return identify(values, key)

    identify = ids.identify
    monkeypatch.setattr(ids, "identify", warned_of_a_cell)
    said = "NOT PRIVATE, in pair 1: a person with one row: what was released differs: warnings"
    assert audited(MAPPING, code=1) == said


def test_rows_have_the_types_of_a_file_and_none_of_its_values(tmp_path):
    rows = {"visitor": [7_777], "day": pa.array([1], pa.int16()), "spent": [123.0]}
    pq.write_table(pa.table(rows), tmp_path / "visits.parquet")
    asked = Description(MAPPING | {"input": str(tmp_path / "visits.parquet")})
    found = audit.sample(asked)
    assert found.schema.types == [pa.int64(), pa.int16(), pa.float64()]
    assert 7_777 not in found["visitor"].to_pylist() and 123 not in found["spent"].to_pylist()
    assert {*found["day"].to_pylist()} == {1, 2}


def test_words_and_numbers_of_a_query_are_tried():
    query = "SELECT visitor, day, spent FROM rows WHERE shop = 'it''s' AND spent > 4711"
    found = audit.sample(Description(MAPPING | {"input": "x.csv", "query": query}))
    assert "it's" in found["shop"].to_pylist() and "4711" in found["spent"].to_pylist()


CARD_OF = (
    "beam_dp 0.1.0: largest share of the budget spent: 1.000 in 500 pairs; nothing else differed"
)


@pytest.mark.parametrize("line", [CARD_OF, CARD_OF.replace("; nothing else differed", "")])
def test_a_card_has_the_line_of_an_audit_that_found_nothing(line, tmp_path, capfd, refused):
    record = made([()])[1]
    path, said = tmp_path / "released.csv.json", tmp_path / "audit.txt"
    path.write_text(json.dumps(record))
    said.write_text(f"{line}\n")
    words = [str(path), "--audit", str(said)]
    if line != CARD_OF:
        assert "beam-dp audit printed" in refused(card, *words)
        return
    assert card.main(words) == 0
    lines = yaml.safe_load(capfd.readouterr().out)["deployment"]["accounting"]["composition"]
    assert f"Audited on made-up rows of these columns: {line}" in lines
