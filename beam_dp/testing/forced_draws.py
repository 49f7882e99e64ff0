"""Forced draws: the exact privacy loss of one whole release, summed over its private draws.

`compared` runs a release on a database x with a seeded source of randomness, and notes every
private draw: what it was computed from, and what came out. Then it runs it on a neighbour x', with
the same outcomes forced. What is released must be equal, and the loss is the sum of
ln P_x(outcome) / P_x'(outcome) over the draws, each given the outcomes before it.

Epsilon-DP says that it is from -epsilon to epsilon for all outcomes that are possible, likely or
not: so a run may *lean* to one side, which finds more than chance does. Under zCDP the divergences
of the draws, each over its order, are added up at these outcomes, to at most rho. Where epsilon is
spent and some noise is Gaussian, the divergences of that are kept apart.

What draws and how it is weighed is in `draw_costs.KINDS`. A method that reads entropy and has no
entry fails the run.
"""

import contextlib
import dataclasses
import importlib.util
import inspect
import io
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any
from unittest import mock

import apache_beam as beam
import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.noise.noise_on_several_sums import OneDraw
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics.checks import ParameterError, ParameterTypeError
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.search.common import bounded_range
from beam_dp.mechanisms.search.quantiles.tail_quantile import TailSearch
from beam_dp.results.release import Released
from beam_dp.testing.losses.draw_costs import (
    KINDS,
    LEAST,
    NOBODY,
    ROUNDING,
    Call,
    Cost,
    Fault,
    Kind,
    Spy,
    UnknownDraw,
    selected_once,
    whole,
)
from beam_dp.transforms import aggregate
from beam_dp.transforms.aggregate import PrivateAggregate
from beam_dp.transforms.columns import layout
from beam_dp.transforms.private_tables import PrivateTables
from beam_dp.transforms.stages.draws_folder import Barriers

POSSIBLE = 1e-9
_RAISED = (Exception,)
_OF_CALLS = (ParameterError, ParameterTypeError)
_DATE = "2026-01-01"
_OF_OTHERS = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)

Release = Callable[[Any], Released]


@dataclasses.dataclass(frozen=True)
class OfTable(Barriers):
    """The barriers of one table of a run, of which each draws under the same names."""

    table: int


