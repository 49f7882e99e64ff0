"""The metrics of sensitivity preprocessing: variance, standard deviation, trimmed mean, more.

Some metrics have a preprocessed release beside their own. Which errs less depends on the data
(`docs/ratios_and_spreads.md` has measured numbers), and nothing private may be looked at to choose;
so the user says, by `method`.
"""

import dataclasses
from fractions import Fraction
from typing import Literal

from beam_dp.mechanisms.metrics import extremes, options, rows, totals
from beam_dp.mechanisms.metrics.base import UNIT, Metric, check_unit
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.summaries.person_value import check_person_value

_WIDEST = Fraction(1 << 200)
Sensitivity = checks.Real | Literal["auto"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Preprocessing(Metric):
    """A statistic of one number per person, changed so that no person moves it far.

    The statistic f is replaced by the closest g that one person moves by at most Delta (Cummings
    and Durfee 2020), and noise of that size is added. By default Delta is found privately: a third
    of the budget chooses a bound R on people's numbers (as the clip of `Sum`), a sixth buys a noisy
    number n of people, and Delta = 2 R / n (for variances 4 R^2 / n, for trimmed means 2 R / n over
    the share that is left) is what one person among n with numbers from -R to R can move a mean by.
    It need not fit: whatever Delta is, the release is private, and a Delta that is too small or too
    large costs accuracy only. The error bound is that of the noise; it is infinite where the
    released numbers do not show that somebody is within R.

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
            f"{owner}: empty must be from -2^200 to 2^200, not {checks.shown(self.empty)}.",
        )
        if self.sensitivity != "auto":
            mend = 'Write sensitivity="auto".'
            delta = checks.number(owner, "sensitivity", self.sensitivity)
            checks.require(
                1 / _WIDEST <= delta <= _WIDEST,
                f"{owner}: sensitivity must be above 0 (from 2^-200 to 2^200), not "
                f"{checks.shown(self.sensitivity)}. {mend}",
            )

    @property
    def orders(self) -> tuple[str, ...]:
        """The column of `last_by`, if there is one."""
        return () if self.last_by is None else (self.last_by,)

    @property
    def statistic(self) -> str:
        """What is computed, as `preprocessing.release` calls it."""
        return type(self).__name__.lower()

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

    @property
    def _prefix(self) -> str:
        return f"preprocessed_{self.of}"


@dataclasses.dataclass(frozen=True)
class Variance(Preprocessing):
    """Release the variance of one number per person.

    Attributes:
        column: the value column.
        sample: divide by n - 1 instead of n.
    """

    column: str
    _: dataclasses.KW_ONLY
    sample: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = type(self).__name__
        if type(self.sample) is not bool:
            raise TypeError(
                f"{owner}: sample must be True or False, not {checks.shown(self.sample)}."
            )
        checks.require(self.empty == 0, f"{owner}: empty must be 0, the variance of nobody.")

    @property
    def statistic(self) -> str:
        """What is computed."""
        return "sample_variance" if self.sample else "variance"


@dataclasses.dataclass(frozen=True)
class StandardDeviation(Variance):
    """Release the standard deviation of one number per person: the root of the noisy variance.

    A `sensitivity` is that of the variance.
    """

    @property
    def _prefix(self) -> str:
        return "standard_deviation"


@dataclasses.dataclass(frozen=True)
class TrimmedMean(Preprocessing):
    """Release the mean of one number per person without the largest and smallest ones.

    Attributes:
        column: the value column.
        trim: the share of people that is left out at each end.
    """

    column: str
    _: dataclasses.KW_ONLY
    trim: checks.Real = Fraction(1, 10)

    def __post_init__(self) -> None:
        super().__post_init__()
        mend = "Write trim=0.1."
        checks.fraction_between("TrimmedMean", "trim", self.trim, 0, Fraction(1, 2), mend)

    @property
    def statistic(self) -> str:
        """What is computed."""
        return "trimmed_mean"

    @property
    def share(self) -> Fraction:
        """The share that is left out at each end."""
        return checks.decimal("TrimmedMean", "trim", self.trim)

    @property
    def _prefix(self) -> str:
        return "trimmed_mean"


_STATISTICS: dict[type[Metric], tuple[str, str]] = {
    totals.Sum: ("sum", "sum"),
    totals.Mean: ("mean", "mean"),
    rows.Median: ("median", "mean"),
    extremes.Max: ("maximum", "max"),
    extremes.Min: ("minimum", "min"),
}
"""What is computed, of which number per person. A maximum of maxima is that of all rows."""


def chosen(metric: Metric) -> Metric:
    """Return the metric as it is released: `Preprocessed`, if its method says so, else itself."""
    return preprocessed(metric) if is_preprocessed(metric) else metric


def has_method(metric: Metric) -> bool:
    """Return whether a metric has two releases."""
    return type(metric) in _STATISTICS and "method" in vars(metric)


def of_people(metric: Metric) -> tuple[str, str]:
    """Return what a metric computes of one number per person, and of which; else empty names."""
    if isinstance(metric, Preprocessed):
        return metric.of, metric.person_value
    return _STATISTICS.get(type(metric), ("", ""))


def preprocessed(metric: Metric) -> Preprocessed:
    """Return the preprocessed release of a metric that has two."""
    given = vars(metric)
    of, person_value = of_people(metric)
    if given.get("per") == "person" and of == "mean":
        person_value = "sum"
    return Preprocessed(
        metric.columns[0],
        of,
        name=metric.output,
        weight=metric.weight,
        unit=given["unit"],
        person_value=person_value,
    )


def is_preprocessed(metric: Metric) -> bool:
    """Return whether a metric has two releases and asks for the preprocessed one."""
    return has_method(metric) and vars(metric)["method"] == options.PREPROCESSING


def check_removed(owner: str, metric: Metric) -> None:
    """Refuse a preprocessed metric where its removal loss is needed."""
    checks.require(
        not is_preprocessed(metric),
        f'{owner}: method must not be "preprocessing": what is preprocessed is not monotone, and '
        "has no removal loss. Leave it out.",
    )
