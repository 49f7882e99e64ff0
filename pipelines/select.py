"""Release what one SELECT asks for: how much was spent per day, and in all (extra: sql).

    beam-dp select --person visitor_id --epsilon 1 --delta 1e-6 --output released.csv "
        SELECT day, count(*) AS visits, sum(spent) AS spent, sum(spent) / count(*) AS each
        FROM 'docs/start/visits.csv' WHERE minutes > 5
        GROUP BY ROLLUP (day) HAVING count(*) >= 100 ORDER BY visits DESC"

WHERE and expressions look at one row. Aggregates become metrics, ROLLUP further tables whose totals
agree. What is computed of aggregates costs nothing: DuckDB runs it on the released table. --plan
says what each part became, --show_mapping prints it for --config. Every run spends budget.
"""

import sys
from collections.abc import Sequence

from pipelines import command_line, releasing


def parser() -> command_line.Parser:
    """Return the command line."""
    made = command_line.parser("select", __doc__, has_metrics=False)
    made.usage = "%(prog)s --person COLUMN --output FILE --epsilon E 'SELECT ...' [options of Beam]"
    return made


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    words = sys.argv[1:] if given is None else given
    flags = [f"--select={word}" if command_line.STATEMENT.match(word) else word for word in words]
    return releasing.run(parser(), flags)


if __name__ == "__main__":
    sys.exit(main())
