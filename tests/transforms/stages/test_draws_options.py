"""Where draws are kept is said by the pipeline's options, and asked for where clusters restart."""

from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from beam_dp.testing import without_noise
from beam_dp.transforms.stages.draws_folder import RESTARTING, DrawsFolder, draws_of
from tests.transforms.stages.test_draw_once import (
    RELEASES,
    ROWS,
    WithoutBarrier,
    pieces,
    release_of,
    seen_behind,
)

BUCKETS = [f"bucket-{number}" for number in range(8)]
SELECTED = [f"selected-{number}" for number in range(8)]
KEPT = {
    "aggregate": ["bucket-0", "clips", "made"],
    "inverse": ["bucket-0", "made"],
    "select": [*BUCKETS, *SELECTED, "made"],
    "private": [*BUCKETS, *SELECTED, "clips", "made"],
    "ranked": [*(f"bucket-{number}" for number in range(64)), "first", "clips", "made"],
}
KEPT["ranked"] += [f"selected-{number}" for number in range(64)]


def built(runner: str, *flags: str) -> None:
    pipeline = beam.Pipeline(runner=runner, options=PipelineOptions(list(flags)))
    _ = pipeline | beam.Create(ROWS) | RELEASES["aggregate"]()


@pytest.mark.parametrize("runner", RESTARTING)
def test_a_cluster_that_may_restart_needs_a_folder(runner: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"draws_folder on {runner}.*cluster_never_restarts"):
        built(runner)
    built(runner, "--cluster_never_restarts")
    built(runner, f"--draws_folder={tmp_path}")
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("name", "rows"), [*((name, ROWS) for name in RELEASES), ("private", [])])
def test_every_draw_of_a_release_is_kept_and_its_names_tell_nothing_of_the_rows(
    name: str, rows: list[Any], tmp_path: Path
) -> None:
    options = PipelineOptions([f"--draws_folder={tmp_path}"])
    with beam.Pipeline(runner="FnApiRunner", options=options) as pipeline:
        _ = pipeline | beam.Create(rows) | RELEASES[name]()
    [folder] = tmp_path.iterdir()
    assert {path.name for path in folder.iterdir()} == set(KEPT[name])


@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.filterwarnings("ignore::beam_dp.transforms.stages.noise_off.NotPrivate")
def test_a_trial_keeps_no_draws(name: str, tmp_path: Path) -> None:
    options = PipelineOptions([f"--draws_folder={tmp_path}/kept"])
    rows = beam.Pipeline(runner="FnApiRunner", options=options) | beam.Create(ROWS)
    with (
        without_noise(),
        pytest.raises(ValueError, match=r"in without_noise\(\) must have no --dr"),
    ):
        _ = rows | RELEASES[name]()
    assert list(tmp_path.iterdir()) == []


def test_two_transforms_of_one_pipeline_draw_apart(tmp_path: Path) -> None:
    pipeline = beam.Pipeline(options=PipelineOptions([f"--draws_folder={tmp_path}"]))
    one, other = draws_of("One", pipeline), draws_of("Other", pipeline)
    assert isinstance(one, DrawsFolder) and isinstance(other, DrawsFolder)
    assert one.path != other.path


def test_a_folder_makes_up_for_a_lost_barrier(tmp_path: Path) -> None:
    """Without barrier and folder a repeated bundle shows another draw (`test_barrier`)."""
    summarise, whole = pieces()
    whole.draws = DrawsFolder.made_in(str(tmp_path))
    seen = seen_behind(WithoutBarrier(whole), summarise, direct_runner_bundle_repeat=1)
    first, second = release_of(seen)
    assert first == second
