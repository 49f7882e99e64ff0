"""What the README shows, runs."""

import functools
import re
import runpy
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines import aggregate

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
ENDS = ("", "_low", "_high")
EXAMPLE, PLAN = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.fixture(autouse=True)
def visits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where the visits lie, and in memory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(beam, "Pipeline", functools.partial(beam.Pipeline, runner="FnApiRunner"))
    rows = {
        "visitor_id": [f"v{place % 50}" for place in range(350)],
        "day": [1 + place % 7 for place in range(350)],
        "spent": [12.5] * 350,
        "minutes": [30] * 350,
    }
    Path("visits").mkdir()
    pq.write_table(pa.table(rows), "visits/1.parquet")


def run(code: str) -> None:
    """Run a block of the README as a script."""
    Path("block.py").write_text(code)
    runpy.run_path("block.py")


def test_the_example_releases_every_day() -> None:
    run(EXAMPLE)
    header, *rows = Path("released.csv").read_text().splitlines()
    names = ["count", "sum_spent", "max_minutes"]
    assert header.split(",") == ["day", *(name + end for name in names for end in ENDS)]
    assert [row.split(",")[0] for row in rows] == ["1", "2", "3", "4", "5", "6", "7"]


def test_the_plan_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    run(f"import beam_dp as dp\n{PLAN}")
    assert "in all: epsilon 1" in capsys.readouterr().out


def test_the_command_is_one_of_the_job() -> None:
    [command] = re.findall(r"python -m pipelines.aggregate( --input.*?)\n\n", README, re.DOTALL)
    words = command.replace("\\\n", " ").split()
    assert aggregate.main([*words, "--plan"]) == 0


def test_every_option_in_the_readme_exists() -> None:
    section = README[README.index("## As a job") : README.index("## What comes out")]
    ours = {flag for action in aggregate.parser()._actions for flag in action.option_strings}
    told = set(re.findall(r"`(--[a-z_]+)", section)) - {"--runner", "--temp_location"}
    assert told <= ours
    assert ours - told <= {"-h", "--help", "--overwrite"}


def test_every_make_target_in_the_readme_exists() -> None:
    makefile = (Path(__file__).parents[1] / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"make ([a-z-]+) ", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
