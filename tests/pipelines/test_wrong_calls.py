"""Wrong calls: one line in the command line's words, a code that is not 0, nothing touched."""

import itertools
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from beam_dp.mechanisms.metrics import REGISTRY
from beam_dp.mechanisms.summaries import worker_limits
from beam_dp.transforms.steps.output_rows import shown_name
from pipelines import (
    aggregate,
    demo,
    ledger,
    preprocess,
    ratio,
    sensitivity,
    shifted_inverse,
    template_metadata,
)
from pipelines.arguments import forms, language, metrics, people

ROOT = Path(__file__).parents[2]
PERSON = ["--person", "visitor"]
OWNERS = ["--person", "from,to"]
DAYS = [*PERSON, "--partition", "day"]
PUBLIC = [*DAYS, "--public_partitions", "1,2,3"]
FILES = ["--input", "visits.csv", "--output", "out.csv"]
ONE = ["--epsilon", "1"]
NAMED = "or name the partitions: --public_partitions 1,2,3"
# What only a Python programmer can make sense of: calls, classes and their parameters.
PYTHON = re.compile(r"\bdp\.|\w=\[|[A-Za-z]\w*\(|\bNone\b|Fraction|Error\b|^\w+: error: [A-Z]\w+: ")


def command(*words: str) -> list[str]:
    return [*PUBLIC, *ONE, *words]


def counted(*words: str) -> list[str]:
    return [*FILES, *command("--count", *words)]


