"""Release private statistics per partition from files of rows about people.

For example, what visitors spent per day, without saying how much one of them may spend:

    python -m pipelines.aggregate --input visits.parquet --output released.csv \\
        --person visitor_id --partition day --count --sum spent --mean spent \\
        --epsilon 1 --public_partitions 1,2,3,4,5,6,7

Every metric becomes three columns: its number, <metric>_low and <metric>_high (a histogram three
per bin). In 95 of 100 releases the true number is between these two; inf says that nothing is known
on that side. Quantiles and k-th largest rows have <metric>_rank_error instead: how many rows (or
people) their rank may be off. --plan says what each metric would cost and how far it may be off,
and reads no row. A second run is a second release: it spends again.
"""

import sys
from collections.abc import Sequence

from pipelines import command_line, releasing


def parser() -> command_line.Parser:
    """Return the command line."""
    made = command_line.parser("aggregate", __doc__)
    command_line.add_metrics(made, lambda kind: True)
    return made


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    return releasing.run(parser(), command_line.described, given)


if __name__ == "__main__":
    sys.exit(main())
