"""The job of searches; and the removal loss of rows in files is that of brute force."""

from collections.abc import Callable

import pytest

import beam_dp as dp
from beam_dp.mechanisms.search.choose import BY_WORD, build_search
from pipelines import shifted_inverse
from tests.pipelines.conftest import PEOPLE

PUBLIC = ["--person", "visitor", "--partition", "day", "--public_partitions", "1,2,3"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "search", ["auto", "above_threshold", "exponential_mechanism", "noisy_binary_search"]
)
def test_a_value_that_all_people_have_is_never_missed(
    released: Callable[..., list[dict[str, str]]], search: str
) -> None:
    cap = build_search(BY_WORD[search], dp.Budget(3), 0.05, 61).cap(61)
    assert cap < PEOPLE
    # Everybody has 30, so B[k] = 30 for every k up to the cap K, and a search over B[0..K]
    # stops on the wrong side with probability at most that of the cap, 1e-12 per partition.
    words = [*PUBLIC, "--epsilon=9", "--bounds=partitions=3", "--candidates=0:60:1"]
    for metric, side in (("max", 1), ("min", -1)):
        found = released(shifted_inverse, *words, f"--{metric}=minutes", "--search", search)
        assert [row["day"] for row in found] == ["1", "2", "3"]
        numbers = [float(row[f"{metric}_minutes"]) for row in found]
        assert all(side * (number - 30) >= 0 and 0 <= number <= 60 for number in numbers)
