"""Releases of users' unit tests: exact where they are built, and impossible everywhere else."""

import contextvars
import os
import pickle
import re
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to

import beam_dp as dp
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.testing import NotPrivate, without_noise
from beam_dp.transforms.stages import noise_off
from pipelines import aggregate

pytestmark = pytest.mark.filterwarnings("ignore::beam_dp.testing.NotPrivate")
ROOT = Path(__file__).parents[2]
ROWS = [{"person": f"p{place}", "day": 1 + place % 2, "spent": float(place)} for place in range(9)]
COLUMNS = ["person", "day", "spent"]
KEYS = dp.PublicPartitions([1, 2, 3])
DRAWS = [
    lambda noise: noise.words(3),
    lambda noise: noise.geometric(1, 3),
    lambda noise: noise.discrete_laplace(1, 3),
    lambda noise: noise.discrete_gaussian(1, 3),
    lambda noise: noise.first_success(Fraction(1), [3], [3]),
    lambda noise: noise.uniform().interval(3),
    lambda noise: noise.bernoulli_below(lambda bits: (Fraction(1, 2), Fraction(1, 2))),
]
"""Every public way to draw."""


def release(bounds: dp.ContributionBounds | None = None) -> dp.PrivateAggregate:
    metrics = [dp.Count(), dp.Sum("spent"), dp.Mean("spent"), dp.Max("spent")]
    shared = {"bounds": bounds, "partitions": KEYS, "columns": COLUMNS}
    return dp.PrivateAggregate("person", metrics, dp.Budget(0.1), ["day"], **shared)


def numbers(row: Any) -> tuple[float, ...]:
    return row.day, row.count, row.sum_spent, row.mean_spent, row.max_spent


EXACT = [(1, 5, 20.0, 4.0, 8.0), (2, 4, 16.0, 4.0, 7.0)]


def is_marked(record: dict[str, Any]) -> bool:
    return "NOT PRIVATE" in record


@pytest.mark.parametrize("bounds", [dp.ContributionBounds(1), None], ids=["given", "chosen"])
def test_numbers_are_exact_in_the_block_and_marked(bounds):
    """The mark belongs to the release, wherever its record is asked for."""
    with without_noise(), beam.Pipeline("FnApiRunner") as pipeline:
        made = release(bounds)
        rows = pipeline | beam.Create(ROWS) | made
        exact = rows | beam.Filter(lambda row: row.day < 3) | beam.Map(numbers)
        assert_that(exact, equal_to(EXACT))
        counts = rows | beam.Map(lambda row: (row.day, row.count))
        assert_that(counts, equal_to([(1, 5), (2, 4), (3, 0)]), label="Counts")
        record = contextvars.Context().run(made.record)  # where no trial is on
        assert_that(record | beam.Map(is_marked), equal_to([True]), label="Mark")


def test_a_release_outside_of_the_block_has_no_mark():
    with beam.Pipeline("FnApiRunner") as pipeline:
        made = release()
        _ = pipeline | beam.Create(ROWS) | made
        with without_noise():
            record = made.record()
        assert_that(record | beam.Map(is_marked), equal_to([False]))


def test_the_block_warns_once_and_loudly():
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with pytest.warns(NotPrivate, match="THEY ARE NOT PRIVATE") as found, without_noise():
            release()
    assert len(found) == 1 and found[0].filename == __file__


def test_a_pipeline_that_was_built_in_the_block_does_not_run_after_it():
    with without_noise():
        pipeline = beam.Pipeline("FnApiRunner")
        _ = pipeline | beam.Create(ROWS) | release()
    with pytest.raises(Exception, match="run in the same block and in the same process"):
        pipeline.run()
    with without_noise(), pytest.raises(Exception, match="run in the same block and in the same"):
        pipeline.run()  # another block has another token


