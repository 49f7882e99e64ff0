"""People with an epsilon of their own: which of a few public ones each person has.

The epsilons that are allowed are public, and so is which of them a person has, like their identity:
it must not depend on what the data say of them.

*Preprocessing.* With noise of scale b (steps of the grid) and Delta_i = floor(b e_i), person i pays
Delta_i / b <= e_i for a number that they move by at most Delta_i (Cummings, Durfee 2020,
Proposition 7.3). Here e_i is the rest of epsilon_i after the private choice of the bound R on
people's numbers and, for extremes, of the number n of people. These cost everybody the same, a
third and a sixth of the smallest epsilon. So each person pays epsilon_i in all, whatever the rows
of the others are.

For a person of the largest epsilon, Delta is R (sums) or 2 R / n (extremes), or the user's
sensitivity. g is

* for sums, the sum of x_i cut to [-Delta_i, Delta_i];
* for the maximum, the least y + sum of Delta_i over all x_i > y, for y = empty or some x_i: the
  preprocessed max(empty, largest value). That is monotone, so the bound from below never binds,
  and to lower it to y, all people above y must go. The minimum mirrors it.

*A median* is searched, and each person's vote has a weight. Person i counts w_i =
floor(D epsilon_i / epsilon) / D of a person, epsilon the largest. By the theorem of `CentralSearch`
a search that is epsilon-differentially private for a whole person is (w_i epsilon)-differentially
private for somebody who has w_i in all, and w_i epsilon <= epsilon_i. This takes the place of the
personalised exponential mechanism of Cummings and Durfee (2020, Proposition 7.5). The result is the
median by weight: a person who asks for more privacy counts less. NaN: people weigh too little.
"""

import dataclasses
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.table import Column, Role
from beam_dp.mechanisms.candidates.decimal_grid import default_values
from beam_dp.mechanisms.metrics.base import Context, Metric
from beam_dp.mechanisms.metrics.preprocessed import FINE, PreprocessedRelease, Preprocessing, grid
from beam_dp.mechanisms.metrics.quantiles import MiddleRelease
from beam_dp.mechanisms.metrics.released import Description, Release
from beam_dp.mechanisms.noise.interval_widths import laplace_bound
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.numerics.checks import refuse
from beam_dp.mechanisms.search.quantiles.middle_quantile import CentralSearch
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from beam_dp.mechanisms.summaries.person_value import TierRelation

SUBJECT = "PreprocessSensitivity"
STATISTICS = ("sum", "maximum", "minimum", "median")
_LEAST = Fraction(1, 1_000_000)
ANOTHER_WAY = "It is released in another way here: see person_value and sensitivity."
_KEPT = ("person_value", "sensitivity", "empty", "unit")
_PLAIN = ("column", "of", "name", "weight")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PersonEpsilonRelease(PreprocessedRelease):
    """One statistic per partition (see the module), with an epsilon for each person.

    Attributes:
        epsilons: the epsilon that each tier pays for g, per partition, in rising order.
    """

    epsilons: tuple[Fraction, ...]

    def _values(self, view: PartitionView, levels: np.ndarray, noise: Noise) -> np.ndarray:
        values = np.full(view.size, 0.0)
        for partition, lines in enumerate(view.owned(0)):
            tiers = np.minimum(lines.counts, len(self.epsilons)) - 1
            level = int(levels[partition])
            delta = self._largest(level, self._bound(view, level))
            values[partition] = self._drawn(integers.widen(lines.items), tiers, delta, noise)
        return values

    def _largest(self, level: int, bound: int | None) -> Fraction:
        """Return Delta in units for a person of the largest epsilon."""
        if self.metric.statistic == "sum" and self.metric.exact_sensitivity is None:
            assert bound is not None
            return Fraction(bound)
        return self._delta(level, bound)

    def _drawn(
        self, numbers: np.ndarray, tiers: np.ndarray, delta: Fraction, noise: Noise
    ) -> float:
        """Return g plus noise in the user's scale."""
        coarse, resolution = grid(delta, 1)
        per_unit = Fraction(resolution, 1 << coarse)
        width = math.ceil(delta * per_unit) / self.epsilons[-1]
        steps = np.array([math.floor(width * each) for each in self.epsilons], object)
        empty = round(self.metric.exact_empty / self.metric.exact_unit * per_unit)
        exactly = clamped(
            self.metric.statistic, (numbers >> coarse) * resolution, steps[tiers], empty
        )
        drawn = int(noise.discrete_laplace(1 / width, 1)[0])
        step = self.metric.exact_unit / per_unit
        return float((exactly + drawn) * step)

    def describe(self) -> Description:
        """Describe it in units of Delta, the sensitivity of a person of the largest epsilon."""
        rate = self.epsilons[-1]
        scale = f"{float(1 / rate):.4g} Delta"
        parts = ", ".join(f"{float(epsilon / rate):.3g}" for epsilon in self.epsilons)
        bound = laplace_bound(rate / FINE, self.alpha) / FINE
        return Description(
            f"preprocessing for a {self.known} sensitivity and an epsilon per person, then noise",
            f"{scale} + |f - g|",
            scale,
            f"by epsilon, a person moves g by at most {parts} times Delta; noise within "
            f"{bound:.4g} Delta for 95%",
        )


