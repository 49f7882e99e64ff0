"""What transforms of rows about people check, and how they lay out the columns that they read."""

from collections.abc import Iterable, Sequence
from typing import Any

import apache_beam as beam

from beam_dp.mechanisms.bounding.columns import Column
from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms import known_columns
from beam_dp.transforms.columns import layout as layouts
from beam_dp.transforms.partitions import Partitions, PublicPartitions
from beam_dp.transforms.stages import guards, shard_number


class RowsOfPeople(beam.PTransform[beam.PCollection[Any], beam.PCollection[Any]]):
    """The base of transforms of rows about people: dataclasses of public parameters."""

    person: str | Sequence[str]
    partition: Sequence[str]
    partitions: Partitions | None
    shards: int | None
    columns: Sequence[str] | None

    def _check_names(self, several: bool = False) -> None:
        """Check the columns of the partition, and of the person, or of several owners of rows."""
        name = type(self).__name__
        if not several:
            checks.column(name, "person", self.person)
        self._owner, self._others = guards.check_person(name, self.person)
        self.person = (self._owner, *self._others) if self._others else self._owner
        self.partition = self._partition = checks.columns(name, "partition", self.partition)
        shard_number.check(name, self.shards)

    def _check_input(self, rows: beam.PCollection[Any], read: Iterable[str]) -> None:
        """Refuse rows for which the guarantee is not proved, and those without a wanted column."""
        name = type(self).__name__
        guards.check_input(name, rows)
        wanted = tuple(dict.fromkeys((self._owner, *self._partition, *read)))
        known_columns.check(name, rows, wanted, self.columns)

    def _laid_out(self, columns: tuple[Column, ...]) -> layouts.Layout:
        """Return which columns hold what in one run, which has a fresh key."""
        asked = self.partitions
        public = asked.index if isinstance(asked, PublicPartitions) else None
        return layouts.Layout(self._owner, self._partition, columns, public, layouts.fresh_key())
