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
import warnings
import weakref
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.typehints.typehints import TupleConstraint
from apache_beam.utils.timestamp import Timestamp

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.io.table_files import ARROW_TYPES

_NO_ROWS = (bool, int, float, str, bytes)
_BATCHES = (pa.RecordBatch, pa.Table)
_TIMES = (datetime.datetime, Timestamp)
_TYPES = {
    which: pa.timestamp("us") if kind in _TIMES else ARROW_TYPES[kind]
    for kind in (*ARROW_TYPES, *_TIMES)
    for which in (kind, kind | None)
}
_Forms = Mapping[str, frozenset[str]]
_Read = tuple[tuple[str, ...], dict[str, pa.DataType], _Forms]
_read: weakref.WeakKeyDictionary[beam.PCollection[Any], _Read] = weakref.WeakKeyDictionary()


class UnknownColumns(UserWarning):
    """The columns of the rows are not known when the pipeline is built: names are not checked."""


def remember(
    rows: beam.PCollection[Any],
    columns: Sequence[str],
    types: dict[str, pa.DataType],
    forms: _Forms = MappingProxyType({}),
) -> beam.PCollection[Any]:
    """Return the collection, whose rows have these columns and no other.

    Args:
        rows: the collection.
        columns: the columns.
        types: the types of some of them.
        forms: how the cells of some of them are written at the start of files (`written_forms`).
    """
    _read[rows] = tuple(columns), types, forms
    return rows


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
    if kind in _NO_ROWS or isinstance(kind, TupleConstraint):
        raise checks.ParameterTypeError(
            subject,
            "its input",
            "hold rows (dicts, beam.Row, NamedTuple, dataclass or Arrow batches), not "
            f"{_shown(kind)}",
            'Name the columns first: beam.Map(lambda pair: {"visitor_id": pair[0], ...}).',
        )
    if given is not None:
        there = checks.columns(subject, "columns", given)
        _compare(subject, wanted, there, "that columns=[...] names")
    fields = fields_of(rows)
    if fields is not None:
        _compare(subject, wanted, [name for name, _ in fields], "of its rows")
    elif rows in _read:
        _compare(subject, wanted, _read[rows][0], "that ReadRows reads")
    elif given is None and kind not in _BATCHES:
        warn(
            subject, "rows without a schema are given, and no columns=[...] that they have", wanted
        )


def warn(subject: str, why: str, wanted: Sequence[str]) -> None:
    """Say that names are not compared with anything, and what becomes of a misspelt one."""
    text = (
        f"{subject}: {why}, so a misspelt name among {checks.listed(wanted)} is not noticed: it "
        "counts as a column in which every row is empty"
    )
    warnings.warn(text, UnknownColumns, stacklevel=2)


def fields_of(rows: beam.PCollection[Any]) -> Sequence[tuple[str, Any]] | None:
    """Return the names and types of the fields, if the elements have a type with a schema."""
    kind = rows.element_type
    if not isinstance(kind, RowTypeConstraint):
        kind = RowTypeConstraint.from_user_type(kind)
    return kind._fields if kind is not None else None


def names_of(rows: beam.PCollection[Any]) -> list[str] | None:
    """Return the names of the columns; None where they are not known."""
    if rows in _read:
        return list(_read[rows][0])
    fields = fields_of(rows)
    return fields if fields is None else [name for name, _ in fields]


def types_of(rows: beam.PCollection[Any]) -> dict[str, pa.DataType]:
    """Return the Arrow types of the columns whose type is known, by name."""
    if rows in _read:
        return _read[rows][1]
    fields = fields_of(rows) or ()
    return {name: _TYPES[kind] for name, kind in fields if kind in _TYPES}


def forms_of(rows: beam.PCollection[Any]) -> _Forms:
    """Return how the cells of columns are written, by name, as far as it was looked at."""
    return _read[rows][2] if rows in _read else {}


def _compare(subject: str, wanted: Sequence[str], there: Sequence[str], whose: str) -> None:
    for name in wanted:
        checks.require(
            name in there,
            subject,
            f"column {name!r}",
            f"be one of the columns {whose}: {checks.listed(there)}",
            checks.near(name, there),
        )


def _shown(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)
