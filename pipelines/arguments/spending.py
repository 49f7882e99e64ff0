"""The options of the budget."""

import argparse
from fractions import Fraction

import beam_dp as dp
from pipelines.arguments import words


def add(made: argparse.ArgumentParser) -> None:
    """Add --epsilon or --rho, and --delta."""
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


def budget(options: argparse.Namespace) -> dp.Budget:
    """Return the budget."""
    if options.rho is not None:
        return dp.Budget.zcdp(options.rho, options.delta)
    return dp.Budget(options.epsilon, options.delta)