AGGREGATE = {
    "no arguments": ([], "the following arguments are required: --person"),
    "no budget": ([*FILES, *PUBLIC, "--count"], "--epsilon or --rho is required: --epsilon 1 is"),
    "misspelt budget": (
        [*FILES, *PUBLIC, "--count", "--epsilom", "1"],
        "unrecognized option: --epsilom, did you mean --epsilon?",
    ),
    "a budget twice": (counted("--epsilon", "2"), "--epsilon must be given once: leave one of the two"),
    "a budget twice, with =": (counted("--epsilon=1"), "--epsilon must be given once: leave one of the"),
    "a runner twice": (
        counted("--runner=FnApiRunner", "--runner", "FnApiRunner"), "--runner must be given once"
    ),
    "a filter": (counted("--filter", "day=6"), "unrecognized option: --filter; --help lists those of"),
    "rows to keep": (counted("--where=day>6"), "unrecognized option: --where; --help lists those of the"),
    "groups": (counted("--group_by", "day"), "unrecognized option: --group_by; --help lists those of"),
    "fewest people": (counted("--min_people", "20"), "--min_people, did you mean --people?"),
    "the beginning of an option": (counted("--partition_row", "9"), "did you mean --partition_rows?"),
    "the beginning of one of Beam": (
        counted("--direct_num_worker", "2"), "did you mean --direct_num_workers?"
    ),
    "an option with one dash": (counted("-x", "3"), "unrecognized argument: -x"),
    "a word behind a value of Beam": (counted("--runner", "FnApiRunner", "b"), "unrecognized argument: b"),
    "no value of Beam": (counted("--runner"), "argument --runner: expected one argument"),
    "a bound on partitions without any": (
        [*FILES, *PERSON, *ONE, "--count", "--max_partitions", "3"],
        "--bounds partitions needs --partition COLUMN, whose values it counts",
    ),
    "a bound on partitions without any, chosen": (
        [*FILES, *PERSON, *ONE, "--count", "--bounds", "rows=9,partitions=auto"],
        "--bounds partitions needs --partition COLUMN",
    ),
    "keys that look like a range": (
        [*FILES, *DAYS, *ONE, "--count", "--public_partitions", "1-7"],
        "'1-7' looks like a range: write all of them, 1,2,3,4,5,6,7; if '1-7' is the one key, write it in",
    ),
    "keys that look like a long range": (
        [*FILES, *DAYS, *ONE, "--count", "--public_partitions", "2000..2026"],
        "looks like a range: write all of them, 2000,2001,2002,...,2026; if",
    ),
    "a clip of a mean": (
        [*FILES, *command("--mean", "rating", "--clip", "mean_rating=5")],
        "small: where no value can be beyond 5, add --high mean_rating=5; no clip is needed",
    ),
    "a clip of a share": (
        [*FILES, *command("--ratio", "a:person", "--clip", "ratio_a_per_person=5")],
        "--clip: 'ratio_a_per_person' is none of the output columns that have one: there are none",
    ),
    "no output": (["--input", "a.csv", *command("--count")], "arguments are required: --output\n"),
    "no input": (["--output", "b.csv", *command("--count")], "arguments are required: --input\n"),
    "two budgets": (counted("--rho", "1"), "argument --rho: not allowed with argument --epsilon"),
    "quotes of parquet": (
        ["--input", "a.parquet", "--output", "b.csv", *command("--count", "--quotes", "false")],
        "--quotes false must be left out for .parquet files: only CSV has quotes",
    ),
    "no metric": ([*FILES, *command()], "a metric is required: --count, --people_count, --sum"),
    "no files": (command("--count"), "the following arguments are required: --input, --output"),
    "epsilon 0": ([*FILES, *PUBLIC, "--count", "--epsilon", "0"], "--epsilon: must be a number ab"),
    "epsilon nan": ([*FILES, *PUBLIC, "--count", "--epsilon", "nan"], "0, for example 0.5, not 'nan'"),
    "epsilon one": ([*FILES, *PUBLIC, "--count", "--epsilon", "one"], "0, for example 0.5, not 'one'"),
    "epsilon tiny": ([*FILES, *PUBLIC, "--count", "--epsilon", "1e-300"], "--epsilon must be above 0"),
    "rho below 0": ([*FILES, *PUBLIC, "--count", "--rho", "-1"], "--rho: must be a number above 0"),
    "rho tiny": ([*FILES, *PUBLIC, "--count", "--rho", "1e-300"], "--rho must be above 0 (at least"),
    "delta 1": (counted("--delta", "1"), "--delta: must be at least 0 and below 1, for example 1e-6"),
    "delta below 0": (counted("--delta", "-1e-6"), "at least 0 and below 1, for example 1e-6, not '"),
    "a typing error": (counted("--public_partition", "3"), "did you mean --public_partitions?"),
    "an earlier word": (counted("--max_partition", "3"), "did you mean --bounds partitions=?"),
    "a stray word": ([*FILES, *PUBLIC, "2,", *ONE, "--count"], "unrecognized argument: 2,"),
    "a metric twice": (counted("--count"), "two metrics would be the output column 'count'"),
    "one name": (
        [*FILES, *DAYS, *ONE, "--delta", "1e-6", "--sum", "a b", "--sum", "a_b"],
        "output columns must have different names, not ['sum_a_b', 'sum_a_b_high', 'sum_a_b_low'] twi",
    ),
    "a metric of nothing": ([*FILES, *command("--sum", "")], "--sum: must be the name of a column"),
    "no partitions of 0": (counted("--bounds", "partitions=0"), "--bounds: must be partitions, rows_p"),
    "rows below 0": (counted("--bounds", "rows=-1"), "s of at least 1, like partitions=3,rows=20"),
    "rows and a half": (counted("--bounds", "rows_per_partition=1.5"), "s with whole numbers of at least 1"),
    "an unknown weight": (counted("--weight", "cuont=2"), "'cuont' is none of the output columns: c"),
    "a weight alone": (counted("--weight", "count"), "--weight: must be output columns with numbers"),
    "a weight of 0": (counted("--weight", "count=0"), "--weight: must be output columns with numbe"),
    "private without delta": (
        [*FILES, *DAYS, *ONE, "--count", "--bounds", "partitions=3"],
        f"--delta must be above 0 to select partitions privately, not 0: add --delta 1e-6, {NAMED}",
    ),
    "neither a bound nor auto": (counted("--bounds", "partitions=all"), "(or partitions=auto), not 'partitions=all'"),
    "a search of nothing": (counted("--search", "auto"), "--search is for --max, --min, "),
    "a search that no part pays": (
        [*FILES, *command("--max", "a", "--search", "scale_then_choose")],
        "the budget of --search scale_then_choose must have an epsilon and a delta",
    ),
    "a quantile without share": (
        [*FILES, *command("--quantile", "a")], "--quantile: must be COLUMN:P with P above 0 and bel"
    ),
    "a quantile of all": ([*FILES, *command("--quantile", "a:1")], "like minutes:0.9, not 'a:1'"),
    "a quantile of nothing": ([*FILES, *command("--quantile", ":0.5")], "minutes:0.9, not ':0.5'"),
    "quantiles without shares": (
        [*FILES, *command("--quantiles", "a")], "--quantiles: must be COLUMN:P:P... with every P ab"
    ),
    "quantiles of all": ([*FILES, *command("--quantiles", "a:0.5:1")], "not '1'"),
    "a bound of a count": (counted("--low", "count=0"), "--low: 'count' is none of the output colu"),
    "bounds that cross": (
        [*FILES, *command("--max", "a", "--low", "max_a=5", "--high", "max_a=1")],
        "--high must be above low=5, not 1",
    ),
    "the 0th largest": (
        [*FILES, *command("--kth_largest", "a:0")], "--kth_largest: must be COLUMN:K with a whole K"
    ),
    "the half largest": ([*FILES, *command("--kth_largest", "a:1.5")], "minutes:10, not 'a:1.5'"),
    "a median of nothing": ([*FILES, *command("--median", "")], "--median: must be the name of a co"),
    "one name for two quantiles": (
        [*FILES, *command("--quantile", "a:0.1", "--quantile", "a:0.10")],
        "two metrics would be the output column 'quantile_0_1_a'",
    ),
    "a report that is no page": (
        [*FILES, *command("--count", "--report", "released.pdf")],
        "--report must end in .html, not 'released.pdf'",
    ),
    "a report in no folder": (
        [*FILES, *command("--count", "--report", "/proc/none/released.html")],
        "--report must be one that can be written, not '/proc/none/released.html'",
    ),
    "text and number": (
        [*FILES, *command("--distinct_count", "a", "--median", "a")],
        "column 'a' of a CSV file must be read as text",
    ),
    "person and number": (
        [*FILES, *command("--sum", "visitor")], "column 'visitor' of a CSV file must be read as text"
    ),
    "nine owners": (
        [*FILES, "--person", "a,b,c,d,e,f,g,h,i", *ONE, "--count"],
        "--person: must be one column, or 2 to 8 different ones with commas between: from,to, not 'a,b",
    ),
    "one owner twice": (
        [*FILES, "--person", "a,a", *ONE, "--count"], "with commas between: from,to, not 'a,a'"
    ),
    "several owners with limits": (
        [*FILES, *OWNERS, *ONE, "--count", "--bounds", "rows=3"],
        "--bounds must be left out where rows have several owners",
    ),
    "several owners and private partitions": (
        [*FILES, *OWNERS, "--partition", "day", *ONE, "--count", "--delta", "1e-6"],
        "the partitions must be public where rows have several owners: --public_partitions 1,2,3",
    ),
    "a mean of several owners": (
        [*FILES, *OWNERS, *ONE, "--count", "--mean", "a"],
        "a metric of rows with several owners must be --count, --sum, --max, --min, ",
    ),
    "keys of two lengths": (
        [*FILES, *DAYS, *ONE, "--count", "--partition", "hour", "--public_partitions", "1/2,3"],
        "--public_partitions: every key must have one part per --partition column, with / between",
    ),
    "keys too short": (counted("--partition", "hour"), "every key must have one part per --partition"),
    "no key": ([*FILES, *DAYS, *ONE, "--count", "--public_partitions", ""], "--public_partitions must name a key, for exam"),
    "no text": ([*FILES, *DAYS, *ONE, "--count", "--public_partitions", "\udcff"], "--public_partitions: a key must be an int of 64 bits, a str"),
    "no key file": (
        [*FILES, *DAYS, *ONE, "--count", "--public_partitions", "@none.txt"],
        "--public_partitions: cannot read 'none.txt': No such file or directory",
    ),
    "a key file of bytes": (
        [*FILES, *DAYS, *ONE, "--count", "--public_partitions", f"@{sys.executable}"],
        "': it is not UTF-8",
    ),
    "keys without columns": (
        [*FILES, *PERSON, "--public_partitions", "1", *ONE, "--count"],
        "--public_partitions needs --partition COLUMN",
    ),
    "a column twice": (counted("--partition", "day"), "every key must have one part"),
    "a private column twice": (
        [*FILES, *DAYS, "--partition", "day", *ONE, "--count"], "--partition must name each column once"
    ),
    "no column": ([*FILES, *PERSON, "--partition", "a,", *ONE, "--count"], "--partition: must be the"),
    "nobody": ([*FILES, "--person", "", *ONE, "--count"], "--person: must be the name of a column"),
    "a partition named as a metric": (
        [*FILES, *PERSON, "--partition", "count", "--public_partitions", "1", *ONE, "--count"],
        "output columns must have different names, not ['count'] twice: give the column of --part",
    ),
    "an unknown format": (
        ["--input", "a.xml", "--output", "out.csv", *command("--count")],
        "--input must end in one of .parquet, .csv, .csv.gz, .jsonl, .jsonl.gz, the same for all",
    ),
    "an unknown file system": (
        ["--input", "zz://a.csv", "--output", "out.csv", *command("--count")], "zz://a.csv"
    ),
    "an unknown output": (
        ["--input", "a.csv", "--output", "out", *command("--count")],
        "--output must end in .csv, .parquet, .jsonl, not 'out'",
    ),
    "an output that exists": (
        ["--input", "a.csv", "--output", str(ROOT / "tests/pipelines/old.csv"), *command("--count")],
        "old.csv': --overwrite replaces a file",
    ),
    "an output below a file": (
        ["--input", "a.csv", "--output", "old.csv/out.csv", *command("--count")],
        "--output must be one that can be written, not 'old.csv/out.csv': Not a directory. Name a file",
    ),
    "an output below a file, deep": (
        ["--input", "a.csv", "--output", "old.csv/a/b/out.csv", *command("--count")],
        "not 'old.csv/a/b/out.csv': Not a directory. Name a file in a folder that exists, and wh",
    ),
    "an output with a long name": (
        ["--input", "a.csv", "--output", f"{'a' * 300}.csv", *command("--count")],
        "aaaa.csv': File name too long. Name a file in a folder that exists, and wh",
    ),
    "an output in a folder that is not there": (
        ["--input", "a.csv", "--output", "new/out.csv", *command("--count")],
        "not 'new/out.csv': No such file or directory. Name a file in a folder that exists, and wh",
    ),
    "a page in a folder that is not there": (
        counted("--report", "new/page.html"),
        "--report must be one that can be written, not 'new/page.html': No such file or directory.",
    ),
    "an output where nobody can write": (
        ["--input", "a.csv", "--output", "/proc/out.csv", "--overwrite", *command("--count")],
        "--output must be one that can be written, not '/proc/out.csv': No such file or directory. ",
    ),
    "an output in a folder where none can be made": (
        ["--input", "a.csv", "--output", "/proc/new/out.csv", *command("--count")],
        "--output must be one that can be written, not '/proc/new/out.csv': No such file or dir",
    ),
    "a threshold for public keys": (counted("--pre_threshold", "5"), "is for private partitions only"),
    "a threshold of 0": (counted("--pre_threshold", "0"), "--pre_threshold: must be a whole number"),
    "a threshold beyond all": (
        [*FILES, *DAYS, *ONE, "--count", "--delta=1e-6", "--bounds=rows=3", f"--pre_threshold={10**30}"],
        "--pre_threshold must be at most 2^62",
    ),
    "a search without end": (
        [*FILES, *command("--max", "a", "--search", "unbounded")],
        "argument --search: must be one of auto, above_threshold, exponential_mechanism, noisy_bin",
    ),
    "one side and both": (
        counted("--one_sided", "--search", "two_phase"), "--one_sided and --search two_phase exclude"
    ),
    "a side of nothing": ([*FILES, *command("--mean", "a", "--one_sided")], "--one_sided is for --count, "),
    "a method of nothing": (counted("--method", "naive"), "--method is for --ratio"),
    "a method without delta": (
        [*FILES, *command("--ratio", "a:person", "--method", "local_sensitivity")],
        "the --delta of --method local_sensitivity must be above 0",
    ),
    "a sensitivity of nothing": (counted("--sensitivity", "2"), "is for --trimmed_mean and what"),
    "a value of nothing": (counted("--person_value", "max"), "is for --trimmed_mean and what"),
    "a sensitivity of rows": (
        [*FILES, *command("--variance", "a", "--sensitivity", "2")],
        "what python -m pipelines.preprocess releases, as a --variance there",
    ),
    "a person's value for rows": (
        [*FILES, *command("--standard_deviation", "a", "--person_value", "sum")],
        "what python -m pipelines.preprocess releases, as a --variance there",
    ),
    "a rate of any number of rows": (
        [*FILES, *command("--ratio", "a", "--method", "naive")],
        "--bounds rows_per_partition must be given for --ratio by --method naive: add --bounds rows_",
    ),
    "a rate of no value": ([*FILES, *command("--ratio", "a=")], "--ratio: must be COLUMN, or COLUMN=VALUE"),
    "a rate of no column": ([*FILES, *command("--ratio", "=a")], "device=mobile, not '=a'"),
    "a median of people of several owners": (
        [*FILES, *OWNERS, *ONE, "--median", "a"],
        "a metric of rows with several owners must be --count, --sum, --max, --min, ",
    ),
    "a rate of several owners": (
        [*FILES, *OWNERS, *ONE, "--ratio", "a:person"],
        "a metric of rows with several owners must be --count, --sum, --max, --min, ",
    ),
    "a mean of nothing per person": (
        [*FILES, *command("--mean", ":person")], "--mean: must be the name of a column"
    ),
    "a quantile per table": (
        [*FILES, *command("--quantile", "a:0.5:table")], "--quantile: must be COLUMN:P with P above"
    ),
    "half trimmed": (
        [*FILES, *command("--trimmed_mean", "a:0.5")], "--trimmed_mean: must be COLUMN, or COLUMN:SHARE"
    ),
    "a unit of 0": ([*FILES, *command("--sum", "a", "--unit", "a=0")], "--unit: must be columns with num"),
    "a unit too small": ([*FILES, *command("--sum", "a", "--unit", "a=1e-99")], "from 1e-50 to 1e50"),
    "a unit of nothing": (
        counted("--unit", "a=1"), "--unit: 'a' is none of the columns whose numbers are released: there"
    ),
    "a unit of items": (
        [*FILES, *command("--distinct_count", "b", "--sum", "a", "--unit", "b=1")],
        "--unit: 'b' is none of the columns whose numbers are released: a",
    ),
    "candidates of nothing": (
        [*FILES, *command("--mean", "a", "--candidates", "mean_a=0:1:1")],
        "--candidates: 'mean_a' is none of the output columns that can have them: there are none",
    ),
    "candidates without a name": (
        [*FILES, *command("--max", "a", "--candidates", "0:60:1")],
        "--candidates: must be an output column and its candidates, like max_minutes=0:1440:1, not",
    ),
    "candidates twice": (
        [*FILES, *command("--max", "a", *["--candidates", "max_a=0:60:1"] * 2)],
        "--candidates must be given once for an output column",
    ),
    "too many clips": (
        [*FILES, *command("--sum", "a", "--candidates", "sum_a=0:100000:1")],
        "--candidates of what has a clip must be at most 4096, not 100001: take a coarser grid",
    ),
    "a grid from 0": (
        [*FILES, *command("--max", "a", "--candidates", "max_a=0:60:x2")],
        "must be LOW:HIGH:STEP with LOW below HIGH",
    ),
    "a partition of none": (counted("--partition_rows", "0"), "--partition_rows: must be a whole num"),
    "a partition of too many": (
        counted("--distinct_count", "a", "--partition_rows", str(10**8)),
        f"--partition_rows must be at most {worker_limits.VALUES} for --distinct_count (output column distinct_a), n",
    ),
    "a budget for too many people": (
        [*FILES, *PUBLIC, "--epsilon", "1e-6", "--max", "a", "--search", "two_phase"],
        "the budget must be larger: the search for output column max_a would look at the ",
    ),
    "a budget for too many rows": (
        [*FILES, *PUBLIC, "--rho", "1e-12", "--sum_of_squares", "a"],
        "--rho or its part of --weight, give fewer --candidates or a smaller --bounds partitions=N, or --one_sided",
    ),
    "output is input": (
        ["--input", "a.csv", "--output", "a.csv", *command("--count")],
        "--output must name another file than --input",
    ),
    "an unsound runner": (counted("--runner", "BundleBasedDirectRunner"), "--runner must be one of"),
    "a wrong option of Beam": (counted("--direct_num_workers", "x"), "--direct_num_workers: invalid"),
}  # fmt: skip
MOST = ["--max", "minutes"]
SHIFTED_INVERSE = {
    "no candidates": ([*FILES, *PUBLIC, *ONE, *MOST], "arguments are required: --candidates"),
    "candidates from above": ([*PUBLIC, *ONE, *MOST, "--candidates", "60:0:1"], "LOW below HIGH"),
    "a budget twice": (
        [*FILES, *PUBLIC, *ONE, *ONE, *MOST, "--candidates", "0:60:1"], "--epsilon must be given once"
    ),
    "a bound on partitions without any": (
        [*FILES, *PERSON, *ONE, *MOST, "--candidates", "0:60:1", "--bounds", "partitions=3"],
        "--bounds partitions needs --partition COLUMN",
    ),
    "two numbers": ([*PUBLIC, *ONE, *MOST, "--candidates", "0:60"], "must be LOW:HIGH:STEP with LOW"),
    "no step": ([*PUBLIC, *ONE, *MOST, "--candidates", "0:60:0"], "a STEP above 0, like 0:1440:1"),
    "words": ([*PUBLIC, *ONE, *MOST, "--candidates", "a:b:c"], "--candidates: must be LOW:HIGH:STEP"),
    "private partitions": (
        [*FILES, *DAYS, *ONE, *MOST, "--candidates", "0:60:1"],
        "--partition and --public_partitions must be given together",
    ),
    "keys without columns": (
        [*FILES, *PERSON, "--public_partitions", "1", *ONE, *MOST, "--candidates", "0:60:1"],
        "--public_partitions needs --partition COLUMN",
    ),
    "too small a budget": (
        [*FILES, *PUBLIC, "--epsilon", "1e-9", *MOST, "--candidates", "-60:60:1"],
        "the number of people that a search looks at must be at most ",
    ),
    "the name between the steps": (
        [*FILES, *PERSON, "--partition=profile", "--public_partitions=1", *ONE, *MOST,
         "--candidates=0:60:1"],
        "--partition must not have a column named 'profile'",
    ),
    "several owners with limits": (
        [*FILES, *OWNERS, *ONE, *MOST, "--candidates=0:60:1", "--bounds", "rows=3"],
        "must be left out where rows have several owners",
    ),
    "squares of several owners": (
        [*FILES, *OWNERS, *ONE, "--sum_of_squares", "a", "--candidates=0:60:1"],
        "a metric of rows with several owners must be --count, --sum, --max, --min, ",
    ),
    "a search that needs delta": (
        [*FILES, *PUBLIC, *ONE, *MOST, "--candidates=0:60:1", "--search", "scale_then_choose"],
        "the budget of --search scale_then_choose must have an epsilon and a delta",
    ),
    "a median": ([*FILES, *PUBLIC, *ONE, "--median", "a", "--candidates=0:60:1"], "option: --median; --help lists"),
    "a partition of too many": (
        [*FILES, *PUBLIC, *ONE, "--kth_largest", "a:2", "--candidates=0:60:1", "--partition_rows=99999999"],
        f"--partition_rows must be at most {worker_limits.LINES} for --kth_largest (output column largest_2_a), not",
    ),
    "an output below a file": (
        ["--input=a.csv", "--output=old.csv/out.csv", *PUBLIC, *ONE, *MOST, "--candidates=0:60:1"],
        "--output must be one that can be written, not 'old.csv/out.csv': Not a directory. Name a file",
    ),
    "an unknown search": (
        [*FILES, *PUBLIC, *ONE, *MOST, "--candidates", "0:60:1", "--search", "best"],
        "--search: must be one of auto, above_threshold, exponential_mechanism, noisy_binary_search, scale_then_choose, not 'best'",
    ),
}  # fmt: skip
CALLS = [
    *(("aggregate", name, *call) for name, call in AGGREGATE.items()),
    *(("shifted_inverse", name, *call) for name, call in SHIFTED_INVERSE.items()),
]
JOBS = {"aggregate": aggregate, "shifted_inverse": shifted_inverse}


