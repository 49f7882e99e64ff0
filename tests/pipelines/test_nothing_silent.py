"""What would make a release nothing but noise is said in one line, as far as no person is in it."""

import json
from pathlib import Path

import pytest

from pipelines import aggregate, description
from tests.row_files import write

RUN = ["--runner", "FnApiRunner"]
WORDS = ["--person", "visitor", "--partition", "day", "--epsilon", "1"]
PUBLIC = ["--public_partitions", "1,2,3"]


def test_json_lines_are_warned_of(rows, tmp_path, capfd):
    source = write(tmp_path / "in.jsonl", rows)
    words = ["--input", source, "--output", str(tmp_path / "out.csv"), *WORDS, *PUBLIC]
    assert aggregate.main([*words, "--max", "minuts", *RUN]) == 0
    first = capfd.readouterr().err.splitlines()[0]
    assert first.startswith(f"Warning: JSON Lines like {source!r} have no header, so a ")
    assert "misspelt name among 'visitor', 'day', 'minuts' is not noticed" in first


def test_no_partition_is_said_last(visits, tmp_path, capfd):
    # With delta 1e-300 a partition of 200 people is kept with probability below 1e-200.
    words = ["--input", visits, "--output", str(tmp_path / "out.csv"), *WORDS, *RUN]
    private = ["--delta", "1e-300", "--people_count"]
    query = ["--query", "SELECT visitor, day FROM rows"]
    assert aggregate.main([*words, *private, *query]) == 0
    last = capfd.readouterr().out.splitlines()[-1]
    assert last.startswith("no partition was selected, so nothing was released (a partition ")
    assert last.endswith(
        "; or, which costs nothing, name the partitions: 1,2,3. Are the columns the right ones? beam-dp check says it (not private). In a query what CAST cannot read is null, as a date like 24.11.2026, and a row "
        "without a key is dropped"
    )


def test_the_record_has_the_parameters_and_nothing_shown_says_in_which_folder_files_are(
    visits, tmp_path
):
    out, keys, page = (tmp_path / name for name in ("out.csv", "keys.csv", "page.html"))
    keys.write_text("day\n1\n2\n3\n")
    words = ["--input", f"{visits},{tmp_path}/v*.csv", "--output", str(out), *WORDS]
    words += ["--sum", "spent", "--people_count"]
    words += ["--public_partitions", f"@{keys}", "--report", str(page)]
    limit = ["--ledger", str(tmp_path / "l.jsonl"), "--total_epsilon", "1"]
    assert aggregate.main([*words, *limit, *RUN, "--temp_location", "secret-place"]) == 0
    text = Path(f"{out}.json").read_text()
    shown = text + page.read_text() + out.read_text()
    assert not [word for word in (str(tmp_path), "secret-place", "visitor-") if word in shown]
    assert json.loads(text)["job"] == {
        "program": "python -m pipelines.aggregate",
        "input": "visits.csv,v*.csv",
        "output": "out.csv",
        "report": "page.html",
        "person": "visitor",
        "partition": "day",
        "partitions": {"files": "keys.csv"},
        "metrics": [{"sum": "spent"}, {"people_count": None}],
        "budget": {"epsilon": 1},
        "ledger": {"path": "l.jsonl", "limit": {"epsilon": 1}},
    }
    assert "visits.csv,v*.csv" in page.read_text()
    given = {"input": ["a/b/x.csv", "c/y.csv"], "person": "e/f"}
    assert description.without_folders(given) == {"input": ["x.csv", "y.csv"], "person": "e/f"}
    with pytest.raises(SystemExit):
        out.unlink()
        aggregate.main([*words, *RUN])
    assert Path(f"{out}.json").read_text() == text
