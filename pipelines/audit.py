"""Audit a release on made-up rows of its own columns, before anybody's rows are read.

    beam-dp audit --config release.yaml

It runs the job of the mapping on made-up people, and on the same with one more or one fewer, with
all private draws forced to be the same: then output, record and page must be the same too, and the
exact log ratio of the chances of all draws must be within the budget. It reads no row of the input
(of Parquet the types), charges no ledger, and writes no file. The exit status is 1 where a release
is not as private as it says, and the line says what differed.
"""

import contextlib
import itertools
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from apache_beam.options.pipeline_options import PipelineOptions
from pyarrow import csv as arrow_csv

import beam_dp as dp
from beam_dp import testing
from beam_dp.beam_yaml.mappings import number
from beam_dp.results import release
from beam_dp.transforms.columns import ids
from beam_dp.transforms.io import formats, open_files, read_rows
from beam_dp.transforms.io.csv_files import Csv
from beam_dp.transforms.sql.person_queries import parsed
from pipelines import command_line, releasing
from pipelines.description import CSV_FORMAT, PAGE, Description

_MADE = ("select", "ledger", "input", "output", "overwrite", "report", *PAGE, *CSV_FORMAT)
_WORDS = ("a", "b", "1", "2", "2026-11-22", "2026-11-23")
_NUMBERS = ("1", "2.5", "-3", "20", "1000")
_LITERAL = re.compile(r"'((?:[^']|'')*)'")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")
_KEYS = 12
"""So many public keys have rows."""


def main(given: Sequence[str] | None = None) -> int:
    """Audit; returns 0, or 1 where something differs."""
    line = command_line.parser("audit", __doc__)
    line.add_argument("--seconds", metavar="N", default="60", help="default 60")
    options = line.only(given)
    with line.refusing(options.config):
        described = command_line.described(options)
        usual = {} if "select" in described else {"input": "made.csv"}
        asked = Description(usual | described)
        seconds = number(options.seconds)
        found = audited(asked, seconds)
    sys.stdout.write(f"beam_dp {dp.__version__}: {found}\n")
    return int(bool(found.fault))


def audited(asked: Description, seconds: Any) -> testing.Audit:
    """Return what an audit finds of the release that a mapping asks for."""
    table = asked.release
    of_person = sources(asked, table.people_columns)
    of_period = sources(asked, [table.period] if table.period else [])
    [end] = [e for e, kind in formats.FORMATS.items() if kind is read_rows.format_of(asked.input)]

    with tempfile.TemporaryDirectory() as folder:
        path, output = os.path.join(folder, f"made{end}"), os.path.join(folder, "released.csv")
        kept = {name: part for name, part in asked.given.items() if name not in _MADE}
        kept |= {"input": path, "output": output, "overwrite": True}

        def released(rows: pa.Table) -> dp.Released:
            _write(path, rows)
            described = Description(kept)
            made = releasing.pipeline(described, PipelineOptions([]), "audit", quiet=True)
            release.run(made, show_errors=True)
            first, *others = map(dp.Released.read, described.files("output"))
            return dp.Released(first.table, first.record, tuple(others))

        how = {"person": of_person, "period": of_period, "seconds": seconds}
        return testing.audit(released, sample(asked), **how)


def _write(path: str, rows: pa.Table) -> None:
    """Write rows as they are: formats of this package write text for spreadsheets."""
    kind = read_rows.format_of(path)
    if isinstance(kind, Csv):
        options = arrow_csv.WriteOptions(delimiter=kind.delimiter)
        arrow_csv.write_csv(rows, path, options)
        return
    with open(path, "wb") as file:
        kind.write(file, rows)


def sources(asked: Description, names: Iterable[str]) -> list[str]:
    """Return the columns of the input of which these columns of rows are made."""
    query = asked.parsed
    if query is None:
        return [*names]
    found: list[str] = []
    for name in names:
        source = query.source_of(name)
        computed = name in query.computed
        found += parsed(f"SELECT {source} AS made FROM rows").needs if computed else [source]
    return list(dict.fromkeys(found))


def sample(asked: Description) -> pa.Table:
    """Return made-up rows: of each listed key some, with the words and numbers of the mapping."""
    reader = releasing.reader_of(asked)
    said = f"{asked.query or ''} {asked.given.get('metrics')}"
    words = [*(text.replace("''", "'") for text in _LITERAL.findall(said)), *_WORDS]
    numbers = [*_NUMBERS, *_NUMBER.findall(said)]
    keys = dict(_keys(asked))
    types = _types(reader)
    pools = {
        name: keys.get(name) or [*(numbers if name in reader.numbers else words)]
        for name in reader.columns
    }
    size = max(map(len, pools.values()))
    columns = {
        name: _cells([pool[at % len(pool)] for at in range(size)], types.get(name, pa.string()))
        for name, pool in pools.items()
    }
    return pa.table(columns)


def _keys(asked: Description) -> Iterator[tuple[str, list[str]]]:
    """Yield the columns of the input that public keys are made of, with their cells."""
    for public in asked.parsed.public if asked.parsed else ():
        yield from ((of, _texts(public.cells[own].to_pylist())) for of, own in public.on)
    for table in reversed(asked.tables):  # those of the first one last
        listed = table.release.partitions
        if isinstance(listed, dp.PublicPartitions):
            keys = itertools.islice(listed.keys, _KEYS)
            for name, cells in zip(table.release.partition, zip(*keys, strict=True), strict=True):
                with contextlib.suppress(ValueError):  # made of several columns, or of a table
                    yield from ((source, _texts(cells)) for source in sources(asked, [name]))
    if asked.release.ledger_period and asked.release.period:
        ends = str(asked.release.ledger_period).split("..")
        yield from ((source, ends) for source in sources(asked, [asked.release.period]))


def _texts(cells: Sequence[Any]) -> list[str]:
    return [str(cell) for cell in cells[:_KEYS]]


def _types(reader: dp.ReadRows) -> dict[str, pa.DataType]:
    """Return the types of columns that are not text: those of Parquet files, if there are some."""
    if not reader.format.typed:
        return {}
    types = dict.fromkeys(reader.numbers, pa.float64())
    if reader.format is formats.FORMATS[".parquet"]:
        with contextlib.suppress(OSError, ValueError):
            paths = [path for path in reader.paths() if open_files.is_local(path)]
            for found in reader.sniff(paths[:1]).types:
                types |= found
    return {name: ids.stored(kind) for name, kind in types.items()}


def _cells(texts: Sequence[str], kind: pa.DataType) -> pa.Array:
    """Return texts as cells of a type; those that it cannot have are left out."""
    cells = []
    for text in texts:
        with contextlib.suppress(pa.ArrowException):
            cells.append(pa.scalar(text).cast(kind).as_py())
    return pa.array([cells[at % len(cells)] if cells else None for at in range(len(texts))], kind)


if __name__ == "__main__":
    sys.exit(main())
