"""The options of the files that are read and written."""

import argparse
import os
import re
from collections.abc import Mapping

import apache_beam as beam
from apache_beam.io.filesystem import FileSystem
from apache_beam.io.filesystems import FileSystems

from beam_dp.results import report
from beam_dp.transforms import release_record
from beam_dp.transforms.io import open_files, read_rows
from pipelines.arguments import words

QUOTES = ("true", "false")
HERE = (
    "FnApiRunner",
    "DirectRunner",
    "SwitchingDirectRunner",
    "BundleBasedDirectRunner",
    "PrismRunner",
)
"""The runners of this machine."""
_PATHS = ("input", "output", "report", "ledger")
_EARLIER = {"standard": "true", "none": "false"}


def add(made: argparse.ArgumentParser) -> None:
    """Add --input, --quotes, --output and --overwrite."""
    files = made.add_argument_group("files: .parquet, .csv or .jsonl")
    files.add_argument(
        "--input", type=patterns, help="a path, a glob, or several with commas between"
    )
    quotes = 'whether " quotes the cells of CSV, as in RFC 4180, or is a character like all others'
    files.add_argument("--quotes", type=_quotes, choices=QUOTES, default=QUOTES[0], help=quotes)
    files.add_argument("--output", help="one file, written whole or not at all")
    files.add_argument(
        "--overwrite", action="store_true", help="replace an output and a page that exist"
    )
    page = "a page of charts, tables and words about the release: released.html (extra: report)"
    files.add_argument("--report", metavar="PAGE", help=page)


def _quotes(text: str) -> str:
    """Return whether cells are quoted, also by the earlier words, which are still taken."""
    return _EARLIER.get(text, text)


def quotes(options: argparse.Namespace) -> bool:
    """Return whether `"` quotes the cells of CSV."""
    return bool(options.quotes == QUOTES[0])


def patterns(text: str) -> str:
    """Return paths and globs with commas between; Beam matches no glob without a directory."""
    return ",".join(word if "/" in word else f"./{word}" for word in words.listed(text))


def without_folders(asked: Mapping[str, object]) -> dict[str, object]:
    """Return options for a record that may be shown: of a path, its last part only."""
    names = {
        name: release_record.file_names(str(path)) for name, path in asked.items() if name in _PATHS
    }
    keys = str(asked.get("public_partitions", ""))
    if keys.startswith("@"):
        names["public_partitions"] = f"@{release_record.file_names(keys[1:])}"
    return {**asked, **names}


def check(options: argparse.Namespace) -> None:
    """Refuse missing files, unknown file systems, and an output that would replace its input."""
    missing = [f"--{name}" for name in ("input", "output") if not vars(options)[name]]
    if missing:
        raise ValueError(f"the following arguments are required: {', '.join(missing)}")
    if options.report:
        report.check(options.report)
        if not options.overwrite and FileSystems.exists(options.report):
            raise ValueError(
                f"--report must name a new file, not {options.report!r}: write --overwrite to "
                "replace it"
            )
    read = words.listed(options.input)
    for path in (*read, options.output):
        FileSystems.get_filesystem(path)  # raises where its scheme (gs://) is not installed
    for pattern in read:
        if _matches(options.output, pattern):
            raise ValueError(
                f"--output must name another file than --input, and {pattern!r} matches it: the "
                "next run would read what this one released; write into another folder"
            )


def check_there(options: argparse.Namespace, made: beam.Pipeline) -> None:
    """Refuse local input that is not there, before a run is charged: runners here see what we see.

    Args:
        options: the job's options.
        made: the pipeline, whose runner decides.
    """
    if type(made.runner).__name__ in HERE:
        for pattern in filter(open_files.is_local, words.listed(options.input)):
            read_rows.matched_files(pattern)


def _matches(path: str, pattern: str) -> bool:
    """Return whether a path is among the files of a pattern, as Beam matches them."""
    path, pattern = map(_plain, (path, pattern))
    return path == pattern or bool(re.match(FileSystem.translate_pattern(pattern), path))


def _plain(path: str) -> str:
    """Return a path as others that name the same file are written."""
    return os.path.realpath(path) if FileSystems.get_scheme(path) is None else path
