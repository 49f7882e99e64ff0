"""Insert rows, read, and hold against what must come out; count everything."""

import collections
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.hostile.inserted.watch import Watch

SHOWN = 5
KINDS = (Exception,)


class Tally:
    """Counts rows and checks, and keeps what failed.

    Args:
        watch: what hears whatever is said.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.inserted = self.checks = self.failed = 0
        self._shown: list[str] = []

    def check(
        self,
        rows: Sequence[Any],
        wanted: Callable[[], Iterable[Any]],
        read: Callable[[], Iterable[Any]],
        context: object = "",
    ) -> None:
        """Read once, and see that what comes out is what is wanted, in any order and in silence.

        Args:
            rows: the hostile rows that were inserted.
            wanted: returns what must come out.
            read: returns what does.
            context: where they were inserted, shown if the check fails.
        """
        self.inserted += len(rows)
        self.checks += 1
        try:
            fault = difference(wanted(), read())
        except KINDS as error:
            fault = f"raised {error!r}"
        said = self._watch.heard()
        fault = fault or (said and f"said {said}")
        if fault:
            self.failed += 1
            if len(self._shown) < SHOWN:
                inserted = "\n  inserted: ".join(map(shown, rows))
                self._shown.append(
                    f"{fault[:500]}\n  inserted: {inserted}\n  {repr(context)[:900]}"
                )

    def check_union(
        self,
        lines: Callable[[Sequence[Any]], list[Any]],
        base: Sequence[Any],
        rows: Sequence[Any],
        together: Sequence[Any],
        context: object = "",
    ) -> None:
        """See that every row becomes the same among others as alone, and at most one.

        Args:
            lines: returns what rows become.
            base: good rows: each of them becomes one.
            rows: hostile rows.
            together: all of them, the hostile ones inserted.
            context: shown if the check fails.
        """

        def wanted() -> list[Any]:
            found = lines(base)
            assert len(found) == len(base), "the base does not come through by itself"
            for row in rows:
                alone = lines([row])
                assert len(alone) <= 1, "a row becomes several"
                found += alone
            return found

        self.check(rows, wanted, lambda: lines(together), context)

    def report(self) -> str:
        """Return nothing if all is well, else how many checks failed and the first of them."""
        if not self.failed:
            return ""
        counts = f"{self.failed} of {self.checks} checks failed, {self.inserted} rows inserted"
        return "\n".join([counts, *self._shown])


def shown(row: Any) -> str:
    """Return a row as text, or its class where that raises."""
    try:
        return repr(row)[:600]
    except KINDS:
        return f"a {type(row).__name__}"


def difference(wanted: Iterable[Any], found: Iterable[Any]) -> str:
    """Return what is wrong with the rows that came out, nothing if all is well."""
    # By `repr`: 1, 1.0 and True are three values, and NaN is one.
    missing, extra = collections.Counter(map(repr, wanted)), collections.Counter(map(repr, found))
    lost, made = missing - extra, extra - missing
    if lost:
        return f"lost rows: {dict(lost)}"
    return f"made rows that nobody wrote: {dict(made)}" if made else ""


def placed(rng: random.Random, base: Sequence[Any], hostile: Sequence[Any]) -> list[Any]:
    """Return the base with hostile rows at random places, in their order; half of them adjacent."""
    places = sorted(rng.randint(0, len(base)) for _ in hostile)
    if rng.random() < 0.5:
        places = [places[0]] * len(hostile)
    rows = list(base)
    for place, row in reversed(list(zip(places, hostile, strict=True))):
        rows.insert(place, row)
    return rows
