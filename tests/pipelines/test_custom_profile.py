"""`--custom_profile` of the jobs: a removal profile of the user's own, with what it needs."""

import csv
import functools
import types
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import beam_dp as dp
from beam_dp.mechanisms.numerics.user_functions import People
from pipelines import aggregate, preprocess, shifted_inverse
from tests.pipelines.conftest import PEOPLE
from tests.pipelines.test_wrong_calls import PYTHON

RUN = ["--runner", "FnApiRunner"]
WHO = ["--person", "visitor", "--partition", "day", "--public_partitions", "1,2,3"]
HERE = f"minutes={__name__}"
ASKED = ["--custom_profile", f"{HERE}:without_the_largest"]
GRID = ["--candidates", "custom_minutes=0:10000:10"]


def without_the_largest(people: People) -> Iterator[Fraction]:
    """Total of everybody's largest value."""
    largest = sorted((max(values, default=0) for values in people), reverse=True)
    left = sum(largest)
    yield left
    for value in largest:
        left -= value
        yield left


def failing(people: People) -> None:
    raise ValueError("canary", people)


class Unhashable:
    """A function without a hash."""

    __hash__ = None

    def __call__(self, people: People) -> list[int]:
        return [0]


NUMBER = 3
GENERATOR = functools.partial(without_the_largest, (n for n in ()))
UNHASHABLE = Unhashable()


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("unit", ["1", "0.5"])
def test_the_statistic_of_every_day_is_released(visits: str, tmp_path: Path, unit: str) -> None:
    """At epsilon 100,000 the rates of a search are 166 and more: it errs with less than e^-160."""
    out = tmp_path / "out.csv"
    words = ["--input", visits, "--output", str(out), *WHO, "--epsilon", "100000", *RUN, "--count"]
    asked = [*ASKED, *GRID, "--lowest", "minutes=0", "--unit", f"minutes={unit}"]
    assert aggregate.main([*words, *asked]) == 0
    released = read(out)
    assert [row["day"] for row in released] == ["1", "2", "3"]
    assert [float(row["custom_minutes"]) for row in released] == [30.0 * PEOPLE] * 3


def test_in_two_steps_too(visits: str, tmp_path: Path) -> None:
    """As above; the grid of 7 rounds 6000 up."""
    out = tmp_path / "out.csv"
    words = ["--input", visits, "--output", str(out), *WHO, "--epsilon", "100000", *RUN]
    assert shifted_inverse.main([*words, *ASKED, "--candidates", "0:10003:7"]) == 0
    assert [float(row["custom_minutes"]) for row in read(out)] == [6006.0] * 3


