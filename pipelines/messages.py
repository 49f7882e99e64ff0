"""Errors in one line without data, in the words of the mapping that describes a release.

Errors of the library name Python parameters and say what to write in Python. They carry the
parameter and the rule (`checks.ParameterError`): the rule stays, and the advice is given in the
words of the mapping, which are those of the flags too. Of a failure of a running job only the text
is known, which has the same form.
"""

import re
from collections.abc import Collection

from beam_dp.mechanisms.metrics import REGISTRY
from beam_dp.mechanisms.numerics.checks import ParameterError, ParameterTypeError
from beam_dp.results.local_release import own_text

HERE = (
    "FnApiRunner",
    "DirectRunner",
    "SwitchingDirectRunner",
    "BundleBasedDirectRunner",
    "PrismRunner",
)
"""The runners of this machine."""
# A runner passes on whatever an element makes a step raise, functions of users and libraries among
# them, in errors of its own kinds: the text of any of them may quote that element.
KINDS = (Exception,)
RAISED = (BaseException,)
_FAILED = "the run failed with {}; its text may quote data and {}"
# Where that text is, by who holds it.
_ABSENT = "is not shown: run again with --show_errors to see it"
_ELSEWHERE = "is not shown: see the runner's log, or run again with --show_errors"
_SHOWN = "is above"

_NAMED = "name the partitions: --public_partitions 1,2,3"
_DELTA = "write budget: {epsilon: 1, delta: 1e-6}"
_LARGER = (
    "give a larger budget, or more of it by a weight, fewer candidates or smaller bounds, or write "
    "one_sided for what can be from below"
)
_WORDS: dict[str, tuple[str, ...]] = {
    "person": ("person", "add --person visitor_id", "write person: visitor_id"),
    "release.metrics": (
        "metrics",
        "add a metric, like --count or --sum spent",
        "write metrics: [count, {sum: spent}]",
    ),
    "release.budget": ("the budget", "add --epsilon 1", "write budget: {epsilon: 1}"),
    "release.partition": (
        "partition",
        "add --partition COLUMN, or leave them out: all rows are one",
        "write partition: day, or leave them out: all rows are one",
    ),
    "ContributionBounds.partitions": (
        "bounds partitions",
        "add --bounds partitions=3",
        "write bounds: {partitions: 3}",
    ),
    "bounds.partitions": (
        "bounds partitions",
        f"add --bounds partitions=3, or {_NAMED}",
        "write bounds: {partitions: 3}, or name the partitions: [1, 2, 3]",
    ),
    "bounds.rows_per_partition": (
        "bounds rows_per_partition",
        "add --bounds rows_per_partition=10, or count per person",
        "write bounds: {rows_per_partition: 10}, or per: person",
    ),
    "partitions": ("the partitions", _NAMED, "write partitions: [1, 2, 3]"),
    "PrivatePartitions.delta": (
        "delta",
        f"add --delta 1e-6, or {_NAMED}",
        f"{_DELTA}, or name the partitions: [1, 2, 3]",
    ),
    "LocalSensitivity.delta": ("the delta of method local_sensitivity", "add --delta 1e-6", _DELTA),
    "delta": ("delta", "add --delta 1e-6", _DELTA),
    "plan.people": ("people", "add --people 5000", "write people: 5000"),
    "plan.assume": ("assume", "add --people 5000", "write people: 5000"),
    "Mean.clip": (
        "clip",
        "where no value can be beyond 5, add --high mean_rating=5; no clip is needed",
        "where no value can be beyond 5, write metrics: [{mean: rating, high: 5}], and no clip",
    ),
    "clip": (
        "clip",
        "write --clip sum_spent=100",
        "write metrics: [{sum: spent, clip: 100}]",
    ),
    "ScaleThenChoose.budget": (
        "the budget of search scale_then_choose",
        "give an epsilon and a delta",
        _DELTA,
    ),
    "PreprocessSensitivity.budget": (
        "the budget of person_epsilon",
        "write the largest of them as epsilon, without a delta",
    ),
    "budget": ("the budget", _LARGER),
    "LocalSensitivity.f": ("--function: f",),
    "candidates for a clip": (
        "candidates of what has a clip",
        "take a coarser grid, with a ratio, or write one_sided",
    ),
    "profile": ("the function of custom_profile",),
    "function": ("the function of black_box",),
    "statistic": ("the statistic",),
    "pattern": ("input",),
    "Ledger.limit": (
        "the limit of the ledger",
        "leave it out for a ledger that exists; add --total_epsilon 3 for a new one",
        "leave it out for a ledger that exists; for a new one write limit: {epsilon: 3}",
    ),
    "Ledger.path": ("ledger",),
    "path": ("output", "--overwrite replaces a file", "overwrite: true replaces a file"),
    "report.path": ("report", "--overwrite replaces a page", "overwrite: true replaces a page"),
    "output columns": (
        "output columns",
        "give the column of partition another name in the data",
        "write metrics: [{sum: spent, name: revenue}], or rename the column of partition",
    ),
    "the runner": ("--runner",),
}
"""Parameters, by name or by owner and name: what they are called, and what mends them.

The last two are words of flags, and of the mapping; one alone is for both.
"""
_OF_FILES = {"ReadRows": "input:", "WriteRows": "output:", "LocalSensitivity": "--function:"}
_METRIC_WORDS = {kind.__name__: word for word, kind in REGISTRY.items()}
_METRICS = re.compile(rf"\b(?:{'|'.join(_METRIC_WORDS)})\b")
_FORM = re.compile(r"(\w+(?:\.\w+)*): (.+?) must (.+?)\.(?: (.*))?", re.DOTALL)
_PYTHON = re.compile(r"\bdp\.|\w=|\w\(|\bNone\b")
_OF_MAPPING = re.compile(r"(?:Write|Give) \{?\w+: ")
_PART = re.compile(r"\b(\w+): ")
_FRACTION = re.compile(r"Fraction\((-?\d+), (\d+)\)")


