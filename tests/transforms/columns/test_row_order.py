"""Tests of `person_value="last"`: the last row of each person, however rows come."""

import datetime
import decimal
import random
import statistics

import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.mechanisms.numerics import integers
from beam_dp.transforms.columns import fixed_point
from tests.hostile import support

MANY = dp.Budget(10_000.0)
UTC = datetime.UTC
# A quarter of epsilon 10,000 and more is for the noise, of scale Delta = 4 R^2 / n at most, with
# R = 16 and n = 100 at least: it is beyond 30 times that with a chance of e^-30.
NOISE = 30 * 4 * 16**2 / 100 / 2500


def rows_of(seed):
    """Return rows of 400 people in two days, with ties, without times, and the last of each."""
    chance, rows = random.Random(seed), []
    for person in range(400):
        for _ in range(chance.randint(1, 6)):
            time = chance.choice([None, 1, 2, 2.5, 3])
            value = chance.choice([None, *range(-9, 10)])
            rows.append({"p": person, "day": chance.randint(0, 1), "t": time, "v": value})
    return rows


def expected(rows, day, combine):
    best = {}
    for row in rows:
        if row["day"] == day and row["v"] is not None:
            rank = (-1 if row["t"] is None else row["t"], row["v"])
            best[row["p"]] = max(best.get(row["p"], rank), rank)
    return combine([value for _, value in best.values()])


def released(rows, statistic, shards=64, **options):
    transform = dp.PreprocessSensitivity(
        statistic,
        "p",
        MANY,
        ["day"],
        partitions=dp.PublicPartitions([0, 1]),
        person_value="last",
        last_by="t",
        shards=shards,
        **options,
    )
    return {row.day: vars(row) for row in support.released(rows, transform)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(3))
def test_the_last_row_of_each_person_counts(seed):
    rows = rows_of(seed)
    shuffled = rows[:]
    random.Random(seed + 10).shuffle(shuffled)
    for given, shards in ((rows, 64), (shuffled, 1)):
        found = released(given, dp.Variance("v"), shards)
        for day in (0, 1):
            truth = expected(rows, day, statistics.pvariance)
            assert abs(found[day]["variance_v"] - truth) <= NOISE < 1


NOON = datetime.datetime(2024, 2, 29, 12, 0, 0, 1)
SECONDS = 1709208000
EAST = datetime.timezone(datetime.timedelta(hours=5))
SAME = [NOON, NOON.replace(tzinfo=UTC), (NOON.replace(tzinfo=UTC)).astimezone(EAST)]


def test_dates_times_and_seconds_are_one_scale():
    wanted = SECONDS * 10**6 + 1
    assert fixed_point.ranks([*SAME, decimal.Decimal(wanted) / 10**6]).tolist() == [wanted] * 4
    for kind in (pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "Asia/Tokyo")):
        column = pa.array([NOON, None], pa.timestamp("us")).cast(kind)
        assert fixed_point.ranks(column).tolist() == [wanted, integers.LOWEST]
        encoded = column.dictionary_encode()
        assert fixed_point.ranks(encoded).tolist() == [wanted, integers.LOWEST]
    day = datetime.date(2024, 2, 29)
    midnight = wanted - 1 - 12 * 3600 * 10**6
    assert fixed_point.ranks([day]).tolist() == [midnight]
    for kind in (pa.date32(), pa.date64()):
        assert fixed_point.ranks(pa.array([day, None], kind)).tolist() == [
            midnight,
            integers.LOWEST,
        ]
    for kind in (pa.timestamp("s"), pa.timestamp("ms")):
        column = pa.array([NOON.replace(microsecond=0)], kind)
        assert fixed_point.ranks(column).tolist() == [wanted - 1]


def test_what_is_no_time_comes_first_and_what_is_far_is_cut():
    odd = [None, float("nan"), "2024-01-01", b"x", True, [1], datetime.time(3)]
    assert set(fixed_point.ranks(odd).tolist()) == {integers.LOWEST}
    far = fixed_point.ranks([10**40, -(10**40), 1e300, -1e300, 1]).tolist()
    assert far == [1 << 62, -(1 << 62), 1 << 62, -(1 << 62), 10**6]
    seconds = pa.array([(1 << 63) - 1, -(1 << 63)], pa.int64()).cast(pa.timestamp("s"))
    assert fixed_point.ranks(seconds).tolist() == pytest.approx([1 << 62, -(1 << 62)], rel=1e-9)


def test_wrong_calls_are_refused():
    with pytest.raises(ValueError, match="last_by must be given"):
        dp.TrimmedMean("v", person_value="last")
    with pytest.raises(ValueError, match="last_by must be given"):
        dp.BlackBox("v", len, last_by="t")
    with pytest.raises(TypeError, match="numbers, dates or timestamps"):
        orders_of_text = pa.table({"p": [1], "t": ["x"], "v": [1.0], "day": [0]})
        released([orders_of_text], dp.Variance("v"))
