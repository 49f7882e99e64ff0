"""Print a released file as a table."""

import os
import sys
from typing import Any

from beam_dp.results.report import report
from beam_dp.results.text_table import TextTable, text_table
from beam_dp.transforms.inputs.released_files import table_of
from beam_dp.transforms.release_record import COLUMNS

_PLAN = "--plan --people N says what to expect"


def show(path: str, columns: dict[str, Any], page: str | None = None) -> TextTable:
    """Print the first rows of a released file, with marks and remarks on numbers of little use.

    Args:
        path: the file.
        columns: what its record says of its columns.
        page: the file of the page that is to be written; None: none.
    """
    known = {COLUMNS: columns}
    shown = text_table(table_of(path, columns), known, _width(), place=path, plan=_PLAN)
    _print(str(shown))
    if page:
        _print(_reported(path, page))
    return shown


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


def _width() -> int | None:
    """Return the columns of the terminal; None where the output is none."""
    if not sys.stdout.isatty():
        return None
    return os.get_terminal_size(sys.stdout.fileno()).columns
