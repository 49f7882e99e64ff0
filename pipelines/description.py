"""A release as a mapping: what `--config release.yaml` holds, and what the flags make.

Its parts are those of `beam_yaml.mappings`, and these:

* input, output, overwrite, report: which files; title, number_style: how the page is written;
* quotes, decimal, thousands, encoding: how the cells of CSV are written;
* query, numbers: which rows they become;
* top_partitions: {by: people_count, k: 10}: which rows come out;
* also_by: [store, total]: which further tables; totals: apart: that they need not agree;
* post_process: SQL on each released table;
* ledger: {path: FILE, limit: {epsilon: 3}}: who pays;
* select: one SELECT, which says metrics, partition and others of these.
"""

import dataclasses
import itertools
import os
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import apache_beam as beam
import yaml
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

import beam_dp as dp
from beam_dp.beam_yaml import mappings
from beam_dp.beam_yaml.mappings import number
from beam_dp.mechanisms.numerics import checks
from beam_dp.results import report
from beam_dp.transforms import run_record
from beam_dp.transforms.io import open_files, read_rows, whole_files
from beam_dp.transforms.private_tables import AGREE, APART
from beam_dp.transforms.sql.person_queries import parsed
from beam_dp.transforms.sql.released_queries import ReleasedQuery
from beam_dp.transforms.stages import guards
from beam_dp.transforms.stages.output_names import field_name, output_names

CSV_FORMAT = ("quotes", "decimal", "thousands", "encoding")
PAGE = ("title", "number_style")
FILES = ("input", "output", "overwrite", "report", *PAGE, "query", "numbers", *CSV_FORMAT)
TABLES = ("also_by", "totals", "top_partitions", "post_process")
KEYS = ("select", *FILES, *mappings.RELEASE, *TABLES, "ledger")
_PATHS = ("input", "output", "report", "path", "files")
_SUBJECT = "release"
_KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "input": ((str, list), "a path, or a list of them"),
    "output": (str, "a path"),
    "report": (str, "a path"),
    "title": (str, "text"),
    "number_style": (str, "text, as '1.234,5'"),
    "overwrite": (bool, "true or false"),
    "query": (str, "SQL"),
    "select": (str, "SQL"),
    "post_process": (str, "SQL"),
    "numbers": ((str, list), "a column, or a list of them"),
}


