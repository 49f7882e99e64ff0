"""A maximum flow equals the least cut over all subsets of nodes, whatever the capacities."""

import itertools

import numpy as np
import pytest

from beam_dp.mechanisms.optimization import maximum_flow

SIZES = (1, 3, 2**30 - 1, 2**31 + 11, 2**47, 2**61 - 1)


def network(generator, most):
    """Return random arcs between 6 nodes, none beside its opposite, and the number of nodes."""
    pairs = [
        (a, b) if generator.random() < 0.5 else (b, a)
        for a, b in itertools.combinations(range(6), 2)
        if generator.random() < 0.6
    ]
    tails = np.array([a for a, _ in pairs], np.int64)
    heads = np.array([b for _, b in pairs], np.int64)
    capacities = generator.integers(0, most // 8 + 2, len(pairs))
    return tails, heads, capacities, 6


def cut(tails, heads, capacities, side):
    """Return what crosses from the nodes of `side` to the others, in Python integers."""
    return sum(
        int(c) for a, b, c in zip(tails, heads, capacities, strict=True) if side[a] and not side[b]
    )


def least_cut(tails, heads, capacities, nodes):
    sides = itertools.product([False, True], repeat=nodes - 2)
    return min(cut(tails, heads, capacities, (True, *side, False)) for side in sides)


@pytest.mark.parametrize("most", SIZES)
def test_the_flow_is_the_least_cut_and_its_side_is_one(most):
    generator = np.random.default_rng(most % 1000)
    for _ in range(60):
        arcs = network(generator, most)
        found = maximum_flow.maximum(*arcs, 0, 5)
        assert found.value == least_cut(*arcs)
        assert found.reached[0] and not found.reached[5]
        assert found.value == cut(*arcs[:3], found.reached)


FAULTS = {
    "too little": lambda found: found // 2,
    "nothing": lambda found: found * 0,
    "too much": lambda found: found + (np.arange(len(found)) == np.argmax(found)),
    "lost on the way": lambda found: np.where(np.arange(len(found)) == len(found) - 1, 0, found),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_solver_is_an_error_without_data_and_no_wrong_number(name, monkeypatch):
    true, generator = maximum_flow._Arcs.augment, np.random.default_rng(1)
    arcs = [network(generator, most) for most in (40, 2**47, 2**61) for _ in range(30)]
    monkeypatch.setattr(maximum_flow._Arcs, "augment", lambda *given: FAULTS[name](true(*given)))
    errors = []
    for one in arcs:
        try:
            assert maximum_flow.maximum(*one, 0, 5).value == least_cut(*one)
        except ArithmeticError as error:
            errors.append(str(error))
    assert len(errors) > 10 and len({*errors}) == 1
    assert not any(letter.isdigit() for letter in errors[0])


def test_only_what_arrives_is_a_flow():
    """Also where the sums of one node leave 64 bits: 2^62 eight times is not 0."""
    middle, many = np.arange(1, 9), np.full(8, 2**62)
    tails = np.concatenate([np.zeros(8, np.int64), middle])
    heads = np.concatenate([middle, np.full(8, 9)])
    for lost, through in itertools.product((0, 1, 2**62), (many, many // 3)):
        carried = np.concatenate([through, through])
        carried[-1] -= min(lost, carried[-1])
        good = maximum_flow._is_flow(tails, heads, np.concatenate([many, many]), carried, (0, 9))
        assert good == (lost == 0)
    backwards = np.array([9] * 8), np.arange(8)
    assert not maximum_flow._is_flow(*backwards, many, many, (0, 8))


def test_one_step_of_scaling_alone_is_too_little(monkeypatch):
    # The broken twin: what is missing after the first step is never filled up.
    true = maximum_flow._Arcs.augment
    generator = np.random.default_rng(1)
    arcs = [network(generator, 2**47) for _ in range(20)]

    def lazy(self, forward, backward, source, sink):
        found = true(self, forward, backward, source, sink)
        return found * 0 if backward.any() else found

    monkeypatch.setattr(maximum_flow._Arcs, "augment", lazy)
    with pytest.raises(ArithmeticError, match="does not fill its cut"):
        for one in arcs:
            maximum_flow.maximum(*one, 0, 5)


def test_no_arcs_and_no_capacity():
    empty = np.zeros(0, np.int64)
    assert maximum_flow.maximum(empty, empty, empty, 2, 0, 1).value == 0
    one = np.array([0]), np.array([1]), np.array([0])
    assert maximum_flow.maximum(*one, 2, 0, 1).value == 0


def test_many_small_arcs_fill_a_wide_one():
    # All of the small ones vanish in the first step, and together they miss more than 2^30.
    small, middle = 2**30 - 1, np.arange(1, 9)
    tails = np.concatenate([np.zeros(8, np.int64), middle, [9]])
    heads = np.concatenate([middle, np.full(8, 9), [10]])
    capacities = np.array([small] * 16 + [2**59])
    assert maximum_flow.maximum(tails, heads, capacities, 11, 0, 10).value == 8 * small
