"""Translate errors of the library, which name Python parameters, into words of the command line.

Where one option alone is wrong, it is refused where it is read (`words`). All other errors come
from the library, when the release is built or its files are read. They carry the parameter and the
rule (`checks.ParameterError`): the parameter becomes its flag, the rule stays, and the advice what
to write instead is given in flags. Of a failure of a running job only the text is known, which has
the same form.
"""

import re

from beam_dp.mechanisms.metrics import REGISTRY
from beam_dp.mechanisms.numerics.checks import ParameterError, ParameterTypeError

_NAMED = "--public_partitions 1,2,3"
_LARGER = (
    "raise --epsilon, --rho or its part of --weight, give fewer --candidates or "
    "a smaller --bounds partitions=N, or --one_sided for what can be from below"
)
_FLAGS: dict[str, tuple[str, str]] = {
    "bounds": ("--bounds", ""),
    "bounds.partitions": (
        "--bounds partitions",
        f"add --bounds partitions=3, or name the partitions: {_NAMED}",
    ),
    "bounds.rows_per_partition": (
        "--bounds rows_per_partition",
        "add --bounds rows_per_partition=10, or --per person",
    ),
    "partitions": ("the partitions", _NAMED),
    "PrivatePartitions.delta": (
        "--delta",
        f"add --delta 1e-6, or name the partitions: {_NAMED}",
    ),
    "LocalSensitivity.delta": (
        "the --delta of --method local_sensitivity",
        "add --delta 1e-6",
    ),
    "delta": ("--delta", "add --delta 1e-6"),
    "plan.assume": ("--assume", "add --people 5000"),
    "Mean.clip": (
        "--clip",
        "where no value can be beyond 5, add --high mean_rating=5; no clip is needed",
    ),
    "a key": ("--public_partitions: a key", ""),
    "ScaleThenChoose.budget": (
        "the budget of --search scale_then_choose",
        "add --epsilon and --delta",
    ),
    "PreprocessSensitivity.budget": (
        "the budget of --person_epsilon",
        "write the largest of them as --epsilon, without --delta",
    ),
    "budget": ("the budget", _LARGER),
    "LocalSensitivity.f": ("--function: f", ""),
    "LocalSensitivity": ("--function:", ""),
    "removals": ("the number of people that a search looks at", _LARGER),
    "candidates for a clip": (
        "--candidates of what has a clip",
        "take a coarser grid, like 1:1000000:x2, or --one_sided",
    ),
    "profile": ("the function of --custom_profile", ""),
    "function": ("the function of --black_box", ""),
    "statistic": ("the statistic", ""),
    "epsilons": ("--person_epsilon: epsilons", ""),
    "pattern": ("--input", ""),
    "quotes": ("--quotes false", ""),
    "Ledger.limit": (
        "--total_epsilon, --total_rho and --total_delta",
        "leave them out for a ledger that exists; add --total_epsilon 3 for a new one",
    ),
    "Ledger.path": ("--ledger", ""),
    "path": ("--output", "--overwrite replaces a file"),
    "report.path": ("--report", ""),
    "output columns": ("output columns", "give the column of --partition another name in the data"),
    "the runner": ("--runner", ""),
    "ReadRows": ("--input:", ""),
    "WriteRows": ("--output:", ""),
}
"""Parameters, by name or by owner and name, whose flag does not have just their name."""

_METRIC_FLAGS = {kind.__name__: f"--{name}" for name, kind in REGISTRY.items() if kind.command}
_METRICS = re.compile(rf"\b(?:{'|'.join(_METRIC_FLAGS)})\b")
_FORM = re.compile(r"(\w+(?:\.\w+)*): (.+?) must (.+?)\.(?: (.*))?", re.DOTALL)
_PYTHON = re.compile(r"^(Write|Give) |\bdp\.|\w=|\w\(")
_SIMPLE = re.compile(r"[a-z_]+")


def translated(error: Exception | str) -> str:
    """Return the text of an error with flags for parameters; other errors keep their text."""
    if isinstance(error, (ParameterError, ParameterTypeError)):
        return _told(error.owner, error.name, error.rule, error.mend)
    text = str(error)
    parts = _FORM.fullmatch(text)
    if parts:
        return _told(*(part or "" for part in parts.groups()))
    owner, _, rule = text.partition(": ")
    return f"{_FLAGS[owner][0]} {rule}" if owner in _FLAGS else text


def of_file(error: Exception) -> str:
    """Return the text of an error of a file that another option than --input names."""
    if isinstance(error, ParameterError) and error.name == "pattern":
        return f"the name must {error.rule}"
    return str(error).removeprefix("ReadRows: ")


def _told(owner: str, name: str, rule: str, mend: str) -> str:
    """Return the rule for a flag, and how to mend the call if that needs no Python."""
    flag = f"--{name}" if _SIMPLE.fullmatch(name) else name
    flag, instead = _FLAGS.get(f"{owner}.{name}", _FLAGS.get(name, (flag, "")))
    text = f"{flag} must {rule}"
    if mend and not _PYTHON.search(mend):
        text += f". {mend}"
    elif mend and instead:
        text += f": {instead}"
    return _METRICS.sub(lambda name: _METRIC_FLAGS[name[0]], text)
