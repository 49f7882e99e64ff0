"""The plan where the bound on partitions per person is chosen privately: for some bounds."""

import dataclasses
from collections.abc import Iterable, Sequence

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics.part import CentreRequest
from beam_dp.mechanisms.planning.plan import Plan, PlanRow, describe, total_of
from beam_dp.mechanisms.planning.reach_programs import Programs
from beam_dp.mechanisms.reach.looks import FIRST

SEARCHED = "(partitions per person)"
"""The row of the search in a plan."""
_JOINTLY = "Where that errs less nobody is cut, and all partitions share one draw of noise. "
SHOWN = (1, 3, 12)
"""The bounds that figures are shown for, as far as they can be chosen."""


def describe_programs(programs: Programs) -> Plan:
    """Return the plan for the bounds `SHOWN`, side by side; for the one that was given.

    The costs beside that of the search are those after one look at the histogram.
    """
    edges = programs.edges
    centres = [_centre_row(*item) for item in programs.centre_costs.items()]
    if not programs.searches:
        plan = describe(programs.model)
        return dataclasses.replace(plan, rows=(*centres, *plan.rows))
    shown = sorted({min(bound, edges[-1]) for bound in SHOWN})
    plans = [describe(programs.program(edge, FIRST)) for edge in shown]
    together = zip(*(plan.rows for plan in plans), strict=True)
    rows = [_search_row(programs), *centres, *(_side_by_side(rows) for rows in together)]
    bounds = _joined(map(str, shown))
    total = (
        f"{total_of(programs.asked)}; one person in at most {edges[0]} to {edges[-1]} partitions, "
        f"chosen privately; the figures are for {bounds} of them"
    )
    return Plan(tuple(rows), total)


def _search_row(programs: Programs) -> PlanRow:
    one, two = programs.costs
    word = "rho" if one.is_zcdp else "epsilon"
    least, most = float(one.amount), float(two.amount)
    scales = (f"{scale:.4g}" for scale in programs.scales)
    return PlanRow(
        metric=SEARCHED,
        mechanism="noisy histogram of people",
        epsilon=0.0 if one.is_zcdp else most,
        rho=most if one.is_zcdp else 0.0,
        delta=0.0,
        noise_scale=" to ".join(scales),
        shift=0,
        expected_error="-",
        spends=f"{word} {least:.4g} to {most:.4g}",
        reason="one look where people are many, else two; what is not spent goes to the metrics. "
        + _JOINTLY * programs.may_draw_jointly
        + "A bound that is known costs nothing: bounds=ContributionBounds(partitions=3), "
        "--bounds partitions=3",
    )


def _centre_row(request: CentreRequest, cost: Budget) -> PlanRow:
    return PlanRow(
        metric=f"(centre of {request.column.name})",
        mechanism="median of people, by ranks",
        epsilon=0.0 if cost.is_zcdp else float(cost.amount),
        rho=float(cost.amount) if cost.is_zcdp else 0.0,
        delta=0.0,
        noise_scale="-",
        shift=0,
        expected_error="-",
        reason="sums of distances from it have less noise than sums",
    )


def _side_by_side(rows: Sequence[PlanRow]) -> PlanRow:
    """Return one row for several bounds; T and the reason are those of the second of them."""
    return dataclasses.replace(
        rows[1],
        mechanism=_joined(row.mechanism for row in rows),
        spends=_joined(row.cells[1] for row in rows),
        noise_scale=_joined(row.noise_scale for row in rows),
        expected_error=_joined(row.expected_error for row in rows),
    )


def _joined(texts: Iterable[str]) -> str:
    """Return texts with slashes between: "4 / 12 clips" of "4 clips" and "12 clips"."""
    listed = list(dict.fromkeys(texts))
    words = [text.split() for text in listed]
    if len({len(each) for each in words}) == 1:
        columns = [list(dict.fromkeys(column)) for column in zip(*words, strict=True)]
        if sum(len(column) > 1 for column in columns) <= 1:
            return " ".join(" / ".join(column) for column in columns)
    return " / ".join(listed)
