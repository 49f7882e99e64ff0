"""Public lists and private selection as parameters."""

import datetime
from decimal import Decimal

import apache_beam as beam
import numpy as np
import pytest

import beam_dp as dp
from beam_dp.transforms.partitions import check_partitions


def test_keys_become_plain_tuples_listed_once() -> None:
    found = dp.PublicPartitions([1, np.int64(1), Decimal(7)]).keys
    assert found == ((1,), (7,)) and [type(part) for (part,) in found] == [int, int]
    assert dp.PublicPartitions(["a", np.str_("a")]).keys == (("a",),)
    assert dp.PublicPartitions([False, np.bool_(True)]).keys == ((False,), (True,))
    assert dp.PublicPartitions(iter([("a", 1), ("a", 1)])).keys == (("a", 1),)
    assert len(dp.PublicPartitions(["\u00e9", "e\u0301", "e", "E", "e "]).keys) == 5


@pytest.mark.parametrize("keys", [[], (), set(), iter([])])
def test_an_empty_list_is_refused(keys: object) -> None:
    with pytest.raises(ValueError, match="keys must not be empty. Write PublicPartitions"):
        dp.PublicPartitions(keys)


PAIRS = [[1, "1"], [1, True], [0, False, "a"], ["2020-01-01", datetime.date(2020, 1, 1)]]


@pytest.mark.parametrize("keys", PAIRS)
def test_several_types_in_one_column_are_refused(keys: list[object]) -> None:
    with pytest.raises(TypeError, match="all of a column of one type, not "):
        dp.PublicPartitions(keys)


BAD = [None, 1.0, float("nan"), b"a", [1], {"a": 1}, "\ud800", 1 << 4096, datetime.timedelta(1)]
BAD += [1j, object(), Decimal("0.5")]


@pytest.mark.parametrize("key", BAD, ids=lambda key: type(key).__name__)
def test_keys_of_other_types_are_refused(key: object) -> None:
    with pytest.raises(TypeError, match="a key must be an int of 64 bits, a string"):
        dp.PublicPartitions([key])
    with pytest.raises(TypeError, match="a key must be an int of 64 bits, a string"):
        dp.PublicPartitions([("a", key)])


@pytest.mark.parametrize("keys", ["abc", b"abc", 5, None, {"a": 1}, dp.Count()], ids=repr)
def test_what_is_no_list_is_refused(keys: object) -> None:
    with pytest.raises(TypeError, match="keys must be a list of public keys"):
        dp.PublicPartitions(keys)


def test_a_collection_is_refused_as_public_keys() -> None:
    pipeline = beam.Pipeline(runner="FnApiRunner")
    with pytest.raises(TypeError, match="not a PCollection. Write .* what is in the data is not"):
        dp.PublicPartitions(pipeline | beam.Create([1]))


@pytest.mark.parametrize("value", [0, -1, 1.5, True, None, "1", np.int64(1)], ids=repr)
def test_pre_threshold_is_a_positive_int(value: object) -> None:
    with pytest.raises((TypeError, ValueError), match="pre_threshold must be an int of at least 1"):
        dp.PrivatePartitions(pre_threshold=value)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, "1", None], ids=repr)
def test_weight_is_a_positive_number(value: object) -> None:
    with pytest.raises((TypeError, ValueError), match="PrivatePartitions: weight must be"):
        dp.PrivatePartitions(weight=value)


def test_partitions_and_columns_must_fit() -> None:
    public = dp.PublicPartitions([("a", 1)])
    assert check_partitions("Owner", (), None) is None
    assert check_partitions("Owner", ("day",), None) == dp.PrivatePartitions()
    assert check_partitions("Owner", ("day", "shop"), public) is public
    with pytest.raises(ValueError, match="one part per partition column .1., not 2"):
        check_partitions("Owner", ("day",), public)
    with pytest.raises(ValueError, match="left out without partition columns"):
        check_partitions("Owner", (), public)
    for other in (["a"], "a", dp.PublicPartitions, 5):
        with pytest.raises(TypeError, match="must be PublicPartitions or PrivatePartitions"):
            check_partitions("Owner", ("day",), other)
