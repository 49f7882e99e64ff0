"""The flags of the jobs. They make a mapping, which `description` checks.

Flags are for everyday options. The others are in the mapping alone, in a file that `--config`
names. What is in that file cannot be said again by a flag.
"""

import argparse
import contextlib
import dataclasses
import difflib
import functools
import io
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners import create_runner

import beam_dp as dp
from beam_dp.beam_yaml.mappings import keys_of, number
from beam_dp.mechanisms.metrics import REGISTRY
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.metrics.ratio import as_written
from beam_dp.transforms.steps import trial
from pipelines import description, messages

_ALIKE = 0.7
_NO_RUNNER = (AttributeError, ImportError, ValueError)
_WHOLE = re.compile(r"0|[1-9]\d{0,17}")
_RANGE = re.compile(rf"({_WHOLE.pattern})\s*(?:-|\.\.|:)\s*({_WHOLE.pattern})")
_COLUMN, _NUMBER = r"(?P<column>[^:].*?)", r":(?:-?inf|[-+.e\d]+)"
_PER = r"(?::(?P<per>row|person))?"
_FORMS = {
    "kth_largest": rf"{_COLUMN}:(?P<k>[^:]*)",
    "quantile": rf"{_COLUMN}:(?P<p>[^:]*){_PER}",
    "quantiles": rf"{_COLUMN}(?P<shares>(?:{_NUMBER})*){_PER}",
    "histogram": rf"{_COLUMN}(?::@(?P<files>.+)|(?P<edges>(?:{_NUMBER})*))",
    "trimmed_mean": rf"{_COLUMN}(?P<trim>{_NUMBER})?",
    "ratio": rf"(?P<column>[^=:][^=]*?)(?:=(?P<equals>.+?))?{_PER}",
}
"""What stands behind the flags of metrics that have more than a column."""
_OF_OUTPUTS = ("clip", "low", "high", "weight")
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
    "people": ("N", "with --plan: how many people there are, known or guessed"),
}
_REPEATED = {
    "assume": ("NAME<=N", "with --people: guesses: spent<=100,rows<=3,each<=2,partitions<=30"),
    "bounds": ("NAME=N", "the most of one person: partitions=3,rows_per_partition=10,rows=20"),
    "clip": ("NAME=N", "what nobody exceeds in a partition: sum_spent=100 (default: chosen)"),
    "low": ("NAME=N", "a known least value of means, extremes, quantiles: max_age=0"),
    "high": ("NAME=N", "a known largest value of these: max_age=120"),
    "weight": ("NAME=N", "parts of the budget: sum_spent=2 (default 1)"),
}


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help of a width that is the same everywhere; a flag may have a value, which few write."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=110)

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        return "" if action.nargs == "?" else super()._format_args(action, default_metavar)


class Parser(argparse.ArgumentParser):
    """A parser that says in one line what is wrong with a call, and exits with 2.

    Attributes:
        flags: the parts of the mapping that flags have said, beside a file; None: there is none.
    """

    flags: Collection[str] | None = None

    def error(self, message: str) -> NoReturn:
        """Exit with one line."""
        self.exit(2, f"{self.prog}: error: {' '.join(message.split())}\n")

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn errors of building a release, which name parameters only, into one line."""
        try:
            yield
        except (TypeError, ValueError, OSError) as error:
            self.error(messages.translated(error, self.flags))

    def flag(self, name: str, help: str) -> None:
        """Add a flag without a value; templates write it as `--name=true`."""
        self.add_argument(name, nargs="?", const=True, default=False, type=_truth, help=help)

    def read_alone(self, words: Sequence[str] | None) -> argparse.Namespace:
        """Return the options of a job that takes none of Beam."""
        options, stray = self.parse_known_args(words)
        self._check(stray, self)
        return options

    def read(self, words: Sequence[str] | None) -> tuple[argparse.Namespace, PipelineOptions]:
        """Return the options of the job and those of Beam; refuse what neither of them knows."""
        if trial.is_on():
            self.error("a job must not run in without_noise(): what it writes would not be private")
        given = sys.argv[1:] if words is None else words
        at = [*given, "--"].index("--")  # what is behind it is the job server's
        options, left = self.parse_known_args(given[:at])
        usage = io.StringIO()
        try:
            with contextlib.redirect_stderr(usage):
                beams = _parser_of_beam(given[:at])
                _, stray = beams.parse_known_args(left)
        except SystemExit:  # only the last line of its usage page says what is wrong
            self.error(usage.getvalue().rpartition("error: ")[2])
        self._check(stray, self, beams)
        for name, said in vars(options).items():
            if name in _ONCE and isinstance(said, list):
                if len(said) > 1:  # the last one would be taken in silence
                    self.error(f"argument --{name}: must be given once: leave one of the two out")
                setattr(options, name, said[0])
        return options, PipelineOptions([*left, *given[at + 1 :]])

    def _check(self, stray: Sequence[str], *parsers: argparse.ArgumentParser) -> None:
        """Refuse what no parser knows, with the nearest flag."""
        for word in stray:
            name = word.partition("=")[0]
            if not name.startswith("--"):
                self.error(f"unrecognized argument: {word}")
            known = [flag for each in parsers for flag in each._option_string_actions]
            near = difflib.get_close_matches(name, known, 1, _ALIKE)
            near = near or [each for each in known if each.startswith(name)][:1]
            meant = f", did you mean {near[0]}?" if near else "; --help lists those of the job"
            if name.strip("-") in _IN_MAPPING and "--config" in known:
                meant = f"; it is a part of the mapping of --config: {name.strip('-')}"
            self.error(f"unrecognized option: {name}{meant}")


_IN_MAPPING = {"planned", "pre_threshold", *description.KEYS, *REGISTRY} | {
    field.name for kind in REGISTRY.values() for field in dataclasses.fields(kind)
}


def _parser_of_beam(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of all options that Beam knows, also of those that a runner brings."""
    named = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    named.add_argument("--runner", default="")
    runner = named.parse_known_args(words)[0].runner
    if "." in runner:
        with contextlib.suppress(*_NO_RUNNER):  # Beam says later that there is none
            create_runner(runner)
    parsers: list[argparse.ArgumentParser] = []
    PipelineOptions([]).get_all_options(add_extra_args_fn=parsers.append)
    parsers[0].allow_abbrev = False
    return parsers[0]


