"""Which part of the partitions a partition belongs to."""

import numpy as np

from beam_dp.mechanisms.bounding import table
from beam_dp.mechanisms.numerics import hashing


def bucket_of(partition: np.ndarray, buckets: int, key: bytes) -> np.ndarray:
    """Return the bucket of each partition."""
    hashes = hashing.fold(table.two_words(partition), hashing.salt(key, "bucket"))
    return (hashes % np.uint64(buckets)).astype(np.int64)
