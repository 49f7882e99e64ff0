"""`report`: a page that shows a released table to readers who did not run the job.

The page is one file of HTML: charts, the table, what was spent, and in words what the numbers
protect. It asks for nothing from the network, and all of it is made of the released table and its
record. Keys and names are hostile text: the template escapes them, and the page allows no script
but its own, by its hash.
"""

import importlib.util
import os
from typing import Any

import pyarrow as pa

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.inputs import released_files
from beam_dp.transforms.io import whole_files

_OWNER = "report"
_NEEDED = ("jinja2", "matplotlib")


def report(source: Any, path: str | os.PathLike[str] | None = None, title: str = "") -> str:
    """Return a released table as a page of HTML, and write the page to a file.

    It costs no budget, as it looks at nothing but the released table and its record.

    Args:
        source: what `release` returned, or the path of a released file, whose record is beside it.
        path: the file to write, which ends in .html and is replaced if it exists; None: none.
        title: the heading of the page; "": one that names the input.

    Raises:
        TypeError, ValueError: for a wrong source or path.
        ValueError: where matplotlib or jinja2 is not installed: the extra `report` has both.
    """
    check(path)
    if isinstance(source, (str, os.PathLike)):
        table, record = released_files.read(_OWNER, os.fspath(source))
    else:
        table, record = _parts(source)
    # What draws the page comes with an extra, and is loaded by who asks for a page.
    content = importlib.import_module("beam_dp.results.report_content")
    page: str = content.html(table, record, title)
    if path is not None:
        with whole_files.written(os.fspath(path)) as file:
            file.write(page.encode())
    return page


def check(path: str | os.PathLike[str] | None) -> None:
    """Refuse a page that could not be written, before a release that would be paid for."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    checks.require(
        not missing,
        _OWNER,
        " and ".join(missing),
        "be installed",
        f"Write: pip install {' '.join(missing)}.",
    )
    if path is not None:
        name = os.fspath(path)
        checks.require(
            name.endswith(".html"), _OWNER, "path", f"end in .html, not {checks.shown(name)}"
        )
        whole_files.check(_OWNER, name)


def _parts(source: Any) -> tuple[pa.Table, dict[str, Any]]:
    table, record = getattr(source, "table", None), getattr(source, "record", None)
    if not isinstance(table, pa.Table) or not isinstance(record, dict):
        raise checks.ParameterTypeError(
            _OWNER,
            "source",
            f"be what release() returned, or a path, not {type(source).__name__}",
            'Write dp.report("released.csv", "released.html").',
        )
    return table, record