def alone(program: str, description: str | None, usage: str = "") -> Parser:
    """Return a parser of a job without Beam."""
    return Parser(
        f"python -m pipelines.{program}",
        usage=f"%(prog)s {usage or '[options]'}",
        description=description,
        formatter_class=_Help,
        allow_abbrev=False,
    )


def plain(program: str, description: str | None, usage: str = "") -> Parser:
    """Return a parser with the options that all jobs on Beam have."""
    made = alone(program, description, usage)
    made.epilog = (
        "Beam's options may stand beside these: --runner, --temp_location, ...; what only a job "
        "server knows,\nbehind all others and a lone --"
    )
    version = f"beam_dp {dp.__version__}"
    made.add_argument("--version", action="version", version=version, help="print it, and exit")
    made.flag("--show_errors", "show the error of a run that fails: IT MAY QUOTE DATA")
    made.flag("--quiet", "name no stages and show no progress, but warnings and errors")
    return made


def parser(program: str, description: str | None) -> Parser:
    """Return a parser of a job that releases, without its metrics."""
    made = plain(program, description, "[--config FILE] --input FILES --output FILE ...")
    made.flag("--overwrite", "replace an output and a page that exist")
    made.flag("--plan", "print costs and errors; read no row")
    for name, (metavar, says) in _ONCE.items():
        made.add_argument(f"--{name}", metavar=metavar, help=says, action="append")
    for name, (metavar, says) in _REPEATED.items():
        form: dict[str, Any] = {"action": "append", "default": [], "metavar": metavar}
        made.add_argument(f"--{name}", help=says, **form)
    return made


def add_metrics(
    made: Parser,
    suits: Callable[[type[Metric]], bool],
    from_below: bool = False,
) -> None:
    """Add the flags of metrics; `from_below`: with their help for releases from below."""
    group = made.add_argument_group("metrics: as many as wanted, in the order of the output")
    for word, kind in REGISTRY.items():
        command = kind.command
        if command is None or not suits(kind):
            continue
        form: dict[str, Any] = {"dest": "metrics", "action": "append", "default": []}
        form["type"] = functools.partial(metric, word, command.form)
        form["help"] = (command.help_from_below if from_below else "") or command.help
        if command.form:
            form["metavar"] = command.form
        else:
            form |= {"nargs": "?", "const": {word: None}}
        group.add_argument(f"--{word}", **form)


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"must be true or false, not {text!r}")
    return text.lower() == "true"


