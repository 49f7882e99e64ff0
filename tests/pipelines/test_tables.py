"""Several tables of one run: shares of one budget, one read, one charge, files that are theirs."""

import dataclasses
import json
import signal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

import beam_dp as dp
from beam_dp.results.card import card
from beam_dp.testing import without_noise
from beam_dp.transforms import private_tables
from beam_dp.transforms.io import whole_files
from pipelines import aggregate, rehearse, releasing, running, stopping
from pipelines.description import Description
from tests.pipelines.described import described
from tests.row_files import read, write

RUN = ["--runner", "FnApiRunner"]
ASKED = ["--person", "visitor", "--count", "--sum", "spent", "--epsilon", "3"]
DAYS = ["--partition", "day", "--public_partitions", "1,2,3"]
BOTH = ["--partition", "day,store", "--public_partitions", "1/a,1/b,2/a,3/c"]
SAID = (
    "3 tables of one run, which costs epsilon 3.0, delta 1e-06 in all: by day; by store; all rows. "
    f"{private_tables._APART}"
)
APART = ["--totals", "apart"]


@pytest.fixture
def rows(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """The visits, each in one of three stores."""
    return [{**row, "store": "abc"[number % 3]} for number, row in enumerate(rows)]


@pytest.fixture
def files(visits: str, tmp_path: Path) -> list[str]:
    return ["--input", visits, "--output", str(tmp_path / "out.csv")]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("out"))


GIVEN: dict[str, Any] = {
    "person": "visitor",
    "metrics": ["count", {"sum": "spent"}],
    "partition": ["day", "store"],
    "partitions": [[1, "a"], [1, "b"], [2, "a"], [3, "c"]],
    "budget": {"epsilon": 1, "delta": 1e-6},
}


@pytest.mark.parametrize("budget", [{"epsilon": 1, "delta": 1e-6}, {"rho": 0.1}])
@pytest.mark.parametrize("weights", [[0.1, 7], ["1e-3", 3]])
def test_the_shares_are_exact_and_sum_to_the_budget(budget, weights):
    entries = zip(["store", "total"], weights, strict=True)
    also_by = [{"partition": name, "weight": weight} for name, weight in entries]
    asked = Description({**GIVEN, "budget": budget, "also_by": also_by})
    shares = [table.release.budget for table in asked.tables]
    whole = asked.release.cost()
    assert sum(share.amount for share in shares) == whole.amount
    assert sum(share.delta for share in shares) == whole.delta
    for share, weight in zip(shares[1:], weights, strict=True):
        assert share.amount / shares[0].amount == Fraction(str(weight))
        assert share.delta == whole.delta * share.amount / whole.amount


def test_without_a_weight_finer_tables_have_more():
    """A table has 3/2 as much for each coarser one: of 19 parts 9, 6 and 4."""
    asked = Description({**GIVEN, "also_by": ["store", "total"]})
    parts = [dp.Budget(Fraction(n, 19), Fraction(n, 19_000_000)) for n in (9, 6, 4)]
    assert [table.release.budget for table in asked.tables] == parts


@pytest.mark.parametrize(
    ("entry", "columns"),
    [
        ("store", ("store",)),
        ([["day", "hour"]], ("day", "hour")),
        (["total"], ()),
        ([[]], ()),
        ([["total"]], ("total",)),
        ({"partition": "store"}, ("store",)),
    ],
)
def test_an_entry_names_the_columns_of_a_table(entry, columns):
    [first, further] = Description({**GIVEN, "also_by": entry, "totals": "apart"}).tables
    assert first.release.partition == ("day", "store")
    assert further.release.partition == columns
    ending = "_by_" + "_".join(columns) if columns else "_total"
    assert further.file("a.b/out.csv") == f"a.b/out{ending}.csv"


