"""The outlook of a plan: the intervals to expect for people as a user guesses them to be.

It reads no data: the guess is the user's. A number that is likely to be narrower than its interval
is announced, with what would help.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from beam_dp.mechanisms.accounting.budget import readable
from beam_dp.mechanisms.histogram_choice.reach import FIRST
from beam_dp.mechanisms.metrics.released import Crowd, Foreseen
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.builder import Step
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.planning.shown_tables import text_table, wrapped

ROWS, EACH, PARTITIONS = "rows", "each", "partitions"
"""What may be assumed beside columns: rows of a person in a partition, and partitions."""
_EACH = 3
_OF_ALL = (EACH, PARTITIONS)
SELECTED = "(partitions)"
_MOST_PEOPLE = 1 << 60
_MEANING = (
    "a number like: of people who have about half of the most that is guessed; people needed: "
    "about so many in a partition, for an interval narrower than its number"
)
_HEADINGS = ("metric", "a number like", "95% interval", "people needed")


@dataclasses.dataclass(frozen=True)
class Expected:
    """What is to be expected of one release.

    Attributes:
        number: the number and its interval; None where the guess says nothing of them.
        needed: how many people a partition needs before the number says something.
        metrics: the output columns of the release.
    """

    number: Foreseen | None
    needed: int
    metrics: str = ""

    @property
    def cells(self) -> tuple[str, str, str]:
        """The numbers as text, to two digits of the length of the interval."""
        if self.number is None:
            return "-", "-", _round(self.needed)
        value, low, high = self.number.value, self.number.low, self.number.high
        digit = math.floor(math.log10(high - low)) - 1 if 0 < high - low < math.inf else 0
        ends = f"{_to(digit, low, math.floor)} to {_to(digit, high, math.ceil)}"
        return _to(digit, value, round), ends, _round(self.needed)


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
        cells = [(each.metrics, *each.cells) for each in self.expected]
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
    each = min(program.reach, math.ceil(known.get(EACH, program.reach)))
    partitions = partitions or math.ceil(known.get(PARTITIONS, each))
    reach = min(each, partitions)
    crowd = Crowd(people * reach / partitions, partitions, reach, None)
    expected = [_expected(step, crowd, known) for step in program.steps]
    if program.selection is not None:
        expected.insert(0, Expected(None, program.selection.threshold, SELECTED))
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
    return asked.at_bound(next(enough, asked.edges[-1]), FIRST)


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
    most: float | None = known.get(ROWS, 1.0)
    in_unit = step.part.in_its_unit
    if in_unit:
        most = known.get(step.part.column_name)
    told = dataclasses.replace(crowd, most=most, whole=not in_unit)
    number = step.release.foreseen(told) if most is not None else None
    if number is None:
        # A rank that is off by half of the people says nothing of the middle.
        ranked = any(metric.is_ranked for metric in step.users)
        return Expected(None, max(1, step.release.shift) * (1 + ranked), uses_of(step))
    return Expected(number, _needed(step, told), uses_of(step))


def _needed(step: Step, crowd: Crowd) -> int:
    """Return about how many people a partition needs for an interval narrower than its number.

    Near it the clip jumps between powers of two, and suits some numbers of people better: a tenth
    more have to be enough too.
    """

    def narrow(people: float) -> bool:
        number = step.release.foreseen(dataclasses.replace(crowd, people=people))
        return number is not None and not number.is_wide

    def enough(people: int) -> bool:
        return narrow(people) and narrow(1.1 * people)

    high = 1
    while not enough(high) and high < _MOST_PEOPLE:
        high *= 2
    low = high // 2
    while high - low > max(1, low // 64):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


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
    if not math.isfinite(number):
        return "?"
    exact = Fraction(number) / Fraction(10) ** digit
    return f"{float(rounding(exact) * Fraction(10) ** digit):,.{max(-digit, 0)}f}"
