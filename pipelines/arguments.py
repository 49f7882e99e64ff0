"""The command line that the jobs share: rows, people, partitions, budget."""

import argparse
import contextlib
import dataclasses
import difflib
import functools
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NoReturn

from apache_beam.io.filesystems import FileSystems

import beam_dp as dp

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_COLUMN_METRICS = {
    "sum": (dp.Sum, "sum of a column, clipped at a privately chosen bound"),
    "max": (dp.Max, "value that nearly nobody exceeds"),
    "min": (dp.Min, "value that nearly nobody is below"),
    "mean": (dp.Mean, "mean of a column over rows"),
}
# A flag that is this close to one of ours is a typing error, not an option of Beam.
_ALIKE = 0.85


class Parser(argparse.ArgumentParser):
    """A parser that says in one line what is wrong with a call, and exits with 2."""

    def error(self, message: str) -> NoReturn:
        """Exit with one line."""
        self.exit(2, f"{self.prog}: error: {' '.join(message.split())}\n")

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn the errors of building a release, which name parameters only, into one line."""
        try:
            yield
        except (TypeError, ValueError, OSError) as error:
            self.error(str(error))

    def read(self, words: Sequence[str] | None) -> tuple[argparse.Namespace, list[str]]:
        """Return the job's own options, and those that are left for Beam."""
        given = sys.argv[1:] if words is None else words
        options, rest = self.parse_known_args(list(self._without_values(given)))
        flags = [flag for action in self._actions for flag in action.option_strings]
        if rest and not rest[0].startswith("--"):
            self.error(f"unrecognized argument: {rest[0]}")
        for word in rest:
            alike = difflib.get_close_matches(word.partition("=")[0], flags, 1, _ALIKE)
            if word.startswith("--") and alike:
                self.error(f"unrecognized option: {word}, did you mean {alike[0]}?")
        return options, rest

    def _without_values(self, words: Sequence[str]) -> Iterator[str]:
        """Turn flags that are written as name=true, as templates give them, into plain flags."""
        flags = {
            name for action in self._actions if action.nargs == 0 for name in action.option_strings
        }
        for word in words:
            name, _, value = word.partition("=")
            if name not in flags or value.lower() not in ("true", "false"):
                yield word
            elif value.lower() == "true":
                yield name


