"""Release statistics of one number per person, by sensitivity preprocessing.

For example, the variance and the trimmed mean of what visitors spent per day:

    python -m pipelines.preprocess --input visits.parquet --output released.csv \\
        --person visitor_id --partition day --variance spent --trimmed_mean spent \\
        --epsilon 1 --max_partitions 3 --public_partitions 1,2,3,4,5,6,7

Each person becomes one number per partition: the mean of their values (for --max the largest, for
--min the smallest), or what --person_value says.
The statistic is replaced by the closest one that no person moves by more than Delta, and noise of
that size is added; Delta is found privately, or given by --sensitivity in the scale of the
statistic. <name>_error is a bound on the noise that holds for 95%.

A function of your own, --black_box COLUMN=MODULE:NAME, is asked about blocks of people; a private
median of its answers is released, and the error is a number of answers.
"""

import argparse
import dataclasses
import sys
from collections.abc import Callable, Sequence

import beam_dp as dp
from beam_dp.mechanisms import methods
from beam_dp.mechanisms.metrics import Metric
from beam_dp.transforms.rows import plain_name
from pipelines import releasing
from pipelines.arguments import command, forms, spreads, words

_STATISTICS: dict[str, Callable[[str], Metric]] = {
    "mean": dp.Mean,
    "median": dp.Median,
    "max": dp.Max,
    "min": dp.Min,
    "variance": dp.Variance,
    "standard_deviation": dp.StandardDeviation,
    "trimmed_mean": forms.trimmed_mean,
}


def parser() -> command.Parser:
    """Return the command line."""
    made = command.parser("preprocess", __doc__)
    group = made.add_argument_group("statistics: as many as wanted, in the order of the output")
    for name, made_of in _STATISTICS.items():
        word = "COLUMN[:SHARE]" if name == "trimmed_mean" else "COLUMN"
        form = {"type": _reader(made_of), "metavar": word, "help": name.replace("_", " ")}
        group.add_argument(f"--{name}", action="append", dest="asked", default=[], **form)
    box = "a Python function of a numpy array; its module must be installed on the workers"
    form = {"type": forms.black_box, "metavar": "COLUMN=MODULE:NAME", "help": box}
    group.add_argument("--black_box", action="append", dest="asked", default=[], **form)
    spreads.add(group)
    releasing.add_spending(made)
    return made


def _reader(made: Callable[[str], Metric]) -> Callable[[str], Metric]:
    def read(text: str) -> Metric:
        metric = made(words.column(text))
        if methods.has_method(metric):
            metric = methods.preprocessed(metric)
        return dataclasses.replace(metric, name=plain_name(metric.output))

    return read


def transform(options: argparse.Namespace) -> dp.PrivateAggregate:
    """Return the release that the options ask for."""
    if not options.asked:
        raise ValueError("a statistic is required: --mean COLUMN, --variance COLUMN, ...")
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
