"""Release statistics of one number per person, by sensitivity preprocessing.

For example, the variance and the trimmed mean of what visitors spent per day:

    python -m pipelines.preprocess --input visits.parquet --output released.csv \\
        --person visitor_id --partition day --variance spent --trimmed_mean spent \\
        --epsilon 1 --max_partitions 3 --public_partitions 1,2,3,4,5,6,7

Each person becomes one number per partition: the mean of their values (for --max the largest, for
--min the smallest, for --sum the total), or what --person_value says.
The statistic is replaced by the closest one that no person moves by more than Delta, and noise of
that size is added; Delta is found privately, or given by --sensitivity in the scale of the
statistic. <name>_error is a bound on the noise that holds for 95%.

Where people have an epsilon of their own, in a column of the rows, --person_epsilon names it and
the public epsilons that may be in it; it takes one --sum, --max, --min or --median, and the
--epsilon of who allows most:

    python -m pipelines.preprocess --input visits.parquet --output released.csv \\
        --person visitor_id --sum minutes --person_epsilon epsilon=0.5,1,2 --epsilon 2

A function of your own, --black_box COLUMN=MODULE:NAME, is asked about blocks of people; a private
median of its answers is released, and the error is a number of answers.
"""

import argparse
import dataclasses
import sys
from collections.abc import Callable, Sequence

import beam_dp as dp
from beam_dp.mechanisms.metrics import person_epsilon, spread
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.transforms.steps.output_rows import plain_name
from pipelines import releasing
from pipelines.arguments import command, forms, spreads, words

_STATISTICS: dict[str, Callable[[str], Metric]] = {
    "sum": dp.Sum,
    "mean": dp.Mean,
    "median": dp.Median,
    "max": dp.Max,
    "min": dp.Min,
    "variance": dp.Variance,
    "standard_deviation": dp.StandardDeviation,
    "trimmed_mean": forms.trimmed_mean,
}


_SAYS = {"sum": "sum, for --person_epsilon only: pipelines.aggregate has one for all others"}


def parser() -> command.Parser:
    """Return the command line."""
    made = command.parser("preprocess", __doc__)
    group = made.add_argument_group("statistics: as many as wanted, in the order of the output")
    for name, made_of in _STATISTICS.items():
        word = "COLUMN[:SHARE]" if name == "trimmed_mean" else "COLUMN"
        says = _SAYS.get(name, name.replace("_", " "))
        form = {"type": _reader(made_of), "metavar": word, "help": says}
        group.add_argument(f"--{name}", action="append", dest="asked", default=[], **form)
    box = "a Python function of a numpy array; its module must be installed on the workers"
    form = {"type": forms.black_box, "metavar": "COLUMN=MODULE:NAME", "help": box}
    group.add_argument("--black_box", action="append", dest="asked", default=[], **form)
    spreads.add(group)
    own = "the column of each person's own epsilon, and the public ones: epsilon=0.5,1,2"
    form = {"type": words.person_epsilon, "metavar": "COLUMN=E[,E]", "help": own}
    group.add_argument("--person_epsilon", **form)
    releasing.add_spending(made)
    return made


def _reader(made: Callable[[str], Metric]) -> Callable[[str], Metric]:
    def read(text: str) -> Metric:
        metric = made(words.column(text))
        if spread.has_method(metric):
            metric = spread.preprocessed(metric)
        return dataclasses.replace(metric, name=plain_name(metric.output))

    return read


def _personalised(options: argparse.Namespace) -> Metric:
    """Return the one statistic, for people with an epsilon of their own."""
    if len(options.asked) > 1:
        raise ValueError("--person_epsilon takes one statistic, as people pay for nothing else")
    [metric] = options.asked
    if isinstance(metric, dp.Preprocessed) and metric.of == "median":  # here it is searched
        metric = dp.Median(metric.column, name=metric.name)
    names = ("person_value", "last_by", "sensitivity")
    given = {name: vars(options)[name] for name in names if vars(options)[name] is not None}
    return person_epsilon.personalised(metric, *options.person_epsilon, given)


def transform(options: argparse.Namespace) -> dp.PrivateAggregate:
    """Return the release that the options ask for."""
    if not options.asked:
        raise ValueError("a statistic is required: --mean COLUMN, --variance COLUMN, ...")
    if options.person_epsilon is not None:
        asked = [_personalised(options)]
        spreads.check(options, asked)
        return releasing.transform(options, asked)
    if any(isinstance(metric, dp.Sum) for metric in options.asked):
        raise ValueError("--sum is for --person_epsilon here: pipelines.aggregate has one for all")
    spreads.check(options, options.asked)
    asked = [
        dataclasses.replace(metric, **spreads.options_of(metric, options))
        for metric in options.asked
    ]
    return releasing.transform(options, asked)


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    return releasing.run(parser(), transform, given)


if __name__ == "__main__":
    sys.exit(main())
