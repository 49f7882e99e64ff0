"""A release is one draw on every runner, for all who read it, whatever fails on the way."""

import contextlib
import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

import beam_dp as dp

# At this scale two draws are equal with probability below 2^-19 each: of 8 partitions below 2^-150.
FAINT = dp.Budget(2.0**-20)
DAYS = ["a", "b", "é", 7, -1, True, datetime.date(2020, 1, 2), 1 << 40]
VISITS = [{"person": n, "day": DAYS[n % 8], "value": 1.0} for n in range(160)]
# Of 400 partitions with one person each every one is kept by itself, with probability 0.3: two draws
# keep the same ones with probability 0.58^400 < 2^-310. One draw keeps more than 190 with probability
# below e^(-400 KL(0.475, 0.3)) < 3e-12 (Chernoff); two keep 204 together on average.
ONE_EACH = [{"person": n, "day": DAYS[n % 6] if n < 6 else n} for n in range(400)]
FAILURES = 2


def counts() -> dp.PrivateAggregate:
    metrics = [dp.PeopleCount(), dp.Sum("value")]
    public = dp.PublicPartitions([str(day + 0 if isinstance(day, int) else day) for day in DAYS])
    return dp.PrivateAggregate("person", metrics, FAINT, ["day"], partitions=public)


def selected() -> dp.SelectPartitions:
    return dp.SelectPartitions("person", ["day"], dp.Budget(1, 0.3), dp.ContributionBounds(1))


RELEASES: dict[str, Any] = {"public": (counts, VISITS), "private": (selected, ONE_EACH)}
AT_MOST = {"public": len(DAYS), "private": 190}


class Note(beam.DoFn):
    """Write down what is read, at once: what a reader has shown stays shown if its bundle fails."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def process(self, row: Any) -> Iterator[Any]:
        with self._path.open("a") as notes:
            notes.write(f"{tuple(row)}\n")
        yield row


class Fail(beam.DoFn):
    """Fail at one row of each of the first attempts."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def process(self, row: Any) -> Iterator[Any]:
        done = len(list(self._directory.glob("attempt*")))
        if done < FAILURES:
            (self._directory / f"attempt{done}").touch()
            raise RuntimeError
        yield row


def read_twice(options: PipelineOptions, name: str, first: Path, second: list[Any]) -> None:
    """Release; one reader notes at once, the other is behind a shuffle of its own."""
    transform, rows = RELEASES[name]
    with beam.Pipeline(options=options) as pipeline:
        found = pipeline | beam.Create(rows) | transform()
        _ = found | "First" >> beam.ParDo(Note(first))
        shuffled = found | "Shuffle" >> beam.Reshuffle()
        for place, step in enumerate(second):
            shuffled = shuffled | f"Second {place}" >> beam.ParDo(step)


@pytest.mark.parametrize("name", RELEASES)
def test_two_readers_see_one_draw(
    name: str, pipeline_options: PipelineOptions, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    read_twice(pipeline_options, name, first, [Note(second)])
    assert set(notes_of(first)) == set(notes_of(second))
    assert len(set(notes_of(first))) > 7


@pytest.mark.parametrize("name", RELEASES)
def test_what_a_failed_reader_saw_is_the_same_draw(
    name: str, pipeline_options: PipelineOptions, tmp_path: Path
) -> None:
    """A runner that tries again shows no other draw; one that does not fails, which is as good."""
    first, second = tmp_path / "first", tmp_path / "second"
    finished = False
    with contextlib.suppress(RuntimeError):
        read_twice(pipeline_options, name, first, [Note(second), Fail(tmp_path)])
        finished = True
    assert list(tmp_path.glob("attempt*"))
    seen = [notes_of(path) for path in (first, second) if path.exists()]
    assert len({note for notes in seen for note in notes}) <= AT_MOST[name]
    if finished:
        assert set(seen[0]) == set(seen[1])


def notes_of(path: Path) -> list[str]:
    return path.read_text().splitlines()
