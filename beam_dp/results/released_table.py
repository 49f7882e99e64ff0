"""`Released`: a released table with its record, as Python and notebooks show it."""

import dataclasses
import os
from typing import Any

import pyarrow as pa

from beam_dp.results import released_files


@dataclasses.dataclass(frozen=True, eq=False)
class Released:
    """A released table, and the record of what it cost and how it was drawn.

    Attributes:
        table: one row per partition: the partition columns, then for each metric its number,
            `<name>_low` and `<name>_high`, which hold the true number in 95 of 100 releases
            (quantiles: `<name>_rank_error`, a number of people).
        record: what was spent on what, the parameters, the clips, the versions.
    """

    table: pa.Table
    record: dict[str, Any]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Released":
        """Return what a job released: the file at `path`, and its record beside it, `<path>.json`.

        Raises:
            ValueError: for another extension, and where one of the two files is missing.
        """
        return cls(*released_files.read("Released", os.fspath(path)))

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame; pandas must be installed."""
        return self.table.to_pandas()
