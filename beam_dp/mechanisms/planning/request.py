"""What is asked for, in the user's words; and what the private choices before a release may cost.

What is chosen first (`adaptive`) is part of what the whole budget pays for:

* partitions are selected first, where they are private; what is released of them is then clipped
  by what people have in the selected ones. How many partitions of a person count for that, one or
  up to 64, is chosen before where no bound is given (`CapChoice`);
* where some metric pays for every partition of a person, the search for a bound on these spends a
  part of the whole budget on its histogram; a given bound is a ladder of one step, and costs
  nothing;
* each centre costs a part of what its metrics may spend;
* what they leave is shared out (`budget_split`) among the parts of the metrics for the bound that
  was chosen, exactly as for a bound that was given.

Together they cost the whole. If (epsilon, delta) is spent as zCDP for every bound, the search is
counted in rho too. Else it spends epsilon, and the chosen bound decides whether what is left of
(epsilon, delta) is spent as zCDP; where partitions are selected, the least bound does.
"""

import dataclasses
import functools
from fractions import Fraction
from typing import Any

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics.base import CENTRE, CentreRequest, Metric
from beam_dp.mechanisms.noise.partition_selection import MOST
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.budget_split import SelectionRequest, part_weights_of, share_out

SEARCH_SHARE = Fraction(2, 25)
"""The part of the whole budget that the search for the bound costs."""
CAP_SHARE = Fraction(1, 50)
"""The part of the whole budget that the choice of the selection's cap costs."""
_NOTHING = Fraction(0)


@dataclasses.dataclass(frozen=True)
class Request:
    """A release as it was asked for. All is public, and nothing was chosen yet.

    Attributes:
        metrics: what is released; empty only where partitions are selected.
        budget: the whole budget, as the user asked for it.
        ladder: the bounds on partitions per person to choose from, in rising order; one, where it is given.
        max_partitions: the most partitions of a person that the user's bounds leave; None: all.
        max_rows_per_partition: the most rows per person and partition; None: unknown.
        selection: how to select partitions; None for public ones.
        others: the columns of further owners, where rows have several.
        partitions: how many partitions there are; None: unknown.
        compiled: the programs of this very request, as `compile.compiled` keeps them.
    """

    metrics: tuple[Metric, ...]
    budget: Budget
    ladder: tuple[int, ...]
    max_partitions: int | None = None
    max_rows_per_partition: int | None = None
    selection: SelectionRequest | None = None
    others: tuple[str, ...] = ()
    partitions: int | None = None
    compiled: dict[Any, Any] = dataclasses.field(
        init=False, compare=False, repr=False, default_factory=dict
    )

    @property
    def caps(self) -> tuple[int, ...]:
        """How many partitions of a person may count for the selection: one of these numbers."""
        if self.selection is None:
            return ()
        bound = self.max_partitions
        return (1, MOST) if bound is None else (min(MOST, bound),)

    def cap_of(self, chosen: int | None) -> int:
        """Return how many partitions of a person count for the selection, by what was chosen."""
        return chosen or self.caps[-1]

    @property
    def chooses_cap(self) -> bool:
        """Whether the cap of the selection is chosen."""
        return len(self.caps) > 1

    @property
    def searches(self) -> bool:
        """Whether the bound is chosen."""
        return len(self.ladder) > 1

    @property
    def chooses(self) -> bool:
        """Whether anything is chosen first, but for the partitions."""
        return self.searches or self.chooses_cap or bool(self._centre_shares)

    @functools.cached_property
    def whole(self) -> Budget:
        """The whole budget; as zCDP where it is spent as zCDP for every bound.

        The noise of pure composition grows with the bound, that of zCDP with its root: where zCDP
        is better for the least bound, it is for the others.
        """
        if not self.chooses:
            return self.budget
        return share_out(
            self.budget, part_weights_of(self.metrics), self.ladder[0], self.selection
        )[0]

    @functools.cached_property
    def _centre_shares(self) -> dict[CentreRequest, Fraction]:
        """The centres that are chosen first, each with its part of the whole budget."""
        weights = [checks.number("weight", "weight", metric.weight) for metric in self.metrics]
        selected = self.selection.weight if self.selection is not None else _NOTHING
        whole = sum(weights, selected)
        parts: dict[CentreRequest, Fraction] = {}
        for metric, weight in zip(self.metrics, weights, strict=True):
            for centre in filter(None, dict.fromkeys(part.asked_centre for part in metric.parts())):
                parts[centre] = parts.get(centre, _NOTHING) + CENTRE * weight / whole
        return parts

    def _cost(self, share: Fraction) -> Budget:
        """Return a share of the whole, without delta: all of that is left for the releases."""
        return self.whole.without_delta().scaled(share)

    @property
    def centre_costs(self) -> dict[CentreRequest, Budget]:
        """What the choice of each centre costs."""
        return {centre: self._cost(share) for centre, share in self._centre_shares.items()}

    @property
    def search_cost(self) -> Budget:
        """What the search for the bound costs, if there is one."""
        return self._cost(SEARCH_SHARE)

    @property
    def cap_cost(self) -> Budget:
        """What the choice of the selection's cap costs, if there is one."""
        return self._cost(CAP_SHARE)

    @property
    def left(self) -> Budget:
        """What the choices leave of the whole; they spend no delta."""
        spent = SEARCH_SHARE * self.searches + CAP_SHARE * self.chooses_cap
        spent += sum(self._centre_shares.values(), _NOTHING)
        return self.whole.like(self.whole.amount * (1 - spent), self.whole.delta)
