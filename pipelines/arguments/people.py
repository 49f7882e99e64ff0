"""The options of the person, the partitions, and the bounds."""

import argparse
import re
from typing import Any

from apache_beam.io.filesystems import FileSystems

import beam_dp as dp
from beam_dp.transforms.io.read_rows import EXTENSIONS
from beam_dp.transforms.public.public_partitions import typed_keys
from pipelines.arguments import language, words

_BOUNDS = (
    "the most that one person has, in partitions, rows_per_partition and rows in all: "
    "partitions=3,rows_per_partition=10,rows=20; more is cut by a keyed hash, rows in proportion "
    "to their values. Without partitions, or with partitions=auto, that bound is chosen privately, "
    "for 4%% to 12%% of the budget"
)
_OWNERS = (
    "or the 2 to 8 of rows with several owners, which disappear with any of them: --count, --sum, "
    "--max, --min, --kth_largest, --distinct_count, --max_frequency, and --quantile and --median "
    "of rows, without limits. Where a column is empty, the row belongs to the others"
)
_RANGE = re.compile(r"(0|[1-9]\d{0,17})(?:-|\.\.)(0|[1-9]\d{0,17})")
_FEW = 8


def add(made: argparse.ArgumentParser, several_owners: bool) -> None:
    """Add --person, --partition, --public_partitions and the limits of people and partitions.

    Args:
        made: the parser.
        several_owners: whether the job has metrics of rows with several owners.
    """
    people = made.add_argument_group("people and partitions")
    read, form, who = words.owner, "COLUMN", "the column that identifies a person"
    if several_owners:
        read, form, who = words.owners, f"{form}[,{form}...]", f"{who}; {_OWNERS}"
    people.add_argument("--person", required=True, type=read, metavar=form, help=who)
    people.add_argument(
        "--partition",
        action="extend",
        type=words.columns,
        default=[],
        metavar="COLUMN[,COLUMN]",
        help="columns whose values name a partition; left out: all rows are one partition",
    )
    people.add_argument(
        "--public_partitions",
        metavar="KEYS",
        help="keys with commas between, or @FILE with one per line; several columns: parts with / "
        "between; or @FILE.csv, .parquet or .jsonl with the columns of --partition. All are "
        "released, empty ones too. They must not come from the data",
    )
    limits: dict[str, Any] = {"action": words.Gathered, "type": words.bounds, "default": {}}
    people.add_argument("--bounds", metavar="NAME=N", help=_BOUNDS, **limits)
    size = "the most rows of a partition, if you know: refused if they are too many for one worker"
    people.add_argument("--partition_rows", type=words.whole, metavar="N", help=size)
    parts = "how many parts the people are cut into on the way, a power of two up to 65536"
    left_out = "left out: by the size of the input and the workers. It changes no result"
    people.add_argument("--shards", type=words.whole, metavar="N", help=f"{parts}; {left_out}")


def person(options: argparse.Namespace) -> str | list[str]:
    """Return the column of the person, or those of rows with several owners."""
    names: list[str] = options.person
    return names if len(names) > 1 else names[0]


def bounds(options: argparse.Namespace) -> dp.ContributionBounds | None:
    """Return how much of the data one person may reach; None if no option says it."""
    _check_bounds(options)
    return dp.ContributionBounds(**options.bounds) if options.bounds else None


def given_bounds(options: argparse.Namespace) -> dp.ContributionBounds:
    """Return the same for a job that chooses none: without a limit where no option gives one."""
    _check_bounds(options)
    return dp.ContributionBounds(**{"partitions": None, **options.bounds})


def _check_bounds(options: argparse.Namespace) -> None:
    if "partitions" in options.bounds and not options.partition:
        raise ValueError(
            "--bounds partitions needs --partition COLUMN, whose values it counts: without one, "
            "all rows are one partition; leave it out"
        )


def public_partitions(options: argparse.Namespace) -> dp.PublicPartitions | None:
    """Return the public keys that the command line names; None if it names none.

    A column whose keys are all plain decimal integers has integer keys, but in Parquet.
    """
    text, parts = options.public_partitions, len(options.partition)
    if text is None:
        return None
    if not parts:
        raise ValueError("--public_partitions needs --partition COLUMN, whose values they are")
    if text.startswith("@") and text.endswith(EXTENSIONS):
        return _keys_in(text[1:], options.partition)
    named = _lines(text[1:]) if text.startswith("@") else _listed(text)
    keys = [word.split("/") if parts > 1 else [word] for word in named if word]
    if not keys:
        raise ValueError("--public_partitions must name a key, for example 1,2,3")
    if {len(key) for key in keys} != {parts}:
        rule = "every key must have one part per --partition column, with / between: de/2024"
        raise ValueError(f"--public_partitions: {rule}")
    return dp.PublicPartitions(list(zip(*map(typed_keys, zip(*keys, strict=True)), strict=True)))


def _listed(text: str) -> list[str]:
    """Return the keys of a list; refuse a range, which would be one key of that name."""
    keys = words.listed(text)
    ends = _RANGE.fullmatch(text.strip())
    if ends and int(ends[1]) < int(ends[2]):
        raise ValueError(
            f"--public_partitions names keys, and {text!r} looks like a range: write all of them, "
            f"{_counted(int(ends[1]), int(ends[2]))}; if {text!r} is the one key, write it into a "
            "file: --public_partitions @keys.txt"
        )
    return keys


def _counted(first: int, last: int) -> str:
    """Return whole numbers with commas between, the middle of many left out."""
    numbers = range(first, last + 1)
    few = [*numbers] if len(numbers) <= _FEW else [*numbers[:3], "...", last]
    return ",".join(map(str, few))


def _keys_in(pattern: str, columns: list[str]) -> dp.PublicPartitions:
    try:
        return dp.PublicPartitions.from_files(pattern, columns)
    except ValueError as error:
        if not str(error).startswith("ReadRows: "):
            raise
        raise ValueError(f"--public_partitions: {language.of_file(error)}") from error


def _lines(path: str) -> list[str]:
    try:
        with FileSystems.open(path) as file:
            return file.read().decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise ValueError(f"--public_partitions: cannot read {path!r}: {why or error}") from error
