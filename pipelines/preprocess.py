"""Release statistics of one number per person, by sensitivity preprocessing.

For example, the variance and the trimmed mean of what visitors spent per day:

    python -m pipelines.preprocess --input visits.parquet --output released.csv \\
        --person visitor_id --partition day --variance spent --trimmed_mean spent \\
        --epsilon 1 --bounds partitions=3 --public_partitions 1,2,3,4,5,6,7

Each person becomes one number per partition: the mean of their values (for --max the largest, for
--min the smallest, for --sum the total), or what --person_value says.
The statistic is replaced by the nearest one that no person changes by more than Delta, and noise of
that size is added; Delta is chosen privately, or given by --sensitivity in the scale of the
statistic. How far the preprocessed statistic is from the true one is not known: <name>_low and
<name>_high are infinite. A median has <name>_rank_error instead, a number of people.

Where people have an epsilon of their own, in a column of the rows, --person_epsilon names that
column and the public epsilons that may be in it. It takes one --sum, --max, --min or --median, and
the largest of these epsilons as --epsilon:

    python -m pipelines.preprocess --input visits.parquet --output released.csv \\
        --person visitor_id --sum minutes --person_epsilon epsilon=0.5,1,2 --epsilon 2

A function of your own, --black_box COLUMN=MODULE:NAME, is called with blocks of people; a private
median of its answers is released. How far it is from the function of all people is not known.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from beam_dp.mechanisms.metrics import REGISTRY
from beam_dp.mechanisms.metrics.base import Metric, takes
from beam_dp.mechanisms.summaries.person_value import PERSON_VALUES
from beam_dp.transforms.steps.output_rows import shown_name
from pipelines import command_line, releasing


def parser() -> command_line.Parser:
    """Return the command line."""
    made = command_line.parser("preprocess", __doc__)
    command_line.add_metrics(made, _is_of_people)
    group = made.add_argument_group("of people")
    box = "a Python function of a numpy array; its module must be installed on the workers"
    form = "COLUMN=MODULE:NAME"
    group.add_argument(
        "--black_box", dest="metrics", action="append", type=_black_box, metavar=form, help=box
    )
    value = "what a person's values in a partition become (default mean; of a max or min, that)"
    group.add_argument("--person_value", choices=PERSON_VALUES, help=value)
    last = "for last: the column that says when: numbers, in Parquet also dates and timestamps"
    group.add_argument("--last_by", metavar="COLUMN", help=last)
    delta = "the most that one person may move each statistic; left out: found privately"
    group.add_argument("--sensitivity", metavar="DELTA", help=delta)
    own = "the column of each person's own epsilon, and the public ones: epsilon=0.5,1,2"
    group.add_argument("--person_epsilon", metavar="COLUMN=E[,E]", help=own)
    return made


def _is_of_people(kind: type[Metric]) -> bool:
    """Return whether a metric is, or can be, a statistic of one number per person."""
    return takes(kind, "last_by") or kind.of_people is not Metric.of_people


def _black_box(text: str) -> dict[str, str]:
    column, _, function = text.rpartition("=")
    return {"black_box": column, "function": function}


def described(line: command_line.Parser, options: argparse.Namespace) -> dict[str, Any]:
    """Return the mapping that the options make: each statistic by preprocessing."""
    names = ("person_value", "last_by", "sensitivity")
    beside = {name: vars(options)[name] for name in names if vars(options)[name] is not None}
    own = options.person_epsilon is not None
    if own:
        column, _, epsilons = options.person_epsilon.rpartition("=")
        beside |= {"person_epsilon": column, "epsilons": epsilons.split(",")}
        if len(options.metrics) != 1:
            raise ValueError("person_epsilon takes one statistic, as people pay for nothing else")
    unused = set() if own else {*beside}
    made = []
    for asked in options.metrics:
        word = next(iter(asked))
        if not own or not REGISTRY[word].own_epsilons:
            asked = _of_people(word, asked)
        kind = REGISTRY[next(iter(asked))]
        given = {name: value for name, value in beside.items() if own or takes(kind, name)}
        unused -= {*given}
        made.append({**asked, **given})
    for name in unused:
        raise ValueError(f"{name} is for no statistic that is asked for; leave it out")
    options.metrics = made
    return command_line.described(line, options)


def _of_people(word: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Return a metric by preprocessing, if it has several releases."""
    kind = REGISTRY[word]
    if word == "sum":
        raise ValueError("--sum is for --person_epsilon here: pipelines.aggregate has one for all")
    if not takes(kind, "method"):
        return asked
    if takes(kind, "last_by"):
        return {**asked, "method": "preprocessing"}
    metric = kind(**{"column" if name == word else name: value for name, value in asked.items()})
    of = metric.of_people()
    assert of is not None
    value = {"person_value": of.person_value, "name": shown_name(metric)}
    return {"preprocessed": asked[word], "of": of.statistic, **value}


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    return releasing.run(parser(), described, given)


if __name__ == "__main__":
    sys.exit(main())
