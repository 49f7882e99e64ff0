"""Measure how far the statistics' releases are from the truth, beside the published mechanism.

    python -m benchmarks.published                 100 releases of everything at epsilon 1
    python -m benchmarks.published --runs 20

The published mechanism is the exponential mechanism on the removal profile with the target
tau = ceil(2 / epsilon ln(N / beta)) for N candidates (Fang, Dong, Yi, "Shifted Inverse", CCS 2022),
here on the same profile, candidates and beta = 5% as the release. Errors are the distances to the
truth: their mean without the lowest and the highest fifth, and that of all (which a single release
beyond all data spoils: beta allows it). `people` is how many people must be removed until the
statistic is as low as the release, the middle of it: it does not depend on how the profile bends.
"least shift" is no mechanism, but how far off a release is that passes over as few people as any
search must be allowed to: see `least_shift`.

The exit code is 1 unless every statistic, as it is released in two phases, errs by at
most 0.4 of the published mechanism.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import math
import sys
from collections.abc import Iterator, Sequence

import numpy as np

import beam_dp as dp
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.columns import Column, Role
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.program import Program, compile_loss, compile_program
from beam_dp.mechanisms.profiles.lipschitz_extension import CoverExtension
from beam_dp.mechanisms.releases.shifted_inverse import DirectRelease
from beam_dp.mechanisms.releases.two_phase import TwoPhase, TwoPhaseDistinct
from beam_dp.mechanisms.summaries import histograms, owner_lines
from beam_dp.mechanisms.summaries.histograms import PEOPLE, Measure
from beam_dp.mechanisms.summaries.owner_lines import Relation
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from benchmarks import profiles
from benchmarks.accuracy import line, middle, released
from benchmarks.cases import NAMED, Case
from benchmarks.profiles import EPSILON, Columns

BETA = 0.05
GOAL = 0.4
PUBLISHED, DEFAULT, FLOOR = "published", "two-phase", "least shift"
_KEY = bytes(32)
_CENTS = dp.Candidates.linear(0, 200_000, 0.01)
_DOLLARS = dp.Candidates.linear(0, 200_000, 1)


@dataclasses.dataclass(frozen=True)
class Published(dp.ExponentialMechanism):
    """The exponential mechanism with the target of the paper, which is larger than needed."""

    def _tau(self, n: int) -> int:
        return math.ceil(2 / float(self._epsilon()) * math.log(n / self.beta))


@dataclasses.dataclass(frozen=True)
class Question:
    """One statistic of one file; both mechanisms search the same candidates.

    Attributes:
        name: what the table calls it.
        case: the rows and the owners.
        metric: what is released, in two phases where it has them.
    """

    name: str
    case: Case
    metric: Metric


def _ask(name: str, case: str, metric: Metric, person: str = "") -> Question:
    found = NAMED[case]
    return Question(name, dataclasses.replace(found, person=(person,)) if person else found, metric)


def _priced(name: str, metric: Metric) -> Question:
    return _ask(name, "1000th largest, person = customer", metric)


_GRAPHS = ("edges of a Zipf graph", "edges of a large Zipf graph", "edges of a road graph")
QUESTIONS = (
    _ask("count of items, person = order", "count, a profile", dp.Count()),
    _ask("count of items, person = customer", "count, a profile", dp.Count(), "customer"),
    _priced("sum of price", dp.Sum("price")),
    _priced("largest price, dollars", dp.Max("price", candidates=_DOLLARS)),
    _priced("1000th largest price, default", dp.KthLargest("price", 1000)),
    _priced("1000th largest price, dollars", dp.KthLargest("price", 1000, candidates=_DOLLARS)),
    _priced("median price, default", dp.KthLargest("price", 3_000_608)),
    _priced("median price, dollars", dp.KthLargest("price", 3_000_608, candidates=_DOLLARS)),
    _priced("median price, cents", dp.KthLargest("price", 3_000_608, candidates=_CENTS)),
    *(
        _ask(name, name, dp.DistinctCount(name.split()[1].rstrip("s")))
        for name in NAMED
        if name.startswith("distinct") and not name.endswith(("released", "of all items"))
    ),
    _ask("most frequent clerk", "most frequent clerk of 300,000 orders", dp.MaxFrequency("clerk")),
    _ask(
        "sum of squares of clerks",
        "self-join size of clerks of 300,000 orders",
        dp.SumOfSquares("clerk"),
    ),
    *(_ask(name, name, dp.Count(one_sided=True)) for name in _GRAPHS),
    *(_ask(name, name, dp.Count(one_sided=True)) for name in ["items of customer and supplier"]),
)


def table_of(
    columns: Columns,
    person: str,
    read: Sequence[Column],
) -> Table:
    """Return rows as the pipeline would: values in units, items and second owners as codes."""
    size = len(columns[person])
    found = [_as_read(column, columns[column.name]) for column in read]
    identity = columns[person].astype(np.uint64)[None]
    return Table(identity, np.zeros((1, size), np.uint64), np.ones(size, np.int64), found)


def _as_read(column: Column, numbers: np.ndarray) -> np.ndarray:
    if column.role is Role.VALUE:
        return np.round(numbers / float(column.detail)).astype(np.int64)
    return owner_lines.code(numbers.astype(np.uint64)[None], _KEY)


def cells_of(
    table: Table, bounder: Bounder, measures: Sequence[Measure | Relation]
) -> PartitionView:
    """Return what the releases see of rows, by the code of the pipeline."""
    settled = bounder.settle(bounder.prepare(table))
    lines = owner_lines.collect(settled, measures, _KEY)
    if bounder.keep_rows:
        settled = bounder.aggregate(settled)
    return PartitionView.of_all(histograms.summarise(settled, measures), lines)


def profile_of(question: Question, metric: Metric, removals: int) -> dp.Profile:
    """Return the removal profile B[0..removals]."""
    case = question.case
    loss = compile_loss(metric, removals, case.person[1:])
    table = table_of(profiles.read(case), case.person[0], loss.columns)
    measures = loss.profiler.measures
    if loss.keep_rows:
        measures = (Measure(PEOPLE), *measures)
    bounder = Bounder(ContributionBounds(None), loss.fields, _KEY, loss.keep_rows)
    cells = cells_of(table, bounder, measures)
    return next(iter(loss.profiler.profiles(cells.at(len(measures) - 1))))


def program_of(question: Question, metric: Metric) -> Program:
    """Return the program of a release for the whole table."""
    others = question.case.person[1:]
    return compile_program([metric], dp.Budget(EPSILON), 1, partitions=1, others=others)


def in_two_phases(question: Question) -> Metric:
    """Return the metric as it is released in two phases."""
    if len(question.case.person) == 1 and hasattr(question.metric, "one_sided"):
        return question.metric
    return dataclasses.replace(question.metric, search="two_phase")


def two_phases(question: Question, runs: int) -> Iterator[float]:
    """Yield independent releases in two phases: what a person counts, then noise."""
    metric = in_two_phases(question)
    release = program_of(question, metric).steps[0].release
    if isinstance(release, TwoPhase):
        profile = profile_of(question, metric, release.removals)
        draw = functools.partial(release.draw_one, profile)
    elif isinstance(release, TwoPhaseDistinct):
        draw = functools.partial(release.draw_one, functools.cache(extension_of(question)))
    else:
        yield from clipped(question, runs)
        return
    yield from (float(draw(Noise())[0]) for _ in range(runs))


def extension_of(question: Question) -> CoverExtension:
    """Return what a distinct count is when nobody counts for more than a price."""
    columns = profiles.read(question.case)
    people, items = (profiles.codes(columns[name]) for name in question.case.columns)
    return CoverExtension(people, items)


def clipped(question: Question, runs: int) -> Iterator[float]:
    """Yield independent releases by clip and noise."""
    program, case = program_of(question, question.metric), question.case
    columns = profiles.read(case)
    table = table_of(columns, case.person[0], program.columns)
    bounder = Bounder(ContributionBounds(None), program.fields, _KEY, program.keep_rows)
    cells = cells_of(table, bounder, program.measures)
    settled = bounder.settle(bounder.prepare(table))
    settled = bounder.aggregate(settled) if bounder.keep_rows else settled
    shared = program.shared_measures
    people = PartitionView.of_all(histograms.summarise_people(settled, shared)) if shared else None
    for _ in range(runs):
        clips = program.choose_clips(people, Noise()) if people is not None else ()
        yield float(released(program, cells, clips)[0])


def one_sided(metric: Metric) -> Metric:
    """Return the metric as it searches the removal loss."""
    if hasattr(metric, "one_sided"):
        return dataclasses.replace(metric, one_sided=True)
    return dataclasses.replace(metric, search=dp.AboveThreshold)


@dataclasses.dataclass(frozen=True)
class Drawn:
    """Releases of one mechanism: their distances to the truth, and in people, where it has them."""

    name: str
    errors: np.ndarray
    people: float | None

    @property
    def means(self) -> tuple[float, float]:
        """The mean of the middle 60% of the errors, and that of all."""
        return middle(self.errors), float(self.errors.mean())

    def meets(self, published: float) -> bool:
        """Say whether the middle error is at most 0.4 of the published one."""
        return self.means[0] <= GOAL * published


def measure(question: Question, runs: int) -> tuple[float, list[Drawn]]:
    """Return the truth, and what the published mechanism and ours release."""
    direct = program_of(question, one_sided(question.metric)).steps[0].release
    if not isinstance(direct, DirectRelease):
        raise TypeError(f"{question.name} is not released by its removal loss.")
    searches = {PUBLISHED: Published(dp.Budget(EPSILON), BETA), "one-sided": direct.search}
    removals = max(search.cap(direct.candidates.size) for search in searches.values())
    profile = profile_of(question, one_sided(question.metric), removals)
    truth, levels = float(profile.values[0]), -np.array(profile.values, np.float64)
    found = []
    for name, search in searches.items():
        chosen = [float(search.choose(profile, direct.candidates)) for _ in range(runs)]
        people = np.searchsorted(levels, -np.array(chosen))
        found.append(Drawn(name, abs(np.array(chosen) - truth), middle(people)))
    drawn = np.array(list(two_phases(question, runs)))
    found.append(Drawn(DEFAULT, abs(drawn - truth), None))
    found.append(least_shift(profile, direct.candidates))
    return truth, found


def least_shift(profile: dp.Profile, candidates: dp.Candidates) -> Drawn:
    """Return the error of a release that passes over as few people as a worst case allows.

    Packing: let T + 1 people all have the same value, y_i: their largest is y_i without any T of
    them, so that a release with the shift T is y_i with probability 1 - beta. They are T + 1 steps
    from nobody, from whom y_i is released with a chance of at least (1 - beta) e^(-epsilon (T + 1))
    therefore, for each of the N candidates: N (1 - beta) e^(-epsilon (T + 1)) <= 1. No epsilon-DP
    search of profiles, whatever they are, has a proved shift below ln(N (1 - beta)) / epsilon - 1.

    That is no bound on the error on one given profile: a search errs less where few candidates are
    near f, and a release that need not be from below (two phases) is not bound by it at all.
    """
    packed = math.log(candidates.size * (1 - BETA)) / EPSILON
    shift = max(0, math.ceil(packed) - 1)
    [passed] = candidates.round_up([profile.values[min(shift, len(profile.values) - 1)]])
    error = np.array([abs(float(passed) - float(profile.values[0]))])
    return Drawn(FLOOR, error, float(shift))


def lines(question: Question, truth: float, found: Sequence[Drawn]) -> Iterator[str]:
    """Yield the lines of the long table for one question: one for each of the mechanisms."""
    base = found[0].means
    for one in found:
        ratios = [_ratio(mine, theirs) for mine, theirs in zip(one.means, base, strict=True)]
        people = "" if one.people is None else f"{one.people:.1f}"
        met = "" if one.name in (PUBLISHED, FLOOR) else "yes" if one.meets(base[0]) else "NO"
        numbers = [f"{number:,.2f}" for number in (truth, *one.means)]
        yield line([question.name, one.name, *numbers, people, *ratios, met])


def is_met(found: Sequence[Drawn]) -> bool:
    """Return whether the default release errs by at most 0.4 of the published mechanism."""
    return all(one.meets(found[0].means[0]) for one in found if one.name == DEFAULT)


def short(question: Question, truth: float, found: Sequence[Drawn]) -> str:
    """Return the line of the short table: middle errors, and their ratios to the published one."""
    published, *ours = (one.means[0] for one in found)
    cells = [f"{error:,.2f} ({_ratio(error, published)})" for error in ours]
    met = "yes" if is_met(found) else "NO"
    return line([question.name, f"{truth:,.0f}", f"{published:,.2f}", *cells, met])


def _ratio(mine: float, theirs: float) -> str:
    return f"{mine / theirs:.2f}" if theirs else "0 / 0" if not mine else "x / 0"


def header(names: Sequence[str]) -> str:
    """Return the first two lines of a table."""
    return line(names) + line(["---"] * len(names))


HEADS = ["statistic", "release", "truth", "middle 60%", "mean of all", "people"]
HEADS += ["ratio of middles", "ratio of means", f"at most {GOAL}"]
SHORT = ["statistic", "truth", PUBLISHED, "one-sided", DEFAULT, FLOOR, f"default at most {GOAL}"]


def main(words: Sequence[str] | None = None) -> int:
    """Print both tables of errors; return 1 if all releases of a statistic miss the goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--only", default="", help="a part of the names of the statistics")
    arguments = parser.parse_args(words)
    sys.stdout.write(header(HEADS))
    missed, table = False, ""
    for question in (asked for asked in QUESTIONS if arguments.only in asked.name):
        truth, found = measure(question, arguments.runs)
        sys.stdout.writelines(lines(question, truth, found))
        sys.stdout.flush()
        missed, table = missed or not is_met(found), table + short(question, truth, found)
    sys.stdout.write(f"\n{header(SHORT)}{table}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
