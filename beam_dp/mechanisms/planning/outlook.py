"""The outlook of a plan: the intervals to expect for people as a user guesses them to be.

It reads no data: the guess is the user's. A number that is likely to be narrower than its interval
is announced, with what would help.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple

from beam_dp.mechanisms.accounting.budget import readable
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.builder import Step
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.planning.shown_tables import text_table, wrapped

ROWS, EACH, PARTITIONS = "rows", "each", "partitions"
"""What may be assumed beside columns: rows of a person in a partition, and partitions."""
_EACH = 3
_OF_ALL = (EACH, PARTITIONS)
SELECTED = "(partitions)"
_WIDTH = 2.5
"""How wide an interval is, in bounds: two, and more for what people above the clip may lose."""
_MEANING = (
    "a number like: of people who have about half of the most that is guessed; people needed: "
    "about so many in a partition, for an interval narrower than its number"
)
_HEADINGS = ("metric", "a number like", "95% interval", "people needed")


@dataclasses.dataclass(frozen=True)
class Expected:
    """What is to be expected of one release.

    Attributes:
        metrics: the output columns of the release.
        needed: how many people a partition needs before the number says something.
        value: the number; None where the guess says nothing of it.
        bound: how far the truth may be from it.
        least: the least number that the truth can be.
    """

    metrics: str
    needed: int
    value: float | None = None
    bound: float = math.inf
    least: float = -math.inf

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text, to two digits of the length of the interval."""
        if self.value is None:
            return self.metrics, "-", "-", _round(self.needed)
        low, high = max(self.value - self.bound, self.least), self.value + self.bound
        digit = math.floor(math.log10(high - low)) - 1 if self.bound else 0
        ends = f"{_to(digit, low, math.floor)} to {_to(digit, high, math.ceil)}"
        return self.metrics, _to(digit, self.value, round), ends, _round(self.needed)


class Crowd(NamedTuple):
    """A guess at the people: how many have rows in a partition, how many partitions there are, and
    how many of them one person has rows in."""

    people: float
    partitions: int
    reach: int


@dataclasses.dataclass(frozen=True)
class Outlook:
    """What is to be expected of a program; `str(outlook)` is a table with its warning.

    Attributes:
        expected: what is to be expected of each release.
        people: how many people a partition has.
        guess: what was assumed, in words.
        budget: the budget, in words.
        asked: how many metrics were asked for.
        partitions: how many partitions there are.
    """

    expected: tuple[Expected, ...]
    people: float
    guess: str
    budget: str
    asked: int
    partitions: int

    @property
    def hopeless(self) -> tuple[str, ...]:
        """The metrics for which the people are too few."""
        return tuple(each.metrics for each in self.expected if self.people < each.needed)

    @property
    def warning(self) -> str:
        """What is hopeless, and what would help; "" where nothing is."""
        if not self.hopeless:
            return ""
        needed = max(each.needed for each in self.expected)
        helps = ["ask one or two"] * (self.asked > 2) + ["raise epsilon"]
        helps += ["take coarser partitions"] * (self.partitions > 1)
        asked = f"{self.asked} metrics" if self.asked > 1 else "that"
        silent = ", ".join(name for name in self.hopeless if name != SELECTED)
        lost = [f"{silent} would be of little use"] * bool(silent)
        lost += ["many partitions would not be selected"] * (SELECTED in self.hopeless)
        return (
            f"Warning: {', and '.join(lost)}: about {_round(needed)} people "
            f"per partition are needed for {asked} at {self.budget}; with {_round(self.people)}, "
            + ", or ".join(helps)
        )

    def __str__(self) -> str:
        return self.text()

    def text(self, columns: int | None = None) -> str:
        """Return the table, as wide as a terminal of so many columns; None: as need be."""
        cells = [each.cells for each in self.expected]
        lines = text_table(_HEADINGS, cells, columns, "<>")
        said = (wrapped(line, columns) for line in (self.guess, _MEANING, self.warning))
        guess, meaning, warning = said
        return "\n".join(filter(None, [guess, *lines, meaning, warning]))


