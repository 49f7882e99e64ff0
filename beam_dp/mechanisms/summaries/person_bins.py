"""People by bins: each person of a partition is in one bin of public edges, or in none."""

import dataclasses

import numpy as np

from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.summaries.histograms import Measure

OPERATIONS = {"mean": "sum", "sum": "sum", "max": "max", "min": "min"}
"""For each person value that can be put in a bin, the field that it is made of."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PersonBins(Measure):
    """The number of people per bin of one number per person.

    Bucket j holds the numbers above threshold j - 1, up to threshold j; the last one those above
    all thresholds. A person without a value is in no bucket, everybody else in exactly one, which
    depends on the rows of that person alone: adding or removing a person changes one count by 1.

    Attributes:
        count: the index of the field that counts a person's values.
        mean: whether the number is `source` by `count`, rounded down; else it is `source`.
    """

    count: int
    mean: bool

    def of(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """Return the lines of the people who have a number, and these numbers (in units)."""
        counts = table.values[self.count]
        present = np.flatnonzero(np.asarray(counts > 0, bool))
        numbers = table.values[self.source][present]
        if self.mean:
            numbers = integers.narrow(numbers // counts[present])
        return present, numbers

    def buckets(self, numbers: np.ndarray) -> np.ndarray:
        """Return the bucket of each number."""
        if numbers.dtype == object:
            return np.searchsorted(np.array(self.thresholds, object), numbers)
        # Numbers of 64 bits lie strictly between the sentinels: so far out, all edges are alike.
        inside = [max(integers.LOWEST, min(integers.HIGHEST, each)) for each in self.thresholds]
        return np.searchsorted(np.array(inside, np.int64), numbers)
