"""Public partitions and edges of histograms that files hold, on the command line."""

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import beam_dp as dp
from beam_dp.beam_yaml import mappings
from pipelines import aggregate, command_line

PLAN = ["--person", "p", "--epsilon", "1", "--plan"]
FORMS = {
    "age:0:18:inf": [0, 18, math.inf],
    "age:0..30..10": [0, 10, 20, 30],
    "age:-inf:0..1..0.5:7": [-math.inf, 0, Fraction(1, 2), 1, 7],
    "age:0..35..10:inf": [0, 10, 20, 30, math.inf],
}


def histogram(text: str) -> object:
    """Return the metric of what stands behind --histogram."""
    return mappings.metrics_of("", [command_line.metric("histogram", "COLUMN:EDGE:EDGE...", text)])[
        0
    ]


@pytest.mark.parametrize(("text", "edges"), FORMS.items(), ids=FORMS)
def test_edges_are_listed_or_ranges(text: str, edges: list[float]) -> None:
    assert histogram(text) == dp.Histogram("age", edges)


@pytest.mark.parametrize("text", ["age:0..10", "age:0..10..0", "age:0..inf..1", "age:9..0..1", "age:0..1..1e-9", "age:1..2..3..4"])  # fmt: skip
def test_wrong_ranges_are_refused(text: str, refused: Callable[..., str]) -> None:
    assert " must have " in refused(aggregate, *PLAN, "--histogram", text)


FILES = {
    "no keys": (
        ["--count", "--partition", "day", "--public_partitions", "@none.csv"],
        "the file of partitions must match a file, and 'none.csv' matches none",
    ),
}


@pytest.mark.parametrize(("asked", "said"), FILES.values(), ids=FILES)
def test_a_file_that_cannot_be_read_is_named_by_its_own_option(
    asked: list[str], said: str, refused: Callable[..., str]
) -> None:
    told = refused(aggregate, *PLAN, *asked)
    assert said in told and "input" not in told and "ReadRows" not in told


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_keys_in_a_table_are_released(tmp_path: Path, visits: str, ending: str) -> None:
    text = "else,day\nx,2\ny,7\nx,2\n" if ending == "csv" else '{"day": 2}\n{"day": 7}\n'
    (tmp_path / f"keys.{ending}").write_text(text)
    output = tmp_path / "out.csv"
    words = ["--input", visits, "--output", str(output), "--person", "visitor", "--count"]
    keys = ["--partition", "day", "--public_partitions", f"@{tmp_path}/keys.{ending}"]
    assert aggregate.main([*words, *keys, "--epsilon", "1"]) == 0
    assert [line.split(",")[0] for line in output.read_text().splitlines()] == ["day", "2", "7"]
