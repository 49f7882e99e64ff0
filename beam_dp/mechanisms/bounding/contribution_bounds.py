"""The public bounds on what one person contributes."""

import dataclasses
from typing import Literal

from beam_dp.mechanisms.numerics import checks

AUTO: Literal["auto"] = "auto"
_NONE = "None: no limit."


@dataclasses.dataclass(frozen=True)
class ContributionBounds:
    """Bound what one person contributes: L0, Linf and L1, alone or together.

    After bounding, a person has rows in at most `partitions` partitions, at most
    `rows_per_partition` rows in each of them and at most `rows` rows in all. Rows of a partition
    are cut in proportion to their values: each value keeps the part that all rows keep, rounded
    down or up by a keyed hash, so that means and shares stay what they are on average. (Beyond
    1,024 different rows of a person in a partition, 1,024 of them stand for all.)

    Counts, sums, means, shares and distinct values need no bound: each person's contribution to all
    partitions is clipped once, to a size that is chosen privately (`metrics.additive`). Give a
    bound only to drop rows of heavy contributors before that.

    The noise of ranks, extremes, the most frequent value and others grows with the number of
    partitions in which one person counts. By default that bound is chosen privately, so that loss
    and noise together are small: 8% of the budget (of epsilon or rho) pay for a noisy histogram of
    how many partitions people have. A known bound costs nothing.

    Args:
        partitions: most partitions of a person that count (L0); "auto": chosen privately, up to
            1,024, where a metric needs it; None: no limit of this kind.
        rows_per_partition: most rows a person may have in one partition (Linf); None: no limit.
        rows: most rows a person may have in all (L1); None: no limit.

    Raises:
        TypeError, ValueError: when a bound is neither None nor an int of at least 1.
    """

    partitions: int | Literal["auto"] | None = "auto"
    rows_per_partition: int | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is None or (value == AUTO and field.name == "partitions"):
                continue
            hint = 'Or "auto", or None: no limit.' if field.name == "partitions" else _NONE
            checks.positive_integer("ContributionBounds", field.name, value, hint)

    def __reduce__(self) -> tuple[type, tuple[int | str | None, ...]]:
        return ContributionBounds, (self.partitions, self.rows_per_partition, self.rows)

    @property
    def is_automatic(self) -> bool:
        """Whether the bound on partitions is to be chosen privately."""
        return self.partitions == AUTO

    @property
    def max_partitions(self) -> int | None:
        """The most partitions a person can have rows in: a limit on rows limits these too."""
        return _least(None if self.partitions == AUTO else self.partitions, self.rows)

    def up_to(self, partitions: int | None) -> "ContributionBounds":
        """Return the bounds with this one on partitions, where that is to be chosen privately."""
        return dataclasses.replace(self, partitions=partitions) if self.is_automatic else self

    @property
    def max_rows_per_partition(self) -> int | None:
        """The most rows a person can have in one partition."""
        return _least(self.rows_per_partition, self.rows)


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
