"""Find the sensitivity of a function of your own, before you trust it with noise.

For example, of `my_statistics.mean_age`, which takes an array of counts per bin, on all histograms
of up to 6 people in 4 bins:

    python -m pipelines.sensitivity --function my_statistics:mean_age --bins 4 --people 6 \\
        --output audit.csv --claimed 1

Every histogram and every direction is one piece of work, spread over the workers. The output has
one line per histogram with the local sensitivity there; what is printed is the largest of them, and
the exit code is 1 if it is above --claimed. It is an audit on made-up data, not a release: nothing
here is private, and a function that passes may still be sensitive on larger data.
"""

import argparse
import csv
import math
import sys
from collections.abc import Sequence

import apache_beam as beam

import beam_dp as dp
from beam_dp.mechanisms import sensitivity
from pipelines import terminal
from pipelines.arguments import command, words

_MOST = 1_000_000


def parser() -> command.Parser:
    """Return the command line."""
    made = command.plain("sensitivity", __doc__)
    made.add_argument("--function", required=True, type=words.function, metavar="MODULE:NAME")
    made.add_argument("--bins", required=True, type=words.whole, help="records a person can be")
    made.add_argument("--people", required=True, type=words.whole, help="most people")
    p_help = "the norm of a vector: 1, 2, ..., inf (default 1)"
    made.add_argument("--p", type=norm, default=1, help=p_help)
    made.add_argument("--claimed", type=words.amount, help="exit with 1 if it is more than this")
    made.add_argument("--output", required=True, help="a CSV file, one line per histogram")
    made.add_argument("--overwrite", action="store_true", help="replace an output that exists")
    return made


def norm(text: str) -> float:
    """Return a p from 1 to inf."""
    return math.inf if text == "inf" else float(words.number("1 to inf", lambda p: p >= 1)(text))


def pipeline(options: argparse.Namespace, line: command.Parser, rest: list[str]) -> beam.Pipeline:
    """Return the pipeline: all histograms, their local sensitivities, one file."""
    count = math.comb(options.bins + options.people, options.bins)
    if count > _MOST:
        raise ValueError(f"--bins and --people make {count} histograms, more than {_MOST}")
    made = beam.Pipeline(options=line.for_beam(rest))
    every = list(sensitivity.histograms(options.bins, options.people))
    histograms = made | "Histograms" >> beam.Create(every)
    audited = histograms | "Audit" >> dp.LocalSensitivity(options.function, options.p)
    flat = audited | "Flat" >> beam.Map(_flat)
    columns = ["histogram", "sensitivity"]
    _ = flat | "Write" >> dp.WriteRows(options.output, columns, options.overwrite)
    return made


def _flat(row: beam.Row) -> beam.Row:
    return beam.Row(histogram=" ".join(map(str, row.histogram)), sensitivity=row.sensitivity)


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    line = parser()
    options, rest = line.read(given)
    with line.refusing():
        made = pipeline(options, line, rest)
    terminal.run(made, "Asking the function")
    with open(options.output, newline="") as file:
        rows = list(csv.DictReader(file))
    worst = max(rows, key=lambda row: float(row["sensitivity"]))
    sys.stdout.write(f"largest: {worst['sensitivity']} at {worst['histogram']}\n")
    claimed = math.inf if options.claimed is None else float(options.claimed)
    return int(float(worst["sensitivity"]) > claimed)


if __name__ == "__main__":
    sys.exit(main())
