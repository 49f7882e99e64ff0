"""The plan of a program: what each release would spend, and its expected error, without data."""

import dataclasses
import re
from collections.abc import Sequence

from beam_dp.mechanisms.accounting.budget import Budget, readable
from beam_dp.mechanisms.numerics.short_numbers import short, shortened
from beam_dp.mechanisms.planning.builder import Step
from beam_dp.mechanisms.planning.outlook import Outlook, uses_of
from beam_dp.mechanisms.planning.program import SELECTION, Program
from beam_dp.mechanisms.planning.shown_tables import WORDS, html_table, text_table, wrapped

_UNBOUNDED = ", which is all of them: bounds would shrink all noise"
_HEADINGS = ("metric", "spends", "expected error", "shift T", "noise scale", "mechanism")
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
_PLAIN = re.compile(r"(epsilon|rho) [\d.]+( to [\d.]+)?")
_EXPLAINED = {
    "expected error": "expected error: how far a number is from the true one, on average",
    r"at most [\d ,/]+ pe": "at most N people: in 95 of 100 releases no more lie between a number "
    "and the true one",
    "clips": "clip: the most that one person counts for, chosen privately when the job runs",
    r"\+ cut": "cut: what people have beyond the clip",
    "/n": "R, n: a bound on people's numbers, and a noisy number of people",
    r"\|f - g\|": "|f - g|: what the statistic f is changed by, so that no person moves it far",
    "shift T": "shift T: so many people may be passed over, or have more than the clip unseen",
    "noise scale": "noise scale: in 95 of 100 releases noise is below 3 of it (Gaussian: below 2)",
}
"""What words of the table mean, by patterns that find them."""


@dataclasses.dataclass(frozen=True)
class PlanRow:
    """The row of one release in a plan.

    Attributes:
        metric: the output columns that use the release.
        mechanism: how it is drawn.
        epsilon: its cost in all, over the partitions of one person; 0 under zCDP.
        rho: its cost in all under zCDP; 0 otherwise.
        delta: its delta in all.
        noise_scale: the scale of the noise, in words.
        shift: how many people may be cut or passed over (T); 0, shown as "-", for none.
        expected_error: the mean absolute error of a released number, or how many people its rank
            may be off (95%), in words.
        reason: why this search, where `search="auto"` was asked for; for two phases, what is done
            for few people; for a preprocessed statistic, when it is not changed, and how far the
            noise strays (95%).
        spends: its cost in words, where the numbers do not say it.
    """

    metric: str
    mechanism: str
    epsilon: float
    rho: float
    delta: float
    noise_scale: str
    shift: int
    expected_error: str
    reason: str = ""
    spends: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text, with rounded numbers."""
        spends = f"rho {self.rho:.4g}" if self.rho else f"epsilon {self.epsilon:.4g}"
        spends += f", delta {self.delta:.3g}" if self.delta else ""
        return (
            self.metric,
            shortened(self.spends or spends),
            shortened(self.expected_error),
            short(self.shift) if self.shift else "-",
            shortened(self.noise_scale),
            self.mechanism,
        )


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a release would spend; `str(plan)` is a table, `plan.text(80)` a narrow one.

    Attributes:
        rows: one per release, and one for the selection of partitions.
        total: the whole budget, and how it is composed.
        outlook: the intervals to expect, where the people were guessed.
        cautions: what is unusual about the parameters.
        owners: what to say of rows with several owners; "" for one.
    """

    rows: tuple[PlanRow, ...]
    total: str
    outlook: Outlook | None = None
    cautions: tuple[str, ...] = ()
    owners: str = ""

    def __str__(self) -> str:
        return self.text()

    def text(self, columns: int | None = None) -> str:
        """Return the table and what it means.

        Args:
            columns: how wide the terminal is; None: as wide as need be.
        """
        lines, below = self._lines(columns), [*self._reasons, f"in all: {self.total}"]
        below = [*self._words(lines[: len(self.rows) + 1]), *below, *filter(None, [self.owners])]
        notes = [wrapped(note, columns) for note in below]
        outlook = [] if self.outlook is None else [self.outlook.text(columns)]
        warned = [wrapped(f"Warning: {line}", columns) for line in self.cautions]
        return "\n".join([*lines, *notes, *outlook, *warned])

    def _repr_html_(self) -> str:
        """Return the plan as a notebook shows it."""
        notes = self.text().split("\n", len(self.rows) + 1)[-1]
        return html_table(_HEADINGS, [row.cells for row in self.rows], notes, WORDS)

    def _lines(self, columns: int | None) -> list[str]:
        """Return the table; where all costs have one unit, that stands in the heading."""
        heading, cells = list(_HEADINGS), [list(row.cells) for row in self.rows]
        units = {row[1].split(" ", 1)[0] if _PLAIN.fullmatch(row[1]) else "" for row in cells}
        if len(units) == 1 and "" not in units:
            [heading[1]] = units
            for row in cells:
                row[1] = row[1].split(" ", 1)[1]
        return text_table(heading, cells, columns)

    def _words(self, table: Sequence[str]) -> list[str]:
        text = "\n".join(table)
        return [said for pattern, said in _EXPLAINED.items() if re.search(pattern, text)]

    @property
    def _reasons(self) -> list[str]:
        return [f"{row.metric}: {row.reason}" for row in self.rows if row.reason]


