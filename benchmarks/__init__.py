"""Every claim of speed and accuracy, each printed as a table by one command."""

import atexit
import os
import sys
import types

NO_READER = 141
"""What a program ends with whose output nobody reads any more: 128 and the number of SIGPIPE."""


def flush() -> None:
    """Write what is held of the output; end quietly if its reader (`| head`) went away."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(NO_READER)


def _excepted(
    kind: type[BaseException], error: BaseException, trace: types.TracebackType | None
) -> None:
    if issubclass(kind, BrokenPipeError):
        os._exit(NO_READER)
    sys.__excepthook__(kind, error, trace)


if sys.argv[:1] == ["-m"]:  # as long as the package of `python -m benchmarks.program` is imported
    sys.excepthook = _excepted
    atexit.register(flush)
