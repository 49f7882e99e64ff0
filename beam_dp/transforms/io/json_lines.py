"""JSON Lines: one object per line, only the wanted columns, only plain values."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa

from beam_dp.mechanisms.numerics import checks, value_types
from beam_dp.transforms import known_columns
from beam_dp.transforms.columns import written_forms
from beam_dp.transforms.io import open_files, records, table_files
from beam_dp.transforms.io.file_format import Format, Sniffed, Wanted

_RULE = "JSON Lines in UTF-8 (.gz: by gzip)"
_LEAST = 1 << 16  # of each of many files: their lines are read one by one
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

    def sniff(self, paths: Sequence[str], wanted: Wanted) -> Sniffed:
        """Refuse files for what their first 1 MiB, of many files 64 KiB each, shows to be misread.

        That is bytes that are not UTF-8, text with digits where numbers are wanted, a list or an
        object where a plain value is wanted, and more than one line in a hundred that is no object.
        """
        without = f"JSON Lines like {wanted.pattern!r} have no header"
        known_columns.warn("ReadRows", without, wanted.columns)
        forms: dict[str, frozenset[str]] = dict.fromkeys(wanted.columns, frozenset())
        size = max(open_files.SNIFFED // max(len(paths), 1), _LEAST)
        for path in paths:
            objects = _objects_at_the_start(path, size, wanted)
            for column in wanted.columns:
                values = [value.get(column) for value in objects]
                _check_values(path, column, values, wanted)
                forms[column] |= written_forms.of_values(values)
        return Sniffed([{}], forms)

    def rows(self, part: str, wanted: Wanted) -> Iterator[dict[str, object]]:
        """Yield one dict for every line that is an object."""
        for line in open_files.rows_of(_lines(part), part, wanted.pattern, _RULE):
            value = _object(line)
            if value is not None:
                yield {column: _plain(value.get(column)) for column in wanted.columns}

    def dropped(self, part: str, wanted: Wanted) -> dict[str, int]:
        """Return how many lines are dropped, but for those above 1 MiB."""
        lines = open_files.rows_of(_lines(part), part, wanted.pattern, _RULE)
        return {"no JSON object": sum(_object(line) is None for line in lines if line.strip())}

    def write(self, file: BinaryIO, table: pa.Table) -> None:
        """Write one object per row, with numbers or null: JSON has no infinity and no NaN.

        A value without a form in JSON is a string as in CSV.
        """
        for line in table_files.lines(table, _json):
            named = dict(zip(table.column_names, line, strict=True))
            file.write(json.dumps(named, allow_nan=False).encode() + b"\n")


def _objects_at_the_start(path: str, size: int, wanted: Wanted) -> list[dict[str, object]]:
    """Return the objects in the first bytes of a file; refuse it if other lines are among them."""
    read = open_files.start_of(path, wanted.pattern, _RULE)[:size]
    start = read.removeprefix(records.BYTE_ORDER_MARK)
    *lines, last = start.split(b"\n")
    if len(read) < size or not last.lstrip().startswith(b"{"):
        lines.append(last)  # else it may be an object that is cut there
    lines = list(filter(bytes.strip, lines))
    objects = [value for value in map(_object, lines) if value is not None]
    is_list = start.lstrip().startswith(b"[")
    checks.require(
        not is_list and (len(lines) - len(objects)) * open_files.FEW <= len(lines),
        "ReadRows",
        f"every file of {wanted.pattern!r}",
        f"hold a JSON object on each line, and {open_files.named(path, wanted.pattern)} has "
        f"{'a list' if is_list else 'other lines'} in {open_files.START}",
        "Of a list, jq -c '.[]' old.json > new.jsonl makes such lines; of a DataFrame, df.to_json "
        'with orient "records" and lines.',
    )
    return objects


def _check_values(path: str, column: str, values: Sequence[object], wanted: Wanted) -> None:
    """Refuse a column whose values are not plain, or whose numbers stand in quotes."""
    name, which = f"column {column!r} of {wanted.pattern!r}", open_files.named(path, wanted.pattern)
    checks.require(
        {dict, list}.isdisjoint(map(type, values)),
        "ReadRows",
        name,
        f"hold plain values, and {which} has lists or objects there in {open_files.START}",
        "Take a part of them, as jq -c '.person = .person.id' old.jsonl > new.jsonl does.",
    )
    kinds = {*map(type, values)} - {type(None)}
    is_truth = column in wanted.numbers and kinds == {bool}
    checks.require(not is_truth, "ReadRows", name, written_forms.NO_NUMBERS)
    quoted = (type(value) is str and re.search(r"\d", value) for value in values)
    checks.require(
        column not in wanted.numbers or not any(quoted),
        "ReadRows",
        name,
        f"hold numbers without quotes, and {which} has text there in {open_files.START}",
        "As jq -c '.spent |= tonumber' old.jsonl > new.jsonl makes them.",
    )


def _lines(path: str) -> Iterator[bytes]:
    with open_files.opened(path) as stream:
        mark = records.BYTE_ORDER_MARK  # of the first line
        cut = False  # within a line that is too long
        while line := stream.readline(records.RECORD_LIMIT):
            whole = line.endswith(b"\n") or len(line) < records.RECORD_LIMIT
            if whole and not cut:
                yield line.removeprefix(mark)
            mark, cut = b"", not whole


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
