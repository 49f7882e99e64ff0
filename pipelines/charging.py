"""Charge a job to a ledger, before it starts."""

import argparse
from collections.abc import Sequence
from pathlib import PurePath

from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

import beam_dp as dp
from beam_dp.spending.ledger import Balance, Costly
from pipelines.arguments import spending

Cost = dp.Budget | Costly


def planned(options: argparse.Namespace, program: str, cost: Cost) -> Balance | None:
    """Return the balance that the job would leave; None without a ledger."""
    ledger = spending.ledger(options)
    return None if ledger is None else ledger.foresee(cost, _label(options, program))


def charge(
    options: argparse.Namespace,
    beam_options: PipelineOptions,
    program: str,
    cost: Cost,
    person: str | Sequence[str] | None = None,
) -> Balance | None:
    """Charge the job, and return what is left; None without a ledger.

    Args:
        options: the job's options.
        beam_options: those of Beam.
        program: the name of the job.
        cost: what it releases, or the budget.
        person: the columns that identify a person, beside a budget.

    Raises:
        ValueError: if the limit would be passed, or a template is written, which can run often.
    """
    ledger = spending.ledger(options)
    if ledger is None:
        return None
    if beam_options.view_as(GoogleCloudOptions).template_location:
        raise ValueError(
            "--ledger cannot count the runs of a template: leave --template_location out"
        )
    return ledger.charge(cost, _label(options, program), person)


def told(balance: Balance | None, foreseen: bool = False) -> str:
    """Return the balance as a line of output; "" without a ledger.

    Args:
        balance: what the ledger holds.
        foreseen: whether it would hold that, and nothing has been charged.
    """
    if balance is None:
        return ""
    within = balance.is_within
    when = " after this run" * (foreseen and within)
    line = balance.line if within else balance.refusal
    return f"ledger {PurePath(balance.path).name}{when}: {line}\n"


def _label(options: argparse.Namespace, program: str) -> str:
    """Return what the ledger says of the job: its name, and that of its output."""
    output = PurePath(options.output).name if options.output else "no output"
    name = "".join(letter for letter in output if letter.isprintable())
    return f"{program.rpartition('.')[2]}: {name}"
