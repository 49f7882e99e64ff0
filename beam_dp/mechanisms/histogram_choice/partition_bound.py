"""Choose how many partitions of a person count, from a noisy histogram of people.

What adds up needs no such bound (`metrics.additive`). Ranks, extremes, different values and
others pay for every partition of a person, and so there must be a most.

*The ladder* is 1, 2, 3, 4, 6, 8, ..., 1024. A person with rows in k partitions stands on one step:
the lowest edge that is at least k, or the one above all. k is counted after rows of partitions that
are not public were dropped, from this person's rows alone. So adding or removing one person changes
one count of the ladder by 1 and no other count: the sensitivity is 1 in L1 and in L2, whatever the
number of steps and however many rows or partitions the person has.

*The choice* is post-processing of released counts and public parameters: it costs nothing. A larger
bound L cuts fewer pairs of a person and a partition, and needs more noise per partition: L is
chosen as the clip of a number to which each pair adds `CUT` (`ClipChoice.best_clip`). Where no step
shows people, there are few, and L is a guess (`FEW`).

*The number of partitions P* is public for public partitions. For selected ones it is between the
highest step that shows people (somebody has rows in nearly so many) and the pairs of those who are
shown, divided by the people that a partition needs before its number is worth something (`USABLE`
times its noise): the geometric mean of the two is taken.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from beam_dp.mechanisms.bounding.ordering import changes
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.histogram_choice.clip_choice import ClipChoice
from beam_dp.mechanisms.histogram_choice.clipping_loss import Losses
from beam_dp.mechanisms.histogram_choice.noisy_histogram import HistogramNoise

LADDER = (1, *(edge for power in range(1, 10) for edge in (2**power, 3 * 2 ** (power - 1))), 1024)
"""1, 2, 3, 4, 6, 8, 12, ..., 768, 1024: two steps per octave."""
FEW, FEW_OF_MANY, MANY = 3, 1, 200
"""The bound where no step shows people: 3; 1 where there are MANY partitions or more."""
USABLE = 30
"""A partition is worth asking for from so many people on, times its noise."""
CUT = 0.1
"""A pair that is cut counts for so much beside a unit of noise: a search for a rank needs several
times as many people as the noise of a count, and the people who stay have the ranks of all.
Measured beside 1, over eleven kinds of data at epsilon 1: errors of ranks, extremes, distinct values
and the most frequent value are 0.69 to 0.95 times as large in the geometric mean. A twentieth is
better for ranks (0.59 to 0.94), and worse for the most frequent value (1.04)."""


def edges_up_to(limit: int | None) -> tuple[int, ...]:
    """Return the steps of the ladder where nobody can have more than `limit` partitions.

    Args:
        limit: a public number, at least 1; it is the last step if it is below 1024. None: unknown.
    """
    last = min(LADDER[-1], limit or LADDER[-1])
    return (*(edge for edge in LADDER if edge < last), last)


def partitions_of(table: Table) -> np.ndarray:
    """Return the number of partitions of each person of a reduced table.

    Args:
        table: holds every pair of its people, the lines of a person and of a pair together, as
            `Bounder.reduce` returns them.
    """
    if not len(table):
        return np.zeros(0, np.int64)
    new_person = changes(table.person)
    pairs = np.cumsum(new_person | changes(table.partition))
    before = pairs[new_person] - 1
    return np.asarray(np.diff(before, append=pairs[-1]), np.int64)


@dataclass(frozen=True)
class BoundChoice:
    """The chosen bound, with what its histogram says about the people beyond: all of it released.

    Attributes:
        bound: the most partitions of a person that count, L.
        choice: how it was chosen; its thresholds are the steps of the ladder.
        noisy: the noisy numbers of people per step, (1, 1, steps).
    """

    bound: int
    choice: ClipChoice
    noisy: np.ndarray

    @property
    def lost_share(self) -> float:
        """About how many pairs are cut for each that stays, at most; inf: nobody is shown.

        An estimate (`clipping_loss.lost`): beyond the highest step that shows people, counts go on
        falling.
        """
        edges = self.choice.thresholds
        if self.bound == edges[-1] < LADDER[-1]:  # nobody has more
            return 0.0
        kept = float(self._losses.kept[0])
        return float(self._losses.total[0]) / kept if kept > 0 else math.inf

    @property
    def _losses(self) -> Losses:
        place = self.choice.thresholds.index(self.bound)
        [losses] = self.choice.losses(self.noisy, np.array([place]))
        return losses

    def record(self) -> dict[str, Any]:
        """Return the choice for a record of the release, in plain values."""
        return {
            "bound": self.bound,
            "steps": list(self.choice.thresholds),
            "noisy_people": self.noisy.ravel().tolist(),
            "noise_scale": HistogramNoise(self.choice.cost).scale,
            "pairs_lost_estimate": float(self._losses.shown[0]),
        }


def choose(
    choice: ClipChoice, noisy: np.ndarray, noise: Sequence[float], partitions: int | None
) -> BoundChoice:
    """Return the bound for a released histogram; see the module's docstring.

    Args:
        choice: how it is chosen.
        noisy: the noisy numbers of people per step.
        noise: the mean absolute noise per partition and unit at each step.
        partitions: the public number of partitions; None: unknown.
    """
    edges, top = choice.thresholds, int(choice.highest(noisy)[0, 0])
    if top < 0:
        few = FEW_OF_MANY if partitions is not None and partitions >= MANY else FEW
        return BoundChoice(max(edge for edge in edges if edge <= few), choice, noisy)
    among: float = partitions or 0
    if not among:
        last = min(top, len(edges) - 1)
        pairs = float(choice.losses(noisy, np.array([last]))[0].kept[0])
        usable = math.sqrt(edges[last] * pairs / (USABLE * noise[last]))
        among = max(float(edges[last]), usable)
    index, _ = choice.best_clip(noisy, np.array(noise), among, CUT)
    return BoundChoice(edges[index], choice, noisy)
