"""Insert rows, read, and hold against what may come out; count everything."""

import collections
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from tests.hostile.inserted.watch import Watch

SHOWN = 5
KINDS = (Exception,)


class Hostile(NamedTuple):
    """A row to insert.

    Attributes:
        row: the row, in the form in which it is inserted.
        becomes: what may come out of it; None: nothing.
        certain: whether that must come out.
    """

    row: Any
    becomes: Any = None
    certain: bool = False


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
        base: Iterable[Any],
        hostile: Sequence[Hostile],
        read: Callable[[], list[Any]],
        context: object = "",
        inserted: Sequence[Any] = (),
    ) -> None:
        """Read once, with the hostile rows in it, and see that only they differ from the base.

        Args:
            base: what must come out of the other rows, exactly.
            hostile: what was inserted.
            read: returns all rows that come out.
            context: where they were inserted, shown if the check fails.
            inserted: the rows, if `hostile` is filled by `read` only.
        """
        inserted = inserted or [row.row for row in hostile]
        self.inserted += len(inserted)
        self.checks += 1
        try:
            fault = difference(base, hostile, read())
        except KINDS as error:
            fault = f"raised {error!r}"
        said = self._watch.heard()
        fault = fault or (said and f"said {said}")
        if fault:
            self.failed += 1
            if len(self._shown) < SHOWN:
                rows = "\n  inserted: ".join(map(shown, inserted))
                self._shown.append(f"{fault[:500]}\n  inserted: {rows}\n  {repr(context)[:900]}")

    def check_union(
        self,
        lines: Callable[[Sequence[Any]], list[Any]],
        base: Sequence[Any],
        rows: Sequence[Any],
        together: Callable[[], Sequence[Any]],
        context: object = "",
    ) -> None:
        """See that every row becomes the same among others as alone, and at most one.

        Args:
            lines: returns what rows become.
            base: good rows: each of them becomes one.
            rows: hostile rows.
            together: returns all of them, the hostile ones inserted.
            context: shown if the check fails.
        """

        def read() -> list[Any]:
            expected.extend(lines(base))
            assert len(expected) == len(base), "the base does not come through by itself"
            for row in rows:
                [becomes] = lines([row]) or [None]
                hostile.append(Hostile(row, becomes, becomes is not None))
            return lines(together())

        expected, hostile = list[Any](), list[Hostile]()
        self.check(expected, hostile, read, context, rows)

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


def difference(base: Iterable[Any], hostile: Sequence[Hostile], found: Iterable[Any]) -> str:
    """Return what is wrong with the rows that came out, nothing if all is well."""
    # By `repr`: 1, 1.0 and True are three values, and NaN is one.
    wanted, extra = collections.Counter(map(repr, base)), collections.Counter(map(repr, found))
    lost = wanted - extra
    extra.subtract(wanted)
    rows = [(repr(row.becomes), row.certain) for row in hostile if row.becomes is not None]
    allowed = collections.Counter(row for row, _ in rows)
    sure = collections.Counter(row for row, certain in rows if certain)
    if lost:
        return f"lost other people's rows: {dict(lost)}"
    if +extra - allowed:
        return f"made rows that nobody wrote: {dict(+extra - allowed)}"
    return f"lost the row itself: {dict(sure - extra)}" if sure - extra else ""


def placed(rng: random.Random, base: Sequence[Any], hostile: Sequence[Any]) -> list[Any]:
    """Return the base with hostile rows at random places, in their order; half of them adjacent."""
    places = sorted(rng.randint(0, len(base)) for _ in hostile)
    if rng.random() < 0.5:
        places = [places[0]] * len(hostile)
    rows = list(base)
    for place, row in reversed(list(zip(places, hostile, strict=True))):
        rows.insert(place, row)
    return rows
