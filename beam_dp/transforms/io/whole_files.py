"""Write a file that appears whole under its name or not at all."""

import contextlib
import errno
import glob
import hashlib
import itertools
import os
import stat
import tempfile
import uuid
from collections.abc import Collection, Iterator
from typing import BinaryIO

from apache_beam.io.filesystems import FileSystems

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.io import open_files

# The part of a name that temporary names keep: file systems allow 255 bytes for a name.
_SHORT = 40


@contextlib.contextmanager
def written(path: str) -> Iterator[BinaryIO]:
    """Yield a file that appears under its name when it is complete, in place of an older file.

    It is written under another name in the same folder and renamed, which is one step on a local
    file system. If writing fails, the unfinished file is deleted and an older file is unchanged.
    """
    partial = f"{_prefix(path, os.getpid())}{uuid.uuid4().hex}.partial"
    try:
        with FileSystems.create(partial) as file:
            yield file
        FileSystems.rename([partial], [path])
    finally:
        if FileSystems.exists(partial):
            FileSystems.delete([partial])


def beside(path: str) -> str:
    """Return the name of the record beside a released file."""
    return f"{path}.json"


def remove_unfinished(path: str, processes: Collection[int]) -> None:
    """Delete the unfinished files for `path`, and for its record, of processes that were ended."""
    for process, name in itertools.product(processes, (path, beside(path))):
        prefix = _prefix(name, process)
        if open_files.is_local(path):
            for partial in glob.glob(f"{glob.escape(prefix)}*.partial"):
                os.remove(partial)
        else:
            partials = FileSystems.match([f"{prefix}*.partial"])[0].metadata_list
            FileSystems.delete([partial.path for partial in partials])


def check(owner: str, path: str) -> None:
    """Refuse a local path where no file can be written, by writing an empty one beside it.

    A folder that is not there is refused too: mostly its name is misspelt.

    Other file systems are not tried: workers write there, under other accounts, and a file that is
    created there cannot always be deleted.

    Args:
        owner: the name that errors begin with.
        path: where a file shall be written later.

    Raises:
        ValueError: with the reason of the operating system, and how to mend the call.
    """
    FileSystems.get_filesystem(path)  # raises where its scheme (gs://) is not installed
    if not open_files.is_local(path):
        return
    checks.require(
        not os.path.isdir(path),
        owner,
        "path",
        f"name a file, not the directory {path!r}",
        "Name a file in it.",
    )
    try:
        _try(os.path.abspath(path))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise checks.ParameterError(
            owner,
            "path",
            f"be one that can be written, not {path!r}: {reason}",
            "Name a file in a folder that exists, and where you may write.",
        ) from None


def _prefix(path: str, process: int) -> str:
    name = os.path.basename(path)
    # The whole name by its hash: names may differ behind what is kept of them.
    whole = hashlib.blake2b(os.fsencode(name), digest_size=4).hexdigest()
    return f"{path[: len(path) - len(name)]}{name[:_SHORT]}.{whole}.{process}."


def _try(path: str) -> None:
    """Write an empty file beside a path, and delete it."""
    folder, name = os.path.split(path)
    _check_sticky(folder, path)
    with contextlib.suppress(FileNotFoundError):
        os.lstat(path)  # raises where the name is too long
    prefix = _prefix(name, os.getpid())
    with tempfile.NamedTemporaryFile(dir=folder, prefix=prefix, suffix=".partial"):
        pass


def _check_sticky(folder: str, path: str) -> None:
    """Refuse to replace the file of somebody else in a folder like /tmp, as the rename would."""
    if os.path.lexists(path) and os.stat(folder).st_mode & stat.S_ISVTX:
        owners = {0, os.stat(folder).st_uid, os.lstat(path).st_uid}
        if os.geteuid() not in owners:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
