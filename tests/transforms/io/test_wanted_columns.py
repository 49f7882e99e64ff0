"""Which columns of files are read, and which of them are numbers."""

import pytest

import beam_dp as dp
from beam_dp.transforms.io.read_rows import reader_of

METRICS = [dp.Sum("spent"), dp.DistinctCount("shop"), dp.Median("minutes"), dp.Count()]


def test_numbers_are_what_is_added_or_ordered() -> None:
    read = reader_of("visits.csv", ["who"], ["day"], METRICS)
    assert set(read.columns) == {"who", "day", "shop", "spent", "minutes"}
    assert set(read.numbers) == {"spent", "minutes"}


@pytest.mark.parametrize("metric", [dp.Sum("who"), dp.Sum("day")])
def test_a_column_of_a_csv_file_is_text_or_numbers(metric: dp.Sum) -> None:
    with pytest.raises(ValueError, match="must be read as text .* Convert the file to Parquet"):
        reader_of("visits.csv", ["who"], ["day"], [metric])
    assert reader_of("visits.parquet", ["who"], ["day"], [metric]).numbers == (metric.column,)
