"""What a release gives for a list of partitions, and the release of the number of people."""

import dataclasses
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.summaries.histograms import PEOPLE, Measure
from beam_dp.mechanisms.summaries.partition_view import Cells

ALPHA = Fraction(48, 1000)
"""Chance that the noise exceeds an error bound; the rest of 5% is left to the clip's search."""
EVIDENCE_ALPHA = Fraction(1, 10_000)
"""Chance that noise in any partition of a list is taken for people."""
OVERSHOOT = 1e-9
"""Chance that a clip is chosen above everything there is (a clip that nobody reaches is noise)."""


@dataclasses.dataclass(frozen=True)
class Released:
    """What was released for a list of partitions, with error bounds at 95%.

    Attributes:
        values: one number per partition, int64, float64 or Python integers.
        errors: how far the number strays, float64; see the release for from what.
        shown: how many people's worth the numbers show beyond their noise, over all partitions.
    """

    values: np.ndarray
    errors: np.ndarray
    shown: float = 0.0


@dataclasses.dataclass(frozen=True)
class PeopleRelease:
    """The number of people per partition plus noise; the error bound is the noise's.

    Attributes:
        noise_cost: per partition.
        source: PEOPLE, or a field: the people whose number there is above 0.
        alpha: the chance that the error bound fails.
    """

    noise_cost: Budget
    source: int = PEOPLE
    alpha: Fraction = ALPHA

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The one measure."""
        return (Measure(self.source),)

    def release(self, cells: Cells, first: int, clip: int | None, noise: Noise) -> Released:
        """Draw one noisy number per partition; there is no clip."""
        adder = AdditiveNoise(self.noise_cost)
        one = np.ones(cells.size, np.int64)
        values = adder.add(cells.people(first), one, noise)
        beyond = adder.bounds(one, EVIDENCE_ALPHA / max(1, cells.size))
        shown = float(np.maximum(clips_beyond(values, beyond, one), 0.0).sum())
        return Released(values, np.full(cells.size, float(adder.bound(1, self.alpha))), shown)


def clips_beyond(noisy: np.ndarray, noise: np.ndarray, clip: np.ndarray) -> np.ndarray:
    """Return how many clips each number has beyond that much noise."""
    return np.asarray(np.maximum(abs(noisy).astype(float) - noise, 0.0) / clip.astype(float))
