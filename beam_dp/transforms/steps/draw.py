"""Draw the released numbers: the shared clips first, then all releases, bucket by bucket.

Elements are blocks of rows in columns, so that a row costs little where it passes the barrier.
`barrier` sees to it that they are drawn once, and `steps.kept_draws`
where processes die.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from beam_dp.mechanisms.histogram_choice import reach
from beam_dp.mechanisms.histogram_choice.loss import Cut
from beam_dp.mechanisms.metrics.released import Released
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.first_choices import Chosen
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.summaries.histograms import Summary, partitions
from beam_dp.mechanisms.summaries.owner_lines import Owned
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from beam_dp.transforms.columns import partition_keys
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.columns.partition_keys import Key
from beam_dp.transforms.columns.public_keys import PublicKeys
from beam_dp.transforms.steps import block_votes, quick_steps, settle
from beam_dp.transforms.steps.kept_draws import Draws

BLOCK_ROWS = 1 << 13
_FEW_PARTITIONS = 1 << 14
_MANY = 64


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """Some released rows.

    Attributes:
        keys: the partition of each row: its key (objects), or its index in the public list.
        numbers: the columns of numbers: before they are combined, those of every step's `Released`.
        cuts: for each step what people lose at a shared clip, before they are combined.
        chosen: how the bound on partitions per person was chosen; None: it was given.
    """

    keys: np.ndarray
    numbers: tuple[np.ndarray, ...]
    cuts: tuple[Cut | None, ...] = ()
    chosen: Chosen | None = None

    @classmethod
    def of(
        cls, keys: np.ndarray, drawn: Sequence[Released], chosen: Chosen | None = None
    ) -> "Block":
        """Return the block of what every step drew."""
        numbers = tuple(column for step in drawn for column in step.columns)
        return cls(keys, numbers, tuple(step.cut for step in drawn), chosen)

    @property
    def drawn(self) -> list[Released]:
        """What every step drew, before it is combined."""
        return Released.from_columns(self.numbers, self.cuts)

    def named(self, public: PublicKeys | None) -> Sequence[Key]:
        """Return the key of each row."""
        if self.keys.dtype == object:
            keys: list[Key] = self.keys.tolist()
            return keys
        return public.keys.take(self.keys) if public is not None else [()] * len(self.keys)

    def rows(self, public: PublicKeys | None) -> Iterator[tuple[Key, tuple[Any, ...]]]:
        """Yield the key and the numbers of each row."""
        names = self.named(public)
        columns = [column.tolist() for column in self.numbers]
        numbers = zip(*columns, strict=True) if columns else (() for _ in names)
        return zip(names, numbers, strict=True)


def cut(block: Block, size: int) -> Iterator[Block]:
    """Yield the rows of a block in blocks of `size`."""
    for start in range(0, len(block.keys), size):
        part = slice(start, start + size)
        numbers = tuple(column[part] for column in block.numbers)
        yield Block(block.keys[part], numbers, block.cuts, block.chosen)


def bucket_count(layout: Layout, keep_rows: bool = False) -> int:
    """Return how many buckets the partitions are cut into: several where many workers help.

    Args:
        layout: which columns hold what.
        keep_rows: whether a partition has owner lines, not a summary only.
    """
    if not layout.partition:
        return 1
    if keep_rows:
        return _MANY if layout.public is None else min(_MANY, len(layout.public))
    return 8 if layout.public is None or len(layout.public) > _FEW_PARTITIONS else 1


@dataclasses.dataclass(frozen=True)
class BucketPartitions:
    """The partitions that each bucket releases, and their keys.

    Attributes:
        layout: which columns hold what.
        buckets: how many parts the partitions are cut into.
    """

    layout: Layout
    buckets: int

    def cells(
        self, bucket: int, summary: Summary, lines: Owned | None = None
    ) -> tuple[PartitionView, np.ndarray]:
        """Return the view of the partitions of a bucket, and their keys or public indexes."""
        public = self._public(bucket)
        if public is None:
            identities = partitions(summary)
            pairs = zip(identities[0].tolist(), _second(identities), strict=True)
            return PartitionView.of_all(summary, lines), _listed(
                [partition_keys.name_of(pair, summary.names) for pair in pairs]
            )
        indexes = _indexes(summary.partition[0], public)
        owned_indexes = _indexes(lines.partition[0], public) if lines is not None else None
        view = PartitionView(summary, indexes, len(public), lines, owned_indexes)
        return view, public.astype(np.int64)

    def names(self, keys_: np.ndarray) -> Sequence[Key]:
        """Return the keys of what `cells` returned."""
        return Block(keys_, ()).named(self.layout.public)

    def total(self, kept: int, chosen: Chosen | None) -> int:
        """Return about how many partitions are released, if one bucket releases so many.

        Args:
            kept: how many that are.
            chosen: what was chosen first: the bound on partitions has a guess.
        """
        if self.layout.public is not None:
            return len(self.layout.public)
        found = None if chosen is None else chosen.reach
        guess = reach.ABOUT if found is None else found.guess
        return reach.partitions_about(kept, self.buckets, guess) if self.layout.partition else 1

    def _public(self, bucket: int) -> np.ndarray | None:
        """Return the indexes in the public list that belong to the bucket; None if private."""
        if self.layout.partition and self.layout.public is None:
            return None
        size = len(self.layout.public) if self.layout.public is not None else 1
        indexes = np.arange(size, dtype=np.uint64)
        buckets = block_votes.bucket_of(indexes[None], self.buckets, self.layout.key)
        return np.asarray(indexes[buckets == bucket])


def _listed(names: list[Key]) -> np.ndarray:
    """Return keys as an array of tuples, which numpy alone would take for a table."""
    listed = np.empty(len(names), object)
    listed[:] = names
    return listed


def _indexes(partition: np.ndarray, public: np.ndarray) -> np.ndarray:
    """Return the index of each line's partition in a sorted list; -1 where it is not listed."""
    if not len(public):
        return np.full(len(partition), -1, np.int64)
    nearest = np.minimum(np.searchsorted(public, partition), len(public) - 1)
    return np.where(public[nearest] == partition, nearest, -1)


