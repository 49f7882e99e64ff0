"""The number of shards follows what is known of the input and the workers, and changes no bit."""

import dataclasses
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

import beam_dp as dp
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.transforms.columns import layout
from beam_dp.transforms.stages import bound_and_summarise, guards, noise_off, shard_number
from beam_dp.transforms.stages.shard_number import number_of  # as it is: see tests.quick_beam
from tests.hostile import support
from tests.row_files import write

GIB = 1 << 30


class Source(beam.PTransform):
    """Stands for files of a size, of which no byte is read."""

    def __init__(self, size: int | Exception) -> None:
        super().__init__()
        self.size = size

    def size_in_bytes(self) -> int:
        """Return the size, or raise."""
        if isinstance(self.size, Exception):
            raise self.size
        return self.size

    def expand(self, pbegin: Any) -> Any:
        """Apply the transform."""
        return pbegin | beam.Impulse() | beam.Map(lambda _: {})


def number(
    *sources: beam.PTransform,
    given: int | None = None,
    runner: str = "FnApiRunner",
    **options: Any,
) -> int:
    pipeline = beam.Pipeline(runner, PipelineOptions.from_dictionary(options))
    read = [pipeline | str(place) >> source for place, source in enumerate(sources)]
    rows = read | beam.Flatten() | beam.Map(lambda row: row)
    return number_of(rows, given)


ENGINE = {"runner": guards.RECOMPUTING[1]}
"""One that sends a shard as one message."""
RULE: list[tuple[list[Any], dict[str, Any], int]] = [
    ([0], {}, 16),
    ([GIB // 2], {}, 16),
    ([GIB // 2 + 1], {}, 32),
    ([0], {"runner": "DirectRunner"}, 16),
    ([0], {"runner": "SwitchingDirectRunner"}, 16),
    ([0], {"runner": "PrismRunner"}, 64),
    ([2 * GIB], {}, 64),
    ([2 * GIB + 1], {}, 128),
    ([GIB, GIB, 1], {}, 128),
    ([14 * GIB], {}, 512),  # a billion rows
    ([1 << 50], {}, 1 << 16),
    ([1], {"direct_num_workers": 4}, 16),
    ([1], {"direct_num_workers": 16}, 64),
    ([1], {"direct_num_workers": 17}, 128),
    ([1], {"parallelism": 100}, 512),
    ([1], {"num_workers": 10, "max_num_workers": 1000}, 4096),
    ([14 * GIB], {"parallelism": 2}, 512),
    ([ValueError(), 14 * GIB], {}, 512),
    ([64 << 20], ENGINE, 64),
    ([(64 << 20) + 1], ENGINE, 128),
    ([341_404_116], ENGINE, 512),  # 20 million rows, which 64 shards did not bring through Flink
    ([14 * GIB], ENGINE, 1024),
    ([64 * GIB], ENGINE, 2048),
    ([1], {**ENGINE, "parallelism": 1000}, 4096),
]


@pytest.mark.parametrize(("sizes", "options", "expected"), RULE)
def test_the_rule(sizes: list[Any], options: dict[str, Any], expected: int) -> None:
    assert number(*map(Source, sizes), **options) == expected
    assert number(*map(Source, sizes), given=2, **options) == 2
    assert expected & (expected - 1) == 0
    mean = sum(size for size in sizes if type(size) is int) / expected
    assert mean <= shard_number.BYTES or expected == shard_number.MOST


@pytest.mark.parametrize("shards", [0, 3, -64, 1 << 17, 64.0, True, "64"])
def test_what_is_no_number_is_refused(shards: object) -> None:
    with pytest.raises(ValueError, match="shards must be a power of two from 1 to 65536, not"):
        dp.PrivateAggregate("person", [dp.Count()], dp.Budget(1.0), shards=shards)


class Seeded(Noise):
    """The same words in every run."""

    def __init__(self) -> None:
        self._drawn = np.random.default_rng(5)

    def words(self, size: int) -> np.ndarray:
        """Return the next words."""
        return self._drawn.integers(0, 1 << 64, size, np.uint64)


@pytest.mark.audit
def test_the_same_randomness_releases_the_same_bits_for_every_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People are cut by the bounds, and partitions are dropped."""
    rows = [{"person": n % 97, "day": n % 11 + n % 7, "spent": n % 13} for n in range(2000)]
    path = write(tmp_path / "rows.csv", rows)
    monkeypatch.setattr(layout, "fresh_key", lambda: support.KEY)
    monkeypatch.setattr(noise_off, "noise", Seeded)
    monkeypatch.setattr(shard_number, "BYTES", Path(path).stat().st_size // 200)
    used: list[int] = []
    collector = bound_and_summarise.Collect.__init__

    def seen(self: Any, layout: Any, bounder: Any, shards: int) -> None:
        used.append(shards)
        collector(self, layout, bounder, shards)

    monkeypatch.setattr(bound_and_summarise.Collect, "__init__", seen)
    bounds = dp.ContributionBounds(partitions=3, rows_per_partition=4)
    release = dp.PrivateAggregate(
        "person",
        [dp.Count(), dp.Sum("spent"), dp.Quantile("spent", 0.9, per="row")],
        dp.Budget(30.0, 1e-3),
        ["day"],
        bounds,
    )
    found = []
    for shards in (None, 1, 2048):
        with beam.Pipeline("FnApiRunner") as pipeline:
            read = pipeline | dp.ReadRows(path, ["person", "day", "spent"], ["spent"])
            found.append(support.keep(read | dataclasses.replace(release, shards=shards)))
    assert used == [256, 1, 2048]
    assert len(found[0]) > 5 and len(set(map(repr, found))) == 1
