"""What a format of files is: how its rows are read and written."""

import abc
import codecs
import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, BinaryIO, ClassVar, NamedTuple

import pyarrow as pa

from beam_dp.mechanisms.numerics import checks

UTF_8 = "utf-8"
DELIMITERS = (",", ";", "\t", "|")
THOUSANDS = {",": ",", ".": r"\.", "'": "['\u2019]", " ": "[ \u00a0\u2009\u202f]"}
"""What may stand between the thousands of numbers, each with its forms as a pattern."""
_THOUSANDS = '"," or "." or "\'" or " "'
_SUBJECT = "CsvFormat"
_PLAIN = re.compile(r"utf-8|ascii|iso8859-\d+|cp125\d|cp437|cp85[0258]|koi8-[ru]|mac-roman")


@dataclasses.dataclass(frozen=True)
class CsvFormat:
    """Say how the cells of CSV files are written.

    Attributes:
        quotes: whether `"` quotes cells; if not, it is an ordinary character.
        decimal: the decimal point of numbers: `.` or `,`.
        thousands: what may stand between the thousands of numbers, an apostrophe or a space in any
            of its forms; None: nothing.
        encoding: what the bytes stand for: UTF-8, or an encoding of one byte per character that has
            ASCII at its place, like cp1252 (Windows) and latin-1. In others, a byte of one cell
            could take the delimiter behind it away.

    Raises:
        ValueError, TypeError: names the part, and says what it can be.
    """

    quotes: bool = True
    decimal: str = "."
    encoding: str = UTF_8
    thousands: str | None = None

    def __post_init__(self) -> None:
        checks.boolean(_SUBJECT, "quotes", self.quotes)
        rule = f'be "." or ",", not {checks.shown(self.decimal)}'
        checks.require(self.decimal in (".", ","), _SUBJECT, "decimal", rule)
        other = self.thousands in (None, *THOUSANDS) and self.thousands != self.decimal
        rule = f"be {_THOUSANDS}, other than decimal, not {checks.shown(self.thousands)}"
        checks.require(other, _SUBJECT, "thousands", rule)
        rule = f"be utf-8 or one of one byte per character, not {checks.shown(self.encoding)}"
        hint = 'Write encoding="cp1252" for files of Windows, or save others as UTF-8.'
        checks.require(_is_plain(self.encoding), _SUBJECT, "encoding", rule, hint)

    @property
    def is_utf8(self) -> bool:
        """Whether the bytes are UTF-8."""
        return codecs.lookup(self.encoding).name == UTF_8


def _is_plain(encoding: object) -> bool:
    """Return whether an encoding is UTF-8, or one of ASCII and further single bytes.

    Others have a state, or read escapes: a row could change how the rows after it are read.
    """
    try:
        name = codecs.lookup(encoding).name if isinstance(encoding, str) else ""
    except (LookupError, ValueError):
        return False
    return _PLAIN.fullmatch(name) is not None


RFC_4180 = CsvFormat()
"""Cells as in RFC 4180, in UTF-8, and numbers like 1234.5."""


class Cast(NamedTuple):
    """A column that a query reads as dates, times or numbers.

    Attributes:
        column: the column.
        sql: the SQL that does, of that column alone.
        is_time: whether it makes a date or a time.
        is_plain: whether it is of the column as it is.
    """

    column: str
    sql: str
    is_time: bool
    is_plain: bool


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What is read of some files.

    Attributes:
        pattern: the files, as messages name them.
        columns: the names of the wanted columns.
        numbers: those of them that hold numbers, for formats whose cells are text.
        csv: how cells are written, in such formats.
        casts: the columns of which a query makes times or numbers.
    """

    pattern: str
    columns: Sequence[str]
    numbers: Sequence[str] = ()
    csv: CsvFormat = RFC_4180
    casts: Sequence[Cast] = ()


class Sniffed(NamedTuple):
    """What is known of files before a run.

    Attributes:
        types: the types of columns, of each file that has some.
        forms: how their cells are written (`written_forms`), where these are text or JSON.
    """

    types: Sequence[Mapping[str, pa.DataType]]
    forms: Mapping[str, frozenset[str]] = MappingProxyType({})


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
    def sniff(self, paths: Sequence[str], wanted: Wanted) -> Sniffed:
        """Refuse local files that cannot be read, or would be misread; return what is known of them.

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
            ValueError: for a file that is damaged, by `open_files.rows_of`: what a parser says
                of it quotes cells.
        """

    def taken(self, path: str, wanted: Wanted) -> str:
        """Return what is taken of how a file is written, in words; "" for nothing."""
        return ""

    def dropped(self, part: Any, wanted: Wanted) -> dict[str, int]:
        """Return how many records of a part `rows` leaves out, by the reason: NOT PRIVATE."""
        return {}

    @abc.abstractmethod
    def write(self, file: BinaryIO, table: pa.Table) -> None:
        """Write a table, in the order of its rows; never fail, as its budget is spent.

        A type that the format lacks becomes text; a column of an empty table may be of nulls.
        """


def cells_of(elements: Sequence[Any], name: str) -> list[Any]:
    """Return the cells of a column in what `Format.rows` yields."""
    if elements and isinstance(elements[0], dict):
        return [row[name] for row in elements]
    return [cell for batch in elements for cell in batch.column(name).to_pylist()]
