"""The flags of the jobs. They make a mapping, which `description` checks.

Flags are for what people use every day. All else is in the mapping, in a file that `--config`
names. What is in that file cannot be said again by a flag.
"""

import argparse
import contextlib
import dataclasses
import difflib
import functools
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NoReturn

from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

import beam_dp as dp
from beam_dp.beam_yaml.mappings import keys_of, number, statement_of
from beam_dp.mechanisms.metrics import REGISTRY
from beam_dp.transforms.io.formats import FORMATS
from beam_dp.transforms.stages import noise_off
from pipelines import description, messages, stopping

_ALIKE = 0.7
_SAME = {
    "--dry-run": "--plan",
    "--clip": "--sum spent,clip=100",
    "--where": '--query "SELECT * FROM rows WHERE city IS NOT NULL"',
}
_HELP = ("-h", "--help")
_WIDTH = 110
STATEMENT = re.compile(r"\s*(select|with|from\s.*\sselect)\s", re.IGNORECASE | re.DOTALL)
_BARE = re.compile(r"argument (--\w+): expected one argument")
_NEXT_OPTION = re.compile(r",\s*(?=\w+=)")
_WORDS = {"true": True, "false": False}
_EVERYDAY = {
    "count": "number of rows",
    "people_count": "number of people",
    "sum": "sum of a column, clipped at a privately chosen bound; clip=100: at a known one",
    "mean": "mean over rows; per=person: of people's totals; own_count=true skips empty cells",
    "max": "largest value of a column; low=0, high=120: known ends",
    "min": "smallest value",
    "median": "the value in the middle of the rows; per=person: of the people",
    "quantile": "value with a share p of the rows at or below: minutes,p=0.9",
    "histogram": "people with a value from each edge to below the next: age,edges=0..100..10",
    "ratio": "share of the rows with a value: clicked,equals=yes",
}
# An option without words is not in the help, but in the words of another, or of the docs.
_SWITCHES = {
    "overwrite": "replace an output and a page that exist",
    "plan": "print the costs and expected errors; read no row",
    "nonnegative": "",
    "quiet": "do not print the stages; warnings and errors are still shown",
    "show_mapping": "",
    "show_errors": "show the error of a run that fails: IT MAY QUOTE DATA",
}
_VALUES = {
    "select": ("SQL", ""),
    "config": ("FILE", "a mapping in YAML, with all of these and more: docs/how_to/yaml.md"),
    "input": ("FILES", f"{', '.join(FORMATS)}: a path, a glob, several with commas between"),
    "query": (
        "SQL",
        "for each row: SELECT a, b*2 AS b FROM rows WHERE c > 0; --numbers a,b (CSV)",
    ),
    "numbers": ("COLUMNS", ""),
    "decimal": ("SIGN", "decimal sign in CSV: , or .; also --thousands . --encoding latin-1"),
    "thousands": ("SIGN", ""),
    "encoding": ("NAME", ""),
    "output": ("FILE", "a file of one of these types, written whole or not at all"),
    "report": (
        "PAGE",
        "also write a page, as a.html (extra: report). --title TEXT, --number_style 1.234,5",
    ),
    "title": ("TEXT", ""),
    "number_style": ("1,234.5", ""),
    "person": ("COLUMN", "who a person is; a,b: a row has 2 to 8 owners (for days see --period)"),
    "period": (
        "COLUMN",
        "for example day: protect one person's rows of one day, instead of all their rows",
    ),
    "partition": (
        "COLUMN",
        "columns, with commas, whose values name a partition; left out: one partition",
    ),
    "public_partitions": ("KEYS", "keys to release: 1,2,3, or de/2024,fr/2024, or @FILE"),
    "bounds": ("NAME=N,...", "limits for one person: partitions=3,rows_per_partition=10,rows=20"),
    "epsilon": ("E", "the budget for everything together, for example 1; a release needs it"),
    "delta": ("D", "default 0; for private partitions, well below 1 / people: 1e-6"),
    "totals": ("apart", ""),
    "ledger": (
        "FILE",
        "charge this run to a ledger of all runs; a new one needs --total_epsilon E",
    ),
    "ledger_period": ("P", "count rows of these periods only: 2026-11-22, or FROM..TO of dates"),
    "total_epsilon": ("E", ""),
    "total_delta": ("D", ""),
}
_OF_SELECT = ("input", "query", "partition")
"""What a SELECT says."""
_SUPPRESS = "leave out numbers: 'beyond 25%%', 'people_count < 100', 'unreliable'; --nonnegative"
_ALSO_BY = "also release the table by these columns; total: of all rows. --totals apart"
_LIMIT = re.compile(r"beyond (?P<percent>[\d.]+) ?%|(?P<name>\w+) ?< ?(?P<least>\S+)|unreliable")
_UNIT = ("period", "ledger_period")
_AS_THEY_ARE = (
    *("input", "output", "report", "title", "number_style", "overwrite", "nonnegative", "metrics"),
    *("query", "decimal", "thousands", "encoding", "also_by", "totals", *_UNIT),
    "select",
)


