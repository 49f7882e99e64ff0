"""Wrong calls: one line in the words of the mapping, a code that is not 0, nothing touched."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from beam_dp.mechanisms.numerics.checks import ParameterError
from beam_dp.transforms.io.formats import FORMATS, READ
from pipelines import (
    aggregate,
    command_line,
    demo,
    ledger,
    messages,
    table,
)

PERSON = ["--person", "visitor"]
OWNERS = ["--person", "from,to"]
DAYS = [*PERSON, "--partition", "day"]
PUBLIC = [*DAYS, "--public_partitions", "1,2,3"]
FILES = ["--input", "visits.csv", "--output", "out.csv"]
ONE = ["--epsilon", "1"]


def command(*words: str) -> list[str]:
    return [*PUBLIC, *ONE, *words]


def counted(*words: str) -> list[str]:
    return [*FILES, *command("--count", *words)]


def written(path: str) -> list[str]:
    return ["--input", "a.csv", "--output", path, *command("--count")]


AGGREGATE = {
    "no arguments": ([], "person must be given: name its column, like visitor_id"),
    "no budget": ([*FILES, *PUBLIC, "--count"], "budget must be given: give an epsilon, like 1"),
    "misspelt budget": ([*PUBLIC, "--count", "--epsilom", "1"], "argument: --epsilom, did you mean --epsilon?"),
    "a filter": (counted("--filter", "day=6"), "unrecognized argument: --filter, --help lists those of the job"),
    "a budget twice": (counted("--epsilon=2"), "--epsilon: must be given once: leave one of the two out"),
    "the beginning of an option": (counted("--over"), "--over, did you mean --overwrite?"),
    "an unsound runner": (counted("--runner", "BundleBasedDirectRunner"), "--runner must be one of"),
    "a stray word": (
        [*FILES, *DAYS, "--public_partitions", "1,", "2,", *ONE, "--count"],
        "unrecognized argument: 2,: a value has no spaces, as 1,2,, or stands in quotes",
    ),
    "an option of a metric behind a space": (counted("--sum", "spent", "clip=100"), "as spent,clip=100, or"),
    "an option that is a metric": (
        counted("--sum", "spent,max=100"),
        "word of one metric, not sum, max. Ask for each metric by itself. sum has the options name, weight,",
    ),
    "a trial in other words": (counted("--dry-run"), "argument: --dry-run, did you mean --plan?"),
    "Dataflow's trial elsewhere": (
        counted("--dry_run", "true", "--runner", "FnApiRunner"), "on FnApiRunner it would be a run: give --plan"
    ),
    "a template elsewhere": (
        counted("--template_location", "gs://b/t", "--runner", "FnApiRunner"), "--template_location is for Dataflow"
    ),
    "Spark without a server": (
        counted("--runner", "SparkRunner"), "SparkRunner must have a job server: start one, as docs/how_to/runners"
    ),
    "a title without a page": (counted("--title", "May"), "report must be given where title or number_style is"),
    "signs that are the same": (
        counted("--report", "p.html", "--number_style", "1,234,5"), "number_style must be 1234.5 with the signs to"
    ),
    "a workbook": (["--input", "a.xlsx", *FILES[2:], *command("--count")], "Save a sheet (.xlsx, .ods) as CSV."),
    "a workbook as output": (written("out.xlsx"), "not 'out.xlsx'. Spreadsheets open .csv."),
    "an output where no file can be made": (written("/proc/o.csv"), "output must be one that can be written, not '/proc"),
    "a bucket without its package": (
        ["--input", "azfs://a/b/c.csv", *FILES[2:], *command("--count")], 'pip install "apache-beam[azure]"'
    ),
    "a store that Beam would miss in the run": (written("azfs://a/b/o.csv"), 'pip install "apache-beam[azure]".'),
    "keys in a file that is not there": (
        [*FILES, *DAYS, *ONE, "--count", "--public_partitions", "@days.csv"],
        "partitions must match a file, and 'days.csv' matches none",
    ),
    "a mapping that is not there": (counted("--config", "none.yaml"), "--config none.yaml: there is no such file"),
    "keys that look like a range": (
        [*FILES, *DAYS, *ONE, "--count", "--public_partitions", "1-7"], "'1-7' looks like a range: write all"
    ),
    "a ledger in no folder": (
        counted("--ledger", "new/l.jsonl", "--total_epsilon", "3"), "ledger must be in a folder of this machine"
    ),
    "a clip of text": (
        [*FILES, *command("--sum", "a,clip=abc")],
        "clip must be a number, not 'abc': give a number, like 100",
    ),
    "no metric": ([*FILES, *command()], "metrics must be given: ask for one, like count"),
    "a metric twice": (counted("--count"), "output columns must have different names"),
    "one name": (
        [*FILES, *DAYS, *ONE, "--delta", "1e-6", "--sum", "a b", "--sum", "a_b"],
        "output columns must have different names, not ['sum_a_b', 'sum_a_b_high', 'sum_a_b_low'] twi",
    ),
    "a metric of nothing": ([*FILES, *command("--sum", "")], "sum must have column"),
    "private without delta": (
        [*FILES, *DAYS, *ONE, "--count", "--bounds", "partitions=3"],
        "delta must be above 0 to select partitions privately, not 0: give one, like 1e-6, or name the",
    ),
    "quantiles without shares": (command("--quantiles", "a"), "quantiles must have shares"),
    "edges without end": (command("--histogram", "a,edges=0..9..0"), "step must be above 0, not 0"),
    "a report that is no page": (counted("--report", "a.pdf"), "report must end in .html, not 'a.pdf'"),
    "text and number": (
        [*FILES, *command("--distinct_count", "a", "--median", "a")], "column 'a' of a file whose cells are text must be read as text"
    ),
    "nine owners": ([*FILES, "--person", "a,b,c,d,e,f,g,h,i", *ONE, "--count"], "person must be one column, or the 2 to 8"),
    "several owners with limits": (
        [*FILES, *OWNERS, *ONE, "--count", "--bounds", "rows=3"], "bounds must be left out where rows have several owners"
    ),
    "a mean of several owners": (
        [*FILES, *OWNERS, *ONE, "--mean", "a"], "a metric of rows with several owners must be count, sum, max, min, "
    ),
    "keys of two lengths": (
        [*PERSON, "--partition", "day,hour", "--public_partitions", "1/2,3", *ONE, "--count"], "each key a part per partition"
    ),
    "a partition named as a metric": (
        [*FILES, *PERSON, "--partition", "count", "--public_partitions", "1", *ONE, "--count"],
        "not ['count'] twice: give the column of partition another name in the data",
    ),
    "an unknown format": (
        ["--input", "a.xml", "--output", "out.csv", *command("--count")],
        f"input must end in one of {', '.join(READ)}, the same for all",
    ),
    "an unknown output": (written("out"), f"output must end in {', '.join(FORMATS)}, not 'out'"),
    "an output that exists": (written("old.csv"), "old.csv': name another, or overwrite it"),
    "an output below a file": (
        written("old.csv/out.csv"), "output must be one that can be written, not 'old.csv/out.csv'. Name a"
    ),
    "an output with a long name": (written("o" * 247 + ".csv"), "you may write, by 250 bytes at most"),
    "an output where nobody can write": ([*written("/no/out.csv"), "--overwrite"], "'/no/out.csv'. Name a"),
    "a ledger that the output replaces": (
        counted("--ledger", "out.csv", "--total_epsilon", "3"), "output must name another file than input and ledger, and 'out.csv' matches it"
    ),
    "a ledger that the record replaces": (
        counted("--ledger", "out.csv.json", "--total_epsilon", "3"), "and 'out.csv.json' matches it"
    ),
    "output is input": (written("a.csv"), "output must name another file than input"),
}  # fmt: skip
MAPPING: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown part": ({"persom": "visitor"}, "must not have the word 'persom'. Did you mean person"),
    "an input that is no path": ({"input": ["a.csv", 3]}, "input must be a path, or a list of them"),
    "an unknown part of a part": ({"ledger": {"file": "a"}}, "ledger must not have the word 'file'"),
    "an unknown option of a metric": ({"metrics": [{"sum": "a", "clp": 1}]}, "sum must not have the word 'clp'. Did you"),
    "what a flag says too": ({"budget": {"epsilon": 1}}, "budget stands in r.json too: leave one of the two out"),
    "a method without a bound": (
        {"metrics": [{"ratio": "a", "method": "naive"}]}, "give a bound, like 10, or count per person"
    ),
    "a text for keys": ({"partitions": "AL"}, "must be a list of keys, not 'AL'. Write partitions: [AL]."),
    "bounds by the mapping": ({"bounds": {"rows": 3, "partitions": "x"}}, "bounds partitions must be a whole number of at least 1, not 'x': give a bound, like 3"),
    "candidates without an end": ({"metrics": [{"max": "a", "candidates": {"low": 1}}]}, "a low, a high, and a step or"),
    "a ranking of nothing": ({"top_partitions": {"by": "people", "k": 3}}, "top_partitions must have by: one of the output columns count"),
}  # fmt: skip
SEARCHES = {
    "too small a budget": (
        [*FILES, *PUBLIC, "--epsilon", "1e-9", "--max", "minutes,candidates=-60..60..1,search=above_threshold"],
        "budget must be larger: the search for output column max_minutes would look at the 59122185770 most",
    ),
    "squares of several owners": (
        [*FILES, *OWNERS, *ONE, "--sum_of_squares", "a,candidates=0..60..1"],
        "a metric of rows with several owners must be count, sum, max, min, ",
    ),
}  # fmt: skip


def with_mapping(given: dict[str, Any]) -> list[str]:
    """Return a call whose flags say all but what a mapping says."""
    flags = {"person": PERSON, "metrics": ["--count"], "partitions": ["--public_partitions=1,2"]}
    flags |= {"input": FILES[:2]}
    words = [word for name, said in flags.items() if name not in given for word in said]
    Path("r.json").write_text(json.dumps(given), encoding="utf-8")
    return [*words, "--partition=day", *ONE, *FILES[2:], "--config", "r.json"]


CALLS = [
    *((aggregate, f"aggregate: {name}", *call) for name, call in AGGREGATE.items()),
    *((aggregate, f"mapping: {name}", *call) for name, call in MAPPING.items()),
    *((aggregate, f"search: {name}", *call) for name, call in SEARCHES.items()),
]


@pytest.mark.parametrize(
    ("job", "asked", "line"),
    [(job, asked, line) for job, _, asked, line in CALLS],
    ids=[name for _, name, *_ in CALLS],
)
def test_a_wrong_call_is_one_line(
    job: Any,
    asked: Any,
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refused: Callable[..., str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.csv").write_text("mine")
    words = with_mapping(asked) if isinstance(asked, dict) else asked
    before = sorted(tmp_path.iterdir())
    assert line in refused(job, *words)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "old.csv").read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("person: a\nperson: b\n", "'person' must stand once in a mapping"),
        ("metrics: [{sum: a, sum: b}]\n", "'sum' must stand once in a mapping"),
        ("person: [\n", "r.yaml, line 2, column 1: it must be a file of YAML"),
        (
            "a: [b\nc: d\n",
            "line 2, column 2: it must be a file of YAML in UTF-8 (while parsing a flow sequence, expected ',' or ']', but got ':')",
        ),
        ("[1, 2]\n", "must hold a mapping, as in person: visitor_id"),
        ("person: zo\udceb\n", "--config r.yaml: it must be a file of YAML in UTF-8"),
        (None, "error: --config r.yaml: there is no such file"),
        ("metrics: [count]\nbudget: {epsilon: 1}\n", "person must be given: name its column"),
        ("person: a\nbudget: {epsilon: 1}\n", "metrics must be given: ask for one"),
        ("person: a\nmetrics: [count]\n", "budget must be given: give an epsilon"),
        (
            "{person: a, partition: b, metrics: [count], budget: {epsilon: 1}}\n",
            "not 0: give one, like 1e-6, or name the partitions: 1,2,3",
        ),
    ],
)
def test_a_file_that_describes_no_release_is_one_line(
    text: str | None,
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refused: Callable[..., str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path("r.yaml").write_text(text, "utf-8", "surrogateescape")
    said = refused(aggregate, "--config", "r.yaml")
    assert line in said
    assert not re.search("--(?!config)", said), "what to write in a file is no flag"


LEDGER = ["--ledger=l.jsonl", "--total_epsilon=3"]
WHOLE = {
    aggregate: [*FILES, *command("--count", *LEDGER)],
    ledger: ["visits.ledger.jsonl"],
    demo: [],
    table: ["out.csv"],
}


@pytest.mark.parametrize("job", WHOLE, ids=lambda job: job.__name__)
@pytest.mark.parametrize("words", [["--filter", "day=6"], ["--hel"]], ids=" ".join)
def test_what_no_parser_knows_is_an_error_of_every_job(
    job: Any,
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refused: Callable[..., str],
) -> None:
    """Whole calls, with input that is there: nothing is charged, read or made."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text("visitor,day,minutes,a\n1,1,1,1\n")
    said = refused(job, *WHOLE[job], *words)
    assert "error: unrecognized " in said and words[0] in said
    assert [path.name for path in tmp_path.iterdir()] == ["visits.csv"]


@pytest.mark.parametrize("keys", ["18-24,25-34", "2024-01", "a,1-7"])
def test_keys_that_are_no_range_are_keys(keys: str) -> None:
    words = ["--person=p", "--partition=d", "--public_partitions", keys]
    line = aggregate.parser()
    options, _ = line.read(words)
    found = command_line.described(options)
    assert found["partitions"] == keys.split(",")


def test_an_error_is_said_by_its_parts_not_by_its_text() -> None:
    error = ParameterError("Sum", "clip", "be above 0, not 'a. b'", "Write clip=9.")
    assert messages.said(error) == "clip must be above 0, not 'a. b': give a number, like 100"
    assert messages.said(ValueError("ReadRows: no file")) == "no file"
