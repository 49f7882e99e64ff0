"""Turn the plain mapping that describes a release, as YAML has it, into what Python has.

Beam YAML takes such a mapping; the jobs read it from a file, or make it of their flags. Every name
is the one of the Python call. Numbers are the decimals that were written: 0.1 is one tenth, and
`1e-6`, which YAML takes for text, is a number. A function is MODULE:NAME.
"""

import contextlib
import dataclasses
import datetime
import itertools
import math
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.metrics import REGISTRY
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.metrics.person_epsilon import personalised
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.search.choose import BY_WORD
from beam_dp.transforms.aggregate import PrivateAggregate
from beam_dp.transforms.partitions import PrivatePartitions, PublicPartitions, typed_keys
from beam_dp.transforms.private_tables import AGREE, TOTAL, PrivateTables
from beam_dp.transforms.sql.select_statements import Statement
from beam_dp.transforms.suppress_unreliable import SuppressUnreliable

_AS_GIVEN = ("shards", "nonnegative", "period", "ledger_period")
RELEASE = (
    *("person", "metrics", "budget", "partition", "bounds", "partitions"),
    *("suppress", *_AS_GIVEN),
)
"""The names of a mapping that a transform takes."""
_OF_SELECT = ("metrics", "partition", "also_by", "query", "post_process")
"""What a statement says, also where it says nothing of it."""
_BUDGET = ("epsilon", "rho", "delta")
_OTHER_WORDS = {
    **dict.fromkeys(_BUDGET, "Write budget: {epsilon: 1}."),
    "delta": "Write budget: {epsilon: 1, delta: 1e-6}.",
    "public_partitions": "Write partitions: [1, 2, 3].",
    "query": "Write select: SELECT sum(spent) AS spent FROM rows WHERE minutes > 5.",
}
"""What to write for words that a release has elsewhere."""
_LISTS = (list, tuple)
NONE: tuple[Any, ...] = (None, "", [])
"""What stands for nothing given: a Row of Java has empty fields."""
_TEXTS = {
    *("column", "name", "equals", "per", "method", "of"),
    *("person_value", "person_epsilon"),
}
_SHOWN = {
    **dict.fromkeys(("profile", "function"), "MODULE:NAME"),
    "p": "0.9",
    "shares": "[0.25, 0.5, 0.75]",
    "edges": "[0, 10, 20]",
    "k": "3",
    "of": "median",
}
"""An example of each option without which a metric cannot be asked for."""
_MOST_EDGES = 10_000  # a histogram refuses so many
_OWN = ("person_epsilon", "epsilons")
_OF_PEOPLE = ("person_value", "sensitivity")


