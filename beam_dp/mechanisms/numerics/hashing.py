"""Keyed hashes of whole columns: identities of 128 bits, codes of 63, priorities of 64.

* *Identity*: who is who. People whose identities are equal are one person in everything that
  follows, with one bound. An integer is its own identity: no two are equal. The identity of a text
  is a keyed hash (`digests`): any two texts have the same with probability at most 2^-127.
* *Code*: 63 bits of an identity (`shortened`), for values that are only compared; any two
  identities have the same with probability 2^-63.
* *Priority* of a (person, partition) pair. Privacy does not rest on its quality: for every fixed
  key the pairs that a person keeps are a function of that person's own rows. `mix` is the
  finaliser of splitmix64 (Steele, Lea, Flood 2014) with the key xored in.

*The chance that two are equal* is proved, not hoped for: multilinear hashing (Lemire and Kaser,
"Strongly universal string hashing is fast", 2014, Theorem 3.1). For words s_1..s_w below 2^32,
random 64-bit m_0..m_w and 32 <= b < 64, two different strings of words have the same

    h(s) = (m_0 + sum_i m_i s_i  mod 2^64) >> b        with probability 2^(b - 64),

whatever the strings. Proof: let them differ by d in word i, and 2^a be the largest power of two in
d, a < 32. Given all m but m_i and m_0, their sums differ by x = m_i d + c mod 2^64, which is
uniform among the 2^(64 - a) numbers that leave the remainder of c modulo 2^a; and one of the sums
is uniform and independent of x, by m_0. So for a given x, read from -2^63 on, the hashes are equal
with probability max(0, 1 - |x| / 2^b); as 2^a divides 2^b, these add up to 2^b / 2^a over all x of
one remainder; and 2^(b - a) / 2^(64 - a) = 2^(b - 64). Independent copies multiply. The length of a
text is hashed as its first word, so that padding makes nothing equal.

*What it means for privacy*: for any n people, the probability over the key that one of them has
the same identity as a fixed other person is at most n 2^-127, and 0 among integer ids. For all
other keys a release has the guarantee that is claimed. So with text ids n 2^-127 is to be added to
delta: less than 10^-29 for a thousand million people. The account does not count it.

*What is assumed*: ids are chosen without knowledge of the key, which is new in each run (256 bits
of the system's entropy); the m_i are not random but SHAKE-256 of the key, and texts above 4,096
bytes are known by a BLAKE2b digest with it: both are assumed to be as good as random.
"""

import functools
import hashlib
from collections.abc import Sequence

import numpy as np

_LONGEST = 4096
_STREAMS = 4
_BLOCK = 8192
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW = np.uint64(0xFFFFFFFF)
_HALF, _REST, _ONE = np.uint64(32), np.uint64(31), np.uint64(1)


