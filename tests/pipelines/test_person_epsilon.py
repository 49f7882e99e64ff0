"""`--person_epsilon` of `pipelines.preprocess`: people with an epsilon of their own."""

from collections.abc import Callable
from fractions import Fraction

import pytest

import beam_dp as dp
from pipelines import description, preprocess


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
        ([*SUM, "--max", "v", "--epsilon", "2"], "person_epsilon takes one statistic"),
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
    ],
)  # fmt: skip
def test_wrong_calls(words: list[str], message: str, refused: Callable[..., str]) -> None:
    assert message in refused(preprocess, "--person", "p", "--plan", *words)
