"""The packing program: bounds that hold for every guess, and meet at a solution."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from beam_dp.mechanisms.packing.packing_program import of_rows, of_values

THRESHOLDS = [Fraction(1, 64), Fraction(17, 32), Fraction(1), Fraction(3, 2), Fraction(5)]
KINDS = ["rows of one value", "rows of several values", "values"]


def some_packing(generator, kind, roles=3, people=6, most=10, threshold=None):
    """Return a small program in which every value has a row and every row an owner."""
    size = int(generator.integers(1, most + 1))
    values = np.unique(generator.integers(0, 4, size), return_inverse=True)[1]
    owners = np.full((size, roles), -1)
    for row in owners:
        count = generator.integers(1, roles + 1)
        row[:count] = np.sort(generator.permutation(people)[:count])
    threshold = threshold or THRESHOLDS[generator.integers(0, len(THRESHOLDS))]
    if kind == "values":
        if roles == 1:
            owners, values = np.unique(np.column_stack([owners, values]), axis=0).T
            owners, values = owners[:, None], np.unique(values, return_inverse=True)[1]
        return of_values(threshold, owners, values, generator.integers(1, 9, int(values.max()) + 1))
    values = values if kind == "rows of several values" else np.zeros(size, np.int64)
    free = generator.integers(0, 3, int(values.max()) + 1)
    return of_rows(threshold, owners, generator.integers(1, 9, size), values, free)


def value_of(packing):
    """Return E / D by an independent solver."""
    lines = np.zeros((len(packing.rooms), len(packing.gains)))
    lines[packing.lines, packing.columns] = packing.numbers
    limits = [(0, None if packing.blocks else most) for most in packing.most]
    found = linprog(-packing.gains, lines, packing.rooms, bounds=limits)
    return (packing.known - float(found.fun)) / packing.threshold.numerator


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bits", [0, 7, 40, 100])
def test_bounds_hold_for_every_guess(bits, kind):
    """To 1e-9, to which the other solver is right."""
    generator = np.random.default_rng(2)
    for _ in range(25):
        packing = some_packing(generator, kind)
        scale = 1 << min(bits, 40)
        removed = (generator.normal(0.5, 1, packing.people) * scale).astype(np.int64)
        columns = (generator.exponential(2, len(packing.gains)) * scale).astype(np.int64)
        removed[0], columns[-1] = generator.choice([0, -(1 << 62), (1 << 62) - 1], 2)
        if bits == 100:
            removed, columns = removed.astype(object) << 60, columns.astype(object) << 60
        found, value = packing.bounds(columns, removed, bits), value_of(packing)
        assert float(found.low) <= value + 1e-9
        assert value <= float(found.high) + 1e-9
        assert found.high == found.stays / packing.threshold + found.removed


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_removal_leaves_is_a_line_above_lower_prices(kind):
    for seed in range(12):
        thresholds = [Fraction(5), Fraction(3, 2), Fraction(1, 64)]
        high, *lower = (
            some_packing(np.random.default_rng(seed), kind, threshold=threshold)
            for threshold in thresholds
        )
        removed = (np.random.default_rng(seed).random(high.people) * (1 << 20)).astype(np.int64)
        found = high.bounds(np.zeros(len(high.gains), np.int64), removed, 20)
        for packing in lower:
            line = float(found.stays / packing.threshold + found.removed)
            assert value_of(packing) <= line + 1e-9


def test_numbers_beyond_64_bits_are_exact():
    owners, weights = np.array([[0], [0], [1]]), np.array([1 << 53, 1, 1 << 61])
    packing = of_rows(Fraction(1 << 61, 3), owners, weights, np.zeros(3, int), np.zeros(1, int))
    assert packing.bits < 0
    found = packing.bounds(packing.most, np.zeros(2, np.int64), 0)
    assert found.low * packing.threshold == (1 << 53) + 1 + packing.threshold
