"""The parser of the command line, whose errors are one line about options."""

import argparse
import contextlib
import difflib
import io
import re
import sys
from collections.abc import Iterator, Sequence
from typing import NoReturn

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners import create_runner

import beam_dp as dp
from beam_dp.transforms.guarding import trial
from pipelines.arguments import files, language, people

_NO_BUDGET = (
    "one of the arguments --epsilon --rho is required",
    "--epsilon or --rho is required: --epsilon 1 is a common choice",
)
_ALIKE = 0.7
_NO_RUNNER = (AttributeError, ImportError, ValueError)
_METRICS = ("metrics", "asked")
_NEGATIVE = re.compile(r"-[0-9.]")
_EARLIER = {
    "--csv_quotes": "--quotes=",
    "--distinct": "--distinct_count=",
    "--max_partitions": "--bounds=partitions=",
    "--max_rows": "--bounds=rows=",
    "--max_rows_per_partition": "--bounds=rows_per_partition=",
    "--top": "--top_partitions=",
    "--weights": "--weight=",
}
"""What earlier words of options, which are still taken, are now."""


class Parser(argparse.ArgumentParser):
    """A parser that says in one line what is wrong with a call, and exits with 2."""

    def error(self, message: str) -> NoReturn:
        """Exit with one line."""
        if message.endswith(" required"):
            message = message.replace(*_NO_BUDGET)
        self.exit(2, f"{self.prog}: error: {' '.join(message.split())}\n")

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn errors of building a release, which name parameters only, into one line."""
        try:
            yield
        except (TypeError, ValueError, OSError) as error:
            self.error(language.translated(error))

    def read_alone(self, words: Sequence[str] | None) -> argparse.Namespace:
        """Return the options of a job that takes none of Beam."""
        given = sys.argv[1:] if words is None else words
        self._check(_split(given)[0], self._actions)
        return self.parse_args(given)

    def read(self, words: Sequence[str] | None) -> tuple[argparse.Namespace, PipelineOptions]:
        """Return the options of the job and those of Beam; refuse what neither of them knows."""
        if trial.is_on():
            self.error("a job must not run in without_noise(): what it writes would not be private")
        given, of_server = _split(sys.argv[1:] if words is None else words)
        line = self._joined(list(self._without_values(self._in_present_words(given))))
        with self._without_usage():
            beams = _parser_of_beam(line)
        self._check(line, [*beams._actions, *self._actions])
        options, left = self.parse_known_args(line)
        with self._without_usage():
            _, stray = beams.parse_known_args(left)
        if stray:
            self.error(f"unrecognized argument: {stray[0]}")
        return options, PipelineOptions([*left, *of_server])

    @contextlib.contextmanager
    def _without_usage(self) -> Iterator[None]:
        """Show only the last line of Beam's usage page where one of its options is wrong."""
        usage = io.StringIO()
        try:
            with contextlib.redirect_stderr(usage):
                yield
        except SystemExit:
            self.error(usage.getvalue().rpartition("error: ")[2])

    def _check(self, words: Sequence[str], actions: Sequence[argparse.Action]) -> None:
        """Refuse options that nobody knows, and those of one value that are given twice."""
        known = {flag: action for action in actions for flag in action.option_strings}
        given: set[argparse.Action] = set()
        for word in words:
            name = word.partition("=")[0]
            if not name.startswith("--") or " " in name:  # a value, or argparse says what is wrong
                continue
            if name not in known:
                self.error(f"unrecognized option: {name}{_meant(name, [*known, *self._earlier()])}")
            if known[name] in given:
                self.error(f"{name} must be given once: leave one of the two out")
            if type(known[name]) is argparse._StoreAction:
                given.add(known[name])

    def chosen(self, options: argparse.Namespace) -> dict[str, object]:
        """Return the job and its options but for defaults; not Beam's, which may hold passwords."""
        known = {name for name, value in vars(options).items() if value == self.get_default(name)}
        asked = {name: vars(options)[name] for name in vars(options) if name not in known}
        for metrics in _METRICS:  # they stand among the parameters of the release
            asked.pop(metrics, None)
        return {"program": self.prog, **files.without_folders(asked)}

    def _flags(self, takes_none: bool = False) -> list[str]:
        """Return the flags; `takes_none`: only flags without a value."""
        asked = (action for action in self._actions if action.nargs == 0 or not takes_none)
        return [flag for action in asked for flag in action.option_strings]

    def _earlier(self) -> list[str]:
        """Return the earlier words of options that this job has."""
        flags = self._flags()
        return [word for word, now in _EARLIER.items() if now.partition("=")[0] in flags]

    def _in_present_words(self, words: Sequence[str]) -> list[str]:
        """Return a line with today's words for the options that had others."""
        known, line = self._earlier(), iter(words)
        present = []
        for word in line:
            flag, equals, value = word.partition("=")
            if flag in known:
                word = f"{_EARLIER[flag]}{value if equals else next(line, '')}"
            present.append(word)
        return present

    def _without_values(self, words: Sequence[str]) -> Iterator[str]:
        """Turn flags that are written as name=true, as templates give them, into plain flags."""
        flags = self._flags(takes_none=True)
        for word in words:
            name, _, value = word.partition("=")
            if name not in flags or value.lower() not in ("true", "false"):
                yield word
            elif value.lower() == "true":
                yield name

    def _joined(self, words: Sequence[str]) -> list[str]:
        """Write `--option -1:1:1` as `--option=-1:1:1`: argparse takes -1:1:1 for a flag."""
        valued = set(self._flags()) - set(self._flags(takes_none=True))
        joined: list[str] = []
        for word in words:
            if joined and joined[-1] in valued and _NEGATIVE.match(word):
                joined[-1] += f"={word}"
            else:
                joined.append(word)
        return joined


