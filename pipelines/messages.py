"""Errors in one line without data, in the words of a release's description.

Errors of the library name Python parameters, in parts, or as text `Subject: name must RULE. HINT`
where a run raised them. The rule stays, and the hint is in words that flags and files share.
"""

import re

from beam_dp.mechanisms.metrics import REGISTRY
from beam_dp.mechanisms.numerics.checks import ParameterError, ParameterTypeError

_ADVICE = {
    "person": "write person: visitor_id",
    "metrics": "ask for one, like count, or sum of a column, or write a SELECT",
    "release.budget": "write budget: {epsilon: 1}",
    "release.partition": "name its column, or leave them out: all rows are one",
    "bounds.partitions": "give a bound, like 3, or write partitions: [1, 2, 3]",
    "bounds.rows_per_partition": "give a bound, like 10, or count per person",
    "partitions": "write partitions: [1, 2, 3]",
    "ContributionBounds.partitions": "give a bound, like 3",
    "LocalSensitivity.delta": "give one, like 1e-6",
    "delta": "write budget: {epsilon: 1, delta: 1e-6}, or partitions: [1, 2, 3]",
    "also_by.delta": "give one, like 1e-6, or name them in a file of --config: "
    "also_by: [{partition: store, partitions: [a, b]}]",
    "clip": "give a number, like 100",
    "PreprocessSensitivity.budget": "give the largest of them as epsilon, without a delta",
    "budget": "give a larger one, a larger weight, fewer candidates or smaller bounds",
    "CsvFormat.encoding": "give cp1252 for files of Windows, or save others as UTF-8",
    "also_by": "name its columns, or write total for all rows",
    "limit": "give limit: {epsilon: 3} for a new ledger, and none for one that exists",
    "WriteRows.path": "name another, or write overwrite: true",
    "report.path": "name another, or write overwrite: true",
    "output columns": "give the column of partition another name in the data",
}
"""The hint of a parameter, by its name, or by its subject and name."""
_NAMES = {
    "the runner": "--runner",
    "ContributionBounds.partitions": "bounds partitions",
    "pattern": "input",
    "PublicPartitions.pattern": "partitions",
    "WriteRows.path": "output",
    "report.path": "report",
    "Ledger.path": "ledger",
    "limit": "the limit of the ledger",
    "profile": "the function of custom_profile",
    "function": "the function of black_box",
}
"""What a parameter is called in a description, where it has another name there."""
_FLAGS = {
    "person: visitor_id": "--person visitor_id",
    "budget: {epsilon: 1, delta: 1e-6}": "--delta 1e-6",
    "budget: {epsilon: 1}": "--epsilon 1",
    "partitions: [1, 2, 3]": "--public_partitions 1,2,3",
    "overwrite: true": "--overwrite",
    "limit: {epsilon: 1}": "--total_epsilon 1",
    "limit: {epsilon: 3}": "--total_epsilon 3",
}
"""What of a file is which flag."""
_METRIC_WORDS = {kind.__name__: word for word, kind in REGISTRY.items()}
_METRICS = re.compile(rf"\b(?:{'|'.join(_METRIC_WORDS)})\b")
_FORM = re.compile(r"(\w+(?:\.\w+)*): (.+?) must (.+?)\.(?: (.*))?", re.DOTALL)
_SIGNS = re.compile(r"\b(decimal|thousands|query|totals)=(\"[^\"]\"|'[^']*')")
_CSV = re.compile(r"\bcsv=dp\.CsvFormat\((.*?)\)")
_MAPPING = re.compile(rf"\{{({'|'.join(REGISTRY)}): (\w+)((?:, \w+: (?:\[[^]]*\]|[^],}}]*))*)\}}")
_LIST = str.maketrans("", "", "[] ")
_PYTHON = re.compile(r"\bdp\.|\w=|\w\(|\bNone\b")


def flagged(text: str) -> str:
    """Return a text with the options of files as flags."""
    text = _CSV.sub(lambda found: found[1].replace('", ', '" and '), text)
    return _SIGNS.sub(r"--\1 \2", text)


def said(error: Exception, in_file: bool = False) -> str:
    """Return an error in words of the description; one that names no parameter as its text.

    Args:
        error: the error.
        in_file: whether the description is a file; else what it says of mappings is in flags.
    """
    if isinstance(error, ParameterError | ParameterTypeError):
        text = _worded(error.subject, error.name, error.rule, error.hint)
    else:
        text = translated(str(error))
    if in_file:
        return text
    for words, flag in _FLAGS.items():
        text = text.replace(words, flag)
    return _MAPPING.sub(_flag, text)


def _flag(found: re.Match[str]) -> str:
    """Return the flag of a metric's mapping."""
    options = re.sub(r", (\w+): ", r",\1=", found[3]).translate(_LIST)
    return f"--{found[1]} {found[2]}{options}"


def translated(text: str) -> str:
    """Return the text of an error in words of the description; other texts stay as they are."""
    if parts := _FORM.fullmatch(text):
        return _worded(*(part or "" for part in parts.groups()))
    return flagged(text.removeprefix("ReadRows: ").removeprefix("PrivateAggregate: "))


def _worded(subject: str, name: str, rule: str, hint: str) -> str:
    text = f"{_NAMES.get(f'{subject}.{name}', _NAMES.get(name, name))} must {rule}"
    advice = _ADVICE.get(f"{subject}.{name}", _ADVICE.get(name, ""))
    hint = flagged(hint)
    is_sql = name in ("query", "statement")
    if hint and (is_sql or not _PYTHON.search(hint)):
        text += f". {hint}"
    elif advice:
        text += f": {advice}"
    text = text.replace("an int of", "a whole number of")
    text = text.replace("be True or False", "be true or false")
    text = re.sub(r"real number \(int, float or Fraction\), not \w+", "number, not", text)
    return _METRICS.sub(lambda found: _METRIC_WORDS[found[0]], text)
