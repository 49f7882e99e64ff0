"""Lines of owners: merging, packing, codes, and what becomes of values."""

import collections
import itertools
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from beam_dp.mechanisms.bounding import table as tables
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.numerics import hashing, integers
from beam_dp.mechanisms.summaries import owner_lines, wire
from beam_dp.mechanisms.summaries.owner_lines import Owned, Relation
from tests.relations import Patch, owners_of, people_of

KEY = bytes(range(32))
Line = tuple[Any, ...]
EMPTY = 1 << 63
EXTREMES = (0, -1, 1, (1 << 62) - 1, -(1 << 62), 5, 5, 5)


def made(lines: Sequence[Line], names: dict[Any, bytes] | None = None) -> Owned:
    """Return lines (partition, relation, owners, item, count); a partition is a pair.

    A single owner may have two words; of several the number is the code, and None is nobody.
    """
    columns = [[line[place] for line in lines] for place in range(5)]
    partition = np.array(columns[0], np.uint64).reshape(-1, 2).T
    narrow = partition if partition[1].any() else partition[:1]
    relation, item = np.array(columns[1], np.int64), np.array(columns[3], np.int64)
    first, *others = zip(*columns[2], strict=True) if lines else [()]
    codes = [
        np.array([EMPTY if one is None else one for one in role], np.uint64) for role in others
    ]
    return Owned(
        partition=narrow,
        relation=relation,
        person=np.array([first], np.uint64) if others else owners_of(first),
        item=item,
        count=numbers(columns[4]),
        others=tuple(codes),
        names=names or {},
    )


def numbers(column: Sequence[int]) -> np.ndarray:
    """Return exact integers, wide if any of them needs it."""
    wide = np.empty(len(column), object)
    wide[:] = column
    return integers.narrow(wide)


def plain(lines: Owned) -> list[Line]:
    """Return the lines as `made` takes them, in the order of partitions and owners."""
    joined = tables.join_identities([lines.partition, np.zeros((2, 0), np.uint64)])
    partition = [tuple(pair) for pair in joined.T.tolist()]
    columns = (column.tolist() for column in (lines.relation, lines.item, lines.count))
    relation, item, count = columns
    return sorted(zip(partition, relation, owners_in(lines), item, count, strict=True))


def owners_in(lines: Owned) -> list[tuple[int, ...]]:
    first = lines.person[0].tolist() if lines.others else people_of(lines.person)
    return list(zip(first, *(column.tolist() for column in lines.others), strict=True))


def summed(lines: Sequence[Line]) -> dict[Line, int]:
    found: dict[Line, int] = collections.Counter()
    for line in lines:
        found[line[:4]] += line[4]
    return dict(found)


def random_lines(draw: random.Random, size: int, wide: bool, roles: int) -> list[Line]:
    words, others = (0, 3) if wide else (0,), (*range(5, 9), EMPTY)
    return [
        (
            (draw.randrange(3), draw.choice(words)),
            draw.randrange(2),
            (draw.randrange(5), *(draw.choice(others) for _ in range(roles - 1))),
            draw.choice(EXTREMES),
            draw.choice((1, 2, 1 << 61, 1 << 90)) if wide else draw.randint(1, 3),
        )
        for _ in range(size)
    ]


def cases(roles: int = 1) -> list[list[Line]]:
    draw = random.Random(roles)
    sizes = (0, 1, 2, 7, 40, 40)
    return [random_lines(draw, size, wide, roles) for size in sizes for wide in (False, True)]


def test_equal_lines_are_merged_and_counts_add_exactly() -> None:
    """However the lines are cut, in any order, and merged before."""
    for lines in (*cases(), *cases(2), *cases(4)):
        half = len(lines) // 2
        first = owner_lines.merge([made(lines[:half])])
        merged = plain(owner_lines.merge([made(lines[half:]), first]))
        assert {line[:4]: line[4] for line in merged} == summed(lines)
        assert len(merged) == len(summed(lines))


