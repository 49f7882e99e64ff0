"""Compare whole processes on the same rows: beam_dp, Polars, DuckDB and PipelineDP.

    python -m benchmarks.speed --all                     every table (an hour or so)
    python -m benchmarks.speed --polars --scale 0.01     one table, a hundredth of the rows
    python -m benchmarks.speed --growth 1,10             some lines of a table
    python -m benchmarks.speed --sizes                   the README's table, up to a billion rows

All processes do the same: read one Parquet file, keep 3 partitions per person, sum and count per
partition, write one CSV file. Wall time includes the interpreter's start and the imports. Polars
and PipelineDP may live in another environment (--peer_python).
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Contestant, interleave, table

MILLION = 10**6
GROWTH = (1, 3, 10, 30, 100)
PARTITIONS = (10, 100, 1000, 10_000, 100_000, 1_000_000)
STEEP = (10, 100)
SIZES = (1, 10, 100, 1000)
REPEATED = 100
"""Up to so many million rows the table of sizes has rounds; more rows are run once."""
SMALL_ENOUGH_FOR_ALL = 10
"""Up to so many million rows PipelineDP ends within minutes."""
LINES = {"growth": GROWTH, "partitions": PARTITIONS, "steep": STEEP, "sizes": SIZES}
BY_NAME = ("sizes",)
POLARS_WAYS = ("aggregate", "window", "threshold")


@dataclass(frozen=True)
class Bench:
    """How to run: interleaved rounds, the share of the full rows, the peers' interpreter.

    `growth`, `partitions`, `steep` and `sizes` are the lines of these tables: million rows,
    partitions.
    """

    rounds: int
    scale: float
    peer_python: str
    output: Path
    growth: Sequence[int] = GROWTH
    partitions: Sequence[int] = PARTITIONS
    steep: Sequence[int] = STEEP
    sizes: Sequence[int] = SIZES

    def file(self, rows: int, *options: str) -> tuple[str, int]:
        """Return the path of a generated file (made unless it is there) and its number of rows."""
        rows = max(1, round(rows * self.scale))
        command = [sys.executable, "-m", "benchmarks.data", "--rows", str(rows), *options]
        made = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return made.stdout.strip(), rows

    def ours(self, name: str, file: tuple[str, int], *options: str) -> Contestant:
        """Return beam_dp on a file."""
        return self._contestant(name, sys.executable, "benchmarks.ours", file, *options)

    def polars(self, file: tuple[str, int]) -> list[Contestant]:
        """Return Polars on a file, in every way it can sample."""
        module = "benchmarks.peers.polars_bounded"
        return [
            self._contestant(f"Polars ({way})", self.peer_python, module, file, "--way", way)
            for way in POLARS_WAYS
        ]

    def duckdb(self, file: tuple[str, int]) -> Contestant:
        """Return DuckDB on a file."""
        return self._contestant("DuckDB", self.peer_python, "benchmarks.peers.duckdb_bounded", file)

    def pipelinedp(self, name: str, file: tuple[str, int], *options: str) -> Contestant:
        """Return PipelineDP on a file; it is run once, for it takes long."""
        module = "benchmarks.peers.pipelinedp_beam"
        contestant = self._contestant(name, self.peer_python, module, file, *options)
        contestant.once = True
        return contestant

    def show(self, title: str, contestants: list[Contestant], first: int = 1) -> None:
        """Run the contestants and print their table; the fastest of the first ones is its 1.00."""
        interleave(contestants, self.rounds)
        ended = [one for one in contestants[:first] if one.runs] or contestants[-1:]
        reference = min(ended, key=lambda one: one.wall)
        sys.stdout.write(f"{table(title, contestants, reference)}\n")
        sys.stdout.flush()

    def _contestant(
        self, name: str, python: str, module: str, file: tuple[str, int], *options: str
    ) -> Contestant:
        path, rows = file
        paths = ["--input", path, "--output", str(self.output)]
        return Contestant(name, [python, "-m", module, *paths, *options], rows)


def polars(bench: Bench) -> None:
    """1 and 10 million rows against Polars without privacy."""
    for size in (1, 10):
        file = bench.file(size * MILLION)
        contestants = [*bench.polars(file), bench.ours("beam_dp", file)]
        bench.show(f"{file[1]:,} rows, Polars", contestants, first=len(POLARS_WAYS))


def steep(bench: Bench) -> None:
    """10 and 100 million rows of steeper partitions (Zipf's exponent 1.1) against Polars."""
    for size in bench.steep:
        file = bench.file(size * MILLION, "--exponent", "1.1")
        contestants = [*bench.polars(file), bench.ours("beam_dp", file)]
        bench.show(f"{file[1]:,} steep rows, Polars", contestants, first=len(POLARS_WAYS))


def pipelinedp(bench: Bench) -> None:
    """Rows per second against PipelineDP on Beam, which is slow enough to be run once."""
    one, ten = bench.file(MILLION), bench.file(10 * MILLION)
    processes = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    contestants = [
        bench.pipelinedp("PipelineDP on Beam", one),
        bench.pipelinedp("PipelineDP on Beam, 2 processes", one, *processes),
        bench.ours("beam_dp", one),
        bench.ours("beam_dp", ten),
    ]
    bench.show("PipelineDP on Beam", contestants)


def pipelinedp_long(bench: Bench) -> None:
    """10 million rows against PipelineDP on Beam."""
    file = bench.file(10 * MILLION)
    contestants = [bench.pipelinedp("PipelineDP on Beam", file), bench.ours("beam_dp", file)]
    bench.show(f"{file[1]:,} rows, PipelineDP on Beam", contestants)


def growth(bench: Bench) -> None:
    """1 to 100 million rows: time grows linearly, memory not at all."""
    files = [bench.file(size * MILLION) for size in bench.growth]
    contestants = [bench.ours("beam_dp", file) for file in files]
    bench.show("Growth with the rows", contestants)
    sys.stdout.write(f"{slopes(contestants)}\n\n")


def sizes(bench: Bench) -> None:
    """1 to 1,000 million rows beside Polars, DuckDB and, up to 10 million, PipelineDP.

    A billion rows are run once; the file takes 14 GB of build/bench, and 10 minutes to make. A
    program that needs more memory than there is fails, and its line says so.
    """
    lines = []
    for size in bench.sizes:
        file = bench.file(size * MILLION)
        peers = [*bench.polars(file), bench.duckdb(file)]
        reference = len(peers)
        lines.append(bench.ours("beam_dp", file))
        if size <= SMALL_ENOUGH_FOR_ALL:
            peers.append(bench.pipelinedp("PipelineDP on Beam", file))
        for peer in peers:
            peer.may_fail = True
        for contestant in (*peers, lines[-1]):
            contestant.once |= size > REPEATED
        bench.show(f"{file[1]:,} rows", [*peers, lines[-1]], first=reference)
    sys.stdout.write(f"{slopes(lines)}\n\n")


def partitions(bench: Bench) -> None:
    """10 to a million partitions, given publicly (all come out) or selected privately."""
    contestants = []
    for size in bench.partitions:
        file = bench.file(10 * MILLION, "--partitions", str(size))
        for public, word in ((size, "public"), (0, "selected")):
            name = f"beam_dp, {size:,} partitions, {word}"
            contestants.append(bench.ours(name, file, "--public", str(public)))
    bench.show("Growth with the partitions", contestants)


def people(bench: Bench) -> None:
    """5 million people with one row each: nothing can be summed before the shuffle."""
    file = bench.file(5 * MILLION, "--one_row_each")
    contestants = [*bench.polars(file), bench.ours("beam_dp", file)]
    bench.show(f"{file[1]:,} people, one row each", contestants, first=len(POLARS_WAYS))


def heavy(bench: Bench) -> None:
    """One person with all 10 million rows, in one and in a million partitions: bounded memory."""
    contestants = []
    for size, public in ((1, 1), (MILLION, 0)):
        for people in (1, 200_000):
            shape = ["--partitions", str(size), "--people", str(people), "--even"]
            file = bench.file(10 * MILLION, *shape)
            name = f"beam_dp, people {people:,}, partitions {size:,}"
            contestants.append(bench.ours(name, file, "--public", str(public)))
    bench.show("One person with all rows", contestants)


def uuid(bench: Bench) -> None:
    """Person ids as 36-character strings against int64."""
    whole, text = bench.file(10 * MILLION), bench.file(10 * MILLION, "--uuid")
    names = ("beam_dp, int64 ids", "beam_dp, UUID ids")
    contestants = [bench.ours(name, file) for name, file in zip(names, (whole, text), strict=True)]
    bench.show("Person ids", contestants)


def dicts(bench: Bench) -> None:
    """Rows that come as dicts, one by one, in one process."""
    file = bench.file(10 * MILLION)
    contestants = [
        bench.ours("beam_dp, column batches", file),
        bench.ours("beam_dp, dict rows", file, "--rows_as", "dict"),
    ]
    bench.show("Row-at-a-time input", contestants)


PARTS: dict[str, Callable[[Bench], None]] = {
    part.__name__: part
    for part in (
        polars,
        steep,
        pipelinedp,
        pipelinedp_long,
        growth,
        sizes,
        partitions,
        people,
        heavy,
        uuid,
        dicts,
    )
}


def slopes(contestants: list[Contestant]) -> str:
    """Return what a further million rows costs between neighbouring lines of a growing table."""
    costs = [
        f"{(large.wall - small.wall) / (large.rows - small.rows) * MILLION:.3f}"
        for small, large in itertools.pairwise(contestants)
    ]
    return f"Seconds per further million rows, from line to line: {', '.join(costs)}."


def numbers(text: str) -> list[int]:
    """Return whole numbers with commas between."""
    return [int(word) for word in text.split(",")]


def parser() -> argparse.ArgumentParser:
    """Return the command line: one option per part."""
    options = argparse.ArgumentParser("python -m benchmarks.speed")
    options.description = __doc__.splitlines()[0]
    options.add_argument("--all", action="store_true", help="every part but --sizes")
    for name, part in PARTS.items():
        first = (part.__doc__ or "").partition("\n")[0]
        if name in LINES:
            some = {"nargs": "?", "type": numbers, "const": LINES[name], "metavar": "SIZE,..."}
            options.add_argument(f"--{name}", help=first, **some)
        else:
            options.add_argument(f"--{name}", action="store_true", help=first)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--scale", type=float, default=1.0, help="share of the full rows")
    options.add_argument("--peer_python", default=sys.executable, help="interpreter with the peers")
    return options


def main(words: Sequence[str] | None = None) -> None:
    """Run the parts that the command line names."""
    line = parser()
    given = line.parse_args(words)
    every = {name: given.all and name not in BY_NAME for name in PARTS}
    asked = [part for name, part in PARTS.items() if every[name] or getattr(given, name)]
    if not asked:
        line.error(f"name a part: --all or any of {', '.join(f'--{name}' for name in PARTS)}.")
    lines = {name: getattr(given, name) or whole for name, whole in LINES.items()}
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "released.csv"
        bench = Bench(given.rounds, given.scale, given.peer_python, output, **lines)
        try:
            for part in asked:
                part(bench)
        except RuntimeError as failure:
            sys.exit(str(failure))


if __name__ == "__main__":
    main()
