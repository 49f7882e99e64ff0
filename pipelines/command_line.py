"""The flags of the jobs. They make a mapping, which `description` checks.

Flags are for everyday options. The others are in the mapping alone, in a file that `--config`
names. What is in that file cannot be said again by a flag.
"""

import argparse
import contextlib
import difflib
import functools
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from apache_beam.options.pipeline_options import PipelineOptions

import beam_dp as dp
from beam_dp.beam_yaml.mappings import keys_of, number
from beam_dp.mechanisms.metrics import REGISTRY
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.metrics.ratio import as_written
from beam_dp.transforms.stages import noise_off
from pipelines import description, messages

_ALIKE = 0.7
_RANGE = re.compile(r"(0|[1-9]\d{0,17})\s*(?:-|\.\.|:)\s*(0|[1-9]\d{0,17})")
_COLUMN, _NUMBER = r"(?P<column>[^:].*?)", r":(?:-?inf|[-+.e\d]+)"
_PER = r"(?::(?P<per>row|person))?"
_FORMS = {
    "kth_largest": rf"{_COLUMN}:(?P<k>[^:]*)",
    "quantile": rf"{_COLUMN}:(?P<p>[^:]*){_PER}",
    "quantiles": rf"{_COLUMN}(?P<shares>(?:{_NUMBER})*){_PER}",
    "histogram": rf"{_COLUMN}(?P<edges>(?:{_NUMBER})*)",
    "ratio": rf"(?P<column>[^=:][^=]*?)(?:=(?P<equals>.+?))?{_PER}",
}
"""What stands behind the flags of metrics that have more than a column."""
_OF_OUTPUTS = ("clip", "low", "high", "weight")
_FLAGS = {
    "show_errors": "show the error of a run that fails: IT MAY QUOTE DATA",
    "quiet": "name no stages and show no progress, but warnings and errors",
    "overwrite": "replace an output and a page that exist",
    "plan": "print costs and errors; read no row",
}
_ONCE = {
    "config": ("FILE", "a mapping in YAML, with all of these and more: docs/how_to/yaml.md"),
    "input": ("FILES", ".parquet, .csv or .jsonl: a path, a glob, or several with commas between"),
    "output": ("FILE", "one such file, written whole or not at all"),
    "report": ("PAGE", "a page of charts and tables too: released.html (extra: report)"),
    "person": ("COLUMN", "who a person is; a,b: 2 to 8 owners, a row disappears with any of them"),
    "partition": ("COLUMN[,COLUMN]", "whose values name a partition; without: all rows are one"),
    "public_partitions": ("KEYS", "keys to release: 1,2,3, or de/2024,fr/2024, or @FILE"),
    "epsilon": ("E", "the budget for everything together, for example 1; needed"),
    "rho": ("R", "zCDP instead of epsilon"),
    "delta": ("D", "default 0; for private partitions, well below 1 / people: 1e-6"),
    "ledger": ("FILE", "charge this run, before it starts, to a file that all runs share"),
    "total_epsilon": ("E", "the limit of all runs together, for a new ledger"),
    "total_delta": ("D", "their limit of delta (default 0)"),
    "top_partitions": ("NAME=K", "only the K partitions with the largest NAME: people_count=10"),
}
_REPEATED = {
    "bounds": ("NAME=N", "the most of one person: partitions=3,rows_per_partition=10,rows=20"),
    "clip": ("NAME=N", "what nobody exceeds in a partition: sum_spent=100 (default: chosen)"),
    "low": ("NAME=N", "a known least value of means, extremes, quantiles: max_age=0"),
    "high": ("NAME=N", "a known largest value of these: max_age=120"),
    "weight": ("NAME=N", "parts of the budget: sum_spent=2 (default 1)"),
}


class _Once(argparse.Action):
    """Refuse a second value: the last one would be taken in silence."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "must be given once: leave one of the two out")
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """A parser that says in one line what is wrong with a call, and exits with 2."""

    def error(self, message: str) -> NoReturn:
        """Exit with one line."""
        self.exit(2, f"{self.prog}: error: {' '.join(message.split())}\n")

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn errors of building a release, which name parameters only, into one line."""
        try:
            yield
        except (TypeError, ValueError, OSError) as error:
            self.error(messages.translated(error))

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
        for word in beams.parse_known_args(left)[1]:
            name = word.partition("=")[0]
            known = [*self._option_string_actions, *beams._option_string_actions]
            near = [flag for flag in known if name.startswith("--") and flag.startswith(name)]
            near = near or difflib.get_close_matches(name, known, 1, _ALIKE)
            meant = f"did you mean {near[0]}?" if near else "--help lists those of the job"
            self.error(f"unrecognized argument: {name}, {meant}")
        return options, PipelineOptions([*left, *given[at + 1 :]])


def alone(program: str, description: str | None, usage: str = "[options]") -> Parser:
    """Return a parser of a job without Beam."""
    return Parser(
        f"python -m pipelines.{program}",
        usage=f"%(prog)s {usage}",
        description=description,
        formatter_class=functools.partial(
            argparse.RawDescriptionHelpFormatter, max_help_position=34, width=110
        ),
        allow_abbrev=False,
    )


def parser(program: str, description: str | None) -> Parser:
    """Return a parser of a job that releases, without its metrics."""
    made = alone(program, description, "[--config FILE] --input FILES --output FILE ...")
    made.epilog = "Beam's options may stand beside these; what only a job server knows, behind a --"
    version = f"beam_dp {dp.__version__}"
    made.add_argument("--version", action="version", version=version, help="print it, and exit")
    for name, says in _FLAGS.items():
        made.add_argument(f"--{name}", action="store_true", help=says)
    for name, (metavar, says) in _ONCE.items():
        made.add_argument(f"--{name}", metavar=metavar, help=says, action=_Once)
    for name, (metavar, says) in _REPEATED.items():
        form: dict[str, Any] = {"action": "append", "default": [], "metavar": metavar}
        made.add_argument(f"--{name}", help=says, **form)
    return made


