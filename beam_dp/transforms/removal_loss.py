"""RemovalLoss: how many people must be removed until a statistic is small, per partition."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam

from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.metrics import names_of
from beam_dp.mechanisms.metrics.base import REMOVALS, Metric, shown
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.compile import Loss, compile_loss
from beam_dp.mechanisms.summaries.histograms import PEOPLE, Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.transforms.partitions import PublicPartitions, check_bounds, check_public
from beam_dp.transforms.rows_of_people import RowsOfPeople
from beam_dp.transforms.stages import draw_once, guards, output_names, quick_steps
from beam_dp.transforms.stages.bound_and_summarise import Summarise, open_bucket
from beam_dp.transforms.stages.output_names import row_type

_SUBJECT = "RemovalLoss"


def measures_of(loss: Loss) -> tuple[Measure | Relation, ...]:
    """Return what is summarised; beside relations also the people, whose lines name partitions."""
    return (Measure(PEOPLE), *loss.profiler.measures) if loss.keep_rows else loss.profiler.measures


def _profiles(
    element: tuple[int, Iterable[bytes]],
    loss: Loss,
    partitions: draw_once.BucketPartitions,
    names: Sequence[str],
) -> Iterator[beam.Row]:
    """Turn the summaries of a bucket into one profile per partition."""
    bucket, packed = element
    measures = measures_of(loss)
    summary, lines = open_bucket(packed, measures)
    every = draw_once.named_partitions(bucket, summary)
    view, keys = partitions.cells(bucket, summary, lines, [every])
    profiles = loss.profiler.profiles(view.at(len(measures) - 1))
    for key, profile in zip(partitions.names(keys), profiles, strict=True):
        values = [float(value) for value in profile.values]
        yield beam.Row(**dict(zip(names, (*key, values), strict=True)))


@dataclasses.dataclass(eq=False)
class RemovalLoss(RowsOfPeople):
    """Compute the removal loss of a statistic, per partition. NOT PRIVATE BY ITSELF.

    One `beam.Row` per partition: the partition columns, then `profile`, the removal profile, a list
    B[0..K] with B[k] the least value of the statistic when at most k people are removed (for `Min`:
    of its mirror -min, to be searched over mirrored candidates). The loss of all candidates y, "how
    many people must be removed until the statistic is at most y", is
    `Profile(row.profile).loss(candidates)`: min{k : B[k] <= y}, and K + 1 where no k <= K is
    enough.

    Adding one person changes every loss of each partition they reach by 0 or 1, all in one
    direction, however many rows they own; a search (`AboveThreshold`, ...) turns that into a
    private release. The output itself is data: keep it where the input is kept.

    One pass over the rows; per partition a total and the K + 1 largest people are held, and merged
    in any order. Statistics: `Count()`, `Sum(column)` (people below 0 count as 0), `Max(column)`,
    `Min(column)`, `PeopleCount()`; and, from owner lines, `KthLargest`, `DistinctCount`,
    `MaxFrequency`, `SumOfSquares` and `CustomProfile`, whose losses may be relaxed (see there).

    Args:
        statistic: the metric; its options of release (side, clip, search, candidates and beta)
            play no part here.
        person: the column that identifies a person, or the columns of rows with several owners (see
            `PrivateAggregate`).
        partition: the columns whose values name a partition; empty: one partition for all.
        removals: K; `search.cap(candidates.size)` is enough for a search.
        bounds: how much one person may contribute.
        partitions: public partitions; None: every partition that has rows (which is not private).
        shards: how many parts the people are cut into on the way, a power of two; None: by the size
            of the input and the number of workers (see `stages.shard_number`).
        columns: all columns that the rows have, if these are dicts: see `PrivateAggregate`.

    Raises:
        TypeError, ValueError: when the pipeline is built.

    Source: Fang, Dong, Yi, "Shifted Inverse" (CCS 2022), section 5; the profile is f - DS^k of
    Steinke, "Beyond Local Sensitivity via Down Sensitivity" (2023).
    """

    statistic: Metric
    person: str | Sequence[str]
    partition: Sequence[str] = ()
    removals: int = 100
    bounds: ContributionBounds | None = None
    partitions: PublicPartitions | None = None
    shards: int | None = None
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        self._check_names(several=True)
        checks.positive_integer(_SUBJECT, "removals", self.removals)
        rule = f"be at most {REMOVALS}, not {self.removals}"
        hint = "Give the search more epsilon, fewer candidates, or fewer partitions per person."
        checks.require(self.removals <= REMOVALS, _SUBJECT, "removals", rule, hint)
        if not isinstance(self.statistic, Metric) or not self.statistic.monotone:
            names = names_of(lambda kind: kind.monotone)
            rule = f"be one of {names} (monotone in the set of people), not {shown(self.statistic)}"
            hint = 'Write statistic=dp.Max("minutes").'
            raise checks.ParameterTypeError(_SUBJECT, "statistic", rule, hint)
        self.bounds = self._bounds = check_bounds(_SUBJECT, self.bounds)
        self.partitions = check_public(_SUBJECT, self._partition, self.partitions)
        if self._others:
            guards.check_several(
                _SUBJECT, [self.statistic], self._bounds, self.partitions, self.people_columns
            )
        guards.check_functions([self.statistic])
        output_names.check_names(_SUBJECT, (*self._partition, "profile"), ())
        self._loss = compile_loss(self.statistic, self.removals, self._others)

    def expand(self, pcoll: beam.PCollection[Any]) -> beam.PCollection[beam.Row]:
        """Summarise the rows, then compute the profiles."""
        loss = self._loss
        self._check_input(pcoll, (column.name for column in loss.columns))
        layout = self._laid_out(loss.columns)
        bounder = Bounder(self._bounds, loss.fields, layout.key, keep_rows=loss.keep_rows)
        is_engine = guards.may_recompute(pcoll.pipeline)
        buckets = draw_once.bucket_count(layout, loss.keep_rows, is_engine)
        partitions = draw_once.BucketPartitions(layout, buckets)
        names = (*output_names.field_names(self.partition, ()), "profile")
        kinds = [Any for _ in self.partition] + [list[float]]
        kind = row_type(list(zip(names, kinds, strict=True)))
        summarise = Summarise(
            layout, bounder, measures_of(loss), (), partitions.buckets, self.shards
        )
        profiles = quick_steps.flat_mapped(_profiles, loss, partitions, names)
        return pcoll | "Summarise" >> summarise | "Profiles" >> profiles.with_output_types(kind)
