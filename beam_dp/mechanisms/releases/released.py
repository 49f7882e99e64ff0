"""What a release is: public parameters that say what they need, what they cost, and how to draw.

A release turns the view on some partitions (`PartitionView`) into one number and one error bound
each. It is built when the pipeline is built, from a request of a metric and its share of the budget
(`request`), and holds no data.
"""

import abc
import dataclasses
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.summaries.histograms import PEOPLE, Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView

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


class Spending(NamedTuple):
    """One entry of the ledger.

    Attributes:
        cost: of one draw.
        purpose: what it buys, where a release spends on several things.
        once: whether one draw serves all partitions; else there is one per partition.
    """

    cost: Budget
    purpose: str = ""
    once: bool = False


class Description(NamedTuple):
    """What a plan says of a release.

    Attributes:
        mechanism: how it is drawn.
        noise_scale: the scale of the noise, in words; "-" where there is none.
        shift: how many people may be cut or passed over; 0 where there is none.
        expected_error: the mean absolute error of a released number, in words.
        reason: why this way, and what else is worth knowing.
    """

    mechanism: str
    noise_scale: str
    shift: int
    expected_error: str
    reason: str = ""


class Chooser(Protocol):
    """What chooses one clip for all partitions."""

    @property
    def shared_measure(self) -> Measure | None:
        """What the clip is chosen on; None where nothing is chosen for all."""

    @property
    def shift(self) -> int:
        """How many people may be cut at the clip."""

    def choose_shared(self, view: PartitionView, noise: Noise) -> int:
        """Return the index of the clip."""


class Release(abc.ABC):
    """The face of all releases: frozen records of public parameters."""

    @property
    @abc.abstractmethod
    def measures(self) -> tuple[Measure | Relation, ...]:
        """What must be summarised per partition."""

    @property
    @abc.abstractmethod
    def spends(self) -> tuple[Spending, ...]:
        """What is spent on one partition, or once for all."""

    @property
    def chooser(self) -> Chooser | None:
        """What chooses a clip for all partitions, before anything is drawn; None: nothing does."""
        return None

    @abc.abstractmethod
    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one number per partition; `view.clip` is the shared clip, if there is one."""

    @abc.abstractmethod
    def describe(self) -> Description:
        """Say how it is drawn and how far it strays: no data needed."""


@dataclasses.dataclass(frozen=True)
class PeopleRelease(Release):
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

    @property
    def spends(self) -> tuple[Spending, ...]:
        """The noise."""
        return (Spending(self.noise_cost, "noise"),)

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one noisy number per partition."""
        adder = AdditiveNoise(self.noise_cost)
        one = np.ones(view.size, np.int64)
        values = adder.add(view.people(0), one, noise)
        beyond = adder.bounds(one, EVIDENCE_ALPHA / max(1, view.size))
        shown = float(np.maximum(clips_shown(values, beyond, one), 0.0).sum())
        return Released(values, np.full(view.size, float(adder.bound(1, self.alpha))), shown)

    def describe(self) -> Description:
        """Say the scale and the mean size of the noise."""
        adder = AdditiveNoise(self.noise_cost)
        return Description(adder.name, f"{adder.scale:.4g}", 0, f"{adder.mean_error:.4g}")


def clips_shown(noisy: np.ndarray, noise: np.ndarray, clip: np.ndarray) -> np.ndarray:
    """Return how many clips each number has beyond that much noise."""
    return np.asarray(np.maximum(abs(noisy).astype(float) - noise, 0.0) / clip.astype(float))


def counted(number: int, one: str, several: str) -> str:
    """Return a number of things in words: "1 person", "3 people"."""
    return f"{number} {one if number == 1 else several}"


def people(number: int) -> str:
    """Return an error bound that is a number of people, in words."""
    return f"at most {counted(number, 'person', 'people')}"