@pytest.mark.parametrize(
    ("job", "words", "line"),
    [(job, words, line) for job, _, words, line in CALLS],
    ids=[f"{job}: {name}" for job, name, *_ in CALLS],
)
def test_a_wrong_call_is_one_line_about_options(
    job: str,
    words: list[str],
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.csv").write_text("mine")
    old = str(ROOT / "tests/pipelines/old.csv")
    with pytest.raises(SystemExit) as stopped:
        JOBS[job].main([str(tmp_path / "old.csv") if word == old else word for word in words])
    said = capfd.readouterr()
    assert stopped.value.code == 2
    assert said.out == "" and said.err.count("\n") == 1
    start = f"python -m pipelines.{job}: error: "
    assert said.err.startswith(start) and line in said.err
    assert not PYTHON.search(said.err.removeprefix(start)), said.err
    assert [path.name for path in tmp_path.iterdir()] == ["old.csv"]
    assert (tmp_path / "old.csv").read_text() == "mine"


HIST = ["--function", "math:hypot", "--bins", "2", "--people", "2", "--output", "out.csv"]
WHOLE = {
    aggregate: [*FILES, *command("--count", "--ledger=l.jsonl", "--total_epsilon=3")],
    ratio: [*FILES, *command("--column", "a", "--per=person", "--ledger=l.jsonl", "--total_epsilon=3")],
    preprocess: [*FILES, *command("--variance", "a", "--ledger=l.jsonl", "--total_epsilon=3")],
    shifted_inverse: [*FILES, *command(*MOST, "--candidates=0:9:1", "--ledger=l.jsonl")],
    sensitivity: HIST,
    ledger: ["visits.ledger.jsonl"],
    demo: [],
    template_metadata: [],
}  # fmt: skip
UNKNOWN = [["--filter", "day=6"], ["--hel"], ["--versio"]]


@pytest.mark.parametrize("job", WHOLE, ids=lambda job: job.__name__)
@pytest.mark.parametrize("words", UNKNOWN, ids=" ".join)
def test_what_no_parser_knows_is_an_error_of_every_job(
    job: Any,
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Whole calls, with input that is there: nothing is charged, read or made."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text("visitor,day,minutes,a\n1,1,1,1\n")
    with pytest.raises(SystemExit) as stopped:
        job.main([*WHOLE[job], *words])
    said = capfd.readouterr()
    assert stopped.value.code == 2 and said.out == "" and said.err.count("\n") == 1
    assert f"error: unrecognized option: {words[0]}" in said.err
    assert words != ["--hel"] or "did you mean --help?" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["visits.csv"]


def test_keys_that_only_resemble_a_range_are_keys(tmp_path: Path) -> None:
    (tmp_path / "keys.txt").write_text("1-7\n")
    for text in ("2024-12", "2024-01", "7-7", "18-24,25-34", "a-b", "-7", f"@{tmp_path}/keys.txt"):
        options, _ = aggregate.parser().read([*DAYS, *ONE, f"--public_partitions={text}"])
        keys = people.public_partitions(options)
        assert keys is not None and len(keys.keys) == text.count(",") + 1


WORDS_OF = {
    "": [], "COLUMN": ["a"], "COLUMN:K": ["a:3"], "COLUMN:P": ["a:0.9"], "COLUMN:P:P...": ["a:0.2:0.5"],
    "COLUMN:EDGE:EDGE...": ["a:0:5:10"], "COLUMN[:PEOPLE]": ["a"], "COLUMN[:RELAXATION]": ["a"],
    "COLUMN[:SHARE]": ["a"], "COLUMN=MODULE:NAME": ["a=json:dumps"], "COLUMN[=VALUE]": ["a"],
}  # fmt: skip
OPTIONS = [
    "--clip {}=5", "--low {}=1", "--high {}=5", "--candidates {}=1:9:1", "--unit a=0.5", "--lowest a=1",
    "--one_sided", "--search=auto", "--search=two_phase", "--method=naive", "--own_count",
    "--person_value=max", "--last_by=b", "--sensitivity=3",
]  # fmt: skip


@pytest.mark.parametrize("name", metrics.asked_by_flag(lambda kind: True))
def test_no_option_of_a_metric_is_answered_in_python(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    command_of = REGISTRY[name].command
    assert command_of is not None
    asked = [f"--{name}", *WORDS_OF[forms.plain_form(command_of.form)]]
    call = [*PERSON, *ONE, "--bounds", "rows_per_partition=4", *asked, "--plan"]
    [metric] = aggregate.parser().read(call)[0].metrics
    refused = 0
    for option in OPTIONS:
        try:
            assert aggregate.main([*call, *option.format(shown_name(metric)).split()]) == 0
        except SystemExit as stopped:
            assert stopped.code == 2
            refused += 1
        said = capfd.readouterr().err
        assert said.count("\n") <= 1 and "__init__" not in said
        assert not PYTHON.search(said.removeprefix("python -m pipelines.aggregate: error: ")), said
    assert refused >= 5


BUDGETS = [
    ["--epsilon", e, "--delta", d] for e in ("1e-14", "1", "1e9") for d in ("0", "1e-300", "0.9")
]
BUDGETS += [["--rho", r, "--delta", d] for r in ("1e-30", "1", "1e9") for d in ("0", "0.9")]
GROUPS = [
    PERSON, OWNERS, PUBLIC, DAYS, [*DAYS, "--bounds", "partitions=1"], [*DAYS, "--bounds", f"partitions={10**20}"]
]  # fmt: skip
ASKED = [
    ["--count"],
    ["--sum", "a", "--mean", "a", "--one_sided"],
    ["--max", "class", "--min", "0"],
    ["--kth_largest", "a:9", "--median", "a", "--distinct_count", "b", "--search", "auto"],
    ["--max_frequency", "a", "--sum_of_squares", "b", "--quantile", "c:1e-9"],
    [
        "--variance",
        "a",
        "--trimmed_mean",
        "a:0.2",
        "--standard_deviation",
        "a",
        "--unit",
        "a=1e-50",
    ],
    [
        "--ratio",
        "a:person",
        "--ratio",
        "a=b:person",
        "--median",
        "c:row",
        "--sum_of_squares",
        "b:9",
    ],
]


@pytest.mark.sampled(21)
@pytest.mark.parametrize("budget", BUDGETS, ids=" ".join)
def test_no_call_at_the_edges_is_answered_in_python(
    budget: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    for group, asked in itertools.product(GROUPS, ASKED):
        try:
            assert aggregate.main([*group, *budget, *asked, "--plan"]) == 0
        except SystemExit as stopped:
            assert stopped.code == 2
        said = capfd.readouterr().err
        assert said.count("\n") <= 1
        assert not PYTHON.search(said.removeprefix("python -m pipelines.aggregate: error: ")), said


@pytest.mark.parametrize(
    "message",
    [
        "PrivateAggregate: bounds must limit. Write bounds=dp.ContributionBounds(partitions=3).",
        "Budget: delta must be at least 0 and below 1, not Fraction(1, 1). Write delta=1e-6.",
        "WriteRows: path must name a new file. Write overwrite=True to replace it. None: no limit.",
    ],
)
def test_the_test_notices_python(message: str) -> None:
    assert PYTHON.search(message)


def test_a_message_without_translation_stays() -> None:
    assert language.translated("column 'a' must hold numbers.") == "column 'a' must hold numbers."
    assert language.translated("ReadRows: rule.") == "--input: rule."


def test_a_process_says_one_line_and_fails() -> None:
    job = [sys.executable, "-m", "pipelines.aggregate", *FILES, *command("--cuont")]
    done = subprocess.run(job, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == (
        "python -m pipelines.aggregate: error: unrecognized option: --cuont, did you mean --count?\n"
    )
