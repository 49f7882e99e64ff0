"""Print a released file as a table, with its noise and its cost."""

import json
import os
import sys
import textwrap
from typing import Any

from apache_beam.io.filesystems import FileSystems

from beam_dp.mechanisms.numerics.short_numbers import shortened
from beam_dp.results.report import report
from beam_dp.results.shown_numbers import plain
from beam_dp.results.view import View
from beam_dp.transforms.io import whole_files
from beam_dp.transforms.io.released_files import table_of
from beam_dp.transforms.release_record import COLUMNS

_PLAN = "--plan --people N says what to expect"
_NARROW, _LARGE = 40, 1e4


def show(path: str, columns: dict[str, Any], page: str | None = None) -> int:
    """Print a released file, its noise and its cost, and return its number of rows.

    Args:
        path: the file.
        columns: what its record says of its columns.
        page: the file of the page that is to be written; None: none.
    """
    record = _record(path)
    known = {COLUMNS: columns, **record}
    columns_there = width()
    shown = View.of(table_of(path, columns), known)
    reported = _reported(path, page) if page else None  # first: the table's reader may go away
    _print(shown.text(columns_there, path, _PLAN))
    for line in _noise(record):
        _print(line if columns_there is None else textwrap.fill(line, max(columns_there, _NARROW)))
    if reported is not None:
        _print(reported)
    return len(shown.keys)


def selection(path: str) -> str | None:
    """Return from how many people on a partition is named, by the record of a released file.

    None: the partitions were public.
    """
    said: str | None = _record(path)["selection"]
    return said


def _record(path: str) -> dict[str, Any]:
    """Return the record that the job wrote beside its file."""
    with FileSystems.open(whole_files.beside(path)) as file:
        record: dict[str, Any] = json.loads(file.read())
    return record


def _noise(record: dict[str, Any]) -> list[str]:
    """Return in two lines what was drawn, as it was chosen, and what all of it cost."""
    said = [f"{plain(each['metric'])}: {_drawn(each)}" for each in record.get("releases", ())]
    lines = ["; ".join(said)] if said else []
    if "composition" in record:
        chosen = ", chosen privately" if record.get("partitions_chosen") else ""
        lines.append(f"in all: {record['composition']}{chosen}")
    return lines


def _drawn(release: dict[str, Any]) -> str:
    """Return the clip and the noise of one metric, or else how far it may be off."""
    clip = release.get("clip") or {}
    if clip.get("clips") and clip.get("noise_scales"):
        clips, scales = (_listed(clip[name]) for name in ("clips", "noise_scales"))
        return f"clip {clips}, noise {scales}"
    if release["noise_scale"] != "-":
        return f"noise {shortened(release['noise_scale'])}"
    return shortened(release["expected_error"])


def _listed(numbers: list[float]) -> str:
    return " or ".join(
        f"{number:,.4g}" if number < _LARGE else f"{number:,.0f}" for number in numbers
    )


def _reported(path: str, page: str) -> str:
    """Write the page, and return what to say: the release is there, and paid for, in any case."""
    try:
        report(path, page)
    except OSError as error:
        return f"report: not written, {error.strerror}; at no cost: dp.report({path!r}, {page!r})"
    return f"report: {page}"


def _print(text: str) -> None:
    """Print a line; a terminal that cannot show a sign shows its number."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(f"{text.encode(encoding, 'backslashreplace').decode(encoding)}\n")


def width() -> int | None:
    """Return the columns of the terminal; None where the output is none."""
    if not sys.stdout.isatty():
        return None
    return os.get_terminal_size(sys.stdout.fileno()).columns
