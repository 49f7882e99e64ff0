"""Blocks: released rows in columns, so that a row costs little where it passes the barrier."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from beam_dp.mechanisms.histogram_choice.loss import Cut
from beam_dp.mechanisms.metrics.released import Released
from beam_dp.mechanisms.planning.first_choices import Chosen
from beam_dp.transforms.columns.partition_keys import Key
from beam_dp.transforms.columns.public_keys import PublicKeys

LARGEST = 2**63 - 1


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


def typed(column: np.ndarray, whole: bool) -> np.ndarray:
    """Return released numbers as int64, where they are whole, or as float64.

    Whole numbers saturate at 64 bits: a default grid ends at 2^63, and noise may pass it. That
    happens after the noise, so it tells nothing.
    """
    if not whole:
        return column.astype(np.float64)
    if column.dtype == np.int64:
        return column
    return np.array([max(-LARGEST, min(LARGEST, int(number))) for number in column], np.int64)