def parser(program: str, description: str) -> Parser:
    """Return a parser with the options that say whose rows are read and how they are bounded."""
    made = Parser(
        f"python -m pipelines.{program}",
        description=description,
        epilog="Every other option goes to Beam: --runner, --temp_location, ...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_files(made.add_argument_group("files: .parquet, .csv or .jsonl"))
    _add_people(made.add_argument_group("people and partitions"))
    return made


def _add_files(files: argparse._ArgumentGroup) -> None:
    files.add_argument(
        "--input", type=patterns, help="a path, a glob, or several with commas between"
    )
    files.add_argument("--output", help="one file, written whole or not at all")
    files.add_argument("--overwrite", action="store_true", help="replace an output that exists")


def _add_people(people: argparse._ArgumentGroup) -> None:
    people.add_argument("--person", required=True, help="the column that identifies a person")
    people.add_argument(
        "--partition",
        action="extend",
        type=listed,
        default=[],
        metavar="COLUMN[,COLUMN]",
        help="columns whose values name a partition; left out: all rows are one partition",
    )
    people.add_argument(
        "--public_partitions",
        metavar="KEYS",
        help="keys with commas between, or @FILE with one per line; several columns: parts with / "
        "between. All are released, empty ones too. They must not come from the data",
    )
    bound = "most {} of one person; more is cut by a keyed hash"
    limits = (
        ("partitions", "partitions"),
        ("rows_per_partition", "rows per partition"),
        ("rows",) * 2,
    )
    for name, words in limits:
        people.add_argument(f"--max_{name}", type=int, metavar="N", help=bound.format(words))


def number(text: str) -> Fraction:
    """Return a decimal number exactly: 0.1 is one tenth."""
    return Fraction(repr(float(text)))


def weights(text: str) -> dict[str, Fraction]:
    """Return the weights in NAME=NUMBER[,NAME=NUMBER]."""
    pairs = [word.rpartition("=") for word in listed(text)]
    return {name: number(weight) for name, _, weight in pairs}


def patterns(text: str) -> str:
    """Return paths and globs with commas between; Beam matches no glob without a directory."""
    return ",".join(word if "/" in word else f"./{word}" for word in listed(text))


def listed(text: str) -> list[str]:
    """Return the words of a list with commas between."""
    return [word.strip() for word in text.split(",")]


def bounds(options: argparse.Namespace) -> dp.ContributionBounds:
    """Return how much of the data one person may reach."""
    return dp.ContributionBounds(
        options.max_partitions, options.max_rows_per_partition, options.max_rows
    )


def check_files(options: argparse.Namespace) -> None:
    """Refuse missing files, and an output that would replace its own input."""
    if not options.input or not options.output:
        raise ValueError("the following arguments are required: --input, --output")
    if os.path.normpath(options.output) in map(os.path.normpath, listed(options.input)):
        raise ValueError("--output must name another file than --input")


def public_partitions(options: argparse.Namespace) -> dp.PublicPartitions | None:
    """Return the public keys that the command line names, None if it names none.

    A column whose keys are all plain decimal integers has integer keys; they match text in the data
    too ("1" in a CSV file is the key 1), so only the type of the output depends on this.
    """
    text, parts = options.public_partitions, len(options.partition)
    if text is None:
        return None
    words = _lines(text[1:]) if text.startswith("@") else listed(text)
    keys = [word.split("/") if parts > 1 else [word] for word in words if word]
    if len({len(key) for key in keys}) > 1:
        raise ValueError("--public_partitions: every key must have one part per --partition column")
    return dp.PublicPartitions(list(zip(*map(_typed, zip(*keys, strict=True)), strict=True)))


def _lines(path: str) -> list[str]:
    with FileSystems.open(path) as file:
        return file.read().decode().splitlines()


def _typed(parts: Iterable[str]) -> list[object]:
    parts = list(parts)
    return [int(part) for part in parts] if all(map(_INTEGER.fullmatch, parts)) else parts


def add_budget(made: Parser) -> None:
    """Add the options that say what may be spent."""
    budget = made.add_argument_group("budget: for everything that is released together")
    amount = budget.add_mutually_exclusive_group(required=True)
    amount.add_argument("--epsilon", type=number, metavar="E", help="for example 1 or 0.5")
    amount.add_argument("--rho", type=number, metavar="R", help="zCDP instead of epsilon")
    budget.add_argument(
        "--delta",
        type=number,
        default=Fraction(0),
        metavar="D",
        help="default 0: pure epsilon. Needed for private partitions, less noise elsewhere where a "
        "person reaches many; well below 1 / people, for example 1e-6",
    )


def budget(options: argparse.Namespace) -> dp.Budget:
    """Return what may be spent."""
    if options.rho is not None:
        return dp.Budget.zcdp(options.rho, options.delta)
    return dp.Budget(options.epsilon, options.delta)


def add_metrics(made: Parser) -> None:
    """Add the options that say what is released."""
    metrics = made.add_argument_group("metrics: as many as wanted, in the order of the output")
    add = functools.partial(metrics.add_argument, dest="metrics", default=[])
    add("--count", action="append_const", const=dp.Count(), help="number of rows")
    add("--people_count", action="append_const", const=dp.PeopleCount(), help="number of people")
    for name, (metric, words) in _COLUMN_METRICS.items():
        add(f"--{name}", action="append", type=metric, metavar="COLUMN", help=words)
    one_sided = "release counts and sums from below: not above the truth but for 5%%"
    metrics.add_argument("--one_sided", action="store_true", help=one_sided)
    shares = "parts of the budget, by output column: sum_spent=2,count=1 (default 1)"
    metrics.add_argument("--weights", type=weights, default={}, help=shares)


def add_statistic(made: Parser) -> None:
    """Add the options that name one monotone statistic, and its possible outputs."""
    group = made.add_argument_group("statistic: one of")
    one = group.add_mutually_exclusive_group(required=True)
    counted = {"action": "append_const", "const": dp.Count(), "help": "number of rows"}
    one.add_argument("--count", dest="metrics", **counted)
    for name in ("sum", "max", "min"):
        kind = {"type": _COLUMN_METRICS[name][0], "action": "append", "metavar": "COLUMN"}
        one.add_argument(f"--{name}", dest="metrics", **kind)
    words = "the values that may be released, public: 0:1440:1"
    outputs = {"type": candidates, "metavar": "LOW:HIGH:STEP", "help": words}
    group.add_argument("--candidates", required=True, **outputs)
    made.set_defaults(weights={}, one_sided=False)


def candidates(text: str) -> dp.Candidates:
    """Return the possible outputs in LOW:HIGH:STEP."""
    low, high, step = map(number, text.split(":"))
    return dp.Candidates.linear(low, high, step)


def metrics(options: argparse.Namespace) -> list[dp.Count]:
    """Return the metrics with their names, sides and weights."""
    left, found = dict(options.weights), []
    for metric in options.metrics:
        # The names of a schema's fields are words: "Time spent (minutes)" is none.
        name = re.sub(r"\W+", "_", metric.output).strip("_")
        sides = {"one_sided": options.one_sided} if isinstance(metric, (dp.Count, dp.Sum)) else {}
        weight = left.pop(name, 1)
        found.append(dataclasses.replace(metric, name=name, weight=weight, **sides))
    if not found:
        raise ValueError("a metric is required: --count, --people_count, --sum COLUMN, ...")
    if left:
        raise ValueError(f"--weights: there is no metric {min(left)!r}")
    return found
