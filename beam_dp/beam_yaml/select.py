"""`select` and `Select`: one SELECT is a whole release, of a file or table, or inside a pipeline."""

from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam

from beam_dp.beam_yaml.mappings import columns_of, metrics_of, statement_of
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.numerics import checks
from beam_dp.results.release import Released, release
from beam_dp.transforms.aggregate import PrivateAggregate
from beam_dp.transforms.private_tables import AGREE, PrivateTables
from beam_dp.transforms.sql.person_queries import Rows
from beam_dp.transforms.sql.released_queries import PostProcess, ReleasedQuery

_SUBJECT = "Select"


def select(
    statement: str, *, person: str | Sequence[str], budget: Budget, rows: Any = None, **options: Any
) -> Released:
    """Release what a SELECT asks for, of a file or a table of this process (extra: sql).

    The result is what `release` returns of the same parts, with the same guarantee: the whole
    output is private as `budget` says. **Every call spends its budget anew.**

        released = dp.select(
            "SELECT store, count(*) AS visits FROM 'visits.csv' GROUP BY ROLLUP (store)",
            person="visitor_id",
            budget=dp.Budget(epsilon=1.0, delta=1e-6),
        )

    `docs/how_to/rows.md` says what each part of a statement becomes, and what is refused.

    Args:
        statement: the SELECT, which names its files in FROM, or is FROM rows.
        person, budget: as in `PrivateAggregate`.
        rows: the table that FROM rows means, as for `release`.
        options: further options of `release`, as `partitions`, `period` or `ledger`.

    Raises:
        TypeError, ValueError, RunFailed: as `release`; the message names the part of the statement.
    """
    parts = _parts(statement, person, options)
    data = parts.pop("input", None)
    rule = "be given where FROM names no files, and left out where it does"
    hint = "Write FROM 'visits.csv', or rows=df with FROM rows."
    checks.require((data is None) != (rows is None), _SUBJECT, "rows", rule, hint)
    given = rows if data is None else data
    return release(given, person=person, budget=budget, **parts, **options)


class Select(beam.PTransform[beam.PCollection[Any], Any]):
    """Release what a SELECT asks for, of the rows of a pipeline (extra: sql).

        rows | dp.Select("SELECT day, sum(spent) AS spent FROM rows GROUP BY day", person="visitor_id",
                         budget=dp.Budget(epsilon=1.0, delta=1e-6))

    It is `Rows`, then `PrivateTables`, then SQL on what was released, and has their guarantee. One
    `beam.Row` per released row, as of `PrivateAggregate`; for ROLLUP, CUBE and GROUPING SETS a
    tuple of collections, the finest table first. A collection has no order: ORDER BY is for LIMIT.

    Attributes:
        tables: what is released; `tables.tables[0].record()` is the record of the finest table.

    Args:
        statement: the SELECT, with FROM rows.
        person, budget: as in `PrivateAggregate`.
        options: further options of `PrivateAggregate`, as `partitions` or `period`; and `totals`.
            `columns` names those of `rows`.

    Raises:
        TypeError, ValueError: when built; the message names the part of the statement.
    """

    def __init__(
        self, statement: str, *, person: str | Sequence[str], budget: Budget, **options: Any
    ) -> None:
        super().__init__()
        totals = options.pop("totals", AGREE)
        parts = _parts(statement, person, options)
        checks.require("input" not in parts, _SUBJECT, "statement", "be FROM rows in a pipeline")
        read = options.pop("columns", None) if "query" in parts else None
        self._query = Rows(parts["query"], read) if "query" in parts else None
        asked = parts["metrics"], budget, parts["partition"]
        first = PrivateAggregate(person, *asked, **options)
        self.tables = PrivateTables(first, parts.get("also_by", ()), totals)
        self._after = ReleasedQuery.of(parts.get("post_process"), self.tables)

    @property
    def charged(self) -> PrivateAggregate:
        """What a ledger is charged with."""
        return self.tables.charged

    def expand(self, rows: beam.PCollection[Any]) -> Any:
        """Make the rows, release, and run what is left on each released table."""
        rows = rows if self._query is None else rows | "Query" >> self._query
        released = rows | "Release" >> self.tables
        if self._after is not None:
            named = zip(released, self.tables.tables, self.tables.endings, strict=True)
            released = tuple(
                part | f"PostProcess{ending}" >> PostProcess(self._after, table)
                for part, table, ending in named
            )
        return released[0] if len(released) == 1 else released


def _parts(statement: str, person: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a statement says, in the words of `release`; refuse what the options say too."""
    given = {**options, "select": statement, "person": person}
    made = dict(statement_of(_SUBJECT, given).mapping)
    metrics = metrics_of(_SUBJECT, made["metrics"])
    return {**made, "metrics": metrics, "partition": columns_of(made.get("partition"))}
