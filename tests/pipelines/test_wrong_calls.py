"""Wrong calls: one line in the words of the mapping, a code that is not 0, nothing touched."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from beam_dp.mechanisms.numerics.checks import ParameterError
from beam_dp.transforms.io.formats import FORMATS, READ
from pipelines import aggregate, demo, ledger, messages, table
from tests.pipelines.described import described

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
    "no arguments": ([], "person must be given: write --person visitor_id"),
    "no budget": ([*FILES, *PUBLIC, "--count"], "budget must be given: write --epsilon 1"),
    "misspelt budget": ([*PUBLIC, "--count", "--epsilom", "1"], "argument: --epsilom, did you mean --epsilon?"),
    "a budget twice": (counted("--epsilon=2"), "--epsilon: must be given once: leave one of the two out"),
    "a clip of nothing": (counted("--clip", "9"), "--clip, did you mean --sum spent,clip=100?"),
    "a filter": (counted("--where", "a > 1"), '--where, did you mean --query "SELECT * FROM rows WHERE'),
    "no help": ([*PUBLIC, "--count", "--heap", "1"], "--heap, --help lists those of the job"),
    "a short beginning of one": ([*PUBLIC, "--count", "--eps", "1"], "--eps, did you mean --epsilon?"),
    "the beginning of an option": (counted("--over"), "--over, did you mean --overwrite?"),
    "an unsound runner": (counted("--runner", "BundleBasedDirectRunner"), "--runner must be one of"),
    "a stray word": (
        [*FILES, *DAYS, "--public_partitions", "1,", "2,", *ONE, "--count"],
        "unrecognized argument: 2,: a value has no spaces, as 1,2,, or stands in quotes",
    ),
    "a file without its flag": ([*FILES, *DAYS, *ONE, "--count", "b.csv"], "unrecognized argument: b.csv: write --input b.csv"),
    "a statement": (counted("SELECT day FROM 'v.csv'"), "beam-dp select takes it, or write --select before it"),
    "no share": (counted("--quantile", "spent"), "quantile must have p. Write --quantile spent,p=0.9."),
    "no shares": (
        counted("--quantiles", "spent"), "must have shares. Write --quantiles spent,shares=0.25,0.5,0.75."
    ),
    "a flag without a value": ([*counted(), "--sum"], "error: --sum must have a value: --sum COLUMN"),
    "a flag of Beam without a value": (counted("--runner"), "error: --runner must have a value: --runner VALUE"),
    "ends of a sum": (counted("--sum", "spent,low=0"), "Leave it out, or write --sum spent,clip=100: the most"),
    "a bound without a name": (counted("--bounds", "3"), "not '3': write --bounds partitions=3"),
    "keys without a column": (
        [*FILES, *PERSON, "--public_partitions", "1,2", *ONE, "--count"],
        "without partition columns. Name the column as partition, or leave the keys out.",
    ),
    "a file of keys without its sign": (
        [*FILES, *DAYS, *ONE, "--count", "--public_partitions", "days.csv"], "'days.csv' is a file. Write @days.csv."
    ),
    "a page of another type": (counted("--report", "p.htm"), "must end in .html, not 'p.htm'. Write report.html."),
    "a new ledger without a limit": (counted("--ledger", "l.jsonl", "--plan"), "give --total_epsilon 3 for a new ledger"),
    "an option that is a metric": (
        counted("--sum", "spent,max=100"),
        "word of one metric, not sum, max. Ask for each metric by itself. sum has the options name, weight,",
    ),
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
    "an output where no file can be made": (written("/proc/o.csv"), "output must be one that can be written, not '/proc"),
    "a bucket without its package": (
        ["--input", "azfs://a/b/c.csv", *FILES[2:], *command("--count")], 'pip install "apache-beam[azure]"'
    ),
    "a mapping that is not there": (counted("--config", "none.yaml"), "--config none.yaml: there is no such file"),
    "keys that look like a range": (
        [*FILES, *DAYS, *ONE, "--count", "--public_partitions", "1-7"], "'1-7' looks like a range: write all"
    ),
    "a clip of text": (
        [*FILES, *command("--sum", "a,clip=abc")],
        "clip must be a number, not 'abc': give a number, like 100",
    ),
    "no metric": ([*FILES, *command()], "metrics must be given: ask for one, like count"),
    "a metric twice": (
        counted("--count"), "must have different names, not ['count', 'count']. Write --sum spent,name=spent_again."
    ),
    "one name": (
        [*FILES, *DAYS, *ONE, "--delta", "1e-6", "--sum", "a b", "--sum", "a_b"],
        "output columns must have different names, not ['sum_a_b', 'sum_a_b_high', 'sum_a_b_low'] twi",
    ),
    "private without delta": (
        [*FILES, *DAYS, *ONE, "--count", "--bounds", "partitions=3"],
        "privately, not 0: write --delta 1e-6, or --public_partitions 1,2,3",
    ),
    "a mean of several owners": (
        [*FILES, *OWNERS, *ONE, "--mean", "a"], "a metric of rows with several owners must be count, sum, max, min, "
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
    "an output that exists": (written("old.csv"), "old.csv': name another, or write --overwrite"),
    "a ledger that the output replaces": (
        counted("--ledger", "out.csv.json", "--total_epsilon", "3"), "output must name another file than input and ledger, and 'out.csv.json' matches it"
    ),
    "too small a budget": (
        [*FILES, *PUBLIC, "--epsilon", "1e-9", "--max", "minutes,candidates=-60..60..1,search=above_threshold"],
        "budget must be larger: the search for output column max_minutes would look at the 59122185770 most",
    ),
    "output is input": (written("a.csv"), "output must name another file than input"),
}  # fmt: skip
MAPPING: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown part": ({"persom": "visitor"}, "must not have the word 'persom'. Did you mean person"),
    "an input that is no path": ({"input": ["a.csv", 3]}, "input must be a path, or a list of them"),
    "a number for a column of numbers": ({"numbers": [1]}, "numbers must be the name of a column (a string), not 1"),
    "what a flag says too": ({"budget": {"epsilon": 1}}, "budget stands in r.json too: leave one of the two out"),
    "a method without a bound": (
        {"metrics": [{"ratio": "a", "method": "naive"}]}, "give a bound, like 10, or count per person"
    ),
    "a text for keys": ({"partitions": "AL"}, "must be a list of keys, not 'AL'. Write partitions: [AL]."),
    "a text that looks like a range": ({"partitions": "1..7"}, "'1..7' looks like a range: write all"),
    "a key that looks like a range": ({"partitions": ["1..7"]}, "'1..7' looks like a range: write all"),
    "a table that yaml reads as false": ({"also_by": False}, "also_by must be a list of column names, not False"),
    "a metric in a file": ({"metrics": [{"kth_largest": "a"}]}, "have k. Write {kth_largest: spent, k: 3}."),
    "one word for metrics": ({"metrics": "count"}, "Write metrics: [count, {sum: spent}]."),
    "a budget outside of its mapping": ({"rho": 1}, "not have the word 'rho'. Write budget: {epsilon: 1}."),
    "bounds by the mapping": ({"bounds": {"rows": 3, "partitions": "x"}}, "bounds partitions must be a whole number of at least 1, not 'x': give a bound, like 3"),
    "a ranking of nothing": ({"top_partitions": {"by": "people", "k": 3}}, "top_partitions must have by: one of the output columns count"),
    "a ranking of a part": ({"top_partitions": {"by": "count", "k": 1.5}}, "k must be a whole number of at least 1, not 1.5"),
    "a text for true": ({"nonnegative": "true"}, "nonnegative must be true or false, not 'true'"),
    "true for a number": ({"metrics": [{"sum": "a", "clip": True}]}, "clip must be a number, not True"),
    "a share above all": ({"metrics": [{"quantile": "a", "p": 1.5}]}, "p must be above 0 and below 1, not 1.5"),
    "a ranking of none": ({"top_partitions": {"by": "count", "k": 0}}, "k must be a whole number of at least 1, not 0"),
}  # fmt: skip


def with_mapping(given: dict[str, Any]) -> list[str]:
    """Return a call whose flags say all but what a mapping says."""
    flags = {"person": PERSON, "metrics": ["--count"], "partitions": ["--public_partitions=1,2"]}
    flags |= {"input": FILES[:2]}
    words = [word for name, said in flags.items() if name not in given for word in said]
    Path("r.json").write_text(json.dumps(given), encoding="utf-8")
    return [*words, "--partition=day", *ONE, *FILES[2:], "--config", "r.json"]


CALLS: dict[str, tuple[Any, str]] = {**AGGREGATE, **MAPPING}


@pytest.mark.parametrize(("asked", "line"), CALLS.values(), ids=CALLS)
def test_a_wrong_call_is_one_line(asked, line, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.csv").write_text("mine")
    words = with_mapping(asked) if isinstance(asked, dict) else asked
    before = sorted(tmp_path.iterdir())
    assert line in refused(aggregate, *words)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "old.csv").read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("person: a\nperson: b\n", "'person' must stand once in a mapping"),
        ("metrics: [{sum: a, sum: b}]\n", "'sum' must stand once in a mapping"),
        (
            "a: [b\nc: d\n",
            "line 2, column 2: it must be a file of YAML in UTF-8 (while parsing a flow sequence, expected ',' or ']', but got ':')",
        ),
        (
            "person: a\nmetrics: [count]\nbudget: 1\n",
            "a mapping, not 1. Write budget: {epsilon: 1}.",
        ),
        ("public_partitions: [1]\n", "'public_partitions'. Write partitions: [1, 2, 3]."),
        ("[1, 2]\n", "must hold a mapping, as in person: visitor_id"),
        ("person: zo\udceb\n", "--config r.yaml: it must be a file of YAML in UTF-8"),
        ("person: a\nmetrics: [count]\n", "budget must be given: write budget: {epsilon: 1}"),
        (
            "{person: a, partition: b, metrics: [count], budget: {epsilon: 1}}\n",
            "not 0: write budget: {epsilon: 1, delta: 1e-6}, or partitions: [1, 2, 3]",
        ),
    ],
)
def test_a_file_that_describes_no_release_is_one_line(text, line, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
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
def test_what_no_parser_knows_is_an_error_of_every_job(job, tmp_path, monkeypatch, refused):
    """Whole calls, with input that is there: nothing is charged, read or made."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text("visitor,day,minutes,a\n1,1,1,1\n")
    said = refused(job, *WHOLE[job], "--hel")
    assert "error: unrecognized " in said and "--hel" in said
    assert [path.name for path in tmp_path.iterdir()] == ["visits.csv"]


@pytest.mark.parametrize("keys", ["18-24,25-34", "2024-01", "a,1-7"])
def test_keys_that_are_no_range_are_keys(keys):
    words = [*PERSON, "--partition", "day", *ONE, "--count", "--public_partitions", keys]
    assert described(*words).given["partitions"] == keys.split(",")


def test_an_error_is_said_by_its_parts_not_by_its_text():
    error = ParameterError("Sum", "clip", "be above 0, not 'a. b'", "Write clip=9.")
    assert messages.said(error) == "clip must be above 0, not 'a. b': give a number, like 100"
    assert messages.said(ValueError("ReadRows: no file")) == "no file"
    said = messages.said(TypeError("column 'a' is none. Write query='SELECT \"a\" FROM rows'."))
    assert said.endswith("Write --query 'SELECT \"a\" FROM rows'.")
