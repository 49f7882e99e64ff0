"""Compare whole processes on the same rows: beam_dp, Polars, DuckDB and PipelineDP.

    python -m benchmarks speed --all                     every table (an hour or so)
    python -m benchmarks speed --uuid --scale 0.01       one table, a hundredth of the rows
    python -m benchmarks speed --growth 1,10             some lines of a table
    python -m benchmarks speed --sizes                   beside all peers, up to 100 million rows
    python -m benchmarks speed --sizes 1000 --rounds 1   a billion rows
    python -m benchmarks speed --keys                    a million keys beside DuckDB without privacy

All processes do the same: read Parquet, keep 3 partitions per person, sum and count per partition,
write one CSV file. The rows of `--sizes` are of two shapes: one file, and ten files in which fewer
partitions have most rows, so that people have many rows in a partition. Wall time includes the
interpreter's start and the imports. Polars and PipelineDP may live in another environment
(--peer_python). A billion rows are run once; the file takes 14 GB of build/bench, and 10 minutes to
make. A program that needs more memory than there
is fails, and its line says so.
"""

import argparse
import itertools
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measure import Contestant, data_file, interleave, table
from benchmarks.tables import say

MILLION = 10**6
PEERS = {"DuckDB": ["duckdb_bounded"], "PipelineDP on Beam": ["pipelinedp_beam"]} | {
    f"Polars ({way})": ["polars_bounded", "--way", way]
    for way in ("aggregate", "window", "threshold", "rank")
}
FREE = "DuckDB, all partitions"
PEERS[FREE] = ["duckdb_bounded", "--all"]
"""Modules of `benchmarks.peers` with their options, by the name of the line."""
POLARS = [name for name in PEERS if name.startswith("Polars")]
DUCKDB, PIPELINEDP = "DuckDB", "PipelineDP on Beam"
REPEATED = 100
"""Up to so many million rows the table of sizes has rounds; more rows are run once."""
SMALL_ENOUGH_FOR_ALL = 10
"""Up to so many million rows PipelineDP ends within minutes."""
Words = Sequence[str]
SHAPES: dict[str, Words] = {"one file": (), "ten files": ("--skew", "1.1", "--files", "10")}
"""Options of `benchmarks.data` for the table of sizes, by what its titles say of them."""


@dataclass(frozen=True)
class Line:
    """One process: its name, the million rows, options of `benchmarks.data` and of the program."""

    name: str
    millions: int
    data: Words = ()
    options: Words = ()


@dataclass(frozen=True)
class Table:
    """Processes that take turns; the fastest of the first ones is the 1.00 of the ratios.

    Attributes:
        title: what stands above it.
        lines: the processes.
        references: how many of them are the first ones.
    """

    title: str
    lines: list[Line]
    references: int = 1


def ours(million: int, name: str = "beam_dp", data: Words = (), options: Words = ()) -> Line:
    return Line(name, million, data, options)


def sizes(millions: Sequence[int]) -> Iterator[Table]:
    """1 to 100 million rows of both shapes beside Polars and DuckDB, up to 10 beside PipelineDP."""
    for million, (shape, data) in itertools.product(millions, SHAPES.items()):
        if data and million > REPEATED:
            continue
        slow = [PIPELINEDP] if million <= SMALL_ENOUGH_FOR_ALL and not data else []
        lines = [Line(peer, million, data) for peer in (*POLARS, DUCKDB, *slow)]
        first = len(POLARS) + 1
        title = f"{million:,} million rows, {shape}"
        default = ours(million, "beam_dp, no bounds", data, ["--max_partitions", "auto"])
        yield Table(title, [*lines, ours(million, data=data), default], first)


def metrics() -> Iterator[Table]:
    """Five metrics over three columns beside one metric; dicts, which Beam makes one by one."""
    data = ["--values", "3"]
    lines = [("a sum", "1"), ("five metrics over three columns", "5")]
    yield Table("Metrics", [ours(10, name, data, ["--metrics", asked]) for name, asked in lines])
    alone = ours(1, "Beam reads dicts", options=["--dicts", "--alone"])
    yield Table("Rows as dicts", [alone, ours(1, "beam_dp, of dicts", options=["--dicts"])])


def partitions(numbers: Sequence[int]) -> Iterator[Table]:
    """10 to a million partitions, given publicly (all come out) or selected privately."""
    lines = [
        ours(
            10,
            f"beam_dp, {size:,} partitions, {'public' if public else 'selected'}",
            ["--partitions", str(size)],
            ["--public", str(public)],
        )
        for size in numbers
        for public in (size, 0)
    ]
    yield Table("Growth with the partitions", lines)
    people = ("200000", "1")  # bounded memory: one person has all rows
    data = [["--people", number, "--skew", "0"] for number in people]
    yield Table("People", [ours(10, f"beam_dp, people {each[1]}", each) for each in data])


