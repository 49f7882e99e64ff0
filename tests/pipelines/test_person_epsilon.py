"""`--person_epsilon` of `pipelines.preprocess`: people with an epsilon of their own."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import beam_dp as dp
from pipelines import description, preprocess
from tests.row_files import read, write

RUN = ["--runner", "FnApiRunner"]
EPSILON = 100_000


@pytest.fixture(params=["csv", "parquet", "jsonl"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """100 people with two rows of 1 and 3, and 50 whose epsilon is none of the public ones."""
    rows: list[dict[str, object]] = [
        {"who": f"p{person}", "v": value, "own": EPSILON if person < 100 else 7}
        for person in range(150)
        for value in (1, 3)
    ]
    return write(tmp_path / f"in.{request.param}", rows)


@pytest.mark.sampled(15)
@pytest.mark.parametrize(
    ("metric", "truth"), [("sum", 400.0), ("max", 3.0), ("min", 0.0), ("median", 2.0)]
)
def test_the_statistic_of_the_people_with_a_public_epsilon(
    source: str, tmp_path: Path, metric: str, truth: float
) -> None:
    """The noise has a scale of some 1e-4; 0.1 is a thousand scales (e^-1000).

    A minimum is at most `empty`, which is 0; a median is rounded up by 0.025% at most.
    """
    out = tmp_path / "out.csv"
    words = ["--input", source, "--output", str(out), "--person", "who", f"--{metric}", "v"]
    own = ["--person_epsilon", f"own={EPSILON},0.5", "--epsilon", str(EPSILON)]
    if metric in ("max", "min"):  # else found from half of the smallest epsilon
        own += ["--sensitivity", "1"]
    if metric == "sum":
        own += ["--sensitivity", "8"]
    assert preprocess.main([*words, *own, *RUN]) == 0
    [row] = read(out)
    assert abs(float(row[f"{metric}_v"]) - truth) <= 0.1


@pytest.mark.parametrize(
    ("statistic", "flag"),
    [(dp.Sum("v"), "sum"), (dp.Max("v"), "max"), (dp.Median("v"), "median")],
)
def test_it_is_the_metric_of_the_transform(
    statistic: dp.Sum | dp.Max | dp.Median, flag: str, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["--person", "p", f"--{flag}", "v", "--epsilon", "2", "--plan"]
    asked = [*words, "--person_epsilon", "own=2,0.5", "--person_value", "last", "--last_by", "t"]
    line = preprocess.parser()
    options, _ = line.read(asked)
    [metric] = description.Description(preprocess.described(line, options)).release.metrics
    epsilons = [Fraction(2), Fraction(1, 2)]
    given = {"person_value": "last", "last_by": "t", "person_epsilon": "own", "epsilons": epsilons}
    transform = dp.PreprocessSensitivity(statistic, "p", dp.Budget(2), **given)
    assert transform._aggregate.metrics == (metric,)
    assert preprocess.main(asked) == 0
    assert capfd.readouterr().out == f"{transform.plan()}\n"


OWN = ["--person_epsilon", "own=0.5,2"]
SUM = ["--sum", "v", *OWN]
LARGEST = "write the largest of them as epsilon, without a delta"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sum", "v", "--epsilon", "2"], "--sum is for --person_epsilon here"),
        ([*SUM, "--epsilon", "1"], f"must be the largest of epsilons, 2.0, not 1.0: that is what the person who allows most allows: {LARGEST}"),
        ([*SUM, "--rho", "1"], f"the budget of person_epsilon must be a pure epsilon, without rho and delta, for people with an epsilon of their own: {LARGEST}"),
        ([*SUM, "--epsilon", "2", "--delta", "1e-6"], f"must be a pure epsilon, without rho and delta, for people with an epsilon of their own: {LARGEST}"),
        ([*SUM, "--max", "v", "--epsilon", "2"], "person_epsilon takes one statistic"),
        (["--variance", "v", *OWN, "--epsilon", "2"], "the statistic must be sum, max, median, or preprocessed of an extreme"),
        (
            ["--median", "v", *OWN, "--epsilon", "2", "--sensitivity", "1"],
            "sensitivity must be left out: a median for people with an epsilon of their own is searched for, and",
        ),
        (
            [*SUM, "--epsilon", "2", "--partition", "d", "--bounds", "partitions=1"],
            "the partitions must be public ones for people with an epsilon of their own, who pay for nothing else: name the partitions: --public_partitions 1,2,3",
        ),
        *(
            (["--sum", "v", "--epsilon", "2", "--person_epsilon", word], " must be ")
            for word in ("own", "own=", "=1", "own=0", "own=1,-2", "own=1e-7", "own=x", "own=inf")
        ),
        (
            ["--sum", "v", "--epsilon", "2000", "--person_epsilon=o=" + ",".join(map(str, range(1, 2001)))],
            "epsilons must be at most 1024 different ones, not 2000",
        ),
    ],
)  # fmt: skip
def test_wrong_calls(words: list[str], message: str, refused: Callable[..., str]) -> None:
    assert message in refused(preprocess, "--person", "p", "--plan", *words)
