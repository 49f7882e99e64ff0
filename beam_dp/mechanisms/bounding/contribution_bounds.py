"""The public bounds on what one person contributes."""

import dataclasses

from beam_dp.mechanisms.numerics import checks


@dataclasses.dataclass(frozen=True)
class ContributionBounds:
    """Bound what one person contributes: L0, Linf and L1, alone or together.

    After bounding, a person has rows in at most `partitions` partitions, at most
    `rows_per_partition` rows in each of them and at most `rows` rows in all.

    A larger bound loses less data and adds more noise: the noise of every metric grows with the
    number of partitions that one person can reach. Counts and sums need no bound on rows, for
    their clip is chosen privately; give one only to cut heavy contributors before that.

    Args:
        partitions: most partitions a person may reach (L0); None: no limit of this kind.
        rows_per_partition: most rows a person may have in one partition (Linf); None: no limit.
        rows: most rows a person may have in all (L1); None: no limit.

    Raises:
        TypeError, ValueError: when a bound is neither None nor an int of at least 1.
    """

    partitions: int | None
    rows_per_partition: int | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None:
                checks.positive_integer("ContributionBounds", field.name, value, "None: no limit.")

    def __reduce__(self) -> tuple[type, tuple[int | None, ...]]:
        return ContributionBounds, (self.partitions, self.rows_per_partition, self.rows)

    @property
    def reach(self) -> int | None:
        """The most partitions a person can have rows in: a limit on rows limits these too."""
        return _least(self.partitions, self.rows)

    @property
    def depth(self) -> int | None:
        """The most rows a person can have in one partition."""
        return _least(self.rows_per_partition, self.rows)


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