@functools.lru_cache(maxsize=64)
def salt(key: bytes, purpose: str) -> np.uint64:
    """Return a 64-bit constant that depends on the run's key and on its purpose."""
    digest = hashlib.blake2b(purpose.encode(), key=key, digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def mix(words: np.ndarray, constant: np.uint64) -> np.ndarray:
    """Return a keyed bijective scramble of `words` (uint64, any shape)."""
    mixed = words ^ constant
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def fold(rows: np.ndarray | Sequence[np.ndarray], constant: np.uint64) -> np.ndarray:
    """Return one 64-bit hash per column of `rows`, which has a row per word."""
    mixed = mix(rows[0], constant)
    for row in rows[1:]:
        mixed = mix(mixed + row, constant)
    return mixed


def condense(identity: np.ndarray, constant: np.uint64) -> np.ndarray:
    """Return one word per identity, a keyed linear function of its words.

    A missing second word counts as 0: how many words a column has depends on its other identities,
    and no hash of a person may depend on them. Equal results of different identities are possible:
    they only make equal priorities.

    Args:
        identity: uint64 of shape (1 or 2, n).
        constant: from `salt`.
    """
    if identity.shape[0] == 1:
        return np.asarray(identity[0])
    words = np.asarray(identity[1] * (constant | np.uint64(1)))
    words += identity[0]
    return words


@functools.lru_cache(maxsize=16)
def random_words(key: bytes, purpose: bytes, streams: int, words: int) -> np.ndarray:
    """Return random m_i, expanded from the key: shape (streams, words)."""
    stream = hashlib.shake_256(b"beam_dp " + purpose + key).digest(streams * words * 8)
    return np.frombuffer(stream, "<u8").reshape(streams, words)


def digests(offsets: np.ndarray, data: np.ndarray, key: bytes) -> np.ndarray:
    """Return the 128-bit identity of each text as uint64 of shape (2, n).

    Two different texts get the same identity with probability at most 2^-127 over the key. The
    second word is always odd, so that no identity equals an integer's (whose second word is 0):
    this takes one bit of four times 32. Texts above 4,096 bytes are shortened by keyed BLAKE2b
    first.

    Args:
        offsets: n + 1 byte offsets, as in an Arrow string array.
        data: the bytes, uint8.
        key: the run's key, at most 64 bytes.
    """
    lengths = (offsets[1:] - offsets[:-1]).astype(np.int64)
    if lengths.size and lengths.max() > _LONGEST:
        return digests(*_shorten(offsets, data, key), key)
    identity = np.empty((2, len(lengths)), np.uint64)
    if not lengths.size:
        return identity
    # Only the bytes in use: a slice has the buffer of the whole column, however large.
    used, starts = data[offsets[0] : offsets[-1]], offsets[:-1] - offsets[0]
    length, same = int(lengths[0]), int(lengths.min()) == int(lengths.max())
    if same and length and length % 4 == 0:  # all texts have one length, and follow each other
        table = np.ndarray((len(lengths), length // 4), "<u4", np.ascontiguousarray(used)).T
    else:
        table, used = None, np.concatenate([used, np.zeros(8, np.uint8)])
    for start in range(0, len(lengths), _BLOCK):
        block = slice(start, start + _BLOCK)
        words = _words(starts[block], lengths[block], used) if table is None else table[:, block]
        longs = lengths[:1] if same else lengths[block]
        _digest_block(words.astype(np.uint64), longs, key, identity[:, block])
    return identity


def _digest_block(words: np.ndarray, lengths: np.ndarray, key: bytes, out: np.ndarray) -> None:
    """Hash one cache-sized block of texts: a product of a matrix of keys and a matrix of words.

    `lengths` has one length for each text, or one for all.
    """
    constants = random_words(key, b"identity", _STREAMS, _LONGEST // 4 + 4)
    sums = constants[:, 2 : 2 + len(words)] @ words
    sums += constants[:, 0:1] + constants[:, 1:2] * lengths.astype(np.uint64)
    sums >>= _HALF
    np.left_shift(sums[::2], _HALF, out=out)
    out |= sums[1::2]
    out[1] |= np.uint64(1)


def shortened(identity: np.ndarray, key: bytes) -> np.ndarray:
    """Return 63 bits of each identity, as uint64; different ones get equal bits by 2^-63.

    The four 32-bit words of an identity are hashed multilinearly, twice: 32 bits of one hash and 31
    of the other. The probability is that of the module, for any two different identities of
    integers or texts, over random m_i other than those of `digests`. A missing second word counts
    as 0.

    Args:
        identity: uint64 of shape (1 or 2, n).
        key: the run's key.
    """
    constants = random_words(key, b"code", 2, 5)[:, : 1 + 2 * len(identity)]
    codes = np.empty(identity.shape[1], np.uint64)
    for start in range(0, len(codes), _BLOCK):
        part = identity[:, start : start + _BLOCK]
        halves = np.stack([part & _LOW, part >> _HALF], axis=1).reshape(-1, part.shape[1])
        sums = constants[:, 1:] @ halves + constants[:, :1]
        codes[start : start + _BLOCK] = (sums[0] >> _HALF << _REST) | sums[1] >> (_HALF + _ONE)
    return codes


def _words(starts: np.ndarray, lengths: np.ndarray, padded: np.ndarray) -> np.ndarray:
    """Return the 32-bit words of each text, padded with zeros: shape (words, texts)."""
    longest = int(lengths.max())
    window = np.ndarray((len(padded) - 7,), "<u8", padded, 0, (1,))  # 8 bytes from each offset on
    steps = 8 * np.arange(-(-longest // 8))
    inside = np.minimum(starts + steps[:, None], len(window) - 1)
    words = window[inside]
    missing = np.clip(steps[:, None] + 8 - lengths, 0, 8).astype(np.uint64)
    # A shift by 64 is undefined: words that are missing whole are set to 0 apart.
    words &= np.where(missing < 8, _ALL >> (np.uint64(8) * (missing % np.uint64(8))), np.uint64(0))
    halves = np.stack([words & _LOW, words >> _HALF], axis=1)
    return halves.reshape(-1, len(starts))


def _shorten(offsets: np.ndarray, data: np.ndarray, key: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Replace each text above the limit by its length and 64-byte keyed BLAKE2b digest."""
    raw = data.tobytes()
    texts = []
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        text = raw[start:end]
        if len(text) > _LONGEST:
            text = b"%d:" % len(text) + hashlib.blake2b(text, key=key[:64]).digest()
        texts.append(text)
    return pack(texts)


def pack(texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets and the joined bytes of `texts`, ready for `digests`."""
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return offsets, np.frombuffer(b"".join(texts), np.uint8)
