"""Parts: what metrics are made of, one number per partition, before any budget is known.

A part is a frozen record. Two metrics whose parts are equal share one release, which is paid once.
The planner (`planning.builder`) lets each part build its release from its share of the budget and
the `Context` of the pipeline. Most metrics are one part: themselves, without name and weight.
"""

import abc
import dataclasses
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.columns import Column, Role
from beam_dp.mechanisms.bounding.table import Field
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.releases.released import ALPHA, Release
from beam_dp.mechanisms.summaries.worker_limits import REMOVALS

Ends = tuple[Fraction | None, Fraction | None]
"""The ends of the values of a column, as far as they are known."""


@dataclasses.dataclass(frozen=True)
class Context:
    """The public parameters of a pipeline, for all its releases.

    Attributes:
        columns: all columns that are read, in the order of a table.
        fields: what is aggregated per person and partition; building a release adds fields.
        reach: the most partitions that a person can have rows in.
        depth: the most rows per person and partition; None: unknown.
        partitions: how many partitions there are; None: unknown.
        about: about how many there are, by what was released before; None: no guess. It decides
            shares only, never what a person can add.
        alpha: the chance that the noise strays further than an interval says.
        asker: the class of the metric whose part is built, for messages.
        output: the output column of that metric, for messages.
        together: how many numbers share one draw of noise with it.
        jointly: whether all partitions share one draw of noise.
        lenders: the releases that are there already, for those that take the clip of another.
    """

    columns: tuple[Column, ...]
    fields: list[Field] = dataclasses.field(default_factory=list)
    reach: int = 1
    depth: int | None = None
    partitions: int | None = None
    about: int | None = None
    alpha: Fraction = ALPHA
    asker: str = ""
    output: str = ""
    together: int = 1
    jointly: bool = False
    lenders: "Mapping[MetricPart, Release]" = dataclasses.field(default_factory=dict)

    @property
    def others(self) -> tuple[int, ...]:
        """The indexes of the columns of further owners; empty: rows have one owner."""
        return tuple(i for i, column in enumerate(self.columns) if column.role is Role.OWNER)

    @property
    def several_owners(self) -> bool:
        """Whether rows have several owners."""
        return bool(self.others)

    def index(self, column: Column | None) -> int:
        """Return the index of a column among all columns that are read; -1 for None."""
        return -1 if column is None else self.columns.index(column)

    def field(self, column: Column | None, operation: str, *ends: int | None) -> int:
        """Return the index of a field over a column; a new field is added to `fields`.

        Args:
            column: the column.
            operation: as in `Field`.
            ends: between which values are cut, in units, if they are.
        """
        field = Field(self.index(column), operation, *ends)
        if field not in self.fields:
            self.fields.append(field)
        return self.fields.index(field)

    def each(self, share: Budget) -> Budget:
        """Return what one partition may cost, from what all partitions of a person may cost."""
        return share.scaled(Fraction(1, self.reach))

    def noise(self, share: Budget) -> Budget:
        """Return what one draw of noise may cost, from what all partitions of a person may cost."""
        return share if self.jointly else self.each(share)

    def check_removals(self, removals: int) -> int:
        """Return K, or refuse a search that would look at more people than a worker can hold.

        K depends on the budget and the candidates only; in the data, far fewer people matter.

        Raises:
            ValueError: names the metric and the number, and says how to mend the call.
        """
        checks.require(
            removals <= REMOVALS,
            self.asker,
            "budget",
            f"be larger: the search for output column {self.output} would look at the "
            f"{removals} most important people of each partition, and at most {REMOVALS} "
            "can be held",
            "Give it more epsilon (rho) or weight, fewer candidates, or fewer partitions "
            "per person: bounds=dp.ContributionBounds(partitions=1); or release from "
            "below, which looks at fewer: search=dp.AboveThreshold.",
        )
        return removals


def units_between(ends: Ends, unit: Fraction) -> tuple[int | None, int | None]:
    """Return two ends in units, rounded inwards, as far as they are given."""
    low, high = ends
    return (
        None if low is None else math.ceil(low / unit),
        None if high is None else math.floor(high / unit),
    )


def ends_of_totals(ends: Ends) -> Ends:
    """Return the ends that a total of values cannot pass: a low from 0 on, a high up to 0."""
    low, high = ends
    return low if low is not None and low >= 0 else None, (
        high if high is not None and high <= 0 else None
    )


@dataclasses.dataclass(frozen=True)
class CentreRequest:
    """A centre that is chosen privately before sums of distances from it are taken.

    Attributes:
        column: the column.
        ends: between which values are cut, if they are.
        by_person: the centre of people's totals, not of their means.
    """

    column: Column
    ends: Ends
    by_person: bool

    @property
    def reach(self) -> Ends:
        """Between which ends the centre is."""
        return ends_of_totals(self.ends) if self.by_person else self.ends


class MetricPart(abc.ABC):
    """One number per partition: a frozen record of all parameters of a release but its budget.

    Attributes:
        word: its name in the account and in a plan.
        shown_as: its name in the plan of a metric that has several parts; "" for `word`.
        whole: whether it counts something.
        most_rows: the most rows of one partition that a worker can take for it; None: any number.
    """

    word: ClassVar[str]
    shown_as: ClassVar[str] = ""
    whole: ClassVar[bool] = False
    most_rows: ClassVar[int | None] = None

    @abc.abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """Return the columns that it reads: the one that it is about, if there is one, first."""

    @abc.abstractmethod
    def build(self, context: Context, share: Budget) -> Release:
        """Return the release.

        Args:
            context: the parameters of the pipeline.
            share: what the release may cost, over all partitions of a person.

        Raises:
            ValueError: for a share or a context that does not allow the release.
        """

    @property
    def source(self) -> Column | None:
        """The column that it is about; None: it is about rows or people alone."""
        return next(iter(self.columns()), None)

    @property
    def column_name(self) -> str:
        """The name of that column, for the account; "" for none."""
        return "" if self.source is None else self.source.name

    @property
    def in_its_unit(self) -> bool:
        """Whether the number is in the unit of its column; else it is a count."""
        return not self.whole and self.source is not None and self.source.role is Role.VALUE

    @property
    def exact_unit(self) -> Fraction:
        """What one unit of the number is worth, in the user's scale."""
        return Fraction(self.source.detail if self.source and self.in_its_unit else 1)

    @property
    def pooled(self) -> bool:
        """Whether its noise is drawn together with that of others."""
        return False

    @property
    def borrows(self) -> "MetricPart | None":
        """The part before it whose clip it takes; None: it has its own."""
        return None

    @property
    def asked_centre(self) -> CentreRequest | None:
        """The centre that must be chosen before; None: none."""
        return None

    @property
    def wants_delta(self) -> bool:
        """Whether its release spends a delta."""
        return False


@dataclasses.dataclass(frozen=True)
class PooledPart(MetricPart):
    """One of several parts of a metric, which share a draw of noise.

    Attributes:
        column: the column that it is about.
    """

    column: Column

    def columns(self) -> tuple[Column, ...]:
        """Return the column."""
        return (self.column,)

    @property
    def pooled(self) -> bool:
        """Whether its noise is drawn together with that of others: yes."""
        return True