@pytest.mark.parametrize(("given", "found"), [([], 0.0), (["--lowest", "minutes=500"], 500.0)])
def test_a_function_that_fails_is_the_lowest(
    visits: str, tmp_path: Path, given: list[str], found: float, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    words = ["--input", visits, "--output", str(out), *WHO, "--epsilon", "100000", *RUN]
    asked = ["--custom_profile", f"{HERE}:failing", *GRID, *given]
    assert aggregate.main([*words, *asked]) == 0
    assert [float(row["custom_minutes"]) for row in read(out)] == [found] * 3
    assert "canary" not in "".join(capfd.readouterr())


def test_the_plan_is_that_of_the_metric(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*WHO, "--epsilon", "1", *ASKED, *GRID, "--lowest", "minutes=-5", "--plan"]
    assert aggregate.main(words) == 0
    grid, keys = dp.Candidates.linear(0, 10000, 10), dp.PublicPartitions([1, 2, 3])
    metric = dp.CustomProfile("minutes", without_the_largest, candidates=grid, lowest=-5)
    release = dp.PrivateAggregate("visitor", [metric], dp.Budget(1), ["day"], None, keys)
    assert capsys.readouterr().out == f"{release.plan()}\n"


def test_every_option_reaches_the_metric() -> None:
    words = ["--person", "p", "--epsilon", "1", *ASKED, *GRID, "--lowest", "minutes=-2.5"]
    rest = [
        "--search",
        "noisy_binary_search",
        "--unit",
        "minutes=1",
        "--weight",
        "custom_minutes=2",
    ]
    options, _ = aggregate.parser().read([*words, *rest])
    [metric] = aggregate.transform(options).metrics
    assert metric == dp.CustomProfile(
        "minutes",
        without_the_largest,
        name="custom_minutes",
        candidates=dp.Candidates.linear(*map(Fraction, (0, 10000, 10))),
        lowest=Fraction(-5, 2),
        search=dp.NoisyBinarySearch,
        unit=1,
        weight=2,
    )
    options, _ = shifted_inverse.parser().read(
        ["--person", "p", "--epsilon", "1", *ASKED, "--candidates=0:9:1", "--lowest", "minutes=-1"]
    )
    assert shifted_inverse.steps(options)[0].statistic.lowest == -1


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that cannot be imported."""
    monkeypatch.syspath_prepend(tmp_path)
    for place, code in enumerate(("1 +", "1 / 0", "raise RuntimeError", "import none_such")):
        (tmp_path / f"broken{place}.py").write_text(code)


@pytest.mark.parametrize(
    "word",
    [
        *("minutes", "=math:fsum", "minutes=", "minutes=math", "minutes=:fsum", "minutes=.:f"),
        *("minutes=nowhere:f", "minutes=math:nothing", "minutes=math:pi", f"{HERE}:NUMBER"),
        *(f"minutes=broken{place}:f" for place in range(4)),
        f"{HERE}:UNHASHABLE",
    ],
)
@pytest.mark.parametrize(
    ("job", "flag"), [(aggregate, "custom_profile"), (preprocess, "black_box")]
)
def test_what_is_no_function_is_refused(
    job: types.ModuleType, flag: str, word: str, broken: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        job.main(["--person", "p", "--epsilon", "1", f"--{flag}", word, "--plan"])
    said = capsys.readouterr().err
    assert left.value.code == 2 and f"argument --{flag}: must be " in said, said
    assert said.count("\n") == 1 and not PYTHON.search(said)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (ASKED, "--candidates custom_minutes=LOW:HIGH:STEP must be given for --custom_profile: "),
        ([*ASKED, *ASKED, *GRID], "two metrics would be the output column 'custom_minutes'"),
        ([*ASKED, *GRID, "--lowest", "x=0"], "--lowest: 'x' is none of the columns of --custom_p"),
        (["--count", "--lowest", "minutes=0"], "columns of --custom_profile: there are none"),
        ([*ASKED, *GRID, "--lowest", "minutes"], "--lowest: must be columns with the statistic of"),
        ([*ASKED, *GRID, "--lowest", "minutes=nan"], "like minutes=0,spent=0, not 'minutes=nan'"),
        ([*ASKED, *GRID, "--lowest=minutes=-inf"], "like minutes=0,spent=0, not 'minutes=-inf'"),
        (
            ["--custom_profile", f"{HERE}:GENERATOR", *GRID],
            "the function of --custom_profile must be picklable, to be sent to workers",
        ),
        (
            ["--person", "a,b", *ASKED, *GRID],
            "a metric of rows with several owners must be --count, --sum, --max, --min, ",
        ),
    ],
)
def test_wrong_calls(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        person = [] if "--person" in words else ["--person", "p"]
        aggregate.main([*person, "--epsilon", "1", "--plan", *words])
    said = capsys.readouterr().err
    assert left.value.code == 2 and message in said, said
    assert said.count("\n") == 1 and not PYTHON.search(said)


def test_a_profile_that_workers_could_not_get_is_refused_when_built() -> None:
    metric = dp.CustomProfile("minutes", GENERATOR, candidates=dp.Candidates.linear(0, 9, 1))
    for make in (
        lambda: dp.PrivateAggregate("p", [metric], dp.Budget(1)),
        lambda: dp.ShiftedInverse(metric, "p", dp.Budget(1)),
        lambda: dp.RemovalLoss(metric, "p"),
    ):
        with pytest.raises(TypeError, match="CustomProfile: profile must be picklable"):
            make()


def test_help_says_what_it_needs() -> None:
    for job in (aggregate, shifted_inverse):
        said = " ".join(job.parser().format_help().split())
        assert "--custom_profile COLUMN=MODULE:NAME a monotone statistic of your own" in said
        assert "--lowest COLUMN=VALUE the statistic of nobody" in said
