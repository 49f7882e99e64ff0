"""JSON Lines: one object per line, only the wanted columns, only plain values."""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa

from beam_dp.mechanisms.numerics import checks, value_types
from beam_dp.transforms import known_columns
from beam_dp.transforms.io import open_files, records, table_files
from beam_dp.transforms.io.file_format import Format, Wanted

_RULE = "JSON Lines in UTF-8 (.gz: by gzip)"
_PLAIN = frozenset((int, float, bool))


class JsonLines(Format):
    """Files with one JSON object per line.

    A line ends with LF or with the file; CR is white space of JSON. Text in JSON holds neither LF
    nor CR, so no row, whatever it holds, changes what happens to another row.

    Integers stay exact Python integers; numbers with a fraction or an exponent become the
    nearest float64 (infinite beyond the largest).

    Edge cases: a line that is not an object, not JSON, not UTF-8, longer than 1 MiB, nested
    too deeply to parse or with an integer too long to parse (4,300 digits by Python's own
    limit) is dropped. A missing column, NaN, Infinity, a list, an object and text that UTF-8
    cannot write (a lone surrogate) become None. Where a key occurs twice, the last one counts.
    """

    packed = True
    element = dict

    def look(self, paths: Sequence[str], wanted: Wanted) -> dict[str, pa.DataType]:
        """Refuse what is not UTF-8, and files in whose first 64 KiB no line is an object."""
        without = f"JSON Lines like {wanted.pattern!r} have no header"
        known_columns.warn("ReadRows", without, wanted.columns)
        starts = [
            open_files.start_of(path, wanted.pattern, _RULE).removeprefix(records.BYTE_ORDER_MARK)
            for path in paths
        ]
        checks.require(
            not b"".join(starts).strip() or any(map(_holds_object, starts)),
            "ReadRows",
            f"every file of {wanted.pattern!r}",
            f"hold a JSON object on each line, and no line in their first {open_files.LOOKED >> 10}"
            " KiB is one",
            'Of a DataFrame: df.to_json("in.jsonl", orient="records", lines=True).',
        )
        return {}

    def rows(self, part: str, wanted: Wanted) -> Iterator[dict[str, object]]:
        """Yield one dict for every line that is an object."""
        message = open_files.unreadable(wanted.pattern, _RULE)
        for line in open_files.guarded(_lines(part), message):
            value = _object(line)
            if value is not None:
                yield {column: _plain(value.get(column)) for column in wanted.columns}

    def write(self, file: BinaryIO, table: pa.Table) -> None:
        """Write one object per row, with numbers or null: JSON has no infinity and no NaN.

        A value without a form in JSON is a string as in CSV.
        """
        for line in table_files.lines(table, _json):
            named = dict(zip(table.column_names, line, strict=True))
            file.write(json.dumps(named, allow_nan=False).encode() + b"\n")


def _holds_object(start: bytes) -> bool:
    lines = start.split(b"\n")
    # A line that is cut there may be one.
    longer = len(start) > open_files.LOOKED - 4 and lines[-1].lstrip().startswith(b"{")
    return longer or any(_object(line) is not None for line in lines)


def _lines(path: str) -> Iterator[bytes]:
    with open_files.opened(path) as stream:
        if stream.peek(3).startswith(records.BYTE_ORDER_MARK):
            stream.read(3)
        cut = False  # within a line that is too long
        while line := stream.readline(records.RECORD_LIMIT):
            whole = line.endswith(b"\n") or len(line) < records.RECORD_LIMIT
            if whole and not cut:
                yield line
            cut = not whole


def _nothing(constant: str) -> None:
    """Return None for NaN and the infinities, which are no JSON."""


_DECODER = json.JSONDecoder(parse_constant=_nothing)


def _object(line: bytes) -> dict[str, object] | None:
    try:
        value = _DECODER.decode(line.decode())
    except (ValueError, RecursionError):
        return None
    return value if type(value) is dict else None


def _plain(value: object) -> object:
    if isinstance(value, str):
        return value if value_types.is_utf8(value) else None
    return value if type(value) in _PLAIN else None


def _json(cell: Any) -> object:
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    return cell if cell is None or isinstance(cell, (int, str)) else table_files.text(cell)
