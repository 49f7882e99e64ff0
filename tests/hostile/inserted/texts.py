"""Hostile cells: bytes that break something somewhere."""

import random

BOM = b"\xef\xbb\xbf"
NUMBERS = (
    *(b"1", b"-1", b"0", b"1e999", b"-1e999", b"1e-999", b"9" * 40, b"-" + b"9" * 50),
    *(b"1e5", b"+7"),
    *(b"NaN", b"nan", b"Infinity", b"-inf", b"1_000", b"0x10", b"1,5", b".5", b"5.", b"--1", b"1e"),
    *(b" 1", b"1 ", b"1\x00", b"\x001", b"1\n", b"1L", b"True", b"null", b"None", b"-0.0", b"007"),
    *("١٢".encode(), "１".encode(), "½".encode(), "−1".encode(), "1\u2028".encode(), b"1\xff"),
    *(b"9223372036854775807", b"9223372036854775808", b"1" * 19, b"0.1" + b"0" * 30, b"1e308"),
)
BYTES = (
    *(b"\xff", b"\xc3", b"\xe9t\xe9", b"Jos\xe9", b"\x80", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf8"),
    *(b"\xf4\x90\x80\x80", b"\xe2\x80", b"\xfe\xff\x00a", b"\xff\xfe", b"a\xffb", b"\x00\xff"),
)
WORDS = (
    *(b"", b"a", b" ", b"\t", b"\x00", b"\x00\x00a", b"a\x00b", BOM, BOM + b"a", b"a" + BOM),
    b"\x1a",
    *(text.encode() for text in ("é", "e\u0301", "\U0001f600", "\ufdd0", "\u200f")),
    *(b"=1+1", b"@a", b"\\", b"\\N", b"\\n", b'\\"', b"'", b"`", b";", b"#", b"//", b"NULL", b"NA"),
    *(b"who", b"who,what,much", b"base-1", b"p1", b"true", b"2020-01-01", b"{}", b"[]", b"{"),
)
QUOTED = (
    *(b'"', b'""', b'"""', b'"a"', b'a"b', b',"', b'",', b'","', b'"\n', b'\n"', b'"\r\n', b"\r"),
    *(b"\n", b"\r\n", b"\r\r\n", b"\n\n", b"\n\r", b",", b",,", b"a\rb", b"\ra", b"a\r", b",\n,"),
    *(b"x\nforged,row,1\ny", b"\nforged,row,1\n", b'"\nforged,row,1\n"', b"a,b,1\nc,d,2\ne,f,3"),
    *(b'\n"forged",row,1', b'x"\nforged,row,1', b"\r\nforged,row,1\r\n", b'","\n","', b'"\n"\n"'),
)
GROUPS = (NUMBERS, BYTES, WORDS, QUOTED)


def cell(rng: random.Random, longest: int = 0) -> bytes:
    """Return a hostile cell; now and then an overlong one, of `longest` bytes at most."""
    chance = rng.random()
    if longest and chance < 0.06:
        return overlong(rng, rng.randint(longest // 8, longest))
    if chance < 0.75:
        return rng.choice(rng.choice(GROUPS))
    return b"".join(rng.choice(rng.choice(GROUPS)) for _ in range(rng.randint(2, 4)))


def overlong(rng: random.Random, length: int) -> bytes:
    """Return a cell of about this length: of one sort, of rows, of line breaks, of anything."""
    sort = rng.choice(
        (b"x", b"9", b"\n", b"\r", b"forged,row,1\n", b"\xff", b',"\n', b'"', b"a\r\n")
    )
    return (sort * (length // len(sort) + 1))[:length]


def mutated(rng: random.Random, text: bytes) -> bytes:
    """Return bytes with one to three of them taken out, doubled, or replaced by something hostile."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(text))
        end = min(len(text), at + rng.randint(0, 3))
        text = text[:at] + rng.choice((b"", text[at:end] * 2, cell(rng))) + text[end:]
    return text


def on_one_line(text: bytes) -> bytes:
    """Return bytes without line feeds."""
    return text.replace(b"\n", b"")
