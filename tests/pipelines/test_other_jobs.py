"""Jobs of shares, preprocessing and searches: flags of `pipelines.aggregate`."""

import gzip
from pathlib import Path

import pytest

import beam_dp as dp
from pipelines import aggregate

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
    found = released(aggregate, *words, *asked, source=clicks)
    rates = {row["country"]: float(row[name]) for row in found}
    expected = {"de": 0.0, "fr": 0.5} if per == "row" else {"de": 0.0, "fr": rates["fr"]}
    assert rates == pytest.approx(expected, abs=0.01) and 0 < rates["fr"] < 1


def test_a_statistic_is_required_and_a_plan_reads_nothing(refused, capfd):
    words = ["--person", "user", "--epsilon", "1"]
    assert "metrics must be given" in refused(aggregate, *words)
    assert aggregate.main([*words, "--preprocessed", "x,of=variance,sensitivity=2", "--plan"]) == 0
    assert "given sensitivity" in capfd.readouterr().out


@pytest.mark.parametrize("value", [6, "6.0", "yes"])
def test_a_share_has_one_name_in_flags_in_files_and_in_python(value, config, capsys):
    words = ["--person", "p", "--epsilon", "1", "--plan"]
    name = "ratio_x_yes" if value == "yes" else "ratio_x_6"
    assert dp.Ratio("x", equals=value).output == name
    assert aggregate.main([*words, "--ratio", f"x,equals={value}"]) == 0
    plan = capsys.readouterr().out
    assert aggregate.main([*words, *config(metrics=[{"ratio": "x", "equals": value}])]) == 0
    assert capsys.readouterr().out == plan and name in plan


def helped():
    """Return the help text of the job, without line breaks."""
    return " ".join(aggregate.parser().format_help().split())


FAILING = [
    ["--sum", "score"],
    ["--trimmed_mean", "score"],
    ["--ratio", "score,per=person"],
    ["--max", "score,search=above_threshold,candidates=0..1..1"],
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("metric", FAILING, ids=lambda metric: metric[0])
def test_every_job_shows_the_error_of_a_run_on_purpose(metric, tmp_path, capfd):
    damaged = tmp_path / "damaged.csv.gz"
    rows = b"".join(b"%d,%d\n" % (row, row % 7) for row in range(500_000))
    damaged.write_bytes(gzip.compress(b"user,score\n" + rows)[:-9])  # at its end
    words = ["--person", "user", *metric, "--output", str(tmp_path / "x.csv"), *RUN]
    words += ["--input", str(damaged), "--epsilon", "1"]
    for shown in ([], ["--show_errors"]):
        with pytest.raises(SystemExit) as left:
            aggregate.main([*words, *shown])
        said = capfd.readouterr().err
        assert str(left.value).startswith("error: ") and "\n" not in str(left.value)
        assert ("Traceback (most recent call last)" in said) == bool(shown)
    assert "--show_errors show the error of a run that fails" in helped()
    assert "IT MAY QUOTE DATA" in helped()
