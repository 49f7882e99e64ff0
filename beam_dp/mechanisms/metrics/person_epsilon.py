"""People with an epsilon of their own: which of a few public ones each person has.

The epsilons that are allowed are public, and so is which of them a person has, like their identity:
it must not depend on what the data say of them.
"""

import dataclasses
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.columns import Column, Role
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.defaults import default_values
from beam_dp.mechanisms.metrics.base import Metric, check_indexes
from beam_dp.mechanisms.metrics.part import Context
from beam_dp.mechanisms.metrics.spread import Preprocessing
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.options import refuse
from beam_dp.mechanisms.releases.clipped import people_of
from beam_dp.mechanisms.releases.person_epsilon import PersonEpsilonRelease, WeightedMedian
from beam_dp.mechanisms.releases.preprocessed import SHARES
from beam_dp.mechanisms.releases.released import Release
from beam_dp.mechanisms.search.ranks.central import CentralSearch
from beam_dp.mechanisms.summaries.person_epsilon import TierRelation

OWNER = "PreprocessSensitivity"
MOST_TIERS = 1 << 10
STATISTICS = ("sum", "maximum", "minimum", "median")
_LEAST = Fraction(1, 1_000_000)
_MEND = "It is released in another way here: see person_value and sensitivity."
_KEPT = ("person_value", "last_by", "sensitivity", "empty", "unit")
_PLAIN = ("column", "of", "name", "weight")


@dataclasses.dataclass(frozen=True)
class PersonalisedStatistic(Preprocessing):
    """A sum or an extreme of one number per person, each person with an epsilon of their own.

    With an epsilon_i per person the noise has one scale b, and person i moves g by at most
    Delta_i = b epsilon_i: see `releases.person_epsilon`. These are the statistics whose g is
    known for unequal Delta_i and any number of people: sums (each person cut to Delta_i) and
    max(empty, largest value) with its mirror. A median is searched, each person with a weight
    (`weighted`); `sensitivity` and `empty` do not apply to it.

    Attributes:
        column: the value column.
        of: "sum", "maximum", "minimum" or "median".
        person_epsilon: the column that holds each person's epsilon.
        epsilons: the public numbers that may be in it, multiples of a millionth.
        candidates: the public outputs of a median; None: as for `Median`.
    """

    column: str
    of: str
    person_epsilon: str
    epsilons: tuple[checks.Real, ...]
    _: dataclasses.KW_ONLY
    candidates: Candidates | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(OWNER, "statistic", self.of, STATISTICS)
        checks.column(OWNER, "person_epsilon", self.person_epsilon)
        check_indexes(OWNER, self.candidates)
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
            order=self.order(context),
            tier=context.index(tiers),
            person_value=self.person_value,
        )
        if self.of != "median":
            return self._preprocessed(context, share, lines)
        search, unit = CentralSearch(context.each(share)), self.exact_unit
        candidates = self.candidates or default_values(unit)
        return WeightedMedian(lines, unit, tiers.detail, search, candidates)

    def _preprocessed(
        self, context: Context, share: Budget, lines: TierRelation
    ) -> PersonEpsilonRelease:
        epsilons, each = self.columns()[-1].detail, Fraction(1, context.reach)
        scale, people = None, None
        searched = counted = Fraction(0)
        if self.exact_sensitivity is None:
            searched = epsilons[0] * SHARES[0]
            scale = self.bound_of(context, Budget(searched), share)
            if self.of != "sum":
                counted = epsilons[0] * SHARES[1]
                field = context.field(self.source, "count")
                people = people_of(Budget(counted * each), field, context.alpha)
        levels = (*epsilons[:-1], share.amount)
        paid = tuple((level - searched - counted) * each for level in levels)
        return PersonEpsilonRelease(
            relation=lines,
            unit=self.exact_unit,
            statistic=self.of,
            trim=self.share,
            person_value=self.person_value,
            empty=self.exact_empty,
            root=False,
            sensitivity=self.exact_sensitivity,
            scale=scale,
            people=people,
            noise_cost=Budget(paid[-1]),
            cost=Budget(paid[-1] + counted * each),
            alpha=context.alpha,
            epsilons=paid,
        )

    @property
    def takes_auto_bound(self) -> bool:
        """Whether the bound may be chosen privately: not all people could pay for it."""
        return False

    def check_plan(self, budget: Budget, alone: bool, selected: bool) -> None:
        """Refuse what would cost everybody the same, and another budget than the largest."""
        checks.require(
            alone and not selected,
            OWNER,
            "partitions",
            "be public ones for people with an epsilon of their own, who pay for nothing else",
            "Write partitions=dp.PublicPartitions([...]).",
        )
        most = float(self.columns()[-1].detail[-1])
        mend = f"Write budget=dp.Budget(epsilon={most})."
        checks.require(
            not budget.is_zcdp and budget.delta == 0,
            OWNER,
            "budget",
            "be a pure epsilon, without rho and delta, for people with an epsilon of their own",
            mend,
        )
        checks.require(
            float(budget.amount) == most,
            OWNER,
            "budget",
            f"be the largest of epsilons, {most}, not {float(budget.amount)}: that is what the "
            "person who allows most allows",
            mend,
        )

    @property
    def _prefix(self) -> str:
        return self.of


def _rising(epsilons: object) -> tuple[Fraction, ...]:
    """Return public epsilons in rising order, or refuse them."""
    if not isinstance(epsilons, (list, tuple)) or not epsilons:
        rule = f"be a list of the public epsilons that people may have, not {epsilons!r}"
        raise checks.ParameterTypeError(OWNER, "epsilons", rule, "Write epsilons=[0.5, 1.0].")
    tiers = {checks.decimal(OWNER, "epsilons", each) for each in epsilons}
    whole = all(each > 0 and (each / _LEAST).denominator == 1 for each in tiers)
    rule = f"be positive multiples of 0.000001, not {list(epsilons)!r}"
    checks.require(whole, OWNER, "epsilons", rule)
    rule = f"be at most {MOST_TIERS} different ones, not {len(tiers)}"
    checks.require(len(tiers) <= MOST_TIERS, OWNER, "epsilons", rule)
    return tuple(sorted(tiers))


def personalised(
    given: Metric, person_epsilon: Any, epsilons: Any, options: Mapping[str, Any]
) -> PersonalisedStatistic:
    """Return the metric for people with an epsilon of their own.

    Args:
        given: the statistic.
        person_epsilon: the column of each person's epsilon.
        epsilons: the public ones.
        options: person_value, last_by and sensitivity, where they are given.

    Raises:
        TypeError, ValueError: for other statistics, and for options that have no effect.
    """
    of = given.of_people()
    checks.require(
        of is not None and given.takes_own_epsilons(),
        OWNER,
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
        OWNER,
        "sensitivity",
        "be left out: a Median for people with an epsilon of their own is searched "
        "for, and needs none",
    )
    taken = (*_KEPT, "candidates") if median else _KEPT
    fields = {field.name: getattr(given, field.name) for field in dataclasses.fields(given)}
    others = [name for name in fields if name not in (*_PLAIN, *taken)]
    refuse(given, others, "for people with an epsilon of their own", _MEND)
    kept = {name: value for name, value in fields.items() if name in taken}
    chosen = {"person_value": of.person_value, **kept, **options, "name": given.output}
    return PersonalisedStatistic(fields["column"], of.statistic, person_epsilon, epsilons, **chosen)
