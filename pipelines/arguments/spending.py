"""The options of the budget."""

import argparse
from fractions import Fraction

import beam_dp as dp
from pipelines.arguments import words


def add(made: argparse.ArgumentParser) -> None:
    """Add --epsilon or --rho, --delta, and the options of a ledger."""
    budget = made.add_argument_group("budget: for everything that is released together")
    either = budget.add_mutually_exclusive_group(required=True)
    either.add_argument("--epsilon", type=words.amount, metavar="E", help="for example 1 or 0.5")
    either.add_argument("--rho", type=words.amount, metavar="R", help="zCDP instead of epsilon")
    budget.add_argument(
        "--delta",
        type=words.probability,
        default=Fraction(0),
        metavar="D",
        help="default 0: pure epsilon. Needed for private partitions, less noise elsewhere where a "
        "person reaches many; well below 1 / people, for example 1e-6",
    )
    _add_ledger(made)


def _add_ledger(made: argparse.ArgumentParser) -> None:
    ledger = made.add_argument_group("ledger: what several runs cost together")
    path = "charge this run to a file, before it starts; refused where the limit would be passed"
    ledger.add_argument("--ledger", metavar="FILE", help=path)
    either = ledger.add_mutually_exclusive_group()
    most = "the limit of all runs together, for a new ledger"
    either.add_argument("--total_epsilon", type=words.amount, metavar="E", help=most)
    either.add_argument("--total_rho", type=words.amount, metavar="R", help=f"{most}, in zCDP")
    delta = "their limit of delta (default 0)"
    ledger.add_argument("--total_delta", type=words.probability, metavar="D", help=delta)
    planned = (
        "what all runs cost is decided without looking at what earlier ones released: then the "
        "tightest of three compositions counts, else the plain sum"
    )
    ledger.add_argument("--planned", action="store_true", default=None, help=planned)


def ledger(options: argparse.Namespace) -> dp.Ledger | None:
    """Return the ledger; None if no option names one.

    Raises:
        ValueError: for a limit without a ledger, or a delta without a limit beside it.
    """
    amounts = options.total_epsilon, options.total_rho
    if options.ledger is None:
        if any(each is not None for each in (*amounts, options.total_delta, options.planned)):
            raise ValueError(
                "--total_epsilon, --total_rho, --total_delta and --planned need --ledger FILE"
            )
        return None
    if options.total_delta is not None and amounts == (None, None):
        raise ValueError("--total_delta needs --total_epsilon or --total_rho beside it")
    limit, delta = None, options.total_delta or Fraction(0)
    if options.total_epsilon is not None:
        limit = dp.Budget(options.total_epsilon, delta)
    elif options.total_rho is not None:
        limit = dp.Budget.zcdp(options.total_rho, delta)
    return dp.Ledger(options.ledger, limit, options.planned)


def budget(options: argparse.Namespace) -> dp.Budget:
    """Return the budget."""
    if options.rho is not None:
        return dp.Budget.zcdp(options.rho, options.delta)
    return dp.Budget(options.epsilon, options.delta)
