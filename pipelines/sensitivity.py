"""Find the sensitivity of a function of your own, before you trust it with noise.

For example, of `my_statistics.mean_age`, which takes an array of counts per bin, on all histograms
of up to 6 people in 4 bins:

    python -m pipelines.sensitivity --function my_statistics:mean_age --bins 4 --people 6 \\
        --output audit.csv --claimed 1

Workers share the histograms. The output has one line per histogram with the local sensitivity
there. The job prints the largest one, the two neighbours that have it, and whether the claim holds;
its exit code is 1 if it does not. This is an audit on made-up data, not a release: nothing here is
private, and a function that passes may still be more sensitive on larger data.
"""

import argparse
import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

import beam_dp as dp
from beam_dp.beam_yaml.mappings import function_of, number_of
from beam_dp.mechanisms import sensitivity
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.sensitivity import gradient
from beam_dp.mechanisms.sensitivity.gradient import Counts
from beam_dp.testing.sensitivity import exceeds
from beam_dp.transforms.io import released_files, whole_files
from pipelines import command_line, messages, running, stopping

_MOST = 1_000_000
_COLUMNS = ["histogram", "sensitivity"]


def asked(x: Any, function: Callable[[Any], Any]) -> Any:
    """Return f(x); errors name the argument: histograms here are made up, so this is safe."""
    try:
        return function(x)
    except messages.KINDS as error:
        raised = " ".join(f"{type(error).__name__} {error}".split())
        rule = f"f must not raise, and at {_written(x)} it did: {raised}"
        raise ValueError(f"LocalSensitivity: {rule}") from error


def parser() -> command_line.Parser:
    """Return the command line."""
    made = command_line.plain("sensitivity", __doc__)
    made.add_argument("--function", required=True, metavar="MODULE:NAME", help="what is audited")
    bins = "kinds of record that a person can be"
    made.add_argument("--bins", required=True, type=int, help=bins)
    made.add_argument("--people", required=True, type=int, help="most people")
    p_help = "the norm of a vector: 1, 2, ..., inf (default 1)"
    made.add_argument("--p", type=float, default=1.0, help=p_help)
    made.add_argument("--claimed", help="exit with 1 if it is more than this")
    made.add_argument("--output", required=True, help="a file, one line per histogram")
    made.flag("--overwrite", "replace an output that exists")
    return made


def pipeline(options: argparse.Namespace, beam_options: PipelineOptions) -> beam.Pipeline:
    """Return the pipeline: all histograms, their local sensitivities, one file."""
    if min(options.bins, options.people) < 1 or not options.p >= 1:
        raise ValueError("--bins and --people must be at least 1, and --p must be 1 to inf")
    count = math.comb(options.bins + options.people, options.bins)
    if count > _MOST:
        raise ValueError(f"--bins and --people make {count} histograms, more than {_MOST}")
    function = function_of("LocalSensitivity", "--function", options.function)
    made = beam.Pipeline(options=beam_options)
    every = list(sensitivity.histograms(options.bins, options.people))
    histograms = made | "Histograms" >> beam.Create(every)
    audited = histograms | "Audit" >> dp.LocalSensitivity(
        functools.partial(asked, function=function), options.p
    )
    flat = audited | "Flat" >> beam.Map(_flat)
    _ = flat | "Write" >> dp.WriteRows(options.output, _COLUMNS, options.overwrite)
    return made


def _flat(row: beam.Row) -> beam.Row:
    return beam.Row(histogram=_written(row.histogram), sensitivity=row.sensitivity)


def _written(x: Sequence[int]) -> str:
    return " ".join(map(str, x))


def steepest(options: argparse.Namespace) -> tuple[Number, Counts, Counts]:
    """Return the largest sensitivity of the output, exactly, and two neighbours that have it."""
    rows = released_files.rows_of(options.output, _COLUMNS)
    worst = max(rows, key=lambda row: float(str(row[1])))
    x = tuple(map(int, str(worst[0]).split()))
    function = function_of("LocalSensitivity", "--function", options.function)
    values = gradient.Values("LocalSensitivity", function)
    norms = {
        move: sensitivity.norm(values.difference(*move), options.p) for move in gradient.moves(x)
    }
    lower, i = max(norms, key=norms.__getitem__)
    return norms[lower, i], lower, gradient.step(lower, i, 1)


def _readable(number: Number) -> str:
    return str(number) if number <= sys.float_info.max else "inf"


def main(given: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    line = parser()
    options, beam_options = line.read(given)
    with stopping.cleaning(functools.partial(whole_files.remove_unfinished, options.output)):
        with line.refusing():
            claimed = options.claimed
            if claimed is not None:
                claimed = number_of("LocalSensitivity", "--claimed", claimed)
            made = pipeline(options, beam_options)
        running.run(made, "Asking the function", options.show_errors, quiet=options.quiet)
    if not FileSystems.exists(options.output):  # a template was written, no job has run
        return 0
    largest, *pair = steepest(options)
    between = " and ".join(map(_written, pair))
    sys.stdout.write(f"largest: {_readable(largest)}, between {between}\n")
    if claimed is None:
        return 0
    refuted = exceeds(largest, claimed)
    verdict = "is refuted" if refuted else "holds on these histograms"
    sys.stdout.write(f"the claim of {float(claimed)} {verdict}\n")
    return int(refuted)


if __name__ == "__main__":
    sys.exit(main())
