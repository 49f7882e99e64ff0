"""Read the words of the command line: numbers, columns, lists; refuse others in one phrase."""

import argparse
import contextlib
import dataclasses
import importlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal

from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.summaries.worker_limits import OWNERS

_BOUNDS = tuple(field.name for field in dataclasses.fields(ContributionBounds))


def require(ok: bool, rule: str, text: str) -> None:
    """Refuse a word; the parser puts the option before the rule."""
    if not ok:
        raise argparse.ArgumentTypeError(f"must be {rule}, not {text!r}")


def _fraction(text: str) -> Fraction | None:
    """Return a decimal number exactly, so that 0.1 is one tenth; None for other words."""
    try:
        return Fraction(repr(float(text)))
    except ValueError:
        return None


def number(rule: str, holds: Callable[[Fraction], bool]) -> Callable[[str], Fraction]:
    """Return the reader of an option's exact number.

    Args:
        rule: what the number must be, in words.
        holds: whether a number keeps the rule.
    """

    def read(text: str) -> Fraction:
        value = _fraction(text)
        require(value is not None and holds(value), rule, text)
        return value or Fraction(0)

    return read


amount = number("a number above 0, for example 0.5", lambda value: value > 0)
probability = number("at least 0 and below 1, for example 1e-6", lambda value: 0 <= value < 1)


def whole(text: str) -> int:
    """Return a whole number of at least 1."""
    value = int(text) if text.isascii() and text.isdigit() else 0
    require(value >= 1, "a whole number of at least 1", text)
    return value


def listed(text: str) -> list[str]:
    """Return the words of a list with commas between."""
    return [word.strip() for word in text.split(",")]


def column(text: str) -> str:
    """Return the name of a column."""
    require(bool(text), "the name of a column", text)
    return text


def columns(text: str) -> list[str]:
    """Return the names of columns with commas between."""
    return [column(word) for word in listed(text)]


def owners(text: str) -> list[str]:
    """Return the column of the person, or those of rows with several owners."""
    names = columns(text)
    rule = f"one column, or 2 to {OWNERS} different ones with commas between: from,to"
    require(len(set(names)) == len(names) <= OWNERS, rule, text)
    return names


def owner(text: str) -> list[str]:
    """Return the column of the person alone, in a list as `owners` does."""
    names = columns(text)
    require(len(names) == 1, "one column: this job has nothing for rows with several owners", text)
    return names


def of_column(
    rule: str, holds: Callable[[Fraction], bool]
) -> Callable[[str], tuple[str, Fraction]]:
    """Return the reader of COLUMN:NUMBER.

    Args:
        rule: what the text must be, in words.
        holds: whether the number keeps the rule.
    """

    def read(text: str) -> tuple[str, Fraction]:
        name, _, amount = text.rpartition(":")
        value = _fraction(amount)
        require(bool(name) and value is not None and holds(value), rule, text)
        return name, value or Fraction(0)

    return read


share = of_column("COLUMN:P with P above 0 and below 1, like minutes:0.9", lambda p: 0 < p < 1)
rank = of_column(
    "COLUMN:K with a whole K of at least 1, like minutes:10",
    lambda k: k >= 1 and k.denominator == 1,
)


def named(rule: str, holds: Callable[[Fraction], bool]) -> Callable[[str], dict[str, Fraction]]:
    """Return the reader of NAME=NUMBER[,NAME=NUMBER].

    Args:
        rule: what the text must be, in words.
        holds: whether a number keeps the rule.
    """

    def read(text: str) -> dict[str, Fraction]:
        numbers = {}
        for word in listed(text):
            name, _, amount = word.rpartition("=")
            value = _fraction(amount)
            require(bool(name) and value is not None and holds(value), rule, text)
            numbers[name] = value or Fraction(0)
        return numbers

    return read


class Gathered(argparse.Action):
    """The names and numbers of an option that may be repeated, each name once."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Add those of one occurrence."""
        before = getattr(namespace, self.dest)
        for name in values:
            if name in before:
                raise argparse.ArgumentError(self, f"{name!r} must be given once")
        setattr(namespace, self.dest, {**before, **values})


def bounds(text: str) -> dict[str, int | Literal["auto"]]:
    """Return the bounds on what one person has, by their names."""
    rule = (
        "partitions, rows_per_partition or rows with whole numbers of at least 1, like "
        "partitions=3,rows=20 (or partitions=auto)"
    )
    limits: dict[str, int | Literal["auto"]] = {}
    for word in listed(text):
        name, _, most = word.partition("=")
        automatic = (name, most) == (_BOUNDS[0], "auto")
        is_whole = most.isascii() and most.isdigit() and int(most) >= 1
        require(name in _BOUNDS and (automatic or is_whole) and name not in limits, rule, text)
        limits[name] = "auto" if automatic else int(most)
    return limits


weights = named(
    "output columns with numbers above 0, like sum_spent=2,count=1", lambda value: value > 0
)
clips = named(
    "output columns with bounds above 0, like sum_spent=100,count=10", lambda value: value > 0
)
units = named(
    "columns with numbers from 1e-50 to 1e50, like spent=0.01,minutes=1",
    lambda value: Fraction(1, 10**50) <= value <= 10**50,
)


def top(text: str) -> tuple[str, int]:
    """Return an output column and how many partitions are kept."""
    rule = "an output column and a whole number of at least 1, like people_count=10"
    kept = named(rule, lambda k: k >= 1 and k.denominator == 1)(text)
    require(len(kept) == 1, rule, text)
    [(name, k)] = kept.items()
    return name, int(k)


lowest = named("columns with the statistic of nobody, like minutes=0,spent=0", lambda value: True)


def assumed(text: str) -> dict[str, Fraction]:
    """Return the numbers of COLUMN<=MOST[,COLUMN<=MOST]."""
    numbers = {}
    for word in listed(text):
        name, _, amount = word.rpartition("<=")
        value = _fraction(amount)
        rule = "columns, rows or partitions with numbers above 0, like spent<=100,rows<=3"
        require(bool(name.strip()) and value is not None and value > 0, rule, text)
        numbers[name.strip()] = value or Fraction(0)
    return numbers


def person_epsilon(text: str) -> tuple[str, tuple[Fraction, ...]]:
    """Return the column of people's epsilons, and the public epsilons, of COLUMN=E,E,..."""
    name, _, numbers = text.rpartition("=")
    epsilons = [_fraction(word) for word in listed(numbers)]
    fine = all(e is not None and e > 0 and e * 10**6 % 1 == 0 for e in epsilons)
    rule = "a column and the public epsilons in it, multiples of 0.000001: epsilon=0.5,1,2"
    require(bool(name) and fine, rule, text)
    return name, tuple(e for e in epsilons if e is not None)


def function(text: str) -> Callable[[Any], Any]:
    """Return the function MODULE:NAME."""
    module, _, name = text.partition(":")
    attribute: Any = None
    with contextlib.suppress(Exception):  # an import runs the user's code, which may raise anything
        attribute = getattr(importlib.import_module(module), name)
    require(callable(attribute), "MODULE:NAME of a function that can be imported", text)
    hashable = type(attribute).__hash__ is not None
    require(hashable, "a function that can be hashed, as all do that are made by def", text)
    known: Callable[[Any], Any] = attribute
    return known


def function_of_column(text: str) -> tuple[str, Callable[[Any], Any]]:
    """Return the column and the function of COLUMN=MODULE:NAME."""
    name, equals, module = text.rpartition("=")
    require(bool(name and equals), "COLUMN=MODULE:NAME", text)
    return name, function(module)
