"""Find and open files, and turn all errors that a file's content causes into one without content."""

import contextlib
import gzip
import importlib.util
import io
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
from apache_beam.io.filesystem import CompressionTypes, FileMetadata
from apache_beam.io.filesystems import FileSystems

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.stages import threads_and_memory

# All errors that reading can raise: those of Arrow, of the operating system (with BeamIOError and
# a bad gzip header), of a truncated gzip stream, and of names that are no text.
DAMAGE = (pa.ArrowException, OSError, EOFError, zlib.error, UnicodeDecodeError)

SNIFFED = 1 << 20
"""How many bytes at the start of a text file are looked at when a pipeline is built."""
START = f"its first {SNIFFED >> 20} MiB"
PATIENCE = 60.0
"""So many seconds a file system may think, when a pipeline is built."""
_RAISED = (Exception,)
FEW = 100
"""One line of so many may be no row, as a remark; more show that all rows are misread."""
_BUFFER = 1 << 16
_NULL = "__HIVE_DEFAULT_PARTITION__"
_UTF_16 = "text in UTF-16: save it in UTF-8, as iconv -f UTF-16 -t UTF-8 does"
_OTHERS = {
    b"\x1f\x8b": "packed by gzip: its name must end in .gz",
    b"PK\x03\x04": "a zip archive or a spreadsheet: save it as CSV in UTF-8",
    b"PAR1": "a Parquet file: its name must end in .parquet",
    b"BZh": "packed by bzip2: unpack it, or pack it by gzip",
    b"\xfd7zXZ": "packed by xz: unpack it, or pack it by gzip",
    b"\x28\xb5\x2f\xfd": "packed by zstd: unpack it, or pack it by gzip",
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
}
"""What files of other kinds begin with, and what they are."""
Item = TypeVar("Item")
_EXTRAS: dict[str | None, tuple[str, str]] = {
    "gs": ('".[gcp]", in the clone', ""),
    "s3": ('"apache-beam[aws]"', "boto3"),
    "azfs": ('"apache-beam[azure]"', "azure"),
}
# By scheme: what installs a file system, and the package that Beam misses only when it reads.


def is_local(path: str) -> bool:
    """Tell whether `path` lies on this machine's own file system."""
    return FileSystems.get_scheme(path) is None


def check_system(subject: str, name: str, path: str) -> None:
    """Refuse a path in a file system whose package is not installed.

    Args:
        subject: the name that errors begin with.
        name: what the path is.
        path: the path, or a pattern of paths.

    Raises:
        ValueError: says what to install.
    """
    extra, package = _EXTRAS.get(FileSystems.get_scheme(path), ("", ""))
    try:
        FileSystems.get_filesystem(path)
        is_there = not package or importlib.util.find_spec(package) is not None
    except ValueError:
        is_there = False
    rule = f"be in a file system that is installed, not {path!r}"
    checks.require(is_there, subject, name, rule, f"Write: pip install {extra}." if extra else "")


def matched(pattern: str) -> list[FileMetadata]:
    """Return the files of a pattern: paths and globs with commas between."""
    # Beam finds no file for a local glob without a folder.
    parts = [p if os.path.dirname(p) else os.path.join(".", p) for p in pattern.split(",")]
    found = FileSystems.match(parts)
    return [file for one in found for file in sorted(one.metadata_list, key=lambda file: file.path)]


def answer(path: str, ask: Callable[[str], Item]) -> Item:
    """Return what a file system says of a path.

    Raises:
        ValueError: it is not local, and cannot, or says nothing within a minute.
    """
    if is_local(path):
        return ask(path)
    try:
        said: Item = threads_and_memory.asked(ask, path).result(PATIENCE)
        return said
    except checks.ParameterError:
        raise
    except TimeoutError:
        why = f"it does not answer within {PATIENCE:.0f} s"
    except _RAISED as error:
        found = [*(getattr(error, "exception_details", None) or {"": error}).values()][-1]
        why = str(getattr(found, "message", None) or found).partition("\n")[0].rstrip(".")
    rule = "be one that can be reached, and read or written"
    raise checks.ParameterError("ReadRows", f"path {path!r}", f"{rule}: {why}")


def folders_of(path: str) -> dict[str, str | None]:
    """Return what folders like `day=2026-11-24` say of a file, by name; None stands for null."""
    pairs = (folder.split("=", 1) for folder in path.split("/")[:-1] if "=" in folder)
    texts = {unquote(name): unquote(value) for name, value in pairs}
    return {name: None if value == _NULL else value for name, value in texts.items()}


