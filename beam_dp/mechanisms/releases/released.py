"""Release, the base of all releases: public parameters, what they need and cost, and how to draw.

A release turns the view of some partitions (`PartitionView`) into one number and one error bound
per partition. It is built when the pipeline is built, from a metric's request and its share of the
budget (`request`), and holds no data.
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
"""Chance that the noise exceeds an error bound; the rest of 5% is for the search for the clip."""
EVIDENCE_ALPHA = Fraction(1, 10_000)
"""Chance that noise in any partition of a list is taken for people."""
OVERSHOOT = 1e-9
"""Chance that a clip is chosen above all numbers (then there is nothing but noise)."""


@dataclasses.dataclass(frozen=True)
class Released:
    """The released numbers of a list of partitions, with error bounds at 95%.

    Attributes:
        values: one number per partition, int64, float64 or Python integers.
        errors: the error bounds, float64; each release says from what the distance is.
        shown: how many people the numbers need beyond their noise, over all partitions.
    """

    values: np.ndarray
    errors: np.ndarray
    shown: float = 0.0


class Spending(NamedTuple):
    """One entry of the ledger.

    Attributes:
        cost: the cost of one draw.
        purpose: what it is for, where a release spends on several things.
        once: whether one draw serves all partitions; else there is one per partition.
    """

    cost: Budget
    purpose: str = ""
    once: bool = False


class Description(NamedTuple):
    """The words of a plan about a release.

    Attributes:
        mechanism: how it is drawn.
        noise_scale: the scale of the noise, in words; "-" where there is none.
        shift: how many people may be cut or passed over; 0 for none.
        expected_error: the mean absolute error of a released number, in words.
        reason: why the release is done so, and what else is worth knowing.
    """

    mechanism: str
    noise_scale: str
    shift: int
    expected_error: str
    reason: str = ""


class Chooser(Protocol):
    """A release, or a part of one, that chooses one clip for all partitions."""

    @property
    def shared_measure(self) -> Measure | None:
        """The measure that the clip is chosen on; None where no clip is shared."""

    @property
    def shift(self) -> int:
        """How many people may be cut at the clip."""

    def choose_shared(self, view: PartitionView, noise: Noise) -> int:
        """Return the index of the clip."""


class Release(abc.ABC):
    """The base of all releases, which are frozen records of public parameters."""

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
        """The chooser of a clip for all partitions, before any draw; None: no shared clip."""
        return None

    @abc.abstractmethod
    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one number per partition; `view.clip` is the shared clip, if there is one."""

    @abc.abstractmethod
    def describe(self) -> Description:
        """Describe how it is drawn and how large its error is, without any data."""


@dataclasses.dataclass(frozen=True)
class PeopleRelease(Release):
    """The number of people per partition plus noise; the error bound is that of the noise.

    Attributes:
        noise_cost: the cost of the noise, per partition.
        source: PEOPLE; or a field, to count the people whose number there is above 0.
        alpha: the chance that the error bound fails.
    """

    noise_cost: Budget
    source: int = PEOPLE
    alpha: Fraction = ALPHA

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measure that counts the people."""
        return (Measure(self.source),)

    @property
    def spends(self) -> tuple[Spending, ...]:
        """The noise."""
        return (Spending(self.noise_cost, "noise"),)

    def draw(self, view: PartitionView, noise: Noise) -> Released:
        """Draw one noisy number per partition."""
        adder = AdditiveNoise(self.noise_cost)
        clip = np.ones(view.size, np.int64)
        values = adder.add(view.people(0), clip, noise)
        beyond = adder.bounds(clip, EVIDENCE_ALPHA / max(1, view.size))
        shown = float(np.maximum(clips_shown(values, beyond, clip), 0.0).sum())
        return Released(values, np.full(view.size, float(adder.bound(1, self.alpha))), shown)

    def describe(self) -> Description:
        """Describe the scale and the mean size of the noise."""
        adder = AdditiveNoise(self.noise_cost)
        return Description(adder.name, f"{adder.scale:.4g}", 0, f"{adder.mean_error:.4g}")


def clips_shown(noisy: np.ndarray, noise: np.ndarray, clip: np.ndarray) -> np.ndarray:
    """Return by how many clips each number exceeds so much noise."""
    return np.asarray(np.maximum(abs(noisy).astype(float) - noise, 0.0) / clip.astype(float))


def counted(number: int, one: str, several: str) -> str:
    """Return a number of things in words: "1 person", "3 people"."""
    return f"{number} {one if number == 1 else several}"


def people(number: int) -> str:
    """Return an error bound that is a number of people, in words."""
    return f"at most {counted(number, 'person', 'people')}"
