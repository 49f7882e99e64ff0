"""PrivateTables: several tables of the same rows, of one budget, whose totals agree.

All are releases of the same rows, which are read once. Each draws noise of its own, for one clip of
a person's whole vector. So their costs add up: epsilons and deltas (Dwork, Roth 2014, Theorem
3.16), or rhos and deltas (Bun, Steinke 2016, Lemma 8.2). The shares are exact, and their sum is the
budget. That they agree is a function of what was released (`mechanisms.consistency`): one step
behind the barriers reads the drawn blocks of all tables, as side inputs, and nothing else. Every
runner stores these, or keeps them with the driver (`stages.draw_once`); a step that is tried again
computes the same of them, in one order of rows.

*What is a part of what.* A row counts in the run if it has one of the public keys of each table
that lists some: in all tables, or in none. So where the finer table has public partitions, each
parent is the sum of those listed. Where they are selected privately, rows of keys that are not
listed count in the coarser table alone: it has a part (other). A parent of a listed row is listed:
if it was not selected, its number is that of its parts, with an open interval.
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import apache_beam as beam
import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.consistency import several_metrics
from beam_dp.mechanisms.consistency.agreement import Link
from beam_dp.mechanisms.consistency.several_metrics import DrawnTable
from beam_dp.mechanisms.consistency.tables import nested
from beam_dp.mechanisms.metrics.mean import MeanOfReleased
from beam_dp.mechanisms.metrics.released import Released
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.program import Program, Step
from beam_dp.text.plan import total_of
from beam_dp.transforms import known_columns
from beam_dp.transforms.aggregate import PrivateAggregate
from beam_dp.transforms.columns import ids, partition_keys
from beam_dp.transforms.columns.partition_keys import Key
from beam_dp.transforms.columns.public_keys import PublicKeys, encoded
from beam_dp.transforms.partitions import PrivatePartitions, PublicPartitions
from beam_dp.transforms.stages import draw_once, output_names, quick_steps
from beam_dp.transforms.stages.bound_and_summarise import adapted
from beam_dp.transforms.stages.draw_once import Block

AGREE, APART = "agree", "apart"
TOTAL = "total"
"""The table of all rows; of a column that is called so, write [total]."""
_SUBJECT = "PrivateTables"
_HINT = 'Write totals="apart" for tables that need not agree.'
_AGREEING = (
    "Totals agree, at no cost, of {}: each is the sum of its parts, by least squares over what was "
    "drawn; each interval is that of its table alone"
)
_LEFT = (
    "As drawn: {}, for only counts and sums of all rows add up (a person may be in several "
    "partitions, quantiles and extremes have no sum, and avg of SQL agrees as sum(x) / count(*))"
)
_APART = "Totals of different tables need not agree: each has its own noise"
_FINER = Fraction(3, 2)
"""How much more of the budget a table has for each coarser table that it is a part of."""
_SALT = bytes(32)


@dataclasses.dataclass(eq=False)
class PrivateTables(beam.PTransform[beam.PCollection[Any], tuple[beam.PCollection[Any], ...]]):
    """Release several tables of the same rows, of one budget, whose totals agree.

    The tables together cost the budget of `first`: the whole output has its guarantee. Counts and
    sums of a coarser table are the sums of their parts in the finer one, exactly; counts are whole
    and not negative; a mean beside a sum and a count is their quotient. It costs nothing. Each
    interval holds in 95 of 100 releases, and contains its number. What does not add up (people,
    quantiles, extremes, what a given bound or clip cuts) is left as it was drawn.

    A row counts in all tables if it has a public key of each table that has some, else in none.
    Where partitions are selected privately, the finer table has one more row per row of the coarser
    one: its keys are empty from there on and its column `is_other` is true, for all that is not
    listed.

    Returns a tuple of collections: that of `first`, and one per entry of `also_by`, as of
    `PrivateAggregate`.

    Args:
        first: the first table, at the budget of all.
        also_by: for each further table its column, its columns, or "total": all rows. Or a mapping
            with these as `partition`, and with `partitions` and `weight`: its share of the budget,
            where that of the first table is 1. Without weights, a table has 1.5 times as much
            for each coarser one.
        totals: "agree", or "apart": each table as it was drawn; then all rows count in a table that
            has no public partitions.

    Raises:
        TypeError, ValueError: when built; for tables that do not nest, and are not those of two
            groups of columns with both margins; and for public partitions of a coarser table that
            are not those of the parts.

    Source: `mechanisms.consistency`.
    """

    first: PrivateAggregate
    also_by: Sequence[Any] = ()
    totals: str = AGREE

    def __post_init__(self) -> None:
        super().__init__()
        checks.one_of(_SUBJECT, "totals", self.totals, (AGREE, APART))
        hint = f"Write also_by=[{checks.shown(self.also_by)}]."
        checks.sequence(_SUBJECT, "also_by", self.also_by, "tables", hint)
        entries = [e if isinstance(e, Mapping) else {"partition": e} for e in self.also_by]
        words = {"partition", "partitions", "weight"}
        rule = "have a partition, and perhaps partitions and a weight, and nothing else"
        known = all("partition" in e and {*e} <= words for e in entries)
        checks.require(known, _SUBJECT, "also_by", rule)
        named = [entry["partition"] for entry in entries]
        listed = [() if n == TOTAL else (n,) if isinstance(n, str) else n for n in named]
        columns = [checks.columns(_SUBJECT, "also_by", names) for names in listed]
        sets = [frozenset(names) for names in (self.first.partition, *columns)]
        rule = "have different columns for each table, and two tables have the same"
        checks.require(len({*sets}) == len(sets), _SUBJECT, "also_by", rule)
        coarser = [sum(other < own for other in sets) for own in sets]
        usual = [_FINER ** (each - coarser[0]) for each in coarser[1:]]
        weights = [e.get("weight", each) for e, each in zip(entries, usual, strict=True)]
        share, *shares = self.first.budget.split([1, *weights])
        self.tables = [dataclasses.replace(self.first, budget=share)]
        self.tables += map(self._further, columns, entries, shares)
        for table in self.tables:
            table.whole = self.first.budget
        metrics = zip(*(table._program.request.metrics for table in self.tables), strict=True)
        programs = [table._program for table in self.tables]
        self.agreeing = [
            at
            for at, of_tables in enumerate(metrics)
            if self.totals == AGREE and all(map(several_metrics.adds_up, of_tables, programs))
        ]
        self.agrees = bool(self.agreeing and entries)
        if self.agrees:
            self._join()

    def _further(
        self, columns: tuple[str, ...], entry: Mapping[str, Any], share: Budget
    ) -> PrivateAggregate:
        """Return a further table: its partitions are its own, or those of the first table."""
        chosen, by = self.first.partitions, self.first.partition
        if not columns or "partitions" in entry:
            chosen = entry.get("partitions")
        elif isinstance(chosen, PublicPartitions) and {*columns} <= {*by}:
            parts = [by.index(name) for name in columns]
            chosen = PublicPartitions(tuple(key[part] for part in parts) for key in chosen.keys)
        else:
            rule = f"be above 0 to select the partitions by {checks.listed(columns)} privately"
            hint = "Write Budget(epsilon=1.0, delta=1e-6)."
            checks.require(bool(share.delta), "also_by", "delta", rule, hint)
            chosen = chosen if isinstance(chosen, PrivatePartitions) else PrivatePartitions()
        batches = self.first.batches and isinstance(chosen, PublicPartitions)
        return dataclasses.replace(
            self.first, budget=share, partition=columns, partitions=chosen, batches=batches
        )

    def _join(self) -> None:
        """Fix which tables are parts of which, and which rows count; refuse what cannot agree."""
        order, pairs = nested(_SUBJECT, "also_by", [table.partition for table in self.tables])
        self.ordered = [self.tables[index] for index in order]
        self._links = [self._link(*pair) for pair in pairs]
        above = [_public(self.ordered[k.coarse]) for k in self._links if k.fine == len(order) - 1]
        cells = _public(self.ordered[-1])
        if len(above) > 1 and cells is not None:
            rule = "be all pairs of the keys of both groups of columns"
            hint = "Write partitions=dp.PublicPartitions.product(day=[...], store=[...])."
            is_whole = len(cells) == math.prod(len(keys) for keys in above if keys is not None)
            checks.require(is_whole, _SUBJECT, "public keys", rule, hint)
        known = [(table._partition, keys) for table in self.ordered if (keys := _public(table))]
        finest = [(by, keys) for by, keys in known if not any({*by} < {*o} for o, _ in known)]
        opened = [self.ordered[link.fine] for link in self._links if link.is_open]
        for table in self.ordered:
            others = [each for each in finest if each[0] != table._partition]
            table.join(others, has_other=table in opened)
            output_names.check_names(_SUBJECT, table.keys, table.metrics, table.batches)

    def _link(self, coarse: int, fine: int) -> Link:
        """Return how a table is a part of another: of public ones with the parents."""
        parent, part = (self.ordered[at] for at in (coarse, fine))
        listed, known = _public(part), _public(parent)
        if listed is None:
            return Link(coarse, fine, np.zeros(0, np.int64), True)
        parents = np.zeros(len(listed), np.int64)
        if parent.partition:
            by = checks.listed(parent.partition)
            rule = f"be public by {by}, as they are in a finer table"
            if known is None:
                raise checks.ParameterError(_SUBJECT, "partitions", rule, _HINT)
            columns = [part.partition.index(name) for name in parent.partition]
            parents = known.indexes([listed.keys.columns[at] for at in columns], _SALT)
            found = parents.min() >= 0 and len(np.unique(parents)) == len(known)
            rule = f"be the same by {by} as in the finer table"
            hint = "Leave out those of the coarser one."
            checks.require(found, _SUBJECT, "public keys", rule, hint)
        return Link(coarse, fine, parents, False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The partition columns of all tables."""
        return tuple(dict.fromkeys(name for table in self.tables for name in table.partition))

    @property
    def summary(self) -> str:
        """What to say of several tables of one run; "" for one."""
        if len(self.tables) == 1:
            return ""
        titles = "; ".join(table.title for table in self.tables)
        of_all = f"which costs {total_of(self.first.budget)} in all: {titles}"
        names = [metric.output for metric in self.first.metrics]
        agreeing = [names[at] for at in self.agreeing]
        asked = self.tables[0]._program.request.metrics
        made = (metric for metric in asked if isinstance(metric, MeanOfReleased))
        means = [metric.output for metric in made if not metric.own_count]
        left = [name for name in names if name not in (*agreeing, *means)]
        sentences = [f"{len(self.tables)} tables of one run, {of_all}"]
        sentences += [_AGREEING.format(", ".join(agreeing))] if agreeing else [_APART]
        sentences += [_LEFT.format(", ".join(left))] if agreeing and left else []
        return ". ".join(sentences)

    @property
    def charged(self) -> PrivateAggregate:
        """What a ledger is charged with: the release whose budget all tables share."""
        return self.first

    @property
    def endings(self) -> list[str]:
        """What the steps, and files, of each table have more in their names than the first one."""
        plain = [map(output_names.plain_name, table.partition) for table in self.tables[1:]]
        named = ["_".join(["_by", *names]) for names in plain]
        return ["", *(f"_{TOTAL}" if name == "_by" else name for name in named)]

    def expand(self, rows: beam.PCollection[Any]) -> Any:
        """Draw each table, make all agree in one step that reads the draws, and name them."""
        for query in known_columns.queries_of(rows):
            self.first.reads(query)  # a ledger is charged with that one
        pairs = list(zip(self.endings, self.tables, strict=True))
        outputs = tuple(rows | f"Release{ending}" >> table for ending, table in pairs)
        if not self.agrees:
            return outputs
        sides = [beam.pvalue.AsIter(table._drawn.source) for table in self.ordered if table._drawn]
        agree = quick_steps.flat_mapped(agreed, self.agreeing_tables, *sides)
        start = rows.pipeline | "StartAgreeing" >> beam.Impulse()
        blocks = start | "AgreeNumbers" >> agree.with_output_types(tuple[int, Block])
        return tuple(
            blocks | f"Name{ending}" >> _Named(table, self.ordered.index(table))
            for ending, table in pairs
        )

    @property
    def agreeing_tables(self) -> "AgreeingTables":
        """What the step that makes the tables agree must know."""
        return AgreeingTables(
            [table._program for table in self.ordered],
            list(map(_public, self.ordered)),
            [table._partition for table in self.ordered],
            self._links,
            self.agreeing,
            self.first.nonnegative,
        )


