"""The options of statistics of one number per person, which two jobs release."""

import argparse
from collections.abc import Sequence
from typing import Any

from beam_dp.mechanisms.metrics.base import Metric, takes
from beam_dp.mechanisms.numerics.options import PREPROCESSING
from beam_dp.mechanisms.summaries.person_value import PERSON_VALUES
from pipelines.arguments import words


def add(group: argparse._ArgumentGroup) -> None:
    """Add --person_value, --last_by and --sensitivity."""
    value = "what a person's values in a partition become (default mean; of a max or min, that)"
    group.add_argument("--person_value", choices=PERSON_VALUES, help=value)
    last = "for last: the column that says when: numbers, in Parquet also dates and timestamps"
    group.add_argument("--last_by", type=words.column, metavar="COLUMN", help=last)
    delta = "the most that one person may move each statistic; left out: found privately"
    group.add_argument("--sensitivity", type=words.amount, metavar="DELTA", help=delta)


def options_of(metric: Metric, options: argparse.Namespace) -> dict[str, Any]:
    """Return the values of these options that a metric has, and that were given."""
    names = ("person_value", "last_by", "sensitivity")
    values = {name: vars(options)[name] for name in names if _has(metric, name)}
    return {name: value for name, value in values.items() if value is not None}


def _has(metric: Metric, name: str) -> bool:
    return takes(metric, name) and vars(metric).get("method", PREPROCESSING) == PREPROCESSING


def check(options: argparse.Namespace, asked: Sequence[Metric]) -> None:
    """Refuse these options where no metric has them.

    Raises:
        ValueError: names the options, and says what they are for.
    """
    whose = "--trimmed_mean and what python -m pipelines.preprocess releases, as a --variance there"
    preprocessed = any(_has(metric, "sensitivity") for metric in asked)
    if options.sensitivity is not None and not preprocessed:
        raise ValueError(f"--sensitivity is for {whose}")
    others = {"person_value": "--histogram and --black_box", "last_by": "--black_box"}
    for name, other in others.items():
        if vars(options)[name] is not None and not any(_has(metric, name) for metric in asked):
            raise ValueError(f"--{name} is for {whose}, and for {other}")
