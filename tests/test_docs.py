"""What the documentation shows, runs; what it counts, is counted again."""

import dataclasses
import functools
import itertools
import re
import runpy
from fractions import Fraction
from pathlib import Path

import apache_beam as beam
import pytest

import beam_dp as dp
from beam_dp.mechanisms import search
from beam_dp.mechanisms.candidates import defaults
from beam_dp.mechanisms.metrics import (
    REGISTRY,
    extremes,
    histogram,
    items,
    own_function,
    rows,
    totals,
)
from beam_dp.mechanisms.profiles import coverage, frequency, from_summaries
from beam_dp.mechanisms.releases import two_phase
from beam_dp.mechanisms.search import rank_search
from beam_dp.transforms.steps import draw
from docs import tables

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/statistics.md").read_text(encoding="utf-8")
OTHER = (ROOT / "docs/ratios_and_spreads.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE + OTHER, re.DOTALL)
LINK = re.compile(r"\[[^]]*\]\((?!http)([^)]+)\)")


def anchor(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")


@pytest.fixture(scope="module")
def printed() -> list[str]:
    return list(tables.tables())


@pytest.mark.parametrize("place", range(5))
def test_every_table_of_numbers_is_the_one_that_is_printed(printed: list[str], place: int) -> None:
    assert printed[place] in PAGE
    assert PAGE.count(printed[place].splitlines()[0]) == 1


def test_there_is_no_other_table(printed: list[str]) -> None:
    lines = {line for line in PAGE.splitlines() if line.startswith("|")}
    assert lines == {line for table in printed for line in table.splitlines()}


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_the_examples_run(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(beam, "Pipeline", functools.partial(beam.Pipeline, runner="FnApiRunner"))
    Path("block.py").write_text(block)
    runpy.run_path("block.py")
    assert bool(capsys.readouterr().out) == ("print" in block)


def test_every_metric_has_a_place() -> None:
    described = (extremes, histogram, items, own_function, rows, totals)
    modules = {module.__name__ for module in described}
    public = [kind.__name__ for kind in REGISTRY.values() if kind.__module__ in modules]
    assert len(public) == 16 and all(hasattr(dp, name) for name in public)
    for name in public:
        assert re.search(rf"(^###.*|`)\b{name}\b", PAGE, re.MULTILINE), name


def test_every_search_has_a_place() -> None:
    searches = [
        name for name in dir(dp) if name.endswith(("Search", "Threshold", "Mechanism", "Choose"))
    ]
    assert len(searches) == 6
    assert all(f"`{name}`" in PAGE for name in searches)


@pytest.mark.parametrize(
    "page", sorted(["README.md", *(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))])
)
def test_links_lead_somewhere(page: str) -> None:
    links = LINK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert links
    for link in links:
        path, _, part = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        assert not part or part in map(anchor, headings), link


def test_the_example_of_a_loose_relaxation_is_one() -> None:
    pairs = list(itertools.combinations(range(100), 2))
    people = [person for pair in pairs for person in pair]
    items = [item for item, _ in enumerate(pairs) for _ in range(2)]
    count, _, without_two = coverage.profile(people, items, 2)
    assert count == 4950
    assert 99 <= count - without_two <= Fraction(65, 64) * 99 + Fraction(2, 64)


def test_the_ideal_search_is_better_only_for_very_many_candidates() -> None:
    rho = float(tables.gaussian_rho(tables.WITH_DELTA))
    above = dp.AboveThreshold(tables.WITH_DELTA)
    assert tables.ideal(rho, 430) > above.shift(2**430)
    assert tables.ideal(rho, 450) < above.shift(2**450)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 10])
@pytest.mark.parametrize("delta", [1e-12, 1e-6])
def test_a_delta_makes_no_shift_smaller_up_to_2_256_candidates(epsilon, delta) -> None:
    for bits in (1, 2, 4, 8, 14, 22, 32, 64, 128, 256):
        known = [dp.Budget(epsilon), dp.Budget(epsilon, delta)]
        pure, spending = (search.alternatives(budget, 2**bits)[0] for budget in known)
        assert spending == dataclasses.replace(pure, search=spending.search)
        assert spending.search.cost.delta == 0
    for bits in (512, 1024):
        assert search.alternatives(known[1], 2**bits)[0].name == "ScaleThenChoose"


def test_a_search_that_is_chosen_takes_no_delta_from_others() -> None:
    metrics = [dp.Max("a", search="auto"), dp.Max("b", search=dp.ScaleThenChoose)]
    rows = dp.PrivateAggregate("p", metrics, tables.WITH_DELTA).plan().rows
    assert [row.delta for row in rows] == [0, 1e-6]


def test_the_small_numbers_in_the_text() -> None:
    assert f"{rank_search.RESOLUTION} of a vote" in PAGE
    assert "4,294,967" in PAGE and from_summaries._HEAVIEST // 1000 == 4_294_967
    assert "up to 64 parts" in PAGE and draw._MANY == 64
    assert "6,324 (20 million pairs)" in PAGE and frequency.PAIRS == 20_000_000
    assert "(17 bits up to 2^63)" in PAGE and defaults._TOTAL_BITS == 17
    assert "are 0.1% apart" in PAGE and defaults._DIGITS == 4
    assert "A tenth of the budget finds a floor" in PAGE and "Three tenths choose C" in PAGE
    assert two_phase.SHARES == (Fraction(1, 10), Fraction(3, 10), Fraction(6, 10))
    assert "a fifth of the budget" in PAGE and rows._COUNT_SHARE == Fraction(1, 5)