def describe(program: Program, unbounded: bool = False) -> Plan:
    """Return the plan of a program.

    Args:
        program: the program.
        unbounded: whether only the number of public partitions limits its reach, and bounds could.
    """
    rows = [_step_row(program, step) for step in program.steps]
    if program.selection is not None:
        rows.insert(0, _selection_row(program))
    total = f"{total_of(program.asked)}; {_composition(program)}"
    return Plan(tuple(rows), total + _UNBOUNDED * (unbounded and program.reach > 1))


def several_owners(columns: Sequence[str]) -> str:
    """Return what to say of rows that belong to several people; "" for one."""
    if len(columns) < 2:
        return ""
    *others, last = columns
    return (
        f"each row has {_NUMBERS[len(columns)]} owners: {', '.join(others)} and {last}; each of "
        "them is a person, protected with all rows that have them. If that is not meant, name one "
        "column as the person"
    )


def total_of(budget: Budget) -> str:
    """Return a whole budget in words."""
    spent = f"{'rho' if budget.is_zcdp else 'epsilon'} {readable(budget.amount)}"
    return f"{spent}, delta {readable(budget.delta)}"


def _composition(program: Program) -> str:
    kind = "zCDP" if program.budget.is_zcdp else "pure"
    if program.budget.is_zcdp and not program.asked.is_zcdp:
        kind = f"spent as rho {float(program.budget.amount):.4g} by zCDP"
    several = "s" * (program.reach != 1)
    return f"{kind} composition, one person in at most {program.reach} partition{several}"


def _cost(program: Program, label: str) -> tuple[float, float, float]:
    """Return epsilon, rho and delta of all entries that begin with the label."""
    epsilon = rho = delta = 0.0
    for name, cost, times in program.entries:
        if name == label or name.startswith(label + ":"):
            epsilon += float(cost.amount * times) * (not cost.is_zcdp)
            rho += float(cost.amount * times) * cost.is_zcdp
            delta += float(cost.delta * times)
    return epsilon, rho, delta


def _selection_row(program: Program) -> PlanRow:
    epsilon, rho, delta = _cost(program, SELECTION)
    selection = program.selection
    assert selection is not None
    return PlanRow(
        metric="(partitions)",
        mechanism=selection.name,
        epsilon=epsilon,
        rho=rho,
        delta=delta,
        noise_scale="-",
        shift=0,
        expected_error=selection.certainty,
    )


def _step_row(program: Program, step: Step) -> PlanRow:
    description = step.release.describe()
    epsilon, rho, delta = _cost(program, step.label)
    return PlanRow(
        metric=uses_of(step),
        mechanism=description.mechanism,
        epsilon=epsilon,
        rho=rho,
        delta=delta,
        noise_scale=description.noise_scale,
        shift=description.shift,
        expected_error=description.expected_error,
        reason=description.reason,
    )
