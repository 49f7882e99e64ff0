"""The plan of a program, without data; and the record of what a run has spent and drawn.

The plan says what each release would spend, and its expected error; where the bound on partitions
per person is chosen privately, for the bound `SHOWN`. Everything in the record is a public
parameter, or was released and paid for: the noisy histograms that choose clips are outputs of the
mechanism (`histogram_choice.clip_choice`), and clips and noise scales are functions of them and of
parameters. So it may stand beside the output.
"""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.accounting.periods import PERSON, first_to_last, in_unit, meant
from beam_dp.mechanisms.metrics.mean import SumOfReleased
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.compile import CAP, SELECTION, program_at
from beam_dp.mechanisms.planning.program import Program, Step
from beam_dp.text.text_tables import short, shortened, text_table, wrapped

Record = dict[str, Any]

SEARCHED = "(partitions per person)"
"""The row of the search in a plan."""
SHOWN = 3
"""The bound that figures are shown for where one is chosen, if it can be chosen."""
_CAPS = "if one counts, partitions of people in one or two partitions need fewer people"
_BESIDE = (
    "the sum is this plus the centre times the rows: it also errs by the centre times the error of "
    "the rows"
)
_CENTRE = "sums of distances from it have less noise than sums"
_KNOWN = (
    "a bound that you know without the data costs nothing: "
    "bounds=ContributionBounds(partitions=3), --bounds partitions=3. If somebody has more, "
    "intervals may miss the truth"
)

