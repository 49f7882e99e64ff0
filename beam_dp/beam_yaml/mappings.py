"""Turn plain mappings, as YAML has them, into the parameters of transforms.

Every name is the one of the Python call. Numbers are the decimals that were written: 0.1 is one
tenth, and `1e-6`, which YAML takes for text, is a number.
"""

import dataclasses
import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.metrics import REGISTRY
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.search.choose import BY_WORD
from beam_dp.transforms.partitions import PrivatePartitions
from beam_dp.transforms.public.public_partitions import PublicPartitions

Transform = TypeVar("Transform")
_LISTS = (list, tuple)
_ALIKE = 0.6


def check_words(owner: str, name: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a word that is not known, with those that it may stand for.

    Args:
        owner: the name that errors begin with.
        name: what has the words.
        given: the words.
        known: those that it can have.

    Raises:
        ParameterError: names the first unknown word, and the nearest known ones.
    """
    known = list(known)
    for word in given:
        if word not in known:
            near = difflib.get_close_matches(word, known, 3, _ALIKE)
            mend = f"Did you mean {' or '.join(near)}?" if near else f"It has {', '.join(known)}."
            raise checks.ParameterError(owner, name, f"not have the word {word!r}", mend)


def metrics_of(owner: str, given: object) -> list[Metric]:
    """Return the metrics of a list like `[count, {sum: spent, clip: 100}]`."""
    mend = "Write metrics: [count, {sum: spent, clip: 100}]."
    if not isinstance(given, _LISTS) or not given:
        rule = f"be a list of metrics, not {checks.shown(given)}"
        raise checks.ParameterTypeError(owner, "metrics", rule, mend)
    return [_metric(owner, each) for each in given]


def _metric(owner: str, given: object) -> Metric:
    fields = {given: None} if isinstance(given, str) else _mapping(owner, "a metric", given)
    words = {name: kind for name, kind in REGISTRY.items() if not _functions(kind)}
    named = [name for name in fields if name in words]
    if not named:
        check_words(owner, "a metric", fields, words)
    mend = "Write {sum: spent, clip: 100}."
    rule = f"have the word of one metric, not {checks.shown(given)}"
    checks.require(len(named) == 1, owner, "a metric", rule, mend)
    kind = words[named[0]]
    known = [field.name for field in dataclasses.fields(kind) if field.name != "column"]
    rest = {name: value for name, value in fields.items() if name != named[0]}
    check_words(owner, named[0], rest, sorted(known))
    if fields[named[0]] is not None:
        rest["column"] = fields[named[0]]
    needed = {f.name for f in dataclasses.fields(kind) if f.default is dataclasses.MISSING}
    for name in sorted(needed - {*rest}):
        mend = f"Write {{{named[0]}: spent}}." if name == "column" else ""
        checks.require(False, owner, named[0], f"have its {name}", mend)
    return kind(**{name: _option(owner, name, value) for name, value in rest.items()})


def _functions(kind: type[Metric]) -> bool:
    """Return whether a metric takes a Python function, or another metric."""
    return bool(kind.functions) or kind.__name__ in ("CustomProfile", "BlackBox", "Preprocessed")


def _option(owner: str, name: str, value: Any) -> Any:
    if name == "search":
        return BY_WORD.get(value, value) if isinstance(value, str) else value
    if name == "candidates":
        grid = _mapping(owner, name, value, ("low", "high", "step"))
        return Candidates.linear(*(number(grid.get(end)) for end in ("low", "high", "step")))
    if name in ("column", "name", "equals", "value", "per", "method", "person_value", "neighbours"):
        return value
    return [number(each) for each in value] if isinstance(value, _LISTS) else number(value)


def number(value: Any) -> Any:
    """Return a number as the decimal that was written; all else, also words, as it is."""
    if type(value) in (float, str):
        try:
            near = float(value)
            return Fraction(repr(near)) if abs(near) < float("inf") else near
        except (OverflowError, ValueError):
            return value
    return value


def budget_of(owner: str, given: object) -> Budget:
    """Return the budget of `{epsilon: 1, delta: 1e-6}` or `{rho: 0.1}`."""
    parts = _mapping(owner, "budget", given, ("epsilon", "rho", "delta"))
    checks.require(
        ("epsilon" in parts) != ("rho" in parts),
        owner,
        "budget",
        "have either an epsilon or a rho",
        "Write budget: {epsilon: 1, delta: 1e-6}.",
    )
    delta = number(parts.get("delta", 0))
    if "rho" in parts:
        return Budget.zcdp(number(parts["rho"]), delta)
    return Budget(number(parts["epsilon"]), delta)


def bounds_of(owner: str, given: object) -> ContributionBounds | None:
    """Return the bounds of `{partitions: 3, rows_per_partition: 10}`; None for none."""
    if given is None:
        return None
    return ContributionBounds(**_mapping(owner, "bounds", given, _names(ContributionBounds)))


def _names(kind: type[ContributionBounds | PrivatePartitions]) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def columns_of(given: Any) -> Any:
    """Return the columns of a list; a column alone is a list of one."""
    return [given] if isinstance(given, str) else given if given is not None else ()


def partitions_of(
    owner: str, given: object, columns: list[str]
) -> PublicPartitions | PrivatePartitions | None:
    """Return how partitions are chosen.

    Args:
        owner: the name that errors begin with.
        given: a list of public keys; or {product: {day: [1, 2]}}, {files: keys.csv}, or
            {private: {pre_threshold: 5}}; None: private ones.
        columns: the partition columns.
    """
    if given is None:
        return None
    if isinstance(given, _LISTS):
        return PublicPartitions([tuple(key) if isinstance(key, list) else key for key in given])
    ways: dict[str, Callable[[Any], PublicPartitions | PrivatePartitions]] = {
        "product": lambda parts: PublicPartitions.product(**_mapping(owner, "product", parts)),
        "files": lambda pattern: PublicPartitions.from_files(pattern, columns),
        "private": lambda parts: PrivatePartitions(
            **_mapping(owner, "private", parts or {}, _names(PrivatePartitions))
        ),
    }
    way = _mapping(owner, "partitions", given, tuple(ways))
    mend = "Write partitions: [1, 2, 3]."
    checks.require(len(way) == 1, owner, "partitions", f"have one of {', '.join(ways)}", mend)
    [(name, value)] = way.items()
    return ways[name](value)


def _mapping(
    owner: str, name: str, given: object, known: tuple[str, ...] | list[str] = ()
) -> dict[str, Any]:
    """Return a mapping with names as its keys, all of them known, if any are."""
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise checks.ParameterTypeError(owner, name, f"be a mapping, not {checks.shown(given)}")
    check_words(owner, name, given, known or given)
    return dict(given)


def in_words(function: Callable[..., Transform]) -> Callable[..., Transform]:
    """Return a function of a configuration that says which of its words are unknown or missing.

    Args:
        function: is called by names; its own is that of the transform in small letters.
    """
    parameters = inspect.signature(function).parameters
    owner = "".join(part.capitalize() for part in function.__name__.split("_"))
    needed = [n for n, each in parameters.items() if each.default is inspect.Parameter.empty]

    @functools.wraps(function)
    def checked(**given: Any) -> Transform:
        check_words(owner, "config", given, parameters)
        missing = ", ".join(name for name in needed if name not in given)
        checks.require(not missing, owner, "config", f"have {missing}")
        return function(**given)

    return checked
