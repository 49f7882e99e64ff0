"""`Released`: a released table with its record, as Python and notebooks show it."""

import dataclasses
import os
import shutil
from typing import Any

import pyarrow as pa

from beam_dp.results.report import report
from beam_dp.results.view import View
from beam_dp.transforms.inputs import released_files

_COLUMNS = 100  # where the width of the terminal is not known


@dataclasses.dataclass(frozen=True, eq=False)
class Released:
    """A released table, and the record of what it cost and how it was drawn.

    `print(released)` shows the table rounded to what its noise allows.

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

    def report(self, path: str | os.PathLike[str] | None = None, title: str = "") -> str:
        """Return the table as a page, and write the page to a file: see `report`."""
        return report(self, path, title)

    def __str__(self) -> str:
        view = View.of(self.table, self.record)
        columns = shutil.get_terminal_size((_COLUMNS, 0)).columns
        return f"{view.text(columns, '.table')}\n{view.cost}"

    def _repr_html_(self) -> str:
        return View.of(self.table, self.record).html(".table")