def _split(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the words before a lone --, and those behind it, which are the job server's."""
    at = [*words, "--"].index("--")
    return words[:at], words[at + 1 :]


def _parser_of_beam(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of all options that Beam knows, also of those that a runner brings."""
    named = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    named.add_argument("--runner")
    runner = named.parse_known_args(words)[0].runner
    if runner:
        with contextlib.suppress(*_NO_RUNNER):  # the pipeline says it
            create_runner(runner)
    parsers: list[argparse.ArgumentParser] = []
    PipelineOptions([]).get_all_options(add_extra_args_fn=parsers.append)
    return parsers[0]


def _meant(name: str, known: Sequence[str]) -> str:
    """Return a question for the known word that is nearest to another one."""
    by_name = {each.removeprefix("--"): each for each in known}
    near = difflib.get_close_matches(name.removeprefix("--"), by_name, 1, _ALIKE)
    meant = [
        _EARLIER.get(by_name[each], by_name[each]).replace("=", " ", 1).strip() for each in near
    ]
    return f", did you mean {meant[0]}?" if meant else "; --help lists those of the job"


def alone(program: str, description: str | None) -> Parser:
    """Return a parser of a job without Beam."""
    return Parser(
        f"python -m pipelines.{program}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def plain(program: str, description: str) -> Parser:
    """Return a parser with --show_errors and --quiet, which all jobs on Beam have."""
    made = alone(program, description)
    made.epilog = (
        "Beam's options may stand beside these: --runner, --temp_location, ...; what only a job "
        "server knows, behind all others and a lone --"
    )
    version = f"beam_dp {dp.__version__}"
    made.add_argument("--version", action="version", version=version, help="print it, and exit")
    shown = "show the error of a run that fails, with its traceback: IT MAY QUOTE DATA"
    made.add_argument("--show_errors", action="store_true", help=shown)
    silent = "name no stages and show no progress, but warnings and errors"
    made.add_argument("--quiet", action="store_true", help=silent)
    return made


def parser(program: str, description: str, several_owners: bool = False) -> Parser:
    """Return a parser with the options of files, of people and partitions, and of bounds."""
    made = plain(program, description)
    files.add(made)
    people.add(made, several_owners)
    return made
