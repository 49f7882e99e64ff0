"""What a person adds to a number, and what all people add when each of them is clipped."""

import dataclasses

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView


@dataclasses.dataclass(frozen=True)
class Total:
    """What people add up to, each clipped; the base of what is computed from them in other ways.

    Attributes:
        measure: what a person adds, and the clip is chosen on, with the public clips as its
            thresholds. Without a norm the clip bounds what a person adds to each partition.
        size: how many numbers a partition has.
    """

    measure: Measure
    size: int = dataclasses.field(default=1, kw_only=True)

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """What must be summarised per partition: what people add, by bucket."""
        return (self.measure,)

    @property
    def where(self) -> str:
        """What the noise is on, for the plan; "" for one number."""
        return ""

    def clipped(self, view: PartitionView, index: int, clip: int, fine: int) -> np.ndarray:
        """Return the statistic per partition, each person clipped, in units over `fine`.

        Args:
            view: the partitions.
            index: that of the clip in the thresholds.
            clip: the clip, in units.
            fine: `grid_of` it.
        """
        whole, shares = view.clipped(0, np.full(view.size, index))
        return clipped_totals(whole, shares, clip, fine, self.measure.steps)


def grid_of(clip: int, steps: int) -> int:
    """Return how many steps of a grid a unit needs, so that all shares of a clip are on it."""
    zeros = (clip & -clip).bit_length() - 1
    return max(1, steps >> zeros)


def clipped_totals(
    whole: np.ndarray, shares: np.ndarray, clip: int, fine: int, steps: int
) -> np.ndarray:
    """Return totals of people up to the clip and, of others, their shares of the clip.

    Args:
        whole: totals of people up to the clip, in units.
        shares: of people above, in so many `steps`.
        clip: the clip, in units.
        fine: `grid_of` it; the totals are in units over `fine`.
        steps: those of a whole share.
    """
    below = integers.product(whole, _as_column(fine))
    return integers.add(below, integers.product(shares, _as_column(clip * fine // steps)))


def _as_column(number: int) -> np.ndarray:
    """Return an integer of any size as an array of one."""
    return integers.narrow(np.array([number], object))
