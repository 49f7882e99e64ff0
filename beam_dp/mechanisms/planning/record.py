"""The record of a release: what was spent on what, and what was drawn to choose the clips.

Everything in it is a public parameter, or was released and paid for: the noisy histograms that
choose clips are outputs of the mechanism (`clips.choice`), and clips and noise scales are functions
of them and of parameters. So it may stand beside the output.
"""

from collections.abc import Sequence
from typing import Any

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.clips.choice import Choice
from beam_dp.mechanisms.planning.plan import describe
from beam_dp.mechanisms.planning.program import Program

Record = dict[str, Any]


def record_of(
    program: Program, choices: Sequence[Choice], clips: Sequence[Sequence[tuple[float, float]]]
) -> Record:
    """Return the record as plain values: texts, numbers, lists and dicts.

    Args:
        program: the run's program.
        choices: what was drawn to choose the shared clips, in the order of the program.
        clips: for each step the shared clips that were taken, each with the scale of its noise.
    """
    plan = describe(program)
    rows = plan.rows[len(plan.rows) - len(program.steps) :]
    releases: list[Record] = []
    for row, step, taken in zip(rows, program.steps, clips, strict=True):
        said: Record = {
            "metric": row.metric,
            "mechanism": row.mechanism,
            "label": step.label,
            "noise_scale": row.noise_scale,
            "shift_T": row.shift,
            "expected_error": row.expected_error,
        }
        if row.reason:
            said["note"] = row.reason
        if step.part.asked_centre is not None:
            said["centre"] = step.release.origin
        chooser = step.release.chooser
        if chooser is not None and step.shared is not None:
            said["clip"] = chooser.told(choices[step.shared], taken)
        releases.append(said)
    return {
        "budget": cost(program.asked),
        "composition": plan.total,
        "spent": [
            {"on": label, "times": times, **cost(each)} for label, each, times in program.entries
        ],
        "partitions_of_one_person": program.reach,
        "partitions_chosen": None if program.chosen is None else program.chosen.told(),
        "selection": plan.rows[0].expected_error if program.selection is not None else None,
        "releases": releases,
    }


def cost(budget: Budget) -> Record:
    """Return a cost in exact rationals."""
    amount = "rho" if budget.is_zcdp else "epsilon"
    return {amount: str(budget.amount), "delta": str(budget.delta)}
