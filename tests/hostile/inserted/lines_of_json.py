"""Rows of JSON Lines files: a base that must come through, and hostile lines of any sort."""

import json
import math
import random
from collections.abc import Iterator, Sequence

from tests.hostile.inserted import layouts, texts

NAMES = ("who", "what", "much")
Row = tuple[object, ...]
_VALUES = (
    *("1", "-1", "1e999", "-1e999", "1e-999", "0.1", "9" * 40, "-" + "9" * 40, "1E5", "-0", "01"),
    *("NaN", "Infinity", "-Infinity", "null", "true", "false", "nul", "True", "None", "undefined"),
    *('"a"', '""', '"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"\\n"', '"\\r"', '"\\u2028"'),
    *('"\u2028"', '"\u0085"', '"\ufeff"', '"é"', '"\\x"', '"\\u12"', '"', '"a', "'a'", '"a\\'),
    *('"\t"', "[]", "{}", "[1]", '{"a":1}', '{"who":"x"}', "[[]]", "[" * 30, "[" * 30 + "]" * 30),
    *('{"":{}}', '"base-1"', "١", "1_0", "0x1", "+1", ".5", "1.", "--1", "", " ", "1 2", "1,", ","),
    '"a":1',
)
_KEYS = ('"who"', '"what"', '"much"', '"WHO"', '"wh\\u006f"', "who", '""', '"other"', "1", "null")
_LONG = (
    *("9" * 4299, "9" * 4301, "9" * 20_000, "[" * 5000, "[" * 100_000, '{"a":' * 50_000),
    *("[" * 500 + "]" * 500, "[" * 5000 + "]" * 5000, '"' + "x" * 5000 + '"', " " * 5000 + "1"),
)
WHOLE = (
    *(b"", b" ", b"[]", b"1", b'"who"', b"null", b"{", b"}", b"{}", b"{}{}", b"{},", b"[{}]"),
    b"\x00",
    *(b"\xff", texts.BOM, texts.BOM + b"{}", b'{"who":"\xff"}', b"{}\x00", b"\x1e{}", b"//", b"#"),
    *('{"who":1}'.encode("utf-16"), '{"who":1}'.encode("utf-16-le"), '{"who":1}'.encode("utf-32")),
    *(b'{"who":1}\r{"who":2}', b'\r{"who":1}', b'{"who":\r1}', b'{"who":1}\r\r', b'{"who":"a\rb"}'),
    *('{"who":1}\u2028{"who":2}'.encode(), '{"who":1}\x85'.encode(), b'{"who":1}\x0b', b"\x0c{}"),
)


def pool(end: bytes) -> list[bytes]:
    """Return rows of a base."""
    values = (1, 1.5, None, True, "", "é", "a\nb", 10**20, "\u2028", "\r")
    rows = [dict(zip(NAMES, (f"base-{n}", v, n), strict=True)) for n, v in enumerate(values)]
    return [json.dumps(row, ensure_ascii=bool(n % 2)).encode() + end for n, row in enumerate(rows)]


def hostile(rng: random.Random, limit: int) -> bytes:
    """Return one line: of keys and values of any sort, a broken one, or bytes.

    Args:
        rng: the source of chance.
        limit: the most bytes of a line; the longest of the hostile values need the true one.
    """
    chance = rng.random()
    if chance < 0.15:
        line = rng.choice(WHOLE)
    elif chance < 0.3:
        line = texts.overlong(rng, rng.randint(1, 2 * min(limit, 1000)))
    else:
        line = _object(rng, limit).encode()
    if chance > 0.6:
        line = texts.mutated(rng, line)
    return texts.on_one_line(line) + rng.choice((b"\n", b"\r\n"))


def of_a_table(rng: random.Random | None, number: int) -> bytes:
    """Return a row of all columns of the `layouts`, with hostile values if there is chance."""
    cells = [json.dumps(cell) for cell in layouts.texts_of(number)]
    for name in ("value", "mark", "time", "epsilon"):
        place = layouts.NAMES.index(name)
        cells[place] = json.loads(cells[place])
    for _ in range(rng.choice((1, 1, 2, 10)) if rng else 0):
        cells[rng.randrange(len(cells))] = rng.choice(_VALUES)
    pairs = zip(layouts.NAMES, cells, strict=True)
    line = ("{" + ",".join(f'"{name}":{cell}' for name, cell in pairs) + "}").encode()
    if rng and rng.random() < 0.2:
        line = texts.on_one_line(texts.mutated(rng, line))
    return line + b"\n"


def _object(rng: random.Random, limit: int) -> str:
    values = _LONG if limit > 1000 and rng.random() < 0.05 else _VALUES
    pairs = [f"{rng.choice(_KEYS)}:{rng.choice(values)}" for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.7:
        pairs.insert(rng.randint(0, len(pairs)), f'"who":{rng.choice(_VALUES)}')
    return "{" + ",".join(pairs) + "}"


def rows_of(lines: Sequence[bytes], limit: int) -> list[Row]:
    """Return what comes out of lines, each by itself and by Python's own parser."""
    return [row for line in lines for row in _row(line, limit)]


def _row(line: bytes, limit: int) -> Iterator[Row]:
    if len(line) > limit or line.startswith(texts.BOM):
        return
    try:
        found = json.loads(line.decode(), parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        return
    if type(found) is dict:
        yield tuple(_plain(found.get(name)) for name in NAMES)


def _plain(value: object) -> object:
    if type(value) is str and any("\ud800" <= letter <= "\udfff" for letter in value):
        return None
    if type(value) is float and math.isnan(value):
        return None
    return value if type(value) in (str, int, float, bool) else None
