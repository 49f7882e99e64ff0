"""The guess of how many partitions are released, by those of one bucket."""

import math
from fractions import Fraction

import pytest

from beam_dp.mechanisms.reach.partition_number import FEW, about


@pytest.mark.parametrize("buckets", [8, 64])
@pytest.mark.parametrize("partitions", [1, 2, 7, 30, 300])
def test_seen_from_a_partition_the_others_of_its_bucket_tell_how_many_there_are(
    partitions: int, buckets: int
) -> None:
    # The exact mean of 1 + (kept - 1) B, where each of the others is here with a chance of 1 / B.
    here = Fraction(1, buckets)
    chances = [
        math.comb(partitions - 1, others) * here**others * (1 - here) ** (partitions - 1 - others)
        for others in range(partitions)
    ]
    assert sum(c * (1 + others * buckets) for others, c in enumerate(chances)) == partitions


@pytest.mark.parametrize("buckets", [8, 64])
def test_one_alone_says_nothing_and_many_say_it_all(buckets: int) -> None:
    assert about(1, buckets) == FEW
    assert about(1, buckets, 37.4) == 37
    assert about(1, buckets, 0.001) == 1
    for kept in (50, 500, 100_000):
        for guess in (1.0, FEW, 1e4):
            assert abs(math.log(about(kept, buckets, guess) / (kept * buckets))) < 50 / kept
    numbers = [about(kept, buckets) for kept in range(1, 200)]
    assert numbers == sorted(numbers)


def test_a_few_partitions_in_many_buckets_are_not_taken_for_many() -> None:
    # Seven of 64 buckets have one of seven partitions each: not 64, as one per bucket would be.
    assert about(1, 64, 8.0) == 8
    assert about(2, 64, 8.0) == round((65 * 8**2) ** (1 / 3))


def test_in_one_bucket_and_of_none_nothing_is_guessed() -> None:
    assert [about(kept, 1, 1e9) for kept in (0, 1, 7)] == [0, 1, 7]
    assert about(0, 64) == 0
