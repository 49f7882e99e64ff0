"""Share the budget out among parts, in exact rationals, before any row is read.

One person reaches at most `reach` partitions and adds to each released number of these; composition
over them:

* **pure** (and for delta that partition selection spends): what is released per partition costs
  reach times its epsilon (and delta); a clip shared by all partitions costs its epsilon once.
* **zCDP**: the same with rho (Bun and Steinke 2016, Lemma 2.3); the whole (epsilon, delta) is first
  turned into the largest rho that is proved to imply it (Canonne, Kamath, Steinke 2020, Prop. 12).

Both are proved, so the one with the smaller noise may be taken: it is chosen by the parameters.
"""

import dataclasses
import math
from fractions import Fraction

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.intervals import root_below
from beam_dp.mechanisms.planning.parts import Part


@dataclasses.dataclass(frozen=True)
class SelectionRequest:
    """How partitions are to be selected: its part of the budget, and the fewest people."""

    weight: Fraction
    pre_threshold: int


def share_out(
    budget: Budget,
    weights: dict[Part, Fraction],
    reach: int,
    selection: SelectionRequest | None,
) -> tuple[Budget, dict[Part | None, Budget]]:
    """Return the whole in the measure that was chosen, and what each part may spend.

    The key None stands for the selection of partitions, whose share is already per partition. Its
    delta is all there is, or half of it where parts want delta too (which then is not turned into
    zCDP); these share the rest evenly.
    """
    wanting = [part for part in weights if part.wants_delta]
    if budget.is_zcdp or not budget.delta or wanting:
        whole = budget
    else:
        whole = _smaller(budget, weights, reach, selection)
    keys: list[Part | None] = list(weights)
    values = list(weights.values())
    if selection is not None:
        checks.require(
            budget.delta > 0,
            "PrivatePartitions: delta must be above 0 to select partitions privately, not 0. "
            "Write Budget(epsilon=1.0, delta=1e-6), or give PublicPartitions([...]).",
        )
        keys.append(None)
        values.append(selection.weight)
    shares = dict(zip(keys, whole.without_delta().split(values), strict=True))
    given = whole.delta / (2 if selection is not None else 1) if wanting else Fraction(0)
    for part in wanting:
        amount, delta = shares[part].amount, given / len(wanting)
        if not whole.is_zcdp:
            shares[part] = Budget(amount, delta)
        elif part.kind == "ratio":  # the searches that want a delta have no form in rho
            shares[part] = Budget.zcdp(amount, delta)
    if selection is not None:
        amount = shares[None].amount / reach
        delta = (whole.delta - given) / reach
        shares[None] = Budget.zcdp(amount, delta) if whole.is_zcdp else Budget(amount, delta)
    return whole, shares


def _smaller(
    budget: Budget,
    weights: dict[Part, Fraction],
    reach: int,
    selection: SelectionRequest | None,
) -> Budget:
    """Return the budget itself, or as zCDP where that has the smaller noise.

    For sensitivity 1, a share w of the whole and `reach` partitions the deviations are
    sqrt(2) reach / (epsilon w) and sqrt(reach / (2 rho w)).
    """
    kept = budget.delta / 2 if selection is not None else Fraction(0)
    rho = Budget(budget.amount, budget.delta - kept).to_zcdp().amount
    total = sum(weights.values(), selection.weight if selection is not None else Fraction(0))
    shares = [float(weight / total) for weight in weights.values()]
    pure = sum(math.sqrt(2) * reach / (float(budget.amount) * share) for share in shares)
    zcdp = sum(math.sqrt(reach / (2 * float(rho) * share)) for share in shares)
    return Budget.zcdp(rho, kept) if zcdp < pure else budget


def epsilon_of(cost: Budget) -> Fraction:
    """Return an epsilon that the cost pays for: epsilon-DP is epsilon^2/2-zCDP."""
    return root_below(2 * cost.amount) if cost.is_zcdp else cost.amount
