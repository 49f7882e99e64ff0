"""Compare the schemas of all files of a pattern, for formats whose columns have types."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pt

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.columns import ids
from beam_dp.transforms.io import open_files
from beam_dp.transforms.io.file_format import Wanted

_KINDS = {
    "an integer": (pt.is_integer,),
    "a float": (pt.is_floating,),
    "a decimal": (pt.is_decimal,),
    "text": (pt.is_string, pt.is_large_string, pt.is_string_view),
    "bytes": (pt.is_binary, pt.is_large_binary, pt.is_binary_view),
}


def check_names(path: str, schema: pa.Schema, wanted: Wanted) -> pa.Schema:
    """Return the schema of a file, in which each wanted column stands once."""
    for column in wanted.columns:
        if schema.names.count(column) != 1:
            shown = checks.listed(schema.names), schema.names
            raise open_files.absent(path, wanted.pattern, column, *shown)
    return schema


def types_of(schemas: Sequence[pa.Schema], wanted: Wanted) -> list[dict[str, pa.DataType]]:
    """Return the types of the wanted columns, by file; of nulls beside another type, the other.

    Raises:
        ValueError: for two kinds of values in the files: the ids 1 and "1" would be two people.
    """
    found: list[dict[str, pa.DataType]] = [{} for _ in schemas]
    for column in wanted.columns if schemas else ():
        types = [schema.field(column).type for schema in schemas]
        kinds = set(map(_kind_of, types)) - {"null"}
        checks.require(
            len(kinds) <= 1,
            "ReadRows",
            f"column {column!r}",
            f"have one type in all files of {wanted.pattern!r}, not {' and '.join(sorted(kinds))}",
            "Write the files again with one type.",
        )
        other = max(types, key=lambda kind: not pt.is_null(kind))
        for of_file, kind in zip(found, types, strict=True):
            of_file[column] = other if pt.is_null(kind) else kind
    return found


def _kind_of(kind: pa.DataType) -> str:
    kind = ids.stored(kind)
    fitting = (name for name, tests in _KINDS.items() if any(fits(kind) for fits in tests))
    return next(fitting, str(kind))
