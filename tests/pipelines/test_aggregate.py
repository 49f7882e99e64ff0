"""The main job: its command line, its wrong calls, its files, and what it never says."""

import argparse
import dataclasses
import gzip
import inspect
import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    PipelineOptions,
    StandardOptions,
)

import beam_dp as dp
from beam_dp.mechanisms.metrics import base as metric_kinds
from pipelines import aggregate, description
from tests.pipelines.described import described
from tests.row_files import write

RUN = ["--runner", "FnApiRunner"]
PUBLIC = ["--person", "visitor", "--partition", "day", "--public_partitions", "1,2,3"]
CANARY = "canary-81723"
WORD = "canary-of-no-digit"
Released = Callable[..., list[dict[str, str]]]


def command(*words: str) -> list[str]:
    return [*PUBLIC, "--epsilon", "1", *words]


def test_the_job_releases_a_table_and_says_what_it_cost(released, capfd):
    asked = ["--count", "--sum", "spent", "--max", "minutes", "--mean", "spent"]
    found = released(aggregate, *command(*asked))
    names = ["count", "sum_spent", "max_minutes", "mean_spent"]
    columns = [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
    assert [list(row) for row in found] == [["day", *columns]] * 3
    said = capfd.readouterr()
    lines = said.out.splitlines()
    assert lines[0].split() == ["day", *names]
    assert [line.split()[0] for line in lines[1:4]] == ["1", "2", "3"]
    assert lines[-1].startswith("in all: epsilon 1")
    assert said.err == "Reading and bounding\nWriting\n"


def test_plan_reads_no_row_and_writes_nothing(tmp_path, capfd):
    words = command("--count", "--sum", "spent", "--plan")
    files = ["--input", str(tmp_path / "none.csv"), "--output", str(tmp_path / "out.csv")]
    assert aggregate.main([*words, *files]) == 0
    with_files = capfd.readouterr().out
    assert aggregate.main(words) == 0
    assert capfd.readouterr().out == with_files
    assert "sum_spent" in with_files and "in all: epsilon 1" in with_files
    assert list(tmp_path.iterdir()) == []


def test_nothing_of_the_data_is_said(tmp_path, capfd, caplog):
    bad: list[dict[str, object]] = [
        {"visitor": CANARY, "day": CANARY, "minutes": WORD, "spent": WORD},
        {"visitor": CANARY * 1000, "day": "", "minutes": "", "spent": "1e99999"},
    ]
    source = write(tmp_path / "in.csv", bad * 10)
    private = ["--person", "visitor", "--partition", "day", "--bounds", "partitions=1"]
    # A person alone is named with probability at most delta = 1e-12.
    budget = ["--epsilon", "1", "--delta", "1e-12"]
    asked = ["--count", "--sum", "spent", "--max", "minutes"]
    files = ["--input", source, "--output", str(tmp_path / "out.csv")]
    assert aggregate.main([*files, *private, *budget, *asked, *RUN]) == 0
    files[1] = write(tmp_path / "in.parquet", bad * 10)
    with pytest.raises(SystemExit) as stopped:  # visitors are no numbers
        aggregate.main([*files, "--overwrite", *private, *budget, "--max", "visitor", *RUN])
    said = capfd.readouterr()
    assert stopped.value.code == 2 and "error: column 'visitor' must hold numbers" in said.err
    files[1] = str(tmp_path / "in.jsonl.gz")
    lines = "".join(f"{json.dumps({**bad[0], 'row': row})}\n" for row in range(20_000))
    Path(files[1]).write_bytes(gzip.compress(lines.encode())[:-9])
    words = [*files, "--overwrite", *private, *budget, *asked, *RUN]
    with pytest.raises(SystemExit) as failed:  # the file is damaged at its end: the run fails
        aggregate.main(words)
    assert str(failed.value.code).endswith("it cannot be read")
    further = capfd.readouterr()
    written = (tmp_path / "out.csv").read_text()
    texts = (said.out, said.err, further.out, further.err, caplog.text, str(failed.value.code))
    for text in (*texts, written):
        assert CANARY not in text and WORD not in text
    with pytest.raises(SystemExit) as shown:
        aggregate.main([*words, "--show_errors"])
    assert shown.value.code == failed.value.code and "\n" not in str(shown.value.code)
    assert "Traceback (most recent call last)" in capfd.readouterr().err


def test_an_output_or_a_page_that_exists_is_kept_unless_told(visits, tmp_path, refused):
    out, page = tmp_path / "out.csv", tmp_path / "page.html"
    page.write_text("mine")
    files = ["--input", visits, "--output", str(out), "--report", str(page)]
    words = command(*files, "--count", *RUN)
    said = refused(aggregate, *words)
    assert f"report must name a new file, not '{page}': name another, or write --overwrite" in said
    assert not out.exists()
    out.write_text("mine")
    refused(aggregate, *words[: words.index("--report")], "--count", *RUN)
    assert out.read_text() == page.read_text() == "mine"
    assert aggregate.main([*words, "--overwrite"]) == 0
    assert out.read_text().startswith("day,count,count_low,count_high")
    assert "<html" in page.read_text(encoding="utf-8")


def parsed(*words: str) -> dp.PrivateAggregate:
    return described(*command(*words)).release


def test_flags_and_a_file_describe_one_release(tmp_path):
    flags = ["--sum", "spent,clip=100,weight=3", "--quantile", "age,p=0.9,per=person"]
    limits = ["--bounds", "partitions=2,rows_per_partition=5,rows=7"]
    limits += ["--also_by", "store", "--also_by", "shop,day", "--totals", "apart"]
    for rule in ("beyond 25%", "sum_spent_low < 100", "sum_spent<1.5"):
        limits += ["--suppress", rule]
    by_flags = described(*command(*flags, "--delta", "1e-6", *limits, "--nonnegative"))
    written = tmp_path / "release.yaml"
    written.write_text(
        "person: visitor\npartition: [day]\npartitions: [1, 2, 3]\n"
        "metrics:\n- {sum: spent, clip: 100, weight: 3}\n- {quantile: age, p: 0.9, per: person}\n"
        "budget: {epsilon: 1, delta: 1e-6}\nbounds: {partitions: 2, rows_per_partition: 5, rows: 7}\n"
        "suppress: {beyond: 0.25, below: {sum_spent_low: 100, sum_spent: 1.5}}\nnonnegative: true\n"
        "also_by: [store, [shop, day]]\ntotals: apart\n"
    )
    by_file = described("--config", str(written))
    assert by_flags.given.keys() == by_file.given.keys()
    assert by_flags.given["also_by"] == by_file.given["also_by"]
    one, other = by_flags.release, by_file.release
    assert one.bounds == dp.ContributionBounds(2, 5, 7) and one.metrics[0].weight == 3
    fields = [field.name for field in dataclasses.fields(dp.PrivateAggregate)]
    assert all(
        getattr(one, name) == getattr(other, name) for name in fields if name != "partitions"
    )
    assert one.partitions.keys == other.partitions.keys and str(one.plan()) == str(other.plan())


def test_a_part_of_a_description_is_the_same_word_in_the_api():
    """What is left over belongs to jobs alone: files, and who pays."""
    called = [
        dp.PrivateAggregate,
        dp.PrivateAggregate.plan,
        dp.ReadRows,
        dp.CsvFormat,
        dp.WriteRows,
    ]
    called += [dp.Released.report, dp.PrivateTables]
    parameters = {name for each in called for name in inspect.signature(each).parameters}
    words = {*description.KEYS} - parameters
    assert words == {"input", "output", "report", "query", "select", "top_partitions", "ledger"}
    assert {"Rows", "Ledger", "TopPartitions"} <= set(dp.__all__)


def test_help_fits_two_screens():
    lines = aggregate.parser().format_help().splitlines()
    assert len(lines) <= 48 and max(map(len, lines)) <= 110
    assert "show the error of a run that fails: IT MAY QUOTE DATA" in " ".join(
        map(str.strip, lines)
    )


def test_the_bound_on_partitions_is_chosen_where_no_option_gives_it():
    automatic = dp.ContributionBounds("auto")
    assert parsed("--count").bounds == automatic
    assert parsed("--count", "--bounds", "partitions=auto").bounds == automatic
    rows = parsed("--count", "--bounds", "rows=7").bounds
    assert rows == dp.ContributionBounds("auto", None, 7)
    plan = str(parsed("--max", "spent").plan())
    assert "partitions per person" in plan and " epsilon 0.08 " in plan
    assert "partitions per person" not in str(parsed("--count").plan())


FORMS: dict[str, metric_kinds.Metric] = {
    "--quantile b:a,p=0.5,per=person": dp.Quantile("b:a", Fraction(1, 2), per="person"),
    "--quantiles a,shares=0.9,0.5": dp.Quantiles("a", [0.5, 0.9]),
    "--sum a,clip=1e3,weight=0.5,name=b": dp.Sum("a", clip=1000, weight=Fraction(1, 2), name="b"),
    "--max a,low=0,high=9": dp.Max("a", low=0, high=9),
    "--max a,candidates=0..9..1,search=auto": dp.Max(
        "a", candidates=dp.Candidates.linear(0, 9, 1), search="auto"
    ),
    "--mean a,own_count=true": dp.Mean("a", own_count=True),
    "--ratio a,equals=b=c:d": dp.Ratio("a", equals="b=c:d"),
    "--distinct_count a,b": dp.DistinctCount("a,b"),
    "--histogram age,edges=-inf,0..1..0.5,7": dp.Histogram("age", [-math.inf, 0, 0.5, 1, 7]),
    "--people_count": dp.PeopleCount(),
}


@pytest.mark.parametrize("words", FORMS)
def test_a_flag_takes_every_option_of_its_metric(words):
    assert parsed(*words.split(), "--bounds", "rows_per_partition=3").metrics == (FORMS[words],)


@pytest.mark.parametrize("value", [6, "6.0", "yes"])
def test_a_share_has_one_name_in_flags_in_files_and_in_python(value, config):
    name = "ratio_x_yes" if value == "yes" else "ratio_x_6"
    words = ["--person", "p", "--epsilon", "1"]
    by_flag = described(*words, "--ratio", f"x,equals={value}").release
    by_file = described(*words, *config(metrics=[{"ratio": "x", "equals": value}])).release
    assert str(by_flag.plan()) == str(by_file.plan())
    for metric in (*by_flag.metrics, *by_file.metrics, dp.Ratio("x", equals=value)):
        assert metric.output == name


@pytest.mark.parametrize(
    ("text", "columns", "keys"),
    [
        ("1, 02", 1, (("1",), ("02",))),
        ("a,b/c", 1, (("a",), ("b/c",))),
        ("1/a,-2/b", 2, ((1, "a"), (-2, "b"))),
    ],
)
def test_public_keys_have_the_type_that_all_of_a_column_have(text, columns, keys):
    words = ["--person", "p", "--partition", ",".join("abc"[:columns]), "--epsilon", "1"]
    found = described(*words, "--count", "--public_partitions", text).release.partitions
    assert found is not None and tuple(found.keys) == keys


def test_every_option_of_beam_is_taken_and_none_is_ours():
    parsers: list[argparse.ArgumentParser] = []
    PipelineOptions([]).get_all_options(add_extra_args_fn=parsers.append)
    beams = {flag for action in parsers[0]._actions for flag in action.option_strings}
    ours = {flag for action in aggregate.parser()._actions for flag in action.option_strings}
    assert len(beams) > 150 and beams & ours == {"-h", "--help"}
    words = []
    for action in parsers[0]._actions:
        plain = action.type in (None, str) and type(action).__module__ == "argparse"
        number = "1" if action.type in (int, float) else "{}"
        word = next(iter(action.choices or ()), "a" if plain else number)
        for flag in sorted({*action.option_strings} - {"-h", "--help"})[:1]:
            words.append(flag if action.nargs == 0 else f"{flag}={word}")
    aggregate.parser().read(command("--count", *words))
    assert len(words) > 120
    _, options = aggregate.parser().read(command("--count", "--runner", "X", "--region=y"))
    assert options.view_as(StandardOptions).runner == "X"
    assert options.view_as(GoogleCloudOptions).region == "y"


def test_what_only_a_job_server_knows_stands_behind_a_lone_sign():
    _, options = aggregate.parser().read(command("--count", "--", "--objectReuse", "true"))
    assert options.get_all_options(retain_unknown_options=True)["objectReuse"] == "true"
