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


PAIRS = [[1, "1"], [1, True], [0, False, "a"], ["2020-01-01", datetime.date(2020, 1, 1)]]
BAD = [
    None,
    1.0,
    float("nan"),
    b"a",
    [1],
    "\ud800",
    1 << 4096,
    datetime.timedelta(1),
    Decimal("0.5"),
]


def test_what_are_no_keys_is_refused() -> None:
    with pytest.raises(ValueError, match="keys must not be empty. Write PublicPartitions"):
        dp.PublicPartitions(iter([]))
    for keys in PAIRS:
        with pytest.raises(TypeError, match="all of a column of one type, not "):
            dp.PublicPartitions(keys)
    for key in (*BAD, *(("a", key) for key in BAD)):
        with pytest.raises(TypeError, match="a key must be an int of 64 bits, a string"):
            dp.PublicPartitions([key])
    for keys in ("abc", b"abc", 5, {"a": 1}, dp.Count()):
        with pytest.raises(TypeError, match="keys must be a list of public keys"):
            dp.PublicPartitions(keys)
    pipeline = beam.Pipeline(runner="FnApiRunner")
    with pytest.raises(TypeError, match="not a PCollection. Write .* what is in the data is not"):
        dp.PublicPartitions(pipeline | beam.Create([1]))


def test_parameters_of_private_selection_are_positive_numbers() -> None:
    for value in (0, 1.5, True, None):
        with pytest.raises((TypeError, ValueError), match="pre_threshold must be an int of at lea"):
            dp.PrivatePartitions(pre_threshold=value)
    for value in (0, float("nan"), float("inf"), "1"):
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
