"""The type of rows some of whose columns may hold anything, for runners that are written in Java.

Flink's and Spark's runners read the schema of what crosses a shuffle, and fail at a column of any
type ("Unexpected type_info: TYPEINFO_NOT_SET"). To them such rows are bytes; to Python, rows with a
schema as before.
"""

from collections.abc import Sequence
from typing import Any

from apache_beam.coders import Coder, registry
from apache_beam.coders.row_coder import RowCoder
from apache_beam.typehints.row_type import GeneratedClassRowTypeConstraint, RowTypeConstraint


class _OpenRow(GeneratedClassRowTypeConstraint):
    """A schema that only Python reads."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _OpenRow, (self._fields,)


class _OpenRowCoder(RowCoder):
    """The coder of a row, shown to the runner as one that it does not know.

    It is unpickled as the `RowCoder` that it is, so a worker needs nothing of this module.
    """

    def to_runner_api_parameter(self, context: Any) -> Any:
        """Send the coder pickled, instead of its schema."""
        return Coder.to_runner_api_parameter(self, context)


registry.register_coder(_OpenRow, _OpenRowCoder)


def row_type(fields: Sequence[tuple[str, Any]]) -> RowTypeConstraint:
    """Return the type of rows with these columns.

    Args:
        fields: the name and the type of each column, `Any` where it is not known.
    """
    unknown = any(kind is Any for _, kind in fields)
    return _OpenRow(fields) if unknown else RowTypeConstraint.from_fields(fields)
