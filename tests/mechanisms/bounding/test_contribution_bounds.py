"""Contribution bounds are checked, also when unpickled, and say what they imply."""

import itertools
import pickle

import numpy as np
import pytest

from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds


@pytest.mark.parametrize(
    ("l0", "linf", "l1"), list(itertools.product((None, 2, 5), (None, 3), (None, 4)))
)
def test_both_bounds_are_the_least_of_the_limits(l0, linf, l1):
    bounds = ContributionBounds(l0, linf, l1)
    assert bounds.max_partitions == min([x for x in (l0, l1) if x is not None], default=None)
    assert bounds.max_rows_per_partition == min(
        [x for x in (linf, l1) if x is not None], default=None
    )
    assert pickle.loads(pickle.dumps(bounds)) == bounds


@pytest.mark.parametrize("name", ["partitions", "rows_per_partition", "rows"])
@pytest.mark.parametrize("value", [0, True, 1.0, "3", np.int64(3)])
def test_what_is_no_limit_is_refused_by_name(name, value):
    given = {"partitions": 1, name: value}
    rule = rf"^ContributionBounds: {name} must be an int of at least 1, not .*None: no limit\.$"
    with pytest.raises((TypeError, ValueError), match=rule):
        ContributionBounds(**given)


def test_the_bound_on_partitions_is_chosen_privately_by_default():
    assert ContributionBounds() == ContributionBounds("auto")
    assert ContributionBounds().is_automatic and not ContributionBounds(3).is_automatic
    assert (
        ContributionBounds().max_partitions is None
        and ContributionBounds(rows=4).max_partitions == 4
    )
    assert ContributionBounds(rows=4).up_to(2) == ContributionBounds(2, rows=4)
    assert ContributionBounds(3).up_to(2) == ContributionBounds(3)
    assert pickle.loads(pickle.dumps(ContributionBounds())) == ContributionBounds()


@pytest.mark.parametrize("given", [{"rows": "auto"}, {"partitions": "all"}])
def test_other_words_are_refused(given):
    with pytest.raises(TypeError, match=f"{next(iter(given))} must be an int"):
        ContributionBounds(**given)


def test_a_forged_pickle_is_checked_again():
    data = pickle.dumps(ContributionBounds(77)).replace(b"K\x4d", b"K\x00")
    with pytest.raises(ValueError, match="partitions must be an int of at least 1, not 0"):
        pickle.loads(data)