def _public(table: PrivateAggregate) -> PublicKeys | None:
    return table.partitions.index if isinstance(table.partitions, PublicPartitions) else None


@dataclasses.dataclass(eq=False)
class _Named(beam.PTransform[beam.PCollection[tuple[int, Block]], beam.PCollection[Any]]):
    """Take the blocks of one of the tables, and make its output of them."""

    table: PrivateAggregate
    at: int

    def expand(self, pcoll: beam.PCollection[tuple[int, Block]]) -> beam.PCollection[Any]:
        at = self.at
        take = quick_steps.flat_mapped(lambda pair: [pair[1]] if pair[0] == at else [])
        return self.table.named(pcoll | "TakeTable" >> take.with_output_types(Block))


@dataclasses.dataclass(frozen=True)
class AgreeingTables:
    """What the step that makes tables agree must know, beside what was drawn: public parameters.

    Attributes:
        programs: those of the tables, from coarse to fine.
        public: their public keys; None: they are selected privately, or there are no columns.
        by: their partition columns.
        links: which is a part of which; the parents are known of public ones.
        which: the metrics that agree.
        nonnegative: whether all that is released is at least 0.
    """

    programs: Sequence[Program]
    public: Sequence[PublicKeys | None]
    by: Sequence[tuple[str, ...]]
    links: Sequence[Link]
    which: Sequence[int]
    nonnegative: bool


