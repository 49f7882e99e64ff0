"""The k largest of the released partitions: by brute force, in a pipeline, and as its page says."""

import csv
import functools
import itertools
import math
import random
import re
import runpy
from collections.abc import Callable
from pathlib import Path

import apache_beam as beam
import pytest

import beam_dp as dp
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.transforms import partitions
from pipelines import aggregate
from tests.hostile import support

PAGE = (Path(__file__).parents[2] / "docs/top_partitions.md").read_text()
[BLOCK] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
# Day d has d people, from d1 to d8; nobody is in two.
ROWS = [{"p": f"{day}/{n}", "day": f"d{day}", "x": 1} for day in range(1, 9) for n in range(day)]


def best(rows: list[beam.Row], k: int) -> list[beam.Row]:
    return partitions._best([[row] for row in rows], k=k, by="x")


def test_it_keeps_the_largest_and_names_without_a_number_come_last() -> None:
    rows = [beam.Row(d=d, x=x) for d, x in zip("abcdef", [3, math.nan, 7.5, -math.inf, -2, None])]
    assert "".join(row.d for row in best(rows, 3)) == "cae"
    assert "".join(row.d for row in best(rows, 6))[:3] == "cae"
    assert len(best(rows, 9)) == 6 and best([], 2) == []


def test_the_order_of_rows_and_of_parts_does_not_matter() -> None:
    draw = random.Random(3)
    for _ in range(300):
        rows = [beam.Row(d=d, x=draw.choice([0, 1, 2.0, math.nan])) for d in "abcdefg"]
        k, whole = draw.randint(1, 8), None
        for _ in range(4):
            draw.shuffle(rows)
            cut = draw.randint(0, len(rows))
            halves = [best(rows[:cut], k), best(rows[cut:], k)]
            found = [row.d for row in partitions._best(halves, k=k, by="x")]
            assert whole in (None, found)
            whole = found


def days(transform: beam.PTransform, **options: object) -> list[str]:
    """Return the days that are kept, of a release that adds no noise but with e^-100."""
    public = dp.PublicPartitions([f"d{day}" for day in range(1, 9)])
    metrics = [dp.PeopleCount(), dp.Max("x")]
    release = dp.PrivateAggregate(
        "p", metrics, dp.Budget(400.0), ["day"], dp.ContributionBounds(1), public, **options
    )
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        kept = support.keep(pipeline | beam.Create(ROWS) | "A" >> release | "B" >> transform)
    return sorted(row.day for row in kept)


def test_in_a_pipeline() -> None:
    assert days(dp.TopPartitions(3, by="people_count")) == ["d6", "d7", "d8"]
    assert days(dp.TopPartitions(2, by="people_count_low")) == ["d7", "d8"]
    assert len(days(dp.TopPartitions(99, by="people_count"))) == 8


WRONG: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: dp.TopPartitions(0, "x"), ValueError, "k must be an int of at least 1"),
    (lambda: dp.TopPartitions(1.5, "x"), TypeError, "k must be an int of at least 1"),
    (lambda: dp.TopPartitions(1, ""), TypeError, "by must be the name of a column"),
    (lambda: days(dp.TopPartitions(1, "count")), ValueError, "one of the numbers people_count, "),
    (lambda: days(dp.TopPartitions(1, "day")), ValueError, "by must be one of the numbers"),
    (
        lambda: days(dp.TopPartitions(1, "people_count"), batches=True),
        ValueError,
        "by must be one of the numbers of rows, not of batches",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), WRONG)
def test_wrong_parameters_are_refused_when_the_pipeline_is_built(
    call: Callable[[], object], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=f"TopPartitions: .*{message}"):
        call()


# ------------------------------------------------------------------------- the page


