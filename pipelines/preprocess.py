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

import sys
from collections.abc import Sequence
from typing import Any

from beam_dp.beam_yaml.mappings import metric_of
from beam_dp.mechanisms.metrics import REGISTRY
from beam_dp.mechanisms.metrics.base import Metric, takes
from beam_dp.mechanisms.summaries.person_value import PERSON_VALUES
from pipelines import command_line, releasing

_OPTIONS = {
    "person_value": ("NAME", f"what the values of a person become: {', '.join(PERSON_VALUES)}"),
    "sensitivity": ("DELTA", "the most that one person may move it; left out: found privately"),
}


def parser() -> command_line.Parser:
    """Return the command line."""
    suits = lambda kind: takes(kind, "last_by") or kind.of_people is not Metric.of_people
    return command_line.parser("preprocess", __doc__, suits, _OPTIONS)


def _preprocessed(asked: dict[str, Any]) -> dict[str, Any]:
    """Return a metric by preprocessing, if it has several releases."""
    [word] = asked.keys() & REGISTRY.keys()
    if takes(REGISTRY[word], "last_by"):
        return asked
    metric = metric_of("preprocess", asked)
    of = metric.of_people()
    assert of is not None
    options = {name: said for name, said in asked.items() if name != word}
    named = {"name": metric.output, "person_value": of.person_value}
    return {"preprocessed": asked[word], "of": of.statistic, **named, **options}


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    return releasing.run(parser(), given, _preprocessed)


if __name__ == "__main__":
    sys.exit(main())
