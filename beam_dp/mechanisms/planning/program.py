"""What runs: what is collected, summarised and drawn, as `compile` made it of a request."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget, Entry
from beam_dp.mechanisms.bounding.table import Column, Field
from beam_dp.mechanisms.histogram_choice.clipping_loss import SUMS
from beam_dp.mechanisms.histogram_choice.partition_bound import BoundChoice
from beam_dp.mechanisms.metrics.additive.additive_release import AdditiveRelease, draw_jointly
from beam_dp.mechanisms.metrics.additive.shared_clip import SharedClip
from beam_dp.mechanisms.metrics.base import Metric, MetricPart
from beam_dp.mechanisms.metrics.released import Release, Released
from beam_dp.mechanisms.metrics.values import CoveringRelease
from beam_dp.mechanisms.noise.noise_on_a_sum import JointNoise
from beam_dp.mechanisms.noise.partition_selection import Selection
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.request import Request
from beam_dp.mechanisms.search.coverage_search import OCTAVES
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView


@dataclasses.dataclass(frozen=True)
class Adaptive:
    """Adaptive parameters: chosen privately before the aggregation, all of them released.

    Attributes:
        bound: the bound on partitions; None: it was given, or nothing needs one.
        centres: the centre of each request, in its order, in units; None: too few people.
        partitions: how many partitions were selected; None: they are public, or not yet selected.
        cap: how many partitions of a person count for the selection; None: it was not chosen.
    """

    bound: BoundChoice | None = None
    centres: tuple[int | None, ...] = ()
    partitions: int | None = None
    cap: int | None = None

    def partitions_of(self, public: int | None) -> int | None:
        """Return how many partitions there are, by what was selected, or by the public list."""
        return public if self.partitions is None else max(1, self.partitions)


NOTHING = Adaptive()
"""Nothing was chosen first, or not yet."""


@dataclasses.dataclass(frozen=True)
class Step:
    """A part with its release.

    Attributes:
        part: what is released.
        users: the metrics that have this part.
        label: the name of its costs in the account.
        release: how it is drawn.
        first: the index of its first measure among all measures of the program.
        shared: the index of its clip among the shared clips; None: it has no shared clip.
    """

    part: MetricPart
    users: tuple[Metric, ...]
    label: str
    release: Release
    first: int
    shared: int | None

    @property
    def additive(self) -> AdditiveRelease | None:
        """The release, if its number adds up over people."""
        return self.release if isinstance(self.release, AdditiveRelease) else None

    @property
    def costs_per_partition(self) -> list[Budget]:
        """What every partition of a person pays for the release."""
        return [spending.cost for spending in self.release.spends if not spending.once]


@dataclasses.dataclass(frozen=True)
class Program:
    """Everything that a run must know, fixed by public parameters and by what was chosen first.

    Before anything is chosen it is the program for the least bound: what is read and summarised is
    the same for all bounds, for it depends on the metrics alone.

    Attributes:
        request: what was asked for.
        max_partitions: the most partitions of a person that count where each of them pays for
            itself.
        partitions: how many partitions there are; None: they are not yet selected.
        columns: the columns that are read, in the order of a table.
        fields: what is aggregated per person and partition.
        steps: the releases, one per part.
        gaussian: the same, with Gaussian noise where both kinds are possible.
        selection: how partitions are selected; None for public ones.
        entries: the entries of the account: label, cost, and how often it is spent.
        composed: the whole budget as it is spent (pure or zCDP).
        chosen: what was chosen first.
    """

    request: Request
    max_partitions: int
    partitions: int | None
    columns: tuple[Column, ...]
    fields: tuple[Field, ...]
    steps: tuple[Step, ...]
    gaussian: tuple[Step, ...]
    selection: Selection | None
    entries: tuple[Entry, ...]
    composed: Budget
    chosen: Adaptive = dataclasses.field(default=NOTHING, compare=False)

    @property
    def cap(self) -> int:
        """How many partitions of a person count for the selection."""
        return self.request.cap_of(self.chosen.cap)

    @property
    def measures(self) -> tuple[Measure | Relation, ...]:
        """What is summarised per partition."""
        return tuple(measure for step in self._every for measure in step.release.measures)

    @property
    def _every(self) -> list[Step]:
        """The steps, and those with Gaussian noise that may take their place."""
        return [*self.steps, *(step for step in self.gaussian if step not in self.steps)]

    @property
    def clips(self) -> list[SharedClip]:
        """How the shared clips are chosen, in order."""
        clips = (step.release.clip for step in self._every)
        return [clip for clip in clips if clip is not None]

    def with_better_noise(self, clips: Sequence[np.ndarray]) -> tuple[Step, ...]:
        """Return the steps that err less, by the histograms that chose their clips.

        *Laplace or Gaussian noise*: compared by the geometric mean of the errors of what has both.

        The histograms are released. Whatever they say, the noise that they choose costs the same,
        so the whole cost is the same: pure differential privacy (Dwork, Rothblum, Vadhan 2010) and
        zCDP (Bun, Steinke 2016, Lemma 2.3) compose adaptively.
        """
        pairs = [pair for pair in zip(self.steps, self.gaussian, strict=True) if pair[0] != pair[1]]
        logarithms = [
            math.log(each.additive.expected_error(clips[each.shared], self.partitions or 1))
            for pair in pairs
            for each in pair
            if each.additive is not None and each.shared is not None
        ]
        of_pairs = zip(logarithms[1::2], logarithms[::2], strict=True)
        return self.gaussian if sum(two - one for two, one in of_pairs) < 0 else self.steps

    @property
    def pays_per_partition(self) -> bool:
        """Whether some release is paid for by every partition of a person."""
        return any(step.costs_per_partition for step in self.steps)

    @property
    def bounded_partitions(self) -> int | None:
        """How many partitions of a person count for what is no norm; None: all that are left."""
        return self.max_partitions if self.request.searches else None

    @property
    def limit(self) -> int | None:
        """How many partitions of a person stay, where the user gave no bound; None: all do."""
        return (
            self.max_partitions if self.pays_per_partition and not self.request.searches else None
        )

    @property
    def has_box(self) -> bool:
        """Whether a number of people may have one draw for all partitions."""
        return any(step.additive is not None and step.additive.box for step in self._every)

    @property
    def keep_rows(self) -> bool:
        """Whether rows must stay apart until they are summarised."""
        return needs_rows(self.measures)

    @property
    def shared_measures(self) -> tuple[Measure, ...]:
        """What is summarised over all partitions, to choose the shared clips."""
        return tuple(clip.measure for clip in self.clips)

    @property
    def covering(self) -> list[tuple[Step, CoveringRelease]]:
        """The steps whose clip is chosen by what it covers, too."""
        every = [(step, step.release) for step in self._every]
        return [(step, each) for step, each in every if isinstance(each, CoveringRelease)]

    def coverage(self, view: PartitionView) -> np.ndarray:
        """Return what the clips of `covering` cover of some partitions, which add up."""
        found = [each.contribution.coverage(view.at(s.first)) for s, each in self.covering]
        return np.array(found, np.int64).reshape(-1, OCTAVES + 1)

    def choose_clips(
        self, view: PartitionView, noise: Noise, covered: Sequence[np.ndarray] = ()
    ) -> tuple[np.ndarray, ...]:
        """Draw what chooses the shared clips.

        Args:
            view: the summary over all partitions.
            noise: the randomness.
            covered: `coverage` of all partitions, in parts.

        Returns:
            the histograms in the order of `shared_measures`, then the octaves of `covering`.
        """
        histograms = [clip.choose(view.at(at), noise) for at, clip in enumerate(self.clips)]
        taken, octaves = self.with_better_noise(histograms), []
        none = np.zeros((len(self.covering), OCTAVES + 1), np.int64)
        whole = np.sum([none, *covered], axis=0)
        for (step, release), each in zip(self.covering, whole, strict=True):
            assert step.shared is not None
            given = histograms[step.shared], each, self.partitions or 1, noise
            octaves.append(np.array(release.octave(*given) if step in taken else -1))
        return (*histograms, *octaves)

    def select(self, view: PartitionView, noise: Noise) -> np.ndarray:
        """Return the indexes of the partitions that may be named, by the summary of weights."""
        assert self.selection is not None
        sums = view.histogram(self.request.caps.index(self.cap), 1)
        people, weights = (column[:, 0] for column in sums)
        return np.flatnonzero(self.selection.keep(people, noise, weights))

    def release(
        self, view: PartitionView, clips: tuple[np.ndarray, ...], noise: Noise
    ) -> tuple[Released, ...]:
        """Draw the numbers of every step for every partition."""
        steps = self.with_better_noise(clips)
        shared = [clips[step.shared] if step.shared is not None else None for step in steps]
        searched = zip(self.covering, clips[len(self.clips) :], strict=True)
        octaves = {step.first: int(octave) for (step, _), octave in searched}
        views = [
            view.at(step.first, clip, octaves.get(step.first, -1))
            for step, clip in zip(steps, shared, strict=True)
        ]
        together: dict[JointNoise, list[int]] = {}
        drawn: dict[int, Released] = {}
        for index, step in enumerate(steps):
            if step.additive is not None and step.additive.joint is not None:
                together.setdefault(step.additive.joint, []).append(index)
            else:
                drawn[index] = step.release.draw(views[index], noise)
        for indexes in together.values():
            numbers = [each for index in indexes if (each := steps[index].additive)]
            released = draw_jointly(numbers, [views[index] for index in indexes], noise)
            drawn |= zip(indexes, released, strict=True)
        return tuple(drawn[index] for index in range(len(steps)))

    def combine(self, drawn: Sequence[Released], sums: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the output columns of all metrics: a function of what was released."""
        known = self.parts(drawn, sums)
        pairs = [(m, m.combine([known[part] for part in m.parts()])) for m in self.request.metrics]
        return tuple(column for metric, each in pairs for column in metric.output_columns(each))

    def parts(self, drawn: Sequence[Released], sums: np.ndarray) -> dict[MetricPart, Released]:
        """Return what every part of the metrics is, made of what was drawn for it.

        Args:
            drawn: the numbers of every step, for some partitions.
            sums: `sums` of the numbers of all partitions.
        """
        lost = 0.0 if self.chosen.bound is None else self.chosen.bound.lost_share
        known: dict[MetricPart, Released] = {}
        for step, released, each in zip(self.steps, drawn, sums, strict=True):
            is_distance = released.loss is not None and released.loss.folded
            rows = self._shares_of_rows(step, drawn, sums) if is_distance else 0.0
            found = step.release.with_lost(released.spread(each, rows), lost)
            found = found.rounded() if step.part.is_rounded else found
            known[step.part] = dataclasses.replace(found, origin=step.release.origin)
        return known

    def _shares_of_rows(
        self, distances: Step, drawn: Sequence[Released], sums: np.ndarray
    ) -> np.ndarray | float:
        """Return which share of all rows each partition has, by the count behind distances."""
        count = distances.users[0].parts()[-1]
        at = next(index for index, step in enumerate(self.steps) if step.part == count)
        loss = drawn[at].loss
        return 0.0 if loss is None else loss.share(drawn[at].values, sums[at])

    def sums(self, drawn: Sequence[Released]) -> np.ndarray:
        """Return, per step, by what losses at a shared clip are shared out; they add up."""
        each = [r.loss.sums(r.values) if r.loss is not None else np.zeros(SUMS) for r in drawn]
        return np.array(each).reshape(len(self.steps), SUMS)


def needs_rows(measures: Sequence[Measure | Relation]) -> bool:
    """Return whether rows must stay apart until they are summarised: owner lines need them."""
    return any(isinstance(measure, Relation) for measure in measures)