def agreed(_: bytes, plan: AgreeingTables, *drawn: Iterable[Block]) -> Iterator[tuple[int, Block]]:
    """Yield the output columns of all tables, each block with the place of its table.

    Args:
        plan: public parameters.
        drawn: of each table the blocks that were drawn.
    """
    gathered = list(map(_gathered, drawn, plan.programs))
    pairs = zip(gathered, plan.public, strict=True)
    names: list[Sequence[Key]] = [
        Block(keys).named(None) if public is None else public.keys for (keys, _), public in pairs
    ]
    links = [_with_parents(plan, link, names) for link in reversed(plan.links)][::-1]
    tables = [
        table._replace(size=len(keys)) for (_, table), keys in zip(gathered, names, strict=True)
    ]
    found = several_metrics.agree(tables, links, plan.which, plan.nonnegative)
    for at, (table, numbers) in enumerate(zip(tables, found, strict=True)):
        of_metrics = zip(table.program.request.metrics, numbers, strict=True)
        columns = tuple(c for metric, each in of_metrics for c in metric.output_columns(each))
        keys = gathered[at][0]
        if keys.dtype == object:
            open_links = [link for link in links if link.fine == at and link.is_open]
            rows = [(*key, False) for key in names[at]] if open_links else names[at]
            keys = draw_once.listed([*rows, *_others(plan, open_links, names)])
        yield from ((at, block) for block in draw_once.cut(Block(keys, columns)))


