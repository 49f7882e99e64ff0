"""The record of a release in a pipeline: one dict of parameters and released numbers.

The date is that of building the pipeline: when a run ends depends on its data.
"""

import dataclasses
import datetime
import importlib.metadata
import math
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import apache_beam as beam
import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.accounting.periods import PERSON, in_unit
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.consistency.several_metrics import adds_up, noise_of
from beam_dp.mechanisms.metrics.mean import MeanOfReleased
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.program import Adaptive, Program
from beam_dp.text.plan import Record, cost, record_of, total_of
from beam_dp.transforms.partitions import PublicPartitions
from beam_dp.transforms.stages import noise_off, quick_steps
from beam_dp.transforms.stages.bound_and_summarise import Selected, adapted
from beam_dp.transforms.stages.draw_once import Block, Drawn
from beam_dp.transforms.stages.output_names import OTHER, output_names

FORMAT = 1
COLUMNS = "columns"
"""The entry that says which columns the output has."""
SUMS = "noise_of_sums"
"""The entry that says, of what adds up, the tail bound of the noise, its deviation, and how many
hold sums."""
_JOINED = re.compile(r"""(\bjoin\s+["'])[^"']*/""", re.IGNORECASE)
_LIBRARIES = ("beam-dp", "apache-beam", "numpy", "pyarrow", "scipy")


def facts(release: Any, job: Mapping[str, Any] | None) -> Record:
    """Return what is known when the pipeline is built.

    Args:
        release: the transform, a dataclass of public parameters.
        job: further public parameters.
    """
    source = release.period_source
    computed: Record = {"period_source": source} if source != (release.period or "") else {}
    made = (m for m in release._program.request.metrics if isinstance(m, MeanOfReleased))
    if means := [metric.output for metric in made if not metric.own_count]:
        computed["means_of_sums"] = means
    known = {
        "format": FORMAT,
        "transform": type(release).__name__,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "parameters": {**json_value(_fields(release)), **computed},
        COLUMNS: columns(release),
    }
    return known if job is None else {**known, "job": json_value(job)}


def columns(release: Any) -> Record:
    """Return the names of the output columns: those of the keys, and those of each metric."""
    numbers = [list(output_names((), [metric])) for metric in release.metrics]
    other = {"other": OTHER} if release.has_other else {}
    return {"keys": [*release.keys], "numbers": numbers, **other}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries; those not installed are left out."""
    by_name = {"python": platform.python_version()}
    for name in _LIBRARIES:
        for distribution in importlib.metadata.distributions(name=name):
            by_name[name] = distribution.version
    return by_name


def json_value(value: object) -> Any:
    """Return a parameter in types that JSON has; a function by name, public keys by number."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if np.isfinite(value) else str(value)
        case Fraction() | Candidates() | datetime.date():
            return str(value)
        case Budget():
            return cost(value)
        case PublicPartitions():
            return {"type": "PublicPartitions", "keys": len(value.keys)}
        case Mapping():
            return {str(name): json_value(part) for name, part in value.items()}
        case list() | tuple():
            return [json_value(part) for part in value]
        case type():
            return value.__name__
    if dataclasses.is_dataclass(value):
        return {"type": type(value).__name__, **json_value(_fields(value))}
    return _named(value) if callable(value) else type(value).__name__


def sql_text(text: str) -> str:
    """Return SQL without the folders of the files that it joins."""
    return _JOINED.sub(r"\1", text)


def file_names(paths: str) -> str:
    """Return the names of files: paths or globs with commas between, without their folders."""
    return ",".join(re.split(r"[/\\]", path)[-1] for path in paths.split(","))


def text_of(value: object) -> str:
    """Return a parameter in words, also one of a record: `Sum(column=spent, clip=9)`."""
    found = repr(value) if isinstance(value, Budget) else json_value(value)
    if isinstance(found, dict):
        parts = [
            f"{name}={text_of(part)}"
            for name, part in found.items()
            if name != "type"
            and part is not None
            and part is not False
            and part not in ("", [], {})
        ]
        return f"{found.get('type', '')}({', '.join(parts)})"
    return ", ".join(map(text_of, found)) if isinstance(found, list) else str(found)


def _fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def _named(function: Callable[..., Any]) -> str:
    kind = type(function)
    name = getattr(function, "__qualname__", kind.__qualname__)
    return f"{getattr(function, '__module__', kind.__module__)}:{name}"


def of(release: Any, job: Mapping[str, Any] | None) -> beam.PCollection[Record]:
    """Return the collection of the one record of a release.

    Args:
        release: the transform, a dataclass of public parameters.
        job: further public parameters.

    Raises:
        ValueError: if the release was not applied yet.
    """
    drawn: Drawn | None = release._drawn
    if drawn is None:
        rule = "be called behind the release: rows | release"
        raise checks.ParameterError(type(release).__name__, "record()", rule)
    source = drawn.source
    label = f"Record of {source.producer.full_label}"
    start = source.pipeline | f"{label}: Start" >> beam.Impulse()
    known = facts(release, job) | noise_off.mark(drawn.noise)
    blocks = beam.pvalue.AsIter(source)
    given = release._program, known, release.whole, blocks
    complete = quick_steps.mapped(_complete, *given, *drawn.sides)
    return start | label >> complete.with_output_types(dict)


def _complete(
    _: bytes,
    program: Program,
    known: Record,
    paid: Budget,
    blocks: Iterable[Block],
    choices: tuple[np.ndarray, ...] = (),
    chosen: Adaptive | None = None,
    selected: Sequence[Selected] | None = None,
) -> Record:
    """Return the record, with what the run has drawn."""
    taken = adapted(program, chosen, selected)
    clips: list[set[tuple[float, float]]] = [set() for _ in taken.steps]
    sums: dict[str, list[float]] = {}
    for block in blocks:
        for metric in taken.request.metrics if not sums else ():
            if adds_up(metric, taken):
                noise = noise_of(taken, block.drawn, metric.parts())
                sums |= {metric.output: list(noise)} if math.isfinite(noise.tail_bound) else {}
        for of_step, step in zip(clips, block.drawn, strict=True):
            of_step |= {(step.loss.clip, step.loss.scale)} if step.loss is not None else set()
    made = record_of(taken, choices, list(map(sorted, clips)))
    if paid != taken.request.budget:
        share = f"{total_of(paid)}, for all tables of the run; this one: {made['composition']}"
        made |= {"budget": cost(paid), "composition": share}
    period = known["parameters"].get("period")
    units = {"unit": in_unit(PERSON, period), "composition": in_unit(made["composition"], period)}
    return {**known, **made, **units, SUMS: sums}
