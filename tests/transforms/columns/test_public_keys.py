"""Public partition keys: a list in columns, found by canonical form."""

import datetime
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_dp.transforms.columns import ids, public_keys
from beam_dp.transforms.columns.partition_keys import Key
from beam_dp.transforms.columns.public_keys import KeyList, PublicKeys
from tests.transforms.columns.test_partition_keys import INT64, KEY, PART, TEXT, typed


@given(st.integers(1, 3), st.data())
def test_a_list_of_keys_is_the_same_in_columns(parts: int, data: st.DataObject) -> None:
    key = st.tuples(*(data.draw(st.sampled_from([st.dates(), INT64, TEXT])) for _ in range(parts)))
    listed = data.draw(st.lists(key, min_size=1, max_size=20))
    found = KeyList.of(listed)
    assert list(map(typed, found)) == list(map(typed, listed)) and len(found) == len(listed)
    assert found == tuple(listed) and found == pickle.loads(pickle.dumps(found))
    places = data.draw(st.lists(st.integers(0, len(listed) - 1)))
    taken = found.take(np.array(places, np.int64))
    assert list(map(typed, taken)) == [typed(listed[place]) for place in places]
    assert typed(found[-1:][0]) == typed(listed[-1]) == typed(found[len(listed) - 1])
    assert [found.kind(place) for place in range(parts)] == list(map(type, listed[0]))


TEXTS = ("1", "a", "2020-01-02", "\u00e9", "0", "")


def test_public_keys_match_by_canonical_form() -> None:
    public = PublicKeys(KeyList.of((text,) for text in TEXTS))
    texts = pa.array(
        ["1", "01", "a", "A", "2020-01-02", "\u00e9", "e\u0301", "0", "", None, "True"]
    )
    expected = [0, -1, 1, -1, 2, 3, -1, 4, 5, -1, -1]
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert public.indexes([texts.cast(kind)], KEY).tolist() == expected
    assert public.indexes([texts.dictionary_encode()], KEY).tolist() == expected
    assert public.indexes([pa.array([1, 2, None, 0])], KEY).tolist() == [0, -1, -1, 4]
    assert public.indexes([pa.array([True, False])], KEY).tolist() == [0, 4]
    assert public.indexes([pa.array([datetime.date(2020, 1, 2)])], KEY).tolist() == [2]
    assert public.indexes([pa.nulls(1)], KEY).tolist() == [-1]


@given(st.sampled_from([INT64, TEXT, st.dates(), st.booleans()]), st.data())
def test_public_places_are_those_of_the_canonical_list(
    part: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    listed = data.draw(st.lists(part, min_size=1, max_size=30))
    once = {ids.canonical(part): part for part in listed}
    public = PublicKeys(KeyList.of((part,) for part in once.values()))
    for asked in data.draw(st.lists(PART, max_size=8)) + listed:
        places = public.indexes([ids.to_array([asked])], KEY)
        form = ids.canonical(asked)
        assert places.tolist() == [list(once).index(form) if form in once else -1]


@given(st.lists(st.tuples(INT64, TEXT), min_size=1, max_size=20, unique=True))
def test_public_keys_of_two_columns(listed: list[tuple[int, str]]) -> None:
    forms = {tuple(map(ids.canonical, key)): key for key in listed}
    public = PublicKeys(KeyList.of(tuple(forms.values())))
    numbers, texts = (pa.array(part) for part in zip(*public.keys, strict=True))
    assert public.indexes([numbers, texts], KEY).tolist() == list(range(len(forms)))
    elsewhere = pa.array([text + "x" for _, text in public.keys])
    absent = public.indexes([numbers, elsewhere], KEY).tolist()
    found = {(ids.canonical(number), ids.canonical(text + "x")) for number, text in public.keys}
    assert all(place == -1 for place in absent) or found & set(forms)


@pytest.mark.parametrize("keys", [((1,), ("1",)), ((1,), (True,)), ((0, "a"), (False, "a"))])
def test_public_keys_of_several_types_are_refused(keys: tuple[Key, ...]) -> None:
    with pytest.raises(TypeError, match="all of a column of one type, not "):
        PublicKeys(KeyList.of(keys))


def test_many_public_keys() -> None:
    public = PublicKeys(KeyList.of((f"key {number}",) for number in range(1 << 14)))
    column = pa.array(["key 5", "key x", f"key {(1 << 14) - 1}"])
    assert public.indexes([column], KEY).tolist() == [5, -1, (1 << 14) - 1]
    made = public_keys._lookup.cache_info().misses
    assert public.indexes([column], KEY).tolist() == [5, -1, (1 << 14) - 1]
    assert public_keys._lookup.cache_info().misses == made  # once per process and run
    sparse = PublicKeys(KeyList.of((number * 1_000_003,) for number in range(1000)))
    assert sparse.indexes([pa.array([0, 1, 999 * 1_000_003])], KEY).tolist() == [0, -1, 999]


def test_a_key_far_above_a_negative_public_key_is_not_in_the_list():
    # key - lowest wraps around in int64: it was an IndexError that spelled the key out, or a match.
    for listed in (((-1,), (1,)), ((-(2**63),), (-(2**63) + 2,))):
        public = PublicKeys(KeyList.of(listed))
        for number in (2**63 - 1, 0, -(2**63) + 1):
            found = public.indexes([pa.array([number, listed[0][0]])], b"k")
            assert found.tolist() == [-1, 0]


@pytest.mark.parametrize("listed", [((1,), (2,)), (("a", 1), ("b", 2))])
def test_public_keys_survive_pickling_and_are_one_object_in_a_process(listed):
    packed = pickle.dumps(PublicKeys(KeyList.of(listed)))
    first, second = pickle.loads(packed), pickle.loads(packed)
    assert first.keys == listed and first is second
