"""Section E of the table of bad inputs: rows and what they come in."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa

import beam_dp as dp
from tests.hostile import support
from tests.hostile.support import as_batch, as_dict

ROOT = Path(__file__).parents[2]


def raising(row: Any) -> Iterator[object]:
    """An extractor of a user, which drops what it cannot read."""
    try:
        yield as_dict((row["p"], row["d"], float(row["v"])))
    except (KeyError, TypeError, ValueError):
        return


def test_67_an_extractor_that_drops_what_it_cannot_read() -> None:
    rows = [{"p": 1, "d": "a", "v": "1"}, {"p": 2, "d": "a", "v": "secret"}, {"p": 3}, None]
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        transform = dp.PrivateAggregate("person", [dp.PeopleCount()], dp.Budget(1e6))
        seen = support.keep(support.start(pipeline, rows) | beam.FlatMap(raising) | transform)
    # Noise of rate 10^6 is 0 but with probability e^-999999.
    assert [row.people_count for row in seen] == [1]


def test_68_elements_are_never_changed() -> None:
    row = as_dict((1, "a", 1.0))
    batch = as_batch((pa.array([1, None]), pa.array(["a", "b"]), pa.array([1.0, float("nan")])))
    before = batch.to_pydict()
    support.contents([row, batch])
    assert row == as_dict((1, "a", 1.0)) and str(batch.to_pydict()) == str(before)


def test_74_old_pyarrow_is_refused_by_version() -> None:
    """CVE-2023-47248: reading files with pyarrow below 14.0.1 may run code in them."""
    text = (ROOT / "setup.py").read_text()
    [least] = re.findall(r"pyarrow>=(\d+)", text)
    assert int(least) >= 15
