"""What the documentation shows, runs; what it counts, is counted again; its links lead somewhere."""

import collections
import dataclasses
import inspect
import json
import re
import subprocess

import pytest

import beam_dp as dp
from beam_dp.mechanisms.metrics import REGISTRY, preprocessed, ratio
from docs import tables, visits
from pipelines import aggregate
from tests import pages
from tests.pages import PAGES, ROOT, Block, Shell

STATISTICS = pages.read("docs/statistics.md")
SEARCHES = pages.read("docs/maintainers/searches.md")
JOBS = pages.read("docs/how_to/jobs.md")
TUTORIALS = [page for page in PAGES if page.startswith("docs/start/")]
OTHERS = [page for page in PAGES if page not in TUTORIALS]
RUN = ("python", "bash", "yaml")
NOT_RUN = {
    "README.md": 1,
    "docs/how_to/recipes.md": 1,
    "docs/how_to/runners.md": 6,
    "docs/start/table.md": 1,
}
"""How many blocks of a page no test runs, each with its reason beside it."""
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


def tables_of_numbers(text: str) -> list[re.Match[str]]:
    """Return the tables in which most cells are numbers, but for the first column."""
    found = []
    for table in TABLE.finditer(text):
        cells = [cell for line in table[0].splitlines()[2:] for cell in line.split("|")[2:-1]]
        numbers = [cell for cell in cells if re.match(r"[ *]*[\d,.]*\d", cell)]
        if 2 * len(numbers) > len(cells):
            found.append(table)
    return found


@pytest.mark.audit
def test_the_table_of_searches_is_the_one_that_is_printed():
    assert SEARCHES.count(tables.searches()) == 1
    assert [table[0] for table in tables_of_numbers(SEARCHES)] == [tables.searches()]


@pytest.mark.parametrize("page", PAGES)
def test_every_table_of_numbers_names_its_command(page):
    text = pages.read(page)
    for table in tables_of_numbers(text):
        before = text[: table.start()]
        near = before[:500] + before.rpartition("\n## ")[2]
        assert "python -m" in near or "e^epsilon" in near, table[0]


def test_the_blocks_that_no_test_runs_are_counted():
    found = {page: [b for b in pages.blocks(pages.read(page)) if b.reason] for page in PAGES}
    assert {page: len(left) for page, left in found.items() if left} == NOT_RUN


@pytest.mark.parametrize("page", PAGES)
def test_every_command_is_in_a_block_of_a_known_language(page):
    text = pages.read(page)
    for block in pages.blocks(text):
        known = block.language in pages.SHOWN or block.language in RUN or block.reason
        assert known, block.code
    assert not re.search(
        r"^    (python|make|pip|git|import) ", pages.FENCE.sub("", text), re.MULTILINE
    )


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_is_read_is_in_a_clone_or_made_before(page):
    text = "\n".join(block.code for block in pages.blocks(pages.read(page)))
    for name in pages.inputs(text):
        before = text[: text.index(name)]
        made = re.search(r"(?:> |cp \S+ )$", before)
        assert name.startswith("docs/start/") and (ROOT / name).exists() or made, name


def test_files_that_nobody_has_are_noticed():
    code = 'dp.release(\n    "a.csv",)\nbeam-dp rehearse --input b.csv -x\ninput: c.csv\n'
    assert pages.inputs(code) == ["a.csv", "b.csv", "c.csv"]
    assert len(pages.inputs("".join(map(pages.read, PAGES)))) > 20


def run_page(page: str, shell: Shell) -> None:
    """Run the blocks of a page in their order; compare what they print with what the page shows."""
    found = pages.blocks(pages.read(page))
    for block, after in zip(found, [*found[1:], Block("", "", "")], strict=True):
        if not block.runs:
            continue
        out = shell.run(block)
        if block.language == "python":
            assert bool(out) == ("print" in block.code)
        if shell.whole and after.language == "text":
            compare(out, after.code)


def compare(out: str, shown: str) -> None:
    """Compare lines that hold no noise, and of tables the columns."""
    first = shown.splitlines()[0]
    if first.startswith("Row("):
        assert re.findall(r"(\w+)=", shown) == re.findall(r"(\w+)=", out)[: shown.count("=")]
        return
    lines = [line.split() for line in out.splitlines()]
    assert first.split() in lines
    if "[" not in shown:
        certain = [line for line in shown.splitlines() if not re.match(r"\d{4}-\d\d-\d\dT", line)]
        assert all(line.split() in lines for line in certain)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("page", TUTORIALS)
def test_the_tutorials_run(page, tmp_path, monkeypatch):
    pages.work_in(tmp_path, monkeypatch)
    run_page(page, Shell(whole=True))