def _others(
    plan: AgreeingTables, links: Sequence[Link], names: Sequence[Sequence[Key]]
) -> Iterator[Key]:
    """Yield the keys of what is not listed: those of the coarser table, and nothing else."""
    for link in links:
        for key in names[link.coarse]:
            known = dict(zip(plan.by[link.coarse], key, strict=True))
            yield (*map(known.get, plan.by[link.fine]), True)


def _gathered(blocks: Iterable[Block], program: Program) -> tuple[np.ndarray, DrawnTable]:
    """Return the keys of a table, in a public order, and what was drawn for them."""
    every = list(blocks) or [Block(draw_once.listed([]), drawn=tuple(map(_nothing, program.steps)))]
    program = adapted(program, every[0].chosen)
    keys = np.concatenate([block.keys for block in every])
    texts = map(partition_keys.encode, keys) if keys.dtype == object else keys
    order = np.argsort(np.array([*texts], keys.dtype), kind="stable")
    parts = zip(*(block.drawn for block in every), strict=True)
    sums = draw_once.added([draw_once.sums_of(block, program) for block in every])
    drawn = [Released.concatenated(part).take(order) for part in parts]
    return keys[order], DrawnTable(program, drawn, sums, len(keys))


def _nothing(step: Step) -> Released:
    """Return what is drawn for no partition: one number, or a row of several, for each."""
    numbers = max(len(user.number_names) for user in step.users)
    return Released.between(np.zeros((0, numbers)[: 1 if numbers == 1 else 2]), 0.0, 0.0)


def _with_parents(plan: AgreeingTables, link: Link, names: list[Sequence[Key]]) -> Link:
    """Return a link with the parents of what was selected; missing ones join the names.

    Args:
        plan: public parameters.
        link: of these tables.
        names: the keys of all tables.
    """
    if not link.is_open:
        return link
    places = [plan.by[link.fine].index(name) for name in plan.by[link.coarse]]
    keys = [tuple(key[place] for place in places) for key in names[link.fine]]
    public = plan.public[link.coarse]
    if public is not None:
        parts = [encoded(ids.ids_of([key[at] for key in keys])) for at in range(len(places))]
        return link._replace(parents=public.indexes(parts, _SALT))
    rows = {partition_keys.encode(key): at for at, key in enumerate(names[link.coarse])}
    more = {text: key for key in keys if (text := partition_keys.encode(key)) not in rows}
    rows |= zip(more, range(len(rows), len(rows) + len(more)), strict=True)
    names[link.coarse] = [*names[link.coarse], *more.values()]
    parents = [rows[partition_keys.encode(key)] for key in keys]
    return link._replace(parents=np.array(parents, np.int64))
