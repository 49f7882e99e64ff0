"""Open files, and turn all errors that a file's content causes into one without content.

*How far the input is read* (`watched`) is for the terminal of who started this process. Which part
of the bytes of a file was read counts no rows and no people, and when it is read a runner shows as
well. It goes nowhere else: into no log, no file, no result, no message.
"""

import codecs
import contextlib
import difflib
import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO, TypeVar, cast

import pyarrow as pa
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from beam_dp.mechanisms.numerics import checks

# All errors that reading can raise: those of Arrow, of the operating system (with BeamIOError and
# a bad gzip header), of a truncated gzip stream, and of names that are no text.
DAMAGE = (pa.ArrowException, OSError, EOFError, zlib.error, UnicodeDecodeError)

LOOKED = 1 << 16
"""How many bytes at the start of a text file are looked at when a pipeline is built."""
_SAVE = "save it as UTF-8, as iconv -f WINDOWS-1252 -t UTF-8 old.csv > new.csv does"
_KINDS = {
    b"PAR1": "a Parquet file: its name must end in .parquet",
    b"PK\x03\x04": "a zip file, as .xlsx is: unpack it, or save the sheet as CSV in UTF-8",
    b"\x1f\x8b": "packed by gzip: its name must end in .gz",
    b"\xff\xfe": "text in UTF-16: save it as UTF-8",
    b"\xfe\xff": "text in UTF-16: save it as UTF-8",
}

Item = TypeVar("Item")


_watching: list[Callable[[float], object]] = []


def size_of(pattern: str) -> int:
    """Return how many bytes some files have: paths and globs with commas between."""
    matched = FileSystems.match(pattern.split(","))
    return sum(file.size_in_bytes for one in matched for file in one.metadata_list)


@contextlib.contextmanager
def watched(tell: Callable[[float], object]) -> Iterator[None]:
    """Tell of the bytes that this process reads meanwhile: how many more there are."""
    _watching.append(tell)
    try:
        yield
    finally:
        _watching.remove(tell)


def count(size: float) -> None:
    """Count bytes that were read, where somebody watches."""
    for tell in _watching:
        tell(size)


class _Counted:
    """A file whose bytes are counted as they are read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.tell = file, file.tell

    def read(self, size: int = -1) -> bytes:
        part = self._file.read(size)
        count(len(part))
        return part


@contextlib.contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """Open `path` (local or remote) to read its bytes; `.gz` is unpacked as it is read.

    No read returns more bytes than requested, however well the file was compressed.
    """
    # A GzipFile does not close the file that it reads, so both are closed here.
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as raw:
        counted = cast(BinaryIO, _Counted(raw))
        if not path.endswith(".gz"):
            yield counted
            return
        with gzip.GzipFile(fileobj=counted) as unpacked:
            yield cast(BinaryIO, unpacked)


def start_of(path: str, pattern: str, rule: str) -> bytes:
    """Return the first 64 KiB of a file of text, unpacked.

    A character that is cut at their end is no fault.

    Raises:
        ValueError: for bytes that are not UTF-8, and for a file that cannot be read or unpacked.
    """
    [start] = guarded(_start(path), unreadable(pattern, rule))
    if not _is_utf8(start):
        is_not = f"not, in its first {LOOKED >> 10} KiB: {_SAVE}"
        kind = next((kind for magic, kind in _KINDS.items() if start.startswith(magic)), is_not)
        rule = f"be text in UTF-8, and one of them is {kind}"
        raise checks.ParameterError("ReadRows", f"every file of {pattern!r}", rule)
    return start


def _start(path: str) -> Iterator[bytes]:
    with opened(path) as stream:
        yield stream.read(LOOKED)


def _is_utf8(start: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return True


def is_local(path: str) -> bool:
    """Tell whether `path` lies on this machine's own file system."""
    return FileSystems.get_scheme(path) is None


def guarded(items: Iterable[Item], message: str) -> Iterator[Item]:
    """Yield `items`; if the file's content stops them, raise ValueError(`message`).

    The original error quotes cells, so nothing of it is kept: the new error is raised outside of
    the handler, without cause and context.
    """
    iterator = iter(items)
    while True:
        damaged, item = _next(iterator)
        if damaged:
            raise ValueError(message)
        if item is None:
            return
        yield item


def _next(iterator: Iterator[Item]) -> tuple[bool, Item | None]:
    try:
        return False, next(iterator, None)
    except DAMAGE:
        return True, None


def unreadable(pattern: str, rule: str) -> str:
    """Return the one message for damaged files: the pattern and the rule, never the content."""
    return f"ReadRows: every file of {pattern!r} must be {rule}; one of them cannot be read."


def absent(
    pattern: str, column: str, there: str, names: Sequence[str] = ()
) -> checks.ParameterError:
    """Return the error for a file that has a wanted column not, or twice.

    Args:
        pattern: the files.
        column: what is wanted.
        there: what one of the files has, in words without data.
        names: its columns, as far as they may be shown; the nearest one is proposed.
    """
    near = difflib.get_close_matches(column, names, 1)
    mend = f"Did you mean {near[0]!r}?" if near else ""
    rule = f"stand once in every file of {pattern!r}; one of them has {there}"
    return checks.ParameterError("ReadRows", f"column {column!r}", rule, mend)
