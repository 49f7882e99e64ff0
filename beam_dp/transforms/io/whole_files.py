"""Write a file that appears whole under its name or not at all."""

import contextlib
import glob
import hashlib
import io
import os
import tempfile
import uuid
from collections.abc import Iterator
from typing import Any, BinaryIO

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.io import open_files

DIGEST = "sha256"
"""The entry of a record that tells which table it is of."""
_LONGEST = 250  # bytes of a name: file systems allow 255, and a record has .json behind it


@contextlib.contextmanager
def written(path: str) -> Iterator[BinaryIO]:
    """Yield a file that appears under its name when it is complete, in place of an older file.

    It is written under another name in the same folder and renamed, which is one step on a local
    file system. If writing fails, the unfinished file is deleted and an older file is unchanged.
    In stores of objects, which have no folders, its bytes are made first and then written at once:
    an object appears whole, or not at all, and nothing is to be deleted.
    """
    if not FileSystems.get_filesystem(path).has_dirs():
        yield (content := io.BytesIO())
        _create(path, content.getvalue())
        return
    partial = f"{_prefix(path)}{uuid.uuid4().hex}.partial"
    try:
        with FileSystems.create(partial) as file:
            yield file
        FileSystems.rename([partial], [path])
    finally:
        if FileSystems.exists(partial):
            FileSystems.delete([partial])


def _create(path: str, content: bytes) -> None:
    # One write: what a client still holds after an error, and sends when it is closed, is all.
    with FileSystems.create(path) as file:
        file.write(content)


def try_out(path: str) -> None:
    """Write a byte beside an output and delete it, if that is allowed.

    Raises what file systems raise that cannot be written.
    """
    trial = f"{_prefix(path)}trial.partial"
    _create(trial, b"x")
    with contextlib.suppress(Exception):  # of Google's client some are no OSError
        FileSystems.delete([trial])


def beside(path: str) -> str:
    """Return the name of the record beside a released file."""
    return f"{path}.json"


class Hashed:
    """A file that is hashed while it is written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.hash = file, hashlib.sha256()

    def write(self, content: bytes) -> int:
        """Write some of it."""
        self.hash.update(content)
        return self._file.write(content)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def digest(path: str) -> str:
    """Return the SHA-256 of a file as it is stored; "" where there is none."""
    if not FileSystems.exists(path):
        return ""
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
        return hashlib.sha256(file.read()).hexdigest()


def remove_unfinished(path: str) -> None:
    """Delete the local unfinished files for `path`, and for its record."""
    for name in (path, beside(path)):
        if open_files.is_local(name):
            for partial in glob.glob(f"{glob.escape(_prefix(name))}*.partial"):
                os.remove(partial)


def check(subject: str, path: str) -> None:
    """Refuse a local path where no file can be written.

    A folder that is not there is refused too: mostly its name is misspelt. Other file systems are
    not looked at: workers write there, under other accounts.

    Args:
        subject: the name that errors begin with.
        path: where a file shall be written later.

    Raises:
        ValueError: says how to correct the call.
    """
    open_files.check_system(subject, "path", path)
    if not open_files.is_local(path):
        return
    folder = os.path.dirname(os.path.abspath(path))
    is_short = len(os.fsencode(os.path.basename(path))) <= _LONGEST
    checks.require(
        is_short and not os.path.isdir(path) and _is_open(folder),
        subject,
        "path",
        f"be one that can be written, not {path!r}",
        f"Name a file in a folder that exists, and where you may write, by {_LONGEST} bytes at most.",
    )


def _is_open(folder: str) -> bool:
    """Return whether a file can be made in a folder: one without a name, if the system has such."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _prefix(path: str) -> str:
    name = os.path.basename(path)
    # Its start is kept, and a hash of the whole name tells names apart that differ further on.
    whole = hashlib.blake2b(os.fsencode(name), digest_size=4).hexdigest()
    return f"{path[: len(path) - len(name)]}{name[:40]}.{whole}."
