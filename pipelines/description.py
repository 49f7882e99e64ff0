"""A release as a mapping: what `--config release.yaml` holds, and what the flags make.

Its parts are those of `beam_yaml.mappings`, and these: input, output, overwrite, report and quotes
say which files; top_partitions: {by: people_count, k: 10} which rows; ledger: {path: FILE, limit:
{epsilon: 3}} who pays.
"""

import dataclasses
import functools
import importlib
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystem import FileSystem
from apache_beam.io.filesystems import FileSystems

import beam_dp as dp
from beam_dp.beam_yaml import mappings
from beam_dp.beam_yaml.mappings import number
from beam_dp.mechanisms.metrics import REGISTRY, base
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.numerics import checks
from beam_dp.results import report
from beam_dp.transforms import run_record
from beam_dp.transforms.io import open_files, read_rows
from beam_dp.transforms.stages import guards
from beam_dp.transforms.stages.output_names import output_names, shown_name

FILES = ("input", "output", "overwrite", "report", "quotes")
KEYS = (*FILES, *mappings.RELEASE, "top_partitions", "ledger")
_PATHS = ("input", "output", "report", "path", "files")
_OWNER = "release"
_KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "input": ((str, list), "a path, or a list of them"),
    "output": (str, "a path"),
    "report": (str, "a path"),
    "overwrite": (bool, "true or false"),
    "quotes": (bool, "true or false"),
    "bounds": (Mapping, "a mapping like {partitions: 3}"),
}


def read(path: str) -> dict[str, Any]:
    """Return the mapping in a YAML file; no name may stand twice in one mapping.

    Raises:
        ValueError, OSError: for a file that is none, or cannot be read.
    """
    yaml: Any = importlib.import_module("yaml")
    try:
        with FileSystems.open(path) as file:
            text = file.read().decode()
        _check_once(path, yaml.compose(text, Loader=yaml.SafeLoader))
        given = yaml.safe_load(text)
    except OSError as error:
        raise ValueError(
            f"--config {path}: it cannot be read: {error.strerror or error}"
        ) from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        at = getattr(error, "problem_mark", None)
        line = f", line {at.line + 1}" if at else ""
        raise ValueError(f"--config {path}{line}: it must be a file of YAML in UTF-8") from error
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


def without_folders(given: Any, is_path: bool = False) -> Any:
    """Return a mapping for a record that may be shown: of a path, its last part only."""
    if isinstance(given, Mapping):
        return {name: without_folders(part, name in _PATHS) for name, part in given.items()}
    if isinstance(given, list):
        return [without_folders(part, is_path) for part in given]
    return run_record.file_names(given) if is_path and isinstance(given, str) else given


