"""What a job says: its stages, the released table, and failures in one line without data."""

import contextlib
import io
import json
import logging
import re
import sys
from collections.abc import Iterator, Sequence

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems

import beam_dp as dp
from beam_dp.transforms.files import delimited, parquet

SHOWN = 50
# Whatever an element can raise in a runner of this process: its text may quote that element.
FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
# The errors of this package name parameters, columns and types, those of files their path.
_OURS = rf"(?:(?:{'|'.join(dir(dp))}): |column '|\[Errno \d+\] )"
_LINE = re.compile(rf"^\w+: ({_OURS}.*?)(?: \[while running .*)?$", re.MULTILINE)
_FAILED = "the run failed with {}; its text may quote data and is not shown, see the runner's log"
_LONG = re.compile(r"-?\d+\.\d{4,}(e.*)?")


def say(words: str) -> None:
    """Tell the operator, not the output: on standard error, also while `run` holds it back."""
    print(words, file=sys.__stderr__, flush=True)


def run(made: beam.Pipeline, stage: str) -> None:
    """Say the stage and run a pipeline to its end; exit with one line if it fails."""
    # Where an element fails, Beam logs that element, and prints tracebacks: not on this terminal.
    logging.disable(logging.ERROR)
    say(stage)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            made.run().wait_until_finish()
    except FAILURES as error:
        sys.exit(f"error: {explain(error)}")


def announce(words: str, done: object) -> str:
    """Say that a stage has begun, once what it waits for (`done`, not looked at) is there."""
    say(words)
    return words


def when_ready(stage: str, released: beam.PCollection) -> None:
    """Say `stage` as soon as `released` is computed; stages are public, counts would not be."""
    words = released.pipeline | "Stage" >> beam.Create([stage])
    _ = words | "Announce" >> beam.Map(announce, beam.pvalue.AsIter(released))


def explain(error: Exception) -> str:
    """Return one line for an error of building or running a pipeline.

    Runners wrap an error of ours in a traceback: its last line is taken. Of any other error nothing
    is shown, for Beam's errors quote elements.
    """
    ours = _LINE.findall(f"{type(error).__name__}: {error}")
    return ours[-1] if ours else _FAILED.format(type(error).__name__)


def show(path: str, names: Sequence[str]) -> None:
    """Print the first rows of a released file, aligned."""
    rows = [[_short(str(cell)) for cell in row] for row in _rows(path, names)]
    table = [list(names), *rows[:SHOWN]]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write("  ".join(cells) + "\n")
    if len(rows) > SHOWN:
        sys.stdout.write(f"... and {len(rows) - SHOWN} more in {path}\n")


def _short(cell: str) -> str:
    if not _LONG.fullmatch(cell):
        return cell
    number = float(cell)
    return f"{number:.2f}" if 1 <= abs(number) < 1e15 else f"{number:.4g}"


def _rows(path: str, names: Sequence[str]) -> Iterator[Sequence[object]]:
    if path.endswith(".jsonl"):
        with FileSystems.open(path) as file:
            yield from (list(json.loads(line).values()) for line in file.read().splitlines())
        return
    for batch in _batches(path, names):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _batches(path: str, names: Sequence[str]) -> Iterator:
    if path.endswith(".csv"):
        yield from delimited.read_csv(path, path, names, ())
        return
    for part in parquet.ranges([path], path, names):
        yield from parquet.read_parquet(part, path, names)