def _second(identities: np.ndarray) -> list[int]:
    return identities[1].tolist() if len(identities) > 1 else [0] * identities.shape[1]


class ChooseClips(quick_steps.QuickStep):
    """Draw the clips that all partitions share, from the summary over all of them.

    Args:
        program: the run's program.
        noise: the randomness.
        draws: what keeps the draws of the run.
    """

    def __init__(self, program: Program, noise: Noise, draws: Draws) -> None:
        self._program, self._noise, self._draws = program, noise, draws

    def process(
        self, element: tuple[int, Iterable[bytes]], chosen: Chosen | None = None
    ) -> Iterator[tuple[int, tuple[np.ndarray, ...]]]:
        """Take the bucket of that summary, and ignore all others."""
        if element[0] != settle.SHARED:
            return
        program = self._program.at(chosen)
        summary, _ = settle.open_bucket(element[1], program.shared_measures)
        view = PartitionView(summary, np.zeros(len(summary), np.int64), 1)
        clips = self._draws.once("clips", lambda: program.choose_clips(view, self._noise))
        yield settle.SHARED, clips


class Draw(quick_steps.QuickStep):
    """Draw everything that is released for the partitions of a bucket.

    Args:
        program: the run's program.
        partitions: the partitions of each bucket.
        noise: the randomness.
        draws: what keeps the draws of the run.
    """

    def __init__(
        self, program: Program, partitions: BucketPartitions, noise: Noise, draws: Draws
    ) -> None:
        self._program, self._partitions = program, partitions
        self._noise, self._draws = noise, draws

    def process(
        self,
        element: tuple[int, Iterable[bytes]],
        clips: tuple[np.ndarray, ...] = (),
        chosen: Chosen | None = None,
    ) -> Iterator[tuple[int, Block]]:
        """Take all summaries of one bucket; yield numbered blocks of rows."""
        bucket, _ = element
        if bucket == settle.SHARED:
            return
        name = f"bucket-{bucket}"
        released = self._draws.once(name, lambda: self._released(element, clips, chosen))
        for number, block in enumerate(cut(released, BLOCK_ROWS)):
            yield number * self._partitions.buckets + bucket, block

    def _released(
        self,
        element: tuple[int, Iterable[bytes]],
        clips: tuple[np.ndarray, ...],
        chosen: Chosen | None,
    ) -> Block:
        """Draw the partitions of a bucket that are kept, and their numbers."""
        program, (bucket, packed) = self._program.at(chosen), element
        summary, lines = settle.open_bucket(packed, program.measures)
        view, names = self._partitions.cells(bucket, summary, lines)
        kept = program.select(view, self._noise)
        asked = view.select(kept).of_about(self._partitions.total(len(kept), chosen))
        return Block.of(names[kept], program.release(asked, clips, self._noise), chosen)
