"""The pages name what there is: packages, files, functions."""

import re
import subprocess
import sys

import pytest

from tests import pages
from tests.pages import ROOT

PATHS = re.compile(
    r"`([\w./]+(?:\.py|/)|(?:mechanisms|transforms|tests|pipelines|beam_dp)/[\w./]+)`"
)
MADE = {"profiles.py"}
"""Files that a page tells its reader to write."""


def exists(path: str) -> bool:
    beside = [ROOT / "beam_dp" / "transforms" / "io" / path]
    return any(place.exists() for place in (ROOT / path, ROOT / "beam_dp" / path, *beside))


def test_every_file_that_is_named_exists():
    named = [path for page in pages.PAGES for path in PATHS.findall(pages.read(page))]
    assert len(named) > 80
    assert {path for path in named if not exists(path)} == MADE


def test_what_protects_a_person_is_where_the_pages_say():
    for name, path in (
        (r"def settle\(", "mechanisms/bounding/bounder.py"),
        ("getrandom|urandom|randbits|SystemRandom", "mechanisms/noise/sampling.py"),
        (r"check_total\(composed, entries", "mechanisms/planning/compile.py"),
        ("GroupByKey", "transforms/stages/draw_once.py"),
    ):
        assert re.search(name, (ROOT / "beam_dp" / path).read_text(encoding="utf-8"))


@pytest.mark.audit
@pytest.mark.parametrize(
    "line, flags", [("one partition", []), ("private partitions", ["--private"])]
)
def test_a_small_release_enters_no_more_files_and_functions_than_the_page_says(line, flags):
    # Which functions of noise a draw enters is random: 438 to 441, and 529 to 538 in 24 runs each.
    page = pages.read("docs/maintainers/architecture.md")
    [most] = re.findall(rf"^\| {line} \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    command = [sys.executable, "-m", "tests.entered", *flags]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found = re.fullmatch(r"(\d+) files, (\d+) functions\n", said)
    assert found
    for counted, limit in zip(found.groups(), most, strict=True):
        assert 0.9 * int(limit) < int(counted) <= int(limit)
