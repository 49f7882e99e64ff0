"""Requests that choose a clip: the public clips, the shares, and what is shared or apart."""

from fractions import Fraction

import pytest

import beam_dp as dp
from beam_dp.mechanisms.metrics import clipped
from beam_dp.mechanisms.metrics.clipped import Clipping
from beam_dp.mechanisms.planning.columns import columns_of
from beam_dp.mechanisms.releases.clipped import ClippedDistinct, ClippedSum
from beam_dp.mechanisms.releases.request import Context


def built(metric, share=None, **options):
    """Return the release of a metric."""
    [request] = metric.requests()
    return request.build(Context(columns_of([metric]), **options), share or dp.Budget(6.0))


@pytest.mark.parametrize(
    ("depth", "ends"), [(1, (1,)), (2, (1, 2)), (5, (1, 2, 4, 5)), (8, (1, 2, 4, 8))]
)
def test_row_clips_are_powers_of_two_up_to_the_bound(depth, ends):
    assert clipped.row_clips(depth) == ends == built(dp.Count(), depth=depth).thresholds
    assert clipped.row_clips(None) == tuple(2**n for n in range(41))
    assert clipped.value_clips() == tuple(2**n for n in range(84))


def test_what_a_person_adds_is_signed_for_sums_only():
    assert built(dp.Sum("x")).signed and not built(dp.Count()).signed
    assert built(dp.Sum("x", unit=0.25)).unit == Fraction(1, 4) and built(dp.Count()).unit == 1


@pytest.mark.parametrize("clip", ["shared", "partition"])
def test_a_shared_clip_costs_its_share_once_and_others_a_part_of_it(clip):
    release = built(dp.Count(clip=clip, clip_share=Fraction(1, 3)), reach=4)
    assert type(release) is ClippedSum and release.shared == (clip == "shared")
    assert release.search_cost == dp.Budget(2 if clip == "shared" else HALF)
    assert release.noise_cost == dp.Budget(1)
    assert (release.chooser is release) == (clip == "shared")
    assert [once for _, _, once in release.spends] == [False, clip == "shared"]
    assert sum(cost.amount * (1 if once else 4) for cost, _, once in release.spends) == 6


HALF = Fraction(1, 2)


def test_one_clip_needs_no_search():
    release = built(dp.Count(candidates=dp.Candidates.of([3])))
    assert release.search_cost is None and release.noise_cost == dp.Budget(6)
    assert release.chooser is None and len(release.spends) == 1


@pytest.mark.parametrize(("partitions", "share"), [(1, 8), (2, 3), (None, 3)])
def test_one_partition_gives_its_clip_an_eighth_others_a_third(partitions, share):
    release = built(dp.Sum("x"), dp.Budget(1), partitions=partitions)
    assert release.search_cost == dp.Budget(Fraction(1, share))


def test_distinct_values_know_who_owns_them():
    release = built(dp.DistinctCount("x"), partitions=2)
    assert type(release) is ClippedDistinct and release.relation in release.measures


def test_a_clipping_is_what_the_metric_says():
    assert Clipping().shared and not Clipping("partition").shared
    assert clipped.share_of(dp.Count()) is None
    assert clipped.share_of(dp.Count(clip_share=0.1)) == Fraction(0.1)


def test_too_many_clips_are_refused():
    grid = dp.Candidates.linear(0, 4096, 1)
    with pytest.raises(ValueError, match="^Count: candidates for a clip must be at most 4096"):
        built(dp.Count(candidates=grid))