class _Once(argparse.Action):
    """Refuse a second value: the last one would be taken in silence."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "must be given once: leave one of the two out")
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """A parser that says in one line what is wrong with a call, and exits with 2."""

    def error(self, message: str) -> NoReturn:
        """Exit with one line."""
        if bare := _BARE.fullmatch(message):
            action = self._option_string_actions.get(bare[1])  # None: an option of Beam
            value = action.metavar if action else "VALUE"
            message = f"{bare[1]} must have a value: {bare[1]} {value}"
        self.exit(2, f"{self.prog}: error: {' '.join(message.split())}\n")

    @contextlib.contextmanager
    def refusing(self, config: str | None = None) -> Iterator[None]:
        """Turn errors of building a release, which name parameters only, into one line.

        Args:
            config: the file of the mapping, if there is one.
        """
        try:
            yield
        except (TypeError, ValueError, OSError) as error:
            self.error(messages.said(error, in_file=bool(config)))

    def only(self, words: Sequence[str] | None) -> argparse.Namespace:
        """Return the options of a job that has none of Beam."""
        options, left = self.parse_known_args(words)
        self._refuse(left, left, ())
        return options

    def read(self, words: Sequence[str] | None) -> tuple[argparse.Namespace, PipelineOptions]:
        """Return the options of the job and those of Beam; refuse what neither of them knows."""
        if noise_off.applies():
            self.error("a job must not run in without_noise(): what it writes would not be private")
        given = sys.argv[1:] if words is None else words
        at = [*given, "--"].index("--")  # what is behind it is the job server's
        options, left = self.parse_known_args(given[:at])
        parsers: list[argparse.ArgumentParser] = []
        PipelineOptions([]).get_all_options(add_extra_args_fn=parsers.append)
        [beams] = parsers
        beams.allow_abbrev = False
        vars(beams)["error"] = self.error
        self._refuse(beams.parse_known_args(left)[1], given, beams._option_string_actions)
        made = PipelineOptions([*left, *given[at + 1 :]])
        FileSystems.set_options(made)  # files are read before there is a pipeline
        return options, made

    def _refuse(self, left: Sequence[str], given: Sequence[str], further: Iterable[str]) -> None:
        """Refuse words that no parser knows, with what may be meant.

        Args:
            left: the words.
            given: all words of the call.
            further: the options of Beam.
        """
        for word in left:
            name = word.partition("=")[0]
            if not name.startswith("-"):
                before = given[max(given.index(word) - 1, 0)].rstrip(",")
                whole = f"a value has no spaces, as {before},{word}, or stands in quotes"
                if word.endswith(tuple(FORMATS)):
                    whole = f"write --input {word}"
                if STATEMENT.match(word):
                    whole = "beam-dp select takes it, or write --select before it"
                self.error(f"unrecognized argument: {word}: {whole}")
            known = [*self._option_string_actions]
            known = [each for each in known if each.startswith(name)] or [*known, *further]
            known = [each for each in known if each not in _HELP]
            near = _SAME.get(name) or next(
                iter(difflib.get_close_matches(name, known, 1, _ALIKE)), ""
            )
            meant = f"did you mean {near}?" if near else "--help lists those of the job"
            self.error(f"unrecognized argument: {name}, {meant}")


def alone(program: str, description: str | None, usage: str = "[options]") -> Parser:
    """Return a parser of a job without Beam."""
    FileSystems.set_options(PipelineOptions([]))
    return Parser(
        " ".join([sys.argv[0], *program.split()[1:]])
        if stopping.is_command()
        else f"python -m pipelines.{program}",
        usage=f"%(prog)s {usage}",
        description=description,
        formatter_class=functools.partial(
            argparse.RawDescriptionHelpFormatter, max_help_position=30, width=_WIDTH
        ),
        allow_abbrev=False,
    )


def parser(program: str, description: str | None, has_metrics: bool = True) -> Parser:
    """Return a parser of a job that releases.

    Args:
        program: its name.
        description: what it does.
        has_metrics: whether each metric has a flag.
    """
    usage = "[--config FILE] --input FILES --output FILE ... [options of Beam]"
    made = alone(program, description, usage)
    version = f"beam_dp {dp.__version__}"
    made.add_argument(
        "--version", action="version", version=version, help="print the version, and exit"
    )
    for name, says in _SWITCHES.items():
        made.add_argument(f"--{name}", action="store_true", help=says or argparse.SUPPRESS)
    for name, (metavar, says) in _VALUES.items():
        kind = _pairs_of if metavar.startswith("NAME=") else str
        says = argparse.SUPPRESS if name in _OF_SELECT and not has_metrics else says
        says = says or argparse.SUPPRESS
        made.add_argument(f"--{name}", metavar=metavar, help=says, action=_Once, type=kind)
    made.add_argument("--suppress", metavar="RULE", help=_SUPPRESS, action="append", type=_rule_of)
    by = _ALSO_BY if has_metrics else argparse.SUPPRESS
    made.add_argument("--also_by", metavar="COLUMN", help=by, action="append", type=_columns)
    made.set_defaults(metrics=[])
    if not has_metrics:
        return made
    others = ", ".join(word for word in REGISTRY if word not in _EVERYDAY)
    about = f"with their options, as --sum spent,clip=100. Also {others}"
    title, about = "metrics, in the order of the output", textwrap.fill(about, _WIDTH - 2)
    group = made.add_argument_group(title, about)
    for word in sorted(REGISTRY, key=[*_EVERYDAY, *REGISTRY].index):
        form: dict[str, Any] = {"help": _EVERYDAY.get(word, argparse.SUPPRESS), "dest": "metrics"}
        if any(field.name == "column" for field in dataclasses.fields(REGISTRY[word])):
            kind = functools.partial(metric, word)
            form |= {"action": "append", "type": kind, "metavar": "COLUMN"}
        else:
            form |= {"action": "append_const", "const": {word: None}}
        group.add_argument(f"--{word}", **form)
    return made


def metric(word: str, text: str) -> dict[str, Any]:
    """Return the mapping of a metric of what stands behind its flag: COLUMN,OPTION=VALUE,..."""
    column, *options = _NEXT_OPTION.split(text)
    return {word: column, **_pairs(options)}


def _columns(text: str) -> list[str] | str:
    """Return the columns as a mapping has them: one alone, or a list."""
    columns = _listed(text)
    return columns if len(columns) > 1 else columns[0]


def _rule_of(text: str) -> dict[str, Any]:
    """Return a part of the mapping `suppress`."""
    found = _LIMIT.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"must be 'beyond 25%', as one, not {text!r}")
    if found["percent"]:
        return {"beyond": number(found["percent"]) / Fraction(100)}
    return {"below": {found["name"]: number(found["least"])}} if found["name"] else {}


def _pairs_of(text: str) -> dict[str, Any]:
    return _pairs(_NEXT_OPTION.split(text), ": write --bounds partitions=3")


def file(text: str) -> str:
    """Return the path of a file; refuse a SELECT."""
    if STATEMENT.match(text):
        raise argparse.ArgumentTypeError("must be files, and a SELECT stands behind --select")
    return text


def _pairs(words: Sequence[str], hint: str = "") -> dict[str, Any]:
    """Return the names and values of NAME=VALUE; a value with commas is a list."""
    pairs: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        if not value or name in pairs:
            rule = f"must be NAME=VALUE, each NAME once, not {word!r}{hint}"
            raise argparse.ArgumentTypeError(rule)
        pairs[name] = value.split(",") if "," in value else _WORDS.get(value, value)
    return pairs


def described(options: argparse.Namespace) -> dict[str, Any]:
    """Return the mapping that the flags make, with that of --config.

    Raises:
        ValueError: for what both say, and for words that are none.
    """
    in_file = description.read(options.config) if options.config else {}
    made = _of_flags(vars(options))
    for name in made.keys() & in_file.keys():
        raise ValueError(f"{name} stands in {options.config} too: leave one of the two out")
    both = {**in_file, **made}
    if {"select", "person"} <= {*both} and options.public_partitions is not None:
        by = statement_of("release", both).mapping.get("partition", [""])
        both["partitions"] = _keys_of(options.public_partitions, len(by))
    return both


def _of_flags(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of the mapping that flags say."""
    made: dict[str, Any] = {name: given[name] for name in _AS_THEY_ARE if given[name]}
    for name in ("person", "partition", "numbers"):
        if given[name]:
            made[name] = _columns(given[name])
    keys = given["public_partitions"]
    if keys is not None:
        made["partitions"] = _keys_of(keys, len(_listed(given["partition"] or "")))
    if given["suppress"]:
        made["suppress"] = {name: part for rule in given["suppress"] for name, part in rule.items()}
        least = [rule["below"] for rule in given["suppress"] if "below" in rule]
        if least:
            made["suppress"]["below"] = {name: n for rule in least for name, n in rule.items()}
    if given["bounds"] is not None:
        made["bounds"] = _numbers(given["bounds"])
    limit = _numbers({name: given[f"total_{name}"] for name in ("epsilon", "delta")})
    if budget := _numbers({name: given[name] for name in ("epsilon", "delta")}):
        made["budget"] = budget
    if given["ledger"]:
        made["ledger"] = {"path": given["ledger"], **({"limit": limit} if limit else {})}
    elif limit:
        raise ValueError("--total_epsilon and --total_delta need --ledger FILE")
    return made


def _keys_of(text: str, parts: int) -> Any:
    """Return public keys, each of so many parts, or the file that has them."""
    if text[:1] != "@" and text.endswith(tuple(FORMATS)):
        raise ValueError(f"partitions must be keys, and {text!r} is a file. Write @{text}.")
    return {"files": text[1:]} if text[:1] == "@" else keys_of(text, parts)


def _numbers(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: number(text) for name, text in given.items() if text is not None}


def _listed(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]
