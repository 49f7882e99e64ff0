"""How many partitions a run releases, guessed where a part of them is drawn: it decides a clip.

Privately selected partitions are drawn in B buckets, by a keyed hash, and the draw of a bucket sees
only how many of its own are kept. Everything here is computed from released numbers.
"""

import math

FEW = 10.0
"""A guess where nothing is known."""
_WEIGHT = 2.0


def about(kept: int, buckets: int, guess: float = FEW) -> int:
    """Return about how many partitions all buckets keep, by one bucket that keeps some.

    Seen from one of the P kept partitions, each of the P - 1 others is in the same bucket with a
    chance of 1 / B: 1 + (kept - 1) B is P on average. (kept B is P + B - 1 on average, far too much
    where there are few: a bucket is only asked because it has one.) Of kept - 1 others the relative
    variance is about 1 / (kept - 1); that of the guess is taken for 1 / 2, a factor of two. The
    logarithms are averaged by these weights.

    Args:
        kept: how many the bucket keeps.
        buckets: B.
        guess: what else says about how many there are.
    """
    if buckets == 1 or not kept:
        return kept
    others = kept - 1
    logarithm = others * math.log1p(others * buckets) + _WEIGHT * math.log(max(guess, 1.0))
    return max(kept, round(math.exp(logarithm / (others + _WEIGHT))))