@pytest.mark.parametrize("lines", [*cases()[::3], *cases(3)[1::3]], ids=len)
def test_packed_lines_come_back_with_the_names_of_their_partitions(lines: list[Line]) -> None:
    names = {(place, word): b"%d %d" % (place, word) for place in range(9) for word in (0, 3)}
    merged = owner_lines.merge([made(lines, names)])
    packed = wire.pack(merged)
    found = wire.unpack(packed)
    assert type(packed) is bytes and type(found) is Owned
    assert plain(found) == plain(merged)
    partitions = {line[0] for line in lines}
    assert found.names == {pair: name for pair, name in names.items() if pair in partitions}
    assert plain(owner_lines.merge([found, merged])) == plain(owner_lines.merge([merged, merged]))


@pytest.mark.parametrize("size", [2, 5])
def test_lines_are_handed_out_by_partition_with_owners_numbered_from_zero(size: int) -> None:
    for lines in (*cases(), *cases(2), *cases(8)):
        merged = owner_lines.merge([made(lines)])
        places = merged.partition[0].astype(np.int64)
        found = [merged.of(np.where(places < size, places, -1), size, place) for place in range(3)]
        assert [len(views) for views in found] == [size] * 3
        for relation, place in itertools.product(range(3), range(size)):
            here = (merged.relation == relation) & (places == place)
            check_view(found[relation][place], merged.take(np.flatnonzero(here)))


def check_view(view: owner_lines.Lines, expected: Owned) -> None:
    """The same lines in their order, with owners renamed one to one to 0, 1, ..."""
    assert view.items.tolist() == expected.item.tolist()
    assert view.counts.tolist() == expected.count.tolist()
    codes = list(itertools.chain.from_iterable(owners_in(expected)))
    pairs = set(zip(view.owners.T.ravel().tolist(), codes, strict=True))
    nobody = [-1] if EMPTY in codes else []
    assert [number for number, _ in sorted(pairs)] == [*nobody, *range(len({*codes} - {EMPTY}))]
    assert nobody == [number for number, code in pairs if code == EMPTY]


def table(
    people: Sequence[int], columns: Sequence[Sequence[int]], rows: Sequence[int] | None = None
) -> Table:
    size = len(people)
    return Table(
        np.array([people], np.uint64),
        np.zeros((1, size), np.uint64),
        np.array([1] * size if rows is None else rows, np.int64),
        [numbers(column) for column in columns],
    )


def missing(column: np.ndarray) -> int:
    return -integers.WIDEST if column.dtype == object else integers.LOWEST


def test_rows_without_an_item_or_a_weight_have_no_line_and_those_with_an_empty_role_have() -> None:
    for wide in (False, True):
        given = table([1, 2, 3], [[7, 8, 9], [4, 5, 6], [1 << 90, 1, 1] if wide else [1, 1, 1]])
        for place in range(3):
            column = given.values[place].copy()
            column[1] = missing(column)
            changed = [*given.values[:place], column, *given.values[place + 1 :]]
            lines = Relation(0, (1,), 2).lines(
                Table(given.person, given.partition, given.rows, changed), 0, KEY
            )
            assert len(lines) == (3 if place == 1 else 2)
            assert [EMPTY in column.tolist() for column in lines.others] == [place == 1]


def test_items_and_weights_are_exact_up_to_their_bounds() -> None:
    items = [1 << 90, -(1 << 90), 1 << 62, -5, 0]
    assert Relation(0).lines(table(range(5), [items]), 0, KEY).item.tolist() == [
        1 << 62, -(1 << 62), 1 << 62, -5, 0,
    ]  # fmt: skip
    weights = [1 << 90, -(1 << 90), 3, -3, 0]
    lines = Relation(-1, (), 0).lines(table(range(5), [weights], [2, 2, 2, 2, 2]), 0, KEY)
    assert lines.count.tolist() == [1 << 91, 0, 6, 0, 0] and lines.item.tolist() == [0] * 5
    counted = Relation().lines(table(range(2), [[0, 0]], [3, 4]), 0, KEY)
    assert counted.count.tolist() == [3, 4]