def keys(numbers: Sequence[int]) -> Iterator[Table]:
    """20 million rows of 10 million people, many public keys, with and without a bound."""
    for size in numbers:
        data = ["--people", str(10 * MILLION), "--partitions", str(size)]
        public = ["--public", str(size), "--max_partitions"]
        kinds = {"all partitions": "0", "3 partitions a person": "3"}
        lines = [ours(20, f"beam_dp, {kind}", data, [*public, n]) for kind, n in kinds.items()]
        yield Table(f"{size:,} public keys", [Line(FREE, 20, data), *lines])


PARTS = {
    "growth": ("time grows linearly with the rows, memory not at all", [1, 3, 10, 30, 100],
        lambda millions: [Table("Growth with the rows", [*map(ours, millions)])]),
    "sizes": ("1 to 100 million rows, or more, beside all peers", [1, 10, 100], sizes),
    "partitions": ("10 to a million partitions, public or selected; one person with all rows",
        [10, 100, 1000, 10_000, 100_000, MILLION], partitions),
    "keys": ("a million public keys or more, beside DuckDB without privacy", [MILLION], keys),
    "uuid": ("person ids as 36-character strings against int64", None,
        lambda: [Table("Person ids", [
            ours(10, "beam_dp, int64 ids"), ours(10, "beam_dp, UUID ids", ["--uuid"])])]),
    "metrics": ("five metrics over three columns beside one; rows as dicts", None, metrics),
}  # fmt: skip
"""By option: what it is, the numbers that it takes, if any, and its tables."""


@dataclass(frozen=True)
class Bench:
    """How to run: interleaved rounds, the share of the full rows, the peers' interpreter."""

    rounds: int
    scale: float
    peer_python: str
    output: Path
    files: dict[tuple[object, ...], str] = field(default_factory=dict)

    def contestant(self, line: Line) -> Contestant:
        """Return the process of a line; its file is made unless it is there."""
        rows = max(1, round(line.millions * MILLION * self.scale))
        key = rows, *line.data
        if key not in self.files:
            self.files[key] = data_file(*key)
        program = [sys.executable, "-m", "benchmarks.ours"]
        if line.name in PEERS:
            module, *way = PEERS[line.name]
            program = [self.peer_python, "-m", f"benchmarks.peers.{module}", *way]
        paths = ["--input", self.files[key], "--output", str(self.output)]
        made = Contestant(line.name, [*program, *paths, *line.options], rows)
        made.once = line.name == PIPELINEDP or line.millions > REPEATED
        made.may_fail = line.name in PEERS
        return made

    def show(self, asked: Table) -> None:
        """Run the processes and print their table."""
        contestants = [self.contestant(line) for line in asked.lines]
        interleave(contestants, self.rounds)
        ended = [one for one in contestants[: asked.references] if one.runs] or contestants[-1:]
        reference = min(ended, key=lambda one: one.wall)
        say(f"{table(asked.title, contestants, reference)}\n")


def numbers(text: str) -> list[int]:
    """Return whole numbers with commas between."""
    return [int(word) for word in text.split(",")]


def parser() -> argparse.ArgumentParser:
    """Return the command line: one option per part."""
    options = argparse.ArgumentParser("python -m benchmarks.speed")
    options.description = __doc__.splitlines()[0]
    options.add_argument("--all", action="store_true", help="every part but --sizes")
    for name, (about, some, _) in PARTS.items():
        if some is None:
            options.add_argument(f"--{name}", action="store_true", help=about)
        else:
            takes = {"nargs": "?", "type": numbers, "const": some, "metavar": "SIZE,..."}
            options.add_argument(f"--{name}", help=about, **takes)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--scale", type=float, default=1.0, help="share of the full rows")
    options.add_argument("--peer_python", default=sys.executable, help="interpreter with the peers")
    return options


def main(words: Sequence[str] | None = None) -> None:
    """Run the parts that the command line names."""
    line = parser()
    given = line.parse_args(words)
    asked = {name: getattr(given, name) for name in PARTS}
    if given.all:
        whole = {name: some or True for name, (_, some, _) in PARTS.items() if name != "sizes"}
        asked = {name: asked[name] or whole.get(name) for name in PARTS}
    if not any(asked.values()):
        line.error(f"name a part: --all or any of {', '.join(f'--{name}' for name in PARTS)}.")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "released.csv"
        bench = Bench(given.rounds, given.scale, given.peer_python, output)
        try:
            for name, value in asked.items():
                if value:
                    for found in PARTS[name][2](*([] if value is True else [value])):
                        bench.show(found)
        except RuntimeError as failure:
            sys.exit(str(failure))


if __name__ == "__main__":
    main()