def clamped(statistic: str, numbers: np.ndarray, sensitivities: np.ndarray, empty: int) -> int:
    """Return g of one partition, in steps; person i moves it by at most their sensitivity.

    Args:
        statistic: "sum", "maximum" or "minimum".
        numbers: Python integers, one per person.
        sensitivities: Delta_i, Python integers of at least 0.
        empty: f of nobody, which is 0 for sums.
    """
    if statistic == "sum":
        return int(np.sum(np.clip(numbers, -sensitivities, sensitivities), initial=0))
    if statistic == "minimum":
        return -clamped("maximum", -numbers, sensitivities, -empty)
    above = numbers > empty
    order = np.argsort(-numbers[above], kind="stable")
    values, deltas = numbers[above][order], sensitivities[above][order]
    paid = np.append(np.array([0], object), np.cumsum(deltas))
    return int(min(np.append(values, np.array([empty], object)) + paid))


@dataclasses.dataclass(frozen=True)
class PersonalisedStatistic(Preprocessing):
    """A sum or an extreme of one number per person, each person with an epsilon of their own.

    With an epsilon_i per person the noise has one scale b, and person i moves g by at most
    Delta_i = b epsilon_i: see the module. These are the statistics whose g is
    known for unequal Delta_i and any number of people: sums (each person cut to Delta_i) and
    max(empty, largest value) with its mirror. A median is searched, each person with a weight
    (`weighted`); `sensitivity` and `empty` do not apply to it.

    Attributes:
        column: the value column.
        of: "sum", "maximum", "minimum" or "median".
        person_epsilon: the column that holds each person's epsilon.
        epsilons: the public numbers that may be in it, multiples of a millionth.
    """

    takes_auto_bound: ClassVar[bool] = False  # not all people could pay for a choice

    of: str
    person_epsilon: str
    epsilons: tuple[checks.Real, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(SUBJECT, "statistic", self.of, STATISTICS)
        checks.column(SUBJECT, "person_epsilon", self.person_epsilon)
        object.__setattr__(self, "epsilons", _rising(self.epsilons))

    @property
    def statistic(self) -> str:
        """What is computed."""
        return self.of

    @property
    def is_ranked(self) -> bool:
        """Whether its error is one of ranks: that of a median is."""
        return self.of == "median"

    def columns(self) -> tuple[Column, ...]:
        """Return the columns of the statistic, and that of the epsilons."""
        return (*super().columns(), Column(self.person_epsilon, Role.EPSILON, self.epsilons))

    def build(self, context: Context, share: Budget) -> Release:
        """Return the release; who allows most pays the whole share."""
        tiers = self.columns()[-1]
        lines = TierRelation(
            context.index(self.source),
            tier=context.index(tiers),
            person_value=self.person_value,
        )
        if self.of != "median":
            return self._preprocessed(context, share, lines)
        each, unit = context.each(share), self.exact_unit
        search, largest = CentralSearch(each), tiers.detail[-1]
        return MiddleRelease(
            lines,
            search,
            each,
            default_values(unit),
            "rank search, each person counts by their epsilon",
            ranked=("person", "people"),
            unit=unit,
            weights=tuple(int(tier / largest * search.resolution) for tier in tiers.detail),
        )

    def _preprocessed(
        self, context: Context, share: Budget, lines: TierRelation
    ) -> PersonEpsilonRelease:
        epsilons, each = self.columns()[-1].detail, Fraction(1, context.max_partitions)
        clip, people, noise = self.choices(context, share, Budget(epsilons[0]))
        everybody = share.amount - noise.amount
        paid = tuple((level - everybody) * each for level in (*epsilons[:-1], share.amount))
        return PersonEpsilonRelease(
            metric=self,
            relation=lines,
            clip=clip,
            people=people,
            noise_cost=Budget(paid[-1]),
            alpha=context.alpha,
            epsilons=paid,
        )

    def check_plan(self, budget: Budget, alone: bool, selected: bool) -> None:
        """Refuse what would cost everybody the same, and another budget than the largest."""
        checks.require(
            alone and not selected,
            SUBJECT,
            "partitions",
            "be public ones for people with an epsilon of their own, who pay for nothing else",
            "Write partitions=dp.PublicPartitions([...]).",
        )
        most = float(self.columns()[-1].detail[-1])
        hint = f"Write budget=dp.Budget(epsilon={most})."
        checks.require(
            not budget.is_zcdp and budget.delta == 0,
            SUBJECT,
            "budget",
            "be a pure epsilon, without rho and delta, for people with an epsilon of their own",
            hint,
        )
        checks.require(
            float(budget.amount) == most,
            SUBJECT,
            "budget",
            f"be the largest of epsilons, {most}, not {float(budget.amount)}: that is what the "
            "person who allows most allows",
            hint,
        )

    @property
    def _prefix(self) -> str:
        return self.of


def _rising(epsilons: object) -> tuple[Fraction, ...]:
    """Return public epsilons in rising order, or refuse them."""
    of, hint = "the public epsilons that people may have", "Write epsilons=[0.5, 1.0]."
    given = checks.sequence(SUBJECT, "epsilons", epsilons, of, hint)
    checks.require(len(given) > 0, SUBJECT, "epsilons", "have at least one number", hint)
    tiers = {checks.decimal(SUBJECT, "epsilons", each) for each in given}
    whole = all(each > 0 and (each / _LEAST).denominator == 1 for each in tiers)
    rule = f"be positive multiples of 0.000001, not {list(given)!r}"
    checks.require(whole, SUBJECT, "epsilons", rule)
    return tuple(sorted(tiers))


def personalised(
    given: Metric, person_epsilon: Any, epsilons: Any, options: Mapping[str, Any]
) -> PersonalisedStatistic:
    """Return the metric for people with an epsilon of their own.

    Args:
        given: the statistic.
        person_epsilon: the column of each person's epsilon.
        epsilons: the public ones.
        options: person_value and sensitivity, where they are given.

    Raises:
        TypeError, ValueError: for other statistics, and for options that have no effect.
    """
    of = given.of_people()
    checks.require(
        of is not None and of.statistic in given.own_epsilons,
        SUBJECT,
        "statistic",
        "be Sum, Max, Median, or Preprocessed of an extreme for people with an "
        "epsilon of their own",
        "No way is known to compute others for unequal sensitivities and any number "
        'of people. Write statistic=dp.Sum("minutes").',
    )
    assert of is not None
    median = of.statistic == "median"
    checks.require(
        not median or "sensitivity" not in options,
        SUBJECT,
        "sensitivity",
        "be left out: a Median for people with an epsilon of their own is searched "
        "for, and needs none",
    )
    fields = {field.name: getattr(given, field.name) for field in dataclasses.fields(given)}
    others = [name for name in fields if name not in (*_PLAIN, *_KEPT)]
    refuse(given, others, "for people with an epsilon of their own", ANOTHER_WAY)
    kept = {name: value for name, value in fields.items() if name in _KEPT}
    chosen = {"person_value": of.person_value, **kept, **options, "name": given.output}
    return PersonalisedStatistic(fields["column"], of.statistic, person_epsilon, epsilons, **chosen)
