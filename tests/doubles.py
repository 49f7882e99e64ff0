"""Stand-ins for the noise, for tests that need to know what comes out."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.noise.sampling import Noise, Stop
from beam_dp.mechanisms.planning import compile as compiling
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.planning.request import Request


class ZeroNoise(Noise):
    """Noise that is always 0: what is released is what the release computed before its noise."""

    def geometric(self, rate, size):
        """Return zeros."""
        return np.zeros(size, np.int64)

    def discrete_laplace(self, rate, size):
        """Return zeros."""
        return np.zeros(size, np.int64)

    def discrete_gaussian(self, variance, size):
        """Return zeros."""
        return np.zeros(size, np.int64)

    def first_success(self, unit, needs, lengths):
        """Return where success is certain for the first time: no trial of chance succeeds."""
        return next((Stop(run, 0) for run, need in enumerate(needs) if need <= 0), None)

    def coins_near(self, chances, bound_of):
        """Return heads: the level 0 of one draw is kept."""
        return np.ones(len(chances), bool)

    def words(self, size):
        """Return the largest words: no coin that is not certain comes up."""
        return np.full(size, np.iinfo(np.uint64).max, np.uint64)


class Asked(ZeroNoise):
    """Zero noise that remembers what was asked for: the kind, its rate or variance, its size."""

    def __init__(self):
        object.__setattr__(self, "asked", [])

    @property
    def rates(self):
        """The rates of the Laplace noise."""
        return [rate for kind, rate, _ in self.asked if kind == "laplace"]

    def geometric(self, rate, size):
        """Return zeros."""
        self.asked.append(("geometric", rate, size))
        return super().geometric(rate, size)

    def discrete_laplace(self, rate, size):
        """Return zeros."""
        self.asked.append(("laplace", rate, size))
        return super().discrete_laplace(rate, size)

    def discrete_gaussian(self, variance, size):
        """Return zeros."""
        self.asked.append(("gaussian", variance, size))
        return super().discrete_gaussian(variance, size)


def compile_program(
    metrics: Sequence[Metric],
    budget: Budget,
    ladder: int | tuple[int, ...],
    *,
    bound: int | None = None,
    max_rows_per_partition: int | None = None,
    others: Sequence[str] = (),
    **known: Any,
) -> Program:
    """Return the program of a request, in few words."""
    steps = ladder if isinstance(ladder, tuple) else (ladder,)
    asked = tuple(metrics), budget, steps, bound, max_rows_per_partition
    return compiling.compile_program(Request(*asked, others=tuple(others), **known))


def choices(program: Program, index: int) -> tuple[np.ndarray, ...]:
    """Return histograms by which every shared clip of a program is the one of that index."""
    found = []
    for choice in (clip.choice for clip in program.clips):
        noisy = np.zeros((1, choice.sides, choice.buckets), np.int64)
        noisy[:, 0, min(index, len(choice.thresholds) - 1)] = 10**12  # people, all in its bucket
        found.append(choice.draw(noisy, ZeroNoise()))
    return (*found, *(np.array(-1) for _ in program.covering))