def test_partitions_are_those_of_the_first_table_where_it_says_them():
    own = {"partition": "hour", "partitions": [7, 8]}
    also_by = ["store", ["year", "day"], "total", "shop", own]
    keys = [[1, "a", 2025], [1, "b", 2025], [2, "a", 2025], [1, "c", 2025], [1, "a", 2026]]
    by = {"partition": ["day", "store", "year"], "partitions": keys}
    made = Description({**GIVEN, **by, "also_by": also_by, "totals": "apart"}).tables
    found = [table.release.partitions for table in made]
    assert tuple(found[1].keys) == (("a",), ("b",), ("c",))
    assert tuple(found[2].keys) == ((2025, 1), (2025, 2), (2026, 1))
    assert found[3] is None and found[4] == dp.PrivatePartitions()
    assert tuple(found[5].keys) == ((7,), (8,))
    assert [table.release.batches for table in made] == [True, True, True, False, False, True]
    private = {**GIVEN, "partitions": {"private": {"pre_threshold": 10}}}
    selected = Description({**private, "also_by": ["store", "total"]}).tables
    assert selected[1].release.partitions == dp.PrivatePartitions(10)


def parameters(release: dp.PrivateAggregate) -> list[object]:
    """Return all that a release is made of: where it is the same, draws have the same laws."""
    fields = [(field.name, getattr(release, field.name)) for field in dataclasses.fields(release)]
    return [*fields, str(release.plan())]