def foresee(
    asked: Program,
    people: int,
    assume: Mapping[str, checks.Real],
    partitions: int | None,
) -> Outlook:
    """Return what is to be expected.

    Args:
        asked: the program.
        people: how many people there are in all.
        partitions: how many partitions there are; None: not public.
        assume: for columns the most that one person adds to a number of a partition, in the
            column's own unit; "rows": the most rows of a person in a partition (1 if not given);
            "each": in how many partitions a person has rows; "partitions": how many there are, if
            they are not public.

    Raises:
        TypeError, ValueError: for a number that is not above 0, and for what nothing is known of.
    """
    checks.positive_integer("plan", "people", people, "Write plan(people=5000).")
    known = _checked(asked, assume)
    program = _taken(asked, known)
    each = math.ceil(known.get(EACH, program.reach))
    needed = None if program.selection is None else program.selection.sure_from(each)
    each = min(program.reach, each)
    partitions = partitions or math.ceil(known.get(PARTITIONS, each))
    reach = min(each, partitions)
    crowd = Crowd(people * reach / partitions, partitions, reach)
    expected = [_expected(step, crowd, known) for step in program.steps]
    if needed is not None:
        expected.insert(0, Expected(SELECTED, needed))
    budget = program.budget
    amount = f"{'rho' if budget.is_zcdp else 'epsilon'} {readable(budget.amount)}"
    return Outlook(
        tuple(expected),
        people=crowd.people,
        guess=_guess(crowd, people, known),
        budget=amount,
        asked=len(program.metrics),
        partitions=partitions,
    )


def _taken(asked: Program, known: Mapping[str, float]) -> Program:
    """Return the program for the bound that these people need: by default 3 partitions."""
    if not asked.searches:
        return asked
    enough = (edge for edge in asked.edges if edge >= known.get(EACH, _EACH))
    return asked.at_bound(next(enough, asked.edges[-1]))


def _checked(program: Program, assume: Mapping[str, checks.Real]) -> dict[str, float]:
    columns = {column.name for column in program.columns}
    for name, most in assume.items():
        checks.fraction_between("plan", f"assume[{name!r}]", most, 0, math.inf)
        checks.require(
            name in {*columns, ROWS, EACH, PARTITIONS},
            "plan",
            "assume",
            f"name columns of metrics, {ROWS!r}, {EACH!r} or {PARTITIONS!r}, not {name!r}: there "
            f"are {checks.listed(sorted(columns))}",
        )
    return {name: float(most) for name, most in assume.items()}


def uses_of(step: Step) -> str:
    """Return the output columns that use a release; with its name where they use several."""
    name = f" ({step.part.shown_as or step.part.word})"
    return ", ".join(metric.output + name * (len(metric.parts()) > 1) for metric in step.users)


def _expected(step: Step, crowd: Crowd, known: Mapping[str, float]) -> Expected:
    part, release, uses = step.part, step.release, uses_of(step)
    most = known.get(part.column_name) if part.in_its_unit else known.get(ROWS, 1.0)
    found = None if most is None else release.foreseen(most, not part.in_its_unit)
    shown = 1 if release.chooser is None else crowd.reach / crowd.partitions
    least = math.ceil(max(1, release.shift) * shown)
    if found is None:
        # A rank that is off by half of the people says nothing of the middle.
        ranked = any(metric.is_ranked for metric in step.users)
        return Expected(uses, least * (1 + ranked))
    needed = max(least, math.ceil(_WIDTH * found.bound / found.each))
    least_number = 0.0 if part.whole else -math.inf
    return Expected(uses, needed, crowd.people * found.each, found.bound, least_number)


def _guess(crowd: Crowd, people: int, known: Mapping[str, float]) -> str:
    limits, several = {ROWS: 1.0, **known}, "s" * (crowd.partitions != 1)
    each = ", ".join(f"{name} <= {most:g}" for name, most in limits.items() if name not in _OF_ALL)
    if ROWS not in known:
        each += " (as no other number of rows was given)"
    return (
        f"for {people:,} people, each in {crowd.reach} of {crowd.partitions:,} partition{several}, "
        f"so about {_round(crowd.people)} in one; one person there: {each}"
    )


def _round(number: float) -> str:
    """Return two significant digits, with commas."""
    if number < 1:
        return "less than 1"
    digits = max(0, len(str(int(number))) - 2)
    return f"{round(int(number), -digits):,}"


def _to(digit: int, number: float, rounding: Callable[[Fraction], int]) -> str:
    """Return a number rounded to a power of ten, with commas."""
    exact = Fraction(number) / Fraction(10) ** digit
    return f"{float(rounding(exact) * Fraction(10) ** digit):,.{max(-digit, 0)}f}"
