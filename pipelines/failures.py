"""A failed run in one line without data."""

import re

import beam_dp as dp
from pipelines.arguments import language

# Whatever an element can raise in a runner of this process: its text may quote that element.
KINDS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
# The errors of this package name parameters, columns and types, those of files their path.
_OURS = rf"(?:(?:{'|'.join(dir(dp))}): |column '|\[Errno \d+\] )"
_LINE = re.compile(rf"^\w+: ({_OURS}.*?)(?: \[while running .*)?$", re.MULTILINE)
_FAILED = "the run failed with {}; its text may quote data and is not shown, see the runner's log"


def explain(error: Exception) -> str:
    """Return one line for an error of building or running a pipeline.

    Runners wrap an error of ours in a traceback: its last line is taken. Of any other error nothing
    is shown, for Beam's errors quote elements.
    """
    ours = _LINE.findall(f"{type(error).__name__}: {error}")
    return language.translated(ours[-1]) if ours else _FAILED.format(type(error).__name__)
