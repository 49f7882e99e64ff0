"""Which keys no value of a type equals, against every value that is looked up; forms of texts."""

import datetime
import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from beam_dp.transforms.columns import written_forms
from beam_dp.transforms.columns.public_keys import KeyList, PublicKeys, unlike

KEY = b"k" * 32
DAY = datetime.date(2026, 1, 2)
VALUES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False],
    pa.int8(): [-128, -1, 0, 1, 17, 127],
    pa.uint8(): [0, 1, 17, 255],
    pa.int64(): [-(2**63), -1, 0, 1, 17, 300, 2**53, 2**63 - 1],
    pa.uint64(): [0, 1, 17, 300, 2**63, 2**64 - 1],
    pa.float64(): [-1.0, 0.0, 1.0, 17.0, 300.0, 2.0**53 - 1],
    pa.float32(): [-1.0, 0.0, 1.0, 17.0, 300.0, 2.0**24 - 1],
    pa.decimal128(30, 0): list(map(decimal.Decimal, [-1, 0, 1, 17, 300, 2**64 - 1])),
    pa.date32(): [DAY, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
    pa.date64(): [DAY],
}
KEYS: list[Any] = [
    *(True, False, 0, 1, -1, 17, 127, 128, 255, 300, 2**24, 2**53, 2**63 - 1, -(2**63)),
    *("true", "false", "True", "0", "1", "17", "017", "17.0", " 17", "-1", "north", ""),
    *(DAY, "2026-01-02", "2026-1-2", "02.01.2026", "2026-02-30", "0001-01-01", "9999-12-31"),
    *(str(2**63), str(2**64 - 1), str(2**64), "9" * 40),
]


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_a_key_is_refused_if_no_value_of_the_type_equals_it(kind: pa.DataType) -> None:
    column = pa.array(VALUES[kind], kind)
    for key in KEYS:
        public = PublicKeys(KeyList.of([(key,)]))
        equals = (public.indexes([column], KEY) == 0).any()
        refused = unlike(public, 0, kind)
        assert refused in (None, key) and type(refused) in (type(None), type(key))
        if equals:
            assert refused is None, key
        elif refused is None:  # the values above are not all of the type
            further = datetime.date.fromisoformat(key) if str(key)[4:5] == "-" else int(key)
            wide = pa.decimal128(30) if pa.types.is_decimal(kind) else None
            held = pa.array([decimal.Decimal(further) if wide else further], wide)
            assert public.indexes([held.cast(kind)], KEY).tolist() == [0], key


def test_text_can_equal_every_key_and_the_first_unlike_one_is_told() -> None:
    public = PublicKeys(KeyList.of([("1",), ("x",), ("2",), ("y",)]))
    assert unlike(public, 0, pa.string()) is None and unlike(public, 0, pa.large_string()) is None
    assert unlike(public, 0, pa.int64()) == "x"


def test_booleans_match_their_words_and_numbers() -> None:
    column = pa.array([True, False, None, True])
    for keys in (["true", "false"], [True, False], [1, 0], ["1", "0"]):
        public = PublicKeys(KeyList.of([(key,) for key in keys]))
        assert public.indexes([column], KEY).tolist() == [0, 1, -1, 0]
    others = PublicKeys(KeyList.of([("false",), ("other",)]))
    assert others.indexes([column], KEY).tolist() == [-1, 0, -1, -1]
    assert others.indexes([pa.array(["false", "other", "1"])], KEY).tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    ("texts", "forms"),
    [
        (["1", "-20", "0", None], {written_forms.WHOLE}),
        (["1.0", "2,50", "+1.5"], {"numbers like 1.0"}),
        (["01", " 1", "1 ", "+1", "1_0", "24.11.2026", "", "TRue"], {written_forms.TEXT}),
        (["2026-11-22"], {written_forms.DATE}),
        (["true", "False", "TRUE"], {"true or false", "True or False", "TRUE or FALSE"}),
        (["1", "x"], {written_forms.WHOLE, written_forms.TEXT}),
        ([None], set()),
    ],
)
def test_forms_of_texts(texts: list[str | None], forms: set[str]) -> None:
    assert written_forms.of_texts(pa.array(texts, pa.string())) == forms


def test_forms_of_values_of_json_have_their_types() -> None:
    of_values = written_forms.of_values
    assert of_values([1, 2.0, None]) == {written_forms.WHOLE, "numbers"}
    assert of_values([0.5]) == {"numbers"} and of_values([None, []]) == frozenset()
    assert of_values(["1", 1]) == {written_forms.WHOLE, "numbers", "texts"}
    assert of_values([True]) == {written_forms.WHOLE, written_forms.TRUTH, "booleans"}


def test_many_keys_are_checked_in_columns() -> None:
    public = PublicKeys(KeyList([pa.array(np.arange(100_000))]))
    assert unlike(public, 0, pa.int32()) is None and unlike(public, 0, pa.int16()) == 1 << 15