class _Loader(yaml.SafeLoader):
    """YAML that refuses a name which stands twice in a mapping: plain YAML takes the last one."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        names = [name.value for name, _ in node.value]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"--config: {name!r} must stand once in a mapping")
        made: dict[Any, Any] = super().construct_mapping(node, deep)
        return made


def read(path: str) -> dict[str, Any]:
    """Return the mapping in a YAML file.

    Raises:
        TypeError, ValueError: for a file that is none, or cannot be read.
    """
    try:
        given = yaml.load(open_files.answer(path, _content).decode(), _Loader)
    except (OSError, BeamIOError) as error:
        missing = open_files.is_local(path) and not os.path.exists(path)
        why = "there is no such file" if missing else "it cannot be read"
        raise ValueError(f"--config {path}: {why}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        at = getattr(error, "problem_mark", None)
        where = f", line {at.line + 1}, column {at.column + 1}" if at else ""
        parts = [getattr(error, name, None) for name in ("context", "problem")]
        why = f" ({', '.join(filter(None, parts))})" if any(parts) else ""
        rule = f"it must be a file of YAML in UTF-8{why}"
        raise ValueError(f"--config {path}{where}: {rule}") from error
    if not isinstance(given, Mapping):
        raise TypeError(f"--config {path} must hold a mapping, as in person: visitor_id")
    return dict(given)


def _content(path: str) -> bytes:
    with FileSystems.open(path) as file:
        content: bytes = file.read()
        return content


def without_folders(given: Any, is_path: bool = False) -> Any:
    """Return a mapping for a record that may be shown: of a path, its last part only."""
    if isinstance(given, Mapping):
        return {name: without_folders(part, name in _PATHS) for name, part in given.items()}
    if isinstance(given, list):
        return [without_folders(part, is_path) for part in given]
    if not isinstance(given, str):
        return given
    return run_record.file_names(given) if is_path else run_record.sql_text(given)


@dataclasses.dataclass(frozen=True)
class Table:
    """One of the tables of a run.

    Attributes:
        release: what releases it.
        ending: what the names of its files, and of its steps, have more than those of the first.
    """

    release: dp.PrivateAggregate
    ending: str

    def file(self, path: str) -> str:
        """Return the name of its file, where that of the first table is `path`."""
        stem, dot, kind = path.rpartition(".")
        return f"{stem}{self.ending}{dot}{kind}"


class Description:
    """What a mapping asks of a job.

    Attributes:
        release: the first table, at the budget of the whole run, which is what a ledger is charged.
        run: what the run releases.
        tables: its tables: the first one alone, or with those of `also_by`.
        together: what to say of several tables; "" for one.
        became: what each part of a SELECT became.
        after: SQL on each released table; None: none.

    Args:
        given: the mapping; of its names all are known, or it is refused.

    Raises:
        TypeError, ValueError, OSError: names the part, and says what to write instead.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        mappings.check_words(_SUBJECT, "the description", given, KEYS)
        for name, (kinds, rule) in _KINDS.items():
            if name in given and not isinstance(given[name], kinds):
                raise checks.ParameterTypeError(_SUBJECT, name, f"be {rule}")
        checks.require("person" in given, _SUBJECT, "person", "be given")
        self.became: tuple[str, ...] = ()
        if "select" in given:
            statement = mappings.statement_of(_SUBJECT, given)
            given, self.became = {**given, **statement.mapping}, statement.became
        for name in ("metrics", "budget"):
            checks.require(name in given, _SUBJECT, name, "be given")
        self.given = given
        self.input = _patterns(given.get("input", []))
        written = {name: given[name] for name in CSV_FORMAT if name in given}
        self.csv = dp.CsvFormat(**written)
        self.query: str | None = given.get("query")
        self.parsed = None if self.query is None else parsed(self.query)
        numbers = mappings.columns_of(given.get("numbers"))
        self.numbers = checks.columns(_SUBJECT, "numbers", numbers)
        self.output: str = given.get("output", "")
        parts = {name: given[name] for name in mappings.RELEASE if name in given}
        batches = "top_partitions" not in given
        self.release = mappings.aggregate_of(_SUBJECT, parts, batches=batches)
        self.top = self._top()
        totals = given.get("totals", AGREE if self.top is None else APART)
        rule = "be apart where only top_partitions are kept"
        checks.require(self.top is None or totals == APART, _SUBJECT, "totals", rule)
        self.run = mappings.tables_of(_SUBJECT, self.release, given.get("also_by"), totals)
        self.tables = list(map(Table, self.run.tables, self.run.endings))
        rule = "have different columns for each table, and two tables have the same file name"
        files = {table.ending.casefold() for table in self.tables}
        checks.require(len(files) == len(self.tables), _SUBJECT, "also_by", rule)
        for release in (self.release, *self.run.tables) if self.parsed else ():
            release.reads(self.parsed)
        self.after = ReleasedQuery.of(given.get("post_process"), self.run)
        self.together = self.run.summary
        self.ledger = self._ledger()

    def _top(self) -> dp.TopPartitions | None:
        """Return what keeps the partitions with the largest numbers of an output column."""
        if "top_partitions" not in self.given:
            return None
        asked, words = self.given["top_partitions"], ("by", "k")
        parts = mappings.mapping_of(_SUBJECT, "top_partitions", asked, words, words)
        names = output_names((), self.release.metrics)
        rule = f"have by: one of the output columns {', '.join(names)}"
        checks.require(parts["by"] in names, _SUBJECT, "top_partitions", rule)
        rule = "be given: top_partitions ranks its values"
        checks.require(bool(self.release.partition), _SUBJECT, "partition", rule)
        return dp.TopPartitions(number(parts["k"]), field_name(parts["by"]))

    def _ledger(self) -> dp.Ledger | None:
        if "ledger" not in self.given:
            return None
        words = ("path", "limit")
        parts = mappings.mapping_of(_SUBJECT, "ledger", self.given["ledger"], words, words[:1])
        limit = mappings.budget_of(_SUBJECT, parts["limit"], "limit") if "limit" in parts else None
        return dp.Ledger(parts["path"], limit)

    def files(self, name: str) -> list[str]:
        """Return the output, or the page, of each table; [] where none is asked for."""
        path = self.given.get(name)
        return [table.file(path) for table in self.tables] if path else []

    @property
    def page(self) -> dict[str, str]:
        """How the pages are written, where that is asked for."""
        return {name: self.given[name] for name in PAGE if name in self.given}

    def check_files(self) -> None:
        """Refuse missing files, unknown file systems, and an output that replaces its input."""
        for name in ("input", "output"):
            hint = "Write FROM 'visits.csv'." if name == "input" and self.became else ""
            rule = "be given: FROM names no file" if hint else "be given"
            checks.require(bool(self.given.get(name)), _SUBJECT, name, rule, hint)
        outputs, pages = self.files("output"), self.files("report")
        for path in filter(None, [*outputs, *pages]):
            open_files.check_system(_SUBJECT, "output", path)
            open_files.answer(path, FileSystems.exists)
        rule = f"be given where {' or '.join(PAGE)} is: they are of the page"
        checks.require(bool(pages) or not self.page, _SUBJECT, "report", rule)
        for page in pages:
            style = self.page.get("number_style", report.PLAIN)
            report.check(page, style, self.given.get("overwrite", False))
        read = [*self.input.split(","), str(self.given.get("ledger", {}).get("path", ""))]
        for path in read:
            open_files.check_system(_SUBJECT, "input", path)
            for output in (*outputs, *map(whole_files.beside, outputs), *pages):
                other = not PurePath(_plain(output)).match(_plain(path))
                rule = f"name another file than input and ledger, and {path!r} matches it"
                checks.require(other, _SUBJECT, "output", rule)

    def check_reachable(self, made: beam.Pipeline) -> None:
        """Refuse input that is not there, and stores that cannot be written, before a run is charged.

        Args:
            made: the pipeline, whose runner decides: those of this process see what we see.
        """
        if type(made.runner).__name__ in guards.LOCAL:
            for pattern in self.input.split(","):
                open_files.answer(pattern, read_rows.matched_files)
            outputs = (*self.files("output"), *self.files("report"))
            for path in itertools.filterfalse(open_files.is_local, outputs):  # those were checked
                open_files.answer(path, whole_files.try_out)


def _patterns(given: str | list[str]) -> str:
    """Return paths and globs with commas between."""
    listed = [word.strip() for word in given.split(",")] if isinstance(given, str) else given
    if not all(isinstance(word, str) for word in listed):
        raise checks.ParameterTypeError(_SUBJECT, "input", f"be {_KINDS['input'][1]}")
    return ",".join(listed)


def _plain(path: str) -> str:
    """Return a path as others that name the same file are written."""
    return os.path.realpath(path) if FileSystems.get_scheme(path) is None else path
