"""Measure how far the releases are from the truth, on TPC-H at scale 1 and epsilon 1.

    python -m benchmarks.accuracy                          1,000 releases and 20 whole jobs each
    python -m benchmarks.accuracy --runs 100 --jobs 0      a short look

Of the absolute errors two means are shown: that of the middle 60% (the lowest and the highest fifth
cut off) and that of all of them, which a single release that explodes would spoil.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import apache_beam as beam
import numpy as np

import beam_dp as dp
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.histogram_choice.noisy_histogram import Choice
from beam_dp.mechanisms.metrics.base import UNIT
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.summaries import histograms
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from benchmarks import sink, tpch
from benchmarks.tpch import Question

EPSILON = 1.0


def release_errors(question: Question, runs: int, one_sided: bool) -> np.ndarray:
    """Return the absolute errors of independent releases by the library's own release code.

    The summary is made once, by the code of the job; then clips and noise are drawn `runs` times.

    Args:
        question: whose people's own sums are released.
        runs: how many releases are drawn.
        one_sided: the direct release, never above the truth but for beta; else clip, then sum.
    """
    program = program_of(transform(question, one_sided))
    table = contributions_table(question)
    cells = PartitionView.of_all(histograms.summarise(table, program.measures))
    people = None
    if program.shared_measures:
        people = PartitionView.of_all(histograms.summarise_people(table, program.shared_measures))
    true = truth(question)
    drawn = []
    for _ in range(runs):
        clips = program.choose_clips(people, Noise()) if people is not None else ()
        drawn.append(abs(float(released(program, cells, clips)[0]) - true))
    return np.array(drawn)


def released(program: Program, cells: PartitionView, clips: tuple[Choice, ...]) -> np.ndarray:
    """Return what the only metric of a program releases per partition, as the job combines it."""
    drawn = program.release(cells, clips, Noise())
    return program.combine(drawn, program.sums(drawn))[0]


def program_of(aggregate: dp.PrivateAggregate) -> Program:
    """Return what the job would run: its very settings are measured, not a second copy of them."""
    return aggregate._program


def truth(question: Question) -> int:
    """Return the number that is released, without noise."""
    return int(question.contributions.sum())


def contributions_table(question: Question) -> Table:
    """Return what bounding leaves: one line per person, with rows or the sum in units."""
    own = question.contributions.astype(np.int64)
    person = np.arange(len(own), dtype=np.uint64)[None]
    partition = np.zeros((1, len(own)), np.uint64)
    if question.value:
        return Table(person, partition, np.ones(len(own), np.int64), [own * int(1 / UNIT)])
    return Table(person, partition, own, [])


def job_errors(question: Question, runs: int, one_sided: bool) -> np.ndarray:
    """Return the absolute errors of whole jobs that read the rows from Parquet."""
    true = truth(question)
    return np.array([abs(job(question, one_sided) - true) for _ in range(runs)], np.float64)


def job(question: Question, one_sided: bool) -> float:
    """Run the job once and return what it released."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "released.csv"
        with beam.Pipeline(runner="FnApiRunner") as pipeline:
            rows = pipeline | dp.ReadRows(str(question.rows), columns=COLUMNS, numbers=["value"])
            aggregate = transform(question, one_sided)
            name = aggregate.metrics[0].output
            triples = (
                rows | aggregate | beam.Map(lambda row: (row.partition, getattr(row, name), 0))
            )
            triples | sink.WriteTable(str(path))
        with path.open(newline="") as file:
            return float(next(csv.reader(file))[1])


COLUMNS = ["person", "partition", "value"]


def transform(question: Question, one_sided: bool) -> dp.PrivateAggregate:
    """Return the aggregation that answers a question."""
    return dp.PrivateAggregate(
        person="person",
        partition=["partition"],
        metrics=[metric(question, one_sided)],
        bounds=dp.ContributionBounds(partitions=1),
        partitions=dp.PublicPartitions([0]),
        budget=dp.Budget(epsilon=EPSILON),
    )


def metric(question: Question, one_sided: bool) -> dp.Sum | dp.Count:
    """Return the metric that answers a question."""
    if question.value:
        return dp.Sum("value", one_sided=one_sided)
    return dp.Count(one_sided=one_sided)


def middle(errors: np.ndarray) -> float:
    """Return the mean of the errors without the lowest and the highest fifth."""
    fifth = len(errors) // 5
    return float(np.sort(errors)[fifth : len(errors) - fifth].mean())


def line(cells: Iterable[str]) -> str:
    """Return cells as one line of a Markdown table."""
    return f"| {' | '.join(cells)} |\n"


def measured(name: str, release: str, kind: str, errors: np.ndarray) -> str:
    """Return one line of the table of errors."""
    numbers = [middle(errors), float(errors.mean()), float(errors.max())]
    return line([name, release, kind, str(len(errors)), *(f"{number:,.1f}" for number in numbers)])


def report(question: Question, runs: int, jobs: int) -> None:
    """Print the lines of one question: both releases, drawn alone and by whole jobs."""
    for release, one_sided in (("two-phase", False), ("one-sided", True)):
        if runs:
            errors = release_errors(question, runs, one_sided)
            sys.stdout.write(measured(question.name, release, "release", errors))
        if jobs:
            errors = job_errors(question, jobs, one_sided)
            sys.stdout.write(measured(question.name, release, "whole job", errors))
        sys.stdout.flush()


def main(words: Sequence[str] | None = None) -> None:
    """Print the table of errors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000, help="releases drawn from the profiles")
    parser.add_argument("--jobs", type=int, default=20, help="whole jobs from Parquet")
    arguments = parser.parse_args(words)
    heads = ["question", "release", "of", "runs", "middle 60%", "mean of all", "largest"]
    sys.stdout.write(line(heads) + line(["---"] * len(heads)))
    for question in (tpch.COUNT, tpch.SUM):
        report(question, arguments.runs, arguments.jobs)


if __name__ == "__main__":
    main()