def metric(word: str, form: str, text: str) -> dict[str, Any] | None:
    """Return the mapping of a metric of what stands behind its flag; None for `--count=false`."""
    if not form:
        return {word: None} if _truth(text) else None
    plain = _COLUMN + _PER if form.endswith("[:person]") else "(?P<column>.+)"
    found = re.fullmatch(_FORMS.get(word, plain), text, re.DOTALL)
    if found is None:
        raise argparse.ArgumentTypeError(f"must be {form}")
    asked: dict[str, Any] = {name: said for name, said in found.groupdict().items() if said}
    made = {word: asked.pop("column"), **asked}
    for several in asked.keys() & {"shares", "edges"}:
        made[several] = asked[several].split(":")[1:]
    if "trim" in asked:
        made["trim"] = asked["trim"].removeprefix(":")
    if "files" in asked:
        made["edges"] = {"files": made.pop("files")}
    if word == "ratio":
        made["equals"] = as_written(asked.get("equals", "1"))
    return made


def described(line: Parser, options: argparse.Namespace, **beside: Any) -> dict[str, Any]:
    """Return the mapping that the flags make, with that of --config.

    Args:
        line: the parser, which errors are told by.
        options: what it has read.
        beside: what flags of one job say.

    Raises:
        ValueError: for what both say, and for words that are none.
    """
    in_file = description.read(options.config) if options.config else {}
    made = {**_of_flags(options), **beside}
    line.flags = made.keys() if options.config else None
    for name in made.keys() & in_file.keys():
        raise ValueError(f"{name} stands in {options.config} too: leave one of the two out")
    return {**in_file, **made}


def _of_flags(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parts of the mapping that flags say."""
    given = vars(options)
    plain = ("input", "output", "report", "people")
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
    if given.get("assume"):
        made["assume"] = _pairs("assume", given["assume"], "<=")
    if given.get("top_partitions"):
        name, _, most = given["top_partitions"].rpartition("=")
        made["top_partitions"] = {"by": name, "k": number(most)}
    made |= _ledger(options)
    metrics = [each for each in given.get("metrics", ()) if each is not None]
    chosen = {name: _pairs(name, given[name]) for name in _OF_OUTPUTS if given.get(name)}
    if metrics or chosen:
        made["metrics"] = _with_options(metrics, chosen)
    return made


def _listed(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


def _pairs(flag: str, texts: Sequence[str], sign: str = "=") -> dict[str, Any]:
    """Return the names and numbers of an option that may be repeated, each name once."""
    pairs: dict[str, Any] = {}
    for word in (word for text in texts for word in _listed(text)):
        name, between, value = word.rpartition(sign)
        if not (between and name.strip() and value):
            raise ValueError(f"--{flag} must be NAME{sign}NUMBER, not {word!r}")
        if name.strip() in pairs:
            raise ValueError(f"--{flag}: {name.strip()!r} must be given once")
        pairs[name.strip()] = number(value)
    return pairs


def _keys(text: str, parts: int) -> Any:
    """Return the public keys of a list, or of the file behind an @."""
    if text.startswith("@"):
        return {"files": text[1:]}
    words = _listed(text)
    ranges = [word for word in words if _is_range(word)]
    others = [word for word in words if word not in ranges]
    # 18-24,25-34 are keys; alone, or beside whole numbers only, such a word is a range.
    if ranges and (others or len(words) == 1) and all(map(_WHOLE.fullmatch, others)):
        raise ValueError(
            f"--public_partitions names keys, and {ranges[0]!r} looks like a range: write all of "
            "them, with commas between; if it is one key, write it into a file: "
            "--public_partitions @keys.txt"
        )
    return keys_of(words, parts)


def _is_range(word: str) -> bool:
    ends = _RANGE.fullmatch(word)
    return ends is not None and int(ends[1]) < int(ends[2])


def _ledger(options: argparse.Namespace) -> dict[str, Any]:
    limit = {"epsilon": options.total_epsilon, "delta": options.total_delta}
    limit = {name: number(each) for name, each in limit.items() if each is not None}
    if options.ledger is None:
        if limit:
            raise ValueError("--total_epsilon and --total_delta need --ledger FILE")
        return {}
    if "epsilon" not in limit and limit:
        raise ValueError("--total_delta needs --total_epsilon beside it")
    return {"ledger": {"path": options.ledger, **({"limit": limit} if limit else {})}}


def _with_options(
    metrics: Sequence[dict[str, Any]], chosen: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return metrics with the options of their output columns."""
    made = dict(zip(description.outputs(metrics), metrics, strict=True)) if metrics else {}
    if len(made) < len(metrics):
        raise ValueError("two metrics would be one output column: ask for each once")
    for option, numbers in chosen.items():
        takes = [name for name, each in made.items() if description.takes(each, option)]
        for name, value in numbers.items():
            if name not in takes:
                which = ", ".join(takes) or "there are none"
                raise ValueError(f"--{option}: {name!r} is no output column that has one: {which}")
            made[name] = {**made[name], option: value}
    return [*made.values()]