@pytest.mark.parametrize("roles", [1, 3, 8])
def test_owners_have_one_form_whatever_their_order(roles: int) -> None:
    """Rising, each once, empty roles last; nobody is lost, and nobody comes."""
    codes = owner_lines.code(np.arange(4, dtype=np.uint64)[None], KEY).tolist()
    draw = random.Random(roles)
    for _ in range(40):
        rows = [[draw.choice([*codes, integers.LOWEST]) for _ in range(roles)] for _ in range(9)]
        found = owner_lines.in_order(np.array(rows, np.int64).T)
        assert found.shape == (roles, 9) and found.dtype == np.int64
        for row, ordered in zip(rows, found.T.tolist(), strict=True):
            people = sorted({*row} - {integers.LOWEST})
            assert ordered == [*people, *[integers.LOWEST] * (roles - len(people))]


def namesakes(purpose: str) -> np.ndarray:
    """Return three identities: the last two differ, but `condense` makes one number of them."""
    constant = int(hashing.salt(KEY, purpose)) | 1
    pairs = [(5, 3), (77, 9), ((77 + 6 * constant) % (1 << 64), 3)]
    return np.array(pairs, np.uint64).T


def test_people_are_told_apart_by_their_whole_identity() -> None:
    """Also where all that was made of their identities before is equal, by any purpose of a salt.

    Nothing else of what follows the lines may merge them: not merging, packing, numbers.
    """
    for purpose in ("code", "owner"):
        person = namesakes(purpose)
        assert len(np.unique(hashing.condense(person, hashing.salt(KEY, purpose)))) == 2
        given = Table(person, np.zeros((1, 3), np.uint64), np.ones(3, np.int64), [numbers([4] * 3)])
        for relation in (Relation(0), Relation()):
            parts = [relation.lines(given.take(slice(k, k + 1)), 0, KEY) for k in (2, 0, 1)]
            lines = owner_lines.merge([owner_lines.merge(parts[:2]), parts[2]])
            found = wire.unpack(wire.pack(lines))
            assert found.person.shape == (2, 3)
            [view] = found.of(np.zeros(3, np.int64), 1, 0)
            assert sorted(view.people.tolist()) == [0, 1, 2] and view.counts.tolist() == [1, 1, 1]


def test_owners_are_keyed_and_one_to_one() -> None:
    """Identities in one word and in two: the second word stays, and 0 is as good as none."""
    one = np.arange(1000, dtype=np.uint64)[None]
    two = np.concatenate([one, one * np.uint64(2) + np.uint64(3)])
    for identity in (one, two):
        found, other = owner_lines.owners(identity, KEY), owner_lines.owners(identity, bytes(32))
        assert found.shape == identity.shape and (found[1:] == identity[1:]).all()
        assert len({*found[0].tolist(), *other[0].tolist()}) == 2000
    padded = np.concatenate([one, np.zeros_like(one)])
    assert (owner_lines.owners(padded, KEY)[0] == owner_lines.owners(one, KEY)[0]).all()


def test_codes_are_keyed_and_free_of_form() -> None:
    """Of 2^63 codes 4,000 are different but for 2^-40; none is "no value"."""
    identities = np.arange(1000, dtype=np.uint64)[None]
    found = [owner_lines.code(identities, key) for key in (KEY, bytes(32))]
    pairs = np.concatenate([identities, np.full((1, 1000), 7, np.uint64)])
    found += [owner_lines.code(pairs, key) for key in (KEY, bytes(32))]
    together = np.concatenate(found)
    assert len(set(together.tolist())) == 4000
    assert together.dtype == np.int64 and int(together.min()) >= 0
    padded = np.concatenate([identities, np.zeros((1, 1000), np.uint64)])
    assert (owner_lines.code(padded, KEY) == found[0]).all()


def test_different_lines_that_share_a_hash_stay_apart(monkeypatch: Patch) -> None:
    """Whatever the hash: here all lines have the same one, then one of two."""
    for bits in (0, 1):

        def few(lines: Owned, most: int = bits) -> np.ndarray:
            return lines.item.view(np.uint64) & np.uint64(most)

        monkeypatch.setattr(owner_lines, "_line_hash", few)
        test_equal_lines_are_merged_and_counts_add_exactly()


def test_the_hash_of_an_owner_is_not_that_of_the_shards() -> None:
    """Else the people of one shard would be in one narrow range, and in few blocks."""
    assert hashing.salt(KEY, "owner") != hashing.salt(KEY, "person")
