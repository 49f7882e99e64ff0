"""The profile gives every candidate the loss of its definition, at a cost that ignores N."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.profiles.profile import Profile, loss_at


def defined_loss(values: list, candidates: Candidates) -> list[int]:
    """Return min{k: B[k] <= y} per candidate y, and len(values) where there is none."""
    return [next((k for k, b in enumerate(values) if b <= y), len(values)) for y in candidates]


PROFILES = st.lists(
    st.one_of(st.integers(-3, 20), st.floats(-3, 20), st.sampled_from([-math.inf, math.inf])),
    min_size=1,
    max_size=9,
).map(lambda values: sorted(values, reverse=True))
GRIDS = st.sampled_from(
    [
        Candidates.linear(0, 17, 1),
        Candidates.linear(-1.5, 9, 0.3),
        Candidates.geometric(1, 15, 1.7),
        Candidates.of([4]),
    ]
)


@settings(max_examples=150, deadline=None)
@given(values=PROFILES, candidates=GRIDS)
def test_loss_steps_and_plateaus_are_the_least_number_of_removals(values, candidates):
    profile = Profile(values)
    loss, steps = profile.loss(candidates), profile.steps(candidates)
    assert loss == defined_loss(values, candidates)
    for i, expected in enumerate(loss):
        assert loss_at(steps, i) == expected
        assert all((expected <= k) == (i >= step) for k, step in enumerate(steps))
    plateaus = list(profile.plateaus(candidates))
    assert [p.start for p in plateaus] == [0, *(p.stop for p in plateaus[:-1])]
    assert plateaus[-1].stop == candidates.size
    assert all(p.start < p.stop and set(loss[p.start : p.stop]) == {p.loss} for p in plateaus)
    assert sorted({p.loss for p in plateaus}, reverse=True) == [p.loss for p in plateaus]


def test_numpy_values_become_plain_ones():
    profile = Profile(np.array([3, 2]))
    assert profile == Profile([np.int64(3), 2])
    assert [type(value) for value in profile.values] == [int, int]
    assert pickle.loads(pickle.dumps(profile)) == profile


@pytest.mark.parametrize(
    "values", [[], [math.nan], [2, math.nan], [math.nan, 2], [1, 2], [Fraction(1, 3), 0.34]]
)
def test_wrong_profiles_are_refused(values):
    with pytest.raises(ValueError, match=r"^Profile: values must be numbers that do not increase"):
        Profile(values)


def test_neither_an_error_nor_the_repr_shows_private_values():
    with pytest.raises(ValueError) as caught:
        Profile([7654321, 8765432])
    assert "7654321" not in str(caught.value)
    assert "7654321" not in repr(Profile([7654321]))
