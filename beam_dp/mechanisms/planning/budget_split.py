"""Share the budget out among the parts of metrics, in exact rationals, before any row is read.

One person reaches at most `max_partitions` partitions and adds to each released number of these.
The costs compose over them in one of two ways:

* **pure** (and for delta that partition selection spends): a release per partition costs
  max_partitions times its epsilon (and delta); a clip shared by all partitions costs its epsilon
  once.
* **zCDP**: the same with rho (Bun and Steinke 2016, Lemma 2.3); the whole (epsilon, delta) is first
  turned into the largest rho that is proved to imply it (Canonne, Kamath, Steinke 2020, Prop. 12).

Both ways are proved, so the way with the smaller noise may be taken: the parameters decide.
"""

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics.base import CENTRE, Metric, MetricPart
from beam_dp.mechanisms.numerics import checks


@dataclasses.dataclass(frozen=True)
class SelectionRequest:
    """How partitions are to be selected: the weight in the budget, and the fewest people."""

    weight: Fraction
    pre_threshold: int


def part_weights_of(asked: Sequence[Metric]) -> dict[MetricPart, Fraction]:
    """Return the weight of every part: its share of what centres leave of its metrics' weights."""
    weights: dict[MetricPart, Fraction] = {}
    for metric in asked:
        weight = checks.number(type(metric).__name__, "weight", metric.weight)
        parts, each = metric.parts(), metric.part_weights()
        if any(part.asked_centre is not None for part in parts):
            weight *= 1 - CENTRE
        for part, own in zip(parts, each, strict=True):
            weights[part] = weights.get(part, Fraction(0)) + weight * own / sum(each)
    return weights


def share_out(
    budget: Budget,
    weights: dict[MetricPart, Fraction],
    max_partitions: int,
    selection: SelectionRequest | None,
    gaussian: bool = False,
) -> tuple[Budget, dict[MetricPart | None, Budget]]:
    """Return the whole budget as it is spent (pure or zCDP), and what each part may spend.

    The key None stands for the selection of partitions. It gets the whole delta; or half of it,
    where parts want delta, or sums may take Gaussian noise (`gaussian`). The parts that want delta
    share the rest evenly; delta is then not turned into zCDP.
    """
    wanting = [part for part in weights if part.wants_delta]
    if budget.is_zcdp or not budget.delta or wanting:
        whole = budget
    else:
        whole = _smaller(budget, weights, max_partitions, selection)
    keys: list[MetricPart | None] = list(weights)
    values = list(weights.values())
    if selection is not None:
        checks.require(
            budget.delta > 0,
            "Budget",
            "delta",
            "be above 0 to select partitions privately, not 0",
            "Write Budget(epsilon=1.0, delta=1e-6), or give PublicPartitions([...]).",
        )
        keys.append(None)
        values.append(selection.weight)
    shares = dict(zip(keys, whole.without_delta().split(values), strict=True))
    parts_take = bool(wanting) or (gaussian and not whole.is_zcdp)
    for_parts = whole.delta / (2 if selection is not None else 1) if parts_take else Fraction(0)
    for part in wanting:
        shares[part] = whole.like(shares[part].amount, for_parts / len(wanting))
    if selection is not None:
        shares[None] = whole.like(shares[None].amount, whole.delta - for_parts)
    return whole, shares


def _smaller(
    budget: Budget,
    weights: dict[MetricPart, Fraction],
    max_partitions: int,
    selection: SelectionRequest | None,
) -> Budget:
    """Return the budget as it is, or as zCDP where that has the smaller noise.

    For sensitivity 1, a share w of the whole and `max_partitions` partitions the deviations are
    sqrt(2) max_partitions / (epsilon w) and sqrt(max_partitions / (2 rho w)).
    """
    kept = budget.delta / 2 if selection is not None else Fraction(0)
    rho = Budget(budget.amount, budget.delta - kept).to_zcdp().amount
    total = sum(weights.values(), selection.weight if selection is not None else Fraction(0))
    shares = [float(weight / total) for weight in weights.values()]
    pure = sum(math.sqrt(2) * max_partitions / (float(budget.amount) * share) for share in shares)
    zcdp = sum(math.sqrt(max_partitions / (2 * float(rho) * share)) for share in shares)
    return Budget.zcdp(rho, kept) if zcdp < pure else budget
