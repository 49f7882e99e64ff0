"""How a clip is set: public clips, of which one is given, or chosen for all partitions at once."""

import dataclasses
import functools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget, Spending, cost_of_all
from beam_dp.mechanisms.histogram_choice.clip_choice import ClipChoice
from beam_dp.mechanisms.histogram_choice.noisy_histogram import HistogramNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.partition_view import PartitionView

_ROW_CLIPS = 41
_MANY_BITS = 24


@dataclasses.dataclass(frozen=True)
class SharedClip:
    """A clip that a noisy histogram of people chooses, for all partitions.

    Attributes:
        measure: what a person adds.
        unit: what one unit of the measure is worth.
        choice: how the clip is chosen, and what that costs.
    """

    measure: Measure
    unit: Fraction
    choice: ClipChoice

    @property
    def spends(self) -> tuple[Spending, ...]:
        """What the choice costs."""
        return (Spending(self.choice.cost, "clip", once=True),)

    @property
    def shift(self) -> int:
        """How many people above the clip may go unseen, typically."""
        return math.ceil(self.choice.unseen)

    def choose(self, view: PartitionView, noise: Noise) -> np.ndarray:
        """Draw the histogram that chooses the clip, of each person's norm or largest number."""
        sides = 1 + (not self.measure.sign)
        people, _ = view.histogram(0, sides * self.choice.buckets)
        counts = people.reshape(1, sides, self.choice.buckets)
        return self.choice.draw(
            counts.sum(axis=1, keepdims=True) if self.choice.folded else counts, noise
        )

    def largest(self, noisy: np.ndarray, but: float = 0.0) -> int | None:
        """Return, in units, up to where a histogram shows people, but for so many; None: nowhere."""
        index = int(self.choice.clips(noisy, but)[0])
        return None if index < 0 else self.measure.thresholds[index]

    def cost_of_noise(self, noise_cost: Budget, noisy: np.ndarray) -> Budget:
        """Return what noise costs, with what the choice of the clip left for it."""
        return cost_of_all([noise_cost, *filter(None, [self.choice.left(noisy)])])

    def record(
        self, noisy: np.ndarray, clips: Sequence[tuple[float, float]], noise_cost: Budget
    ) -> dict[str, object]:
        """Return what was drawn to choose the clip, in words and numbers, for the record.

        Args:
            noisy: what was drawn.
            clips: the clips that were taken, each with the scale of its noise, in the user's scale;
                none where nobody was shown.
            noise_cost: what the noise costs, without what the choice has left.
        """
        unit = float(self.unit)
        return {
            "clips": [clip for clip, _ in clips],
            "noise_scales": [scale for _, scale in clips],
            "cost_of_the_noise": str(self.cost_of_noise(noise_cost, noisy).amount),
            "norm": ("of one partition", "L1", "L2")[self.measure.norm],
            "histograms": [
                {
                    "cost": str(cost.amount),
                    "scale": HistogramNoise(cost).scale,
                    "people_up_to": [edge * unit for edge in edges],
                    "noisy_people": seen[0].tolist(),
                }
                for cost, edges, seen in self.choice.histograms(noisy)
            ],
        }


def row_clips(max_rows_per_partition: int | None) -> tuple[int, ...]:
    """Return the clips of a number of rows: powers of two, up to the bound on rows if there is one.

    Args:
        max_rows_per_partition: the most rows per person and partition; None: unknown.
    """
    powers = [1 << power for power in range(_ROW_CLIPS)]
    if max_rows_per_partition is None:
        return tuple(powers)
    return (*(power for power in powers if power < max_rows_per_partition), max_rows_per_partition)


@functools.cache  # equal ones are pickled once
def clips_of_norm(
    limits: tuple[int | None, int | None],
    clips: tuple[int, ...],
    cap: int | None,
    norm: int,
    fine: int,
) -> tuple[int, ...]:
    """Return the public clips of a norm, in units over `fine`.

    What a person has in one partition is at most `cap`, or the last of `clips`; they are in at most
    so many partitions as the user's bound says, or as there are (`limits`). If the user gave a cap
    and there is one partition or a bound, the norm of that is the one clip. Else a clip is a power
    of two, or of the root of two where norms are finer than units, up to the largest norm.
    """
    most = min(filter(None, limits), default=None)
    if cap is not None and (limits[0] or most == 1):
        return (_norm_of(cap * fine, most or 1, norm),)
    if most == 1:
        return clips
    largest = _norm_of((cap or clips[-1]) * fine, most or 1 << _MANY_BITS, norm)
    powers = {fine << power for power in range(largest.bit_length())}
    if fine > 1:
        powers |= {math.isqrt(2 * power * power) for power in powers}
    return (*sorted(power for power in powers if power < largest), largest)


def _norm_of(each: int, partitions: int, norm: int) -> int:
    """Return the norm of so many equal numbers, rounded up."""
    return each * partitions if norm == 1 else math.isqrt(each * each * partitions - 1) + 1
