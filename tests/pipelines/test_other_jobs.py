"""Tests of `pipelines.ratio`, `pipelines.preprocess` and `pipelines.sensitivity`."""

import gzip
import sys
import types
from pathlib import Path

import pytest

import beam_dp as dp
from pipelines import aggregate, preprocess, ratio, sensitivity, shifted_inverse
from tests.row_files import read

RUN = ["--runner", "FnApiRunner"]


@pytest.fixture
def clicks(tmp_path: Path) -> str:
    """500 people with three rows each, of which every fourth has clicked."""
    path = tmp_path / "clicks.csv"
    lines = [f"{n % 500},{'de' if n % 2 else 'fr'},{int(n % 4 == 0)},{n % 10}" for n in range(1500)]
    path.write_text("\n".join(["user,country,clicked,score", *lines]) + "\n")
    return str(path)


@pytest.mark.parametrize(("per", "bound"), [("row", "3"), ("person", None)])
def test_rates_per_country(clicks, released, per, bound):
    """At epsilon 10,000 noise of a row or more has a chance far below e^-100."""
    limits = ["--bounds", f"rows_per_partition={bound}"] if bound else []
    words = ["--person", "user", "--partition", "country", "--epsilon", "10000"]
    asked = ["--public_partitions", "de,fr", "--column", "clicked", "--per", per, *limits]
    name = "ratio_clicked" if per == "row" else "ratio_clicked_per_person"
    found = released(ratio, *words, *asked, source=clicks)
    rates = {row["country"]: float(row[name]) for row in found}
    expected = {"de": 0.0, "fr": 0.5} if per == "row" else {"de": 0.0, "fr": rates["fr"]}
    assert rates == pytest.approx(expected, abs=0.01) and 0 < rates["fr"] < 1


def test_a_rate_of_rows_needs_a_bound_for_bounded_people_only(refused):
    words = ["--person", "user", "--column", "clicked", "--epsilon", "1", "--plan"]
    assert ratio.main(words) == 0
    said = refused(ratio, *words, "--method", "kulesza_suresh_wang")
    assert "give a bound, like 10, or count per person" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--delta", "1e-6", "--bounds", "partitions=1"],
            'neighbours must be "add-remove" where',
        ),
        (["--public_partitions", "de,fr"], ""),
        (
            ["--public_partitions", "de,fr", "--method", "local_sensitivity"],
            "the delta of method local_sensitivity must be above 0",
        ),
    ],
)
def test_other_rows_of_a_person_can_be_hidden_too(words, message, refused):
    asked = ["--person", "user", "--partition", "country", "--column", "clicked", "--plan"]
    asked += ["--per", "person", "--neighbours", "substitution", "--epsilon", "1", *words]
    if not message:
        assert ratio.main(asked) == 0
        return
    assert message in refused(ratio, *asked)


def test_a_statistic_is_required_and_a_plan_reads_nothing(refused, capfd):
    words = ["--person", "user", "--epsilon", "1"]
    assert "metrics must be given" in refused(preprocess, *words)
    assert preprocess.main([*words, "--variance", "x", "--sensitivity", "2", "--plan"]) == 0
    assert "given sensitivity" in capfd.readouterr().out


def test_the_job_of_shares_and_that_of_all_metrics_release_them_alike(capsys):
    words = ["--person", "p", "--epsilon", "1", "--plan"]
    assert ratio.main([*words, "--column", "x", "--method", "clip"]) == 0
    plan = capsys.readouterr().out
    assert aggregate.main([*words, "--ratio", "x"]) == 0
    assert capsys.readouterr().out == plan and "one draw for 2 numbers" in plan


@pytest.mark.parametrize("value", [6, "6.0", "yes"])
def test_a_share_has_one_name_in_flags_in_files_and_in_python(value, config, capsys):
    words = ["--person", "p", "--epsilon", "1", "--plan"]
    name = "ratio_x_yes" if value == "yes" else "ratio_x_6"
    assert dp.Ratio("x", equals=value).output == name
    assert aggregate.main([*words, "--ratio", f"x={value}"]) == 0
    plan = capsys.readouterr().out
    assert aggregate.main([*words, *config(metrics=[{"ratio": "x", "equals": value}])]) == 0
    assert capsys.readouterr().out == plan and name in plan


@pytest.fixture
def functions(monkeypatch) -> str:
    """A module with functions of histograms that can be imported by name."""
    module = types.ModuleType("functions_of_a_user")
    module.total = lambda x: int(x.sum())
    module.mean = lambda x: int(x[1]) / int(x.sum())
    monkeypatch.setitem(sys.modules, "functions_of_a_user", module)
    return "functions_of_a_user"


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("claimed", "code"), [("1", 0), ("0.5", 1), ("0", 1), (None, 0)])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_the_claim_is_checked(functions, tmp_path, capsys, claimed, code, kind):
    out = tmp_path / f"audit.{kind}"
    words = ["--function", f"{functions}:total", "--bins", "2", "--people", "2"]
    claim = ["--claimed", claimed] if claimed else []
    assert sensitivity.main([*words, "--output", str(out), *claim, *RUN]) == code
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "largest: 1, at 2 0"
    assert len(said) == 1 + bool(claimed) and ("is refuted" in said[-1]) == bool(code)
    if kind == "csv":
        assert len(read(out)) == 6 and {row["sensitivity"] for row in read(out)} == {"1.0"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--function", "no_such_module:f"], "must be MODULE:NAME"),
        (["--function", "os:no_such_name"], "must be MODULE:NAME"),
        (["--function", "os:getcwd", "--p", "0.5"], "must be 1 to inf"),
        (["--function", "os:getcwd", "--bins", "40", "--people", "40"], "histograms, more than"),
    ],
)
def test_wrong_audits_are_refused_in_one_line(words, message, tmp_path, refused):
    small = [] if "--bins" in words else ["--bins", "2", "--people", "2"]
    assert message in refused(sensitivity, *small, "--output", str(tmp_path / "x.csv"), *words)


def helped(job):
    """Return the help text of a job, without line breaks."""
    return " ".join(job.parser().format_help().split())


FAILING = {
    aggregate: ["--person", "user", "--sum", "score"],
    preprocess: ["--person", "user", "--variance", "score"],
    ratio: ["--person", "user", "--column", "score", "--per", "person"],
    shifted_inverse: ["--person", "user", "--max", "score", "--candidates", "0:1:1"],
    sensitivity: ["--bins", "2", "--people", "2"],
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("job", FAILING, ids=lambda job: job.__name__)
def test_every_job_shows_the_error_of_a_run_on_purpose(job, functions, tmp_path, capfd):
    damaged = tmp_path / "damaged.csv.gz"
    rows = b"".join(b"%d,%d\n" % (row, row % 7) for row in range(50_000))
    damaged.write_bytes(gzip.compress(b"user,score\n" + rows)[:-9])  # at its end
    words = [*FAILING[job], "--output", str(tmp_path / "x.csv"), *RUN]
    if job is sensitivity:
        words += ["--function", f"{functions}:mean"]
    else:
        words += ["--input", str(damaged), "--epsilon", "1"]
    for shown in ([], ["--show_errors"]):
        with pytest.raises(SystemExit) as left:
            job.main([*words, *shown])
        said = capfd.readouterr().err
        assert str(left.value).startswith("error: ") and "\n" not in str(left.value)
        assert ("Traceback (most recent call last)" in said) == bool(shown)
    assert "--show_errors show the error of a run that fails" in helped(job)
    assert "IT MAY QUOTE DATA" in helped(job)
