"""Print who has spent what of a ledger, and what is left.

    python -m pipelines.ledger visits.ledger.jsonl

A job charges a ledger if it is called with --ledger visits.ledger.jsonl.
"""

import sys
from collections.abc import Sequence

import beam_dp as dp
from beam_dp.spending import ledger_file
from pipelines import command_line


def main(given: Sequence[str] | None = None) -> int:
    """Print the ledger; returns the exit code."""
    line = command_line.alone("ledger", __doc__, "[-h] path")
    line.add_argument("path", help="the ledger")
    options = line.parse_args(given)
    with line.refusing():
        if ledger_file.text_of(ledger_file.checked(options.path)) is None:
            raise ValueError(f"there is no ledger {options.path!r}: a job with --ledger starts one")
        sys.stdout.write(f"{dp.Ledger(options.path).balance}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
