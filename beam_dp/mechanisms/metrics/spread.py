"""Statistics of one number per person by preprocessing: trimmed means, and more."""

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, Literal

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.columns import Column, Role
from beam_dp.mechanisms.metrics.base import UNIT, Command, Metric, OfPeople, check_unit
from beam_dp.mechanisms.metrics.part import Context
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.options import PREPROCESSING
from beam_dp.mechanisms.releases.clipped import ClippedSum, people_of
from beam_dp.mechanisms.releases.preprocessed import CLIPS, SHARES, PreprocessedRelease
from beam_dp.mechanisms.releases.released import Release
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.person_value import check_person_value
from beam_dp.mechanisms.summaries.worker_limits import LINES

_WIDEST = Fraction(1 << 200)
Sensitivity = checks.Real | Literal["auto"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Preprocessing(Metric):
    """A statistic of one number per person, changed so that no person moves it far.

    The statistic f is replaced by the closest g that one person moves by at most Delta (Cummings
    and Durfee 2020), and noise of that size is added. By default Delta is found privately: a third
    of the budget chooses a bound R on people's numbers (the highest octave in which the histogram
    of `Sum`'s clip shows people), a sixth buys a noisy number n of people, and Delta = 2 R / n (for
    variances 4 R^2 / n, for trimmed means 2 R / n over the share that is left) is what one person
    among n with numbers from -R to R can move a mean by. It need not fit: whatever Delta is, the
    release is private, and a Delta that is too small or too large costs accuracy only. The interval
    is open on both sides: how far g is from f is a secret of the data. NaN: too few people for R.

    Attributes:
        person_value: what a person with several rows counts as: the "mean" of their values, the
            "sum", the "max", the "min" or the "last".
        last_by: for "last": the column that says when, by numbers, dates or times; among equal ones
            the largest value counts. It is the last of the rows that the bounds leave; rows without
            it come first.
        sensitivity: "auto", or Delta in the scale of the statistic.
        empty: the statistic of nobody, a public number; the closer, the less is changed.
        unit: the grid of values.
    """

    word: ClassVar[str] = "preprocessed"
    most_rows: ClassVar[int] = LINES
    root: ClassVar[bool] = False
    """Whether the root of the statistic is released."""

    person_value: str = "mean"
    last_by: str | None = None
    sensitivity: Sensitivity = "auto"
    empty: checks.Real = 0
    unit: checks.Real = UNIT

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = type(self).__name__
        check_person_value(owner, self.person_value, self.last_by)
        check_unit(owner, self.unit)
        checks.require(
            abs(checks.number(owner, "empty", self.empty)) <= _WIDEST,
            owner,
            "empty",
            f"be from -2^200 to 2^200, not {checks.shown(self.empty)}",
        )
        if self.sensitivity != "auto":
            mend = 'Write sensitivity="auto".'
            delta = checks.number(owner, "sensitivity", self.sensitivity)
            checks.require(
                1 / _WIDEST <= delta <= _WIDEST,
                owner,
                "sensitivity",
                f"be above 0 (from 2^-200 to 2^200), not {checks.shown(self.sensitivity)}",
                mend,
            )

    def columns(self) -> tuple[Column, ...]:
        """Return the value column, and that of `last_by`, if there is one."""
        return (*super().columns(), *order_of(self.last_by))

    def build(self, context: Context, share: Budget) -> Release:
        """Return the release: a third of the share for R, a sixth for n, the rest for g."""
        scale, people, noise = None, None, share
        if self.exact_sensitivity is None:
            search, counting, noise = share.split(SHARES)
            scale = self.bound_of(context, search, noise)
            field = context.field(self.source, "count")
            people = people_of(context.each(counting), field, context.alpha)
        cost = share if scale is None else share.scaled(sum(SHARES[1:], Fraction(0)))
        return PreprocessedRelease(
            relation=Relation(context.index(self.source), order=self.order(context)),
            unit=self.exact_unit,
            statistic=self.statistic,
            trim=self.share,
            person_value=self.person_value,
            empty=self.exact_empty,
            root=self.root,
            sensitivity=self.exact_sensitivity,
            scale=scale,
            people=people,
            noise_cost=context.each(noise),
            cost=context.each(cost),
            alpha=context.alpha,
        )

    def order(self, context: Context) -> int:
        """Return the index of the column that says which row is the last; -1: none."""
        return context.index(next(iter(order_of(self.last_by)), None))

    def bound_of(self, context: Context, search: Budget, noise: Budget) -> ClippedSum:
        """Return what chooses R, a bound on people's numbers, for all partitions.

        Args:
            context: what the pipeline fixes.
            search: what the choice costs.
            noise: what the noise of a sum would cost, which is not drawn.
        """
        peak = "sum" if self.person_value == "sum" else "peak"
        return ClippedSum(
            source=context.field(self.source, peak),
            signed=True,
            thresholds=CLIPS,
            unit=self.exact_unit,
            looks=(search,),
            noise_costs=(noise,),
            shared=True,
            alpha=context.alpha,
        )

    @property
    def exact_sensitivity(self) -> Fraction | None:
        """Delta in the user's scale; None: found privately."""
        given = self.sensitivity
        return None if given == "auto" else checks.decimal("Delta", "sensitivity", given)

    @property
    def exact_empty(self) -> Fraction:
        """The statistic of nobody, in the user's scale."""
        return checks.decimal("Delta", "empty", self.empty)

    @property
    def statistic(self) -> str:
        """What is computed, as `preprocessing.groups` calls it."""
        return self._prefix

    @property
    def share(self) -> Fraction:
        """The share that a trimmed mean leaves out at each end."""
        return Fraction(0)


@dataclasses.dataclass(frozen=True)
class Preprocessed(Preprocessing):
    """Release the mean, median, maximum or minimum of one number per person by preprocessing.

    `Mean`, `Median`, `Max` and `Min` have other releases that need less of the data's shape; this
    is the same statistic by `Preprocessing`.

    Attributes:
        column: the value column.
        of: "mean", "median", "maximum" or "minimum".
    """

    column: str
    of: str

    def __post_init__(self) -> None:
        super().__post_init__()
        names = ("mean", "median", "maximum", "minimum")
        checks.one_of("Preprocessed", "of", self.of, names)

    @property
    def statistic(self) -> str:
        """What is computed."""
        return self.of

    def of_people(self) -> OfPeople:
        """Return what it computes."""
        return OfPeople(self.of, self.person_value)

    def takes_own_epsilons(self) -> bool:
        """Return whether each person may have an epsilon of their own: for extremes."""
        return self.of in ("maximum", "minimum")

    @property
    def _prefix(self) -> str:
        return f"preprocessed_{self.of}"


@dataclasses.dataclass(frozen=True)
class TrimmedMean(Preprocessing):
    """Release the mean of one number per person without the largest and smallest ones.

    Attributes:
        column: the value column.
        trim: the share of people that is left out at each end.
    """

    command: ClassVar[Command | None] = Command(
        "COLUMN[:SHARE]", "mean without a tenth, or SHARE, each end"
    )

    column: str
    _: dataclasses.KW_ONLY
    trim: checks.Real = Fraction(1, 10)

    def __post_init__(self) -> None:
        super().__post_init__()
        mend = "Write trim=0.1."
        checks.fraction_between("TrimmedMean", "trim", self.trim, 0, Fraction(1, 2), mend)

    @property
    def share(self) -> Fraction:
        """The share that is left out at each end."""
        return checks.decimal("TrimmedMean", "trim", self.trim)


def order_of(last_by: str | None) -> Sequence[Column]:
    """Return the column that says which row is the last, if there is one."""
    return () if last_by is None else (Column(last_by, Role.ORDER),)


def preprocessed(metric: Metric) -> Preprocessing:
    """Return the preprocessed release of a metric that has two.

    Which errs less depends on the data (`docs/ratios_and_spreads.md` has measured numbers), and
    nothing private may be looked at to choose; so the user says, by `method`.

    Args:
        metric: one with a `method`.
    """
    if isinstance(metric, Preprocessing):
        method: dict[str, Any] = {"method": PREPROCESSING}  # of those that have another one too
        return dataclasses.replace(metric, **method)
    of, given = metric.of_people(), vars(metric)
    assert of is not None
    return Preprocessed(
        given["column"],
        of.statistic,
        name=metric.output,
        weight=metric.weight,
        unit=given["unit"],
        person_value=of.person_value,
    )