NOTEBOOKS = sorted(ROOT.glob("docs/start/*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebooks_run_and_print_as_much_as_they_show(notebook, tmp_path, monkeypatch):
    pages.work_in(tmp_path, monkeypatch)
    monkeypatch.chdir("docs/start")  # a notebook runs in its own folder
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    cells = [cell for cell in cells if cell["cell_type"] == "code"]
    code = "\n".join("".join(cell["source"]) for cell in cells)
    shown = "".join("".join(o.get("text", [])) for cell in cells for o in cell["outputs"])
    out = Shell(whole=True).run(Block("python", code, ""))
    assert len(out.split()) == len(shown.split())


WITH_BLOCKS = [
    page for page in OTHERS if any(block.runs for block in pages.blocks(pages.read(page)))
]
WHOLE = [pytest.param(False, id="plans"), pytest.param(True, id="whole", marks=pytest.mark.audit)]


DEPENDENT = {"docs/how_to/card.md", "docs/how_to/ledger.md", "docs/top_partitions.md"}
"""Pages whose later commands need what earlier ones released: they run to their end always."""


@pytest.mark.sampled(11)
@pytest.mark.filterwarnings("ignore::beam_dp.transforms.stages.noise_off.NotPrivate")
@pytest.mark.parametrize("whole", WHOLE)
@pytest.mark.parametrize("page", WITH_BLOCKS)
def test_the_other_pages_run(page, whole, tmp_path, monkeypatch):
    pages.work_in(tmp_path, monkeypatch)
    run_page(page, Shell(whole or page in DEPENDENT))


FAILING = {
    "make nothing": AssertionError,
    "false": subprocess.CalledProcessError,
    "python -m pipelines.aggregate --count --epsilon 1": SystemExit,
    "beam-dp aggregate --input visits.csv --person visitor_id --count --epsilon 1": AssertionError,
}


@pytest.mark.parametrize("command", FAILING)
def test_a_block_that_fails_is_noticed(command, tmp_path, monkeypatch):
    pages.work_in(tmp_path, monkeypatch)
    with pytest.raises(FAILING[command]):
        Shell(whole=False).run(Block("bash", command, ""))


def test_what_a_page_shows_and_no_command_prints_is_noticed():
    with pytest.raises(AssertionError):
        compare("day  count\n", "day  sum\n")
    with pytest.raises(AssertionError):
        compare("count  857\n", "count  858\n")


def test_the_file_of_the_tutorials_is_the_one_that_is_made():
    assert pages.read("docs/start/visits.csv") == visits.as_csv()
    [head] = re.findall(
        r"```text\n(visitor_id.*?)```", pages.read("docs/start/table.md"), re.DOTALL
    )
    assert visits.as_csv().startswith(head)


def test_the_tutorial_shows_releases_of_that_file():
    counts: collections.Counter[int] = collections.Counter()
    sums: collections.Counter[int] = collections.Counter()
    for day, _, spent, _ in visits.visits():
        counts[day] += 1
        sums[day] += round(100 * spent)
    page = pages.read("docs/start/table.md")
    cell = r" +([\d,]+) \[([\d,]+), ([\d,]+)\]"
    rows_of_days = re.findall(rf"^  ([1-7]){cell}{cell}$", page, re.MULTILINE)
    assert [day for day, *_ in rows_of_days] == list("1234567")
    held = 0
    for day, *shown in rows_of_days:
        numbers = [int(number.replace(",", "")) for number in shown]
        count, count_low, count_high, total, low, high = numbers
        assert count_low <= count <= count_high and low <= total <= high
        held += count_low <= counts[int(day)] <= count_high
        held += low <= sums[int(day)] / 100 <= high
    assert held == 14 and "all of these 14 intervals hold the true number" in page
    assert f"the true sum is {sums.total() / 100:,.2f}" in page


def test_every_metric_has_a_place():
    elsewhere = {module.__name__ for module in (ratio, preprocessed)}  # docs/ratios_and_spreads.md
    public = [kind.__name__ for kind in REGISTRY.values() if kind.__module__ not in elsewhere]
    assert len(public) >= 16 and all(hasattr(dp, name) for name in public)
    for name in public:
        assert re.search(rf"(^###.*|`)\b{name}\b", STATISTICS, re.MULTILINE), name


def test_no_page_says_more_than_all_may():
    words = sum(len(path.read_text(encoding="utf-8").split()) for path in ROOT.glob("docs/**/*.md"))
    assert words <= 20_000


def test_every_public_name_is_on_the_page_of_the_api():
    source = (ROOT / "beam_dp/__init__.py").read_text(encoding="utf-8")
    public = {
        name for name, again in re.findall(r"import (\w+) as (?!_)(\w+)$", source, re.MULTILINE)
    }
    public |= set(re.findall(r"^ +(\w+) as \1,$", source, re.MULTILINE))
    listed = re.findall(r"^::: beam_dp\.(\w+)$", pages.read("docs/api.md"), re.MULTILINE)
    assert len(public) > 40
    assert collections.Counter(listed) == collections.Counter(public)


def test_every_option_of_a_metric_is_described():
    shared = pages.read("docs/api.md").partition("options that several have")[2]
    listed = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|[^|]+\|", shared, re.MULTILINE))))
    for kind in REGISTRY.values():
        own = set(re.findall(r"^    (\w+): ", inspect.getdoc(kind) or "", re.MULTILINE))
        fields = {field.name for field in dataclasses.fields(kind) if field.name != "_"}
        assert fields <= own | listed, kind


def test_every_option_of_the_job_is_on_its_page():
    ours = {flag for action in aggregate.parser()._actions for flag in action.option_strings}
    told = set(re.findall(r"`(--[a-z_]+)", JOBS)) - {"--runner", "--temp_location"}
    assert told <= ours
    assert ours - told <= {"-h"}


def test_the_table_of_epsilons_is_right():
    page = pages.read("docs/start/budget.md")
    lines = re.findall(r"^\| ([\d.]+) \| ([\d.,]+) \| ([\d.]+)% \|$", page, re.MULTILINE)
    assert len(lines) == 7
    for epsilon, factor, belief in lines:
        exact = 2.718281828459045 ** float(epsilon)
        assert abs(float(factor.replace(",", "")) / exact - 1) < 5e-3
        assert abs(float(belief) - 100 * exact / (1 + exact)) < 0.06