def test_the_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(beam, "Pipeline", functools.partial(beam.Pipeline, runner="FnApiRunner"))
    script = tmp_path / "block.py"
    script.write_text(BLOCK)
    runpy.run_path(str(script))
    pages = re.findall(r"page='(p\d+)'", capsys.readouterr().out)
    # Squares leave 12 rests by 23: all but 0 have 260 visitors or more, 0 has 131. Noise of 100 at
    # epsilon 1/2 or more has a chance below e^-50.
    squares = {f"p{n * n % 23}" for n in range(1, 23)}
    assert len(pages) == 5 and set(pages) <= squares


def test_the_commands_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the page has them, but for the input and an epsilon at which noise is nothing."""
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(
        "visitor,page,minutes\n" + "".join(f"{row['p']},{row['day']},2\n" for row in ROWS * 3)
    )
    commands = re.findall(
        r"python -m pipelines\.aggregate(.*?--epsilon 0\.5[^\n]*)", PAGE, re.DOTALL
    )
    assert len(commands) == 2

    def run(command: str) -> list[dict[str, str]]:
        words = command.replace("\\\n", " ").replace("rows.parquet", "rows.csv").split()
        words[words.index("--epsilon") + 1] = "400"
        words += ["--bounds", "partitions=1", "--runner", "FnApiRunner"]
        assert aggregate.main(words) == 0
        return list(csv.DictReader(open(words[words.index("--output") + 1])))

    top = run(commands[0])
    assert [row["page"] for row in top] == ["d4", "d5", "d6", "d7", "d8"]
    Path("top.txt").write_text("".join(f"{row['page']}\n" for row in top))
    more = run(commands[1])
    assert [row["page"] for row in more] == ["d4", "d5", "d6", "d7", "d8"]
    assert float(more[-1]["sum_minutes"]) == pytest.approx(48, abs=2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--partition", "d", "--top_partitions", "count=5"],
            "'count' is no output column: peop",
        ),
        (["--top_partitions", "people_count=5"], "top_partitions needs a partition"),
        (
            ["--partition", "d", "--top_partitions", "people_count"],
            "top_partitions must have by",
        ),
        (
            ["--partition", "d", "--top_partitions", "people_count=0.5"],
            "k must be a whole number of at least 1",
        ),
        (
            ["--partition", "d", "--top_partitions", "a=1,b=2"],
            "'a=1,b' is no output column",
        ),
    ],
)
def test_the_job_says_what_can_be_ranked(
    words: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    given = ["--person", "p", "--people_count", "--epsilon", "1", "--delta", "1e-6", "--plan"]
    with pytest.raises(SystemExit):
        aggregate.main([*given, "--bounds", "partitions=2", *words])
    assert message in capfd.readouterr().err


def swapped(scale: float, gap: int) -> float:
    """Return the chance that a number with Laplace noise passes one that is larger by `gap`.

    Summed over the noise of both, on a grid of a twentieth of the scale.
    """
    step = scale / 20
    grid = [n * step for n in range(-600, 601)]
    density = [math.exp(-abs(x) / scale) for x in grid]
    whole = sum(density)
    above, total = 0.0, 0.0
    tail = list(itertools.accumulate(reversed(density)))  # tail[i]: the i + 1 largest noises
    for x, weight in zip(grid, density, strict=True):
        needed = math.ceil((x + gap) / step + 600)
        above = tail[1200 - needed] if needed <= 1200 else 0.0
        total += weight * above if needed >= 0 else weight * whole
    return total / whole**2


def test_what_the_page_says_of_ranking_all() -> None:
    assert AdditiveNoise(dp.Budget(1.0)).scale == 1
    row = (
        dp.PrivateAggregate(
            "p",
            [dp.PeopleCount()],
            dp.Budget(1.0),
            ["d"],
            dp.ContributionBounds(4),
            dp.PublicPartitions(range(1000)),
        )
        .plan()
        .rows[0]
    )
    assert row.noise_scale == "4"  # L / epsilon, whatever the number of partitions
    for gap in (1, 4, 10, 30):
        x = gap / 4
        assert swapped(4.0, gap) == pytest.approx((2 + x) / 4 * math.exp(-x), rel=0.1)