def add_metrics(made: Parser, suits: Callable[[type[Metric]], bool]) -> None:
    """Add the flags of metrics."""
    group = made.add_argument_group("metrics: as many as wanted, in the order of the output")
    for word, kind in REGISTRY.items():
        command = kind.command
        if command is None or not suits(kind):
            continue
        form: dict[str, Any] = {"dest": "metrics", "action": "append", "default": []}
        form["type"] = functools.partial(metric, word, command.form)
        form["help"] = command.help
        if command.form:
            form["metavar"] = command.form
        else:
            form = {"dest": "metrics", "action": "append_const", "const": {word: None}}
            form |= {"default": [], "help": command.help}
        group.add_argument(f"--{word}", **form)


def metric(word: str, form: str, text: str) -> dict[str, Any]:
    """Return the mapping of a metric of what stands behind its flag."""
    plain = _COLUMN + _PER if form.endswith("[:person]") else "(?P<column>.+)"
    found = re.fullmatch(_FORMS.get(word, plain), text, re.DOTALL)
    if found is None:
        raise argparse.ArgumentTypeError(f"must be {form}")
    asked: dict[str, Any] = {name: said for name, said in found.groupdict().items() if said}
    made = {word: asked.pop("column"), **asked}
    for several in asked.keys() & {"shares", "edges"}:
        made[several] = asked[several].split(":")[1:]
    if word == "ratio":
        made["equals"] = as_written(asked.get("equals", "1"))
    return made


def described(options: argparse.Namespace) -> dict[str, Any]:
    """Return the mapping that the flags make, with that of --config.

    Raises:
        ValueError: for what both say, and for words that are none.
    """
    in_file = description.read(options.config) if options.config else {}
    made = _of_flags(options)
    for name in made.keys() & in_file.keys():
        raise ValueError(f"{name} stands in {options.config} too: leave one of the two out")
    return {**in_file, **made}


def _of_flags(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parts of the mapping that flags say."""
    given = vars(options)
    plain = ("input", "output", "report")
    made: dict[str, Any] = {name: given[name] for name in plain if given.get(name)}
    if options.overwrite:
        made["overwrite"] = True
    for name in ("person", "partition"):
        if given[name] is not None:
            columns = _listed(given[name])
            made[name] = columns if len(columns) > 1 or name == "partition" else columns[0]
    if options.public_partitions is not None:
        made["partitions"] = _keys(options.public_partitions, len(made.get("partition", ())))
    amounts = {name: given[name] for name in ("epsilon", "rho", "delta")}
    if any(each is not None for each in amounts.values()):
        made["budget"] = {name: number(each) for name, each in amounts.items() if each is not None}
    if options.bounds:
        made["bounds"] = _pairs("bounds", options.bounds)
    if given.get("top_partitions"):
        name, _, most = given["top_partitions"].rpartition("=")
        made["top_partitions"] = {"by": name, "k": number(most)}
    made |= _ledger(options)
    metrics = given.get("metrics", ())
    chosen = {name: _pairs(name, given[name]) for name in _OF_OUTPUTS if given.get(name)}
    if metrics or chosen:
        made["metrics"] = _with_options(metrics, chosen) if chosen else metrics
    return made


def _listed(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


def _pairs(flag: str, texts: Sequence[str]) -> dict[str, Any]:
    """Return the names and numbers of an option that may be repeated, each name once."""
    pairs: dict[str, Any] = {}
    for word in (word for text in texts for word in _listed(text)):
        name, between, value = word.rpartition("=")
        if not (between and name.strip() and value):
            raise ValueError(f"--{flag} must be NAME=NUMBER, not {word!r}")
        if name.strip() in pairs:
            raise ValueError(f"--{flag}: {name.strip()!r} must be given once")
        pairs[name.strip()] = number(value)
    return pairs


def _keys(text: str, parts: int) -> Any:
    """Return the public keys of a list, or of the file behind an @."""
    if text.startswith("@"):
        return {"files": text[1:]}
    ends = _RANGE.fullmatch(text)
    if ends and int(ends[1]) < int(ends[2]):
        raise ValueError(
            f"--public_partitions names keys, and {text!r} looks like a range: write all of them, "
            "with commas between"
        )
    return keys_of(_listed(text), parts)


def _ledger(options: argparse.Namespace) -> dict[str, Any]:
    limit = {"epsilon": options.total_epsilon, "delta": options.total_delta}
    limit = {name: number(each) for name, each in limit.items() if each is not None}
    if options.ledger is None:
        if limit:
            raise ValueError("--total_epsilon and --total_delta need --ledger FILE")
        return {}
    return {"ledger": {"path": options.ledger, **({"limit": limit} if limit else {})}}


def _with_options(
    metrics: Sequence[dict[str, Any]], chosen: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return metrics with the options of their output columns."""
    made = dict(zip(description.outputs(metrics), metrics, strict=True))
    for option, numbers in chosen.items():
        takes = [name for name, each in made.items() if description.takes(each, option)]
        for name, value in numbers.items():
            if name not in takes:
                which = ", ".join(takes) or "there are none"
                raise ValueError(f"--{option}: {name!r} is no output column that has one: {which}")
            made[name] = {**made[name], option: value}
    return [*made.values()]