def trial(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run a job without its noise, and return the files that the run reads."""
    opened: list[str] = []
    begin = FileSystems.open

    def noted(path: str, **options: Any) -> Any:
        opened.append(path)
        return begin(path, **options)

    with without_noise(), monkeypatch.context() as patched:
        made = releasing.pipeline(Description(given), PipelineOptions(RUN), "trial", quiet=True)
        patched.setattr(FileSystems, "open", noted)
        made.run().wait_until_finish()
    return opened


@pytest.mark.filterwarnings("ignore::beam_dp.testing.NotPrivate")
def test_each_table_is_that_of_a_job_alone_with_its_share(visits, tmp_path, monkeypatch):
    """And the input is read once for all."""
    further = {"suppress": {"below": {"count": 1}}, "nonnegative": True, "bounds": {"rows": 9}}
    given = {**GIVEN, **further, "input": visits}
    entries: list[Any] = [{"partition": name, "weight": 1} for name in ("total", "minutes")]
    entries.insert(0, {"partition": "store", "weight": 2})
    several = {**given, "output": str(tmp_path / "out.csv"), "also_by": entries}
    several["totals"] = "apart"
    assert trial(several, monkeypatch) == [visits]
    alone: list[dict[str, Any]] = [
        {},
        {"partition": "store", "partitions": ["a", "b", "c"]},
        {"partition": [], "partitions": None},
        {"partition": "minutes", "partitions": None},
    ]
    for number, (table, changes) in enumerate(zip(Description(several).tables, alone, strict=True)):
        share = Fraction(1 + (number == 1), 5)
        budget = {"epsilon": share, "delta": share / 1_000_000}
        output = str(tmp_path / f"alone{number}.csv")
        single = {**given, **changes, "budget": budget, "output": output}
        assert parameters(table.release) == parameters(Description(single).release)
        files = [table.file(several["output"]), output]
        released = read(files[0])
        assert len(released) == [4, 3, 1, 1][number]
        if number != 1:
            continue
        trial(single, monkeypatch)
        assert released == read(output)
        records = [json.loads(Path(f"{path}.json").read_text()) for path in files]
        for record in records:
            for name in ("job", "date", "budget", "composition"):
                del record[name]
        assert records[0] == records[1]


def test_a_table_that_has_only_other_partitions_is_said_to_have_none(files, capfd):
    """With delta 1e-300, as below."""
    asked = ["--partition", "store", "--also_by", "total", "--delta", "1e-300"]
    assert aggregate.main([*files, *ASKED, *asked, *RUN]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[2].split()[0] == "(other)"
    assert lines[-1].startswith("out.csv: no partition was selected, so nothing was released (")


def test_the_terminal_the_pages_the_records_and_cards_say_that_they_are_several(
    files, tmp_path, capfd
):
    """With delta 1e-300 stores of 200 people are named with a chance below 1e-200: files are there."""
    said, delta = SAID.replace("1e-06", "1e-300"), Fraction(1, 10**300)
    pages = ["--report", str(tmp_path / "out.html")]
    also_by = ["--also_by", "store", "--also_by", "total", "--delta", "1e-300", *APART]
    assert aggregate.main([*files, *ASKED, *DAYS, *also_by, *pages, *RUN]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[-2] == said and lines.count(said) == 1
    assert lines[-1].startswith("out_by_store.csv: no partition was selected, so nothing was rel")
    assert read(tmp_path / "out_by_store.csv") == []
    paths = [tmp_path / f"out{ending}.csv" for ending in ("", "_by_store", "_total")]
    headings = [lines.index(f"{path.name}:") for path in paths]
    assert headings == sorted(headings)
    assert [lines[at + 1].split()[0] for at in headings] == ["day", "store", "count"]
    for path, which in zip(paths, ("by day", "by store", "all rows"), strict=True):
        record = json.loads(Path(f"{path}.json").read_text())
        assert record["budget"] == {"epsilon": "3", "delta": str(delta)}
        share = "3/4" if which == "all rows" else "9/8"
        assert f"for all tables of the run; this one: epsilon {share}" in record["composition"]
        assert card(record)["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] == 3
        assert record["job"]["tables"] == said
        page = path.with_suffix(".html").read_text()
        assert f"This table is one of {said}.</p>" in page
        assert f"<h1>Released statistics: visits.csv, {which}</h1>" in page
        assert f"One of {said}" in yaml.safe_dump(card(record), width=10_000)
        releasing.show([str(path)])
        assert capfd.readouterr().out.splitlines()[-1] == said


def test_a_plan_is_that_of_every_table(capfd):
    words = [*ASKED, *DAYS, "--delta", "1e-6", "--also_by", "store", "--also_by", "total", *APART]
    assert aggregate.main([*words, "--plan"]) == 0
    said = capfd.readouterr().out
    plans = [f"{t.release.title}:\n{t.release.plan()}\n" for t in described(*words).tables]
    assert said == "\n".join([*plans, f"{SAID}\n{releasing.CHECK}"])
    words[words.index("3")] = "12"  # a budget is unusual as a whole
    assert aggregate.main([*words, "--plan"]) == 0
    assert "".join(capfd.readouterr()).count("Warning: epsilon 12.0 is above 10") == 1


def test_the_ledger_is_charged_once_and_the_best_partitions_of_each_table_come_out(
    files, tmp_path, config, capfd
):
    ledger = str(tmp_path / "l.jsonl")
    words = [*files, *ASKED, *DAYS, "--also_by", "total", "--ledger", ledger, *RUN]
    words += ["--period", "day", "--ledger_period", "1"]
    words += config(top_partitions={"by": "count", "k": 2})
    assert aggregate.main([*words, "--total_epsilon", "5", "--plan"]) == 0
    assert "after this run: 1 run: per person and day: epsilon 3 of 5" in capfd.readouterr().out
    assert aggregate.main([*words, "--total_epsilon", "5"]) == 0
    [charge] = dp.Ledger(ledger).balance.charges
    assert charge.budget == dp.Budget(3) and charge.label == "aggregate: out.csv"
    assert charge.person == ("visitor",) and charge.ledger_period == "1"
    with pytest.raises(SystemExit) as stopped:
        aggregate.main([*words, "--overwrite"])
    assert stopped.value.code == 2 and len(dp.Ledger(ledger).balance.charges) == 1
    assert [len(read(tmp_path / f"out{end}.csv")) for end in ("", "_total")] == [2, 1]


LONG = "d" * 250
CLASHES = {
    "an input": (["--also_by", "total"], "in_total.csv", "another file than input and ledger"),
    "a record": (["--also_by", "total"], "out_total.csv.json", "another, or write --overwrite"),
    "a page": (["--also_by", "total", "--report", "out.html"], "out_total.html", "another, or write --over"),
    "the same table": (["--also_by", "day"], "", "different columns for each table"),
    "one file": (
        ["--also_by", "a b", "--also_by", "A_b", "--delta", "1e-6"], "", "different columns for each table"
    ),
    "one file of other columns": (
        ["--also_by", "c,a_b", "--also_by", "c_a,b", "--delta", "1e-6"], "", "the same file name"
    ),
    "a long name": (["--also_by", LONG, "--delta", "1e-6"], "", "by 250 bytes at most"),
    "no name": (["--also_by", ""], "", "also_by must have partition: name its columns, or write"),
    "no delta": (
        ["--also_by", "store"],
        "",
        "select the partitions by 'store' privately: give one, like 1e-6, or name them in a file",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CLASHES)
def test_what_cannot_be_written_or_selected_is_refused_before_the_charge(
    name, rows, tmp_path, monkeypatch, refused
):
    monkeypatch.chdir(tmp_path)
    words, there, said = CLASHES[name]
    source = write(Path("in_total.csv"), [{**row, LONG: 1} for row in rows])
    output = "in.csv" if there == source else "out.csv"
    if there.startswith("out"):
        Path(there).write_text("mine")
    ledger = ["--ledger", "l.jsonl", "--total_epsilon", "9"]
    call = ["--input", source, "--output", output, *ASKED, *DAYS, *ledger, *words, *APART, *RUN]
    assert said in refused(aggregate, *call)
    assert {path.name for path in tmp_path.iterdir()} == {source, *filter(None, [there])}
    assert not there.startswith("out") or Path(there).read_text() == "mine"


def test_a_stopped_job_leaves_no_part_of_any_table(files, tmp_path, monkeypatch):
    """In place of the run each file begins, and the job is stopped."""
    monkeypatch.setattr(stopping, "cleanings", [])

    def halfway(*given: object) -> None:
        for path in begun:
            prefix = whole_files._prefix(str(tmp_path / path))
            Path(f"{prefix}0.partial").write_text("half")
        assert len(names(tmp_path)) == len(begun)
        for clean in stopping.cleanings:
            clean()
        raise SystemExit(128 + signal.SIGTERM)

    ends = ("", "_by_store", "_total")
    begun = [f"out{each}.csv{end}" for each in ends for end in ("", ".json")]
    monkeypatch.setattr(running, "run", halfway)
    words = ["--delta", "1e-6", "--also_by", "store", "--also_by", "total", *APART]
    with pytest.raises(SystemExit):
        aggregate.main([*files, *ASKED, *DAYS, *words, *RUN])
    assert names(tmp_path) == []


def test_a_rehearsal_is_of_every_table(visits, tmp_path, capsys):
    """Rows without a public key count in no table."""
    asked = [word.replace("3", "3000") for word in ASKED]  # errors are below 1
    words = ["--input", visits, *asked, *BOTH, "--also_by", "store", "--also_by", "total"]
    page = str(tmp_path / "out.html")
    assert rehearse.main([*words, "--runs", "2", "--report", page]) == 0
    lines = capsys.readouterr().out.splitlines()
    true = [line.split("±")[0].split() for line in lines if line.count("% hold)") == 2]
    assert true[3:] == [["3", "c", "67"], ["a", "134"], ["b", "67"], ["c", "67"], ["268"]]
    assert names(tmp_path) == ["out.html", "out_by_store.html", "out_total.html"]
    for which, name in (("by store", "out_by_store"), ("all rows", "out_total")):
        assert any(line.startswith("NOT PRIVATE") and line.endswith(f"; {which}") for line in lines)
        text = (tmp_path / f"{name}.html").read_text()
        assert f"<h1>NOT PRIVATE. Rehearsal: {Path(visits).name}, {which}</h1>" in text
