"""Read JSON Lines files: one object per line, only the wanted columns, only plain values."""

import json
from collections.abc import Iterator, Sequence

from beam_dp.mechanisms.numerics import checks, value_types
from beam_dp.transforms.io import open_files, records

RULE = "JSON Lines in UTF-8 (.gz: by gzip)"
_PLAIN = frozenset((int, float, bool))


def read_jsonl(path: str, pattern: str, columns: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield one dict with exactly the wanted columns for every line that is a JSON object.

    A line ends with LF or with the file; CR is white space of JSON. Text in JSON holds neither LF
    nor CR, so no row, whatever it holds, changes what happens to another row.

    Integers stay exact Python integers; numbers with a fraction or an exponent become the
    nearest float64 (infinite beyond the largest).

    Edge cases: a line that is not an object, not JSON, not UTF-8, longer than 1 MiB, nested
    too deeply to parse or with an integer too long to parse (4,300 digits by Python's own
    limit) is dropped. A missing column, NaN, Infinity, a list, an object and text that UTF-8
    cannot write (a lone surrogate) become None. Where a key occurs twice, the last one counts.

    Raises:
        ValueError: a .gz file ends early or is damaged; the message names the pattern only.
    """
    message = open_files.unreadable(pattern, RULE)
    for piece in open_files.guarded(_pieces(path), message):
        for line in piece.only(piece.good).split(b"\n"):
            value = _object(line)
            if value is not None:
                yield {column: _plain(value.get(column)) for column in columns}


def look(paths: Sequence[str], pattern: str) -> None:
    """Refuse files for their first 64 KiB: what is not UTF-8, and lines none of which is an object.

    Raises:
        ValueError: names the pattern only.
    """
    starts = [
        open_files.start_of(path, pattern, RULE).removeprefix(records.BYTE_ORDER_MARK)
        for path in paths
    ]
    checks.require(
        not b"".join(starts).strip() or any(map(_holds_object, starts)),
        "ReadRows",
        f"every file of {pattern!r}",
        f"hold a JSON object on each line, and no line in their first {open_files.LOOKED >> 10} "
        "KiB is one",
        'Of a DataFrame: df.to_json("in.jsonl", orient="records", lines=True).',
    )


def _holds_object(start: bytes) -> bool:
    lines = start.split(b"\n")
    # A line that is cut there may be one.
    longer = len(start) > open_files.LOOKED - 4 and lines[-1].lstrip().startswith(b"{")
    return longer or any(_object(line) is not None for line in lines)


def _pieces(path: str) -> Iterator[records.Piece]:
    with open_files.opened(path) as stream:
        yield from records.whole_records(stream, records.Form.LINES)


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