def size_of(pattern: str) -> int:
    """Return how many bytes the files of a pattern have.

    Raises what file systems raise that cannot tell.
    """
    return sum(file.size_in_bytes for file in matched(pattern))


@contextlib.contextmanager
def opened(path: str) -> Iterator["io.BufferedReader[Any] | gzip.GzipFile"]:
    """Open `path` (local or remote) to read its bytes; `.gz` is unpacked as it is read.

    No read returns more bytes than requested, however well the file was compressed.
    """
    # A GzipFile does not close the file that it reads, so both are closed here.
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as raw:
        buffered = io.BufferedReader(raw, _BUFFER)  # not all file systems return what can peek
        if not path.endswith(".gz"):
            yield buffered
            return
        with gzip.GzipFile(fileobj=buffered) as unpacked:
            yield unpacked


def seekable(path: str) -> pa.NativeFile:
    """Open `path` (local or remote) for formats that read here and there."""
    if is_local(path):
        # Not memory-mapped: mapped pages count as the worker's memory until the system takes them.
        return pa.OSFile(path)
    file = FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)
    if isinstance(file, io.BufferedReader):  # S3, Azure: their buffer would fetch 16 MiB for a page
        file = io.BufferedReader(file.detach(), _BUFFER)
    return pa.PythonFile(file, mode="r")


def start_of(path: str, pattern: str, rule: str, utf8: bool = True) -> bytes:
    """Return the first 1 MiB of a file of text, unpacked.

    A character that is cut at their end is no fault.

    Args:
        path: the file.
        pattern: the files, as messages name them.
        rule: what they must be.
        utf8: whether they must be UTF-8.

    Raises:
        ValueError: for a file of another kind, for bytes that are not UTF-8, and for a file that
            cannot be read or unpacked.
    """
    [start] = rows_of(_start(path), path, pattern, rule)
    subject, every = "ReadRows", f"every file of {pattern!r}"
    kinds = [kind for sign, kind in _OTHERS.items() if start.startswith(sign)]
    kinds += [_UTF_16] * (b"\0" in start[:2])  # without a mark
    for kind in kinds[:1]:
        raise checks.ParameterError(
            subject, every, f"be text, and {named(path, pattern)} is {kind}"
        )
    text = start.decode(errors="ignore").encode()
    checks.require(
        not utf8 or (start.startswith(text) and len(start) - len(text) < 4),
        subject,
        every,
        f"be text in UTF-8, and {named(path, pattern)} is not, in {START}",
        "CSV may have another one: give --encoding cp1252 (of Windows) or latin-1. Save other files "
        "as UTF-8, as iconv -f WINDOWS-1252 -t UTF-8 old.jsonl > new.jsonl does.",
    )
    return start


def _start(path: str) -> Iterator[bytes]:
    with opened(path) as stream:
        yield stream.read(SNIFFED)


def guarded(items: Iterable[Item], message: str) -> Iterator[Item]:
    """Yield `items`; if the file's content stops them, raise ValueError(`message`).

    The original error quotes cells, so nothing of it is kept: the new error is raised outside of
    the handler, without cause and context.
    """
    iterator = iter(items)
    while True:
        try:
            item = next(iterator, None)
        except DAMAGE:
            break
        if item is None:
            return
        yield item
    raise ValueError(message)


def rows_of(items: Iterable[Item], path: str, pattern: str, rule: str) -> Iterator[Item]:
    """Yield what is read of a file; if its content stops that, raise ValueError.

    Args:
        items: what is read.
        path: the file.
        pattern: the files, as the message names them.
        rule: what they must be.
    """
    which = named(path, pattern)
    said = f"ReadRows: every file of {pattern!r} must be {rule}; {which} cannot be read."
    return guarded(items, said)


def named(path: str, pattern: str) -> str:
    """Return what messages call one of the files of a pattern."""
    return "it" if os.path.normpath(path) == os.path.normpath(pattern) else repr(path)


def absent(
    path: str, pattern: str, column: str, there: str, names: Iterable[str] = ()
) -> checks.ParameterError:
    """Return the error for a file that lacks a wanted column, or has it twice.

    Args:
        path: the file.
        pattern: the files.
        column: what is wanted.
        there: what the file has, in words without data.
        names: the columns of the file, where they may be shown.
    """
    rule = f"stand once in every file of {pattern!r}; {named(path, pattern)} has {there}"
    hint = checks.near(column, [name for name in names if name != column])
    return checks.ParameterError("ReadRows", f"column {column!r}", rule, hint)