def check_words(subject: str, name: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a word that is not known, with those that it may stand for.

    Args:
        subject: the name that errors begin with.
        name: what has the words.
        given: the words.
        known: those that it can have.

    Raises:
        ParameterError: names the first unknown word, and the nearest known ones.
    """
    known = list(known)
    for word in given:
        if word not in known:
            hint = checks.near(str(word), known) or f"It has {', '.join(known)}."
            if "budget" in known:
                hint = _OTHER_WORDS.get(word, hint)
            if word in ("low", "high") and name == "sum":
                most = "the most of one person in a partition"
                hint = f"Leave it out, or write {{sum: spent, clip: 100}}: {most}."
            raise checks.ParameterError(subject, name, f"not have the word {word!r}", hint)


def aggregate_of(subject: str, given: object, batches: bool = False) -> PrivateAggregate:
    """Return the release that a mapping describes.

    Args:
        subject: the name that errors begin with.
        given: its parts, by the names of `RELEASE`.
        batches: whether the output is batches of columns, where the partitions allow that.
    """
    options = options_of(subject, given)
    public = isinstance(options["partitions"], PublicPartitions)
    return PrivateAggregate(**options, batches=batches and public)


def options_of(subject: str, given: object) -> dict[str, Any]:
    """Return what `PrivateAggregate` is called with, for the parts of a mapping."""
    parts = mapping_of(subject, "config", given, RELEASE)
    columns = columns_of(parts.get("partition"))
    partitions = partitions_of(subject, parts.get("partitions"), columns)
    if type(parts.get("ledger_period")) in (int, datetime.date):  # what YAML makes of their text
        parts["ledger_period"] = str(parts["ledger_period"])
    return {
        "person": parts["person"],
        "metrics": metrics_of(subject, parts["metrics"]),
        "budget": budget_of(subject, parts["budget"]),
        "partition": columns,
        "bounds": bounds_of(subject, parts.get("bounds")),
        "partitions": partitions,
        "suppress": suppress_of(subject, parts.get("suppress")),
        **{name: parts[name] for name in _AS_GIVEN if name in parts},
    }


def statement_of(subject: str, given: Mapping[str, Any]) -> Statement:
    """Return what the `select` of a mapping asks for; refuse what it says and the mapping too."""
    people = checks.columns(subject, "person", columns_of(given["person"]))
    text, period = given["select"], given.get("period")
    if not isinstance(text, str):
        rule, hint = f"be SQL, not {checks.shown(text)}", "Write SELECT count(*) FROM rows."
        raise checks.ParameterTypeError(subject, "statement", rule, hint)
    if period is not None:
        checks.column(subject, "period", period)
    found = Statement.of(text, people, period or "")
    for name in dict.fromkeys((*found.mapping, *_OF_SELECT)):
        hint = "Leave one of the two out."
        checks.require(
            given.get(name) is None, subject, name, "be said by the statement alone", hint
        )
    return found


def tables_of(
    subject: str, first: PrivateAggregate, also_by: Any, totals: str = AGREE
) -> PrivateTables:
    """Return the tables of a run.

    Args:
        subject: the name that errors begin with.
        first: the first table, at the budget of all.
        also_by: a column, or a list; each entry is a column, a list of columns, "total", or a
            mapping with these as `partition`, and with `partitions` and `weight`.
        totals: "agree" or "apart".
    """
    entries = []
    alone = [] if also_by in NONE else [also_by]
    for given in also_by if isinstance(also_by, _LISTS) else alone:
        words = ("partition", "partitions", "weight")
        entry = given if isinstance(given, Mapping) else {"partition": given}
        entry = mapping_of(subject, "also_by", entry, words, words[:1])
        if entry["partition"] != TOTAL:
            entry["partition"] = columns_of(entry["partition"])
        if "partitions" in entry:
            columns = checks.columns(subject, "also_by", entry["partition"])
            entry["partitions"] = partitions_of(subject, entry["partitions"], list(columns))
        if "weight" in entry:
            entry["weight"] = number(entry["weight"])
        entries.append(entry)
    return PrivateTables(first, entries, totals)


def metrics_of(subject: str, given: object) -> list[Metric]:
    """Return the metrics of a list like `[count, {sum: spent, clip: 100}]`."""
    hint = "Write metrics: [count, {sum: spent}]."
    if not isinstance(given, _LISTS) or not given:
        rule = f"be a list of metrics, not {checks.shown(given)}"
        raise checks.ParameterTypeError(subject, "metrics", rule, hint)
    made = [metric_of(subject, each) for each in given]
    names = [metric.output for metric in made]
    hint = "Write {sum: spent, name: spent_again}."
    unlike = len({*names}) == len(names)
    checks.require(unlike, subject, "output columns", f"have different names, not {names}", hint)
    return made


def metric_of(subject: str, given: object) -> Metric:
    """Return the metric of a word, or of a mapping like `{sum: spent, clip: 100}`."""
    fields = {given: None} if isinstance(given, str) else mapping_of(subject, "a metric", given)
    named = [name for name in fields if name in REGISTRY]
    if not named:
        check_words(subject, "a metric", fields, REGISTRY)
        hint = "Write metrics: [count, {sum: spent}]."
        raise checks.ParameterError(subject, "a metric", "not be an empty mapping", hint)
    word = named[0]
    kind = REGISTRY[word]
    known = [field.name for field in dataclasses.fields(kind) if field.name not in ("column", "_")]
    rule = f"have the word of one metric, not {', '.join(named)}"
    hint = f"Ask for each metric by itself. {word} has the options {', '.join(known)}."
    checks.require(len(named) == 1, subject, "a metric", rule, hint)
    if "person_epsilon" in fields:
        known += [name for name in (*_OWN, *_OF_PEOPLE) if name not in known]
    rest = {name: value for name, value in fields.items() if name != word}
    check_words(subject, word, rest, sorted(known))
    if fields[word] not in NONE:
        rule, hint = "have no column", f"Write {word}, or {{{word}: , weight: 2}}."
        checks.require("column" in kind.__dataclass_fields__, subject, word, rule, hint)
        rest["column"] = fields[word]
    needed = [f.name for f in dataclasses.fields(kind) if f.default is dataclasses.MISSING]
    words = [f"{word}: spent", *(f"{name}: {_SHOWN[name]}" for name in needed if name in _SHOWN)]
    mapping_of(subject, word, rest, needed=needed, hint=f"Write {{{', '.join(words)}}}.")
    options = {name: _option(subject, kind, name, value) for name, value in rest.items()}
    if "person_epsilon" not in options:
        return kind(**options)
    column, epsilons = (options.pop(name, None) for name in _OWN)
    beside = {name: options.pop(name) for name in _OF_PEOPLE if name in options}
    return personalised(kind(**options), column, epsilons, beside)


def _option(subject: str, kind: type[Metric], name: str, value: Any) -> Any:
    """Return an option of a metric as the Python call has it."""
    if name in kind.functions:
        return function_of(subject, name, value)
    if name == "search":
        return BY_WORD.get(value, value) if isinstance(value, str) else value
    if name == "candidates" and value is not None:
        return candidates_of(subject, value)
    if name == "edges":
        return edges_of(subject, value)
    if isinstance(value, _LISTS):
        return list(map(number, value))
    return value if name in _TEXTS else number(value)


def function_of(subject: str, name: str, given: object) -> Callable[[Any], Any]:
    """Return the function MODULE:NAME."""
    found: Any = None
    with contextlib.suppress(Exception):  # an import runs the user's code, which may raise anything
        found = pkgutil.resolve_name(str(given))
    rule = f"be MODULE:NAME of a function that can be imported, not {checks.shown(given)}"
    checks.require(callable(found), subject, name, rule)
    known: Callable[[Any], Any] = found
    return known


def candidates_of(subject: str, given: object) -> Candidates:
    """Return the grid of `{low: 0, high: 60, step: 1}`, `0..60..1`, `{low: 1, high: 9, ratio: 3}`."""
    if isinstance(given, str) and given.count("..") == 2:
        given = dict(zip(("low", "high", "step"), given.split(".."), strict=True))
    parts = mapping_of(subject, "candidates", given, ("low", "high", "step", "ratio"))
    hint = "Write candidates: {low: 0, high: 60, step: 1}."
    whole = {*parts} in ({"low", "high", "step"}, {"low", "high", "ratio"})
    checks.require(whole, subject, "candidates", "have a low, a high, and a step or a ratio", hint)
    grid = {name: number(value) for name, value in parts.items()}
    return Candidates.geometric(**grid) if "ratio" in grid else Candidates.linear(**grid)


def edges_of(subject: str, given: object) -> list[Any]:
    """Return the edges of a list of numbers and LOW..HIGH..STEP, like `[0..100..10, .inf]`."""
    edges: list[Any] = []
    for each in given if isinstance(given, _LISTS) else [given]:
        if isinstance(each, str) and ".." in each:
            edges += itertools.islice(candidates_of(subject, each), _MOST_EDGES)
        else:
            edges.append(number(each))
    return edges


def number(value: Any) -> Any:
    """Return a number as the decimal that was written; all else, also words, as it is."""
    if type(value) not in (float, str):
        return value
    try:
        near = float(value)
        exact = Fraction(repr(near)) if math.isfinite(near) else near
    except ValueError:
        return value
    return int(value) if isinstance(value, str) and value.strip("+-").isdecimal() else exact


def budget_of(subject: str, given: object, name: str = "budget") -> Budget:
    """Return the budget of `{epsilon: 1, delta: 1e-6}` or `{rho: 0.1}`."""
    rule, hint = "have either an epsilon or a rho", f"Write {name}: {{epsilon: 1}}."
    parts = mapping_of(subject, name, given, _BUDGET, hint=hint)
    checks.require(("epsilon" in parts) != ("rho" in parts), subject, name, rule, hint)
    amounts = {name: number(value) for name, value in parts.items()}
    return Budget.zcdp(**amounts) if "rho" in parts else Budget(**amounts)


def bounds_of(subject: str, given: object) -> ContributionBounds | None:
    """Return the bounds of `{partitions: 3, rows_per_partition: 10}`; None for none."""
    if given is None:
        return None
    limits = mapping_of(subject, "bounds", given, _names(ContributionBounds))
    return ContributionBounds(**{name: number(most) for name, most in limits.items()})


def suppress_of(subject: str, given: object) -> SuppressUnreliable | None:
    """Return the rule of `unreliable`, `{beyond: 0.25, below: {count: 9}}`; None for none."""
    if given is None:
        return None
    hint = "Write suppress: unreliable, or suppress: {beyond: 0.25, below: {people_count: 100}}."
    words = "beyond", "below"
    asked = {} if given == "unreliable" else given
    parts = mapping_of(subject, "suppress", asked, words, hint=hint)
    least = mapping_of(subject, "suppress.below", parts.get("below", {}))
    return SuppressUnreliable(number(parts.get("beyond")), {n: number(v) for n, v in least.items()})


def _names(kind: type[ContributionBounds | PrivatePartitions]) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def columns_of(given: Any) -> Any:
    """Return the columns of a list; a column alone is a list of one."""
    return [given] if isinstance(given, str) else given if given is not None else ()


def partitions_of(
    subject: str, given: object, columns: list[str]
) -> PublicPartitions | PrivatePartitions | None:
    """Return how partitions are chosen.

    Args:
        subject: the name that errors begin with.
        given: a list of public keys; or {product: {day: [1, 2]}}, {files: keys.csv} with
            the partition columns, or {private: {pre_threshold: 5}}; None: private ones.
        columns: the partition columns.
    """
    if given is None:
        return None
    _check_alone(given if isinstance(given, _LISTS) else [given])
    if isinstance(given, _LISTS):
        return PublicPartitions([tuple(key) if isinstance(key, list) else key for key in given])
    ways: dict[str, Callable[[Any], PublicPartitions | PrivatePartitions]] = {
        "product": lambda parts: PublicPartitions.product(**mapping_of(subject, "product", parts)),
        "files": lambda pattern: PublicPartitions.from_files(pattern, columns),
        "private": lambda parts: PrivatePartitions(
            **mapping_of(subject, "private", parts or {}, _names(PrivatePartitions))
        ),
    }
    hint = "Write partitions: [1, 2, 3]."
    if not isinstance(given, Mapping):
        rule = f"be a list of keys, not {checks.shown(given)}"
        hint = f"Write partitions: [{given}]." if type(given) in (str, int) else hint
        raise checks.ParameterTypeError(subject, "partitions", rule, hint)
    way = mapping_of(subject, "partitions", given, tuple(ways))
    checks.require(len(way) == 1, subject, "partitions", f"have one of {', '.join(ways)}", hint)
    [(name, value)] = way.items()
    return ways[name](value)


def keys_of(text: str, parts: int) -> list[Any]:
    """Return public keys of a text like 1,2,3 or, where a key has several parts, de/2024,fr/2024.

    If all keys of a column are plain decimal integers, they become integers, which match text too.
    """
    words = [word.strip() for word in text.split(",")]
    _check_alone([text])
    keys = [word.split("/") if parts > 1 else [word] for word in words if word]
    if not keys or {len(key) for key in keys} != {parts}:
        raise ValueError(
            "partitions must have keys, like 1,2,3, and each key a part per partition column, "
            "with / between: de/2024"
        )
    typed = zip(*map(typed_keys, zip(*keys, strict=True)), strict=True)
    return [key if parts > 1 else key[0] for key in typed]


def _check_alone(keys: Sequence[Any]) -> None:
    """Refuse one key that looks like a range."""
    text = str(keys[0]) if len(keys) == 1 else ""
    ends = re.fullmatch(r"(\d+)\s*(?:-|\.\.|:)\s*(\d+)", text)
    if ends and int(ends[1]) < int(ends[2]) and not ends[2].startswith("0"):
        raise ValueError(
            f"partitions must be keys, and {text!r} looks like a range: write all, or [[{text!r}]] in "
            "a mapping if it is one key"
        )


def mapping_of(
    subject: str,
    name: str,
    given: object,
    known: Sequence[str] = (),
    needed: Sequence[str] = (),
    hint: str = "",
) -> dict[str, Any]:
    """Return a mapping; refuse unknown names, if any are known, and one without a needed name."""
    if not isinstance(given, Mapping):
        rule = f"be a mapping, not {checks.shown(given)}"
        raise checks.ParameterTypeError(subject, name, rule, hint)
    wrong = [key for key in given if not isinstance(key, str)]
    rule = f"have text as keys, not {checks.listed(wrong)}"
    checks.require(not wrong, subject, name, rule, "Quote on, yes, no and numbers.")
    check_words(subject, name, given, known or given)
    missing = ", ".join(each for each in needed if given.get(each) in (None, ""))
    checks.require(not missing, subject, name, f"have {missing}", hint)
    return dict(given)
