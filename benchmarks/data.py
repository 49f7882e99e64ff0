"""Generate the benchmark's rows: people and partitions by Zipf's law, lognormal values.

    python -m benchmarks data --rows 10000000

The same arguments give the same rows (under one numpy): a chunk of 2^20 rows depends on the seed
and on its own number alone, so a short file is a prefix of a longer one of the same people and
partitions. Memory is that of one chunk, so that 100 million rows need no more than one million.
The rows go to build/bench under a name that says all its parameters, and are kept if they are there
already. Several files stand in a folder, and each has a seed of its own.
"""

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import tables

FOLDER = Path("build/bench")
ROW_GROUP = 1 << 17
CHUNK = 8 * ROW_GROUP
PEOPLE_EXPONENT = 0.8
HEX = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), np.uint8).reshape(256, 2)
HEX_PLACES = np.array([i for i in range(36) if i not in (8, 13, 18, 23)])


@dataclass(frozen=True)
class Shape:
    """What the rows look like.

    `uuid` writes the person ids as 36-character strings instead of int64; `skew` is the exponent of
    the partitions' law, 0 for partitions of the same chance; `values` is how many columns of values
    there are, and `files` how many files.
    """

    rows: int = 10_000_000
    people: int = 200_000
    partitions: int = 1000
    uuid: bool = False
    skew: float = 1.0
    values: int = 1
    files: int = 1
    seed: int = 1

    @property
    def name(self) -> str:
        """Return a name that says every parameter: of the file, or of all files of the folder."""
        ids = f"{'uuid' if self.uuid else 'int64'}_skew{self.skew}_values{self.values}"
        size = f"rows{self.rows}_people{self.people}_partitions{self.partitions}"
        name = f"{size}_{ids}_seed{self.seed}"
        return f"{name}.parquet" if self.files == 1 else f"{name}/*.parquet"


def zipf_cumulative(size: int, exponent: float) -> np.ndarray:
    """Return the cumulative probabilities of ranks 0..size-1, weight (rank+1)^-exponent."""
    weights = np.arange(1, size + 1, dtype=np.float64) ** -exponent
    cumulative = np.cumsum(weights)
    return cumulative / cumulative[-1]


def ranks(cumulative: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return the rank of each uniform number, by inverting the distribution function."""
    return np.minimum(np.searchsorted(cumulative, uniform, side="right"), len(cumulative) - 1)


def scatter(numbers: np.ndarray, size: int) -> np.ndarray:
    """Map 0..size-1 onto itself one to one, so that neither ids nor file order tell the rank."""
    step = int(size * 0.6180339887) | 1
    while gcd(step, size) != 1:
        step += 2
    return (numbers * step + size // 3) % size


def uuids(people: np.ndarray) -> pa.Array:
    """Return one 36-character string per person id, equal for equal ids and for those only."""
    words = np.empty((len(people), 2), ">u8")
    words[:, 0] = mixed(people.astype(np.uint64))
    words[:, 1] = mixed(words[:, 0].astype(np.uint64) ^ np.uint64(0x9E3779B97F4A7C15))
    text = np.full((len(people), 36), ord("-"), np.uint8)
    text[:, HEX_PLACES] = HEX[words.view(np.uint8)].reshape(len(people), 32)
    ends = pa.py_buffer(np.arange(0, 36 * len(people) + 1, 36, dtype=np.int32))
    return pa.Array.from_buffers(pa.string(), len(people), [None, ends, pa.py_buffer(text)])


def mixed(words: np.ndarray) -> np.ndarray:
    """Mix 64-bit words one to one (the finalizer of SplitMix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def chunks(shape: Shape) -> Iterator[pa.Table]:
    """Yield the rows as tables of at most 2^20 rows."""
    people = zipf_cumulative(shape.people, PEOPLE_EXPONENT)
    partitions = zipf_cumulative(shape.partitions, shape.skew)
    for start in range(0, shape.rows, CHUNK):
        yield chunk(shape, start, people, partitions).slice(0, shape.rows - start)


def chunk(shape: Shape, start: int, people: np.ndarray, partitions: np.ndarray) -> pa.Table:
    """Return the full chunk of rows from `start`, drawn by a generator of its own."""
    generator = np.random.default_rng([shape.seed, start // CHUNK])
    drawn = ranks(people, generator.random(CHUNK))
    person = scatter(drawn, shape.people)
    partition = scatter(ranks(partitions, generator.random(CHUNK)), shape.partitions)
    columns = {
        "person": uuids(person) if shape.uuid else pa.array(person.astype(np.int64)),
        "partition": pa.array(partition.astype(np.int32)),
        "value": pa.array(generator.lognormal(3.0, 1.0, CHUNK)),
    }
    for number in range(2, shape.values + 1):
        columns[f"value{number}"] = pa.array(generator.lognormal(3.0, 1.0, CHUNK))
    return pa.table(columns)


def write(shape: Shape, path: Path) -> Path:
    """Write the rows to a Parquet file (row groups of 2^17 rows, zstd); all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    tables = chunks(shape)
    first = next(tables)
    with pq.ParquetWriter(unfinished, first.schema, compression="zstd") as writer:
        writer.write_table(first, row_group_size=ROW_GROUP)
        for table in tables:
            writer.write_table(table, row_group_size=ROW_GROUP)
    unfinished.replace(path)
    return path


def main(words: Sequence[str] | None = None) -> None:
    """Write the file that the command line asks for, unless it is there, and print its path."""
    fields = {field.name: field.default for field in dataclasses.fields(Shape)}
    shape = Shape(**vars(tables.options(__doc__, words, **fields)))
    name = str(FOLDER / shape.name)
    for number in range(shape.files):
        part = dataclasses.replace(shape, rows=shape.rows // shape.files, seed=shape.seed + number)
        path = Path(name.replace("*", str(number)))
        if not path.exists():
            write(part, path)
    sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main()
