"""A release as a mapping: what `--config release.yaml` holds, and what the flags make.

Its parts are those of `beam_yaml.mappings`, and these: input, output, overwrite, report and quotes
say which files; top_partitions: {by: people_count, k: 10} which rows; ledger: {path: FILE, limit:
{epsilon: 3}, planned: true} who pays; people and assume: {spent: 100} are guesses for a plan.
"""

import dataclasses
import functools
import importlib
import os
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystem import FileSystem
from apache_beam.io.filesystems import FileSystems

import beam_dp as dp
from beam_dp.beam_yaml import mappings
from beam_dp.beam_yaml.mappings import number, number_of
from beam_dp.mechanisms.metrics import REGISTRY, base
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.numerics import checks
from beam_dp.results import report
from beam_dp.transforms import release_record
from beam_dp.transforms.io import open_files, read_rows
from beam_dp.transforms.steps.output_rows import output_names, shown_name
from pipelines.messages import HERE

FILES = ("input", "output", "overwrite", "report", "quotes")
KEYS = (*FILES, *mappings.RELEASE, "top_partitions", "ledger", "people", "assume")
_PATHS = ("input", "output", "report", "path", "files")
_OWNER = "release"
_KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "input": ((str, list), "a path, or a list of them"),
    "output": (str, "a path"),
    "report": (str, "a path"),
    "overwrite": (bool, "true or false"),
    "quotes": (bool, "true or false"),
    "bounds": (Mapping, "a mapping like {partitions: 3}"),
    "assume": (Mapping, "a mapping like {spent: 100}"),
}


def read(path: str) -> dict[str, Any]:
    """Return the mapping in a YAML file; no name may stand twice in one mapping.

    Raises:
        ValueError, OSError: for a file that is none, or cannot be read.
    """
    yaml: Any = importlib.import_module("yaml")
    with FileSystems.open(path) as file:
        text = file.read().decode()
    try:
        _check_once(path, yaml.compose(text, Loader=yaml.SafeLoader))
        given = yaml.safe_load(text)
    except yaml.YAMLError as error:
        at = getattr(error, "problem_mark", None)
        line = f", line {at.line + 1}" if at else ""
        raise ValueError(f"--config {path}{line}: this is no YAML") from error
    if not isinstance(given, Mapping):
        raise TypeError(f"--config {path} must hold a mapping, as in person: visitor_id")
    return dict(given)


def _check_once(path: str, node: Any) -> None:
    """Refuse a name that stands twice: YAML itself takes the last one in silence."""
    names = [name.value for name, _ in node.value] if getattr(node, "id", "") == "mapping" else []
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"--config {path}: {name!r} must stand once in a mapping")
    for each in node.value if names or getattr(node, "id", "") == "sequence" else ():
        for part in each if isinstance(each, tuple) else (each,):
            _check_once(path, part)


def without_folders(given: Any) -> Any:
    """Return a mapping for a record that may be shown: of a path, its last part only."""
    if isinstance(given, Mapping):
        return {
            name: release_record.file_names(part)
            if name in _PATHS and isinstance(part, str)
            else without_folders(part)
            for name, part in given.items()
        }
    return [*map(without_folders, given)] if isinstance(given, list) else given


