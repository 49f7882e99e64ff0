"""Several tables of one run: `also_by: [store, [day, store], total]` adds three to the first one.

`PrivateTables` releases them. Which files there are is said by the mapping alone.
"""

import dataclasses

import beam_dp as dp
from beam_dp.mechanisms.numerics import checks


@dataclasses.dataclass(frozen=True)
class Table:
    """One of the tables of a run.

    Attributes:
        release: what releases it.
        ending: what the names of its files, and of its steps, have more than those of the first.
    """

    release: dp.PrivateAggregate
    ending: str = ""

    def file(self, path: str) -> str:
        """Return the name of its file, where that of the first table is `path`."""
        stem, dot, kind = path.rpartition(".")
        return f"{stem}{self.ending}{dot}{kind}"

    @property
    def title(self) -> str:
        """Which table it is."""
        return f"by {', '.join(self.release.partition)}" if self.release.partition else "all rows"


def tables_of(run: dp.PrivateTables) -> list[Table]:
    """Return the tables of a run, which have files of different names.

    Raises:
        ValueError: where two have the same file name.
    """
    tables = list(map(Table, run.tables, run.endings))
    rule = "be other columns for each table, and two have the same file name"
    files = {table.ending.casefold() for table in tables}
    checks.require(len(files) == len(tables), "release", "also_by", rule)
    return tables
