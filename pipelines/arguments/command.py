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

import beam_dp as dp
from beam_dp.transforms.guarding import trial
from pipelines.arguments import files, language, people
from pipelines.quick_runs import JobOptions

# A flag that is so close to one of the job's is a typing error, not an option of Beam.
ALIKE = 0.85
_NO_BUDGET = (
    "one of the arguments --epsilon --rho is required",
    "--epsilon or --rho is required: --epsilon 1 is a common choice",
)
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

    _words: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        """Exit with one line: where an option is missing, one that is misspelt comes first."""
        if message.endswith(" required"):
            message = next(self._misspelt(self._words), message).replace(*_NO_BUDGET)
        self.exit(2, f"{self.prog}: error: {' '.join(message.split())}\n")

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn errors of building a release, which name parameters only, into one line."""
        try:
            yield
        except (TypeError, ValueError, OSError) as error:
            self.error(language.translated(error))

    def read(self, words: Sequence[str] | None) -> tuple[argparse.Namespace, list[str]]:
        """Return the options of the job, and the words that are left for Beam."""
        if trial.is_on():
            self.error("a job must not run in without_noise(): what it writes would not be private")
        self._words = sys.argv[1:] if words is None else words
        line = self._in_present_words(self._words)
        options, left = self.parse_known_args(self._joined(list(self._without_values(line))))
        if left and not left[0].startswith("--"):
            self.error(f"unrecognized argument: {left[0]}")
        for said in self._misspelt(left):
            self.error(said)
        return options, left

    def _misspelt(self, words: Sequence[str]) -> Iterator[str]:
        """Say which words are hardly options of Beam, but nearly ones of the job."""
        known = [*self._flags(), *self._earlier()]
        for word in words:
            name = word.partition("=")[0]
            alike = difflib.get_close_matches(name, known, 1, ALIKE)
            if word.startswith("--") and name not in known and alike:
                meant = _EARLIER.get(alike[0], alike[0]).replace("=", " ", 1)
                yield f"unrecognized option: {word}, did you mean {meant.strip()}?"

    def chosen(self, options: argparse.Namespace) -> dict[str, object]:
        """Return the job and its options but for defaults; not Beam's, which may hold passwords."""
        known = {name for name, value in vars(options).items() if value == self.get_default(name)}
        asked = {name: vars(options)[name] for name in vars(options) if name not in known}
        for metrics in _METRICS:  # they stand among the parameters of the release
            asked.pop(metrics, None)
        return {"program": self.prog, **asked}

    def for_beam(self, words: Sequence[str]) -> PipelineOptions:
        """Return Beam's options; if one is wrong, show only the last line of Beam's usage page."""
        usage, options = io.StringIO(), JobOptions(words)
        try:
            with contextlib.redirect_stderr(usage):
                options.get_all_options()
        except SystemExit:
            self.error(usage.getvalue().rpartition("error: ")[2])
        return options

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


def plain(program: str, description: str) -> Parser:
    """Return a parser with --show_errors and --quiet, which all jobs have."""
    made = Parser(
        f"python -m pipelines.{program}",
        description=description,
        epilog="Every other option goes to Beam: --runner, --temp_location, ...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
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
