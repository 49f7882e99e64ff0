"""A failed run in one line without data."""

import re

import beam_dp as dp
from pipelines.arguments import language
from pipelines.arguments.files import HERE

# A runner passes on whatever an element makes a step raise, functions of users and libraries among
# them, in errors of its own kinds: the text of any of them may quote that element.
KINDS = (Exception,)
RAISED = (BaseException,)
# The errors of this package name parameters, columns and types, those of files their path.
_OURS = rf"(?:(?:{'|'.join(dir(dp))}): |column '|\[Errno \d+\] )"
_KIND = r"(?:\w+: (?:beam_dp\.[\w.]+: )?|beam_dp\.[\w.]+: )"
_LINE = re.compile(rf"^{_KIND}({_OURS}.*?)(?: \[while running .*)?$", re.MULTILINE)
_FAILED = "the run failed with {}; its text may quote data and {}"
# Where that text is, by who holds it.
_HERE = "is not shown: run again with --show_errors to see it"
_ELSEWHERE = "is not shown: see the runner's log, or run again with --show_errors"
_SHOWN = "is above"


def explain(error: BaseException, runner: str = HERE[0], shown: bool = False) -> str:
    """Return one line for an error of building or running a pipeline.

    Runners wrap an error of ours in a traceback: its last line is taken. Of any other error nothing
    is shown, for Beam's errors quote elements; the line says where to look instead.

    Args:
        error: what was raised.
        runner: the name of the runner's class.
        shown: whether the operator has asked to see the error itself, and sees it above this line.
    """
    ours = _LINE.findall(f"{type(error).__name__}: {error}")
    if ours:
        return language.translated(ours[-1])
    where = _HERE if runner in HERE else _ELSEWHERE  # what the first ones logged is gone
    return _FAILED.format(type(error).__name__, _SHOWN if shown else where)
