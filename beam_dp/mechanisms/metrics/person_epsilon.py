"""Statistics of people with an epsilon of their own: which of a few public ones each person has.

The epsilons that are allowed are public, and so is which of them a person has, like their identity:
it must not depend on what the data say of them.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.metrics import extremes, rows, spread, totals
from beam_dp.mechanisms.metrics import options as metric_options
from beam_dp.mechanisms.metrics.base import Metric, check_places
from beam_dp.mechanisms.metrics.spread import Preprocessed, Preprocessing
from beam_dp.mechanisms.numerics import checks

MOST_TIERS = 1 << 10
_LEAST = Fraction(1, 1_000_000)
STATISTICS = ("sum", "maximum", "minimum", "median")


@dataclasses.dataclass(frozen=True)
class PersonalisedStatistic(Preprocessing):
    """A sum or an extreme of one number per person, each person with an epsilon of their own.

    With an epsilon_i per person the noise has one scale b, and person i moves g by at most
    Delta_i = b epsilon_i: see `preprocessing.Personalised`. These are the statistics whose g is
    known for unequal Delta_i and any number of people: sums (each person cut to Delta_i) and
    max(empty, largest value) with its mirror. A median is searched, each person with a weight
    (`releases.weighted_median`); `sensitivity` and `empty` do not apply to it.

    Attributes:
        column: the value column.
        of: "sum", "maximum", "minimum" or "median".
        person_epsilon: the column that holds each person's epsilon.
        epsilons: the public numbers that may be in it, multiples of a millionth.
        candidates: the public outputs of a median; None: as for `Median`.
        beta: how often the guarantee of a median may fail.
    """

    column: str
    of: str
    person_epsilon: str
    epsilons: tuple[checks.Real, ...]
    _: dataclasses.KW_ONLY
    candidates: Candidates | None = None
    beta: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = "PreprocessSensitivity"
        checks.one_of(owner, "statistic", self.of, STATISTICS)
        checks.column(owner, "person_epsilon", self.person_epsilon)
        check_places(owner, self.candidates)
        object.__setattr__(self, "epsilons", check_epsilons(owner, self.epsilons))

    @property
    def statistic(self) -> str:
        """What is computed."""
        return self.of

    @property
    def tiers(self) -> tuple[str, tuple[checks.Real, ...]]:
        """The column of epsilons, and the public ones in rising order."""
        return self.person_epsilon, self.epsilons

    @property
    def _prefix(self) -> str:
        return self.of


def check_epsilons(owner: str, epsilons: object) -> tuple[Fraction, ...]:
    """Return public epsilons in rising order."""
    if not isinstance(epsilons, (list, tuple)) or not epsilons:
        raise TypeError(
            f"{owner}: epsilons must be a list of the public epsilons that people may have, not "
            f"{epsilons!r}. Write epsilons=[0.5, 1.0]."
        )
    found = {checks.decimal(owner, "epsilons", each) for each in epsilons}
    checks.require(
        all(each > 0 and (each / _LEAST).denominator == 1 for each in found),
        f"{owner}: epsilons must be positive multiples of 0.000001, not {list(epsilons)!r}.",
    )
    checks.require(
        len(found) <= MOST_TIERS,
        f"{owner}: epsilons must be at most {MOST_TIERS} different ones, not {len(found)}.",
    )
    return tuple(sorted(found))


def check_budget(owner: str, budget: Budget, epsilons: tuple[Fraction, ...]) -> None:
    """Refuse a budget that is not what the most generous person allows."""
    checks.require(
        not budget.is_zcdp and budget.delta == 0,
        f"{owner}: budget must be a pure epsilon for people with an epsilon of their own, not "
        f"{budget!r}. Write budget=dp.Budget(epsilon={float(epsilons[-1])}).",
    )
    checks.require(
        float(budget.amount) == float(epsilons[-1]),
        f"{owner}: budget must be the largest of epsilons, {float(epsilons[-1])}, not "
        f"{float(budget.amount)}: that is what the person who allows most allows.",
    )


_OWNER = "PreprocessSensitivity"
_MEND = "It is released in another way here: see person_value and sensitivity."
_PERSONALISED = (totals.Sum, extremes.Max, rows.Median)
_EXTREMES = ("maximum", "minimum")
_SEARCHED = ("candidates", "beta")
_KEPT = ("person_value", "last_by", "sensitivity", "empty", "unit")
_PLAIN = ("column", "of", "name", "weight")


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
    of, person_value = spread.of_people(given)
    checks.require(
        isinstance(given, _PERSONALISED) or (isinstance(given, Preprocessed) and of in _EXTREMES),
        f"{_OWNER}: statistic must be Sum, Max, Median, or Preprocessed of an extreme for "
        "people with an epsilon of their own. No way is known to compute others for unequal "
        'sensitivities and any number of people. Write statistic=dp.Sum("minutes").',
    )
    taken = {**_kept(given, of, options), "name": given.output}
    taken.setdefault("person_value", person_value)
    return PersonalisedStatistic(given.columns[0], of, person_epsilon, epsilons, **taken)


def _kept(given: Metric, of: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a statistic and those beside it, or refuse what has no effect."""
    checks.require(
        of != "median" or "sensitivity" not in options,
        f"{_OWNER}: sensitivity must be left out: a Median for people with an epsilon of their "
        "own is searched for, and needs none.",
    )
    kept = (*_KEPT, *_SEARCHED) if of == "median" else _KEPT
    fields: Sequence[str] = [field.name for field in dataclasses.fields(given)]
    others = [name for name in fields if name not in (*_PLAIN, *kept)]
    metric_options.refuse(given, others, "for people with an epsilon of their own", _MEND)
    return {**{name: vars(given)[name] for name in fields if name in kept}, **options}
