"""Options of statistics of one number per person, which two jobs release."""

import argparse
from collections.abc import Sequence

from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.metrics.black_box import BlackBox
from beam_dp.mechanisms.metrics.spread import Preprocessing
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


def options_of(metric: Metric, options: argparse.Namespace) -> dict[str, object]:
    """Return these options for a metric that has them, none for others."""
    if not isinstance(metric, (Preprocessing, BlackBox)):
        return {}
    given = {"person_value": options.person_value, "last_by": options.last_by}
    if isinstance(metric, Preprocessing):
        given["sensitivity"] = options.sensitivity
    return {name: value for name, value in given.items() if value is not None}


def check(options: argparse.Namespace, asked: Sequence[Metric]) -> None:
    """Refuse these options where no metric has them.

    Raises:
        ValueError: with the options, and what they are for.
    """
    whose = "--variance, --standard_deviation, --trimmed_mean and what else is preprocessed"
    preprocessed = any(isinstance(metric, Preprocessing) for metric in asked)
    if options.sensitivity is not None and not preprocessed:
        raise ValueError(f"--sensitivity is for {whose}")
    reduced = preprocessed or any(isinstance(metric, BlackBox) for metric in asked)
    if (options.person_value, options.last_by) != (None, None) and not reduced:
        raise ValueError(f"--person_value and --last_by are for {whose}, and for --black_box")
