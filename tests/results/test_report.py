"""The report: of a release or a released file, refused before anything is paid for."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import beam_dp as dp
from beam_dp.transforms.io import table_files
from tests.results.releases import made


def test_a_page_is_returned_and_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("older")
    page = dp.report(made(["a", "b"]), path, title="Visits")
    assert path.read_text(encoding="utf-8") == page and page.startswith("<!DOCTYPE html>")
    assert "<title>Visits</title>" in page and [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_a_released_file_has_the_same_page(tmp_path: Path) -> None:
    release, path = made(["a", "b"]), tmp_path / "out.parquet"
    with path.open("wb") as file:
        table_files.write(file, ".parquet", release.table)
    Path(f"{path}.json").write_text(json.dumps(release.record))
    assert dp.report(str(path)) == dp.report(release)
    assert dp.Released.read(path).report() == dp.report(release)


@pytest.mark.parametrize(
    ("source", "path", "said"),
    [
        (made, None, "report: source must be what release() returned, or a path, not function. Wri"),
        ("none.csv", None, "report: path must name a released file with its record, and 'none.csv'"),
        (None, "page.txt", "report: path must end in .html, not 'page.txt'"),
        (None, "no\0page.html", "report: path must be one that can be written"),
    ],
    ids=["source", "file", "name", "place"],
)  # fmt: skip
def test_wrong_calls_are_refused(source: object, path: str | None, said: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        dp.report(source, path)
    assert str(refused.value).startswith(said)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "jinja2" else find(name)
    )
    with pytest.raises(
        ValueError, match=r"report: jinja2 must be installed. Write: pip install jinja2\."
    ):
        dp.report(made(["a"]))


def test_nothing_that_draws_is_loaded_before_a_page_is_asked_for() -> None:
    program = (
        "import sys, beam_dp as dp; dp.report, dp.Released, dp.release; import pipelines.aggregate\n"
        "assert not {'matplotlib', 'jinja2', 'polars', 'tqdm'} & set(sys.modules)"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, cwd=root)