class Description:
    """What a mapping asks of a job.

    Args:
        given: the mapping; of its names all are known, or it is refused.

    Raises:
        TypeError, ValueError, OSError: names the part, and says what to write instead.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        mappings.check_words(_OWNER, "the description", given, KEYS)
        for name in ("person", "metrics", "budget"):
            checks.require(name in given, _OWNER, name, "be given")
        for name, (kinds, rule) in _KINDS.items():
            if name in given and not isinstance(given[name], kinds):
                raise checks.ParameterTypeError(_OWNER, name, f"be {rule}")
        if not all(isinstance(path, str) for path in given.get("input", ())):
            raise checks.ParameterTypeError(_OWNER, "input", f"be {_KINDS['input'][1]}")
        self.given = given
        self.input = _patterns(given.get("input", []))
        self.output: str = given.get("output", "")
        self.overwrite: bool = given.get("overwrite", False)
        self.quotes: bool = given.get("quotes", True)
        self.report: str | None = given.get("report")
        self.metrics = [*map(_named, mappings.metrics_of(_OWNER, given["metrics"]))]
        self.budget = mappings.budget_of(_OWNER, given["budget"])
        self.top = self._top()
        self.ledger = self._ledger()

    def _top(self) -> tuple[str, int] | None:
        """Return an output column, and how many partitions with its largest numbers are kept."""
        if "top_partitions" not in self.given:
            return None
        asked, words = self.given["top_partitions"], ("by", "k")
        parts = mappings.mapping_of(_OWNER, "top_partitions", asked, words, words)
        by, k, names = parts["by"], number(parts["k"]), output_names((), self.metrics)
        if not self.given.get("partition"):
            raise ValueError("top_partitions needs a partition, whose values it ranks")
        if by not in names:
            raise ValueError(f"top_partitions: {by!r} is no output column: {', '.join(names)}")
        if type(k) is not int or k < 1:
            raise ValueError("top_partitions: k must be a whole number of at least 1")
        return by, k

    def _ledger(self) -> dp.Ledger | None:
        if "ledger" not in self.given:
            return None
        words = ("path", "limit")
        parts = mappings.mapping_of(_OWNER, "ledger", self.given["ledger"], words, words[:1])
        limit = mappings.budget_of(_OWNER, parts["limit"]) if "limit" in parts else None
        return dp.Ledger(parts["path"], limit)

    @functools.cached_property
    def release(self) -> dp.PrivateAggregate:
        """The release."""
        parts = {name: self.given[name] for name in mappings.RELEASE if name in self.given}
        if not parts.get("partition"):
            rule = "be given: partitions, and a bound on them, need a partition"
            alone = "partitions" not in {*parts, *parts.get("bounds", {})}
            checks.require(alone, _OWNER, "partition", rule)
        keys = parts.get("partitions")
        private = keys is None or (isinstance(keys, Mapping) and "private" in keys)
        further = {"batches": self.top is None and not private}
        return mappings.aggregate_of(_OWNER, parts, self.metrics, **further)

    def check_files(self) -> None:
        """Refuse missing files, unknown file systems, and an output that replaces its input."""
        missing = [name for name in ("input", "output") if not self.given.get(name)]
        if missing:
            raise ValueError(f"these are required: {', '.join(missing)}")
        if self.report:
            report.check(self.report)
            new = self.overwrite or not FileSystems.exists(self.report)
            rule = f"name a new file, not {self.report!r}"
            checks.require(new, "report", "path", rule)
        patterns = self.input.split(",")
        written = (self.output, f"{self.output}.json", *([self.report] if self.report else ()))
        ledger = str(self.given.get("ledger", {}).get("path", ""))
        if ledger and any(_matches(ledger, each) for each in (*written, *patterns)):
            raise ValueError(f"ledger must be a file of its own, not {ledger!r}")
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
            made: the pipeline, whose runner decides: those of this process see what we see.
        """
        if type(made.runner).__name__ in guards.LOCAL:
            for pattern in filter(open_files.is_local, self.input.split(",")):
                read_rows.matched_files(pattern)


def outputs(metrics: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the output columns of the mappings of metrics."""
    return [_named(mappings.metric_of(_OWNER, metric)).name for metric in metrics]


def takes(metric: Mapping[str, Any], option: str) -> bool:
    """Return whether a metric, by its mapping, has an option."""
    return any(base.takes(REGISTRY[word], option) for word in metric if word in REGISTRY)


def _patterns(given: str | list[str]) -> str:
    """Return paths and globs with commas between; Beam matches no glob without a directory."""
    listed = [word.strip() for word in given.split(",")] if isinstance(given, str) else given
    return ",".join(word if "/" in word else f"./{word}" for word in listed)


def _matches(path: str, pattern: str) -> bool:
    """Return whether a path is among the files of a pattern, as Beam matches them."""
    path, pattern = map(_plain, (path, pattern))
    return path == pattern or bool(re.match(FileSystem.translate_pattern(pattern), path))


def _plain(path: str) -> str:
    """Return a path as others that name the same file are written."""
    return os.path.realpath(path) if FileSystems.get_scheme(path) is None else path


def _named(metric: Metric) -> Metric:
    return metric if metric.name else dataclasses.replace(metric, name=shown_name(metric))
