"""The README is short, what it shows was released from its file, and its links lead somewhere."""

import re

from docs import visits
from tests import pages
from tests.pages import ROOT

README = pages.read("README.md")
LINK = re.compile(r"\[[^]]*\]\((?!http)([^)]+)\)")


def test_it_fits_on_a_few_screens():
    assert len(README.splitlines()) <= 150


def test_the_worked_example_was_released_from_its_file():
    [shown] = re.findall(r"^([\d,]+) \[([\d,]+), ([\d,]+)\]$", README, re.MULTILINE)
    released, low, high = (int(number.replace(",", "")) for number in shown)
    truth = sum(round(100 * spent) for _, _, spent, _ in visits.visits()) / 100
    table = pages.read("docs/start/table.md")
    assert f"The true sum is {truth:,.2f}." in " ".join(README.split())
    assert f"{shown[0]} [{shown[1]}, {shown[2]}]" in table and f"{truth:,.2f}" in table
    assert low <= truth <= high and low <= released <= high
    assert "stays below 1,359" in table and abs(released - low - 1_359) <= 10


def test_it_says_how_long_the_tests_take():
    assert re.search(r"`make test` runs the tests, in \d to \d minutes on two idle cores", README)


def test_every_metric_has_its_line():
    source = (ROOT / "beam_dp/__init__.py").read_text(encoding="utf-8")
    metrics = set(re.findall(r"mechanisms\.metrics\.[\w.]+ import (\w+) as", source))
    table = README[README.index("## Metrics") : README.index("## What is protected")]
    assert metrics == set(re.findall(r"`(\w+)\(", table))


def test_links_lead_somewhere():
    links = LINK.findall(README)
    assert len(links) > 10
    for link in links:
        path, _, anchor = link.partition("#")
        assert (ROOT / path).exists(), link
        headings = re.findall(r"^#+ (.*)$", pages.read(path), re.MULTILINE) if anchor else [""]
        assert anchor in [re.sub(r"[^a-z0-9 -]", "", h.lower()).replace(" ", "-") for h in headings]


def test_every_make_target_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"make ([a-z-]+)", README))
    assert {"demo", "test", "docs"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_extra_exists():
    setup = (ROOT / "setup.py").read_text(encoding="utf-8").partition("extras_require")[2]
    section = README[README.index("| extra") : README.index("Two commands")]
    extras = set(re.findall(r'^        "(\w+)": ', setup, re.MULTILINE))
    assert set(re.findall(r"`([a-z]+)`(?=[,|]| \|)", section)) == extras
