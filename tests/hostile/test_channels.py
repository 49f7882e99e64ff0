"""Section J of the table of bad inputs: nothing of a row shows beside the output."""

import dataclasses
import datetime
import io
import itertools
import logging
import tempfile
import traceback
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.coders import registry
from apache_beam.transforms.display import DisplayData

import beam_dp as dp
from tests.hostile import support
from tests.hostile.support import Visit, as_batch, as_dict, as_row

_NUMBERS = itertools.count(739_201_001)


def canary() -> str:
    """Return a secret that occurs nowhere else: digits, so that it can be a number too."""
    return f"{next(_NUMBERS)}"


class Secret:
    """An object whose every text is a secret."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        raise ValueError(self.text)

    __hash__: Any = property(lambda self: int(self.text) / 0)


KINDS: list[Callable[[str], object]] = [
    str, int, float, str.encode, Secret, Decimal, lambda text: "\ud800" + text, lambda text: [text],
    lambda text: {text: text}, lambda text: (text, text), lambda text: int(text + "0" * 90),
    lambda text: Decimal(text + "E+999999"), lambda text: complex(int(text)), lambda text: {text},
    lambda text: np.int64(int(text)), lambda text: np.str_(text), lambda text: np.array([text]),
    lambda text: datetime.datetime(2020, 1, 1, microsecond=int(text) % 10**6),
    lambda text: iter([text]), lambda text: np.datetime64(int(text), "ns"),
]  # fmt: skip
ARRAYS: list[Callable[[str], pa.Array]] = [
    lambda text: pa.array([text]), lambda text: pa.array([text]).dictionary_encode(),
    lambda text: pa.array([int(text)], pa.uint64()), lambda text: pa.array([text], pa.string_view()),
    lambda text: pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 11], np.int32)), pa.py_buffer(b"\xff\xff" + text.encode())]),
    lambda text: pa.array([Decimal(text)], pa.decimal128(20, 0)),
    lambda text: pa.array([int(text)], pa.int32()).cast(pa.date32()),
]  # fmt: skip


TEXTS = pa.string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())


def bad_rows(secrets: list[str], of_text: bool) -> Iterator[object]:
    """Yield rows with a secret of every kind in every field, in every form.

    Args:
        secrets: takes the secrets.
        of_text: whether keys are text: batches with keys of another type are refused then.
    """

    def fresh() -> str:
        secrets.append(canary())
        return secrets[-1]

    for kind, place in itertools.product(KINDS, range(4)):
        for make in (as_dict, as_row, lambda row: Visit(*row)):
            row: list[Any] = ["person", "day", 1.0]
            if place < 3:
                row[place] = kind(fresh())
            yield make(row) if place < 3 else {**as_dict(row), fresh(): kind(fresh())}
    for array, place in itertools.product(ARRAYS, range(2)):
        cells: list[Any] = ["person", "day", 1.0]
        cells[place] = array(fresh())
        if place == 0 or not of_text or cells[1].type in TEXTS:
            yield as_batch(cells)
    yield as_batch(("person", "day", pa.array([Decimal(fresh())], pa.decimal256(60, 0))))
    for kind in KINDS:
        yield kind(fresh())


def transforms() -> dict[str, beam.PTransform]:
    """Return every transform that takes rows; secrets are no public parameters of any of them."""
    bounds, budget = dp.ContributionBounds(2, 2), dp.Budget(0.1, 1e-9)
    return {
        "aggregate": dp.PrivateAggregate(
            "person", [dp.Count(), dp.Sum("value"), dp.Mean("value"), dp.Max("value")], budget, ["day"],
            bounds, dp.PrivatePartitions(pre_threshold=50)),
        "public": dp.PrivateAggregate(
            "person", [dp.PeopleCount()], budget, ["day"], bounds, dp.PublicPartitions(["day"])),
        "inverse": dp.ShiftedInverse(dp.Max("value"), "person", budget),
        "select": dp.SelectPartitions("person", ["day"], budget, bounds, 50),
        "loss": dp.RemovalLoss(dp.Sum("value"), "person", ["day"], 3, bounds),
        "bounding": dp.BoundContributions("person", ["day"], bounds, ["value"]),
    }  # fmt: skip


def nothing(element: Any) -> Iterator[Any]:
    """Look at nothing."""
    return iter(())


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", transforms())
def test_120_121_122_secrets_appear_nowhere(
    name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    secrets: list[str] = []
    shown = [stream]
    try:
        pipeline = beam.Pipeline(runner="FnApiRunner")
        released = support.start(pipeline, bad_rows(secrets, name == "public")) | transforms()[name]
        # Beam writes a sample of all rows to estimate their size; here each is written.
        written = registry.get_coder(released.element_type).encode
        _ = released | beam.Map(written) | "Nothing" >> beam.FlatMap(nothing)
        result = pipeline.run()
        result.wait_until_finish()
        counted = result.metrics().query()
        shown.append(io.StringIO(repr(counted)))
        shown.append(io.StringIO(str(pipeline.to_runner_api())))
    except BaseException:  # whatever was raised, its text is searched, and then it is a failure
        shown.append(io.StringIO(traceback.format_exc()))
        raise
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        out, err = capfd.readouterr()
        files = [path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file()]
        text = "".join([*(part.getvalue() for part in shown), out, err, *files])
        leaked = [secret for secret in secrets if secret in text]
        assert not leaked and len(secrets) > 250
    assert len(stream.getvalue()) > 1000  # DEBUG is on: Beam's own lines are there
    assert not any(counted.values())  # no counters of ours


@pytest.mark.parametrize("name", transforms())
def test_123_display_data_and_labels_are_public_parameters(name: str) -> None:
    transform = transforms()[name]
    public = {field.name for field in dataclasses.fields(transform)} - {"key"}
    assert {item.key for item in DisplayData.create_from(transform).items} <= public
    pipeline = beam.Pipeline(runner="FnApiRunner")
    _ = pipeline | beam.Create([as_dict(("a", "day", 1.0))]) | transform
    labels = [step.unique_name for step in pipeline.to_runner_api().components.transforms.values()]
    ours = [
        label.split("/")[1] for label in labels if label.startswith(f"{type(transform).__name__}/")
    ]
    assert ours and all(label.isidentifier() for label in ours)
