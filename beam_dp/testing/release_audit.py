"""`audit`: a user's own release, proved on made-up rows: the exact loss of many neighbours."""

import dataclasses
import itertools
import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from beam_dp.mechanisms.numerics import checks
from beam_dp.testing.forced_draws import Release, compared, share_spent
from beam_dp.testing.losses.draw_costs import Fault, UnknownDraw
from beam_dp.testing.made_rows import RowMaker
from beam_dp.transforms.partitions import PrivatePartitions

_SUBJECT = "audit"
_UNKNOWN = "Not known: local_sensitivity, an epsilon for each person."
_LEANS = (1, -2, 0, 2, -1)
SECONDS = 60.0


@dataclasses.dataclass(frozen=True)
class Audit:
    """What an audit found.

    Attributes:
        share: the largest part of the budget that was spent between two databases.
        pairs: how many pairs of databases were compared.
        fault: what is wrong, and with which person; "": nothing was found.
    """

    share: float = 0.0
    pairs: int = 0
    fault: str = ""

    def __str__(self) -> str:
        if self.fault:
            return f"NOT PRIVATE, in pair {self.pairs}: {self.fault}"
        share = f"{math.ceil(self.share * 1000) / 1000:.3f}"
        return (
            f"largest share of the budget spent: {share} in {self.pairs} pairs; "
            "nothing else differed"
        )


def audit(
    release: Release,
    rows: Any,
    *,
    person: str | Sequence[str],
    period: str | Sequence[str] = (),
    seconds: checks.Real = SECONDS,
) -> Audit:
    """Try to find two neighbours between which a release is not as private as its budget says.

        dp.testing.audit(
            lambda rows: dp.release(rows, person="visitor_id", metrics=[...], budget=dp.Budget(1)),
            {"visitor_id": ["a", "b"], "day": [1, 2], "spent": [1.5, 20.0]},
            person="visitor_id",
        )

    The release runs on made-up people, and on the same with one more or one fewer. All draws are
    forced to be those of the first run; then what is shown must be the same (tables, records,
    page, names of steps, warnings), and the exact log ratio of all chances (the divergences, of
    `Budget.zcdp`) must be within the budget. People are mixed of the sample's cells, and of odd
    ones; the first pairs compare nobody with one person. It costs nothing: draws are not those of
    a release. Rows, seeds and pairs are the same in each call, but how many fit into the time.

    A finding is a proof: there is no false alarm. No finding proves nothing of other rows: the
    share says how near to the budget these came.

    Args:
        release: makes a `Released` of a `pyarrow.Table` with the columns and types of the sample.
            It must run in this process.
        rows: a made-up sample: a `pyarrow.Table`, or columns by name. It should have a row in
            each partition that is listed, and values that pass the query.
        person: the column of the person's id, or those of a row's owners: text or integers.
        period: the columns that say the period, where people are protected in one.
        seconds: after so many no further pair begins.

    Raises:
        TypeError, ValueError: for other parameters, also of the release; and for a release that
            draws in a way that is not known, as `Ratio(method="local_sensitivity")` and epsilons
            per person do.

    Source: Dwork and Roth 2014, Definition 2.4: of fixed outcomes, the loss adds up over draws.
    """
    sample = rows if isinstance(rows, pa.Table) else pa.table(rows)
    names = [
        checks.columns(_SUBJECT, name, (given,) if isinstance(given, str) else given)
        for name, given in (("person", person), ("period", period))
    ]
    for subject, columns in zip(("person", "period"), names, strict=True):
        rule = f"be among the columns of the rows, {checks.listed(sample.column_names)}"
        checks.require({*columns} <= {*sample.column_names}, _SUBJECT, subject, rule)
    checks.require(bool(len(sample)), _SUBJECT, "rows", "have a row at least")
    checks.require(
        checks.number(_SUBJECT, "seconds", seconds) > 0, _SUBJECT, "seconds", "be above 0"
    )
    until, found = time.monotonic() + float(seconds), Audit()
    for each in _shares(release, RowMaker(sample, *names)):
        found = dataclasses.replace(found, pairs=found.pairs + 1)
        if isinstance(each, str):
            return dataclasses.replace(found, fault=each)
        found = dataclasses.replace(found, share=max(found.share, each))
        if time.monotonic() > until:
            break
    return found


def _shares(release: Release, maker: RowMaker) -> Iterator[float | str]:
    """Yield which part of the budget each pair spends; or what is wrong, and end."""
    selects = False
    for number in itertools.count():
        case, removes = number // 2, bool(number % 2)
        if removes and (selects or not case):
            continue  # what is selected with somebody may be impossible without them
        made = [*maker.pairs(case, removes)]
        runs = compared(
            release, made[0].base, (each.other for each in made), case, _LEANS[case % len(_LEANS)]
        )
        for each in made:
            try:
                run = next(runs)
                share = float(share_spent(run))
            except UnknownDraw as unknown:
                rule = "draw by nothing else than the methods whose chances an audit knows"
                raise checks.ParameterError(_SUBJECT, "release", rule, _UNKNOWN) from unknown
            except Fault as fault:
                yield f"{each.what}: {fault}"
                return
            selects = any(isinstance(table.partitions, PrivatePartitions) for table in run.tables)
            yield share
