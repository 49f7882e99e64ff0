"""What transforms of rows about people check, and how they lay out the columns that they read."""

from collections.abc import Iterable, Sequence
from typing import Any

import apache_beam as beam

from beam_dp.mechanisms.accounting import periods
from beam_dp.mechanisms.bounding.table import Column
from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms import known_columns
from beam_dp.transforms.columns import layout as layouts
from beam_dp.transforms.columns import public_keys
from beam_dp.transforms.partitions import Partitions, PublicPartitions
from beam_dp.transforms.sql.row_queries import Query
from beam_dp.transforms.stages import guards, shard_number


class RowsOfPeople(beam.PTransform[beam.PCollection[Any], beam.PCollection[Any]]):
    """The base of transforms of rows about people: dataclasses of public parameters."""

    person: str | Sequence[str]
    partition: Sequence[str]
    partitions: Partitions | None
    shards: int | None
    columns: Sequence[str] | None
    period: str | None = None
    ledger_period: str | None = None
    _source: str | None = None

    def _check_names(self, several: bool = False) -> None:
        """Check the columns of the partition, and of the person, or of several owners of rows."""
        name = type(self).__name__
        if not several:
            checks.column(name, "person", self.person)
        self._subject, self._others = guards.check_person(name, self.person)
        self.person = (self._subject, *self._others) if self._others else self._subject
        self.partition = self._partition = checks.columns(name, "partition", self.partition)
        rule = "not be the person: each would have one person"
        is_other = bool(self._others) or self._subject not in self._partition
        hint = "Leave it out, or name another column."
        checks.require(is_other, name, "partition", rule, hint)
        shard_number.check(name, self.shards)
        self._only: public_keys.PublicKeys | None = None
        self._also_listed: tuple[layouts.Listed, ...] = ()
        if self.period is not None or self.ledger_period is not None:
            self._check_period(name)

    def _check_period(self, name: str) -> None:
        hint = 'Write period="day".'
        rule = "be given where ledger_period is"
        checks.require(self.period is not None, name, "period", rule, hint)
        self.period = checks.column(name, "period", self.period)
        rule = f"be another column than the person, not {self.period!r}"
        checks.require(self.period != self._subject, name, "period", rule, hint)
        rule = f"be left out where rows have several owners: {checks.listed(self.person)}"
        hint = "Name one column as the person."
        checks.require(not self._others, name, "period", rule, hint)
        if self.ledger_period is not None:
            kept = periods.named(self.ledger_period)
            self._only = public_keys.PublicKeys(public_keys.KeyList.of((each,) for each in kept))

    def reads(self, query: Query | None) -> None:
        """Take note of what makes some of the rows, before it is told to a ledger.

        Args:
            query: what makes them; None: no query does.

        Raises:
            ValueError: for a person who is computed of several columns. For a period that other
                rows have in another column, or compute in another way; so may the ledger.
        """
        for name in (self._subject, *self._others):
            if query is not None:
                query.check_person(name)
        if self.period is not None:
            source = self.period if query is None else query.source_of(self.period)
            rule = f"be the same for all rows and the ledger, not {self._source} and {source}"
            known = self._source in (None, source)
            hint = "Charge the ledger after the release is applied to its rows."
            checks.require(known, type(self).__name__, "period", rule, hint)
            self._source = source

    @property
    def period_source(self) -> str:
        """The column of the period, or the SQL that computes it, for a ledger; "" for none."""
        if self._source is None:
            self._source = self.period or ""
        return self._source

    @property
    def people_columns(self) -> tuple[str, ...]:
        """The columns that say who is protected: of the person, or the owners, and the period."""
        period = () if self.period is None else (self.period,)
        return (self._subject, *self._others, *period)

    def _check_input(self, rows: beam.PCollection[Any], read: Iterable[str]) -> None:
        """Refuse rows for which the guarantee is not proved, and those without a wanted column."""
        name = type(self).__name__
        guards.check_input(name, rows)
        for query in known_columns.queries_of(rows):
            self.reads(query)
        also = (name for names, _ in self._also_listed for name in names)
        wanted = tuple(dict.fromkeys((*self.people_columns, *self._partition, *read, *also)))
        known_columns.check(name, rows, wanted, self.columns)

    def _laid_out(self, columns: tuple[Column, ...]) -> layouts.Layout:
        """Return which columns hold what in one run, which has a fresh key."""
        asked = self.partitions
        public = asked.index if isinstance(asked, PublicPartitions) else None
        parts = self._subject, self._partition, columns, public, layouts.fresh_key()
        return layouts.Layout(*parts, self.period, self._only, self._also_listed)
