"""From a statistic that a user names to the one of people with an epsilon of their own."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from beam_dp.mechanisms import checks, methods, metrics, relational, unused
from beam_dp.mechanisms.metrics import Metric
from beam_dp.mechanisms.spreads import Preprocessed
from beam_dp.mechanisms.tiers import PersonalisedStatistic

_OWNER = "PreprocessSensitivity"
_MEND = "It is released in another way here: see person_value and sensitivity."
_PERSONALISED = (metrics.Sum, metrics.Max, relational.Median)
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
    of, person_value = methods.of_people(given)
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
    unused.refuse(given, others, "for people with an epsilon of their own", _MEND)
    return {**{name: vars(given)[name] for name in fields if name in kept}, **options}