_UNBOUNDED = ", which is all of them: bounds would shrink all noise"
_HEADINGS = ("metric", "spends", "expected error", "shift T", "noise scale", "mechanism")
_EXPLAINED = (
    (
        "expected error: how far a number is from the true one, on average; of a number with a rank: a "
        "rank error of at most N people (95%)"
    ),
    (
        "clip: the contribution of one person is clipped to it; it is chosen privately when the job runs; "
        "clipping loss: what people have beyond it, less what is given back"
    ),
    "shift T: the search may pass over T people, or T people may have more than the clip",
    "noise scale: the noise is below 3 times this in 95 of 100 releases (Gaussian: 2 times)",
)
"""What the words of the table mean; the page on results says the rest."""


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
            for few people; for a preprocessed statistic, when it is not changed, and the tail
            bound of the noise (95%).
    """

    metric: str
    mechanism: str
    epsilon: float = 0.0
    rho: float = 0.0
    delta: float = 0.0
    noise_scale: str = "-"
    shift: int = 0
    expected_error: str = "-"
    reason: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text, with rounded numbers."""
        spends = f"rho {self.rho:.4g}" if self.rho else f"epsilon {self.epsilon:.4g}"
        spends += f", delta {self.delta:.3g}" if self.delta else ""
        return (
            self.metric,
            shortened(spends),
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
        cautions: what is unusual about the parameters.
        owners: what to say of rows with several owners, or of periods; "" for one person.
        period: the column of the period; None: a person is protected with all rows.
    """

    rows: tuple[PlanRow, ...]
    total: str
    cautions: tuple[str, ...] = ()
    owners: str = ""
    period: str | None = None

    def __str__(self) -> str:
        return self.text()

    def text(self, columns: int | None = None) -> str:
        """Return the table and what it means.

        Args:
            columns: how wide the terminal is; None: as wide as need be.
        """
        lines = text_table(_HEADINGS, [row.cells for row in self.rows], columns)
        below = [*_EXPLAINED, *(f"{row.metric}: {row.reason}" for row in self.rows if row.reason)]
        below = [in_unit(note, self.period) for note in [*below, f"in all: {self.total}"]]
        notes = [wrapped(note, columns) for note in [*below, *filter(None, [self.owners])]]
        warned = [wrapped(f"Warning: {line}", columns) for line in self.cautions]
        return "\n".join([*lines, *notes, *warned])


def describe(program: Program, unbounded: bool = False) -> Plan:
    """Return the plan of a program; where a bound is chosen, for the bound `SHOWN`.

    Args:
        program: the program.
        unbounded: whether only the number of public partitions limits the partitions of a person,
            and bounds could.
    """
    request = program.request
    if not request.searches:
        free = unbounded and program.max_partitions > 1 and _is_limited(program)
        text = _composition(program) + _UNBOUNDED * free
        return Plan(_rows(program), f"{total_of(request.budget)}; {text}")
    least, most = request.ladder[0], request.ladder[-1]
    shown = min(SHOWN, most)
    text = "metrics that pay for each partition count one person in at most"
    chosen = f"{text} {least} to {most}, chosen privately; the figures are for {shown}"
    total = f"{total_of(request.budget)}; {chosen}"
    return Plan((_search_row(request.search_cost), *_rows(program_at(request, shown))), total)


def protected(
    person: Sequence[str],
    period: str | None,
    budget: Record,
    counted: str | None = None,
    source: str | None = None,
) -> str:
    """Return what to say of rows of several people, or of one person in periods; "" for neither.

    A person with rows of n periods is n steps away: n epsilon (Dwork, Roth 2014, Theorem 2.2), or
    n^2 rho (Bun, Steinke 2016, Proposition 1.9).

    Args:
        person: the columns of the person, or of the owners.
        period: the column of the period; None: none.
        budget: the cost of the release, as in a record.
        counted: the periods whose rows count, as `periods.named` reads them; None: all.
        source: the SQL that computes the period; None: it is a column.
    """
    if period is not None:
        computed = source not in (None, period)
        made = f". {period} is {source}; times of a query are in UTC" * computed
        only = f". Counted are the rows of {period} {counted} only" if counted else ""
        only += first_to_last(counted) if counted and computed else ""
        word, power = ("rho", 2) if "rho" in budget else ("epsilon", 1)
        one = Fraction(budget.get(word, 0))
        delta = ", and more delta" * (Fraction(budget.get("delta", 0)) > 0)
        most = f"{word} {short(float(one * 30**power))}"
        less = f": for a person with 30 values of {period} {most} in all{delta}"
        return (
            f"protected: {in_unit(PERSON, period)} ({word} {short(float(one))}); all rows of a "
            f"person less{less * (power == 1 or not delta)}. Where people are counted, a person "
            f"counts once for each {period}{made}{only}"
        )
    if len(person) < 2:
        return ""
    *others, last = person
    return (
        f"each row has {len(person)} owners: {', '.join(others)} and {last}; each of "
        "them is a person, protected with all rows that have them. If that is not meant, name one "
        "column as the person" + (f". {meant(person)}" if meant(person) else "")
    )


def total_of(budget: Budget) -> str:
    """Return a whole budget in words."""
    spent = f"{'rho' if budget.is_zcdp else 'epsilon'} {checks.readable(budget.amount)}"
    return f"{spent}, delta {checks.readable(budget.delta)}"


def _composition(program: Program) -> str:
    kind, whole = "zCDP" if program.composed.is_zcdp else "pure", program.request.whole
    if program.composed.is_zcdp and not program.request.budget.is_zcdp:
        first = 0 if whole.is_zcdp else whole.amount - program.request.left.amount
        rho = (whole if whole.is_zcdp else program.composed).amount
        beside = f"epsilon {float(first):.4g} and " * bool(first)  # of what is chosen first
        kind = f"spent as {beside}rho {float(rho):.4g} by zCDP"
    several = "s" * (_max_partitions(program) != 1)
    limit = f", one person in at most {_max_partitions(program)} partition{several}"
    return f"{kind} composition{limit * _is_limited(program)}"


def _is_limited(program: Program) -> bool:
    """Return whether people count in a limited number of partitions for anything but a norm."""
    return program.request.max_partitions is not None or program.pays_per_partition


def _max_partitions(program: Program) -> int:
    """Return in how many partitions one person counts for what is no norm."""
    return program.max_partitions if program.request.metrics else program.cap


def _rows(program: Program) -> tuple[PlanRow, ...]:
    """Return a row for each centre, for the selection of partitions, and for each release."""
    rows = [
        PlanRow(
            f"(centre of {request.column.name})",
            "median of people, by ranks",
            *_costs([(cost, 1)]),
            reason=_CENTRE,
        )
        for request, cost in program.request.centre_costs.items()
    ]
    if program.request.chooses_cap and program.chosen.cap is None:
        spent = _spent(program, CAP)
        rows.append(PlanRow(f"({CAP})", "noisy vote of people", *spent, reason=_CAPS))
    if program.selection is not None:
        found, error = program.selection, program.selection.certainty
        spent = _spent(program, SELECTION)
        rows.append(PlanRow("(partitions)", found.name, *spent, expected_error=error))
    pairs = zip(program.steps, program.gaussian, strict=True)
    return (*rows, *(_step_row(program, *pair) for pair in pairs))


def _uses_of(step: Step) -> str:
    """Return the output columns that use a release; with its name where they use several."""
    name = f" ({step.part.word})"
    return ", ".join(metric.output + name * (len(metric.parts()) > 1) for metric in step.users)


def _step_row(program: Program, step: Step, other: Step | None = None) -> PlanRow:
    """Return the row of a step.

    Args:
        program: the program.
        step: the step.
        other: the same with Gaussian noise, if that may err less.
    """
    epsilon, rho, delta = _spent(program, step.label)
    release, description = step.release, step.release.describe()._asdict()
    if other not in (None, step):
        description["mechanism"] += " (or Gaussian, of the L2 norm, where that errs less)"
        of_l2 = other.release.describe().expected_error.partition(" + ")[0]
        error, plus, loss = description["expected_error"].partition(" + ")
        description["expected_error"] = f"{error} (or {of_l2} of the L2 norm){plus}{loss}"
    description["noise_scale"] = _scales(step, other or step)
    if any(isinstance(user, SumOfReleased) for user in step.users) and step.part.asked_centre:
        description["reason"] = _BESIDE
    return PlanRow(
        _uses_of(step), epsilon=epsilon, rho=rho, delta=delta, shift=release.shift, **description
    )


def _scales(step: Step, other: Step) -> str:
    """Return the scale of the noise, and what it is of the L2 norm."""
    scale, of_l2 = (each.release.describe().noise_scale for each in (step, other))
    return scale if other == step else f"{scale} (or {of_l2} of the L2 norm)"


def _spent(program: Program, label: str) -> tuple[float, float, float]:
    """Return epsilon, rho and delta of all entries that begin with the label."""
    entries = program.entries
    return _costs(
        (cost, times)
        for name, cost, times in entries
        if name == label or name.startswith(label + ":")
    )


def _costs(costs: Iterable[tuple[Budget, int]]) -> tuple[float, float, float]:
    """Return the sums of epsilon, rho and delta."""
    epsilon = rho = delta = 0.0
    for cost, times in costs:
        epsilon += float(cost.amount * times) * (not cost.is_zcdp)
        rho += float(cost.amount * times) * cost.is_zcdp
        delta += float(cost.delta * times)
    return epsilon, rho, delta


def _search_row(cost: Budget) -> PlanRow:
    return PlanRow(
        SEARCHED,
        "noisy histogram of people",
        *_costs([(cost, 1)]),
        noise_scale=f"{AdditiveNoise(cost).scale:.4g}",
        reason=_KNOWN,
    )


def record_of(
    program: Program, choices: Sequence[np.ndarray], clips: Sequence[Sequence[tuple[float, float]]]
) -> Record:
    """Return the record of a run as plain values: texts, numbers, lists and dicts.

    Args:
        program: the run's program, for what was chosen.
        choices: what was drawn to choose the shared clips, in the order of the program.
        clips: for each step the shared clips that were taken, each with the scale of its noise.
    """
    releases: list[Record] = []
    steps = program.with_better_noise(choices)
    spent = {key: each for step in steps for key, each in _spent_in_run(step, choices).items()}
    for step, used in zip(steps, clips, strict=True):
        row = _step_row(program, step)
        entry: Record = {
            "metric": row.metric,
            "mechanism": row.mechanism,
            "label": step.label,
            "noise_scale": row.noise_scale,
            "shift_T": row.shift,
            "expected_error": row.expected_error,
        }
        if step.release.one_sided:
            entry["people_beyond"] = row.shift
        if row.reason:
            entry["note"] = row.reason
        if step.part.asked_centre is not None:
            entry["centre"] = step.release.origin
        clip = step.release.clip
        if clip is not None and step.shared is not None:
            entry["clip"] = clip.record(choices[step.shared], used, step.release.noise_cost)
        if step.additive is not None and used and math.isinf(used[0][0]):
            box = dataclasses.replace(step.additive.noise, partitions=program.partitions or 1)
            entry["mechanism"] = f"{box.name}, nobody clipped"
            entry["noise_scale"] = f"{used[0][1]:.4g}"
            entry["expected_error"] = f"{box.mean_error(0):.4g}"
            entry["clip"] |= {"clips": [], "norm": "none"}
        releases.append(entry)
    budget, selection = program.request.budget, program.selection
    bound = program.chosen.bound
    return {
        "budget": cost(budget),
        "composition": f"{total_of(budget)}; {_composition(program)}",
        "spent": [
            {"on": label, "times": times, **cost(spent.get((label, each.is_zcdp), each))}
            for label, each, times in program.entries
        ],
        "partitions_of_one_person": _max_partitions(program) if _is_limited(program) else None,
        "partitions_chosen": None if bound is None else bound.record(),
        "selection": None if selection is None else selection.certainty,
        "releases": releases,
    }


def _spent_in_run(step: Step, choices: Sequence[np.ndarray]) -> dict[tuple[str, bool], Budget]:
    """Return what the noise of a step has cost, and its clip if that has left something for it.

    The keys are labels of the account, and whether the cost is one of zCDP.
    """
    if step.additive is None:
        return {}
    noise, clip, spent = step.additive.noise_cost, step.additive.clip, {}
    if clip is not None and step.shared is not None:
        whole, left = clip.choice.cost, clip.choice.left(choices[step.shared])
        if left is not None:
            spent[f"{step.label}: clip", whole.is_zcdp] = whole.like(whole.amount - left.amount)
        noise = clip.cost_of_noise(noise, choices[step.shared])
    return spent | {(f"{step.label}: noise", noise.is_zcdp): noise}


def cost(budget: Budget) -> Record:
    """Return a cost in exact rationals."""
    amount = "rho" if budget.is_zcdp else "epsilon"
    return {amount: str(budget.amount), "delta": str(budget.delta)}
