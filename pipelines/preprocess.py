"""Release statistics of one number per person, by sensitivity preprocessing.

For example, the variance and the trimmed mean of what visitors spent per day:

    python -m pipelines.preprocess --input visits.parquet --output released.csv \\
        --person visitor_id --partition day --variance spent --trimmed_mean spent \\
        --epsilon 1 --bounds partitions=3 --public_partitions 1,2,3,4,5,6,7

Each person becomes one number per partition: the mean of their values (for --max the largest, for
--min the smallest), or what --person_value says.
The statistic is replaced by the closest one that no person moves by more than Delta, and noise of
that size is added; Delta is found privately, or given by --sensitivity in the scale of the
statistic. How far the preprocessed statistic is from the true one is not known: <name>_low and
<name>_high are infinite. A median has <name>_rank_error instead, a number of people.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from beam_dp.beam_yaml.mappings import metric_of
from beam_dp.mechanisms.metrics import REGISTRY
from beam_dp.mechanisms.metrics.base import Metric, OfPersonValues
from beam_dp.mechanisms.summaries.person_value import PERSON_VALUES
from beam_dp.transforms.stages.output_names import shown_name
from pipelines import command_line, releasing


def parser() -> command_line.Parser:
    """Return the command line."""
    made = command_line.parser("preprocess", __doc__)
    command_line.add_metrics(made, _is_of_people)
    value = "what a person's values in a partition become (default mean; of a max or min, that)"
    made.add_argument("--person_value", choices=PERSON_VALUES, help=value)
    delta = "the most that one person may move each statistic; left out: found privately"
    made.add_argument("--sensitivity", metavar="DELTA", help=delta)
    return made


def _is_of_people(kind: type[Metric]) -> bool:
    """Return whether a metric is, or can be, a statistic of one number per person."""
    return issubclass(kind, OfPersonValues) or kind.of_people is not Metric.of_people


def described(options: argparse.Namespace) -> dict[str, Any]:
    """Return the mapping that the options make: each statistic by preprocessing."""
    names = ("person_value", "sensitivity")
    beside = {name: vars(options)[name] for name in names if vars(options)[name] is not None}
    if beside and not options.metrics:
        raise ValueError(f"--{next(iter(beside))} needs a statistic beside it")
    options.metrics = [{**_of_people(asked), **beside} for asked in options.metrics]
    return command_line.described(options)


def _of_people(asked: dict[str, Any]) -> dict[str, Any]:
    """Return a metric by preprocessing, if it has several releases."""
    [(word, column)] = [each for each in asked.items() if each[0] in REGISTRY]
    kind = REGISTRY[word]
    if issubclass(kind, OfPersonValues):
        return asked
    metric = metric_of("preprocess", asked)
    of = metric.of_people()
    assert of is not None
    value = {"person_value": of.person_value, "name": shown_name(metric)}
    return {"preprocessed": column, "of": of.statistic, **value}


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    return releasing.run(parser(), described, given)


if __name__ == "__main__":
    sys.exit(main())
