"""`custom_profile` of a mapping: a removal profile of the user's own, with what it needs."""

import functools
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import beam_dp as dp
from beam_dp.mechanisms.numerics.user_functions import People
from pipelines import aggregate
from tests.pipelines.conftest import PEOPLE
from tests.row_files import read

RUN = ["--runner", "FnApiRunner"]
WHO = ["--person", "visitor", "--partition", "day", "--public_partitions", "1,2,3"]
GRID = {"low": 0, "high": 10000, "step": 10}
Config = Callable[..., list[str]]


def without_the_largest(people: People) -> Iterator[Fraction]:
    """Total of everybody's largest value."""
    largest = sorted((max(values, default=0) for values in people), reverse=True)
    left = sum(largest)
    yield left
    for value in largest:
        left -= value
        yield left


GENERATOR = functools.partial(without_the_largest, (n for n in ()))


def asked(function: str = "without_the_largest", **options: object) -> dict[str, object]:
    """Return the mapping of the metric."""
    return {
        "custom_profile": "minutes",
        "profile": f"{__name__}:{function}",
        "candidates": GRID,
        **options,
    }


def test_the_statistic_of_every_day_is_released(visits, tmp_path, config):
    """At epsilon 100,000 the rates of a search are 166 and more: it errs with less than e^-160."""
    out = tmp_path / "out.csv"
    words = ["--input", visits, "--output", str(out), *WHO, "--epsilon", "100000", *RUN]
    assert aggregate.main([*words, *config(metrics=["count", asked(lowest=0, unit=0.5)])]) == 0
    released = read(out)
    assert [row["day"] for row in released] == ["1", "2", "3"]
    assert [float(row["custom_minutes"]) for row in released] == [30.0 * PEOPLE] * 3


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that cannot be imported."""
    monkeypatch.syspath_prepend(tmp_path)
    for place, code in enumerate(("1 +", "1 / 0", "raise RuntimeError", "import none_such")):
        (tmp_path / f"broken{place}.py").write_text(code)


@pytest.mark.parametrize(
    "word",
    [
        *("", "math", "nowhere:f", "math:nothing", "math:pi"),
        *(f"broken{place}:f" for place in range(4)),
    ],
)
@pytest.mark.parametrize("name", ["profile", "function"])
def test_what_is_no_function_is_refused(name, word, broken, refused, config):
    metric = asked(profile=word) if name == "profile" else {"black_box": "minutes", name: word}
    said = refused(aggregate, "--person=p", "--epsilon=1", "--plan", *config(metrics=[metric]))
    assert ("the function of " if word else "must have ") in said and " must " in said


def test_a_profile_that_workers_could_not_get_is_refused_when_built():
    metric = dp.CustomProfile("minutes", GENERATOR, candidates=dp.Candidates.linear(0, 9, 1))
    for make in (
        lambda: dp.PrivateAggregate("p", [metric], dp.Budget(1)),
        lambda: dp.ShiftedInverse(metric, "p", dp.Budget(1)),
        lambda: dp.RemovalLoss(metric, "p"),
    ):
        with pytest.raises(TypeError, match="CustomProfile: profile must be picklable"):
            make()
