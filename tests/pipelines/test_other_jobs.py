"""Tests of `pipelines.ratio` and `pipelines.preprocess`."""

import gzip
from pathlib import Path

import pytest

import beam_dp as dp
from pipelines import aggregate, preprocess, ratio, shifted_inverse

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
    asked = ["--public_partitions", "de,fr", "--ratio", f"clicked,per={per}", *limits]
    name = "ratio_clicked" if per == "row" else "ratio_clicked_per_person"
    found = released(ratio, *words, *asked, source=clicks)
    rates = {row["country"]: float(row[name]) for row in found}
    expected = {"de": 0.0, "fr": 0.5} if per == "row" else {"de": 0.0, "fr": rates["fr"]}
    assert rates == pytest.approx(expected, abs=0.01) and 0 < rates["fr"] < 1


def test_a_statistic_is_required_and_a_plan_reads_nothing(refused, capfd):
    words = ["--person", "user", "--epsilon", "1"]
    assert "metrics must be given" in refused(preprocess, *words)
    assert preprocess.main([*words, "--preprocessed", "x,of=variance,sensitivity=2", "--plan"]) == 0
    assert "given sensitivity" in capfd.readouterr().out


def test_the_job_of_shares_and_that_of_all_metrics_release_them_alike(capsys):
    words = ["--person", "p", "--epsilon", "1", "--plan"]
    assert ratio.main([*words, "--ratio", "x,method=clip"]) == 0
    plan = capsys.readouterr().out
    assert aggregate.main([*words, "--ratio", "x"]) == 0
    assert capsys.readouterr().out == plan and "joint noise for 2 numbers" in plan


@pytest.mark.parametrize("value", [6, "6.0", "yes"])
def test_a_share_has_one_name_in_flags_in_files_and_in_python(value, config, capsys):
    words = ["--person", "p", "--epsilon", "1", "--plan"]
    name = "ratio_x_yes" if value == "yes" else "ratio_x_6"
    assert dp.Ratio("x", equals=value).output == name
    assert aggregate.main([*words, "--ratio", f"x,equals={value}"]) == 0
    plan = capsys.readouterr().out
    assert aggregate.main([*words, *config(metrics=[{"ratio": "x", "equals": value}])]) == 0
    assert capsys.readouterr().out == plan and name in plan


def helped(job):
    """Return the help text of a job, without line breaks."""
    return " ".join(job.parser().format_help().split())


FAILING = {
    aggregate: ["--person", "user", "--sum", "score"],
    preprocess: ["--person", "user", "--trimmed_mean", "score"],
    ratio: ["--person", "user", "--ratio", "score,per=person"],
    shifted_inverse: ["--person", "user", "--max", "score,candidates=0..1..1"],
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("job", FAILING, ids=lambda job: job.__name__)
def test_every_job_shows_the_error_of_a_run_on_purpose(job, tmp_path, capfd):
    damaged = tmp_path / "damaged.csv.gz"
    rows = b"".join(b"%d,%d\n" % (row, row % 7) for row in range(500_000))
    damaged.write_bytes(gzip.compress(b"user,score\n" + rows)[:-9])  # at its end
    words = [*FAILING[job], "--output", str(tmp_path / "x.csv"), *RUN]
    words += ["--input", str(damaged), "--epsilon", "1"]
    for shown in ([], ["--show_errors"]):
        with pytest.raises(SystemExit) as left:
            job.main([*words, *shown])
        said = capfd.readouterr().err
        assert str(left.value).startswith("error: ") and "\n" not in str(left.value)
        assert ("Traceback (most recent call last)" in said) == bool(shown)
    assert "--show_errors show the error of a run that fails" in helped(job)
    assert "IT MAY QUOTE DATA" in helped(job)
