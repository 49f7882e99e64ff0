"""Refuse columns that rows do not have, when the pipeline is built, as far as that is known then.

A value that is null, or a field that some rows lack, is data: it never fails a job. A name that
*no* row can have is a mistake of the call: it would spend the budget on noise around 0. So names
are compared with what a collection says of all its rows, whoever is in it:

* rows with a type (`beam.Row`, NamedTuple, dataclass): its fields;
* rows of `ReadRows`: the columns that it reads; it compares these with headers and schemas;
* rows for which `columns=[...]` is written: these.

Plain dicts say nothing. Whether *any* row has a key is no question to ask of the data: if one
person alone has it, the answer would tell that this person is there. So nothing is refused; one
`UnknownColumns` warning, made of parameters, says that names were not checked. (Arrow batches carry
their schema, and a batch without a column fails the job: see `columns.layout`.)
"""

import datetime
import re
import warnings
import weakref
from collections.abc import Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.utils.timestamp import Timestamp

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.io.file_format import Sniffed
from beam_dp.transforms.io.table_files import ARROW_TYPES
from beam_dp.transforms.sql.row_queries import Query

_NO_ROWS = {
    "(bool|int|float|str|bytes)$": "Read files by dp.ReadRows, or make a dict of each line.",
    r"Tuple\[": 'Name the columns: beam.Map(lambda pair: {"visitor_id": pair[0], ...}).',
    r"(List|Sequence|Iterable|Set)\[": "Write beam.FlatMap(lambda rows: rows) before.",
    "DataFrame$": (
        "Write beam.Map(lambda df: pa.RecordBatch.from_pandas(df)).with_output_types(pa.RecordBatch)."
    ),
}
"""By the name of a type whose elements are no rows, what to write."""
_BATCHES = (pa.RecordBatch, pa.Table)
_TIMES = (datetime.datetime, Timestamp)
_TYPES = {
    which: pa.timestamp("us") if kind in _TIMES else ARROW_TYPES[kind]
    for kind in (*ARROW_TYPES, *_TIMES)
    for which in (kind, kind | None)
}
Known = tuple[Sequence[str] | None, Sniffed]
"""The columns of rows, and what is known of them."""
_read: weakref.WeakKeyDictionary[beam.PCollection[Any], Known] = weakref.WeakKeyDictionary()
made_by: weakref.WeakKeyDictionary[beam.PCollection[Any], Query] = weakref.WeakKeyDictionary()
"""The query that made rows, where one did."""


class UnknownColumns(UserWarning):
    """The columns of the rows are not known when the pipeline is built: names are not checked."""


def remember(
    rows: beam.PCollection[Any], columns: Sequence[str], sniffed: Sniffed
) -> beam.PCollection[Any]:
    """Return the collection, whose rows have these columns and no other, and what is known of some."""
    _read[rows] = tuple(columns), sniffed
    return rows


def queries_of(rows: beam.PCollection[Any]) -> list[Query | None]:
    """Return the queries that made rows, by whatever steps these went since; None: none did."""
    found: list[Query | None] = []
    left = [rows]
    seen = set(left)
    while left:
        each = left.pop()
        query, made = made_by.get(each), each.producer
        before = made.inputs if query is None and made is not None else ()
        before = {one for one in before if isinstance(one, beam.PCollection)}
        found += [] if before else [query]
        left += before - seen
        seen |= before
    return found


def check(
    subject: str, rows: beam.PCollection[Any], wanted: Sequence[str], given: Sequence[str] | None
) -> None:
    """Refuse columns that the rows do not have; warn where it is not known which they have.

    Args:
        subject: the name that errors begin with.
        rows: the collection.
        wanted: the columns that are read.
        given: the columns that the caller says the rows have; None: not said.

    Raises:
        TypeError, ValueError: for a column that is missing, and for elements that are no rows.
    """
    kind = rows.element_type
    shown = getattr(kind, "__name__", str(kind))
    rule = f"hold rows (dicts, beam.Row, NamedTuple, dataclass or Arrow batches), not {shown}"
    for no_rows, hint in _NO_ROWS.items():
        if re.match(no_rows, shown):
            raise checks.ParameterTypeError(subject, "its input", rule, hint)
    known, _ = known_of(rows)
    columns: dict[str, Sequence[str]] = {}
    if given is not None:
        columns["that columns=[...] names"] = checks.columns(subject, "columns", given)
    if known is not None:
        columns["that ReadRows reads" if rows in _read else "of its rows"] = known
    for whose, there in columns.items():
        for name in wanted:
            rule = f"be one of the columns {whose}: {checks.listed(there)}"
            near = checks.near(name, there)
            checks.require(name in there, subject, f"column {name!r}", rule, near)
    if not columns and not are_batches(rows):
        why = "rows without a schema are given, and no columns=[...] that they have"
        warn(subject, why, wanted)


def are_batches(rows: beam.PCollection[Any]) -> bool:
    """Return whether rows are said to be Arrow batches or tables."""
    return rows.element_type in _BATCHES


def warn(subject: str, why: str, wanted: Sequence[str]) -> None:
    """Say that names are not compared with anything, and what becomes of a misspelt one."""
    text = (
        f"{subject}: {why}, so a misspelt name among {checks.listed(wanted)} is not noticed: it "
        "counts as a column in which every row is empty"
    )
    text += "; a dot is no path into a value" * any("." in name for name in wanted)
    warnings.warn(text, UnknownColumns, stacklevel=2)


def fields_of(rows: beam.PCollection[Any]) -> Sequence[tuple[str, Any]] | None:
    """Return the names and types of the fields, if the elements have a type with a schema."""
    kind = rows.element_type
    if not isinstance(kind, RowTypeConstraint):
        kind = RowTypeConstraint.from_user_type(kind)
    return kind._fields if kind is not None else None


def known_of(rows: beam.PCollection[Any]) -> Known:
    """Return what is known of the columns of rows."""
    if rows in _read:
        return _read[rows]
    fields = fields_of(rows)
    names = None if fields is None else [name for name, _ in fields]
    types = {name: _TYPES[kind] for name, kind in fields or () if kind in _TYPES}
    return names, Sniffed([types])
