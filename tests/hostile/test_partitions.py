"""Section C of the table of bad inputs: partition keys."""

import csv
from pathlib import Path
from typing import Any

import apache_beam as beam

import beam_dp as dp
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.transforms.columns.public_keys import PublicKeys
from tests.hostile import support
from tests.hostile.support import Content, as_dict


def test_40_other_keys_use_up_no_place() -> None:
    public = support.layout(PublicKeys((("a",), (2,))))
    for make in support.FORMS.values():
        rows = [make((1, f"x{n}", 1.0)) for n in range(30)] + [make((1, "2", 1.0))]
        found = support.contents(rows, ContributionBounds(1), public)
        assert found == {("a",): Content(), (2,): Content(1, 1, 1_000_000, 1)}


def test_41_42_public_keys_without_data_are_released() -> None:
    public = support.layout(PublicKeys((("a",), ("b",))))
    assert support.contents([], found=public) == {("a",): Content(), ("b",): Content()}
    assert support.contents([]) == {}
    everything = support.layout(partition=())
    assert support.contents([], found=everything) == {(): Content()}


def private(rows: list[object], budget: dp.Budget, **options: Any) -> list[Any]:
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        transform = dp.PrivateAggregate(
            "person", [dp.Count()], budget, ["day"], dp.ContributionBounds(1),
            dp.PrivatePartitions(**options),
        )  # fmt: skip
        return support.keep(support.start(pipeline, rows) | transform)


def test_43_44_keys_of_single_people_are_not_released() -> None:
    # Each key is kept with probability at most delta = 1e-15: false alarm at most 2e-12.
    rows = [as_dict((person, f"letter of {person}", 1.0)) for person in range(2000)]
    assert private(rows, dp.Budget(1.0, 1e-15)) == []
    assert private(rows[:50] * 40, dp.Budget(1e3, 0.5), pre_threshold=2) == []


def test_48_keys_never_become_paths_and_are_escaped(tmp_path: Path) -> None:
    keys = ["../x", "=cmd", "+1", "@a", 'a"b,c\n']
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        transform = dp.PrivateAggregate(
            "person", [dp.Count()], dp.Budget(1.0), ["day"], partitions=dp.PublicPartitions(keys)
        )
        released = support.start(pipeline, []) | transform
        _ = released | dp.WriteRows(str(tmp_path / "out.csv"))
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    with (tmp_path / "out.csv").open(newline="") as file:
        cells = [row[0] for row in csv.reader(file)][1:]
    assert len(cells) == len(keys) and not any(cell.startswith(("=", "+", "@")) for cell in cells)
