"""The vectorised hashes equal their formulas in Python integers, and tell texts apart."""

import hashlib
import itertools
import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.numerics import hashing

KEY = b"a key of the run"
WORD, HALF = 1 << 64, 1 << 32


def multipliers(key: bytes, size: int) -> list[list[int]]:
    """Return the random m_0, m_1, ... of the four streams."""
    stream = hashlib.shake_256(b"beam_dp identity" + key).digest(4 * (4096 // 4 + 4) * 8)
    words = [int.from_bytes(stream[i : i + 8], "little") for i in range(0, len(stream), 8)]
    return [words[start : start + size] for start in range(0, len(words), len(words) // 4)]


def slow_digest(text: bytes, key: bytes) -> tuple[int, int]:
    """Return (m_0 + sum_i m_i s_i mod 2^64) >> 32 four times; s_1 is the length."""
    if len(text) > 4096:
        text = b"%d:" % len(text) + hashlib.blake2b(text, key=key).digest()
    padded = text + bytes(-len(text) % 4)
    words = [int.from_bytes(padded[i : i + 4], "little") for i in range(0, len(padded), 4)]
    hashes = [
        (m[0] + sum(a * b for a, b in zip(m[1:], [len(text), *words], strict=True))) % WORD // HALF
        for m in multipliers(key, len(words) + 2)
    ]
    return hashes[0] * HALF + hashes[1], hashes[2] * HALF + hashes[3] | 1


def digests(texts: list[bytes], key: bytes = KEY) -> list[tuple[int, int]]:
    """Return the identities of texts as pairs."""
    return list(zip(*hashing.digests(*hashing.pack(texts), key).tolist(), strict=True))


def some_texts() -> list[bytes]:
    """Return texts of all lengths to 70, around every limit, and beyond."""
    generator = random.Random(1)
    lengths = [*range(70), 4088, 4089, 4095, 4096, 4097, 5000, 100_000]
    return [generator.randbytes(length) for length in lengths]


def test_digests_equal_the_formula():
    for texts in (some_texts(), some_texts()[:70], [b""], [b"", b""], [b"one"]):
        assert digests(texts) == [slow_digest(text, KEY) for text in texts]
    assert digests([]) == []


def test_many_texts_are_hashed_in_blocks_of_the_same_digests():
    texts = [b"%d" % number * (number % 3) for number in range(10_000)]
    found = digests(texts)
    assert found[::997] == [slow_digest(text, KEY) for text in texts[::997]]


def test_offsets_may_begin_anywhere():
    texts = [b"before", b"", b"a text", b"the last one, to the end"]
    offsets, data = hashing.pack(texts)
    for dtype in (np.int32, np.int64):
        part = hashing.digests(offsets[1:].astype(dtype), data, KEY)
        assert list(zip(*part.tolist(), strict=True)) == digests(texts)[1:]
    longer = [b"x" * 5000, b"second", b"y" * 5000]
    offsets, data = hashing.pack(longer)
    found = hashing.digests(offsets[1:], data, KEY)
    assert list(zip(*found.tolist(), strict=True)) == digests(longer)[1:]


@pytest.mark.parametrize(("low", "bits"), [(1, 1), (1, 2), (2, 2), (2, 3)])
def test_multilinear_hashing_is_as_strong_as_the_docstring_proves(low: int, bits: int) -> None:
    """The lemma in small, for all multipliers: words of `low` bits, sums of 5, `bits` cut off.

    Two different strings of two words share a hash with a probability of exactly 2^(bits - 5).
    """
    size = 5
    m = np.arange(1 << size)
    strings = list(itertools.product(range(1 << low), repeat=2))
    for one, other in itertools.combinations(strings, 2):
        hashes = [
            (m[:, None, None] + m[:, None] * s[0] + m * s[1]) % (1 << size) >> bits
            for s in (one, other)
        ]
        assert Fraction(int((hashes[0] == hashes[1]).sum()), m.size**3) == Fraction(
            1, 1 << size - bits
        )


def slow_code(identity: Sequence[int], key: bytes) -> int:
    """Return 32 bits of one copy and 31 of another over the four halves of an identity."""
    stream = hashlib.shake_256(b"beam_dp code" + key).digest(2 * 5 * 8)
    m = [int.from_bytes(stream[at : at + 8], "little") for at in range(0, 80, 8)]
    words = [half for word in identity for half in (word % HALF, word // HALF)]
    sums = [sum(a * b for a, b in zip(m[at : at + 5], [1, *words])) % WORD for at in (0, 5)]
    return (sums[0] >> 32) << 31 | sums[1] >> 33


@pytest.mark.parametrize("size", [0, 1, 6, 5000])
def test_63_bits_of_an_identity_are_two_copies_of_multilinear_hashing(size: int) -> None:
    """Of its four halves, with multipliers that are not those of the identities of texts."""
    words = [*WORDS, *np.random.default_rng(2).integers(0, WORD, 5000, np.uint64).tolist()][:size]
    one = np.array([words], np.uint64)
    both = np.array([words, words[::-1]], np.uint64)
    assert hashing.shortened(one, KEY).tolist() == [slow_code([w], KEY) for w in words]
    assert hashing.shortened(both, KEY).tolist() == [slow_code(w, KEY) for w in both.T.tolist()]
    padded = np.concatenate([one, np.zeros_like(one)])
    assert (hashing.shortened(padded, KEY) == hashing.shortened(one, KEY)).all()
    constants = hashing.random_words(KEY, b"identity", 4, 1028)
    assert not np.isin(hashing.random_words(KEY, b"code", 2, 5), constants).any()


WORDS = [0, 1, 2, WORD - 1, 1 << 63, 12345678901234567890]