@dataclasses.dataclass(frozen=True)
class Description:
    """What a mapping asks of a job; its parts are read when they are asked for.

    Args:
        given: the mapping; of its names all are known, or it is refused.

    Raises:
        TypeError, ValueError, OSError: names the part, and says what to write instead.
    """

    given: Mapping[str, Any]

    def __post_init__(self) -> None:
        mappings.check_words(_OWNER, "the description", self.given, KEYS)
        for name, (kinds, rule) in _KINDS.items():
            if name in self.given and not isinstance(self.given[name], kinds):
                raise checks.ParameterTypeError(_OWNER, name, f"be {rule}")

    @property
    def _parts(self) -> dict[str, Any]:
        return {name: self.given[name] for name in mappings.RELEASE if name in self.given}

    @functools.cached_property
    def release(self) -> dp.PrivateAggregate:
        """The release; columns of metrics without a name of their own have plain ones."""
        parts = self._parts
        counted = {**parts, **parts.get("bounds", {})}
        if "partitions" in counted and not parts.get("partition"):
            raise ValueError(
                "partitions, and a bound on them, need a partition: without --partition COLUMN, all "
                "rows are one; leave them out"
            )
        batches = self.top is None and not _private(parts)
        metrics = self.metrics if "metrics" in parts else None
        return mappings.aggregate_of(_OWNER, parts, metrics, batches=batches, plain_names=True)

    @property
    def metrics(self) -> list[Metric]:
        """The metrics; those without a name of their own have plain ones."""
        return [*map(_named, mappings.metrics_of(_OWNER, self.given.get("metrics")))]

    @functools.cached_property
    def top(self) -> tuple[str, int] | None:
        """An output column, and how many partitions with its largest numbers are kept."""
        given = self.given.get("top_partitions")
        if given is None:
            return None
        parts = _parts_of("top_partitions", given, ("by", "k"), ("by", "k"))
        if not self.given.get("partition"):
            raise ValueError("top_partitions needs a partition, whose values it ranks")
        by, names = parts["by"], output_names((), self.metrics)
        if by not in names:
            raise ValueError(f"top_partitions: {by!r} is no output column: {', '.join(names)}")
        k = number_of(_OWNER, "k", parts["k"])
        if k < 1 or Fraction(k).denominator != 1:
            raise ValueError("top_partitions: k must be a whole number of at least 1")
        return by, int(k)

    @property
    def people(self) -> int | None:
        """How many people are guessed, for a plan."""
        given = number(self.given.get("people"))
        if given is not None and (not isinstance(given, int) or given < 1):
            raise checks.ParameterError(_OWNER, "people", "be a whole number of at least 1")
        return given

    @property
    def assume(self) -> dict[str, Any]:
        """What is guessed of them, by column."""
        given = self.given.get("assume", {})
        return {name: number_of(_OWNER, name, most) for name, most in given.items()}

    @functools.cached_property
    def ledger(self) -> dp.Ledger | None:
        """The ledger, if there is one."""
        given = self.given.get("ledger")
        if given is None:
            return None
        parts = _parts_of("ledger", given, ("path", "limit", "planned"), ("path",))
        limit = parts.get("limit")
        budget = None if limit is None else mappings.budget_of(_OWNER, limit)
        return dp.Ledger(parts["path"], budget, parts.get("planned"))

    @property
    def input(self) -> str:
        """Paths and globs with commas between; Beam matches no glob without a directory."""
        given = self.given["input"]
        listed = [word.strip() for word in given.split(",")] if isinstance(given, str) else given
        return ",".join(word if "/" in word else f"./{word}" for word in listed)

    @property
    def output(self) -> str:
        """The path of the released file; "" for none."""
        return str(self.given.get("output", ""))

    @property
    def overwrite(self) -> bool:
        """Whether an output and a page that exist are replaced."""
        return bool(self.given.get("overwrite", False))

    @property
    def quotes(self) -> bool:
        """Whether `"` quotes the cells of CSV."""
        return bool(self.given.get("quotes", True))

    @property
    def report(self) -> str | None:
        """The page that is to be written, if any."""
        return self.given.get("report")

    def check_files(self) -> None:
        """Refuse missing files, unknown file systems, and an output that would replace its input."""
        missing = [name for name in ("input", "output") if not self.given.get(name)]
        if missing:
            raise ValueError(f"these are required: {', '.join(missing)}")
        if self.report:
            report.check(self.report)
            if not self.overwrite and FileSystems.exists(self.report):
                raise ValueError(
                    f"report must name a new file, not {self.report!r}: write --overwrite to "
                    "replace it"
                )
        patterns = self.input.split(",")
        for path in (*patterns, self.output):
            FileSystems.get_filesystem(path)  # raises where its scheme (gs://) is not installed
        for pattern in patterns:
            if _matches(self.output, pattern):
                raise ValueError(
                    f"output must name another file than input, and {pattern!r} matches it: the "
                    "next run would read what this one released; write into another folder"
                )

    def check_input(self, made: beam.Pipeline) -> None:
        """Refuse local input that is not there, before a run is charged.

        Args:
            made: the pipeline, whose runner decides: those of this machine see what we see.
        """
        if type(made.runner).__name__ in HERE:
            for pattern in filter(open_files.is_local, self.input.split(",")):
                read_rows.matched_files(pattern)


def outputs(metrics: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the output columns of the mappings of metrics."""
    return [_named(metric).name for metric in mappings.metrics_of(_OWNER, metrics)]


def takes(metric: Mapping[str, Any], option: str) -> bool:
    """Return whether a metric, by its mapping, has an option."""
    return any(base.takes(REGISTRY[word], option) for word in metric if word in REGISTRY)


def _private(parts: Mapping[str, Any]) -> bool:
    """Return whether partitions are selected privately, or there are none."""
    given = parts.get("partitions")
    return given is None or (isinstance(given, Mapping) and "private" in given)


def _named(metric: Metric) -> Metric:
    return metric if metric.name else dataclasses.replace(metric, name=shown_name(metric))


def _parts_of(
    name: str, given: Any, known: tuple[str, ...], needed: tuple[str, ...]
) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise checks.ParameterTypeError(_OWNER, name, f"be a mapping with {', '.join(known)}")
    mappings.check_words(_OWNER, name, given, known)
    missing = ", ".join(each for each in needed if not given.get(each))
    checks.require(not missing, _OWNER, name, f"have {missing}")
    return given


def _matches(path: str, pattern: str) -> bool:
    """Return whether a path is among the files of a pattern, as Beam matches them."""
    path, pattern = map(_plain, (path, pattern))
    return path == pattern or bool(re.match(FileSystem.translate_pattern(pattern), path))


def _plain(path: str) -> str:
    """Return a path as others that name the same file are written."""
    return os.path.realpath(path) if FileSystems.get_scheme(path) is None else path
