"""Release statistics of one number per person, by sensitivity preprocessing.

For example, the variance and the trimmed mean of what visitors spent per day:

    python -m pipelines.preprocess --input visits.parquet --output released.csv \\
        --person visitor_id --partition day --variance spent --trimmed_mean spent \\
        --epsilon 1 --bounds partitions=3 --public_partitions 1,2,3,4,5,6,7

Each person becomes one number per partition: the mean of their values (for --max the largest, for
--min the smallest, for --sum the total), or what --person_value says.
The statistic is replaced by the closest one that no person moves by more than Delta, and noise of
that size is added; Delta is found privately, or given by --sensitivity in the scale of the
statistic. How far the preprocessed statistic is from the true one is not known: <name>_low and
<name>_high are infinite. A median has <name>_rank_error instead, a number of people.

Where people have an epsilon of their own, in a column of the rows, --person_epsilon names it and
the public epsilons that may be in it; it takes one --sum, --max, --min or --median, and the
--epsilon of who allows most:

    python -m pipelines.preprocess --input visits.parquet --output released.csv \\
        --person visitor_id --sum minutes --person_epsilon epsilon=0.5,1,2 --epsilon 2

A function of your own, --black_box COLUMN=MODULE:NAME, is asked about blocks of people; a private
median of its answers is released. Its distance from the function of everybody is not known.
"""

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from typing import Any

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric, takes
from beam_dp.mechanisms.metrics.person_epsilon import personalised
from beam_dp.mechanisms.metrics.spread import preprocessed
from beam_dp.transforms.steps.output_rows import shown_name
from pipelines import releasing
from pipelines.arguments import command, forms, metrics, spreads, words

_SAYS = {"sum": "sum, for --person_epsilon only: pipelines.aggregate has one for all others"}


def parser() -> command.Parser:
    """Return the command line."""
    made = command.parser("preprocess", __doc__)
    group = made.add_argument_group("statistics: as many as wanted, in the order of the output")
    for name, kind in metrics.asked_by_flag(_is_of_people).items():
        assert kind.command is not None
        word = forms.plain_form(kind.command.form)
        says = _SAYS.get(name, name.replace("_", " "))
        form: dict[str, Any] = {"type": forms.reader(kind, word), "metavar": word, "help": says}
        group.add_argument(f"--{name}", action="append", dest="asked", default=[], **form)
    box = "a Python function of a numpy array; its module must be installed on the workers"
    form = {
        "type": forms.reader(dp.BlackBox, "COLUMN=MODULE:NAME"),
        "metavar": "COLUMN=MODULE:NAME",
        "help": box,
    }
    group.add_argument("--black_box", action="append", dest="asked", default=[], **form)
    spreads.add(group)
    own = "the column of each person's own epsilon, and the public ones: epsilon=0.5,1,2"
    form = {"type": words.person_epsilon, "metavar": "COLUMN=E[,E]", "help": own}
    group.add_argument("--person_epsilon", **form)
    releasing.add_spending(made)
    return made


def _is_of_people(kind: type[Metric]) -> bool:
    """Return whether a metric is, or can be, a statistic of one number per person."""
    return takes(kind, "last_by") or kind.of_people is not Metric.of_people


def _named(metric: Metric) -> Metric:
    """Return a metric by preprocessing, if it has several releases, with a plain name."""
    chosen = preprocessed(metric) if takes(metric, "method") else metric
    return dataclasses.replace(chosen, name=shown_name(chosen))


def _personalised(options: argparse.Namespace) -> Metric:
    """Return the one statistic, for people with an epsilon of their own."""
    if len(options.asked) > 1:
        raise ValueError("--person_epsilon takes one statistic, as people pay for nothing else")
    [asked] = options.asked
    metric = asked if asked.takes_own_epsilons() else _named(asked)
    if not metric.takes_own_epsilons():
        raise ValueError("--person_epsilon is for --sum, --max, --min and --median")
    names = ("person_value", "last_by", "sensitivity")
    given = {name: vars(options)[name] for name in names if vars(options)[name] is not None}
    column, epsilons = options.person_epsilon
    made = personalised(metric, column, epsilons, given)
    return dataclasses.replace(made, name=shown_name(made))


def transform(options: argparse.Namespace) -> dp.PrivateAggregate:
    """Return the release that the options ask for."""
    if not options.asked:
        raise ValueError("a statistic is required: --mean COLUMN, --variance COLUMN, ...")
    if options.person_epsilon is not None:
        asked = [_personalised(options)]
        spreads.check(options, asked)
        return releasing.transform(options, asked)
    asked = [_named(metric) for metric in options.asked]
    if any(not takes(metric, "person_value") for metric in asked):
        raise ValueError("--sum is for --person_epsilon here: pipelines.aggregate has one for all")
    spreads.check(options, asked)
    chosen = [dataclasses.replace(m, **spreads.options_of(m, options)) for m in asked]
    return releasing.transform(options, chosen)


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    return releasing.run(parser(), transform, given)


if __name__ == "__main__":
    sys.exit(main())
