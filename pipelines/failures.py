"""Explain a failed run in one line without data."""

import re

import beam_dp as dp
from pipelines.arguments import language

# All errors that an element can raise in a runner of this process: their text may quote it.
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
# Errors of this package name parameters, columns and types; errors of files name their path.
_OURS = rf"(?:(?:{'|'.join(dir(dp))}): |column '|\[Errno \d+\] )"
_LINE = re.compile(rf"^\w+: ({_OURS}.*?)(?: \[while running .*)?$", re.MULTILINE)
_FAILED = "the run failed with {}; its text may quote data and {}"
# Where that text is, by the kind of runner.
_HERE = "is not shown: run again with --show_errors to see it"
_ELSEWHERE = "is not shown: see the runner's log, or run again with --show_errors"
_SHOWN = "is above"
# These run in this process or for it alone, and their logs are gone.
_LOCAL = (
    "FnApiRunner",
    "DirectRunner",
    "SwitchingDirectRunner",
    "BundleBasedDirectRunner",
    "PrismRunner",
)


def explain(error: Exception, runner: str = _LOCAL[0], shown: bool = False) -> str:
    """Return one line for an error of building or running a pipeline.

    Runners wrap an error of this package in a traceback: its last line is taken. Nothing is shown
    of other errors, for Beam's errors quote elements; the line says where to look instead.

    Args:
        error: the error.
        runner: the name of the runner's class.
        shown: whether the operator asked to see the error itself, which is above this line then.
    """
    ours = _LINE.findall(f"{type(error).__name__}: {error}")
    if ours:
        return language.translated(ours[-1])
    where = _HERE if runner in _LOCAL else _ELSEWHERE
    return _FAILED.format(type(error).__name__, _SHOWN if shown else where)
