"""Print who has spent what of a ledger, and what is left.

    beam-dp ledger visits.ledger.jsonl

A job charges a ledger if it is called with --ledger visits.ledger.jsonl. What each of several runs
may spend is said by

    beam-dp ledger schedule --runs 30 --total_epsilon 3 --delta 1e-6
"""

import sys
from collections.abc import Sequence

import beam_dp as dp
from beam_dp.beam_yaml.mappings import number
from beam_dp.spending import schedule
from beam_dp.spending.ledger import Balance
from pipelines import command_line

_ABOUT = "Print what each of several equal runs may spend, by pure, zCDP and PLD accounting."
_SCHEDULE = {
    "runs": "how many runs there are",
    "total_epsilon": "what all of them together may cost a person",
    "delta": "with this delta; the default is 0",
}


def main(given: Sequence[str] | None = None) -> int:
    """Print the ledger, or a schedule; returns the exit code."""
    words = sys.argv[1:] if given is None else given
    if words[:1] == ["schedule"]:
        return _schedule(words[1:])
    line = command_line.alone("ledger", __doc__, "[-h] path")
    line.add_argument("path", help="the ledger")
    options = line.parse_args(words)
    with line.refusing():
        sys.stdout.write(f"{balance_of(options.path)}\n")
    return 0


def balance_of(path: str) -> Balance:
    """Return what a ledger holds that is there.

    Raises:
        ValueError: there is none.
    """
    ledger = dp.Ledger(path)
    if not ledger.exists:
        raise ValueError(f"there is no ledger {path!r}: a job with --ledger starts one")
    return ledger.balance


def _schedule(words: Sequence[str]) -> int:
    """Print what each of several runs may spend; returns the exit code."""
    line = command_line.alone("ledger schedule", _ABOUT, "--runs N --total_epsilon E ...")
    for name, says in _SCHEDULE.items():
        line.add_argument(f"--{name}", help=says, required=name != "delta", type=number, default=0)
    options = line.parse_args(words)
    with line.refusing():
        total = dp.Budget(options.total_epsilon, options.delta)
        sys.stdout.write(f"{schedule.schedule(options.runs, total)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
