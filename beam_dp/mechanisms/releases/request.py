"""Requests: what metrics ask for, one number per partition, before any budget is known.

A request is a frozen record. Two metrics whose requests are equal share one release, which is paid
once. The planner (`planning.builder`) builds the release of each request from its share of the
budget and the `Context` of the pipeline.
"""

import abc
import dataclasses
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.columns import Column, Role
from beam_dp.mechanisms.bounding.table import Field
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.releases.released import ALPHA, Release
from beam_dp.mechanisms.summaries.worker_limits import REMOVALS


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
        asker: the class of the metric whose request is built, for messages.
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
    lenders: "Mapping[Request, Any]" = dataclasses.field(default_factory=dict)

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


def units_between(
    ends: tuple[Fraction | None, Fraction | None], unit: Fraction
) -> tuple[int | None, int | None]:
    """Return two ends in units, rounded inwards, as far as they are given."""
    low, high = ends
    return (
        None if low is None else math.ceil(low / unit),
        None if high is None else math.floor(high / unit),
    )


class Request(abc.ABC):
    """The base of all requests: frozen records of all parameters of a release but its budget.

    Attributes:
        word: the name of the request in the account and in a plan.
        shown_as: its name in the plan of a metric that has several requests; "" for `word`.
        most_rows: the most rows of one partition that a worker can take for it; None: any number.
        in_its_unit: whether the number is in the unit of its column; else it is a count.
        pooled: whether its noise is drawn together with that of others.
    """

    word: ClassVar[str]
    shown_as: ClassVar[str] = ""
    most_rows: ClassVar[int | None] = None
    in_its_unit: ClassVar[bool] = False
    pooled: ClassVar[bool] = False

    @property
    def column_name(self) -> str:
        """The column that the request is about, for the account; "" for none."""
        return ""

    @property
    def borrows(self) -> "Request | None":
        """The request before it whose clip it takes; None: it has its own."""
        return None

    @property
    def asked_centre(self) -> "CentreRequest | None":
        """The centre that must be chosen before; None: none."""
        return None

    @property
    def wants_delta(self) -> bool:
        """Whether its release spends a delta."""
        return False

    @property
    def takes_delta_beside_rho(self) -> bool:
        """Whether its release spends that delta under zCDP too."""
        return False

    @abc.abstractmethod
    def build(self, context: Context, share: Budget) -> Release:
        """Return the release.

        Args:
            context: the parameters of the pipeline.
            share: what the release may cost, over all partitions of a person.

        Raises:
            ValueError: for a share or a context that does not allow the release.
        """


@dataclasses.dataclass(frozen=True)
class CentreRequest:
    """A centre that is chosen privately before sums of distances from it are taken.

    Attributes:
        column: the column.
        ends: between which values are cut, if they are.
        by_person: the centre of people's totals, not of their means.
    """

    column: Column
    ends: tuple[Fraction | None, Fraction | None]
    by_person: bool


@dataclasses.dataclass(frozen=True)
class ColumnRequest(Request):
    """A request about a column, or about rows and people alone.

    Attributes:
        column: the column; None: the request is about rows or people.
    """

    column: Column | None

    @property
    def column_name(self) -> str:
        """The column that the request is about; "" for rows and people."""
        return "" if self.column is None else self.column.name

    @property
    def unit(self) -> Fraction:
        """What one unit of the number is worth, in the user's scale."""
        return Fraction(self.column.detail if self.column and self.in_its_unit else 1)
