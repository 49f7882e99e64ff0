"""Errors in one line without data, in the words of a release's description.

Errors of the library name Python parameters. They carry the parameter and the rule
(`checks.ParameterError`): the rule stays, and the advice what to give instead is in words that flags
and files share. Of a failure of a running job only the text is known, which has the same form.
"""

import re

from beam_dp.mechanisms.metrics import REGISTRY
from beam_dp.mechanisms.numerics.checks import ParameterError, ParameterTypeError
from beam_dp.results.release import own_text

_FAILED = "the run failed with {}; its text may quote data: --show_errors shows it above this line"

_WORDS: dict[str, tuple[str, str]] = {
    "person": ("person", "name its column, like visitor_id"),
    "metrics": ("metrics", "ask for one, like count, or sum of a column"),
    "release.budget": ("the budget", "give an epsilon, like 1"),
    "release.partition": ("partition", "name its column, or leave them out: all rows are one"),
    "ContributionBounds.partitions": ("bounds partitions", "give a bound, like 3"),
    "bounds.partitions": (
        "bounds partitions",
        "give a bound, like 3, or name the partitions: 1,2,3",
    ),
    "bounds.rows_per_partition": (
        "bounds rows_per_partition",
        "give a bound, like 10, or count per person",
    ),
    "partitions": ("the partitions", "name them: 1,2,3"),
    "PrivatePartitions.delta": ("delta", "give one, like 1e-6, or name the partitions: 1,2,3"),
    "LocalSensitivity.delta": ("the delta of method local_sensitivity", "give one, like 1e-6"),
    "delta": ("delta", "give one, like 1e-6"),
    "clip": ("clip", "give a number, like 100"),
    "ScaleThenChoose.budget": (
        "the budget of search scale_then_choose",
        "give an epsilon and a delta",
    ),
    "PreprocessSensitivity.budget": (
        "the budget of person_epsilon",
        "give the largest of them as epsilon, without a delta",
    ),
    "budget": (
        "the budget",
        "give a larger one, a larger weight, fewer candidates or smaller bounds",
    ),
    "profile": ("the function of custom_profile", ""),
    "function": ("the function of black_box", ""),
    "pattern": ("input", ""),
    "Ledger.limit": (
        "the limit of the ledger",
        "give an epsilon for a new ledger, and none for one that exists",
    ),
    "Ledger.path": ("ledger", ""),
    "path": ("output", "name another, or overwrite it"),
    "report.path": ("report", "name another, or overwrite it"),
    "output columns": ("output columns", "give the column of partition another name in the data"),
    "the runner": ("--runner", ""),
}
"""Parameters, by name or by owner and name: what they are called, and what mends them."""
_OF_FILES = {
    "ReadRows": "input:",
    "WriteRows": "output:",
    "PrivateAggregate": "budget:",
}
_METRIC_WORDS = {kind.__name__: word for word, kind in REGISTRY.items()}
_METRICS = re.compile(rf"\b(?:{'|'.join(_METRIC_WORDS)})\b")
_FORM = re.compile(r"(\w+(?:\.\w+)*): (.+?) must (.+?)\.(?: (.*))?", re.DOTALL)
_PYTHON = re.compile(r"\bdp\.|\w=|\w\(|\bNone\b")
_FRACTION = re.compile(r"Fraction\((-?\d+), (\d+)\)")


def translated(error: Exception | str) -> str:
    """Return the text of an error in words of the description; other errors keep their text."""
    if isinstance(error, (ParameterError, ParameterTypeError)):
        return _told(error.owner, error.name, error.rule, error.mend)
    text = str(error)
    parts = _FORM.fullmatch(text)
    if parts:
        return _told(*(part or "" for part in parts.groups()))
    owner, _, rule = text.partition(": ")
    return f"{_OF_FILES[owner]} {rule}" if owner in _OF_FILES else text


def _told(owner: str, name: str, rule: str, mend: str) -> str:
    """Return the rule for a part, and how to mend the call, without Python."""
    shown, instead = _WORDS.get(f"{owner}.{name}", _WORDS.get(name, (name, "")))
    text = f"{shown} must {rule}"
    if mend and not _PYTHON.search(mend):
        text += f". {mend}"
    elif instead:
        text += f": {instead}"
    text = _FRACTION.sub(lambda found: f"{int(found[1]) / int(found[2]):g}", text)
    text = text.replace("an int of", "a whole number of")
    return _METRICS.sub(lambda found: _METRIC_WORDS[found[0]], text)


def explain(error: BaseException) -> str:
    """Return one line for an error of building or running a pipeline.

    Runners wrap an error of ours in a traceback: its last line is taken. Of any other error nothing
    is shown, for Beam's errors quote elements.
    """
    return translated(own_text(error)) or _FAILED.format(type(error).__name__)
