"""Rehearse a release on public or old data: what would be named, and how far off numbers would be.

    python -m pipelines.rehearse --config release.yaml --input last_year.csv --runs 100

It makes the same release many times, without the cost of a pipeline, and prints the TRUE numbers:
1,350 ±42 (96% hold) says that 1,350 is the truth, that 95 of 100 released numbers are at most 42
away, and that the interval beside them holds the truth in 96 of 100 releases. NOTHING OF THIS IS
PRIVATE: take public data, or rows that may be shown. It reads in this process; no ledger is
charged, and no file is written but the page that --report names.
"""

import dataclasses
import math
import sys
from collections.abc import Sequence

import apache_beam as beam
import numpy as np
import pyarrow as pa

import beam_dp as dp
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.short_numbers import short
from beam_dp.mechanisms.planning.plan import cost
from beam_dp.mechanisms.planning.shown_tables import wrapped
from beam_dp.results import release as releases
from beam_dp.results import report
from beam_dp.results.shown_numbers import ShownNumber
from beam_dp.results.view import NOT_PRIVATE, REHEARSED, Series, ShownMetric, View
from beam_dp.transforms import rehearsal, run_record
from beam_dp.transforms.io import whole_files
from pipelines import command_line, releasing, running, terminal
from pipelines.description import Description, without_folders

RUNS = 100
_MARK = "a rehearsal of {} releases, which shows the true numbers of the input"


@dataclasses.dataclass(frozen=True)
class Rehearsed(ShownNumber):
    """A true number, between the ends of 95 of 100 released ones, with what is said of these."""

    said: str = ""

    def __str__(self) -> str:
        return f"{self.text}{self.said}"


def main(given: Sequence[str] | None = None) -> int:
    """Rehearse; returns the exit code."""
    line = command_line.parser("rehearse", __doc__)
    line.add_argument("--runs", metavar="N", default=RUNS, type=int, help=f"default {RUNS}")
    options = line.parse_args(given)
    with line.refusing():
        asked = Description(command_line.described(options))
        checks.require(options.runs > 1, "release", "runs", "be 2 or more")
        checks.require(bool(asked.given.get("input")), "release", "input", "be given")
        checks.require(not options.plan, "release", "plan", "be left out: it reads no row")
        page = asked.given.get("report")
        if page:
            report.check(page)
        with terminal.warned():
            unused = beam.Pipeline(releases.RUNNER)
            _ = releasing.rows_of(asked, unused) | "Check" >> asked.release
        made = beam.Pipeline(releases.RUNNER)
        rehearsal.held.clear()
        _ = releasing.rows_of(asked, made) | "Hold" >> beam.Map(rehearsal.hold)
        asked.check_input(made)
    running.run(made, "Reading", options.show_errors, asked.input, options.quiet)
    if not options.quiet:
        terminal.say("Drawing")
    view, named = rehearsed(asked, options.runs, line.prog)
    columns = terminal.width()
    often = f"named in at least half of the releases: {(named >= 0.5).sum():,} of {len(named):,} "
    lines = [wrapped(view.cost, columns), view.text(columns)]
    lines += [wrapped(f"{often}partitions", columns)] if view.by else []
    if page:
        heading = f"{NOT_PRIVATE}. Rehearsal: {run_record.file_names(asked.input)}"
        with whole_files.written(page) as file:
            file.write(report.html(view, heading).encode())
        lines.append(f"report: {page}")
    sys.stdout.write("\n".join([*lines, wrapped(view.cost, columns), ""]))
    return 0


def rehearsed(asked: Description, runs: int, program: str) -> tuple[View, np.ndarray]:
    """Return the true numbers of the rows that are held, with what draws say of them.

    Args:
        asked: the release.
        runs: how many draws.
        program: the name of the job, for the record.

    Returns:
        What is shown, and how often each partition is named.
    """
    release = asked.release
    true, drawn = rehearsal.truth(release), rehearsal.draws(release, runs)
    often = {key: sum(key in each for each in drawn) / runs for key in true}
    is_private = isinstance(release.partitions, dp.PrivatePartitions)
    keys = sorted(sorted(true, key=str) if is_private else true, key=lambda key: -often[key])
    named = np.array([often[key] for key in keys])
    job = {"program": program, **without_folders({**asked.given, "input": asked.input})}
    mark = {"budget": cost(release.budget), NOT_PRIVATE: _MARK.format(runs), REHEARSED: runs}
    record = run_record.facts(release, job) | mark
    of = record[run_record.COLUMNS]
    names = [name for group in of["numbers"] for name in group]
    missing = (math.nan,) * len(names)
    numbers = np.array([[each.get(key, missing) for key in keys] for each in drawn], float)
    nothing = pa.table(dict.fromkeys([*of["keys"], *names], pa.nulls(len(keys), pa.float64())))
    view = View.of(nothing, record)

    def shown(series: Series) -> Series:
        at = names.index(series.name)
        has_ends = names[at + 1 : at + 2] == [f"{series.name}_low"]
        columns = slice(at, at + 3 if has_ends else at + 1)
        cells = (
            _number(float(true[key][at]), numbers[:, row, columns]) for row, key in enumerate(keys)
        )
        return dataclasses.replace(series, numbers=tuple(cells))

    metrics = [
        dataclasses.replace(metric, series=tuple(map(shown, metric.series)))
        for metric in view.metrics
    ]
    if is_private:
        shares = (round(100 * share) for share in named.tolist())
        cells = tuple(
            Rehearsed(each, each, each, whole=True, share=True, said="%") for each in shares
        )
        metrics.insert(0, ShownMetric("", "", (Series("named", "", cells),)))
    return dataclasses.replace(view, keys=tuple(keys), metrics=tuple(metrics)), named


def _number(true: float, drawn: np.ndarray) -> Rehearsed:
    """Return a true number, with what its draws say: each a number, or one with its two ends."""
    value = true if math.isfinite(true) else None
    released = drawn[~np.isnan(drawn[:, 0])]
    if value is None or not len(released):
        return Rehearsed(value, said=" (no number)")
    low, high = np.quantile(released[:, 0], [0.025, 0.975]).tolist()
    said = f" ±{short(float(np.quantile(abs(released[:, 0] - true), 0.95)))}"
    if drawn.shape[1] > 1:
        slack = 1e-9 * abs(true)
        holds = (released[:, 1] <= true + slack) & (released[:, 2] >= true - slack)
        said += f" ({holds.mean():.0%} hold)"
    return Rehearsed(value, low, high, whole=value.is_integer(), said=said)


if __name__ == "__main__":
    sys.exit(main())
