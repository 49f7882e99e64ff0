"""Seeded mutants of the Beam floor: each makes the check that is named for it fail.

Mutant 18 (a range hi - lo taken for the larger magnitude) has no place here: no bounds are asked for.
"""

import contextlib
import dataclasses
import pickle
import random
from collections.abc import Callable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.program import compile_program
from beam_dp.mechanisms.summaries import histograms
from beam_dp.transforms.columns import public_keys
from beam_dp.transforms.columns.public_keys import KeyList
from beam_dp.transforms.steps import barrier, draw
from beam_dp.transforms.steps.draw import Block
from beam_dp.transforms.steps.summarise import Summarise
from tests.hostile import support
from tests.hostile.support import Content, as_dict

# Draws at this scale are equal with probability below 2^-19 each, 8 of them below 2^-150.
FAINT = dp.Budget(2.0**-20)
PUBLIC = tuple((f"day {number}",) for number in range(8))
Patch = pytest.MonkeyPatch


def pieces(noise: Noise) -> tuple[Summarise, barrier.DrawOnce]:
    """Return the two steps of a release of people with this noise."""
    program = compile_program([dp.PeopleCount()], FAINT, 8)
    layout = dataclasses.replace(support.layout(public_keys.PublicKeys(PUBLIC)), columns=())
    bounder = Bounder(ContributionBounds(None), program.fields, layout.key)
    whole = barrier.DrawOnce(program, draw.BucketPartitions(layout, 1), noise)
    return Summarise(layout, bounder, program.measures), whole


def run(noise: Noise) -> list[Any]:
    """Return what one run of a fresh pipeline releases."""
    summarise, whole = pieces(noise)
    rows = [as_dict((person, f"day {person % 8}", 1.0)) for person in range(16)]
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        released = support.start(pipeline, rows) | summarise | whole
        seen = support.keep(released | beam.FlatMap(Block.rows, whole.partitions.layout.public))
    return sorted(seen)


NOISE: dict[str, Callable[[], Noise]] = {"made by": Noise}
"""How noise is made; a mutant puts its own there."""


def copies_of_a_step_draw_different_noise() -> None:
    _, whole = pieces(NOISE["made by"]())
    step = pickle.dumps(draw.Draw(whole.program, whole.partitions, whole.noise, whole.draws))
    copies = (pickle.loads(step) for _ in range(2))
    first, second = ([list(block.rows(whole.partitions.layout.public)) for _, block in
                      copy.process((0, []))] for copy in copies)  # fmt: skip
    assert first != second


def runs_draw_different_noise() -> None:
    assert run(NOISE["made by"]()) != run(NOISE["made by"]())


def sums_are_exact_before_the_noise() -> None:
    rows = [as_dict((person, "day", 0.5)) for person in range(20)]
    assert support.contents(rows) == {("day",): Content(20, 20, 10_000_000, 20)}


def every_public_key_is_released() -> None:
    public = support.layout(public_keys.PublicKeys((("a",), ("b",))))
    assert set(support.contents([as_dict((1, "b", 1.0))], found=public)) == {("a",), ("b",)}


def no_key_is_released_twice() -> None:
    public = dp.PublicPartitions(["a", "a", "b"])
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        transform = dp.PrivateAggregate(
            "person", [dp.PeopleCount()], FAINT, ["day"], partitions=public
        )
        seen = support.keep(support.start(pipeline, []) | transform)
    assert sorted(row.day for row in seen) == ["a", "b"]


class FromBuild(Noise):
    """Mutant 9: a generator is made with the step, so every unpickled copy has the same."""

    def __init__(self) -> None:
        object.__setattr__(self, "generator", random.Random())

    def discrete_laplace(self, rate: Any, size: int) -> np.ndarray:
        return np.array([self.generator.randrange(1 << 40) for _ in range(size)])


class Seeded(Noise):
    """Mutant 10: a generator with a seed."""

    def discrete_laplace(self, rate: Any, size: int) -> np.ndarray:
        return np.random.Generator(np.random.PCG64(7)).integers(0, 1 << 40, size)


def noise_from_build(patch: Patch) -> None:
    patch.setitem(NOISE, "made by", FromBuild)


def noise_with_a_seed(patch: Patch) -> None:
    patch.setitem(NOISE, "made by", Seeded)


def noise_before_the_sum(patch: Patch) -> None:
    original = histograms.summarise

    def noisy(table: Any, measures: Any) -> Any:
        values = [column + np.arange(len(column)) % 3 for column in table.values]
        return original(dataclasses.replace(table, values=values), measures)

    patch.setattr(histograms, "summarise", noisy)


def only_keys_with_data(patch: Patch) -> None:
    original = draw.BucketPartitions.cells

    def found_only(self: Any, bucket: int, found: Any) -> Any:
        cells, names = original(self, bucket, found)
        kept = np.flatnonzero(cells.people(0))
        return cells.select(kept), names[kept]

    patch.setattr(draw.BucketPartitions, "cells", found_only)


def duplicates_are_listed(patch: Patch) -> None:
    def as_given(self: Any, given: Any) -> None:
        object.__setattr__(self, "keys", KeyList.of((key,) for key in given))

    patch.setattr(dp.PublicPartitions, "__init__", as_given)
    patch.setattr(public_keys.PublicKeys, "__post_init__", lambda self: None)


MUTANTS: dict[str, tuple[Callable[[], None], Callable[[Patch], None]]] = {
    "9 generator from the build": (copies_of_a_step_draw_different_noise, noise_from_build),
    "10 generator with a seed": (runs_draw_different_noise, noise_with_a_seed),
    "11 noise before the sum": (sums_are_exact_before_the_noise, noise_before_the_sum),
    "19 public keys without data": (every_public_key_is_released, only_keys_with_data),
    "22 duplicates in the public list": (no_key_is_released_twice, duplicates_are_listed),
}


@contextlib.contextmanager
def mutated(mutate: Callable[[Patch], None]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        mutate(patch)
        yield


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", MUTANTS)
def test_the_check_passes_and_kills_its_mutant(name: str) -> None:
    check, mutate = MUTANTS[name]
    check()
    with mutated(mutate), pytest.raises(AssertionError):
        check()
    check()