class Run:
    """One run, which notes its draws under the name of the step that draws them.

    Attributes:
        tables: the tables of the release.
        costs: by table, what its draws cost against the run before, by the name of the step.
        worst: the largest |ln P_x / P_x'| of the draws up to a search, at any of its outcomes.
        programs: by table, what released last.
        claimed: the budgets that the release says it costs.
        outcome: all that the run shows to anybody, by what it is.

    Args:
        seed: of the randomness, and of the key by which rows stay.
        lean: from -2 to 2. Below 0 additive noise is below 0, above 0 above it, and that of noisy
            histograms too from 2 on; searches choose any possible candidate. 0: nothing leans.
        before: the run whose outcomes are forced.
    """

    def __init__(self, seed: int, lean: int = 0, before: "Run | None" = None) -> None:
        self.tables: list[PrivateAggregate] = []
        self.calls: dict[tuple[int, str], list[Call]] = defaultdict(list)
        self.costs: dict[int, dict[str, Cost]] = defaultdict(lambda: defaultdict(Cost))
        self.worst = self._pure = Fraction(0)
        self.programs: dict[int, Program] = {}
        self.claimed: list[Budget] = []
        self.outcome: dict[str, Any] = {}
        self._source = np.random.default_rng((seed, before is not None))
        self._key = np.random.default_rng(seed).bytes(32)
        self._lean, self._before = lean, before
        self._left = {name: [*calls] for name, calls in before.calls.items()} if before else {}
        self._place, self._inside, self._together = (0, ""), False, False
        self._fault: Fault | None = None

    def of(self, release: Release, rows: Any) -> None:
        """Release rows, and note all that is shown.

        Raises:
            Fault: a draw depends on data in a way that no outcome explains; or the run fails.
            ParameterError, ParameterTypeError: of the first run, whose call is wrong.
        """
        shown = io.StringIO()
        with (
            self._patched(),
            contextlib.redirect_stdout(shown),
            warnings.catch_warnings(record=True) as warned,
        ):
            warnings.simplefilter("always")
            try:
                self.outcome |= shown_by(release(rows))
            except _RAISED as error:
                if self._before is None and isinstance(error, _OF_CALLS):
                    raise  # a call that is wrong whatever the rows are
                raise self._fault or Fault(f"a run failed: {error!r}") from error
        said = {str(each.message) for each in warned if not issubclass(each.category, _OF_OTHERS)}
        self.outcome |= {"text on the screen": shown.getvalue(), "warnings": sorted(said)}
        for (_, name), calls in self._left.items():
            if calls:
                raise Fault(f"{name}: fewer draws than before")

    @contextlib.contextmanager
    def _patched(self) -> Iterator[None]:
        """Let every private draw of the library be one of this run, in this block."""

        def once(barriers: OfTable, name: str, draw: Callable[[], Any]) -> Any:
            self._place = barriers.table, name
            return draw()

        with contextlib.ExitStack() as stack:

            def patch(owner: Any, method: str, made: Callable[..., Any]) -> None:
                stack.enter_context(mock.patch.object(owner, method, made))

            for of_noise, method in ((AdditiveNoise, "_draw"), (OneDraw, "draw")):
                patch(of_noise, method, _marking(of_noise, method))
            for kind in KINDS:
                patch(kind.owner, kind.method, self._method(kind))
            patch(Program, "release", self._seen(Program.release))
            patch(TailSearch, "choose_at", self._at_once(TailSearch.choose_at))
            patch(PrivateTables, "expand", self._applied(PrivateTables.expand))
            patch(PrivateAggregate, "expand", self._applied(PrivateAggregate.expand))
            patch(beam.Pipeline, "run", self._labelled(beam.Pipeline.run))
            patch(aggregate, "draws_of", lambda *given: OfTable(len(self.tables) - 1))
            patch(Barriers, "once", once)
            patch(layout, "fresh_key", lambda: self._key)
            patch(Noise, "words", self._unknown)
            yield

    def _method(self, kind: Kind) -> Callable[..., Any]:
        original = getattr(kind.owner, kind.method)
        parameters = inspect.signature(original)

        def method(*args: Any, **kwargs: Any) -> Any:
            bound = parameters.bind(*args, **kwargs)
            bound.apply_defaults()
            if self._inside:
                return original(*bound.args, **bound.kwargs)
            leans = int(np.sign(self._lean)) * (abs(self._lean) >= kind.leans)
            spy = Spy(self._source, leans, kind.leans == 1)
            given = dict(bound.arguments) | {"noise": spy}
            owner = given.pop("self")
            self._inside = True
            try:
                result = original(owner, **given)
                numbers = whole(given[kind.counts]) if kind.counts else []
                if kind.counts and not numbers:
                    return result
                call = Call(owner, given, spy, numbers)
                call.outcome = kind.outcome(call, result)
                if kind.law and kind.result(call, call.outcome) != result:
                    raise Fault(f"{kind.owner.__name__} returns more than its outcome")
                drawn = self._noted if self._before is None else self._forced
                return kind.result(call, drawn(kind, call))
            except Fault as fault:
                self._fault = fault
                raise
            finally:
                self._inside = False

        return method

    def _noted(self, kind: Kind, call: Call) -> Any:
        if self._lean and kind.law is not None:
            call.outcome = self._possible(call)
        self.calls[self._place].append(call)
        return call.outcome

    def _possible(self, call: Call) -> Any:
        """Return a place that can be chosen, or none, if that can be."""
        law = call.law
        cells = [*zip(law.starts, [*law.starts[1:], law.stop], strict=True), None]
        masses = zip(cells, law.masses(law.starts), strict=True)
        possible = [cell for cell, mass in masses if mass > POSSIBLE]
        cell = possible[self._source.integers(len(possible))]
        if cell is None:
            return None
        places = cell[0], cell[1] - 1, int(self._source.integers(*cell))
        place = places[self._source.integers(len(places))]
        return place if law.chance(place) > LEAST else call.outcome

    def _forced(self, kind: Kind, call: Call) -> Any:
        left, name = self._left.get(self._place, []), self._place[1]
        alike = [each for each in left if type(each.owner) is kind.owner]
        if not alike and kind.owner is Program:  # nobody was in that bucket, and nothing was kept
            alike = [dataclasses.replace(call, given=NOBODY, outcome=frozenset())]
        if not alike:
            raise Fault(f"{name}: another draw than before, of {kind.owner.__name__}")
        known = next((each for each in alike if kind.public(each) == kind.public(call)), None)
        if known is None:
            raise Fault(f"{name}: {kind.owner.__name__} draws by other parameters")
        left[:] = [each for each in left if each is not known]
        cost = kind.weigh(known, call)
        self.costs[self._place[0]][name] += cost
        self._pure += cost.pure
        self.worst = max(self.worst, self._pure + cost.above, cost.below - self._pure)
        return known.outcome

    def _seen(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method that releases, which notes what does."""

        def method(program: Program, *args: Any) -> Any:
            self.programs[self._place[0]] = program
            return original(program, *args)

        return method

    def _at_once(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return a search of several draws, which are bounded together: by their whole range.

        A log ratio from -r / 2 to r / 2 has the range r, and costs rho = r^2 / 8 at most
        (`search.common.bounded_range`).
        """

        def method(search: TailSearch, *args: Any, **kwargs: Any) -> Any:
            if self._before is None:
                return original(search, *args, **kwargs)
            costs, name = self.costs[self._place[0]], self._place[1]
            before = costs[name]
            result = original(search, *args, **kwargs)
            found, width = costs[name] - before, bounded_range(search.budget)
            width = width if search.budget.is_zcdp else 2 * width
            if 2 * abs(found.pure) <= width + 2 * found.rounded * ROUNDING:
                found = dataclasses.replace(found, rho=min(found.rho, width**2 / 8))
            costs[name] = before + found
            return result

        return method

    def _applied(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return the `expand` of a transform that says what it costs."""

        def expand(made: Any, rows: Any) -> Any:
            if isinstance(made, PrivateAggregate):
                self.tables.append(made)
            if not self._together:
                self.claimed.append(
                    (made.first if isinstance(made, PrivateTables) else made).budget
                )
            outer, self._together = self._together, True
            try:
                return original(made, rows)
            finally:
                self._together = outer

        return expand

    def _labelled(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return the `run` of a pipeline, which notes the names of its steps."""

        def run(pipeline: beam.Pipeline, *args: Any, **kwargs: Any) -> Any:
            self.outcome |= {"names of steps": sorted(pipeline.applied_labels)}
            return original(pipeline, *args, **kwargs)

        return run

    def _unknown(self, *_: Any) -> Any:
        self._fault = UnknownDraw("a private draw that is not among KINDS")
        raise self._fault


def _marking(owner: type, method: str) -> Callable[..., Any]:
    """Return a method that draws noise, as one that returns marks where a spy asks for them."""
    original = getattr(owner, method)
    parameters = inspect.signature(original)

    def marking(*args: Any, **kwargs: Any) -> Any:
        drawn = original(*args, **kwargs)
        noise = parameters.bind(*args, **kwargs).arguments["noise"]
        if not getattr(noise, "marked", False):
            return drawn
        if owner is OneDraw:
            return noise.marks(args[0], drawn)
        return noise.marks(noise.laws[-1], [drawn])[0] if len(drawn) else drawn

    return marking


def shown_by(released: Released) -> dict[str, Any]:
    """Return all that a release shows: tables, records and the page, but for the date."""
    every = [
        dataclasses.replace(each, record=each.record | {"date": _DATE})
        for each in (released, *released.others)
    ]
    shown: dict[str, Any] = {
        "tables": [(each.table.schema, repr(each.table.to_pydict())) for each in every],
        "records": [repr(each.record) for each in every],
    }
    page = dataclasses.replace(every[0], others=tuple(every[1:]))
    if importlib.util.find_spec("jinja2"):
        shown["page"] = page.report()
    return shown | {"text": repr(page)}


def compared(
    release: Release, base: Any, others: Iterable[Any], seed: int, lean: int = 0
) -> Iterator[Run]:
    """Yield the run on each neighbour of a database, forced to the outcomes of that on the base.

    What can be drawn of the base must be possible for the others.

    Raises:
        Fault: what is shown differs, or depends on data in another way.
    """
    first = Run(seed, lean)
    first.of(release, base)
    for rows in others:
        run = Run(seed, lean, first)
        run.of(release, rows)
        for name in run.outcome.keys() | first.outcome.keys():
            if run.outcome.get(name) != first.outcome.get(name):
                raise Fault(f"what was released differs: {name}")
        yield run


def share_spent(run: Run) -> Fraction:
    """Return which part of its budget a run spends between the two databases.

    Raises:
        Fault: more than the whole.
    """
    total = sum(claimed.amount for claimed in run.claimed)
    given = sum(table.budget.amount for table in run.tables)
    if given > total:
        raise Fault(f"tables of {float(given):.6f} of {float(total):.6f} are spent")
    shares, pure, rounded = Fraction(0), True, 0
    for at, costs in run.costs.items():
        table, program = run.tables[at], run.programs[at]
        found = sum(selected_once(costs, program).values(), Cost())
        part = _part_of(table.budget, program, found, costs.get("first", Cost()))
        shares += part * table.budget.amount / total
        pure &= not (program.composed.is_zcdp or found.normal)
        rounded += found.rounded
    if pure and run.worst > total + rounded * ROUNDING:
        raise Fault(f"{float(run.worst):.6f} of {float(total):.6f} are spent")
    return max(shares, run.worst / total) if pure else shares


def _part_of(budget: Budget, program: Program, found: Cost, first: Cost) -> Fraction:
    """Return which part of the budget of a table is spent.

    Args:
        budget: that of the table.
        program: what released it.
        found: what all its draws cost.
        first: what those cost of it that choose its parameters.
    """
    chosen = Cost() if program.request.whole.is_zcdp else first
    before, spent, most, delta = Fraction(0), abs(found.pure), budget.amount, budget.delta
    if budget.is_zcdp:
        spent = found.rho
    elif program.composed.is_zcdp or found.normal:
        # Half of delta is for the selection. What costs epsilon is paid first.
        before, spent = abs(chosen.pure), found.rho - chosen.rho
        if not program.composed.is_zcdp:
            before, spent = abs(found.pure), found.normal
        delta /= 1 + (program.selection is not None)
        left = budget.amount - before
        most = Budget(left, delta).to_zcdp().amount if left > 0 else Fraction(0)
    if spent > most + found.rounded * ROUNDING:
        raise Fault(f"{float(spent):.6f} of {float(most):.6f} are spent")
    if found.delta > delta:
        raise Fault(f"{float(found.delta):.6f} of delta {float(delta):.6f} are spent")
    return (before + (budget.amount - before) * (spent / most if most else 0)) / budget.amount
