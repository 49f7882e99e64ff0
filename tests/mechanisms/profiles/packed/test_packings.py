"""What rows pack at a threshold: against an independent solver, and moved by a person as proved."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from beam_dp.mechanisms.packing import packing_program
from beam_dp.mechanisms.profiles.packed import packed_rows, packed_values
from beam_dp.mechanisms.profiles.packed.packed_rows import MostFrequent, PackedRows
from beam_dp.mechanisms.profiles.packed.packed_values import PackedValues, covered
from tests.mechanisms.profiles.packed import neighbours
from tests.sizes import tries as sized

THRESHOLDS = [Fraction(1, 8), Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3), Fraction(7)]
KINDS = {
    "count": lambda owners, items, weights: PackedRows(owners, None),
    "sum": lambda owners, items, weights: PackedRows(owners, None, weights),
    "distinct": lambda owners, items, weights: PackedValues(owners, items),
    "distinct in parts": lambda owners, items, weights: PackedValues(owners, items, 5),
    "by parts": PackedRows,
    "most frequent": MostFrequent,
}


def weighted(rows):
    """Return rows some of which weigh nothing."""
    return rows._replace(weights=rows.weights % 3)


def some_rows(generator, roles, most=12):
    return weighted(neighbours.some_rows(generator, roles, most=most))


def packed_exactly(owners, values, room, threshold):
    """Return E by an independent solver."""
    kept = (owners >= 0).any(axis=0)
    owners, values = owners[:, kept], values[kept]
    if not len(values):
        return 0.0
    lines = [(owners == person).any(axis=0) for person in range(int(owners.max()) + 1)]
    limits = [float(threshold)] * len(lines) + [float(room[value]) for value in np.unique(values)]
    lines += [values == value for value in np.unique(values)]
    return -float(linprog(-np.ones(len(values)), np.array(lines, float), limits).fun)


def exactly(kind, rows, threshold):
    owners, items, weights = rows
    each = np.arange(len(items))
    if kind == "count":
        return packed_exactly(owners, each, np.ones_like(each), threshold)
    if kind == "sum":
        return packed_exactly(owners, each, weights, threshold)
    if kind in ("distinct", "distinct in parts"):
        return packed_exactly(owners, items, np.full(4, 5 if "parts" in kind else 1), threshold)
    if kind == "by parts":
        return by_parts(owners, items, weights, threshold)
    parts = [items == item for item in range(4)]
    alone = (exactly("sum", (owners[:, at], items[at], weights[at]), threshold) for at in parts)
    return max(*alone, min(by_parts(owners, items, weights, threshold), packed_rows._PARTS_UP_TO))


def by_parts(owners, items, weights, threshold):
    """Return J by an independent solver."""
    kept = (owners >= 0).any(axis=0)
    owners, items, weights = owners[:, kept], items[kept], weights[kept]
    if not len(items):
        return 0.0
    rows, values = np.arange(len(items)), np.arange(4)
    given = np.concatenate([np.eye(len(items)), -weights[:, None] * (items[:, None] == values)], 1)
    people = range(int(owners.max()) + 1)
    loads = [np.append((owners == person).any(axis=0), np.zeros(4)) for person in people]
    parts = np.append(np.zeros(len(items)), np.ones(4))
    lines = np.array([*given, *loads, parts], float)
    limits = [*np.zeros(len(rows)), *[float(threshold)] * len(loads), 1.0]
    return -float(linprog(-(1 - parts), lines, limits).fun)


@pytest.fixture(params=[1, 2, 3, 4])
def roles(request):
    return request.param


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", KINDS)
@sized(3, 8)
def test_it_is_the_cell_of_the_most_that_can_be_packed(kind, roles, tries):
    """No packing of so few rows is within 1e-6 of a step: of the `EDGE` of tests."""
    generator = np.random.default_rng(roles)
    for _ in range(tries):
        rows = some_rows(generator, roles)
        for threshold in THRESHOLDS:
            packed = KINDS[kind](*rows)
            low, high = packed.between(threshold)
            parts = 32 * exactly(kind, rows, threshold) / float(threshold) - float(
                packing_program.EDGE
            )
            assert abs(parts - round(parts)) > 1e-6
            assert packed(threshold) == (math.ceil(parts) - Fraction(3, 5)) * threshold / 32
            assert low <= packed(threshold) <= high
            assert packed.between(threshold) == (packed(threshold), packed(threshold))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("most", [0, 2, 5])
def test_parts_of_values_count_up_to_a_number_of_rows(most, roles, monkeypatch):
    monkeypatch.setattr(packed_rows, "_PARTS_UP_TO", most)
    test_it_is_the_cell_of_the_most_that_can_be_packed("most frequent", roles, 4)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
@sized(3, 12)
def test_a_person_more_adds_0_to_the_price(kind, roles, tries):
    """So many databases, from each of which its up to 6 people leave one by one."""
    generator = np.random.default_rng(10 + roles)
    for _ in range(tries):
        packings = [KINDS[kind](*weighted(rows)) for rows in neighbours.chain(generator, roles)]
        for threshold in THRESHOLDS:
            for more, less in itertools.pairwise(packed(threshold) for packed in packings):
                assert 0 <= more - less <= threshold


def test_more_work_brings_the_bounds_to_the_value():
    generator = np.random.default_rng(20)
    for made in KINDS.values():
        owners = generator.integers(0, 20, (3, 120))
        packed = made(owners, generator.integers(0, 4, 120), np.ones(120, np.int64))
        low, high = packed.between(Fraction(2))
        while low < high:
            packed.closer(Fraction(2))
            low, high = packed.between(Fraction(2))
        assert low == high == packed(Fraction(2))


def test_a_price_that_is_enough_pays_for_everything(roles):
    generator = np.random.default_rng(30 + roles)
    for kind, _ in itertools.product(KINDS, range(10)):
        packed = KINDS[kind](*some_rows(generator, roles))
        at = packed.enough()
        assert 0 < packed.total - packed(at) < at / 31


def test_covered_values_of_one_owner_are_counted_exactly():
    """By their minimum cut: some people at the threshold each, and what the others own."""
    generator = np.random.default_rng(70)
    for _ in range(15):
        size = int(generator.integers(0, 20))
        owners, values = generator.integers(0, 5, size), generator.integers(-3, 6, size)
        for threshold in (1, 2, 3, 1 << 80):
            sets = [gone for n in range(6) for gone in itertools.combinations(range(5), n)]
            left = [len(np.unique(values[~np.isin(owners, gone)])) for gone in sets]
            cuts = [threshold * len(gone) + rest for gone, rest in zip(sets, left, strict=True)]
            assert covered(owners, values, threshold) == min(cuts)


def test_names_order_and_a_person_in_two_roles_change_nothing():
    generator = np.random.default_rng(40)
    for made in KINDS.values():
        owners, items, weights = some_rows(generator, 3, most=30)
        packed = made(owners, items, weights)
        order = generator.permutation(len(items))
        twice = np.concatenate([owners, owners[:1]])[::-1]
        other = made(
            np.where(twice < 0, -1, 7 - twice)[:, order], -3 * items[order], weights[order]
        )
        assert [packed(threshold) for threshold in THRESHOLDS] == [
            other(threshold) for threshold in THRESHOLDS
        ]


def test_values_of_few_people_each_are_known_at_low_prices():
    """40 values of 24 rows each, of two sellers of its own and of 24 buyers."""
    items = np.repeat(np.arange(40), 24)
    owners = np.stack([2 * items + np.tile([0, 1], 480), 100 + np.arange(960)])
    packed = PackedRows(owners, items, np.ones(960, np.int64))
    assert packed.total == 24 and packed(Fraction(1)) > 23


def test_values_of_one_row_of_the_same_owners_are_one_row():
    """1,000 values of one seller, who carries 7 of them, and of two buyers."""
    owners = np.stack([np.zeros(1000, int), 1 + np.arange(1000) % 2])
    threshold, values = Fraction(7), np.arange(1000)
    program = packed_values._program(threshold, owners.T, values, 1, 0)
    assert program.most.tolist() == [7, 7] and program.rooms[-2:].tolist() == [500, 500]
    assert 7 - threshold / 31 < PackedValues(owners, values)(threshold) < 7
