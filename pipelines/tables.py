"""Several tables of one run: `also_by: [store, [day, store], total]` adds three to the first one.

All are releases of the same rows, which are read once. Each bounds what a person adds to it, and
draws noise of its own. So their costs add up: epsilons and deltas (Dwork, Roth 2014, Theorem 3.16),
or rhos and deltas (Bun, Steinke 2016, Lemma 8.2). The shares are exact, and their sum is the
budget. Which files there are is said by the mapping alone.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import beam_dp as dp
from beam_dp.beam_yaml import mappings
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.plan import total_of
from beam_dp.transforms.stages.output_names import plain_name

TOTAL = "total"
"""The table of all rows; of a column that is called so, write [total]."""
APART = "Totals of different tables need not agree: each has its own noise"
_OWNER, _NAME = "release", "also_by"
_WORDS = ("partition", "partitions", "weight")


@dataclasses.dataclass(frozen=True)
class Table:
    """One of the tables of a run.

    Attributes:
        release: what releases it.
        ending: what the names of its files, and of its steps, have more than those of the first.
    """

    release: dp.PrivateAggregate
    ending: str = ""

    def file(self, path: str) -> str:
        """Return the name of its file, where that of the first table is `path`."""
        stem, dot, kind = path.rpartition(".")
        return f"{stem}{self.ending}{dot}{kind}"

    @property
    def title(self) -> str:
        """Which table it is."""
        return f"by {', '.join(self.release.partition)}" if self.release.partition else "all rows"


def tables_of(whole: dp.PrivateAggregate, also_by: Any) -> list[Table]:
    """Return the first table and the further ones, each with its share of the budget.

    Args:
        whole: the first table, at the budget of the run.
        also_by: a list; each entry is a column, a list of columns, "total", or a mapping with
            these as `partition`, and with `partitions` and `weight`: its share, where that of the
            first table is 1.

    Raises:
        TypeError, ValueError: names the part, and says what to write instead.
    """
    if not also_by:
        return [Table(whole)]
    listed = also_by if isinstance(also_by, list) else [also_by]
    entries = [each if isinstance(each, Mapping) else {"partition": each} for each in listed]
    entries = [mappings.mapping_of(_OWNER, _NAME, e, _WORDS, _WORDS[:1]) for e in entries]
    weights = [mappings.number(entry.get("weight", 1)) for entry in entries]
    first, *shares = whole.budget.split([1, *weights])
    tables = [Table(dataclasses.replace(whole, budget=first))]
    for entry, share in zip(entries, shares, strict=True):
        by = entry["partition"]
        names = () if by == TOTAL else mappings.columns_of(by)
        columns = checks.columns(_OWNER, _NAME, names)
        chosen = _chosen(whole, entry, columns)
        batches = whole.batches and isinstance(chosen, dp.PublicPartitions)
        release = dataclasses.replace(
            whole, budget=share, partition=columns, partitions=chosen, batches=batches
        )
        tables.append(Table(release, _ending(columns)))
    columns_of = {frozenset(table.release.partition) for table in tables}
    files = {table.ending.casefold() for table in tables}
    rule = "be other columns for each table, and two have the same ones, or the same file name"
    checks.require(len(columns_of) == len(files) == len(tables), _OWNER, _NAME, rule)
    return tables


def _ending(columns: Sequence[str]) -> str:
    return "_".join(["_by", *map(plain_name, columns)]) if columns else f"_{TOTAL}"


def _chosen(whole: dp.PrivateAggregate, entry: Mapping[str, Any], columns: tuple[str, ...]) -> Any:
    """Return how the partitions of a further table are chosen.

    Its own `partitions` say it, or those of the first table: of public keys with these columns, the
    parts; if they are selected privately, by the same rule.
    """
    if not columns or "partitions" in entry:
        return mappings.partitions_of(_OWNER, entry.get("partitions"), list(columns))
    known, by = whole.partitions, whole.partition
    if isinstance(known, dp.PublicPartitions) and {*columns} <= {*by}:
        parts = [by.index(name) for name in columns]
        return dp.PublicPartitions(tuple(key[part] for part in parts) for key in known.keys)
    rule = f"be above 0 to select the partitions by {checks.listed(columns)} privately"
    checks.require(bool(whole.budget.delta), _NAME, "delta", rule)
    return known if isinstance(known, dp.PrivatePartitions) else dp.PrivatePartitions()


def together(tables: Sequence[Table], budget: dp.Budget) -> str:
    """Return what to say of several tables of one run at this budget; "" for one."""
    if len(tables) == 1:
        return ""
    cost = f"{len(tables)} tables of one run, which costs {total_of(budget)} in all"
    return f"{cost}: {'; '.join(table.title for table in tables)}. {APART}"
