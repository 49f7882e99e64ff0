"""What a format of files is: how its rows are read and written."""

import abc
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, ClassVar

import pyarrow as pa


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What is read of some files.

    Attributes:
        pattern: the files, as messages name them.
        columns: the names of the wanted columns.
        numbers: those of them that hold numbers, for formats whose cells are text.
        quotes: whether quotes have a meaning, in such formats.
    """

    pattern: str
    columns: Sequence[str]
    numbers: Sequence[str] = ()
    quotes: bool = True


class Format(abc.ABC):
    """One format of files. `formats.FORMATS` names all of them, by the end of a file's name.

    What becomes of a row depends on that row alone, and no row makes reading fail. Errors name the
    pattern, a column, and what belongs to the whole file; no cell of a row.
    """

    packed: ClassVar[bool] = False
    """Whether files may be packed by gzip, with .gz behind their names."""
    typed: ClassVar[bool] = True
    """Whether cells have types; if not, they are text, and may stand in quotes."""
    element: ClassVar[type] = pa.RecordBatch
    """The type of what `rows` yields: record batches, or dicts."""

    @abc.abstractmethod
    def look(self, paths: Sequence[str], wanted: Wanted) -> dict[str, pa.DataType]:
        """Refuse local files that cannot be read; return the types of columns, if known.

        Raises:
            ValueError: for what stands at the start or the end of a file: no more is looked at.
        """

    def parts(self, paths: Sequence[str], wanted: Wanted) -> Iterable[Any]:
        """Return the parts of files that workers read, each on its own: whole files, mostly."""
        return paths

    @abc.abstractmethod
    def rows(self, part: Any, wanted: Wanted) -> Iterator[Any]:
        """Yield the rows of a part, with exactly the wanted columns.

        Raises:
            ValueError: for a file that is damaged.
        """

    @abc.abstractmethod
    def write(self, file: BinaryIO, table: pa.Table) -> None:
        """Write a table, in the order of its rows."""


def cells_of(elements: Sequence[Any], name: str) -> list[Any]:
    """Return the cells of a column in what `Format.rows` yields."""
    if elements and isinstance(elements[0], dict):
        return [row[name] for row in elements]
    return [cell for batch in elements for cell in batch.column(name).to_pylist()]