def translated(error: Exception | str, flags: Collection[str] | None = None) -> str:
    """Return the text of an error in words of the mapping; other errors keep their text.

    Args:
        error: the error, or its text.
        flags: the parts of the mapping that flags have said, beside a file; None: there is none.
    """
    if isinstance(error, (ParameterError, ParameterTypeError)):
        return _told(error.owner, error.name, error.rule, error.mend, flags)
    text = str(error)
    parts = _FORM.fullmatch(text)
    if parts:
        owner, name, rule, mend = (part or "" for part in parts.groups())
        return _told(owner, name, rule, mend, flags)
    owner, _, rule = text.partition(": ")
    return f"{_OF_FILES[owner]} {rule}" if owner in _OF_FILES else text


def advice(name: str, flags: Collection[str] | None) -> str:
    """Return what mends a parameter, by its name, for `translated`; "" if nothing is known."""
    _, *advised = _WORDS.get(name, ("", ""))
    part = _PART.search(advised[-1]) if advised else None
    by_flag = flags is None or (part is not None and part[1] in flags)
    return "" if not advised else advised[0] if by_flag else advised[-1]


def _told(owner: str, name: str, rule: str, mend: str, flags: Collection[str] | None) -> str:
    """Return the rule for a part, and how to mend the call if that needs no Python."""
    known = f"{owner}.{name}" if f"{owner}.{name}" in _WORDS else name
    text = f"{_WORDS.get(known, (name,))[0]} must {rule}"
    instead = advice(known, flags)
    if mend and (_PYTHON.search(mend) or (flags is None and _OF_MAPPING.match(mend))):
        mend = ""
        text += f": {instead}" if instead else ""
    text += f". {mend}" if mend else ""
    text = _FRACTION.sub(lambda found: f"{int(found[1]) / int(found[2]):g}", text)
    text = text.replace("an int of", "a whole number of")
    return _METRICS.sub(lambda found: _METRIC_WORDS[found[0]], text)


def explain(error: BaseException, runner: str = HERE[0], shown: bool = False) -> str:
    """Return one line for an error of building or running a pipeline.

    Runners wrap an error of ours in a traceback: its last line is taken. Of any other error nothing
    is shown, for Beam's errors quote elements; the line says where to look instead.

    Args:
        error: what was raised.
        runner: the name of the runner's class.
        shown: whether the operator has asked to see the error itself, and sees it above this line.
    """
    if ours := own_text(error):
        return translated(ours)
    where = _ABSENT if runner in HERE else _ELSEWHERE  # what the first ones logged is gone
    return _FAILED.format(type(error).__name__, _SHOWN if shown else where)