def test_an_object_that_was_made_in_the_block_draws_noise_outside_of_it():
    """Noise of epsilon 1e-6 is 0 with probability below 1e-6: both are below 1e-12."""
    with without_noise():
        keys, bounds = dp.PublicPartitions([1, 2]), dp.ContributionBounds(1)
        made = dp.PrivateAggregate(
            "person", [dp.PeopleCount()], dp.Budget(1e-6), ["day"], bounds, keys
        )
    with beam.Pipeline("FnApiRunner") as pipeline:
        rows = pipeline | beam.Create(ROWS) | made
        counts = rows | beam.Map(lambda row: (row.day, row.people_count))
        assert_that(counts, are_noisy)


def are_noisy(counts: list[tuple[int, float]]) -> None:
    assert [day for day, _ in sorted(counts)] == [1, 2]
    assert sorted(counts) != [(1, 5), (2, 4)]


def test_an_object_that_was_applied_in_the_block_is_not_applied_after_it():
    """What it was applied with is the budget of a trial."""
    made = release()
    with without_noise():
        _ = beam.Pipeline("FnApiRunner") | beam.Create(ROWS) | made
    for again in (made, pickle.loads(pickle.dumps(made))):
        with pytest.raises(ValueError, match="each object must be applied once"):
            _ = beam.Pipeline("FnApiRunner") | beam.Create(ROWS) | again


@pytest.mark.parametrize("draw", DRAWS, ids=range(len(DRAWS)))
def test_a_pickle_draws_nothing_after_the_block_nor_in_another_process(draw):
    with without_noise():
        noise = noise_off.noise()
        draw(noise)
        packed = pickle.dumps(noise)
        draw(pickle.loads(packed))
    for late in (noise, pickle.loads(packed)):
        with pytest.raises(ValueError, match="run in the same block and in the same process"):
            draw(late)


def test_another_process_knows_no_token():
    """Not even a fork."""
    with without_noise():
        noise = noise_off.noise()
        child = os.fork()
        if not child:
            try:
                noise.discrete_laplace(1, 3)
            except ValueError:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_block_that_is_left_in_another_context_is_over_there_too():
    """As the end of an asynchronous fixture may be; what is built there then draws nothing."""
    block, inside = without_noise(), contextvars.copy_context()
    inside.run(block.__enter__)
    noise = inside.run(noise_off.noise)
    assert noise.discrete_laplace(1, 3).tolist() == [0, 0, 0]
    block.__exit__(None, None, None)
    later = inside.run(noise_off.noise)
    for each in (noise, later):
        with pytest.raises(ValueError, match="run in the same block"):
            each.discrete_laplace(1, 3)
    assert type(noise_off.noise()) is Noise


def test_the_block_ends_after_an_error_too():
    with pytest.raises(KeyError), without_noise():
        raise KeyError
    assert not noise_off.applies() and noise_off._processes == {}


def test_a_job_does_not_start_in_the_block(capsys):
    with without_noise(), pytest.raises(SystemExit) as stopped:
        aggregate.main(["--person", "p", "--count", "--epsilon", "1", "--plan"])
    assert stopped.value.code == 2
    assert "a job must not run in without_noise()" in capsys.readouterr().err


def test_nothing_that_is_shipped_switches_it_on():
    users = [
        str(path.relative_to(ROOT))
        for folder in ("beam_dp", "pipelines")
        for path in ROOT.glob(f"{folder}/**/*.py")
        if re.search(r"noise_off\.block|NoNoise\(|import .*without_noise", path.read_text())
    ]
    assert sorted(users) == [
        "beam_dp/testing/__init__.py",
        "beam_dp/transforms/rehearsal.py",  # its truth, which is NOT PRIVATE as it says
        "beam_dp/transforms/stages/noise_off.py",
    ]
    source = (ROOT / "beam_dp/transforms/stages/noise_off.py").read_text()
    assert "os.environ" not in source and "getenv" not in source and "open(" not in source


def test_people_with_an_epsilon_of_their_own_have_no_trial():
    options = {"person_epsilon": "day", "epsilons": [1, 2]}
    transform = dp.PreprocessSensitivity(dp.Sum("spent"), "person", dp.Budget(2), **options)
    with without_noise(), pytest.raises(ValueError, match="Leave out person_epsilon"):
        _ = beam.Pipeline("FnApiRunner") | beam.Create(ROWS) | transform
