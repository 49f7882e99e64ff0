"""Make the visits that the README and the tutorials release: `python -m docs.visits visits.csv`.

They are made up: 3,000 visitors of a shop in one week, with what they spent and how long they
stayed. The generator has a seed, so everybody gets the same file. Without a path the command prints
the true numbers, which a real release keeps secret.
"""

import collections
import random
import sys
from collections.abc import Sequence
from pathlib import Path

VISITORS = 3_000
SEED = 2026
HEADER = "visitor_id,day,spent,minutes"
_VISITS, _SHARES = (1, 2, 3, 4), (50, 30, 15, 5)

Visit = tuple[int, str, float, int]


def visits() -> list[Visit]:
    """Return (day, visitor, spent, minutes) of every visit, by day."""
    draws = random.Random(SEED)
    return sorted(
        (day, f"v{visitor:04d}", *_visit(draws))
        for visitor in range(VISITORS)
        for day in draws.sample(range(1, 8), draws.choices(_VISITS, _SHARES)[0])
    )


def _visit(draws: random.Random) -> tuple[float, int]:
    return round(draws.lognormvariate(2.9, 0.6), 2), 1 + int(draws.expovariate(1 / 25))


def as_csv() -> str:
    """Return the visits as CSV."""
    rows = (f"{visitor},{day},{spent:.2f},{minutes}" for day, visitor, spent, minutes in visits())
    return "\n".join([HEADER, *rows]) + "\n"


def truth() -> str:
    """Return the true number of visits and sum of what was spent, per day and in all."""
    counts: collections.Counter[int] = collections.Counter()
    sums: collections.Counter[int] = collections.Counter()
    for day, _, spent, _ in visits():
        counts[day] += 1
        sums[day] += round(100 * spent)
    days = [f"{day:>3}  {counts[day]:>5,}  {sums[day] / 100:>10,.2f}" for day in sorted(counts)]
    whole = f"all  {counts.total():>5,}  {sums.total() / 100:>10,.2f}"
    return "\n".join(["day  count         sum", *days, whole]) + "\n"


def main(given: Sequence[str]) -> None:
    """Write the file, or print the true numbers."""
    if given:
        Path(given[0]).write_text(as_csv(), encoding="utf-8")
    else:
        sys.stdout.write(truth())


if __name__ == "__main__":
    main(sys.argv[1:])
