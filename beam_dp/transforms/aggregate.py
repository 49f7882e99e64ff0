"""PrivateAggregate: release several metrics over several columns, reading the data once."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa

from beam_dp.mechanisms.accounting.budget import Budget, cautions
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.histogram_choice.partition_bound import edges_up_to
from beam_dp.mechanisms.metrics.base import Metric, check_metrics
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.compile import compile_program
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.planning.request import Request
from beam_dp.text.plan import Plan, Record, cost, describe, protected
from beam_dp.transforms import run_record, suppress_unreliable
from beam_dp.transforms.columns.layout import Listed
from beam_dp.transforms.partitions import (
    BOUNDS,
    Partitions,
    PrivatePartitions,
    PublicPartitions,
    check_bounds,
    check_partitions,
)
from beam_dp.transforms.rows_of_people import RowsOfPeople
from beam_dp.transforms.stages import draw_once, guards, noise_off, output_names, quick_steps
from beam_dp.transforms.stages.bound_and_summarise import First, Summarise
from beam_dp.transforms.stages.draws_folder import draws_of
from beam_dp.transforms.suppress_unreliable import SuppressUnreliable

_SUBJECT = "PrivateAggregate"


@dataclasses.dataclass(eq=False)
class PrivateAggregate(RowsOfPeople):
    """Release statistics about people per partition, without asking for clipping bounds.

    The whole output together is (epsilon, delta)-differentially private (or rho-zCDP) as `budget`
    says, when one person with all their rows is added or removed: every metric, every partition,
    every interval, and which partitions appear.

    One `beam.Row` per released partition: the partition columns, then for each metric its number,
    `<name>_low` and `<name>_high` (of a histogram: these three per bin). In 95 of 100 releases the
    true statistic of all rows is between low and high; an infinite end says that nothing is known
    on that side. A column "visit day" becomes the field `visit_day`; `batches` keep its name.
    Quantiles and k-th largest rows have a `<name>_rank_error` instead: how many people the rank of
    the number may be off.

    Edge cases:
        rows without a usable person or partition are dropped; values that are no numbers are
        absent (see `columns.layout`); public partitions without rows are released like others;
        without `partition` there is one partition, which is always released. Each object can be
        applied once, and its pipeline run once: a second `run()` draws again, for the same charge.
        It is refused, unless `--draws_folder` gives it the first draws; runs of a template or of a
        copy of the pipeline cannot be seen, and each of them costs the budget.

    Args:
        person: the column that identifies a person; or the 2 to 8 columns of rows with several
            owners (`["customer", "supplier", "clerk"]`), which disappear when any of their owners
            is removed. A column without an id has no owner: the row belongs to the others. For such
            rows there are `Count`, `Sum`, `Max`, `Min`, `KthLargest`, `DistinctCount` and
            `MaxFrequency`; no bounds, and no private partitions.
        metrics: what to release: `Count()`, `Sum("spent")`, `Max("minutes")`, ...
        budget: what the whole output together may cost.
        partition: the columns whose values name a partition; empty: one partition for all.
        bounds: how many partitions and rows of one person count. None: all, of what adds up, as a
            person's contribution to all partitions is clipped as one. For metrics that pay for each
            partition of a person a bound is chosen privately (`ContributionBounds("auto")`), but
            for `BlackBox` and people with an epsilon of their own.
        partitions: `PublicPartitions([...])` or `PrivatePartitions()`; None: private ones if
            there are partition columns.
        shards: how many parts the people are cut into on the way, a power of two; None: by the size
            of the input and the number of workers (see `stages.shard_number`).
        batches: release `pyarrow.RecordBatch`es of at most some thousand rows instead of single
            rows, which is faster for many public partitions; not with private partitions, whose
            keys can be of any type, nor with public keys of several types in one column.
        columns: all columns that the rows have, where rows are dicts, which do not say it: then a
            misspelt column is refused (see `known_columns`).
        period: the column that says to which period a row belongs, as `"day"`. Protected are then
            one person's rows of one period: wherever something is said of a person here, of bounds
            and of numbers of people too, it holds for a person in one period. Who has rows in n
            periods is protected n times less. Periods are told apart as ids are (dates, text,
            integers); rows without one are dropped. Not for rows with several owners.
        ledger_period: the periods whose rows count, `"2026-11-22"` or
            `"2026-11-01..2026-11-30"`; other rows are dropped. A `Ledger` then counts the run for
            these periods only.
        suppress: `SuppressUnreliable()` suppresses numbers that are unreliable: they are empty
            (None for whole numbers, else NaN). It costs nothing.
        nonnegative: released numbers below 0, and ends of intervals, become 0. It costs nothing.

    Raises:
        TypeError, ValueError: when the pipeline is built; the message says what to write instead.

    Source: the module docstrings of `bounding.bounder`, `summaries.histograms`,
    `metrics.additive` and `planning.request`.
    """

    person: str | Sequence[str]
    metrics: Sequence[Metric]
    budget: Budget
    partition: Sequence[str] = ()
    bounds: ContributionBounds | None = None
    partitions: Partitions | None = None
    shards: int | None = None
    batches: bool = False
    columns: Sequence[str] | None = None
    period: str | None = None
    ledger_period: str | None = None
    suppress: SuppressUnreliable | None = None
    nonnegative: bool = False

    def __post_init__(self) -> None:
        self._check_names(several=True)
        self.partitions = check_partitions(_SUBJECT, self._partition, self.partitions)
        if not isinstance(self.partitions, PrivatePartitions) or self.metrics != ():
            self.metrics = check_metrics(_SUBJECT, self.metrics)
        if not self._others:
            self.bounds = self._bounds = check_bounds(_SUBJECT, self.bounds, self.metrics)
        else:  # there is no choice: `check_several` refuses all limits
            self.bounds = self._bounds = self.bounds or ContributionBounds(None)
            asked = self.metrics, self._bounds, self.partitions
            self.metrics = guards.check_several(_SUBJECT, *asked, self.people_columns)
        hint = "Write budget=dp.Budget(epsilon=1.0)."
        checks.of_type(_SUBJECT, "budget", self.budget, Budget, hint)
        checks.boolean(_SUBJECT, "nonnegative", self.nonnegative)
        if self.suppress is not None:
            hint = "Write suppress=dp.SuppressUnreliable(beyond=0.25)."
            checks.of_type(_SUBJECT, "suppress", self.suppress, SuppressUnreliable, hint)
            self.suppress.check(self.metrics)
        guards.check_functions(self.metrics)
        output_names.check_batches(_SUBJECT, self.batches, self.partitions)
        output_names.check_names(_SUBJECT, self.partition, self.metrics, self.batches)
        self._drawn: draw_once.Drawn | None = None
        self.whole = self.budget  # of all tables of the run
        self.paid, self.has_other, self.agrees = self.budget, False, False  # unless others join
        self._program = self._compile(self.budget)

    def join(self, others: Iterable[Listed], has_other: bool) -> None:
        """Become one of several tables that agree.

        Args:
            others: the public keys of others, which rows must have.
            has_other: whether its rows that are not listed are released together.
        """
        self.paid, self.has_other, self.agrees = self.whole, has_other, True
        self._also_listed = tuple(others)

    def cost(self) -> Budget:
        """Return what the output costs, for a `Ledger`: all that its numbers are made of."""
        return self.paid

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the output that say which row it is."""
        return (*self.partition, *([output_names.OTHER] if self.has_other else []))

    @property
    def title(self) -> str:
        """Which of several tables it is, in words."""
        return f"by {', '.join(self.partition)}" if self.partition else "all rows"

    def expand(self, pcoll: beam.PCollection[Any]) -> beam.PCollection[Any]:
        """Collect, bound, summarise, draw, and put a barrier behind the draw."""
        self._check_input(pcoll, (column.name for column in self._program.columns))
        guards.warn_of_unusual(_SUBJECT, self.budget)
        draws = draws_of(_SUBJECT, pcoll.pipeline)
        rule = "be applied once, not twice: a second application spends the budget again"
        hint = "Make another object, with a budget of its own."
        checks.require(self._drawn is None, _SUBJECT, "each object", rule, hint)
        self._layout = layout = self._laid_out(self._program.columns)
        is_engine = guards.may_recompute(pcoll.pipeline)
        partitions = draw_once.BucketPartitions(
            layout,
            draw_once.bucket_count(
                layout, self._program.keep_rows, is_engine, self._program.has_box
            ),
        )
        noise = noise_off.noise()
        # A trial names the partitions that are likely to be with this budget.
        if noise_off.applies() and self.metrics:
            self._program = self._compile(noise_off.budget_of(self.budget, self.metrics))
        program, bounds = self._program, self._bounds.up_to(self._program.limit)
        first, private = None, program.selection is not None
        if program.request.chooses or private:
            how = program, noise, draws
            select = functools.partial(draw_once.DrawSelection, *how, partitions.buckets)
            first = First(program, draw_once.ChooseParameters(*how), select if private else None)
        summaries = pcoll | "Summarise" >> Summarise(
            layout,
            Bounder(bounds, program.fields, layout.key, keep_rows=program.keep_rows),
            program.measures,
            program.shared_measures,
            partitions.buckets,
            self.shards,
            first,
        )
        draw = draw_once.DrawOnce(program, partitions, noise, first, draws, not self.agrees)
        released = summaries | "ReleaseNumbers" >> draw
        self._drawn = draw.drawn
        return released if self.agrees else self.named(released)

    def named(
        self, blocks: beam.PCollection[draw_once.Block]
    ) -> beam.PCollection[beam.Row | pa.RecordBatch]:
        """Return the output of blocks with output columns, once the table was drawn."""
        asked, keys = self.metrics, self.keys
        wholes = [output.whole for output in output_names.outputs_of(asked)]
        suppress = None
        if self.suppress is not None or self.nonnegative:
            suppress = suppress_unreliable.step_of(self._program, self.suppress, self.nonnegative)
        how = wholes, self._layout.public, suppress
        if self.batches:
            names = output_names.output_names(keys, asked)
            batches = quick_steps.flat_mapped(draw_once.as_batches, names, *how)
            return blocks | "MakeBatches" >> batches.with_output_types(pa.RecordBatch)
        is_private = isinstance(self.partitions, PrivatePartitions)
        may_lack = suppress is not None or (self.agrees and is_private)
        kind = output_names.output_type(keys, asked, self._layout, may_lack)
        names = output_names.field_names(keys, asked)
        rows = quick_steps.flat_mapped(draw_once.as_rows, names, *how)
        return blocks | "MakeRows" >> rows.with_output_types(kind)

    def record(self, job: Mapping[str, Any] | None = None) -> beam.PCollection[Record]:
        """Return a collection of one dict: what was spent on what, and how it was drawn.

        It holds public parameters and released numbers only: the costs in the account, the noisy
        histograms that chose the clips, the clips, the scales of the noise, the versions of the
        libraries, and the date when the pipeline was built. So it may be shown with the output:
        `WriteRows(path, record=release.record())`.

        Args:
            job: further public parameters of plain types, as the options of a command line.

        Raises:
            ValueError: if the release has not been applied to rows yet.
        """
        return run_record.of(self, job)

    def _compile(self, budget: Budget) -> Program:
        asked = self.partitions
        count = 1 if asked is None else None
        if isinstance(asked, PublicPartitions):
            count = len(asked.keys)
        limits = [each for each in (self._bounds.max_partitions, count) if each is not None]
        chosen = self._bounds.is_automatic and not self._others and count != 1
        rule = "be given where partitions are selected privately"
        checks.require(chosen or bool(limits), _SUBJECT, "bounds.partitions", rule, BOUNDS)
        request = Request(
            tuple(self.metrics),
            budget,
            edges_up_to(min(limits, default=None)) if chosen else (min(limits),),
            max_partitions=self._bounds.max_partitions,
            max_rows_per_partition=self._bounds.max_rows_per_partition,
            selection=asked.request() if isinstance(asked, PrivatePartitions) else None,
            others=tuple(self._others),
            partitions=count,
        )
        return compile_program(request)

    def plan(self) -> Plan:
        """Return what each release would spend, and its expected error; reads no row."""
        free = self._bounds.max_partitions is None and not self._others
        plan = describe(self._program, unbounded=free)
        owners, paid = [self._subject, *self._others], cost(self.budget)
        unit = protected(owners, self.period, paid, self.ledger_period, self._source)
        text = cautions(self.budget)
        return dataclasses.replace(plan, cautions=text, owners=unit, period=self.period)
